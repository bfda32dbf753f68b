"""Students of masked language models: what the teacher says behind masks, from a text without masks."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from . import BUILTIN_ONE_PASS
from .base import LoadedModel
from .checkpoint import Checkpoint
from .forward import Forward
from .log_probs import TargetLogProbs
from .masked import MaskedLanguageModel
from .student_card import NAME, StudentCard, read_card, vocabulary_digest
from .student_scores import StudentScores

# The most ids in one forward pass on a CPU. The rows of a pass are texts of different lengths, so a large one is mostly
# padding where texts are few: for 67 sentences of Brown, a pass of 512 ids took 10.1 ms per sentence, and one of 2,048,
# which is best for exact scores, 14.8 ms (BLiMP: 4.0 and 4.7 ms).
CPU_IDS = 512


class OnePassLanguageModel(MaskedLanguageModel):
    """A model that was distilled to give the scores of a masked language model in one forward pass per context, or in a
    few. It serves the metric and the unit of words on its card.
    """

    builtin = BUILTIN_ONE_PASS
    is_student = True
    _card: StudentCard | None = None
    _scores_at_output = True

    @property
    def title(self) -> str:
        return repr(self.name) if self.name else "that is built in for one pass"

    @property
    def card(self) -> StudentCard | None:
        """What the student was trained for; None while it is not loaded and its folder is not on this machine."""
        folder = self.name or str(self.builtin)
        if self._card is None and (Path(folder) / NAME).is_file():
            return read_card(folder)
        return self._card

    def _load(self, source: str, revision: str | None, tokenizer_config: dict, transformer_config: dict) -> None:
        card = read_card(source, revision)
        super()._load(source, revision, tokenizer_config, transformer_config)
        self._card = card

    def _check(self, config: Any, tokenizer: PreTrainedTokenizerBase, source: str) -> None:
        super()._check(config, tokenizer, source)
        if vocabulary_digest(tokenizer.get_vocab()) != read_card(source, self.revision).vocabulary:
            raise ValueError(
                f"The tokenizer of {source!r} is not the one with which the model was distilled: its vocabulary is "
                "another one. Get the folder again, with all of its files, and set no tokenizer_config."
            )

    def _log_probs(
        self, forward: Forward, hf_tokenizer: PreTrainedTokenizerBase, tokenizer: Tokenizer, source: str
    ) -> TargetLogProbs:
        return StudentScores(
            forward, self.shift, read_card(source, self.revision).self_normalised, self._scores_at_output
        )

    def _prepare(self, checkpoint: Checkpoint, source: str) -> LoadedModel:
        self._scores_at_output = True
        loaded = super()._prepare(checkpoint, source)
        if loaded.forward.narrowing is None:  # perhaps the head goes on after the output matrix
            self._scores_at_output = False
            loaded = super()._prepare(checkpoint, source)
        if loaded.device.type == "cpu":
            loaded = replace(loaded, max_batch_tokens=min(loaded.max_batch_tokens, CPU_IDS))
        return loaded

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write a plain Hugging Face folder with the card, and checksums."""
        self.load()
        assert self._card is not None
        self._card.write(Path(path))
        super().to_disk(path, exclude=exclude)
