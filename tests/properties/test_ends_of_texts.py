"""White space at the end of a text, and U+FEFF at either end, are not read: the scores are those of the bare text, by
every architecture and in every way to score.
"""

from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

import spacy_pll
from spacy_pll import Choice, InputError, Option, Suite, Unigrams, WordTable, get_scorer, make_pipeline, visualize
from spacy_pll.analysis.normalised import NORMALISATIONS, WITH_UNIGRAMS
from spacy_pll.scoring.wordpieces import get_wordpieces, read_part
from spacy_pll.stream.contexts import TextInContext
from spacy_pll.tables.words import WordRows

from ..conftest import ALL_ARCHITECTURES, REAL_TOKENIZERS, TINY_TOKENIZERS, UNITS, get_tokenizer, odd_text, score_placed
from ..language_model.running.test_group_attention import UNABLE
from ..language_model.test_causal import CAUSAL, causal_folder  # noqa: F401  # a fixture
from ..language_model.test_causal import make_nlp as make_causal
from ..reference import bounds

# Its last token is a word: spaCy makes one token of a full stop and a U+FEFF behind it.
BARE = "Dr. Smith can't lose the souvenir"
ENDS = [
    "\n", "\r\n", "\t", " ", "  ", "\u00a0", "\u3000", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1f", "\u1680",
    "\u2003", "\u202f", "\u205f", "\ufeff", "\n\n", " \n", "\t \u3000\r\n", "\n\ufeff", "\ufeff\n", " \ufeff\u00a0",
]  # fmt: skip
WITH_ENDS = [BARE + end for end in ["", *ENDS]]
WHITE = [chr(c) for c in range(0x3001) if chr(c).isspace()] + ["\ufeff"]
white_space = st.lists(st.sampled_from(WHITE), min_size=1, max_size=6).map("".join)
bare_text = odd_text.map(lambda text: text[slice(*bounds(text))])


def numbers_of(docs):
    """The score and the wordpieces of each doc, and of each of its tokens that has a piece."""
    return [
        [doc._.pll, doc._.pppl, doc._.pll_pieces, *(token._.pll for token in doc if token._.pll_pieces)] for doc in docs
    ]


def in_sentences(nlp, texts):
    """Each text is a sentence before another one."""
    docs = [Doc.from_docs([nlp.make_doc(text), nlp.make_doc("It left.")], ensure_whitespace=False) for text in texts]
    for doc in docs:
        for token in doc:
            token.is_sent_start = token.i in (0, len(doc) - 3)
    return [[doc[:-3]._.pll, doc[-3:]._.pll] for doc in make_pipeline(nlp, spans="sents").pipe(docs)]


def as_docs(nlp, texts):
    """Each text is a part of a doc, which becomes a doc."""
    return numbers_of(nlp.pipe(nlp.make_doc(f"He left. {text}")[3:].as_doc() for text in texts))


def with_targets(nlp, texts):
    docs = [nlp.make_doc(text) for text in texts]
    for doc in docs:
        doc.spans["some"] = [doc[4:]]
    return numbers_of(make_pipeline(nlp, targets="some", units="some").pipe(docs))


def sampled(nlp, texts):
    docs = make_pipeline(nlp, sample_words=0.5).pipe(texts)
    return [[doc._.pll, doc._.pll_estimate, doc._.pll_error] for doc in docs]


def in_pairs(nlp, texts):
    return sums_and_pieces(spacy_pll.minimal_pairs(nlp, [(text, text.replace("the", "a")) for text in texts]))


def in_choices(nlp, texts):
    """The text stands after a context, or behind another text."""
    items = [Choice([Option(text, "It is so."), Option("It is so.", after=text)]) for text in texts]
    return sums_and_pieces(spacy_pll.choices(nlp, items))


def sums_and_pieces(found):
    """Of a suite, by item, each of which has two texts or parts."""
    numbers = [column.reshape(-1, 2) for one in found.scores.values() for column in (one.sums, one.pieces)]
    return np.concatenate(numbers, axis=1).tolist()


class Halves(Suite):
    """Each text has two parts, of which the second has its end."""

    def __init__(self, texts):
        self.texts = [TextInContext(text, "It is so.", parts=[(0, 4), (4, len(text))]) for text in texts]

    def measurements(self, scores):
        return []

    def rows(self, scores):
        return iter(())


def rescored(nlp, texts):
    rows = [{"hypotheses": [{"text": text, "score": -1.0}], "context": "It is so."} for text in texts]
    found = [row["hypotheses"][0] for row in spacy_pll.rescore(nlp, rows, 0.5)]
    return [[one["pll"], one["pieces"], one["rescored"]] for one in found]


def candidates_before(nlp, end):
    return [[one.score, one.pieces] for one in spacy_pll.score_continuations(nlp, "It lost", ["the", "a"], end)]


def in_gaps(nlp, texts):
    found = spacy_pll.slots(nlp, texts, ["carnivore", "traveler", "the souvenir"])
    return [[(one.score, one.pieces) for one in sorted(some, key=lambda one: one.text)] for some in found]


def bounded(nlp, texts):
    found = spacy_pll.log_probability_bounds(nlp, [*texts, *((text, "It is ", "") for text in texts)], n_pairs=2)
    return list(zip(found[: len(texts)], found[len(texts) :]))


def perplexities(nlp, texts):
    """Not those of words, of which a U+FEFF between white space is one."""
    found = [spacy_pll.perplexity(nlp, [text]) for text in texts]
    return [[*one.per_piece.values(), *one.per_byte.values(), one.bytes, one.pieces] for one in found]


def of_windows(nlp, texts):
    """Those of the text itself: a U+FEFF between white space is a word, and in others."""
    return [[value for _, value in some[:5]] for some in spacy_pll.window_perplexities(nlp, texts, 2)]


def normalised(nlp, texts):
    tokenizer = get_scorer(nlp).model.load().tokenizer
    counts = [Unigrams.count(tokenizer, [text]) for text in texts]
    docs = make_pipeline(nlp, keep_pieces=True).pipe(texts)
    return [
        [spacy_pll.normalise(doc, method, of if method in WITH_UNIGRAMS else None) for method in NORMALISATIONS]
        for doc, of in zip(docs, counts)
    ]


def of_words(nlp, texts):
    scorer = get_scorer(nlp)
    rows = WordRows("text", scorer.names, scorer.settings, table=WordTable(log_frequency=False))
    return [[row["surprisal"] for row in rows.of(doc) if row["pll_pieces"]] for doc in nlp.pipe(texts)]


def by_lm_eval(nlp, texts):
    pytest.importorskip("lm_eval")
    from lm_eval.api.instance import Instance

    from spacy_pll.lm_eval import PLL

    lm = PLL(make_pipeline(nlp, ["original"]), show_progress=False)
    whole = lm.loglikelihood_rolling([Instance("loglikelihood_rolling", {}, (text,), 0) for text in texts])
    after = lm.loglikelihood([Instance("loglikelihood", {}, ("It is so.", f" {text}"), 0) for text in texts])
    return [[one, other] for one, (other, _) in zip(whole, after)]


def by_ray(nlp, texts):
    pytest.importorskip("ray")
    pa = pytest.importorskip("pyarrow")
    from spacy_pll.distributed import Worker

    rows = Worker(lambda: nlp, "text")(pa.table({"text": texts})).to_pylist()
    assert [row["error"] for row in rows] == [None] * len(texts)
    return [[row["pll_pieces"], row["pppl"]] for row in rows]


WAYS = {
    "nlp": lambda nlp, texts: numbers_of(map(nlp, texts)),
    "nlp.pipe": lambda nlp, texts: numbers_of(nlp.pipe(texts)),
    "score": lambda nlp, texts: [[*one.scores.values(), one.pieces] for one in spacy_pll.score(texts, nlp)],
    "score_docs": lambda nlp, texts: numbers_of(spacy_pll.score_docs(nlp, texts, 100)),
    "sentences": in_sentences,
    "as_doc": as_docs,
    "targets and units": with_targets,
    "sample_words": sampled,
    "after a context": lambda nlp, texts: numbers_of(score_placed(nlp, [(text, "It is so. ", "") for text in texts])),
    "before the end": lambda nlp, texts: numbers_of(score_placed(nlp, [("It is so.", "", f" {one}") for one in texts])),
    "minimal_pairs": in_pairs,
    "choices": in_choices,
    "suite": lambda nlp, texts: sums_and_pieces(spacy_pll.score_suite(nlp, Halves(texts))),
    "rescore": rescored,
    "perplexity": perplexities,
    "window_perplexities": of_windows,
    "normalise": normalised,
    "words": of_words,
    "masked_texts": lambda nlp, texts: [[one.log_prob for one in visualize.masked_texts(nlp, text)] for text in texts],
    "Ray": by_ray,
    "score_continuations": lambda nlp, texts: [candidates_before(nlp, text[len(BARE) :]) for text in texts],
    "slots": lambda nlp, texts: in_gaps(nlp, [f"___ {text}" for text in texts]),
    "slots at the end": lambda nlp, texts: in_gaps(nlp, [f"It lost the ___{text[len(BARE) :]}" for text in texts]),
    "bounds": bounded,
    "mask_margin": lambda nlp, texts: numbers_of(make_pipeline(nlp, mask_margin=1).pipe(texts)),
    "lm_eval": by_lm_eval,
}
# What left-to-right models do not do.
OF_MASKS = ["slots", "slots at the end", "bounds", "mask_margin", "lm_eval"]
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*W101", "ignore:.*a full stop or the like stands behind", "ignore:.*they are the same wordpieces"
)


def check(nlp, way):
    """Another length is in another batch, so numbers may differ by rounding."""
    found = WAYS[way](nlp, WITH_ENDS)
    bare, *others = ([np.nan if value is None else value for value in np.ravel(one)] for one in found)
    assert len(others) == len(ENDS) and np.isfinite(bare).any()
    for end, numbers in zip(ENDS, others):
        np.testing.assert_allclose(numbers, bare, atol=1e-4, rtol=1e-4, err_msg=repr(end))


def in_some_ways():
    """RoBERTa and its kin in all ways; each other architecture in a third of them, and with `nlp.pipe`."""
    for n, (architecture, way) in enumerate(product(ALL_ARCHITECTURES, WAYS)):
        always = "roberta" in architecture or way == "nlp.pipe"
        if (always or n % 3 == 0) and not (way == "mask_margin" and architecture in UNABLE):
            yield pytest.param(architecture, way, marks=[] if always else pytest.mark.slow)


@pytest.mark.parametrize(("architecture", "way"), in_some_ways())
def test_scores_are_those_of_the_bare_text(make_nlp, architecture, way):
    check(make_nlp(architecture, metrics=["word_l2r", "original"]), way)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(name, way, marks=[] if name == "gpt2" else pytest.mark.slow)
        for name in CAUSAL
        for way in WAYS
        if way not in OF_MASKS
    ],
)
def test_scores_of_left_to_right_models(causal_folder, name, way):  # noqa: F811
    check(make_causal(causal_folder(name)), way)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "deberta-v2", "modernbert"])
def test_any_text_with_any_ends_has_the_scores_of_the_bare_one(make_nlp, architecture):
    """Words are those of the model's tokenizer: spaCy's word may go on with a U+FEFF behind it."""
    nlp = make_nlp(architecture, metrics=["word_l2r", "original"], words="tokenizer", keep_pieces=True)

    @given(bare=bare_text, marks=st.integers(0, 2), end=white_space)
    def of_any(bare, marks, end):
        text = "\ufeff" * marks + bare + end
        docs = bare_doc, doc = list(nlp.pipe([bare, text]))
        assert doc.text == text and doc._.pll_pieces == sum(token._.pll_pieces for token in doc)
        assert doc._.pll_pieces == (bare_doc._.pll_pieces or 0)
        bare_data, data = ((one._.pll_data if len(one) else {"ids": []}) for one in docs)
        assert data["ids"] == bare_data["ids"]
        if data["ids"]:
            assert data["word"] == bare_data["word"]
            assert all(data[name] == [place + marks for place in bare_data[name]] for name in ("start", "end"))
            for metric, values in data["scores"].items():
                np.testing.assert_allclose(values, bare_data["scores"][metric], atol=1e-4)

    of_any()


@pytest.mark.core
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", [*TINY_TOKENIZERS, "causal-gpt2", "causal-llama2", *REAL_TOKENIZERS, "gpt2"])
def test_the_tokenizer_gets_no_more_than_is_read(name, unit):
    nlp, backend, asked = spacy.blank("en"), get_tokenizer(name).backend_tokenizer, []

    def encode_batch(texts, **options):
        asked.append(texts)
        return backend.encode_batch(texts, **options)

    def encode(text):
        assert not text or text in asked[-1]
        return backend.encode(text)

    recorder = SimpleNamespace(encode_batch=encode_batch, encode=encode)

    @given(text=odd_text, end=white_space)
    def of_any(text, end):
        doc = nlp.make_doc(text + end)
        pieces = get_wordpieces([doc[:]], recorder, unit)
        begin, until = bounds(text + end)
        assert asked.pop() == [doc.text[begin:until]] and (begin, until) == read_part(text + end)
        assert len(pieces) == 0 or until > begin
        assert begin <= min(pieces.start, default=begin) and max(pieces.end, default=until) <= until
        after = [token.i for token in doc if token.idx >= until]
        assert not {*pieces.token} & {*after}

    of_any()


def test_a_piece_of_a_full_stop_and_a_line_break_is_not_made():
    """Some tokenizers have such pieces, so it would be too late to leave out pieces of white space."""
    nlp, tokenizer = spacy.blank("en"), Tokenizer(BPE({"a": 0, ".": 1, "Ċ": 2, ".Ċ": 3}, [(".", "Ċ")]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    docs = [nlp.make_doc(text) for text in ("a.", "a.\n", "a.\na")]
    assert [get_wordpieces([doc[:]], tokenizer, "spacy").ids.tolist() for doc in docs] == [[0, 1], [0, 1], [0, 3, 0]]


def test_other_white_space_is_read(make_nlp):
    """At the beginning, inside, and before what follows; and what has no width is text."""
    nlp = make_nlp("roberta", metrics=["original"])
    texts = ["It left.", "\nIt left.", "It\n left.", "It left.\u200b", "\u200bIt left.", "It\ufeff left."]
    bare, *others = nlp.pipe(texts)
    assert all(doc._.pll_pieces > bare._.pll_pieces for doc in others)
    places = [("It left", "", f"{white}. ") for white in ("", "\n", "\u00a0", " \n")]
    values = {round(doc._.pll, 3) for doc in score_placed(nlp, places)}
    assert len(values) == len(places)


@pytest.mark.filterwarnings("ignore:.*white space stands before one option")
@pytest.mark.parametrize("architecture", ["bert", "roberta", "deberta-v2"])
def test_white_space_alone_is_as_an_empty_text(make_nlp, architecture):
    nlp = make_nlp(architecture, metrics=["word_l2r"])
    texts = ["", *ENDS]
    for doc in nlp.pipe(texts):
        assert (doc._.pll, doc._.pppl, doc._.pll_pieces or 0) == (None, None, 0)
        assert [token._.pll_pieces for token in doc] == [0] * len(doc) == [token._.pll for token in doc]
    assert [(one.score, one.pieces) for one in spacy_pll.score(texts, nlp)] == [(None, 0)] * len(texts)
    found = spacy_pll.perplexity(nlp, texts)
    assert (found.empty_texts, found.pieces, found.bytes, found.log_likelihood) == (len(texts), 0, 0, {})
    assert spacy_pll.log_probability_bounds(nlp, texts) == [None] * len(texts)
    for text in texts:
        with pytest.raises(InputError, match="is empty|has no wordpiece of its own"):
            spacy_pll.minimal_pairs(nlp, [("It left.", text), ("It", "It left.")])
        with pytest.raises(InputError, match="is empty|has no wordpiece of its own"):
            spacy_pll.choices(nlp, [Choice([Option("left.", "It"), Option(text, "It")])])
        hypotheses = [{"text": text, "score": -2.0}, {"text": "It", "score": -1.0}]
        rows = spacy_pll.rescore(nlp, [{"hypotheses": hypotheses}], 0.5)
        assert [one["pieces"] for one in rows[0]["hypotheses"]] == [nlp("It")._.pll_pieces, 0]


def test_windows_of_tokens_end_before_white_space(make_nlp):
    """A window that ends with a line break is read as one that ends before it."""
    spans = {"@span_getters": "spacy-pll.strided_spans.v1", "window": 4, "stride": 4}
    nlp, alone = make_nlp("roberta", get_spans=spans), make_nlp("roberta")
    doc, parts = nlp("It has left\nIt has left\n"), alone("It has left")
    assert len(doc) == 8 and [doc[i]._.pll_pieces for i in (3, 7)] == [0, 0]
    assert [doc[:4]._.pll, doc[4:]._.pll] == pytest.approx([parts._.pll] * 2, abs=1e-4)


def test_whatever_tokenizes_texts_cuts_them():
    """Wordpieces are counted after the same cut. A tokenizer that is written in Python has the method of this name."""
    package = Path(spacy_pll.__file__).parent
    using = {path.stem for path in package.rglob("*.py") if "encode_batch" in path.read_text(encoding="utf8")}
    assert using == {"wordpieces", "unigrams", "slow_tokenizers"}
