"""What a model of proteins says at the sites of a sequence, and how probable it finds substitutions there."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Literal, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..arrays import FloatArray
from ..component import get_scorer
from ..errors import InputError, PLLError
from ..prediction.asking import Asking, PendingLogProbs
from ..prediction.batches import batches_of, with_next_ahead
from ..prediction.reading import DocReading, PendingBatch
from ..scoring.windows import Context, Contexts
from ..scoring.wordpieces import Wordpieces, get_wordpieces
from ..settings import BATCH_SIZE
from ..span_getters import get_doc_spans
from ..stream.known import KeptScores, in_batches


class Substitution(NamedTuple):
    """Another residue at a site of a sequence."""

    site: int  # from 0
    wild_type: str
    residue: str


# What the model sees at the other sites of a variant while it is asked about one site: masks, the residues of the
# sequence (wt), the residues of the variant (mut), or (match) the residues of whichever has the residue that is asked
# about. RNAGym's fills have these names.
Others = Literal["mask", "wt", "mut", "match"]


class Question(NamedTuple):
    """What the model is asked: the log-probabilities at a site, while some sites are masked, and others are changed."""

    site: int
    masked: tuple[int, ...]
    changed: tuple[Substitution, ...] = ()  # what is masked is not seen


class Residues:
    """A sequence, as a model reads it: a wordpiece for each residue.

    RAISES (ValueError): The model does not know a residue, or does not have a piece for each.
    """

    def __init__(self, nlp: Language, sequence: str):
        scorer = get_scorer(nlp)
        scorer.model.check_metrics(["whole_word"])
        limit, margin = scorer.settings.max_batch_tokens, scorer.settings.mask_margin
        self.asking = Asking(scorer.model, ["whole_word"], limit, mask_margin=margin)
        self.reading = DocReading(self.asking, get_doc_spans, "piece")
        self.vocab, self.sequence = nlp.vocab, sequence
        self.loaded, model = self.asking.prepare(), scorer.model.describe()
        self.ids: dict[str, int] = {}  # of the residues that were checked
        self.spaces = False
        for number, residue in enumerate(sequence, 1):  # first, because some tokenizers join unknown neighbours
            self.check(residue, f"Letter {number} of the sequence")
        self.pieces = self._read(sequence)
        if self.loaded.unknown_id in self.pieces.ids:
            self.spaces = True  # "M K T", as ProtBERT reads it
            self.pieces = self._read(sequence)
        if self.pieces.ids.tolist() != [self.ids[residue] for residue in sequence]:
            raise PLLError(
                f"The tokenizer of {model.title} does not make a wordpiece of each residue.",
                "Give a model of proteins as `model`.",
            )
        most = self.loaded.max_length - self.pieces.encoded.n_special
        self.size = min(len(self.pieces), most)  # how many residues are read at once

    def _read(self, letters: str) -> Wordpieces:
        return get_wordpieces([self.doc(letters)[:]], self.loaded.tokenizer, "piece")

    def doc(self, letters: str) -> Doc:
        """A doc whose tokens are the residues."""
        return Doc(self.vocab, words=list(letters), spaces=[self.spaces] * (len(letters) - 1) + [False])

    def id_of(self, residue: str) -> int | None:
        """The id of its piece; None if the model does not know it."""
        ids = self._read(residue).ids.tolist()
        return ids[0] if len(ids) == 1 and ids[0] != self.loaded.unknown_id else None

    def check(self, residue: str, where: str) -> None:
        """RAISES (InputError): The model does not know it."""
        if residue in self.ids:
            return
        if (number := self.id_of(residue)) is None:
            advice = f"Write {residue.upper()!r}." if residue.islower() else "Leave it out, or choose another `model`."
            raise InputError(f"{where}: the model does not know {residue!r} as a residue.", advice)
        self.ids[residue] = number

    def read_with(self, question: Question) -> tuple[int, tuple[int, ...], tuple[Substitution, ...]]:
        """What questions have in common that a context answers: its first site, the sites that are masked together, and
        what is changed.

        The site is in the middle of the context, or at most an eighth of its size away: so sites that are close share
        one.
        """
        site, masked, changed = question
        step = max(1, self.size // 4)
        nearest = (site - self.size // 2 + step // 2) // step * step
        start = min(max(0, nearest), len(self.pieces) - self.size)
        return start, masked if len(masked) > 1 else (), changed

    def context(
        self, sites: Sequence[int], start: int, masked: tuple[int, ...], changed: tuple[Substitution, ...]
    ) -> Context:
        """What is read to answer questions about some sites: see `read_with`."""
        pieces, site = self.pieces, np.arange(start, start + self.size)
        ids = pieces.ids[site]
        for substitution in changed:
            ids[site == substitution.site] = self.ids[substitution.residue]
        prefix, suffix = pieces.encoded.prefix, pieces.encoded.suffix
        read, together = np.concatenate([prefix, ids, suffix]), np.isin(site, masked) if masked else None
        return Context.asking(read, len(prefix), np.isin(site, sites), together)


def terms(several: tuple[Substitution, ...], others: Others | None) -> Iterator[tuple[Question, str, int]]:
    """The terms of a variant's score. Each site has two: plus the log-probability of the variant's residue, and minus
    the log-probability of the sequence's residue. A term is the question that is asked, the residue, and the sign.

    others (Optional[Literal["mask", "wt", "mut", "match"]]): What is seen at the other sites. None: nothing is masked.
    """
    sites = tuple(sorted(substitution.site for substitution in several))
    changed = tuple(sorted(several)) if len(several) > 1 else ()
    for substitution in several:
        if others in (None, "mask"):
            of_sequence = of_variant = Question(substitution.site, sites if others else ())
        else:
            of_sequence = Question(substitution.site, (substitution.site,))
            of_variant = of_sequence._replace(changed=changed)
        yield (of_sequence if others == "wt" else of_variant), substitution.residue, 1
        yield (of_variant if others == "mut" else of_sequence), substitution.wild_type, -1


def marginals(
    residues: Residues,
    variants: Sequence[tuple[Substitution, ...]],
    others: Others | None,
    kept: KeptScores,
    show: bool,
) -> FloatArray:
    """The sums over the sites of each variant of log p(other residue) - log p(residue of the sequence)."""
    residues.ids = dict(sorted(residues.ids.items()))  # what is kept has a column for each, whatever comes first
    kept.about = {**kept.about, "residues": "".join(residues.ids)}
    asked = [(number, *term) for number, several in enumerate(variants) for term in terms(several, others)]
    distinct = sorted(
        {question for _, question, *_ in asked}, key=lambda question: (*residues.read_with(question), question.site)
    )
    kept.begin(distinct, "sites")
    answers = kept.each(
        lambda done: in_batches(answer(residues, others is not None, distinct[done:])),
        len(distinct),
        show_progress=show,
    )
    log_probs = np.array([*answers])
    row, column = ({key: number for number, key in enumerate(keys)} for keys in (distinct, residues.ids))
    scores = np.zeros(len(variants))
    for number, question, residue, sign in asked:
        scores[number] += sign * log_probs[row[question], column[residue]]
    residues.asking.check_finite(scores)
    return scores


def answer(residues: Residues, masks: bool, questions: Sequence[Question]) -> Iterator[list[list[float]]]:
    """The log-probabilities of the residues for some questions, in batches of bounded size. For each question a list,
    as `Residues.ids`.

    masks (bool): Whether they mask anything.
    questions (Sequence[Question]): Those that are read together stand together, with increasing sites.
    """
    asking, loaded, ids = residues.asking, residues.loaded, list(residues.ids.values())
    if not masks:
        asking = replace(asking, metrics=("unmasked",), mask_margin=None)
    most = max(1, loaded.ids_at_once // residues.size)  # rows
    batches: Iterable[Iterable[Question]] = minibatch(questions, most)
    if not masks or asking.mask_margin is not None:  # all sites that are read together share a row
        together = ([*together_read] for _, together_read in groupby(questions, residues.read_with))
        batches = map(chain.from_iterable, minibatch(together, most))

    def submit(batch: Iterable[Question]) -> PendingLogProbs:
        contexts = (
            residues.context([question.site for question in asked], *read)
            for read, asked in groupby(batch, residues.read_with)
        )
        return asking.submit_ids(Contexts.of([*contexts]), loaded, ids)

    for pending in with_next_ahead(map(submit, batches), loaded.on_gpu):
        yield pending.result().T.tolist()


def whole_variants(residues: Residues, variants: Sequence[str], kept: KeptScores, show: bool) -> FloatArray:
    """The pseudo-log-likelihood of each variant, given as its sequence, minus that of the sequence."""
    sequences = [residues.sequence, *variants]

    def find(done: int) -> Iterator[list[float]]:
        reading, loaded = residues.reading, residues.loaded
        docs = map(residues.doc, sequences[done:])
        batches = batches_of(docs, reading.ends_of_batches(loaded, BATCH_SIZE, done))
        for pending in with_next_ahead(map(reading.submit, batches), loaded.on_gpu):
            yield [float(np.sum(scores)) for scores in scores_of_residues(residues.asking, pending)]

    kept.begin(sequences, "sequences")
    sums = kept.each(lambda done: in_batches(find(done)), len(sequences), show_progress=show)
    scores = np.array([*sums])
    return scores[1:] - scores[0]


def scores_of_residues(asking: Asking, pending: PendingBatch) -> Iterator[FloatArray]:
    """Of each doc the scores of its residues, in their order. RAISES (PLLError): One is not finite."""
    batch, (scores, _) = pending.tokenized, pending.scores.result()
    of_pieces = np.zeros(len(batch.wordpieces))
    of_pieces[batch.contexts.piece[batch.contexts.scored]] = scores[0, batch.contexts.scored]
    for text, own in zip(batch.read.texts, batch.pieces_of):
        asking.check_finite(of_pieces[own], f", for the sequence {text[:100]!r}")
        yield of_pieces[own]
