"""What a model was distilled for: the file `one_pass.json` beside its weights."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..metrics import Metric, mask_nothing
from . import BUILTIN_ONE_PASS

NAME = "one_pass.json"


@dataclass(frozen=True)
class StudentCard:
    """What a student was trained for. It serves nothing else."""

    teacher: dict[str, Any]  # what identifies it: folder and digest, or hub name and commit
    metric: str
    words: str  # the unit of words: "spacy", "tokenizer" or "whitespace"
    mask_spacing: int | None  # how far apart the pieces are that are masked for it at once; None: nothing is masked
    self_normalised: bool  # whether the logit of a piece is its score, without the sum over the vocabulary
    vocabulary: str  # digest of the tokenizer's vocabulary
    steps: int
    training: dict[str, Any] = field(default_factory=dict)  # the other settings
    agreement: dict[str, Any] = field(default_factory=dict)  # with the teacher's exact scores, on held-out texts

    @property
    def title(self) -> str:
        """How messages name what it is."""
        return "one-pass model" if self.mask_spacing is None else f"few-pass model (mask_spacing = {self.mask_spacing})"

    def check(self, model: str, metrics: Sequence[str], words: str, mask_spacing: int | None) -> None:
        """RAISES (ValueError): The student was trained for other settings than those of a component.

        model (str): How messages name the model.
        """
        wrong = [metric for metric in metrics if metric != self.metric]
        if wrong:
            raise ValueError(
                f"The model {model} is a {self.title}. It was trained for the metric {self.metric!r}, and cannot serve "
                f"{wrong[0]!r}. Set `metrics` to [{self.metric!r}], or train a student for {wrong[0]!r} with "
                "`pll distill --metric`."
            )
        if words != self.words:
            raise ValueError(
                f"The model {model} is a {self.title}. It was trained with words = {self.words!r}, and cannot serve "
                f"{words!r}. Set `words` to {self.words!r}, or train a student with `pll distill --words {words}`."
            )
        if mask_spacing not in (None, self.mask_spacing):
            raise ValueError(
                f"The model {model} is a {self.title}. It needs no `mask_spacing`, which is {mask_spacing}. Set it to "
                "null."
            )

    def masking(self, metrics: list[Metric]) -> tuple[list[Metric], int | None]:
        """What is masked for the student when it serves these metrics, and the `mask_spacing`."""
        return ([mask_nothing] * len(metrics), None) if self.mask_spacing is None else (metrics, self.mask_spacing)

    def write(self, folder: Path) -> None:
        """Write it to its file in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NAME).write_text(json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n", encoding="utf8")


def read_card(source: str, revision: str | None = None) -> StudentCard:
    """The card of a student.

    source (str): A folder, or a name on the Hugging Face hub.
    RAISES (OSError): There is none.
    RAISES (ValueError): It cannot be read.
    """
    path = Path(source) / NAME
    if not Path(source).is_dir():
        path = _fetch(source, revision)
    elif not path.is_file():
        raise OSError(
            f"The folder {source!r} has no {NAME}, so it is unknown what the model was distilled for. Copy the whole "
            "folder that `pll distill` wrote; or, for a masked language model, use spacy-pll.MaskedLM.v1 (on the "
            "command line, leave out --one-pass)."
        )
    try:
        content = json.loads(path.read_text(encoding="utf8"))
        return StudentCard(**{name.name: content[name.name] for name in fields(StudentCard)})
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"The file {path} is damaged, or was not written by `pll distill`: {type(error).__name__} {error}. Get the "
            "folder again."
        ) from error


def _fetch(source: str, revision: str | None) -> Path:
    if source == str(BUILTIN_ONE_PASS):
        raise OSError(
            "This version of spacy-pll comes without a built-in one-pass model. Train one: python -m spacy pll distill "
            "builtin CORPUS STUDENT. Then give its folder as the `name` of spacy-pll.OnePass.v1, or as --model."
        )
    from transformers.utils import cached_file

    try:
        return Path(str(cached_file(source, NAME, revision=revision)))
    except OSError as error:
        raise OSError(
            f"There is no folder {source!r}, and no {NAME} of a model of that name on the Hugging Face hub ({error}). "
            "Give the folder that `pll distill` wrote."
        ) from error


def vocabulary_digest(vocabulary: dict[str, int]) -> str:
    """SHA-256 of a tokenizer's vocabulary, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(sorted(vocabulary.items())).encode("utf8")).hexdigest()
