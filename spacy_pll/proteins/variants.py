"""Variants of a protein, by how much more or less probable a masked model finds them than the sequence itself.

The methods are those of Meier et al. (2021, NeurIPS, "Language models enable zero-shot prediction of the effects of
mutations on protein function"), which ProteinGym takes over.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from spacy.language import Language

from ..arrays import FloatArray
from ..cells import numbers_in
from ..errors import InputError, PLLError, listed
from ..evaluation.intervals import Estimate, spearman
from ..settings import with_known_values
from ..stream.known import KeptScores
from ..user_warnings import warn_user
from .plots import plot_variants
from .residues import Others, Residues, Substitution, marginals, whole_variants

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Method = Literal["masked-marginals", "wt-marginals", "pseudo-ppl"]
# From hydrophobic to polar and charged, so that similar ones are neighbours in a picture.
AMINO_ACIDS = "GAVLIMCFYWPSTNQHKRDE"
# Letters that stand for several amino acids, or nucleotides. A model may have a piece for each of them.
AMBIGUOUS = {
    "B": "aspartic acid or asparagine",
    "J": "leucine or isoleucine",
    "X": "any amino acid",
    "Z": "glutamic acid or glutamine",
}
AMBIGUOUS_NUCLEOTIDES = {
    "N": "any nucleotide", "R": "A or G", "Y": "C or T", "S": "C or G", "W": "A or T", "K": "G or T", "M": "A or C",
    "B": "C, G or T", "D": "A, G or T", "H": "A, C or T", "V": "A, C or G",
}  # fmt: skip
_SUBSTITUTION = re.compile(r"([^\W\d_])(-?\d{1,99})([^\W\d_])")
WILD_TYPE = ("WT", "WILDTYPE")  # as tables name the sequence itself, and letters of amino acids
NO_PICTURE = (
    "The picture shows single substitutions by one of the 20 amino acids, or nucleotides, such as 'A24G', and there is "
    "none."
)


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
    letters: str = AMINO_ACIDS  # those of the picture

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per variant: its columns, and its score under the name of the method. What was read from a table has
        the columns of the table; other variants begin with `mutant`.
        """
        for variant, score in zip(self.variants, self.scores.tolist()):
            name = {} if variant.place else {"mutant": variant.mutant}
            yield {**name, **variant.fields, column_of(self.method): score}

    def matrix(self) -> FloatArray:
        """The scores of single substitutions, NaN where there is none. Shape (letters, sites), as `letters`."""
        scores = np.full((len(self.letters), len(self.sequence)), np.nan)
        for several, score in zip(self.substitutions, self.scores):
            if len(several) == 1 and several[0].residue in self.letters:
                scores[self.letters.index(several[0].residue), several[0].site] = score
        return scores

    def correlation(self, column: str) -> Estimate | None:
        """Spearman's rho with the measured effects in a column (`rank_correlation`).

        RAISES (InputError): See `measured_effects`.
        """
        return rank_correlation(self.scores, measured_effects(self.variants, column))

    def plot(self) -> "Figure":
        """Draw the scores of single substitutions by site and amino acid. A dot is the residue of the sequence.

        RAISES (ValueError): There is no single substitution.
        RAISES (ImportError): matplotlib is not installed.
        """
        scores = self.matrix()
        if np.isnan(scores).all():
            raise PLLError(NO_PICTURE)
        letters = self.letters
        if "U" in self.sequence.upper() and letters.upper() != AMINO_ACIDS:  # which may be read as T
            letters = letters.translate(str.maketrans("Tt", "Uu"))
        return plot_variants(self.sequence, letters, scores, self.offset, self.method)


@with_known_values
def variants(
    nlp: Language,
    sequence: str,
    mutants: Iterable[str | Variant] | None = None,
    *,
    method: Method = "masked-marginals",
    others: Others = "mask",
    offset: int = 1,
    u_as_t: bool = False,
    show_progress: bool = False,
    kept: KeptScores | None = None,
) -> VariantScores:
    """Score variants of a protein against its own sequence, with a model that has a wordpiece for each residue.

    With "masked-marginals", each site of a variant is masked (`others` says what the model sees at the other sites),
    and the score is the sum over the sites of log p(other residue) - log p(residue of the sequence). With
    "wt-marginals", nothing is masked, so one forward pass is enough for all variants. With "pseudo-ppl", the score is
    the pseudo-log-likelihood (`original`) of the whole variant, minus the one of the sequence. A score of 0 means that
    variant and sequence are equally probable.

    For a sequence that is longer than the model reads, the marginals at a site come from a window around it, and a pass
    reads a window. The pipeline's `mask_margin` is used: then all masks of a window share a forward pass, and the
    scores are approximate.

    nlp (Language): A pipeline with a `pll` component and a masked model.
    sequence (str): One-letter codes, without white space.
    mutants (Optional[Iterable[Union[str, Variant]]]): Substitutions, such as "A24G", several with colons: "A24G:K30R".
        With "pseudo-ppl" also whole sequences, which may have insertions and deletions. None: all single substitutions
        by one of the 20 amino acids, or of the four nucleotides if these are what the model knows.
    method (Literal["masked-marginals", "wt-marginals", "pseudo-ppl"]): How variants are scored: see above.
    others (Literal["mask", "wt", "mut", "match"]): With masked-marginals, what the model sees at the other sites of a
        variant with several substitutions. mask: masks. wt: the residues of the sequence. mut: the residues of the
        variant. match: the variant when a new residue is scored, the sequence when a residue of the sequence is.
    offset (int): The number of the first residue of the sequence.
    u_as_t (bool): Read U as T, for RNA under a model that has learned T.
    show_progress (bool): Show a progress bar.
    kept (Optional[KeptScores]): Has the scores of an earlier run, and gets the scores of this one.
    RAISES (ValueError): A variant does not fit the sequence, the model does not know a residue or is no masked model,
        or a residue is no wordpiece.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline("facebook/esm2_t12_35M_UR50D")
    found = spacy_pll.variants(nlp, "MKTAYIAKQRQISFVKSHFSRQ", ["K2R", "T3S:Y5F"])
    len(found.scores)  # 2: one per variant
    ```
    """
    if not sequence.isalpha():
        wrong = next((letter for letter in sequence if not letter.isalpha()), "")
        raise InputError(f"The sequence must be letters alone. {f'It has {wrong!r}.' if wrong else 'It is empty.'}")
    if isinstance(mutants, str):
        raise InputError(f"`mutants` must be a list of variants, such as {[mutants]}. It is {mutants!r:.100}.")
    read, spelled = (str.maketrans(*pair) if u_as_t else {} for pair in (("Uu", "Tt"), ("Tt", "Uu")))
    given_sequence, sequence = sequence, sequence.translate(read)
    residues = Residues(nlp, sequence)
    letters = letters_of(residues)
    ambiguous = AMBIGUOUS if letters.upper() == AMINO_ACIDS else AMBIGUOUS_NUCLEOTIDES
    if letters.islower():
        ambiguous = {letter.lower(): meaning for letter, meaning in ambiguous.items()}
    if mutants is None:
        mutants = all_single(sequence.translate(spelled), offset, letters.translate(spelled), ambiguous)
    items = [Variant(mutant) if isinstance(mutant, str) else mutant for mutant in mutants]
    if not items:
        raise InputError("There is no variant.")
    check_free(items, method)
    named = [(where, item.mutant.translate(read)) for where, item in with_places(items)]
    parsed = [  # a whole sequence, or substitutions
        mutant
        if method == "pseudo-ppl" and mutant.isalpha() and mutant.upper() not in WILD_TYPE
        else parse_variant(mutant, sequence, offset, where)
        for where, mutant in named
    ]
    kept = kept or KeptScores()
    kept.about = {**kept.about, "sequence": sequence}
    if unclear := [f"{letter}{site + offset}" for site, letter in enumerate(sequence) if letter in ambiguous]:
        kind = "amino acids" if letters.upper() == AMINO_ACIDS else "nucleotides"
        warn_user(
            f"{len(unclear)} of {len(sequence)} letters of the sequence stand for several {kind}, such as "
            f"{unclear[0]}. The model reads them as they are. There are no variants at these sites."
        )
    for (where, mutant), variant in zip(named, parsed):
        is_whole = isinstance(variant, str)
        for letter in dict.fromkeys(mutant if is_whole else filter(str.isalpha, mutant)):
            residues.check(letter, f"{where}, {mutant!r:.100}")
            if letter in ambiguous and not (is_whole and letter in sequence):
                raise InputError(
                    f"{where}, {mutant!r:.100}: {letter!r} stands for {ambiguous[letter]}, so what a model says "
                    "of it is no probability of a residue.",
                    "Name one residue, or leave this variant out.",
                )
    substitutions = [() if isinstance(variant, str) else variant for variant in parsed]
    if method == "pseudo-ppl":
        texts = [variant if isinstance(variant, str) else with_substitutions(sequence, variant) for variant in parsed]
        scores = whole_variants(residues, texts, kept, show_progress)
    else:
        seen = None if method == "wt-marginals" else others
        scores = marginals(residues, substitutions, seen, kept, show_progress)
    return VariantScores(given_sequence, items, substitutions, scores, method, offset, letters)


def with_substitutions(sequence: str, several: Iterable[Substitution]) -> str:
    """The sequence of a variant."""
    changed = {substitution.site: substitution.residue for substitution in several}
    return "".join(changed.get(site, residue) for site, residue in enumerate(sequence))


def letters_of(residues: Residues) -> str:
    """What may stand in place of a residue, in the case of the sequence: the 20 amino acids, or the nucleotides if the
    model knows these alone.
    """
    in_case = str.lower if residues.sequence.islower() else str.upper
    nucleotides = ("ACGU", "ACGT") if "U" in residues.sequence.upper() else ("ACGT", "ACGU")
    known = (
        letters for letters in map(in_case, (AMINO_ACIDS, *nucleotides)) if None not in map(residues.id_of, letters)
    )
    return next(known, AMINO_ACIDS)


def all_single(
    sequence: str, offset: int = 1, letters: str = AMINO_ACIDS, ambiguous: Collection[str] = AMBIGUOUS
) -> Iterator[Variant]:
    """All substitutions of one residue by another.

    ambiguous (Collection[str]): Letters at whose sites there are none.
    """
    for position, wild_type in enumerate(sequence, offset):
        for residue in letters.replace(wild_type, "") if wild_type not in ambiguous else "":
            fields = {"position": position, "wild_type": wild_type, "residue": residue}
            yield Variant(f"{wild_type}{position}{residue}", fields)


def parse_variant(text: str, sequence: str, offset: int, where: str) -> tuple[Substitution, ...]:
    """The substitutions of a variant.

    where (str): What it is, for messages.
    RAISES (InputError): They do not fit the sequence.
    """
    substitutions = list[Substitution]()
    for given in text.split(":"):
        match = _SUBSTITUTION.fullmatch(given.strip())
        if match is None:
            advice = (
                "Write the residue of the sequence, its number and the other residue, such as 'A24G', and colons "
                "between several: 'A24G:K30R'."
            )
            if given.upper() in WILD_TYPE:
                advice = "If it stands for the sequence itself, leave it out: its score is 0."
            elif len(given) > 1 and given.isalpha():
                advice = "It has no number: compare whole sequences with `method='pseudo-ppl'`."
            raise InputError(f"{where}: {given!r:.100} is no substitution.", advice)
        wild_type, number, residue = match.groups()
        site, last = int(number) - offset, offset + len(sequence) - 1
        if not 0 <= site < len(sequence):
            raise InputError(
                f"{where}: {given!r} is outside of the sequence, whose residues have the numbers {offset} to {last}.",
                "If the first residue has another number, give it as `offset`.",
            )
        if (own := sequence[site]) != wild_type:
            advice = "Is this the right sequence? If its first residue has another number, give it as `offset`."
            if own == wild_type.swapcase():
                fitting = residue.upper() if own.isupper() else residue
                advice = f"The case of letters counts: write {own}{number}{fitting}."
            wrong = f"{where}: {given!r} does not fit the sequence, which has {own!r} as residue {number}."
            raise InputError(wrong, advice)
        if any(earlier.site == site for earlier in substitutions):
            raise InputError(f"{where}: {text!r} has two substitutions of residue {number}.")
        substitutions.append(Substitution(site, wild_type, residue))
    return tuple(substitutions)


def column_of(method: Method) -> str:
    """What the scores are called in tables."""
    return method.replace("-", "_")


def with_places(variants: Iterable[Variant]) -> Iterator[tuple[str, Variant]]:
    """Variants, each with where it is, for messages."""
    return ((variant.place or f"Variant {number}", variant) for number, variant in enumerate(variants, 1))


def check_free(variants: Iterable[Variant], method: Method) -> None:
    """RAISES (InputError): A column of the variants has the name of the scores."""
    if any(column_of(method) in variant.fields for variant in variants):
        raise InputError(f"The variants have a column {column_of(method)!r}, as their scores do. Rename it.")


def measured_effects(variants: Iterable[Variant], column: str) -> FloatArray:
    """The numbers in a column, NaN where one is missing.

    RAISES (InputError): A variant has no such column, or text in it, or none has a number.
    """
    placed = list(with_places(variants))
    for where, variant in placed:
        if column not in variant.fields:
            names = listed(column, variant.fields)
            raise InputError(f"{where}: there is no column {column!r}. The other columns are: {names}")
    effects = numbers_in([variant.fields[column] for _, variant in placed])
    for (where, variant), effect in zip(placed, effects):
        if effect is None:
            raise InputError(f"{where}: {column!r} must be a number. It is {variant.fields[column]!r:.100}.")
    numbers = np.array(effects, dtype=np.float64)
    if not np.isfinite(numbers).any():
        raise InputError(f"No variant has a number in the column {column!r}.")
    return numbers


def rank_correlation(scores: FloatArray, effects: FloatArray) -> Estimate | None:
    """Spearman's rho with what was measured, as `spearman` computes it. Variants without a number are left out."""
    known = np.isfinite(effects)
    return spearman(scores[known], effects[known])
