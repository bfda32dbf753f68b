"""Words in a gap that nobody has named: a beam search over the wordpieces of a tokenizer, from left to right."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

import numpy as np
from spacy.util import minibatch

from ..errors import InputError
from ..stream.contexts import read_places
from ..unspaced import UNSPACED_CHARACTER
from ..user_warnings import warn_user
from .filling import Filler, Slots
from .gaps import GAP, Slot
from .piece_words import begins_a_word, is_of_a_word, known_words

TOUCHING_BEFORE, TOUCHING_AFTER = re.compile(r"\S+\Z"), re.compile(r"\A\S+")
STAND_INS = 1000  # how many words are tried in a gap that touches text


def search(
    asking: Slots, slots: Sequence[Slot], top: int, max_pieces: int, done: int = 0
) -> Iterator[list[list[Filler]]]:
    """The best whole words in each slot but the first `done`, and the gold one, in batches.

    RAISES (InputError): No word is found in a gap that the tokenizer keeps apart from the text that touches the gap.
    """
    texts = asking.texts
    ids = np.array([i for i in range(asking.n_ids) if is_of_a_word(texts, i)], dtype=np.int64)
    is_first = np.array([begins_a_word(texts[i].text) for i in ids.tolist()], dtype=bool)
    begins = np.array([texts[i].begins_word is not False for i in ids.tolist()], dtype=bool)
    goes_on = ~begins | [bool(UNSPACED_CHARACTER.match(texts[i].text)) for i in ids.tolist()]
    if max_pieces > 1 and not goes_on.any():
        warn_user(
            "The tokenizer does not mark the wordpieces that continue a word, so only words of one piece are "
            "searched. To score other words, give them as `candidates`."
        )
        max_pieces = 1
    stand_in = lru_cache(1000)(lambda *beside: _stand_in(asking, *beside))

    def with_stand_ins(slot: Slot) -> Slot:
        if (word := stand_in(*asking.beside(slot))) is None:
            raise _not_found(slot, max_pieces)
        return slot._replace(candidates=(" ".join([word] * max_pieces),))

    asked = [with_stand_ins(slot) for slot in slots[done:]]
    for block in minibatch(zip(slots[done:], asked), asking.max_texts):
        # What stands beside words of as many pieces, and whether a piece that begins one is marked so there.
        spellings = asking.spelled([slot for _, slot in block])
        sides, is_marked = (
            [spelling.sides[0] for spelling in spellings],
            [texts[spelling.pieces[0][0]].begins_word for spelling in spellings],
        )
        words: list[dict[str, None]] = [{} for _ in block]
        for n in range(1, max_pieces + 1):
            beams: list[list[tuple[float, tuple[int, ...]]]] = [[(0.0, ())] for _ in block]
            for _ in range(n):
                rows = [(i, score, begun) for i, beam in enumerate(beams) for score, begun in beam]
                beams = [[] for _ in block]
                begun_words = [(sides[i], n, begun) for i, _, begun in rows]
                for _, first, log_probs in asking.answers([(None, begun_words, ids)]):
                    for (i, score, begun), column in zip(rows[first:], log_probs.T):
                        allowed = goes_on if begun else is_first & (begins == (is_marked[i] is not False))
                        values = np.where(allowed, score + column, -np.inf)
                        best = np.argpartition(-values, min(top, len(ids)) - 1)[:top].tolist()
                        beams[i] += [(float(values[k]), (*begun, int(ids[k]))) for k in best if allowed[k]]
                beams = [sorted(beam, reverse=True)[:top] for beam in beams]
            for of_slot, beam in zip(words, beams):
                of_slot.update(dict.fromkeys("".join(texts[i].text for i in begun) for _, begun in beam))
        with_words = list[Slot]()
        for (slot, _), of_slot in zip(block, words):
            if not (apart := _apart(asking, slot, [*of_slot])):
                raise _not_found(slot, max_pieces)
            with_words.append(_with_gold(asking, slot, apart))
        for batch in asking.fill(with_words, top, warns=False):
            yield [[filler for filler in fillers if filler.pieces or filler.is_gold] for fillers in batch]


def _stand_in(asking: Slots, before: str, after: str) -> str | None:
    """A word in place of any other one, of which the tokenizer makes no piece together with the text that touches it.
    None: it makes one of every word that was tried.
    """
    if not before[-1:].strip() and not after[:1].strip():
        return asking.known_word
    for word in dict.fromkeys([asking.known_word, *islice(known_words(asking.texts, asking.n_ids), STAND_INS)]):
        _, _, [(has_own, shared)] = read_places(asking.loaded, [(word, before, after)])
        if has_own and not shared:
            return word
    return None


def _apart(asking: Slots, slot: Slot, words: list[str]) -> list[str]:
    """The words of which no wordpiece begins in the text before the gap. One may go on in the text after it."""
    before, after = asking.beside(slot)
    if not before[-1:].strip():
        return words
    encoded, _, _ = read_places(asking.loaded, [(word, before, after) for word in words])
    over = (encoded.offsets[:, 0] < len(before)) & (encoded.offsets[:, 1] > len(before))
    return [words[i] for i in np.flatnonzero(np.bincount(encoded.pieces_of.owner[over], minlength=len(words)) == 0)]


def _not_found(slot: Slot, max_pieces: int) -> InputError:
    problem = f"{slot.place}: no word of up to {max_pieces} wordpieces was found in the gap."
    before, after = TOUCHING_BEFORE.findall(slot.before), TOUCHING_AFTER.findall(slot.after)
    if not before and not after:
        return InputError(problem)
    return InputError(
        f"{problem} It touches text, {''.join([*before, GAP, *after])!r:.100}, and the tokenizer makes wordpieces of "
        "this text and a word together.",
        "Let the gap stand for the whole word, or give `candidates`.",
    )


def _with_gold(asking: Slots, slot: Slot, words: list[str]) -> Slot:
    """A slot with words that were found and the gold one, which takes the place of a word that is read as it is."""
    if slot.gold and slot.gold not in words:
        *pieces, own = asking.near(slot._replace(candidates=(*words, slot.gold))).pieces
        words = [word for word, spelled in zip(words, pieces) if spelled != own or not own] + [slot.gold]
    return slot._replace(candidates=tuple(words))
