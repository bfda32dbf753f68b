"""Pseudo-perplexity of a corpus (Salazar et al. 2020, section 2.3), and how many wordpieces its words have."""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from itertools import islice
from math import isnan
from statistics import fmean, variance
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..advice.clauses import clause_as_word
from ..advice.giving import Once, advise
from ..analysis.any_order import METRIC, bound_of, draws_of, score_draws, sums_of_draws
from ..arrays import FloatArray, IntArray
from ..attributes.record import PieceRecord
from ..attributes.stored import read_record
from ..attributes.values import exp_or_inf
from ..component import get_scorer
from ..errors import PLLError
from ..pipelines import make_pipeline
from ..progress import number_of
from ..scoring.wordpieces import Words, read_text, segment_of, white_space_runs
from ..settings import BATCH_SIZE
from ..stream.known import KeptScores, read_docs, score_places
from ..stream.workers import Work
from ..texts import check_texts, plain_texts
from ..unspaced import DIVIDED, UNSPACED_CHARACTER, UNSPACED_PIECES
from .intervals import Z
from .items import groups_by
from .measurements import Measurement, each_group


class KnownText(NamedTuple):
    """What is kept of a text."""

    counts: dict[str, int]
    sums: dict[str, list[float]]  # by metric: the sum of its scores; or one under each draw; or an estimate, its error
    text_id: int = 0  # with estimates: equal texts have the same


@dataclass(frozen=True)
class Perplexity:
    """The pseudo-perplexity of a corpus under each metric, and the counts that it is made from."""

    texts: int = 0
    empty_texts: int = 0  # without a wordpiece
    windowed_texts: int = 0  # with a context that was too long for the model and was read in windows
    words: int = 0
    split_words: int = 0  # of several wordpieces
    pieces: int = 0
    scored_pieces: int = 0  # fewer with `sample_words`: then the log-likelihood is an estimate
    unknown_pieces: int = 0  # that stand for text that the tokenizer does not know
    bytes: int = 0  # of what is read of the texts that have one, in UTF-8
    log_likelihood: Mapping[str, float] = field(default_factory=dict)  # by metric, natural log
    # Of the log-likelihood, by the draw: of the words, or of a bound (`sentence_any_order`), if it is the only metric.
    standard_error: Mapping[str, float] = field(default_factory=dict)

    @property
    def split_share(self) -> float:
        """The share of the words that have several wordpieces, 0 to 1."""
        return self.split_words / max(1, self.words)

    @property
    def per_piece(self) -> dict[str, float]:
        """exp(-log-likelihood / wordpieces) by metric: PPPL (Salazar et al. 2020, section 2.3). Infinite where it is
        more than a float can hold; no metric where nothing was scored.
        """
        return self._per(self.pieces)

    @property
    def per_word(self) -> dict[str, float]:
        """exp(-log-likelihood / words) by metric. It depends less on the tokenizer than the value per wordpiece."""
        return self._per(self.words)

    @property
    def per_byte(self) -> dict[str, float]:
        """exp(-log-likelihood / bytes of the texts) by metric. The number of bytes does not depend on the tokenizer.
        log2 of this value is the bits per byte.
        """
        return self._per(self.bytes)

    @property
    def intervals(self) -> dict[str, dict[str, tuple[float, float]]]:
        """95 % intervals of `per_piece` and so on, for a part of the words. Those of few texts are too short."""
        n_of = self._units if self.scored_pieces < self.pieces else {}
        ends = {f"per_{unit}": [self._per(n, side) for side in (Z, -Z)] for unit, n in n_of.items()}
        return {name: {m: (low[m], high[m]) for m in low} for name, (low, high) in ends.items()}

    @property
    def counts(self) -> dict[str, float]:
        """All counts, by their names here, and `split_share`."""
        by_metric = "log_likelihood", "standard_error"
        return {name: n for name, n in asdict(self).items() if name not in by_metric} | {
            "split_share": self.split_share
        }

    def measurements(self) -> list[Measurement]:
        """The pseudo-perplexities and the log-likelihood (natural log) under each metric. If it has a standard error,
        also this one; and if it is a bound, the standard errors of the perplexities, in per cent of them.
        """
        measured, intervals = list[Measurement](), self.intervals
        for metric, total in self.log_likelihood.items():
            for unit, n in self._units.items():
                ends = intervals.get(f"per_{unit}", {}).get(metric, ())
                if n:
                    value = getattr(self, f"per_{unit}")[metric]
                    measured.append(Measurement(metric, f"pseudo-perplexity per {unit}", n, value, *ends))
            measured.append(Measurement(metric, "log-likelihood", self.texts, total))
            if (error := self.standard_error.get(metric)) is None:
                continue
            measured.append(Measurement(metric, "standard error of the log-likelihood", self.texts, error))
            for unit, n in self._units.items() if not intervals else ():
                if n:
                    measured.append(Measurement(metric, f"standard error per {unit} in %", n, 100 * error / n))
        return measured

    @property
    def _units(self) -> dict[str, int]:
        return {"piece": self.pieces, "word": self.words, "byte": self.bytes}

    def _per(self, n: int, errors: float = 0.0) -> dict[str, float]:
        moved = {m: total + errors * self.standard_error.get(m, 0.0) for m, total in self.log_likelihood.items()}
        return {metric: exp_or_inf(-total / n) for metric, total in moved.items() if n}


def pieces_per_word(doc: Doc, record: PieceRecord, words: Words) -> IntArray:
    """How many pieces begin in each word of a doc. int, shape (words,).

    Pieces before the first word count as part of it. spaCy's tokens and what white space separates may have no piece.
    """
    start = np.array(record.start, dtype=np.int64)
    if words == "piece":  # several may stand for one character
        return np.ones(len(start), dtype=np.int64)
    begins = word_begins(doc, record, words)
    return np.bincount(segment_of(start, begins), minlength=len(begins))[: len(begins)]


def word_begins(doc: Doc, record: PieceRecord, words: Words) -> IntArray:
    """The characters at which the words of a doc begin, unless each piece is one. int, shape (words,)."""
    if words == "spacy":
        return np.array([token.idx for token in doc if not token.is_space], dtype=np.int64)
    if words == "whitespace":
        return white_space_runs(doc.text)
    start, end = np.array(record.start, dtype=np.int64), np.array(record.end)
    visible = end > start  # pieces with a character that is not white space
    first = np.unique(np.array(record.word)[visible], return_index=True)[1]
    # Two pre-tokens of one character, such as a ligature, begin at the same offset and are one word.
    begins: IntArray = np.unique(start[visible][first])
    return begins


def _clause_as_word(doc: Doc, record: PieceRecord, words: Words, per_word: IntArray) -> str | None:
    """About the first word of a doc that is a clause of a language without spaces.

    per_word (IntArray): See `pieces_per_word`.
    """
    if words == "piece" or words == "spacy" and doc.lang_ in DIVIDED or per_word.max(initial=0) < UNSPACED_PIECES:
        return None
    edges = [*word_begins(doc, record, words).tolist(), len(doc.text)]
    word_texts = (doc.text[begin:end].strip() for begin, end in zip(edges, edges[1:]))
    beside = "" if words == "spacy" else " and `words='spacy'`"
    otherwise = "compare values per wordpiece or per byte"
    return clause_as_word(zip(word_texts, per_word.tolist()), "perplexities per word", otherwise, beside)


def perplexity(
    nlp: Language,
    texts: Iterable[str | Doc],
    *,
    n_passes: int | None = None,
    seed: int = 0,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
    kept: KeptScores | None = None,
) -> Perplexity:
    """Score texts, and measure their pseudo-perplexity.

    If `sentence_any_order` is the only metric, the log-likelihood is a lower bound, and has a standard error, because
    the orders are random (`log_probability_bounds`). It is then measured in one process. If the pipeline scores a part
    of the words (`sample_words`), the log-likelihood is an estimate, with a standard error and `intervals`.

    nlp (Language): A pipeline with a `pll` component.
    n_passes (Optional[int]): For the metric sentence_any_order: the number of forward passes for each text. None: 16
        orders.
    seed (int): For the metric sentence_any_order: another seed draws other orders.
    batch_size, n_process, show_progress: See `spacy_pll.score`.
    kept (Optional[KeptScores]): Has what an earlier run has found, and gets what is found.
    RAISES (ValueError): The component scores some spans only, or a text cannot be scored.
    RAISES (ChildProcessError): A worker process was killed.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline()
    measured = spacy_pll.perplexity(nlp, ["The cats sleep.", "The cats sleeps."])
    measured.pieces, measured.per_piece["word_l2r"]  # 9, 61.5
    ```
    """
    check_texts(texts)
    nlp = make_pipeline(nlp, keep_pieces=True)
    settings, names, work = get_scorer(nlp).settings, get_scorer(nlp).names, Work(batch_size, n_process, show_progress)
    if settings.targets is not None:
        raise PLLError(
            f"The pipeline scores only some spans of a text (its setting `targets` is {settings.targets!r}), "
            "but perplexity needs whole texts. Use a pipeline without `targets`."
        )
    is_bound = list(settings.metrics) == [METRIC]
    is_part = settings.sample_words is not None
    if is_bound:
        settings.check_whole("a bound needs whole texts")
    if not is_bound and (n_passes is not None or seed and not (is_part and seed == settings.seed)):
        raise PLLError(
            f"`n_passes` and `seed` are for a bound, and the metrics are {', '.join(settings.metrics)}.",
            f"Leave them out, or set `metrics` to {METRIC}.",
        )
    if is_bound and n_process != 1:
        raise PLLError(f"A bound is measured in one process. `n_process` is {n_process}.", "Leave it out.")
    unknown_id = get_scorer(nlp).model.load().unknown_id
    kept = kept or KeptScores()
    kept.begin(texts)
    n, clauses, draws = number_of(texts), Once(), draws_of(n_passes=n_passes, seed=seed) if is_bound else []

    def of_text(doc: Doc, record: PieceRecord | None) -> dict[str, int]:
        if record is None or not record.ids:
            return {"empty_texts": 1}
        per_word = pieces_per_word(doc, record, settings.words)
        clauses.advise(lambda: _clause_as_word(doc, record, settings.words, per_word))
        return {
            "bytes": len(read_text(doc.text).encode("utf8", "surrogatepass")),
            "windowed_texts": int(any(record.window or ())),
            "words": len(per_word),
            "split_words": int((per_word > 1).sum()),
            "pieces": len(record.ids),
            "scored_pieces": len(record.of_drawn().ids),
            "unknown_pieces": record.ids.count(unknown_id),
        }

    def of_scores(doc: Doc) -> KnownText:
        record = read_record(doc, names.score, whole=True)
        sums = {metric: [sum(of)] for metric, of in record.of_drawn().scores.items()} if record else {}
        if is_part and record and record.ids:
            estimates = {metric: map(doc._.get, names.estimates[name]) for metric, name in names.metrics.items()}
            sums = {metric: [*both] for metric, both in estimates.items()}
        digest = sha256(read_text(doc.text).encode("utf8", "surrogatepass")).digest() if is_part else b""
        return KnownText(of_text(doc, record), sums, int.from_bytes(digest[:6], "little"))

    def find(n_known: int) -> Generator[tuple[KnownText, bool], None, None]:
        """Under a bound, each text has a score under each draw. Texts of a length have the same draws, so their errors
        add up: that of a corpus is that of the sums of all texts under each draw.
        """
        rest = islice(texts, n_known, None) if n_known else texts
        if is_bound:
            scored = score_draws(nlp, rest, draws, batch_size=batch_size, done=n_known, keep_pieces=True)
            for doc, drawn, ends_batch in scored:
                yield KnownText(of_text(doc, drawn), {METRIC: sums_of_draws(drawn).tolist()}), ends_batch
        else:
            yield from read_docs(nlp, rest, of_scores, work, n, n_known)

    counts, sums = Counter[str](), dict[str, FloatArray]()
    drawn = defaultdict[str, Any](partial(array, "d"))  # by metric, of each text: its number and its error
    with closing(kept.each(find, n, show_progress=show_progress and is_bound)) as known_texts:
        for of_one, scores, number in known_texts:
            counts.update({"texts": 1, **of_one})
            for metric, values in scores.items() if of_one.get("pieces") else ():
                sums[metric] = sums.get(metric, 0.0) + np.array(values)
                if is_part:
                    drawn[metric].extend((number, values[1]))
    log_likelihood = {metric: float(total[0]) for metric, total in sums.items()}
    error = dict[str, float]()
    for metric, of_texts in drawn.items():
        numbers, errors = np.reshape(of_texts, (-1, 2)).T
        text = np.unique(numbers, return_inverse=True)[1]
        error[metric] = float(np.linalg.norm(np.bincount(text, errors)))  # equal texts have equal draws
    if is_bound and sums:
        log_likelihood[METRIC], error[METRIC] = bound_of(sums[METRIC])
    return Perplexity(log_likelihood=log_likelihood, standard_error=error, **dict[str, Any](counts))


def windows_of(text: str, n_words: int) -> list[str]:
    """All runs of so many words, in their order; all words if there are fewer. White space separates words."""
    words = [match.span() for match in re.finditer(r"\S+", text)]
    last = max(1, len(words) - n_words + 1) if words else 0
    return [text[words[i][0] : words[min(i + n_words, len(words)) - 1][1]] for i in range(last)]


def window_perplexities(
    nlp: Language,
    texts: Sequence[str],
    n_words: int,
    *,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
    kept: KeptScores | None = None,
) -> list[list[tuple[str, float]]]:
    """The pseudo-perplexity of every window of some words of each text, under the primary metric. The model reads each
    window alone.

    n_words (int): Words in a window (see `windows_of`). A text that has fewer is one window.
    The other arguments: as for `perplexity`.
    RETURNS (List[List[Tuple[str, float]]]): For each text, its windows in their order, and the perplexity per wordpiece
        of each; NaN without a wordpiece.

    ```python
    import spacy_pll

    [windows] = spacy_pll.window_perplexities(spacy_pll.make_pipeline(), ["The cats sleep on the old sofa."], n_words=5)
    for text, perplexity in windows:
        print(f"{perplexity:.1f} {text}")
    ```

    ```
    326.3 The cats sleep on the
    3925.3 cats sleep on the old
    17.5 sleep on the old sofa.
    ```
    """
    if n_words < 1:
        raise PLLError(f"`n_words` must be 1 or more. It is {n_words}.")
    given, tokenizer = [str(text) for text in plain_texts(texts)], get_scorer(nlp).model.load().tokenizer
    words = (word for text in given if UNSPACED_CHARACTER.search(text) for word in text.split())
    with_pieces = ((word, len(tokenizer.encode(word, add_special_tokens=False).ids)) for word in words)
    advise(clause_as_word(with_pieces, "windows", "put white space between words", None))
    windows = [windows_of(text, n_words) for text in given]
    places, kept = [(window, "", "") for of_text in windows for window in of_text], kept or KeptScores()
    kept.begin(list(dict.fromkeys(places)), "windows")
    sums = score_places(nlp, places, Work(batch_size, n_process, show_progress), kept)
    return [
        [(window, exp_or_inf(-sums[window, "", ""].per_piece().scores[0])) for window in of_text] for of_text in windows
    ]


class Window(NamedTuple):
    """A window of a text."""

    perplexity: float  # NaN without a wordpiece
    fields: Mapping[str, Any]  # columns


def window_measurements(windows: Sequence[Window], by: str, metric: str) -> list[Measurement]:
    """The mean, the maximum and the variance (of the sample) of the perplexities of the windows of each group, in the
    order in which the groups come. by (str): The column that makes the groups.
    """
    measured, name = list[Measurement](), "pseudo-perplexity"
    groups = sorted(groups_by(windows, (by,)), key=lambda group: group.members)
    for members, about in each_group({(by,): groups}):
        values = [value for i in members if not isnan(value := windows[i].perplexity)]
        spread = variance(values) if len(values) > 1 else None
        of_group = {"mean": fmean(values), "maximum": max(values)} if values else {"mean": None, "maximum": None}
        for what, value in {**of_group, "variance": spread}.items():
            measured.append(Measurement(metric, f"{what} of the {name}", value=value, **{**about, "n": len(values)}))
    return measured
