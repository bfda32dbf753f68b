"""The settings of a training run."""

from dataclasses import asdict, dataclass
from typing import Any

from ..language_model.checks import embeddings_of
from ..language_model.masked import MaskedLanguageModel
from ..scoring.wordpieces import WORDS, Words
from .labels import check_can_be_distilled

# The learning rate that suits a model of this width; for wider ones it is lower in proportion.
LEARNING_RATE, WIDTH = 5e-4, 256
# A run without `steps` and `minutes` takes so many steps.
DEFAULT_STEPS = 5000


@dataclass(frozen=True)
class DistillationSettings:
    """How a student is trained.

    teacher (Optional[str]): Hub name or folder of a masked language model. None is the built-in English model.
    corpus (str): A file, or a folder: see `read_records`.
    metric (str): What the student learns to give. It masks within words, and scores a piece by one masked context.
    words (str): What counts as a word: "spacy", "tokenizer" or "whitespace".
    mask_spacing (Optional[int]): None: the student reads the whole text, and gives all scores in one pass. A number:
        every so many pieces are masked for it, as with the component's setting of that name.
    init (Optional[str]): Folder or hub name of a student whose training goes on. None: the student begins with the
        teacher's weights.
    init_teacher (Optional[str]): The teacher of `init`, if it is not `teacher`: see `initial_weights.moved_weights`.
    column (str): The column, or key, that holds the text.
    lang (str): Language of spaCy's tokenizer.
    steps (Optional[int]): How many steps to train.
    minutes (Optional[float]): How long to train. With `steps`, the run ends with whichever comes first.
    batch_tokens (int): Wordpieces of text in one step, padding included. Longer texts are read in windows.
    lr (Optional[float]): The highest learning rate. None: 5e-4 for a width of 256, less for wider models.
    seed (int): Of the order of the texts and the draw of the pieces.
    precision (str): "float32" or "bfloat16" (forward passes under autocast; the weights stay in float32).
    distance (int): The least distance, in pieces, of masks of different words in one row of the teacher.
    teacher_passes (int): The teacher's rows per text and step.
    huber (float): Weight of the loss of the true piece's log-probability.
    normalisation (float): 0: the student's scores are normalised over the vocabulary. More: weight of the squared
        log Z, which makes the student self-normalised (`language_model.student_scores`).
    eval_every (int): Measure the agreement on held-out texts, and write a checkpoint, every so many steps.
    """

    teacher: str | None
    corpus: str
    metric: str = "word_l2r"
    words: Words = "spacy"
    mask_spacing: int | None = None
    init: str | None = None
    init_teacher: str | None = None
    column: str = "text"
    lang: str = "en"
    steps: int | None = None
    minutes: float | None = None
    batch_tokens: int = 4096
    lr: float | None = None
    seed: int = 0
    precision: str = "float32"
    distance: int = 8
    teacher_passes: int = 2
    huber: float = 0.25
    normalisation: float = 0.0
    eval_every: int = 200

    def __post_init__(self) -> None:
        check_can_be_distilled(self.metric)
        if self.init_teacher is not None and self.init is None:
            raise ValueError(
                f"`init_teacher` is {self.init_teacher!r}, but there is no `init`. Give its student, or leave it out."
            )
        if self.words not in WORDS:
            raise ValueError(f"Unknown unit of words {self.words!r}. Give one of these: {', '.join(WORDS)}.")
        for name in ("huber", "normalisation"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"`{name}` must be 0 or more. It is {getattr(self, name)}.")
        for name in (
            "steps",
            "minutes",
            "batch_tokens",
            "lr",
            "distance",
            "teacher_passes",
            "eval_every",
            "mask_spacing",
        ):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"`{name}` must be more than 0. It is {value}.")

    @property
    def last_step(self) -> int | None:
        """The number of steps; None if only the time counts."""
        return DEFAULT_STEPS if self.steps is None and self.minutes is None else self.steps

    def learning_rate(self, teacher: MaskedLanguageModel) -> float:
        """The highest learning rate."""
        width = embeddings_of(teacher.transformer).embedding_dim
        return self.lr if self.lr is not None else LEARNING_RATE * min(1.0, WIDTH / width)

    def as_dict(self) -> dict[str, Any]:
        """What a run depends on, for checkpoints and the student's card. How often it is measured is not."""
        values = asdict(self)
        for name in ("teacher", "corpus", "init", "init_teacher", "eval_every"):
            del values[name]
        return {**values, "steps": self.last_step}
