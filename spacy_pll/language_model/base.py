"""The architectures: load and save a language model, and ask it for log-probabilities at the targets."""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import srsly
import torch
from safetensors import SafetensorError, safe_open
from spacy.util import registry
from thinc.api import get_torch_default_device
from tokenizers import Tokenizer
from tokenizers.processors import Sequence as PostProcessorSequence
from tokenizers.processors import TemplateProcessing
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
)
from transformers.utils import logging as transformers_logging

from ..scoring.plan import Batch
from . import forward
from .checksums import check_checksums, write_checksums
from .forward import Forward
from .memory import batch_limits, is_out_of_memory

logger = logging.getLogger(__name__)

BUILTIN = Path(__file__).parent / "builtin"

# What a model that states no length can read.
DEFAULT_MAX_LENGTH = 512

LeadingSpace = Literal["word", "previous"]
# How tokenizers write the space before a word: byte-level ones, SentencePiece.
SPACE_MARKERS = ("Ġ", "▁")


class LanguageModel:
    """Weights and tokenizer of a transformers model, loaded when they are first needed.

    `tokenizer` is the backend of the fast tokenizer, `max_length` the most ids in one
    context with the special tokens, `pads` whether rows of different lengths may share a
    forward pass. All are set by `load`.
    """

    kind: str  # what a metric's `model_kind` must be
    model_cls: type  # the transformers class that loads it
    configs: Mapping  # the configurations for which there is such a class
    shift: int  # how far before a piece the model's prediction of it stands
    sees_both_sides: bool  # whether that prediction depends on the pieces behind it
    example: str  # a well-known one, for messages

    def __init__(
        self,
        name,
        revision="main",
        tokenizer_config=None,
        transformer_config=None,
        mixed_precision=False,
        compile=False,
    ):
        for setting, config in (("tokenizer_config", tokenizer_config), ("transformer_config", transformer_config)):
            if "trust_remote_code" in (config or {}):
                raise ValueError(
                    f"`trust_remote_code` is set in {setting}. Code that comes with a model is never run here. "
                    "Choose a model whose architecture is part of transformers, and take the setting out."
                )
        self.name = name
        self.revision = revision
        self.tokenizer_config = dict(tokenizer_config or {})
        self.transformer_config = dict(transformer_config or {})
        self.mixed_precision = mixed_precision
        self.compile = compile
        self._transformer = None
        self._hf_tokenizer = None
        self._forward = None

    @property
    def title(self) -> str:
        return repr(self.name) if self.name else "that is built in"

    @property
    def commit(self) -> str | None:
        """The commit on the hub that was loaded; None for a folder."""
        return getattr(self._transformer.config, "_commit_hash", None) if self.loaded else None

    @property
    def loaded(self) -> bool:
        return self._transformer is not None

    @property
    def unknown_id(self) -> int | None:
        """The id that stands for what the tokenizer does not know; None where it knows everything."""
        return self._hf_tokenizer.unk_token_id

    def check_serves(self, metric_name: str, metric: Callable):
        """RAISES (ValueError): The metric asks for another kind of language model than this."""
        needed = getattr(metric, "model_kind", "masked")
        if needed != self.kind:
            served = [
                n for n, m in registry.pll_metrics.get_all().items() if getattr(m, "model_kind", "masked") == self.kind
            ]
            raise ValueError(
                f"The metric {metric_name!r} needs a {needed} language model, and the model {self.title} is a "
                f"{self.kind} one. Set `metrics` to some of these: {', '.join(sorted(served))}."
            )

    def load(self):
        """Load tokenizer and weights from where the settings say, unless that is done.

        RAISES (OSError): There is no such model.
        RAISES (ValueError): The model cannot be used to score text; the message says why.
        """
        with forward.lock:
            if not self.loaded:
                _one_thread_after_fork()
                self._load(self.name or str(BUILTIN), self.revision, self.tokenizer_config, self.transformer_config)

    def _load(self, source: str, revision: str | None, tokenizer_config: dict, transformer_config: dict):
        tokenizer, model = self._read(source, revision, tokenizer_config, transformer_config)
        device = get_torch_default_device()
        model = self._to_device(model.float().eval(), device)
        n_embeddings = model.get_input_embeddings().num_embeddings
        if len(tokenizer) > n_embeddings:
            raise ValueError(
                f"The tokenizer of {source!r} has {len(tokenizer)} entries and the model {n_embeddings}. "
                "They do not belong together. Choose a folder in which they do."
            )
        before = dict(vars(self))
        try:
            self._adopt(tokenizer, model, device, source)
        except BaseException:  # an interruption as well
            # Half a model would be worse than none, or than the one that was there.
            vars(self).clear()
            vars(self).update(before)
            raise

    def _adopt(self, tokenizer, model, device, source: str):
        """Set all that `load` promises."""
        self._transformer, self._hf_tokenizer = model, tokenizer
        self.tokenizer = self._backend(tokenizer, source)
        # Truncation would lose text.
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.max_length = _max_length(model, tokenizer)
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        self.max_batch_tokens, self.max_batch_targets = batch_limits(model, device, self.max_length)
        self.look_ahead = int(device.type == "cuda")
        self._fits = None
        if self.max_length <= len(self.tokenizer.encode("").ids):
            raise ValueError(
                f"The model {source!r} reads at most {self.max_length} wordpieces, special tokens included, which "
                "leaves no room for text. Check `model_max_length` in tokenizer_config and the model's config.json."
            )
        # In float32 whatever the settings: rounding must not hide, or feign, a difference between architectures.
        self._forward = Forward(model)
        self._probe(source)
        self._forward.set_arithmetic(self.mixed_precision, self.compile)

    def _read(self, source: str, revision: str | None, tokenizer_config: dict, transformer_config: dict):
        """Tokenizer and model from a folder or the hub, checked: whole, trained, of the right kind."""
        place = {"revision": revision, "trust_remote_code": False}
        with _quiet_transformers():
            try:
                config = AutoConfig.from_pretrained(source, **place, **transformer_config)
                tokenizer = AutoTokenizer.from_pretrained(source, **place, **tokenizer_config)
            except OSError as error:
                raise OSError(self._not_found(source)) from error
            except Exception as error:  # an unknown architecture, one that would bring its own code, a damaged file
                if "trust_remote_code" in str(error):
                    advice = "It needs code that comes with it, which is never run here: choose another model."
                else:
                    advice = (
                        "It must be of an architecture that this version of transformers knows, and have a "
                        "tokenizer.json; with a SentencePiece file instead it needs: "
                        f"pip install sentencepiece protobuf. ({error})"
                    )
                raise ValueError(f"The configuration or tokenizer of {source!r} cannot be read. {advice}") from error
            self._check_tokenizer(tokenizer, source)
            self._check_config(config, source)
            try:
                model, report = self.model_cls.from_pretrained(source, config=config, output_loading_info=True, **place)
            except (OSError, RuntimeError, SafetensorError) as error:
                where = _damaged_file(source) or source
                raise OSError(f"The weights of {where!r} cannot be read: {error}. Get the model anew.") from error
        missing = sorted(report["missing_keys"])
        if missing:
            raise ValueError(
                f"The checkpoint {source!r} has no trained weights for {', '.join(missing[:8])}"
                f"{' ...' if len(missing) > 8 else ''}. They would be random, and so would the scores. "
                f"Choose a checkpoint that was saved as {type(model).__name__}, with its language-modelling head."
            )
        return tokenizer, model

    def _check_config(self, config, source: str):
        if type(config) not in self.configs:
            raise ValueError(
                f"The model {source!r} is of type {config.model_type!r}, for which transformers has no {self.kind} "
                f"language model. Choose a checkpoint of one, such as {self.example!r}."
            )

    def _backend(self, tokenizer, source: str) -> Tokenizer:
        """What turns text into ids, special tokens included."""
        return tokenizer.backend_tokenizer

    def _not_found(self, source: str) -> str:
        offline = os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0")
        hub = "HF_HUB_OFFLINE is set" if offline else "the Hugging Face hub has no such model or cannot be reached"
        return (
            f"The model {source!r} was not found: it is no folder with config.json and tokenizer files, and {hub}. "
            f"Download it while online (hf download {source}), or set `name` to the folder that it lies in; without "
            "`name`, the built-in English model needs no download."
        )

    def _check_tokenizer(self, tokenizer, source: str):
        if not tokenizer.is_fast:
            raise ValueError(
                f"The tokenizer of {source!r} ({type(tokenizer).__name__}) has no fast version, so it does not say "
                "where in the text a piece stands. Choose a model with a tokenizer.json."
            )

    def _to_device(self, model, device):
        try:
            return model.to(device)
        except (RuntimeError, AssertionError) as error:
            raise RuntimeError(
                f"spaCy is set to use {device}, but PyTorch {torch.__version__} cannot: {error}. Install a PyTorch "
                "built for your GPU, or call spacy.require_cpu() before the pipeline is made."
            ) from error

    def answers(self, batches: Iterable[Batch]) -> "Answers":
        """Run forward passes, one after the other, without waiting for what they give.

        batches (Iterable[Batch]): The next is made while the device works on those before.
        """
        return Answers([self.log_probabilities(batch) for batch in batches])

    @torch.inference_mode()
    def log_probabilities(self, batch: Batch) -> torch.Tensor:
        """Natural-log probability of each target id at its position. float32, shape (questions,), on the device.

        Where a pass does not fit into memory it is halved, and from then on none is larger than the half.

        RAISES (RuntimeError): Not even one question about one row fits.
        """
        if self._fits is None or batch.ids.size <= self._fits or not batch.can_be_halved:
            try:
                return self._log_probabilities(batch)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if not batch.can_be_halved:
                    raise RuntimeError(
                        f"{self._transformer.device} has not enough memory for a single row of {batch.ids.size} "
                        f"wordpieces under the model {self.title}: {error}. Read shorter texts at once, with "
                        "`get_spans` set to spacy-transformers.strided_spans.v1, or score on the CPU."
                    ) from error
            # Behind the except clause, which holds on to the tensors of the pass that failed.
            self._fits = batch.ids.size // 2
            logger.warning(
                "A forward pass of %d ids does not fit into the memory of %s. From now on a pass has at most %d.",
                batch.ids.size,
                self._transformer.device,
                self._fits,
            )
            if self._transformer.device.type == "cuda":
                torch.cuda.empty_cache()
        return torch.cat([self.log_probabilities(half) for half in batch.halves()])

    def _log_probabilities(self, batch: Batch) -> torch.Tensor:
        logits, target = self._logits(batch, batch.row, batch.position - self.shift, batch.target)
        return logits.gather(1, target[:, None])[:, 0] - logits.logsumexp(dim=1)

    def _logits(self, batch: Batch, row: np.ndarray, position: np.ndarray, *others: np.ndarray) -> list[torch.Tensor]:
        """What the head says at some positions of some rows, and other integer arrays, all of them on the device."""
        if _one_thread_after_fork() and self._forward.device.type == "cuda":
            raise RuntimeError(
                "Worker processes cannot use the GPU that the parent process holds. Use nlp.pipe(..., n_process=1) "
                "on a GPU, or spacy.require_cpu() before the pipeline is made."
            )
        return self._forward.logits(batch.ids, batch.lengths, row, position, *others)

    def _probe(self, source: str):
        """Find out, by trying, what this architecture allows: instead of a list of those that were tested.

        Sets `_gathers` (the head may run at the targets alone) and `pads` (rows of different
        lengths may share a pass). Where one changes the answer it is not done: slower, and right.
        """
        long = np.array(self.tokenizer.encode("This is the longer of two texts, to see what padding does.").ids)
        short = np.array(self.tokenizer.encode("Two texts.").ids)
        long, short = long[: self.max_length], short[: self.max_length]
        ids = np.full((2, max(len(long), len(short))), self.pad_id)
        ids[0, : len(long)], ids[1, : len(short)] = long, short
        # Some positions only, out of order: a head that looks at its neighbours gives itself away.
        asked = np.arange(self.shift, len(short))[::-2].copy()

        def batch(ids, *lengths):
            row = np.full(len(asked), len(ids) - 1)
            return Batch(ids, np.array(lengths), row, asked, short[asked], np.arange(len(asked)))

        together, alone = batch(ids, len(long), len(short)), batch(short[None], len(short))
        self._forward.narrowing = None
        try:
            truth = self.log_probabilities(alone)
        except (RuntimeError, ValueError, IndexError, TypeError, AttributeError) as error:
            raise ValueError(
                f"The model {source!r} ({type(self._transformer).__name__}) cannot read a short text by itself: "
                f"{error}. Choose a model of another architecture."
            ) from error
        if not truth.isfinite().all():
            raise ValueError(
                f"The model {source!r} gives log-probabilities that are not finite, even for a short text: its weights "
                "are damaged. Get the model anew, or choose another one."
            )
        self._check_direction(source, long)
        self.pads = self._forward.takes_mask and self._agrees(together, truth)
        for narrowing in Forward.narrowings:
            self._forward.narrowing = narrowing
            # As there are fewer positions than ids, an operation that mixes narrowed states with others fails.
            if self._agrees(alone, truth) and (not self.pads or self._agrees(together, truth)):
                break
        else:
            self._forward.narrowing = None
            # Then there are logits for every id of a pass, not only for the targets.
            self.max_batch_tokens = min(self.max_batch_tokens, self.max_batch_targets)

    def _check_direction(self, source: str, ids: np.ndarray):
        """A masked model must see what follows a piece, and a left-to-right one must not, whatever their class says.

        Some classes do either, by a setting in config.json (`is_decoder`, `causal`).
        """
        others = ids.copy()
        others[2:] = (ids[2:] + 1) % self._transformer.get_input_embeddings().num_embeddings
        first = np.array([0])
        before, after = (
            float(
                self.log_probabilities(Batch(text[None], np.array([len(text)]), first, first + 1, ids[1:2], first))[0]
            )
            for text in (ids, others)
        )
        # A left-to-right model repeats the same sums, so all that may differ is a last digit.
        sees = abs(after - before) > 1e-5
        if self.sees_both_sides and not sees:
            raise ValueError(
                f"The model {source!r} does not see what follows a piece: it is a left-to-right model, or its "
                'config.json makes it one. Use spacy-pll.CausalLM.v1 for it, with metrics = ["causal"], or choose a '
                f"masked language model, such as {self.example!r}."
            )
        if sees and not self.sees_both_sides:
            raise ValueError(
                f"The model {source!r} sees what follows a piece, so each piece would give itself away: it is not a "
                "left-to-right model, or its config.json makes it none. Use spacy-pll.MaskedLM.v1 if it is a masked "
                f"language model, or choose a left-to-right one, such as {self.example!r}."
            )

    def _agrees(self, batch: Batch, truth: torch.Tensor) -> bool:
        try:
            return torch.allclose(self.log_probabilities(batch), truth, rtol=1e-4, atol=1e-4)
        except (RuntimeError, ValueError, IndexError, TypeError, AttributeError):
            return False

    def to_disk(self, path, *, exclude=()):
        """Write a plain Hugging Face folder: config.json, model.safetensors, tokenizer files; and their checksums."""
        self.load()
        self._transformer.save_pretrained(path)  # as safetensors
        self._hf_tokenizer.save_pretrained(path)
        for file in Path(path).glob("*.safetensors"):
            shutil.copymode(Path(path) / "config.json", file)  # safetensors writes for the owner alone
        write_checksums(Path(path))

    def from_disk(self, path, *, exclude=()):
        """Load from such a folder, whatever the settings name. Without one, the model that they name is kept.

        RAISES (OSError): A file is missing, or not as it was written; the message names it.
        """
        # The settings are in the folder's own files by now, but for this one, which transformers does not write.
        kept = {k: v for k, v in self.transformer_config.items() if k == "attn_implementation"}
        if Path(path).is_dir():
            check_checksums(Path(path))
            self._load(str(path), None, {}, kept)
        return self

    def to_bytes(self, *, exclude=()) -> bytes:
        """The files of `to_disk`, by their names."""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder)
            return srsly.msgpack_dumps(
                {file.name: file.read_bytes() for file in Path(folder).iterdir() if file.is_file()}
            )

    def from_bytes(self, bytes_data: bytes, *, exclude=()):
        """Load what `to_bytes` gave."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for name, content in srsly.msgpack_loads(bytes_data).items():
                if Path(name).name != name:
                    raise ValueError(
                        f"The saved model holds a file named {name!r}, outside its folder. It was tampered with."
                    )
                (Path(folder) / name).write_bytes(content)
            return self.from_disk(folder)


class Answers:
    """Log-probabilities that a device may still be working on.

    parts (list[Tensor]): Of each forward pass, shape (questions,).
    """

    def __init__(self, parts: list[torch.Tensor]):
        answers = torch.cat(parts) if parts else torch.zeros(0)
        self._done = None
        if answers.device.type == "cuda":
            # One copy for all of them, into memory that the device can write to by itself.
            answers = torch.empty(answers.shape, pin_memory=True).copy_(answers, non_blocking=True)
            self._done = torch.cuda.Event()
            self._done.record()
        self._answers = answers

    def wait(self) -> np.ndarray:
        """All of them, in the order in which they were asked for. float32, shape (questions,)."""
        if self._done is not None:
            self._done.synchronize()
        return self._answers.numpy()


class MaskedLanguageModel(LanguageModel):
    """A model that predicts the piece behind a mask from both sides."""

    kind = "masked"
    model_cls = AutoModelForMaskedLM
    configs = MODEL_FOR_MASKED_LM_MAPPING
    shift = 0
    sees_both_sides = True
    example = "bert-base-cased"

    @property
    def mask_id(self) -> int:
        return self._hf_tokenizer.mask_token_id

    def _check_tokenizer(self, tokenizer, source: str):
        super()._check_tokenizer(tokenizer, source)
        if tokenizer.mask_token_id is None:
            raise ValueError(
                f"The tokenizer of {source!r} has no mask token, so this is not a masked language model. Choose one, "
                "such as 'bert-base-cased', or name the token: tokenizer_config = {'mask_token': '[MASK]'}."
            )


class CausalLanguageModel(LanguageModel):
    """A model that predicts each piece from those before it.

    A beginning-of-sequence token stands before the text, so that the first piece is scored too.

    Most tokenizers of such models mark the space before a word on the word's first piece, so the
    plain sum over a word's pieces (`leading_space="word"`) holds the probability that the word
    before has ended, and lacks the probability that this one has. With `leading_space="previous"`
    that moves to the word that ends. For a word w with the pieces s(1) .. s(k), after the text c,

        log p(w | c) = sum_i log p(s(i) | c, s(<i)) + log B(c, w) - log B(c)
        B(c) = sum of p(b | c) over all pieces b that begin with the marker, and the end of text

    (Pimentel & Meister 2024, "How to Compute the Probability of a Word", equation for tokenizers
    that mark the beginnings of words; Oh & Schuler 2024, "Leading Whitespaces of Language Models'
    Subword Vocabulary Pose a Confound for Calculating Word Probabilities"). By piece: a piece with
    the marker gives up log B, and the piece before it takes it. The first piece of a text gives up
    nothing, for no word ends there; the last one takes log B of the end. So the scores of a text
    sum to the plain log-likelihood plus the log-probability that its last word has ended. Words
    that no space parts from their neighbour (a full stop) keep their plain sums on that side. In
    a text longer than the model takes, the end of a window is an end of text.
    """

    kind = "causal"
    model_cls = AutoModelForCausalLM
    configs = MODEL_FOR_CAUSAL_LM_MAPPING
    shift = 1
    sees_both_sides = False
    example = "gpt2"
    mask_id = -1  # no metric of this kind masks anything

    def __init__(
        self,
        name,
        revision="main",
        tokenizer_config=None,
        transformer_config=None,
        mixed_precision=False,
        leading_space: LeadingSpace = "word",
        compile=False,
    ):
        super().__init__(name, revision, tokenizer_config, transformer_config, mixed_precision, compile)
        if leading_space not in get_args(LeadingSpace):
            raise ValueError(
                f"`leading_space` must be one of {', '.join(get_args(LeadingSpace))}. It is {leading_space!r}."
            )
        self.leading_space = leading_space

    def _adopt(self, tokenizer, model, device, source: str):
        if self.leading_space == "previous":
            self._begins_word = _marked_pieces(tokenizer, model.get_input_embeddings().num_embeddings, source)
            special = np.array(self._backend(tokenizer, source).encode("a").special_tokens_mask)
            self._n_prefix, self._n_suffix = int(np.argmin(special)), int(np.argmin(special[::-1]))
        super()._adopt(tokenizer, model, device, source)
        if self.leading_space == "previous":
            self.max_batch_targets = max(1, self.max_batch_targets // 2)  # two positions a question

    def _log_probabilities(self, batch: Batch) -> torch.Tensor:
        """The answers of `LanguageModel`, with log B moved as `leading_space` says. float32, shape (questions,)."""
        if self.leading_space == "word":
            return super()._log_probabilities(batch)
        before, after = batch.position - 1, batch.position
        # The model's prediction after one piece is that before the next: each is asked for once.
        asked, which = np.unique(
            np.stack([np.tile(batch.row, 2), np.concatenate([before, after])]), axis=1, return_inverse=True
        )
        last = batch.position + 1 == batch.lengths[batch.row] - self._n_suffix
        following = batch.ids[batch.row, np.where(last, batch.position, batch.position + 1)]
        gives = self._begins_word[batch.target] & (batch.position > self._n_prefix)
        takes = last | self._begins_word[following]
        begins = np.flatnonzero(self._begins_word)
        logits, which, target, gives, takes, begins = self._logits(
            batch, *asked, which.reshape(2, -1), batch.target, gives, takes, begins
        )
        log_sum = logits.logsumexp(dim=1)
        boundary = logits[:, begins].logsumexp(dim=1) - log_sum
        plain = logits[which[0], target] - log_sum[which[0]]
        # Not by a product with 0 and 1: the boundary of a place that is not asked for may be infinite.
        nothing = torch.zeros_like(plain)
        given = torch.where(gives.bool(), boundary[which[0]], nothing)
        taken = torch.where(takes.bool(), boundary[which[1]], nothing)
        return plain - given + taken

    def _check_config(self, config, source: str):
        super()._check_config(config, source)
        # transformers would load BERT as a decoder, too: with attention to both sides, so every piece sees itself.
        if type(config) in MODEL_FOR_MASKED_LM_MAPPING and not getattr(config, "is_decoder", False):
            raise ValueError(
                f"The model {source!r} is of type {config.model_type!r}, a masked language model. Use "
                "spacy-pll.MaskedLM.v1 for it, or choose a left-to-right model, such as 'gpt2'."
            )

    def _backend(self, tokenizer, source: str) -> Tokenizer:
        backend = tokenizer.backend_tokenizer
        if backend.encode("a").special_tokens_mask[:1] == [1]:
            return backend
        if tokenizer.bos_token is None:
            raise ValueError(
                f"The tokenizer of {source!r} has no beginning-of-sequence token, without which the first piece of a "
                "text cannot be scored. Name one: tokenizer_config = {'bos_token': '<|endoftext|>'}."
            )
        # A copy, so that the tokenizer is saved as it came.
        backend = Tokenizer.from_str(backend.to_str())
        begin = TemplateProcessing(
            single=f"{tokenizer.bos_token} $A", special_tokens=[(tokenizer.bos_token, tokenizer.bos_token_id)]
        )
        before = [backend.post_processor] if backend.post_processor is not None else []
        backend.post_processor = PostProcessorSequence([*before, begin])
        return backend


def _marked_pieces(tokenizer, n_embeddings: int, source: str) -> np.ndarray:
    """Which ids begin a word, or end the text. bool, shape (n_embeddings,).

    RAISES (ValueError): The tokenizer does not mark leading spaces.
    """
    tokens = tokenizer.backend_tokenizer.encode("a a", add_special_tokens=False).tokens
    marker = next((token[0] for token in tokens[1:] if token[:1] in SPACE_MARKERS), None)
    if marker is None:
        raise ValueError(
            f"The tokenizer of {source!r} marks no leading spaces ({' or '.join(map(repr, SPACE_MARKERS))}): 'a a' is "
            f"{tokens} to it. leading_space='previous' has no meaning there: leave it at 'word'."
        )
    marked = np.zeros(n_embeddings, dtype=bool)
    added = tokenizer.get_added_vocab()
    marked[[i for piece, i in tokenizer.get_vocab().items() if piece.startswith(marker) and piece not in added]] = True
    if tokenizer.eos_token_id is not None:
        marked[tokenizer.eos_token_id] = True
    return marked


_IMPORTED_IN = os.getpid()


def _one_thread_after_fork() -> bool:
    """Is this a forked worker of `nlp.pipe(n_process=...)`? Then PyTorch must keep to one thread.

    The threads that the parent's OpenMP counts on are not there in the child: it would wait for them for ever.
    """
    forked = os.getpid() != _IMPORTED_IN
    if forked and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
    return forked


def _max_length(model, tokenizer) -> int:
    """The most ids, special tokens included, that the model's positions and its tokenizer allow."""
    limits = [tokenizer.model_max_length]
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions and positions > 0:
        # RoBERTa and its kin count positions from behind the padding id.
        offset = max(
            (
                module.padding_idx + 1
                for name, module in model.named_modules()
                if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None
            ),
            default=0,
        )
        limits.append(positions - offset)
    limit = min(limits)
    return limit if limit < 1_000_000 else DEFAULT_MAX_LENGTH


def _damaged_file(source: str) -> str | None:
    """The first safetensors file of a folder that cannot be opened."""
    for file in sorted(Path(source).glob("*.safetensors")):
        try:
            with safe_open(file, "numpy"):
                pass
        except (OSError, SafetensorError):
            return str(file)
    return None


@contextmanager
def _quiet_transformers():
    """Keep transformers' remarks on unused weights to itself: what matters is checked, and raised, here."""
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
