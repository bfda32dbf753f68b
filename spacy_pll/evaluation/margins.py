"""How close the scores with `mask_margin` and `mask_spacing` are to the exact ones, on some texts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..component import get_scorer
from ..errors import PLLError
from ..pipelines import make_pipeline
from ..progress import number_of
from ..settings import BATCH_SIZE
from ..texts import check_texts, plain_texts
from .agreement import Agreement, Side, compare_scorers, measurements_of
from .measurements import Measurement

MARGINS = (0, 1, 2, 4)
AT_LEAST = 0.99
EXACT: dict[str, Any] = {"mask_margin": None, "mask_spacing": None}


@dataclass(frozen=True)
class MarginAgreement:
    """How close the scores with some margins and spacings are to the exact ones."""

    model: str
    texts: int
    at_least: float  # how large the correlation by word should be
    smallest: Mapping[str, int | None]  # for each setting that was tried: its smallest value that reaches `at_least`
    comparisons: Sequence[Agreement]  # of each margin and spacing with the exact scores, which come first

    def measurements(self) -> list[Measurement]:
        """What the exact scores and each of the others took, and how each agrees with the exact ones. Differences are
        in nats.
        """
        return measurements_of(self.comparisons)


def compare_margins(
    nlp: Language,
    texts: Iterable[str | Doc],
    margins: Sequence[int] = MARGINS,
    spacings: Sequence[int] = (),
    *,
    at_least: float = AT_LEAST,
    batch_size: int = BATCH_SIZE,
    show_progress: bool = False,
) -> MarginAgreement:
    """Score texts exactly, and with each margin and spacing, and compare the primary metric. All use one model.

    nlp (Language): A pipeline with a `pll` component. It is not changed, and its own margin or spacing is not used.
    margins, spacings (Sequence[int]): Values of `mask_margin` and `mask_spacing`.
    at_least (float): How large the correlation by word should be.
    show_progress (bool): Show a progress bar.
    RAISES (ValueError): A value is not valid, the model or the metric cannot be scored so, or no text was scored.

    ```python
    import spacy_pll

    texts = ["The cats sleep on the old sofa.", "A dog barks in the garden."]
    found = spacy_pll.compare_margins(spacy_pll.make_pipeline(), texts, margins=(0, 1), at_least=0.99)
    found.smallest["mask_margin"]  # 0: it is close enough
    ```
    """
    check_texts(texts)
    tried = {"mask_margin": sorted(set(margins)), "mask_spacing": sorted(set(spacings))}
    changes = [{setting: value} for setting, values in tried.items() for value in values]
    if not changes:
        raise PLLError("There is nothing to compare with the exact scores. Give `margins`, such as (0, 1, 2, 4).")
    varied = [make_pipeline(nlp, keep_pieces=True, **EXACT | change) for change in [{}, *changes]]
    scorers = list(map(get_scorer, varied))
    for alone in varied:  # the other components have processed the docs
        alone.select_pipes(enable=[scorers[0].name])
    labels = ["exact", *(f"{setting} {value}" for change in changes for setting, value in change.items())]
    sides = list(map(Side, labels, varied))
    copies = (text.copy() if isinstance(text, Doc) else text for text in plain_texts(texts))
    docs = nlp.pipe(copies, disable=[scorers[0].name])
    comparisons = compare_scorers(sides, docs, batch_size, show_progress, number_of(texts))
    smallest = dict[str, int | None].fromkeys(setting for setting, values in tried.items() if values)
    for change, comparison in zip(changes[::-1], comparisons[::-1]):  # the smallest of each comes last
        smallest |= change if (comparison.word.r or -1) >= at_least else {}
    return MarginAgreement(scorers[0].model.describe().title, comparisons[0].texts, at_least, smallest, comparisons)
