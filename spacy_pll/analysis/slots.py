"""Words in a gap: how probable each of many candidates is there, for many texts."""

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial

from spacy.language import Language

from ..errors import InputError
from ..stream.known import KeptScores, digest_of, in_batches
from ..texts import check_texts, plain_text
from .filling import Filler, Slots
from .gaps import GAP, Slot, distinct_candidates
from .word_search import search


def slots(
    nlp: Language,
    texts: Iterable[str],
    candidates: Sequence[str] | Sequence[Sequence[str]] | None = None,
    *,
    gold: Sequence[str] | None = None,
    gap: str = GAP,
    keep: int | None = None,
    top: int | None = None,
    max_pieces: int = 3,
    shared_pieces: bool = False,
    show_progress: bool = False,
) -> list[list[Filler]]:
    """Score candidates in the gap of each text, under `word_l2r`. A candidate of several words is one phrase.

    The scores are those of `score_continuations`, and exact whatever `mask_margin` or `mask_spacing` is. A gap costs a
    row of a forward pass for each number of pieces and each beginning that candidates share: one row for all candidates
    of one piece. A text that is too long for the model is read in the window for the longest candidate.

    nlp (Language): A pipeline with a `pll` component and a masked model.
    texts (Iterable[str]): Texts with one gap each, such as "The ___ lost." White space beside it stays as it is.
    candidates (Optional[Union[Sequence[str], Sequence[Sequence[str]]]]): Words or phrases for all texts, or some for
        each text. None: Words are searched, and `top` says how many.
    gold (Optional[Sequence[str]]): The right candidate of each text.
    gap (str): The sign for the gap. If it repeats one character, as ___ does, a longer gap is found, too.
    keep (Optional[int]): Keep only this many of the best candidates of a text (more, if the last of them is as probable
        as others), and the right one. None: all.
    top (Optional[int]): Without candidates: find this many whole words with a beam search from left to right, which
        goes on with this many beginnings. A word with an improbable beginning may be missed.
    max_pieces (int): The most wordpieces of a word that is searched.
    shared_pieces (bool): Score also candidates that share a wordpiece with the text beside them: it belongs to the side
        where it begins. Otherwise it is an error.
    show_progress (bool): Show a progress bar.
    RETURNS (List[List[Filler]]): The candidates of each text, the best first. Those with a character that the tokenizer
        does not know have no score, are last, and are counted in a warning.
    RAISES (ValueError): A text has no gap or several, a candidate is empty, there twice or cannot be scored, or the
        metric is not word_l2r.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline()
    texts, drinks = ["She poured ___ into her cup.", "She poured it into her ___."], ["tea", "cup", "hot milk"]
    for fillers in spacy_pll.slots(nlp, texts, drinks):
        print(*(f"{one.text} {one.probability:.1%}" for one in fillers), sep=", ")
    ```

    ```
    tea 97.2%, cup 2.4%, hot milk 0.4%
    cup 96.2%, tea 3.7%, hot milk 0.0%
    ```
    """
    check_texts(texts)
    check_texts(candidates, "candidates")
    check_texts(gold, "gold")
    given, every, given_candidates = [*texts], None, None if candidates is None else [*candidates]
    right = None if gold is None else [*gold]  # by their order, whatever index a pandas series has
    if (given_candidates is None) != (top is not None):
        raise InputError("Give either `candidates`, or as `top` the number of words to find.")
    for name, value in {"keep": keep, "top": top, "max_pieces": max_pieces}.items():
        if value is not None and value < 1:
            raise InputError(f"`{name}` must be 1 or more. It is {value}.")
    if keep is not None and top is not None:
        raise InputError("`top` says how many words there are. Leave out `keep`.")
    if given_candidates is not None and not given_candidates:
        raise InputError("There are no `candidates`. Give some, or as `top` the number of words to find.")
    if given_candidates is not None and isinstance(given_candidates[0], str):
        every = distinct_candidates("Candidate", given_candidates)
    of_each = given_candidates if given_candidates is not None and every is None else given
    if len(of_each) != len(given) or right is not None and len(right) != len(given):
        raise InputError(f"There are {len(given):,} texts. Give as many lists of `candidates`, and as many of `gold`.")
    made = list[Slot]()
    for i, text in enumerate(given):
        at = f"Text {i + 1}"
        own = every if of_each is given else distinct_candidates(f"{at}, candidate", of_each[i])
        made.append(Slot.of(plain_text(text, at), gap, own, None if right is None else right[i], at))
    asking = Slots(nlp, shared_pieces or top is not None)
    return fill_slots(asking, made, keep, top, max_pieces, show_progress)


def fill_slots(
    asking: Slots,
    slots: Sequence[Slot],
    keep: int | None = None,
    top: int | None = None,
    max_pieces: int = 3,
    show_progress: bool = False,
    kept: KeptScores | None = None,
) -> list[list[Filler]]:
    """See `slots`. kept (Optional[KeptScores]): Has what is found of the first slots already, and gets the rest."""
    digest, kept = lru_cache(digest_of), kept or KeptScores()  # all slots may have the same candidates
    kept.begin([slot._replace(candidates=(digest(slot.candidates),)) for slot in slots])
    find = partial(asking.fill, slots, keep) if top is None else partial(search, asking, slots, top, max_pieces)
    of_slots = kept.each(lambda done: in_batches(find(done)), len(slots), show_progress=show_progress)
    return [[Filler(*filler) for filler in fillers] for fillers in of_slots]
