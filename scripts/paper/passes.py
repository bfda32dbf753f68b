"""Forward passes as the package plans them, for scripts that count them, run them, or train through them.

No public function shows them. Scripts take what they need of them from here, so that a change inside the package is
mended here alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from spacy.tokens import Doc
from tokenizers import Tokenizer

from spacy_pll.metrics import get_metric
from spacy_pll.scoring.passes import Batch, PassLimits
from spacy_pll.scoring.plan import plan_passes
from spacy_pll.scoring.windows import Context, Contexts, read_spans
from spacy_pll.scoring.wordpieces import Words

__all__ = ["Batch", "Context", "PassLimits", "Words", "get_metric", "plan", "read"]


def read(doc: Doc, tokenizer: Tokenizer, words: Words, max_length: int) -> list[Context]:
    """What a model reads of a doc: one window, or several of a long text; none without a wordpiece.

    max_length (int): The most ids of a window.
    """
    return list(read_spans([doc[:]], tokenizer, words, max_length))


def plan(
    contexts: Sequence[Context],
    metric: str,
    loaded: Any,
    limits: tuple[PassLimits, PassLimits | None] | None = None,
    spacing: int | None = None,
    margin: int | None = None,
) -> Iterator[tuple[Iterable[Batch], Any]]:
    """The forward passes for the scores of some contexts, and how what they give makes up the scores, part by part.

    loaded (Any): What `get_scorer(nlp).model.load()` returns.
    limits (Optional[tuple]): Of passes, and of those with groups. None: as for scoring, without groups.
    spacing, margin (Optional[int]): The `mask_spacing` and `mask_margin`. None for both: exactly.
    YIELDS: The passes of a part; and an object whose method `scores` takes their log-probabilities.
    """
    of_rows, of_groups = limits or (loaded.rows, None)
    metrics = [get_metric(metric)]
    yield from plan_passes(Contexts.of(contexts), metrics, loaded.mask_id, of_rows, of_groups, spacing, margin)
