"""What a model of proteins says at the sites of a sequence, and how probable it finds substitutions there."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..arrays import FloatArray, IntArray
from ..component import get_scorer
from ..errors import InputError, PLLError
from ..metrics import MaskRows, one_row_per_piece
from ..prediction import Predictor
from ..progress import progress_bar
from ..scoring.windows import Context
from ..scoring.wordpieces import Wordpieces, get_wordpieces
from ..settings import BATCH_SIZE, ScoringSettings

# How many log-probabilities are kept for the pieces that are read at once, those of the whole vocabulary for each.
MAX_LOG_PROBS = 2**23


class Substitution(NamedTuple):
    """Another residue at a site of a sequence."""

    site: int  # from 0
    wild_type: str
    residue: str


class Residues:
    """A sequence, as a model reads it: a wordpiece for each residue.

    RAISES (ValueError): The model does not know a residue, or does not have a piece for each.
    """

    def __init__(self, nlp: Language, sequence: str, component: str | None = None):
        scorer = get_scorer(nlp, component)
        given = scorer.settings
        settings = ScoringSettings(
            ("original",), "piece", max_batch_tokens=given.max_batch_tokens, mask_margin=given.mask_margin
        )
        self.predictor = Predictor(scorer.model, lambda docs: [[doc[:]] for doc in docs], settings)
        self.vocab, self.sequence = nlp.vocab, sequence
        self.loaded, model = self.predictor.prepare(), scorer.model.describe()
        self.ids: dict[str, int] = {}
        self.spaces = False
        for number, residue in enumerate(sequence, 1):  # first, because some tokenizers join unknown neighbours
            self.check(residue, f"Letter {number} of the sequence")
        self.pieces = self._read(sequence)
        ids = list(map(self.id_of, sequence))
        if self.loaded.unknown_id in self.pieces.ids:
            self.spaces = True  # "M K T", as ProtBERT reads it
            self.pieces = self._read(sequence)
        if self.pieces.ids.tolist() != ids:
            raise PLLError(
                f"The tokenizer of {model.title} does not make a wordpiece of each residue.",
                "Give a model of proteins as `model`.",
            )

    def _read(self, letters: str) -> Wordpieces:
        return get_wordpieces([self.doc(letters)[:]], self.loaded.tokenizer, "piece")

    def doc(self, letters: str) -> Doc:
        """A doc whose tokens are the residues."""
        return Doc(self.vocab, words=list(letters), spaces=[self.spaces] * (len(letters) - 1) + [False])

    def id_of(self, residue: str) -> int:
        """The id of its piece; -1 if it is several."""
        if residue not in self.ids:
            pieces = self._read(residue)
            self.ids[residue] = int(pieces.ids[0]) if len(pieces) == 1 else -1
        return self.ids[residue]

    def check(self, residue: str, place: str) -> None:
        """RAISES (InputError): The model does not know it."""
        if self.id_of(residue) in (-1, self.loaded.unknown_id):
            advice = f"Write {residue.upper()!r}." if residue.islower() else "Leave it out, or choose another `model`."
            raise InputError(f"{place}: the model does not know {residue!r} as a residue.", advice)


# What is seen at the other sites of a variant while one is asked about: masks, residues of the sequence, those of the
# variant, or those of the one whose residue is asked about. The names are those of RNAGym's fills.
Others = Literal["mask", "wt", "mut", "match"]


class Question(NamedTuple):
    """What the model is asked: the log-probabilities at a site, while some sites are masked, and others are changed."""

    site: int
    masked: tuple[int, ...]
    changed: tuple[Substitution, ...] = ()  # what is masked is not seen


def questions(several: tuple[Substitution, ...], others: Others | None) -> Iterator[tuple[Question, Question]]:
    """For each substitution of a variant, what is asked about its residue, and about that of the sequence.

    others (Optional[Literal["mask", "wt", "mut", "match"]]): What is seen at its other sites. None: Nothing is masked.
    """
    sites = tuple(sorted(one.site for one in several))
    changed = tuple(sorted(several)) if len(several) > 1 else ()
    for one in several:
        if others in (None, "mask"):
            yield (Question(one.site, sites if others else ()),) * 2
        else:
            of_sequence = Question(one.site, (one.site,))
            of_variant = of_sequence._replace(changed=changed)
            yield (of_sequence if others == "wt" else of_variant), (of_variant if others == "mut" else of_sequence)


def marginals(
    residues: Residues, variants: Sequence[tuple[Substitution, ...]], others: Others | None, show: bool
) -> FloatArray:
    """The sums over the sites of each variant of log p(other residue) - log p(residue of the sequence)."""
    asked = [list(questions(several, others)) for several in variants]
    numbers = {one: number for number, one in enumerate(dict.fromkeys(chain.from_iterable(chain(*asked))))}
    letters = list(residues.ids)
    log_probs = at_sites(residues, list(numbers), np.array([residues.ids[letter] for letter in letters]), show)
    column = {letter: i for i, letter in enumerate(letters)}
    scores = np.zeros(len(variants))
    for i, (several, of_variant) in enumerate(zip(variants, asked)):
        for one, (other, own) in zip(several, of_variant):
            scores[i] += log_probs[numbers[other], column[one.residue]] - log_probs[numbers[own], column[one.wild_type]]
    if not np.isfinite(scores).all():
        raise ValueError(
            f"Under {residues.predictor.model.describe().title}, some log-probabilities are not finite. Give "
            "`precision='float32'`, or another `model`."
        )
    return scores


def unmasked(word: IntArray) -> MaskRows:
    """Mask nothing."""
    return one_row_per_piece(np.zeros((len(word), len(word)), dtype=bool))


def mask_together(word: IntArray) -> MaskRows:
    """Mask the whole word of the target, as `whole_word` does, but a word need not be in one place: unlike there, the
    rows are made from all words of the context.
    """
    return one_row_per_piece(word[:, None] == word[None, :])


def at_sites(residues: Residues, questions: Sequence[Question], ids: IntArray, show: bool = False) -> FloatArray:
    """The log-probabilities of some ids for each question. Shape (questions, ids)."""
    of, loaded = residues.predictor, residues.loaded
    masks = bool(questions[0].masked)
    settings = of.settings if masks else replace(of.settings, mask_margin=None)
    settings = replace(settings, alternatives=loaded.n_ids)
    predictor = Predictor(of.model, of.get_spans, settings, [mask_together if masks else unmasked])
    predictor.counts = of.counts
    out = np.zeros((len(questions), len(ids)))
    with progress_bar(len(questions), show=show, unit=" sites") as bar:
        for batch in batches(residues, questions, predictor):
            contexts = [context for context, *_ in batch]
            _, distributions = predictor.predict_contexts(contexts)
            assert distributions is not None  # alternatives are asked for
            begins = np.cumsum([0, *(len(context.word) for context in contexts)])
            for begin, (_, start, numbers) in zip(begins.tolist(), batch):
                here = begin - start + np.array([questions[number].site for number in numbers])
                # One row more than there are ids, since those that are missing are -1.
                table = np.full((loaded.n_ids + 1, len(here)), -np.inf)
                found = distributions.at(here)
                np.put_along_axis(table, found.ids, found.log_probs, axis=0)
                out[numbers] = table[ids].T
                bar.update(len(numbers))
    return out


def window_start(site: int, n: int, size: int) -> int:
    """Where the window begins in which a site of a long sequence is read. The site is in the middle, or at most an
    eighth of the window away from it: so sites that are close share a window.
    """
    step = max(1, size // 4)
    nearest = (site - size // 2 + step // 2) // step * step
    return min(max(0, nearest), max(0, n - size))


def batches(
    residues: Residues, questions: Sequence[Question], predictor: Predictor
) -> Iterator[list[tuple[Context, int, list[int]]]]:
    """The contexts that are read for some questions, each with its first site and the numbers of the
    questions, in batches of bounded size.

    Questions that mask one site each, or none, share a context if they have the same window and the same changes.
    """
    pieces, loaded = residues.pieces, residues.loaded
    n, size = len(pieces), loaded.max_length - len(pieces.prefix) - len(pieces.suffix)
    shared: dict[tuple[int, tuple[int, ...], tuple[Substitution, ...]], list[int]] = {}
    for number, (site, masked, changed) in enumerate(questions):
        start = window_start(site, n, size)
        shared.setdefault((start, masked if len(masked) > 1 else (), changed), []).append(number)
    most = max(1, loaded.ids_at_once // min(n, size))  # rows
    alone = predictor.settings.mask_margin is None and bool(questions[0].masked)  # whether each site has its own row
    batch, rows, cells = list[tuple[Context, int, list[int]]](), 0, 0
    for (start, masked, changed), numbers in shared.items():
        end = min(n, start + size)
        word, inside = np.arange(end - start), [site - start for site in masked if start <= site < end]
        word[inside] = inside[:1]
        ids = np.concatenate([pieces.prefix, pieces.ids[start:end], pieces.suffix])
        for one in changed:
            if start <= one.site < end:
                ids[len(pieces.prefix) + one.site - start] = residues.ids[one.residue]
        step = most if alone else len(numbers)
        for some in (numbers[first : first + step] for first in range(0, len(numbers), step)):
            more_rows, more_cells = len(some) if alone else 1, (end - start) * loaded.n_ids
            if batch and (rows + more_rows > most or cells + more_cells > MAX_LOG_PROBS):
                yield batch
                batch, rows, cells = [], 0, 0
            scored = np.zeros(end - start, dtype=bool)
            scored[[questions[number].site - start for number in some]] = True
            batch.append((Context(ids, len(pieces.prefix), word, scored), start, some))
            rows, cells = rows + more_rows, cells + more_cells
    yield batch


def whole_variants(residues: Residues, variants: Sequence[str], show: bool) -> FloatArray:
    """The pseudo-log-likelihood of each variant, given as its sequence, minus that of the sequence."""
    predictor, scores = residues.predictor, list[float]()
    with progress_bar(len(variants), show=show, unit=" variants") as bar:
        for docs in minibatch(map(residues.doc, chain([residues.sequence], variants)), BATCH_SIZE):
            for batch in predictor.batches(docs):
                scores += [float(doc.scores[0].sum()) for doc in predictor.gather(predictor.submit(batch))]
                bar.update(len(scores) - 1 - bar.n)
    return np.array(scores[1:]) - scores[0]
