"""A language model of transformers: settings, loading on first use, running, saving."""

import logging
import math
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, get_args

import srsly
import torch
from spacy.util import SimpleFrozenDict
from thinc.api import get_torch_default_device
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from ..documentation import page
from ..errors import PLLError
from ..metrics import get_metric, names_of
from ..scoring.passes import Batch, PassLimits
from ..scoring.wordpieces import in_full
from . import BUILTIN, BUILTIN_LANGUAGE, BUILTIN_NAME, BUILTIN_NAMES
from .protocol import Description, Loaded
from .reading.checkpoint import Checkpoint, fits, read_checkpoint, read_unrounded, to_device, write_checkpoint
from .reading.checks import (
    check_direction,
    check_kind,
    check_no_remote_code,
    check_precision,
    check_room_for_text,
    count_embeddings,
    in_block,
)
from .reading.positions import max_length_of
from .reading.slow_tokenizers import backend_of
from .reading.special_tokens import with_its_own
from .running.capabilities import find_capabilities, find_direction, find_shift, most_as_short
from .running.forward import HALF, Forward, Precision, half_of, one_thread_after_fork
from .running.group_trial import N_LONG, N_SHORT, find_group_passes
from .running.limits import MAX_IDS, MAX_IDS_WITH_GROUPS, MAX_LOGITS, ids_at_once, limit, n_parameters, pass_cost
from .running.log_probs import DevicePredictions, TargetLogProbs, Tensors, concatenated
from .running.onednn import warn_if_emulated
from .running.row_attention import TILE
from .running.torch_settings import usual_tensors
from .running.trials import make_texts
from .running.unable import Unable

logger = logging.getLogger(__name__)

# What a pass has too much of if it does not fit into memory.
SEVERAL_ROWS, ONE_ROW = "ids in several rows", "targets in a row"
# Held while a model is loaded. It belongs to the module, so that a model can be pickled.
_loading = threading.RLock()


def _new_lock() -> None:
    global _loading
    _loading = threading.RLock()


if hasattr(os, "register_at_fork"):
    # Another thread may have held the lock at the moment of the fork, and that thread does not exist in the child.
    os.register_at_fork(after_in_child=_new_lock)


@dataclass(frozen=True, kw_only=True)
class LoadedModel(Loaded):
    """What loading yields. It is assigned as a whole, so a load that fails leaves nothing half done."""

    checkpoint: Checkpoint  # its transformer is on its device, in evaluation mode
    forward: Forward
    log_probs: TargetLogProbs  # or a subclass
    is_rounded: bool  # whether keeping its weights in half precision has changed them

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.reset_tokenizer()  # a copy has lost how it reads special tokens

    def reset_tokenizer(self) -> None:
        """Let the tokenizer read texts as when it was loaded. Whoever has it may have called it in another way."""
        tokenizer, split = in_full(self.tokenizer), self.checkpoint.tokenizer.split_special_tokens
        if getattr(tokenizer, "encode_special_tokens", None) != split:
            tokenizer.encode_special_tokens = split


class Owned(Protocol):
    """A model in memory that others use, too, with its tokenizer (`in_memory`)."""

    def follow(self, language_model: "TransformerLanguageModel") -> None:
        """Use them, unless they are used already as they are now."""

    def copy_weights(self, transformer: Any) -> None:
        """Give a copy of the model the weights that the model has now."""

    def check_saving(self, language_model: "TransformerLanguageModel") -> None:
        """Refuse what would be another model once it is read again."""


class TransformerLanguageModel:
    """A `LanguageModel` of transformers. `loaded` is None until it is first needed. Subclasses say which kind it is.

    name (Optional[str]): A name on the Hugging Face hub, a local folder, or None for the built-in English model.
    revision (str): Branch, tag or commit on the hub.
    tokenizer_config (dict): Settings for `AutoTokenizer.from_pretrained`.
    transformer_config (dict): Settings for `AutoConfig.from_pretrained`.
    mixed_precision (bool): What `precision="bfloat16"` is, under the name that older configs have.
    precision (Optional[str]): "float32", the default; "tf32", in which a GPU rounds the factors of products; "bfloat16"
        or "float16", in which a GPU keeps the weights, too, and a CPU runs the passes under autocast (bfloat16 alone).
        Log-probabilities are computed in float32 all the same.
    RAISES (ValueError): There is no such precision. When the model is loaded: the device does not have it.
    """

    kind: str  # what a metric's `model_kind` must be
    auto_class: Any  # the class of transformers that loads it
    configs: Mapping[Any, Any]  # the configurations for which there is such a class
    shift: int | None  # how many positions before a piece the model predicts it; None: this is tried
    example: str  # a well-known model of this kind, for messages
    lookahead = 0  # what `check_metrics` returns if no metric shows the model what follows

    def __init__(
        self,
        name: str | None = None,
        revision: str = "main",
        tokenizer_config: dict[str, Any] = SimpleFrozenDict(),  # noqa: B008
        transformer_config: dict[str, Any] = SimpleFrozenDict(),  # noqa: B008
        mixed_precision: bool = False,
        precision: Precision | None = None,
    ):
        if precision not in (None, *get_args(Precision)):
            raise PLLError(f"`precision` must be {' or '.join(get_args(Precision))}. It is {precision!r}.")
        if mixed_precision and precision not in (None, "bfloat16"):
            raise PLLError(
                f"`precision` is {precision!r}, and `mixed_precision` asks for bfloat16. Leave out `mixed_precision`."
            )
        if name is not None and not name.strip():
            raise PLLError("`name` is empty. Name a model, or leave it out for the built-in one.")
        self.name = None if name in BUILTIN_NAMES else name
        self.revision = revision
        self.tokenizer_config, self.transformer_config = dict(tokenizer_config), dict(transformer_config)
        self.precision: Precision = precision or ("bfloat16" if mixed_precision else "float32")
        check_no_remote_code(tokenizer_config=self.tokenizer_config, transformer_config=self.transformer_config)
        self.loaded: LoadedModel | None = None
        self.owned: Owned | None = None  # where it is from, if others may change it
        self._forget_limits()

    def _forget_limits(self) -> None:
        """Of the passes that are tried: the most of each, once more of it did not fit into memory."""
        self._most = {SEVERAL_ROWS: math.inf, ONE_ROW: math.inf}

    def describe(self) -> Description:
        commit = self.loaded.checkpoint.commit if self.loaded else None
        if self.name:
            return Description(f"the model {self.name!r}", commit)
        return Description("the built-in model", commit, BUILTIN_LANGUAGE)

    def check_metrics(self, metrics: Sequence[str]) -> int | None:
        for name in metrics:
            if (needed := get_metric(name).model_kind) != self.kind:
                raise PLLError(
                    f"The metric {name!r} needs a {needed} language model, and {self.describe().title} is a "
                    f"{self.kind} one.",
                    f"Set `metrics` to some of these: {names_of(model_kind=self.kind)}.",
                )
        return None if any(get_metric(name).shows_what_follows for name in metrics) else self.lookahead

    def load(self, groups: bool = False) -> LoadedModel:
        if self.owned is not None:
            with _loading:
                self.owned.follow(self)
        loaded = self.loaded
        if loaded is None or (groups and loaded.groups is None):
            with _loading:
                loaded = self.loaded or self._load(
                    self.name or str(BUILTIN), self.revision, self.tokenizer_config, self.transformer_config
                )
                if groups and loaded.groups is None:
                    loaded = self.loaded = replace(loaded, groups=self._try_groups(loaded))
        loaded.reset_tokenizer()
        return loaded

    @usual_tensors()
    def _load(self, source: str, *settings: Any) -> LoadedModel:
        """Read the model, whatever is loaded. settings: Those of `read_checkpoint`.

        RAISES (ValueError): A folder is given with a revision.
        """
        revision = settings[0]
        if revision not in (None, "main") and Path(source).is_dir():
            raise PLLError(
                f"`revision` is {revision!r}, and {self.name or BUILTIN_NAME!r:.100} is no model on the Hugging Face "
                "hub.",
                "Leave out `revision`.",
            )
        one_thread_after_fork()
        device = get_torch_default_device()
        check_precision(self.precision, device)
        checkpoint = self._read(source, *settings)
        keeps_half = self.precision in HALF and device.type == "cuda"
        if not keeps_half:
            to_device(checkpoint.transformer, device)
        loaded = self.use(checkpoint, source, move_to=device if keeps_half else None)
        self._source, self.owned = (source, *settings), None
        return loaded

    def _read(self, source: str, *settings: Any) -> Checkpoint:
        return read_checkpoint(source, self.auto_class, self._check, *settings)

    def use(
        self, checkpoint: Checkpoint, source: str, shared: bool = False, move_to: torch.device | None = None
    ) -> LoadedModel:
        """Score with a checkpoint, after finding out what the model allows.

        shared (bool): The weights of its transformer may change, and others may use it, too.
        move_to (Optional[torch.device]): Keep the weights in half precision there, once the model has been tried.
        RAISES (ValueError): The model cannot be used to score text.
        """
        forward = Forward(checkpoint.transformer, shared, self.precision)
        if shared:  # whoever has it gets it back without hooks
            forward.remove_hooks_after(self)
        try:
            self.loaded = self._tried(forward, checkpoint, source, move_to)
        except BaseException:  # who has the model goes on without this pipeline
            forward.remove_hooks()
            raise
        return self.loaded

    def _tried(
        self, forward: Forward, checkpoint: Checkpoint, source: str, move_to: torch.device | None
    ) -> LoadedModel:
        """As `use`."""
        transformer, hf_tokenizer = checkpoint.transformer, checkpoint.tokenizer
        tokenizer = self._backend(hf_tokenizer, source)
        max_length = max_length_of(transformer, hf_tokenizer)
        check_room_for_text(tokenizer, max_length, source)
        pad_id = hf_tokenizer.pad_token_id if hf_tokenizer.pad_token_id is not None else 0
        masked = self.kind == "masked"
        mask_id = hf_tokenizer.mask_token_id if masked else None  # left to right, nothing is masked
        texts = make_texts(tokenizer, max_length)
        tile = TILE.get((move_to or forward.device).type, 0)
        with torch.inference_mode(), forward.in_float32():
            capabilities = find_capabilities(forward, texts, mask_id, pad_id, source, tile)
            with forward.trying(capabilities):
                sees = find_direction(forward, texts, mask_id)
                shift = find_shift(forward, texts) if self.shift is None else self.shift
        forward.use(capabilities)
        check_direction(*sees, masked, self.example, source)
        if self.shift is None and shift:
            logger.info("%r predicts a masked piece one position before it.", source)
        log_probs = self._log_probs(forward, shift, hf_tokenizer, tokenizer, source)
        if masked and shift > texts.before:
            raise PLLError(
                f"The tokenizer of {source!r} puts no special token before a text, so with `shift=1` nothing "
                f"predicts its first piece. Choose another model, or try 0: {in_block(source, shift=0)}"
            )
        n_embeddings = count_embeddings(transformer)
        if self.precision in HALF:
            warn_if_emulated(move_to or transformer.device)
        is_rounded = False
        if move_to is not None:
            half = half_of(self.precision, move_to)
            is_rounded = not all(fits(weight, half) for weight in transformer.parameters())
            forward.keep_weights_in(half, move_to)
        max_tokens, max_positions = limit(MAX_IDS, forward.device), limit(MAX_LOGITS, forward.device) // n_embeddings
        if capabilities.narrowing is None:  # then there are logits for every id of a pass, not only for the targets
            max_tokens = max(1, min(max_tokens, max_positions))
        max_targets = max(1, max_positions // log_probs.positions_per_target)
        try:
            layers = len(forward.narrowing.layers())
        except Unable:  # they are not found
            layers = 1
        parameters = n_parameters(transformer)
        cost = pass_cost(forward.device.type, self.precision, layers, parameters)
        self._forget_limits()
        return LoadedModel(
            tokenizer=tokenizer,
            max_length=max_length,
            mask_id=-1 if mask_id is None else mask_id,
            n_ids=n_embeddings,
            unknown_id=hf_tokenizer.unk_token_id,
            rows=PassLimits(
                max_tokens, max_targets, pad_id, capabilities.pads, cost, apart=most_as_short(transformer.config)
            ),
            ids_at_once=ids_at_once(forward.device.type, parameters, max_tokens),
            on_gpu=transformer.device.type == "cuda",
            checkpoint=checkpoint,
            forward=forward,
            log_probs=log_probs,
            is_rounded=is_rounded,
            prompts=log_probs.cfg > 0,
        )

    @usual_tensors()
    def _try_groups(self, loaded: LoadedModel) -> PassLimits:
        """What limits passes with groups. RAISES (ValueError): The architecture cannot read them."""
        rows, title, kind = loaded.rows, self.describe().title, type(loaded.checkpoint.transformer).__name__
        if loaded.prompts:
            raise PLLError("With `cfg`, which is in a config, `mask_margin` is not possible.", "Leave out one of them.")
        texts, forward = make_texts(loaded.tokenizer, loaded.max_length, N_LONG, N_SHORT), loaded.forward
        with torch.inference_mode(), forward.in_float32():
            group_passes = find_group_passes(loaded.log_probs, texts, loaded.mask_id, rows.pad_id)
        if group_passes is None:
            raise PLLError(
                f"A {kind}, such as {title}, cannot read all masks in one pass, as `mask_margin` asks: a trial failed.",
                "Leave out `mask_margin`. For approximate scores of long texts, give `mask_spacing=16`, or choose "
                f"a model of another architecture ({page('models.md')}).",
            )
        forward.use(replace(forward.capabilities, groups=group_passes))
        passes = "Several texts share a pass" if group_passes.several_texts else "Each text has a pass of its own"
        logger.info("%s reads all masks of a text in one pass. %s.", title, passes)
        max_tokens = min(limit(MAX_IDS_WITH_GROUPS, forward.device), rows.max_tokens)
        return rows._replace(max_tokens=max_tokens, pads=True, one_row=not group_passes.several_texts)

    def _check(self, config: Any, tokenizer: PreTrainedTokenizerBase, source: str) -> None:
        """RAISES (ValueError): A model with this config and tokenizer is of another kind."""
        check_kind(config, tokenizer, self.configs, self.kind, self.example, source)

    def _backend(self, tokenizer: PreTrainedTokenizerBase, source: str) -> Tokenizer:
        return with_its_own(tokenizer, backend_of(tokenizer, source), source)

    def _log_probs(
        self, forward: Forward, shift: int, hf_tokenizer: PreTrainedTokenizerBase, tokenizer: Tokenizer, source: str
    ) -> TargetLogProbs:
        return TargetLogProbs(forward, shift)

    def submit(self, batches: Iterable[Batch]) -> DevicePredictions:
        loaded = self.loaded or self.load()
        if self.owned is not None:
            self.owned.copy_weights(loaded.forward.model)
        # The next batch is made while the device works on those before.
        with torch.inference_mode():
            return DevicePredictions([self.log_probabilities(batch) for batch in batches])

    def log_probabilities(self, batch: Batch) -> Tensors:
        """Natural-log probability of each target id at its position, and what else `TargetLogProbs` gives.

        A pass that does not fit into memory is halved, and no later pass is larger than the halves. The size is that in
        ids, and that of a single row in targets.

        RAISES (RuntimeError): Not even one target in one row fits.
        """
        loaded = self.loaded or self.load()
        kind = ONE_ROW if batch.n_rows == 1 else SEVERAL_ROWS

        def size(batch: Batch) -> int:  # what a half has less of
            return batch.n_targets if kind == ONE_ROW else batch.size

        if size(batch) <= self._most[kind] or not batch.can_be_halved:
            try:
                return loaded.log_probs(batch)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                device = loaded.forward.device
                if not batch.can_be_halved:
                    self._most[kind] = math.inf  # nothing is known of shorter rows
                    raise RuntimeError(
                        f"{device} has not enough memory for a single row of {batch.size} "
                        f"wordpieces under {self.describe().title}: {error}. Read shorter texts at once, with "
                        '`spans="strided"` (in a config, spacy-pll.strided_spans.v1), or score on the CPU.'
                    ) from error
            # Outside the except clause, which keeps the tensors of the failed pass alive.
            self._most[kind] = max(size(half) for half in batch.halves())
            message = (
                "A forward pass of %d ids does not fit into the memory of %s. From now on a pass has at most %d %s."
            )
            logger.warning(message, batch.size, device, self._most[kind], kind)
            if device.type == "cuda":
                torch.cuda.empty_cache()
        return concatenated([self.log_probabilities(half) for half in batch.halves()])

    def to_disk(self, path: str | Path) -> None:
        """Write a plain Hugging Face folder, as `write_checkpoint` does, with the weights that the checkpoint has.

        RAISES (ValueError): They are kept rounded, and cannot be read again. A model in memory is not as they say.
        """
        loaded = self.load()
        if self.owned is not None:
            self.owned.check_saving(self)
        checkpoint = loaded.checkpoint
        if loaded.is_rounded:
            checkpoint = read_unrounded(checkpoint, self._source[0], lambda: self._read(*self._source))
        write_checkpoint(checkpoint, Path(path))

    def from_disk(self, path: str | Path) -> "TransformerLanguageModel":
        """Load from such a folder, whatever the settings name. If there is none, the model of the settings is kept.

        RAISES (OSError): A file cannot be read; the message names it.
        """
        # The folder's own files hold all settings but this one, which transformers does not write.
        kept = {k: v for k, v in self.transformer_config.items() if k == "attn_implementation"}
        if Path(path).is_dir():
            self._load(str(path), None, {}, kept)
        return self

    def to_bytes(self) -> bytes:
        """The files that `to_disk` writes, by their names."""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder)
            files = [file for file in Path(folder).iterdir() if file.is_file()]
            return srsly.msgpack_dumps({file.name: file.read_bytes() for file in files})

    def from_bytes(self, bytes_data: bytes) -> "TransformerLanguageModel":
        """Load what `to_bytes` returned."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for name, content in srsly.msgpack_loads(bytes_data).items():
                if Path(name).name != name:
                    raise PLLError(
                        f"The saved model holds a file named {name!r}, outside its folder. It was tampered with."
                    )
                (Path(folder) / name).write_bytes(content)
            return self.from_disk(folder)


def is_out_of_memory(error: BaseException) -> bool:
    said = str(error).lower()
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        isinstance(error, RuntimeError) and ("out of memory" in said or "can't allocate memory" in said)
    )
