"""Choices: how often the right one of several options has the highest score, in a context or without one; or, where no
option is right, how the scores correlate with the preferences of people.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from spacy.language import Language

from ..component import get_scorer
from ..errors import InputError
from ..settings import BATCH_SIZE
from .accuracies import Ties
from .decisions import ChoiceScores, check_options, named, score_options
from .items import Choice, Option


def choices(
    nlp: Language | Mapping[str, Language],
    items: Iterable[Choice],
    *,
    per_piece: bool = False,
    ties: Ties = "share",
    shared_pieces: bool = False,
    component: str | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> ChoiceScores:
    """Score the options of choices. Equal texts in equal contexts are scored once.

    nlp (Union[Language, Mapping[str, Language]]): A pipeline with a `pll` component; or several to compare, by name.
        Its setting `targets` has no effect where there are contexts.
    items (Iterable[Choice]): What `read_choices` reads, or your own.
    per_piece (bool): Compare means per wordpiece instead of sums.
    ties (Literal["share", "first"]): What a tie of the right option with others counts: one share of it, so a half with
        one other; or 1 if the right option comes first, and otherwise 0.
    shared_pieces (bool): Take options that share a wordpiece with their context. It belongs to the context, where it
        begins. Otherwise they are an error.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    batch_size (int): Number of texts per batch.
    n_process (int): Worker processes.
    show_progress (bool): Show a progress bar for each pipeline.
    RAISES (ValueError): There is no choice, or one is not valid, or an option cannot be scored.

    ```python
    import spacy_pll
    from spacy_pll import Choice, Option

    nlp = spacy_pll.make_pipeline()
    items = [Choice([Option("are here.", "The keys"), Option("is here.", "The keys")], right=0)]
    spacy_pll.choices(nlp, items).accuracies()[0].accuracy  # 1.0
    ```
    """
    found = list(items)
    for number, choice in enumerate(found, 1):
        check_choice(choice, f"Choice {number}")
    check_choices(found)
    for one in named(nlp).values():
        check_options(get_scorer(one, component), found, shared_pieces)
    scored = score_options(nlp, found, component, batch_size, n_process, show_progress)
    return ChoiceScores(found, scored.scores, scored.pieces, per_piece, ties, scored.columns)


def check_choices(items: Sequence[Choice]) -> None:
    """RAISES (ValueError): There is none, or some have a right option, and others preferences of people."""
    if not items:
        raise ValueError("There is no choice, so there is no accuracy.")
    if len({choice.preference is None for choice in items}) > 1:
        raise InputError(
            "Some choices have a right option, and others the preferences of people. Score them one after the other."
        )


def check_choice(choice: Any, place: str) -> None:
    """RAISES (InputError): It is no choice, or its options and the number of the right one are not valid."""
    if not isinstance(choice, Choice) or not all(isinstance(one, Option) for one in choice.options):
        raise InputError(f"{place} must be a `Choice` of `Option`s. It is {choice!r:.100}.")
    n = len(choice.options)
    if n < 2:
        raise InputError(f"{place}: a choice needs two options or more. It has {n}.")
    if not isinstance(choice.right, int | np.integer) or not 0 <= choice.right < n:
        raise InputError(f"{place}: the right option has the number {choice.right!r}, and there are 0 to {n - 1}.")
    if choice.preference is not None and not (n == 2 and math.isfinite(choice.preference)):
        raise InputError(
            f"{place}: the preference for the first of two options must be a finite number. It is "
            f"{choice.preference!r}, and there are {n} options."
        )
    for option in choice.options:
        if not isinstance(option.text, str) or not isinstance(option.context, str):
            raise InputError(
                f"{place}: text and context of an option must be strings. They are {tuple(option)!r:.100}."
            )
        if not option.text.strip():
            raise InputError(f"{place}: an option is empty. Each needs a text.")
