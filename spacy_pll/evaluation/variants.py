"""Variants of a protein, by how much more or less probable a masked model finds them than the sequence itself.

The methods are those of Meier et al. (2021, NeurIPS, "Language models enable zero-shot prediction of the effects of
mutations on protein function"), which ProteinGym takes over.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from tqdm import tqdm

from ..arrays import FloatArray, IntArray
from ..component import get_scorer
from ..errors import InputError, PLLError
from ..metrics import MaskRows, one_row_per_piece
from ..prediction import Predictor
from ..scoring.windows import Context
from ..scoring.wordpieces import Wordpieces, get_wordpieces
from ..settings import ScoringSettings
from ..user_warnings import warn_user
from .intervals import Estimate
from .plots import plot_variants
from .preferences import spearman

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Method = Literal["masked-marginals", "wt-marginals", "pseudo-ppl"]
METHODS: tuple[str, ...] = get_args(Method)
# From hydrophobic to polar and charged, so that similar ones are neighbours in a picture.
AMINO_ACIDS = "GAVLIMCFYWPSTNQHKRDE"
_SUBSTITUTION = re.compile(r"([^\W\d_])(-?\d+)([^\W\d_])")
MISSING = ("", "NA", "N/A", "None", "null")  # in a column of numbers
NO_PICTURE = "The picture shows single substitutions by one of the 20 amino acids, such as 'A24G', and there is none."
# How many log-probabilities are kept for the pieces that are read at once, those of the whole vocabulary for each.
MAX_LOG_PROBS = 2**23


class Substitution(NamedTuple):
    """Another residue at a site of a sequence."""

    site: int  # from 0
    wild_type: str
    residue: str


class Variant(NamedTuple):
    """A variant of a sequence."""

    mutant: str  # its substitutions, such as "A24G" or "A24G:K30R"
    fields: Mapping[str, Any] = {}  # other columns; what was read from a table has all of its columns
    place: str | None = None  # in a table, for messages


@dataclass(frozen=True)
class VariantScores:
    """Variants with their scores."""

    sequence: str
    variants: Sequence[Variant]
    substitutions: Sequence[tuple[Substitution, ...]]  # of each variant
    scores: FloatArray  # natural log; 0 is the sequence itself, and what is below it is less probable
    method: Method
    offset: int = 1

    @property
    def column(self) -> str:
        """What the scores are called in tables."""
        return column_of(self.method)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per variant: its columns, and its score under the name of the method. What was read from a table has
        the columns of the table; other variants begin with `mutant`.
        """
        for variant, score in zip(self.variants, self.scores.tolist()):
            name = {} if variant.place else {"mutant": variant.mutant}
            yield {**name, **variant.fields, self.column: score}

    def matrix(self) -> FloatArray:
        """The scores of single substitutions, NaN where there is none. Shape (amino acids, sites), as `AMINO_ACIDS`."""
        found = np.full((len(AMINO_ACIDS), len(self.sequence)), np.nan)
        for several, score in zip(self.substitutions, self.scores):
            if len(several) == 1 and several[0].residue in AMINO_ACIDS:
                found[AMINO_ACIDS.index(several[0].residue), several[0].site] = score
        return found

    def correlation(self, column: str) -> Estimate | None:
        """Spearman's rho of the scores and of what was measured, as `spearman` computes it.

        column (str): The column of the measured effects. Variants without a number there are left out.
        RAISES (InputError): See `measured_effects`.
        """
        effects = measured_effects(self.variants, column)
        known = np.isfinite(effects)
        return spearman(self.scores[known], effects[known])

    def plot(self) -> "Figure":
        """Draw the scores of single substitutions by site and amino acid. A dot is the residue of the sequence.

        RAISES (ValueError): There is no single substitution.
        RAISES (ImportError): matplotlib is not installed.
        """
        scores = self.matrix()
        if np.isnan(scores).all():
            raise ValueError(NO_PICTURE)
        return plot_variants(self.sequence, AMINO_ACIDS, scores, self.offset, self.method)


def variants(
    nlp: Language,
    sequence: str,
    mutants: Iterable[str | Variant] | None = None,
    *,
    method: Method = "masked-marginals",
    one_by_one: bool = False,
    offset: int = 1,
    component: str | None = None,
    show_progress: bool = False,
) -> VariantScores:
    """Score variants of a protein against its own sequence, with a model that has a wordpiece for each residue.

    With "masked-marginals", the sites of a variant are masked, and its score is the sum over the sites of log p(other
    residue) - log p(residue of the sequence). With "wt-marginals", nothing is masked, so one forward pass is enough
    for all variants. With "pseudo-ppl", it is the pseudo-log-likelihood (`original`) of the whole variant, minus that
    of the sequence. A score of 0 means that variant and sequence are equally probable.

    For a sequence that is longer than the model reads, the marginals at a site come from a window around it, and a pass
    reads a window. The pipeline's `mask_margin` is taken over: then all masks of a window share a forward pass, and the
    scores are approximate.

    nlp (Language): A pipeline with a `pll` component and a masked model.
    sequence (str): One-letter codes, without white space.
    mutants (Optional[Iterable[Union[str, Variant]]]): Substitutions, such as "A24G", several with colons: "A24G:K30R".
        None: all single substitutions by one of the 20 amino acids.
    method (Literal["masked-marginals", "wt-marginals", "pseudo-ppl"]): See above.
    one_by_one (bool): With "masked-marginals", mask the sites of a variant one after the other, not together.
    offset (int): The number of the first residue in `mutants`.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    show_progress (bool): Show a progress bar.
    RAISES (ValueError): A variant does not fit the sequence, the model does not know a residue or is no masked model,
        or a residue is no wordpiece.
    """
    if method not in METHODS:
        raise PLLError(f"`method` must be {', '.join(METHODS[:-1])} or {METHODS[-1]}. It is {method!r}.")
    if not sequence.isalpha():
        wrong = next((letter for letter in sequence if not letter.isalpha()), "")
        raise InputError(f"The sequence must be letters alone. {f'It has {wrong!r}.' if wrong else 'It is empty.'}")
    if isinstance(mutants, str):
        raise InputError(f"`mutants` must be a list of variants, such as {[mutants]}. It is {mutants!r:.100}.")
    given = all_single(sequence, offset) if mutants is None else mutants
    items = [Variant(one) if isinstance(one, str) else one for one in given]
    if not items:
        raise InputError("There is no variant.")
    if any(column_of(method) in one.fields for one in items):
        raise InputError(f"The variants have a column {column_of(method)!r}, as their scores do. Rename it.")
    places = [variant.place or f"Variant {number}" for number, variant in enumerate(items, 1)]
    parsed = [parse_variant(one.mutant, sequence, offset, place) for one, place in zip(items, places)]
    residues = Residues(nlp, sequence, component)
    for variant, several, place in zip(items, parsed, places):
        for one in several:
            residues.check(one.residue, f"{place}, {variant.mutant!r}")
    if method == "pseudo-ppl":
        scores = whole_variants(residues, parsed, show_progress)
    else:
        scores = marginals(
            residues, parsed, masks=method == "masked-marginals", together=not one_by_one, show=show_progress
        )
    return VariantScores(sequence, items, parsed, scores, method, offset)


def all_single(sequence: str, offset: int = 1) -> Iterator[Variant]:
    """All substitutions of one residue by another of the 20 amino acids."""
    for site, wild_type in enumerate(sequence):
        for residue in AMINO_ACIDS.replace(wild_type, ""):
            fields = {"position": site + offset, "wild_type": wild_type, "residue": residue}
            yield Variant(f"{wild_type}{site + offset}{residue}", fields)


def parse_variant(text: str, sequence: str, offset: int, place: str) -> tuple[Substitution, ...]:
    """The substitutions of a variant. RAISES (InputError): They do not fit the sequence. It begins with the place."""
    found = list[Substitution]()
    for part in text.split(":"):
        match = _SUBSTITUTION.fullmatch(part.strip())
        if match is None:
            raise InputError(
                f"{place}: {part!r} is no substitution.",
                "Write the residue of the sequence, its number and the other residue, such as 'A24G', and colons "
                "between several: 'A24G:K30R'.",
            )
        wild_type, number, residue = match.groups()
        site, last = int(number) - offset, offset + len(sequence) - 1
        if not 0 <= site < len(sequence):
            raise InputError(
                f"{place}: {part!r} is outside of the sequence, whose residues have the numbers {offset} to {last}.",
                "If the first residue has another number, give it as `offset`.",
            )
        if sequence[site] != wild_type:
            raise InputError(
                f"{place}: {part!r} does not fit the sequence, which has {sequence[site]!r} as residue {number}.",
                "Is this the right sequence? If its first residue has another number, give it as `offset`.",
            )
        if any(one.site == site for one in found):
            raise InputError(f"{place}: {text!r} has two substitutions of residue {number}.")
        found.append(Substitution(site, wild_type, residue))
    return tuple(found)


def column_of(method: Method) -> str:
    """What the scores are called in tables."""
    return method.replace("-", "_")


def measured_effects(variants: Sequence[Variant], column: str) -> FloatArray:
    """The numbers in a column, NaN where there is none: an empty cell, or what stands for one.

    RAISES (InputError): A variant has no such column, or text in it, or none has a number.
    """
    effects = np.array([_number(variant, number, column) for number, variant in enumerate(variants, 1)])
    if not np.isfinite(effects).any():
        raise InputError(f"No variant has a number in the column {column!r}.")
    return effects


def _number(variant: Variant, number: int, column: str) -> float:
    place = variant.place or f"Variant {number}"
    if column not in variant.fields:
        names = ", ".join(map(repr, variant.fields)) or "none"
        raise InputError(f"{place}: there is no column {column!r}. The other columns are: {names}.")
    value = variant.fields[column]
    try:
        return float("nan" if value is None or str(value) in MISSING else value)
    except (TypeError, ValueError):
        raise InputError(f"{place}: {column!r} must be a number. It is {value!r:.100}.") from None


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
        self.pieces = self._read(sequence)
        if self.loaded.unknown_id in self.pieces.ids:
            self.spaces = True  # "M K T", as ProtBERT reads it
            self.pieces = self._read(sequence)
        if self.pieces.ids.tolist() != list(map(self.id_of, sequence)):
            raise PLLError(
                f"The tokenizer of {model.title} does not make a wordpiece of each residue.",
                "Give a model of proteins as `model`.",
            )
        if model.languages:
            warn_user(
                f"The card of {model.title} names languages, such as {min(model.languages)}. The scores of proteins "
                "under a model of texts mean nothing."
            )
        for number, residue in enumerate(sequence, 1):
            self.check(residue, f"Letter {number} of the sequence")

    def _read(self, letters: str) -> Wordpieces:
        return get_wordpieces(self.doc(letters)[:], self.loaded.tokenizer, "piece")

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


class Question(NamedTuple):
    """What the model is asked: the log-probabilities at a site, while some sites are masked."""

    site: int
    masked: tuple[int, ...]


def marginals(
    residues: Residues, variants: Sequence[tuple[Substitution, ...]], masks: bool, together: bool, show: bool
) -> FloatArray:
    """The sums over the sites of each variant of log p(other residue) - log p(residue of the sequence).

    masks (bool): Whether sites are masked; if so, all sites of a variant at once, or one by one.
    """

    def question(one: Substitution, several: tuple[Substitution, ...]) -> Question:
        sites = sorted(other.site for other in several) if together else [one.site]
        return Question(one.site, tuple(sites) if masks else ())

    numbers: dict[Question, int] = {}
    for several in variants:
        for one in several:
            numbers.setdefault(question(one, several), len(numbers))
    letters = list(residues.ids)
    log_probs = at_sites(residues, list(numbers), np.array([residues.ids[letter] for letter in letters]), show)
    column = {letter: i for i, letter in enumerate(letters)}
    scores = np.zeros(len(variants))
    for i, several in enumerate(variants):
        for one in several:
            row = log_probs[numbers[question(one, several)]]
            scores[i] += row[column[one.residue]] - row[column[one.wild_type]]
    if not np.isfinite(scores).all():
        raise ValueError(
            f"Under {residues.predictor.model.describe().title}, some log-probabilities are not finite. Try it without "
            "mixed_precision, or with another model."
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
    with tqdm(total=len(questions), unit=" sites", disable=not show) as bar:
        for batch in batches(residues, questions, predictor):
            contexts = [context for context, _ in batch]
            _, distributions = predictor.predict_contexts(contexts)
            assert distributions is not None  # alternatives are asked for
            begins = np.cumsum([0, *(len(context.word) for context in contexts)])
            for begin, (context, numbers) in zip(begins.tolist(), batch):
                here = begin - context.offset + np.array([questions[number].site for number in numbers])
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
) -> Iterator[list[tuple[Context, list[int]]]]:
    """The contexts that are read for some questions, each with their numbers, in batches of bounded size.

    Questions that mask one site each, or none, share a context if they have the same window.
    """
    pieces, loaded = residues.pieces, residues.loaded
    n, size = len(pieces), loaded.max_length - len(pieces.prefix) - len(pieces.suffix)
    shared: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for number, (site, masked) in enumerate(questions):
        start = window_start(site, n, size)
        shared.setdefault((start, masked if len(masked) > 1 else ()), []).append(number)
    most = max(1, loaded.ids_at_once // min(n, size))  # rows
    alone = predictor.settings.mask_margin is None and bool(questions[0].masked)  # whether each site has its own row
    batch, rows, cells = list[tuple[Context, list[int]]](), 0, 0
    for (start, masked), numbers in shared.items():
        end = min(n, start + size)
        word, inside = np.arange(end - start), [site - start for site in masked if start <= site < end]
        word[inside] = inside[:1]
        ids = np.concatenate([pieces.prefix, pieces.ids[start:end], pieces.suffix])
        step = most if alone else len(numbers)
        for some in (numbers[first : first + step] for first in range(0, len(numbers), step)):
            more_rows, more_cells = len(some) if alone else 1, (end - start) * loaded.n_ids
            if batch and (rows + more_rows > most or cells + more_cells > MAX_LOG_PROBS):
                yield batch
                batch, rows, cells = [], 0, 0
            scored = np.zeros(end - start, dtype=bool)
            scored[[questions[number].site - start for number in some]] = True
            batch.append((Context(ids, len(pieces.prefix), word, scored, 0, start), some))
            rows, cells = rows + more_rows, cells + more_cells
    yield batch


def whole_variants(residues: Residues, variants: Sequence[tuple[Substitution, ...]], show: bool) -> FloatArray:
    """The pseudo-log-likelihood of each variant minus that of the sequence."""
    predictor = residues.predictor

    def docs() -> Iterator[Doc]:
        yield residues.doc(residues.sequence)
        for several in variants:
            letters = list(residues.sequence)
            for one in several:
                letters[one.site] = one.residue
            yield residues.doc("".join(letters))

    scores = list[float]()
    with tqdm(total=len(variants), unit=" variants", disable=not show) as bar:
        for batch in predictor.batches(predictor.tokenize([doc])[0] for doc in docs()):
            scores += [float(doc.scores[0].sum()) for doc in predictor.gather(predictor.submit(batch))]
            bar.update(len(scores) - 1 - bar.n)
    return np.array(scores[1:]) - scores[0]
