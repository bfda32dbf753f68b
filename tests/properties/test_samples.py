"""The setting `sample_words`: a part of the words, and what it says of the whole."""

import json
import math
import multiprocessing
from collections import namedtuple

import numpy as np
import pytest
import transformers as hf
from spacy.tokens import Doc, DocBin
from spacy.training import Example

import spacy_pll
from spacy_pll import get_scorer

from .. import reference
from ..conftest import PARAGRAPH, SENTENCES, change, get_tokenizer, score_placed, scores

pytestmark = pytest.mark.filterwarnings("ignore::spacy_pll.user_warnings.TextWarning")
LONG = " ".join([PARAGRAPH] * 3)  # of more pieces than the models read at once
MANY = 2000
Draw = namedtuple("Draw", "text n_drawn n_units first")


def estimate_of(sums, n_all):
    """By the textbook (Cochran 1977): the estimate of a total from units that were drawn, and its standard error."""
    n = len(sums)
    error = n_all * math.sqrt((1 - n / n_all) * np.var(sums, ddof=1) / n) if n < n_all else 0.0
    return n_all * np.mean(sums), error


def draw_of(doc):
    """How words were drawn of a text, by the names of the numbers; None if none were."""
    drawn = doc._.pll_data.get("drawn")
    return drawn and Draw(*drawn[0])


def units_of(doc):
    """The number of each token's unit; None without a wordpiece that could be drawn. All pieces of a token have one."""
    data, units = doc._.pll_data, [None] * len(doc)
    for token, unit in zip(data["token"], data["unit"], strict=True):
        assert units[token] in (None, unit)
        units[token] = unit
    return units


def drawn_units(doc):
    """The draw of a doc, the units of its tokens, and which tokens have a score."""
    return draw_of(doc), units_of(doc), [token._.pll is not None for token in doc]


def check(doc, whole, part, name="pll"):
    """A sampled doc against the same text scored whole."""
    units = {}
    assert doc._.pll_data["token"] == whole._.pll_data["token"]  # the pieces that were not drawn are known, too
    for token, other, unit in zip(doc, whole, units_of(doc), strict=True):
        assert (unit is None) == (not other._.pll_pieces)
        if unit is None:
            assert (token._.get(name), token._.pll_pieces) == (other._.get(name), other._.pll_pieces)
            continue
        units.setdefault(unit, []).append((token._.get(name), other._.get(name)))
    drawn = [values for values in units.values() if values[0][0] is not None]
    assert len(drawn) == min(len(units), max(2, round(part * len(units))))
    assert (draw_of(doc).n_drawn, draw_of(doc).n_units) == (len(drawn), len(units))
    for values in units.values():
        assert all(own is None for own, _ in values) or np.allclose(*zip(*values), atol=1e-4)
    expected = estimate_of([sum(own for own, _ in values) for values in drawn], len(units))
    found = doc._.get(f"{name}_estimate"), doc._.get(f"{name}_error")
    assert found == pytest.approx(expected, abs=1e-6)
    assert doc._.get(name) == pytest.approx(sum(own for values in drawn for own, _ in values))
    assert doc._.pll_all_pieces == whole._.pll_pieces > doc._.pll_pieces


@pytest.mark.parametrize(
    "words, tokenizer, metric",
    [
        ("spacy", "wordpiece", "word_l2r"),
        ("tokenizer", "byte-level", "whole_word"),
        ("whitespace", "unigram", "original"),
        ("piece", "wordpiece", "sentence_l2r"),
    ],
)
def test_scores_and_estimates_equal_the_brute_force_reference(make_nlp, model_folder, words, tokenizer, metric):
    architecture = {"wordpiece": "bert", "byte-level": "roberta", "unigram": "xlm-roberta"}[tokenizer]
    nlp = make_nlp(architecture, tokenizer, words=words, metrics=[metric], sample_words=0.25)
    transformer, its_tokenizer = reference.load_model(model_folder(architecture, tokenizer))
    for text in SENTENCES[:4]:
        doc = nlp(text)
        of_pieces, owner = reference.score(doc, transformer, its_tokenizer, metric, words)
        expected = np.bincount(owner, of_pieces, len(doc))
        kept = np.array([token._.pll is not None for token in doc])
        assert 0 < sum(kept) < len(doc)
        assert scores(doc)[kept] == pytest.approx(expected[kept], abs=1e-4)
        unit = np.array([-1 if unit is None else unit for unit in units_of(doc)])
        sums = [expected[unit == u].sum() for u in np.unique(unit[kept & (unit >= 0)])]
        assert (doc._.pll_estimate, doc._.pll_error) == pytest.approx(estimate_of(sums, unit.max() + 1), abs=1e-4)
        assert doc._.pll_all_pieces == len(of_pieces)


def test_the_mean_over_many_seeds_is_the_sum_and_the_errors_are_the_spread(make_nlp, model_folder):
    """Of ten texts, which are drawn by themselves and read together."""
    nlp, words = make_nlp(sample_words=0.3), SENTENCES[1].split()
    docs = [nlp.make_doc(" ".join(words[i:] + words[:i])) for i in range(10)]
    model = reference.load_model(model_folder("bert"))
    sums = [sum(reference.score(doc, *model, "word_l2r", "spacy")[0]) for doc in docs]
    estimates, errors = np.zeros((2, MANY // len(docs), len(docs)))
    for seed in range(len(estimates)):
        change(get_scorer(nlp), {"seed": seed})
        for i, doc in enumerate(nlp.get_pipe("pll").pipe(docs, batch_size=len(docs))):
            estimates[seed, i], errors[seed, i] = doc._.pll_estimate, doc._.pll_error
    apart = estimates - sums
    spread = apart.std(ddof=1)
    assert abs(apart.mean()) < 3 * spread / math.sqrt(MANY)
    assert (abs(apart.mean(axis=0)) < 4 * apart.std(axis=0, ddof=1) / math.sqrt(len(apart))).all()
    assert 1 / 1.3 < errors.mean() / spread < 1.3 and len({*estimates.round(6).flat}) > MANY / 4
    # The variance, of which the error is the root, has no bias.
    assert np.mean(errors**2) == pytest.approx(spread**2, rel=0.08)


SETTINGS = {
    "margin": {"mask_margin": 1},
    "expected": {"keep_pieces": True, "alternatives": 2, "distribution": True},
    "sentences": {"get_spans": {"@span_getters": "spacy-pll.sent_spans.v1"}},
    "strided": {"get_spans": {"@span_getters": "spacy-pll.strided_spans.v1", "window": 20, "stride": 12}},
    "metrics": {"metrics": ["original", "word_l2r", "sentence_l2r", "word_any_order", "left_context"]},
    "words of the tokenizer": {"words": "tokenizer"},
    "pieces": {"words": "piece"},
    "orders": {"metrics": ["sentence_any_order"]},
}


@pytest.mark.parametrize("given", SETTINGS)
def test_what_is_drawn_has_the_scores_of_the_whole(make_nlp, given):
    how = SETTINGS[given]
    texts = SENTENCES[:2] if given == "orders" else [*SENTENCES, PARAGRAPH, LONG]
    nlp, whole = (make_nlp(**how, **more) for more in ({"sample_words": 0.3, "seed": 5}, {}))
    for one in (nlp, whole):
        if given == "sentences":
            one.add_pipe("sentencizer", first=True)
    for doc, other in zip(nlp.pipe(texts), whole.pipe(texts)):
        for name in ("pll", *(f"pll_{metric}" for metric in how.get("metrics", []))):
            check(doc, other, 0.3, name)
        if given == "expected":
            for token, its in zip(doc, other):
                for name in ("rank", "entropy", "alternatives", "first_choices"):
                    value = its._.get(f"pll_{name}") if token._.pll is not None else None
                    value = value and [one.text for one in value] if name == "alternatives" else value
                    own = token._.get(f"pll_{name}")
                    own = own and [one.text for one in own] if name == "alternatives" else own
                    assert own == (pytest.approx(value, abs=1e-4) if name == "entropy" and value else value)
            check_record(doc._.pll_data, other._.pll_data)


def check_record(own, other):
    """All pieces are there; those that were not drawn have None for what the model says."""
    for name in ("pieces", "ids", "start", "end", "token", "word", "window"):
        assert own[name] == other[name]
    drawn = [score is not None for score in own["scores"]["word_l2r"]]
    assert 0 < sum(drawn) < len(drawn)
    for name in ("rank", "entropy", "alternatives"):
        assert [value is not None for value in own[name]] == drawn
    for value, its in zip(own["scores"]["word_l2r"], other["scores"]["word_l2r"]):
        assert value is None or value == pytest.approx(its, abs=1e-4)


@pytest.mark.parametrize("architecture", ["electra", "deberta-v2", "convbert", "fnet", "xlm", "longformer", "bart"])
def test_any_architecture(make_nlp, architecture):
    """Also those that cannot read a text once, as `mask_margin` asks."""
    nlp, whole = make_nlp(architecture, sample_words=0.4), make_nlp(architecture)
    for text in SENTENCES[:3]:
        check(nlp(text), whole(text), 0.4)


def test_a_left_to_right_model(tmp_path):
    tokenizer = get_tokenizer("causal-gpt2")
    config = hf.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=140)
    for saved in (hf.GPT2LMHeadModel(config), tokenizer):
        saved.save_pretrained(tmp_path)
    nlp, whole = (spacy_pll.make_pipeline(tmp_path, **more) for more in ({"sample_words": 0.2}, {}))
    for text in (*SENTENCES, LONG):
        check(nlp(text), whole(text), 0.2)


def test_words_that_share_passes_are_drawn_as_well(make_nlp):
    """But they are masked with others than in the whole text, so that the scores are other ones."""
    nlp = make_nlp(mask_spacing=3, sample_words=0.3)
    doc = nlp(PARAGRAPH)
    kept = [token for token in doc if token._.pll is not None]
    units = {}
    for token in kept:
        units.setdefault(units_of(doc)[token.i], []).append(token._.pll)
    expected = estimate_of([*map(sum, units.values())], draw_of(doc).n_units)
    assert (doc._.pll_estimate, doc._.pll_error) == pytest.approx(expected)


def test_the_part_of_spans(make_nlp):
    nlp, whole = make_nlp(targets="t", sample_words=0.5), make_nlp(targets="t")
    docs = [one.make_doc(PARAGRAPH) for one in (nlp, whole)]
    for one, doc in zip((nlp, whole), docs):
        doc.spans["t"] = [doc[3:12], doc[20:31]]
        one(doc)
    assert units_of(docs[0])[0] is docs[0][0]._.pll is None
    assert draw_of(docs[0]).n_units <= 20 and docs[0]._.pll_all_pieces == docs[1]._.pll_pieces
    check(docs[0], docs[1], 0.5)


@pytest.mark.parametrize("metric", ["word_l2r", "sentence_l2r"])
def test_rows_fall_in_proportion(make_nlp, metric):
    """Of 24 different texts of some 60 words, up to the luck of the draw."""
    words = PARAGRAPH.split()
    texts = [" ".join(words[i:] + words[:i]) for i in range(24)]
    rows = {}
    for part in (None, 0.1, 0.25, 0.5):
        nlp = make_nlp(metrics=[metric], sample_words=part)
        list(nlp.pipe(texts))
        rows[part] = get_scorer(nlp).predictor.counts.rows
    for part in (0.1, 0.25, 0.5):
        assert rows[part] / rows[None] == pytest.approx(part, rel=0.12)


def values(doc):
    return doc._.pll_estimate, doc._.pll_error, doc._.pll_all_pieces, doc._.pll, doc._.pll_pieces


@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="worker processes are not forked here")
def test_neither_the_batch_nor_the_process_nor_the_order_changes_the_draw(make_nlp):
    nlp = make_nlp(sample_words=0.3)
    alone = {text: drawn_units(nlp(text)) for text in (*SENTENCES, LONG)}
    for docs in (
        nlp.pipe([*SENTENCES, LONG], batch_size=2),
        nlp.pipe([LONG, *SENTENCES[::-1]]),
        nlp.pipe([*SENTENCES, LONG], n_process=2),
    ):
        for doc in list(docs):  # or else an error would leave processes
            assert drawn_units(doc) == alone[doc.text]
    other = drawn_units(make_nlp(sample_words=0.3, seed=1)(LONG))
    assert other[0].text != alone[LONG][0].text and other[2] != alone[LONG][2]


def test_the_estimates_survive_whatever_docs_do(make_nlp):
    nlp = make_nlp(sample_words=0.3, keep_pieces=True)
    docs = [nlp(text) for text in (PARAGRAPH, SENTENCES[1])]
    expected = [values(doc) for doc in docs]
    binned = DocBin(docs=docs, store_user_data=True).to_bytes()
    assert [values(doc) for doc in DocBin(store_user_data=True).from_bytes(binned).get_docs(nlp.vocab)] == expected
    assert values(Doc(nlp.vocab).from_bytes(docs[0].to_bytes())) == expected[0]
    as_json = json.loads(json.dumps(docs[0].to_json(underscore=["pll_data"])))
    again = Doc(nlp.vocab).from_json(as_json)
    assert values(again) == expected[0]
    joined = Doc.from_docs(docs)
    sums = [sum(both) for both in zip(*expected)]
    assert values(joined) == pytest.approx((sums[0], math.hypot(*(one[1] for one in expected)), *sums[2:]))
    twice = Doc.from_docs([docs[0], docs[0]])  # one draw, and no other one that its error could hide behind
    assert values(twice) == pytest.approx([2 * value for value in expected[0]])
    with docs[0].retokenize() as retokenizer:
        retokenizer.merge(docs[0][2:9])
        retokenizer.merge(docs[0][12:14])
    assert values(docs[0]) == pytest.approx(expected[0])
    assert sum(score is None for score in docs[0]._.pll_data["scores"]["word_l2r"]) > 0


def test_a_part_of_a_text_is_estimated_without_bias(make_nlp):
    """Of the tokens that `Span.as_doc` keeps, over many seeds; what was drawn elsewhere counts as 0."""
    nlp, exact = make_nlp(sample_words=0.3), make_nlp()(PARAGRAPH)[10:40]._.pll
    doc, found = nlp.make_doc(PARAGRAPH), []
    for seed in range(150):
        change(get_scorer(nlp), {"seed": seed})
        nlp.get_pipe("pll")(doc)
        part = doc[10:40].as_doc(copy_user_data=True)
        found.append((part._.pll_estimate or 0.0, part._.pll_error or 0.0))
    estimates, errors = np.array(found).T
    spread = estimates.std(ddof=1)
    assert abs(estimates.mean() - exact) < 3 * spread / math.sqrt(len(found))
    assert 1 / 1.3 < errors.mean() / spread < 1.3


def test_a_whole_text_has_no_error_and_a_later_scoring_leaves_no_draw(make_nlp):
    whole, all_of_it = make_nlp()(PARAGRAPH), make_nlp(sample_words=1)(PARAGRAPH)
    for doc in (whole, all_of_it):
        assert (doc._.pll_estimate, doc._.pll_error) == (pytest.approx(whole._.pll), 0.0)
        assert doc._.pll_all_pieces == doc._.pll_pieces
    assert draw_of(whole) is None and draw_of(all_of_it).n_units > 40
    doc = make_nlp()(make_nlp(sample_words=0.3)(PARAGRAPH))
    assert values(doc) == values(whole) and draw_of(doc) is None and "unit" not in doc._.pll_data
    for text in ("", " ", "Cat"):
        doc, whole = make_nlp(sample_words=0.3)(text), make_nlp()(text)
        assert values(doc) == values(whole) and doc._.pll_error in (0.0, None)
    assert (Doc(whole.vocab, ["a"])._.pll_estimate, Doc(whole.vocab, ["a"])._.pll_all_pieces) == (None, None)


def test_figures_of_nlp_evaluate_are_estimates(make_nlp):
    nlp = make_nlp(sample_words=0.3)
    docs = [nlp(text) for text in SENTENCES]
    figures = nlp.evaluate([Example.from_dict(nlp.make_doc(text), {}) for text in SENTENCES])
    total, pieces = (sum(doc._.get(name) for doc in docs) for name in ("pll_estimate", "pll_all_pieces"))
    assert figures["pll_mean"] == pytest.approx(total / len(docs))
    assert figures["pll_word_l2r_pppl"] == pytest.approx(math.exp(-total / pieces))


def test_what_compares_whole_texts_says_so_before_it_scores(make_nlp, monkeypatch):
    nlp = make_nlp(sample_words=0.3)
    monkeypatch.setattr(type(get_scorer(nlp).predictor), "submit", None)
    texts = ["It sat.", "It sit."]
    for use in (
        lambda: spacy_pll.minimal_pairs(nlp, [texts]),
        lambda: spacy_pll.compare(nlp, *texts),
        lambda: spacy_pll.window_perplexities(nlp, texts, 2),
        lambda: spacy_pll.perplexity(spacy_pll.make_pipeline(nlp, **{"words": "piece"}), texts, n_passes=8),
        lambda: list(score_placed(nlp, [("sat", "It ", "")])),
    ):
        with pytest.raises(ValueError, match="`sample_words` scores a part|are for a bound"):
            use()


def test_what_does_not_need_whole_texts_is_as_without(make_nlp):
    """A candidate is one unit, and gaps and bounds ask for what they need."""
    nlp, other = make_nlp(sample_words=0.3), make_nlp()
    candidates = [
        spacy_pll.score_continuations(one, "The", ["old souvenir", "traveler"], " sat.") for one in (nlp, other)
    ]
    assert [one.score for one in candidates[0]] == pytest.approx([one.score for one in candidates[1]])
