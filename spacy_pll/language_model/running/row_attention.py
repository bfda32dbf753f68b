"""Attention in padded passes: padding is hidden and short rows are read as one, where the model calls PyTorch.

The model itself is told nothing of padding: transformers would look whether a mask hides anything, and so wait for all
that a GPU has to do. Instead, its attention is computed here, or its attention scores are masked here, where it calls
`scaled_dot_product_attention`, or the softmax over the scores. Everything else sees rows as they are, so one
implementation serves all architectures and versions of transformers. Whether it is right for a model is tried
(`capabilities.find_capabilities`).
"""

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention, softmax
from torch.overrides import TorchFunctionMode

# As many rows as fit into so many ids are read as one, by the type of device: the kernels of a GPU work on so many at
# once, however few a row has. On a CPU nothing is gained (docs/speed.md).
TILE = {"cuda": 64}
# The most ids in a row of a pass whose padding is hidden here. Some models read long rows in another way, and a look at
# the mask of long rows costs little beside what they cost.
MAX_WIDTH = 128
# The kernels read a mask whose rows begin at multiples of so many numbers. They copy another one in each layer.
ALIGNED = 16

# By these a model asks whether there is padding. It knows of none, and a GPU would have to answer first.
_ALL = {torch.all, torch.Tensor.all}
_SOFTMAX = {softmax, torch.softmax, torch.Tensor.softmax}


class RowAttention(TorchFunctionMode):
    """While this context lasts, square attention over a pass does not see the padding behind rows.

    ids (int64 tensor, shape (rows, width)): What is read.
    lengths (Optional[int64 tensor, shape (rows,)]): The rest of a row is padding. None: there is none.
    together (int): How many rows are read as one. It divides their number.

    Nor does the model find padding where it looks for it.
    """

    def __init__(self, ids: torch.Tensor, lengths: torch.Tensor | None, together: int = 1):
        super().__init__()
        (self.rows, self.width), self.device = ids.shape, ids.device
        self.together, self._lengths = together, lengths
        self._biases: dict[Any, torch.Tensor | None] = {}  # by the model's own mask, and for single or for joint rows

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is scaled_dot_product_attention:
            return self.attend(*args, **kwargs)
        if function in _SOFTMAX and args and self.is_square(args[0]):
            bias = self.bias(None, args[0].dtype)
            args = args if bias is None else (args[0] + bias, *args[1:])
        elif function is torch.Tensor.__contains__:  # whether the padding id is among the ids of a pass without a mask
            return False
        elif function in _ALL and args and args[0].shape == (self.rows, self.width):  # the mask that a model then makes
            return True
        return function(*args, **kwargs)

    def is_square(self, x: Any) -> bool:
        return isinstance(x, torch.Tensor) and x.dim() == 4 and x.shape[-2:] == (self.width, self.width)

    def attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """What `scaled_dot_product_attention` gives under the rules, without dropout.

        query, key, value (tensors, shape (rows, heads, width, size)).
        attn_mask (Optional[Tensor]): The mask of the model itself, such as local attention has.
        is_causal (bool): What stands before padding does not see it in any case.
        enable_gqa (bool): Keys and values have fewer heads. Each serves several heads of the queries.
        """
        more: dict[str, Any] = {"scale": scale} | ({"enable_gqa": True} if enable_gqa else {})
        return self._attend(query, key, value, attn_mask=attn_mask, is_causal=is_causal, **more)

    def _attend(
        self, *inputs: torch.Tensor, attn_mask: torch.Tensor | None, is_causal: bool = False, **more: Any
    ) -> torch.Tensor:
        """As `attend`. inputs (tensors): Queries, keys and values."""
        query, key, value = inputs
        if is_causal or not query.shape[2] == key.shape[2] == self.width:
            return scaled_dot_product_attention(query, key, value, attn_mask, is_causal=is_causal, **more)
        bias, n = self.bias(attn_mask, query.dtype), self.together
        if n == 1 or (bias is not None and bias.shape[1] > 1):
            return scaled_dot_product_attention(query, key, value, attn_mask=bias, **more)
        query, key, value = (_joined(x, n) for x in (query, key, value))
        bias = self._joint_bias(attn_mask, query.dtype)
        return _divided(scaled_dot_product_attention(query, key, value, attn_mask=bias, **more), n)

    def bias(self, given: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
        """What is added to all scores beside a mask of the model itself. Shape (1 or rows, 1 or heads, 1 or width,
        width). None: nothing.
        """
        if (given, dtype) not in self._biases:
            bias = self.hidden_bias(dtype)
            if given is not None:
                own = self.read_mask(as_bias(given, dtype))
                bias = own if bias is None else (own + bias).clamp(min=torch.finfo(dtype).min)
            self._biases[given, dtype] = None if bias is None else _aligned(bias)
        return self._biases[given, dtype]

    def hidden_bias(self, dtype: torch.dtype) -> torch.Tensor | None:
        """What hides padding."""
        if self._lengths is None:
            return None
        seen = torch.arange(self.width, device=self.device) < self._lengths[:, None]
        return as_bias(seen, dtype)[:, None, None]

    def read_mask(self, mask: torch.Tensor) -> torch.Tensor:
        """A mask of the model itself, as it counts in this pass."""
        return mask

    def _joint_bias(self, given: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
        """What is added to the scores of rows that are read as one: each sees its own ids alone. Shape (1 or rows / n,
        1, n * width, n * width).
        """
        at, n, width = (given, dtype, "joint"), self.together, self.width
        if (joint := self._biases.get(at)) is None:
            bias = self.bias(given, dtype)
            if bias is None:
                bias = torch.zeros(1, 1, 1, 1, dtype=dtype, device=self.device)
            same = len(bias) == 1  # for all rows
            own = bias.expand(n if same else -1, -1, width, width).reshape(-1, n, width, width)
            apart = own.new_full((len(own), n, width, n, width), torch.finfo(dtype).min)
            apart.diagonal(dim1=1, dim2=3).copy_(own.permute(0, 2, 3, 1))
            joint = self._biases[at] = _aligned(apart.view(len(own), 1, n * width, n * width))
        return joint


def _joined(x: torch.Tensor, n: int) -> torch.Tensor:
    """Every n rows behind each other, as one. Shape (rows / n, heads, n * width, size); mostly no copy."""
    rows, heads, width, size = x.shape
    return x.transpose(1, 2).reshape(rows // n, n * width, heads, size).transpose(1, 2)


def _divided(x: torch.Tensor, n: int) -> torch.Tensor:
    """The rows again."""
    rows, heads, width, size = x.shape
    return x.transpose(1, 2).reshape(rows * n, width // n, heads, size).transpose(1, 2)


def _aligned(bias: torch.Tensor) -> torch.Tensor:
    """The same numbers, in rows that begin where kernels of a GPU want them."""
    width = bias.shape[-1]
    if bias.device.type == "cpu" or width % ALIGNED == 0:
        return bias
    wide = bias.new_empty(*bias.shape[:-1], -(-width // ALIGNED) * ALIGNED)
    return wide[..., :width].copy_(bias)


def as_bias(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """What is added to scores: 0 where a mask is true. A mask of numbers is added as it is."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, torch.finfo(dtype).min)
