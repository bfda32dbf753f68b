import math
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from itertools import permutations
from typing import ClassVar

import catalogue
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import score
from spacy_pll.metrics import (
    BUILTIN_METRICS,
    BUILTINS,
    MAX_EXACT,
    ORDER_PAIRS,
    any_order,
    check_within_words,
    get_metric,
    one_row_per_piece,
    original,
    pll_metrics,
)

from . import reference
from .conftest import PARAGRAPH, SENTENCES
from .reference import is_masked

pytestmark = pytest.mark.core

METRICS = ["original", "word_l2r", "whole_word", "sentence_l2r"]
WITHIN_WORDS = ["original", "word_l2r", "word_r2l", "whole_word", "word_any_order"]
words = st.lists(st.booleans(), max_size=30).map(lambda new: np.cumsum([0, *new]))


@given(word=words)
@pytest.mark.parametrize("name", [*METRICS, "word_r2l"])
def test_masks_are_those_of_the_paper(name, word):
    rows = get_metric(name).mask_rows(word)
    assert rows.target.tolist() == list(range(len(word)))
    assert (rows.weight == 1).all()
    expected = [[is_masked(name, i, t, word) for i in range(len(word))] for t in range(len(word))]
    assert rows.masked.tolist() == expected


def test_souvenir_by_hand():
    # The traveler lost the so ##uven ##ir .
    word = np.array([0, 1, 2, 3, 4, 4, 4, 5])
    masked = {name: np.flatnonzero(get_metric(name).mask_rows(word).masked[5]).tolist() for name in METRICS}
    assert masked == {"original": [5], "word_l2r": [5, 6], "whole_word": [4, 5, 6], "sentence_l2r": [5, 6, 7]}


@given(word=words)
@pytest.mark.parametrize("name", WITHIN_WORDS)
def test_rows_mask_the_target_and_otherwise_its_word(name, word):
    rows = get_metric(name).mask_rows(word)
    assert get_metric(name).within_words
    assert rows.masked[np.arange(len(rows.target)), rows.target].all()
    assert (rows.masked <= (word[rows.target][:, None] == word)).all()
    np.testing.assert_allclose(np.bincount(rows.target, rows.weight), np.ones(len(word)))


@pytest.mark.parametrize("k", range(1, MAX_EXACT + 1))
def test_any_order_weighs_as_all_orders_do(k):
    expected = {}
    for order in permutations(range(k)):
        for n, target in enumerate(order):
            question = target, frozenset(order[n:])
            expected[question] = expected.get(question, 0) + 1 / math.factorial(k)
    rows = any_order(k)
    found = {(t, frozenset(np.flatnonzero(m))): w for t, m, w in zip(rows.target.tolist(), rows.masked, rows.weight)}
    assert len(found) == len(rows.target) and found.keys() == expected.keys()
    assert all(found[question] == pytest.approx(weight) for question, weight in expected.items())
    assert len(np.unique(rows.masked, axis=0)) == 2**k - 1


@pytest.mark.parametrize("k", [MAX_EXACT + 1, 12])
def test_long_words_have_a_few_orders_and_their_reverses(k):
    rows = any_order(k)
    n_orders = 2 * ORDER_PAIRS
    assert (rows.weight == 1 / n_orders).all() and len(rows.target) == n_orders * k
    # Piece t comes earlier the more pieces are masked with it.
    orders = [np.argsort(-masked.sum(axis=1)).tolist() for masked in rows.masked.reshape(n_orders, k, k)]
    for order, masked in zip(orders, rows.masked.reshape(n_orders, k, k)):
        assert all(set(np.flatnonzero(masked[t])) == set(order[n:]) for n, t in enumerate(order))
    assert all(order[::-1] == other for order, other in zip(orders[:ORDER_PAIRS], orders[ORDER_PAIRS:]))
    assert len({tuple(order) for order in orders}) == n_orders


def test_the_orders_of_a_long_word_do_not_change():
    # They are part of what the metric is: another draw would give other scores.
    assert np.argsort(-any_order(7).masked[:7].sum(axis=1)).tolist() == [2, 5, 0, 4, 6, 1, 3]
    assert ORDER_PAIRS == 8


def test_a_words_any_order_rows_do_not_depend_on_where_it_stands():
    metric = get_metric("word_any_order")
    alone, later = (metric.mask_rows(np.array(word)) for word in ([0] * 8, [0, 1, 1, *[2] * 8, 3]))
    mine = (later.target >= 3) & (later.target < 11)
    assert (later.masked[mine][:, 3:11] == alone.masked).all() and (later.target[mine] - 3 == alone.target).all()


@pytest.mark.parametrize("name", ["sentence_l2r", "left_context", "sentence_any_order", "causal", "unmasked"])
def test_metrics_that_cannot_share_passes_say_so(name):
    with pytest.raises(
        ValueError, match=f"{name}' does not mask within words.*Leave out `mask_spacing`.*word_any_order"
    ):
        check_within_words(name, "mask_spacing")


def test_metrics_that_share_passes_or_do_not_say(add_metric):
    for name in WITHIN_WORDS:
        check_within_words(name, "mask_spacing")
    add_metric("silent", lambda word: original(word))
    check_within_words("silent", "mask_spacing")


def test_which_metrics_show_what_follows(add_metric):
    for name, masked_of in [
        ("all_in_reach", lambda i, t: (i >= t) & (i < t + 20)),
        ("all_but_next", lambda i, t: (i >= t) & (i != t + 1)),
        ("none_before", lambda i, t: i <= t),
        ("all", lambda i, t: i == i + 0 * t),
        ("nothing", lambda i, t: i != i + 0 * t),
    ]:
        add_metric(name, lambda word, f=masked_of: one_row_per_piece(f(*np.indices((len(word),) * 2)[::-1])))
    shown = {name: get_metric(name).shows_what_follows for name in pll_metrics.get_all()}
    assert {name for name in shown if not shown[name]} == {"sentence_l2r", "left_context", "causal", "all"}


@pytest.mark.parametrize("name", sorted({*BUILTIN_METRICS} - {"causal"}))
def test_no_pieces(name):
    assert get_metric(name).mask_rows(np.zeros(0, dtype=int)).masked.shape == (0, 0)


def test_which_metrics_look_at_words():
    looking = {name for name in pll_metrics.get_all() if get_metric(name).depends_on_words}
    assert looking == {"word_l2r", "word_r2l", "whole_word", "word_any_order"}


def test_unknown_metric_lists_the_known_ones():
    with pytest.raises(ValueError, match="metric 'surprisal'. Surprisal is minus .*word_l2r"):
        get_metric("surprisal")
    with pytest.raises(ValueError, match="Unknown PLL metric 'WORD_LR2'. Similar: .*word_l2r.* Set"):
        get_metric("WORD_LR2")
    with pytest.raises(ValueError, match="Unknown PLL metric 'word_r2x'.*original.*word_l2r"):
        get_metric("word_r2x")


def test_registry_holds_the_four_of_the_paper():
    assert set(METRICS) <= set(pll_metrics.get_all())


def test_the_module_registers_its_metrics_itself():
    """Without the entry points, too, which an installed package has and a folder on the path does not."""
    registered = {key[-1] for key in catalogue.REGISTRY if key[:2] == ("spacy", "pll_metrics")}
    expected = {*METRICS, "word_r2l", "left_context", "causal", "word_any_order", "sentence_any_order", "unmasked"}
    assert expected <= registered and expected == set(BUILTIN_METRICS)


def test_a_second_metric_of_one_name_is_refused(add_metric, monkeypatch):
    """catalogue would go on with the one of an entry point, which each of the built-in ones has."""
    for name in ("word_l2r", "original"):
        add_metric(name, lambda word: BUILTINS["sentence_l2r"](word))
        with pytest.raises(ValueError, match=rf"name '{name}': spacy_pll\.metrics\.{name} and .*under another name"):
            get_metric(name)
    theirs = [EntryPoint("shared", f"spacy_pll.metrics:{name}", "spacy_pll_metrics") for name in ("causal", "original")]
    monkeypatch.setattr("spacy_pll.metrics._entry_points", lambda: EntryPoints(theirs))
    with pytest.raises(ValueError, match="metrics.causal and spacy_pll.metrics.original"):
        get_metric("shared")
    theirs.pop()
    assert get_metric("shared").function is BUILTINS["causal"]


@pytest.mark.slow
def test_a_metric_of_another_package_is_found_by_its_entry_point(tmp_path):
    """In a process of its own: some versions of catalogue read the entry points when they are imported."""
    package = tmp_path / "theirs-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[spacy_pll_metrics]\ntheirs = spacy_pll.metrics:whole_word\n")
    code = "from spacy_pll.metrics import get_metric; print(get_metric('theirs').name)"
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert result.stdout == "whole_word\n", result.stderr


@dataclass  # compared by value, so it has no hash
class ByValue:
    shift: int
    within_words: ClassVar[bool] = True

    def __call__(self, word):
        return original(word)


@pytest.mark.parametrize("how", [{}, {"mask_spacing": 3}, {"mask_margin": 1}])
def test_a_metric_that_has_no_hash(make_nlp, monkeypatch, how):
    for name in ("by_value", "by_value_too"):
        monkeypatch.setitem(catalogue.REGISTRY, ("spacy", "pll_metrics", name), ByValue(0))
    text = "The traveler lost the souvenir, unbelievably. " * 20  # in windows
    doc = make_nlp("bert", metrics=["by_value", "original", "by_value_too"], **how)(text)
    assert doc._.pll_by_value == doc._.pll_by_value_too == pytest.approx(doc._.pll_original, abs=1e-3)


def test_a_metric_that_has_no_hash_may_change(make_nlp, monkeypatch):
    """What was found of it is not kept, which would be a score of another metric than it is now."""

    @dataclass
    class Changed(ByValue):
        def __call__(self, word):
            return BUILTINS["whole_word" if self.shift else "original"](word)

    changed = Changed(0)
    monkeypatch.setitem(catalogue.REGISTRY, ("spacy", "pll_metrics", "changed"), changed)
    nlp = make_nlp("bert", metrics=["changed", "original", "whole_word"])
    before = nlp("The souvenir.")
    changed.shift = 1
    after = nlp("The souvenir.")
    assert before._.pll_changed == pytest.approx(before._.pll_original, abs=1e-4)
    assert after._.pll_changed == pytest.approx(after._.pll_whole_word, abs=1e-4)
    assert after._.pll_whole_word != pytest.approx(after._.pll_original, abs=1e-3)


def test_what_a_metric_says_of_itself_can_be_corrected(add_metric):
    """A message says so; what was found is kept for as long as the metric says the same."""

    def all_but_own_word(word):
        return one_row_per_piece(word[:, None] != word)

    all_but_own_word.within_words = True
    add_metric("corrected", all_but_own_word)
    metric = get_metric("corrected")
    assert get_metric("corrected") is metric
    with pytest.raises(ValueError, match="'all_but_own_word' says that it masks within words.*`within_words` to False"):
        metric.check_claim()
    all_but_own_word.within_words = False
    assert get_metric("corrected").within_words is False
    with pytest.raises(ValueError, match="'corrected' does not mask within words"):
        check_within_words("corrected", "mask_margin")


@pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert", "deberta-v2"])
def test_unmasked_reads_a_text_once(make_nlp, architecture):
    """By transformers alone: a text is read as it is, and each piece has the probability that it has there."""
    nlp = make_nlp(architecture, metrics=["unmasked", "original"])
    texts = [*SENTENCES, PARAGRAPH[:150]]
    transformer, tokenizer = reference.load_model(nlp.get_pipe("pll").model.name)
    docs = list(nlp.pipe(texts))
    for doc in docs:
        scores, tokens = reference.score(doc, transformer, tokenizer, "unmasked", "spacy")
        sums = np.bincount(tokens, scores, len(doc))
        assert [token._.pll for token in doc] == pytest.approx(sums.tolist(), abs=1e-4)
        assert doc._.pll_unmasked == pytest.approx(sum(scores), abs=1e-4) and doc._.pll != doc._.pll_original
    alone = make_nlp(architecture, metrics=["unmasked"])
    predictor = alone.get_pipe("pll").predictor
    list(alone.pipe(texts))
    assert predictor.counts.rows == len({doc.text for doc in docs})
    assert predictor.counts.targets == sum(doc._.pll_pieces for doc in docs)


def test_unmasked_wherever_scores_are_asked(make_nlp):
    nlp, text = make_nlp(metrics=["unmasked"]), PARAGRAPH[:150]
    (result,) = score([text], nlp)
    assert result.score == pytest.approx(nlp(text)._.pll)
    sentences = make_nlp(metrics=["unmasked"], get_spans={"@span_getters": "spacy-pll.sent_spans.v1"})
    sentences.add_pipe("sentencizer", first=True)
    doc = sentences(PARAGRAPH)
    for sentence in doc.sents:
        assert sentence._.pll == pytest.approx(nlp(sentence.text)._.pll, abs=1e-4)
    part = make_nlp(metrics=["unmasked"], targets="part")
    doc = part.make_doc(text)
    doc.spans["part"] = [doc[2:5]]
    whole, doc = nlp(text), part(doc)
    assert [token._.pll for token in doc[2:5]] == pytest.approx([token._.pll for token in whole[2:5]], abs=1e-5)
    assert doc[5]._.pll is None
    for setting in ("mask_spacing", "mask_margin"):
        with pytest.raises(ValueError, match=f"'unmasked' does not mask within words.*Leave out `{setting}`"):
            make_nlp(metrics=["unmasked"], **{setting: 1})
