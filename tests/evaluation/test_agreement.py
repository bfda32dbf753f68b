import json
from dataclasses import asdict
from functools import partial

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import compare_margins, get_scorer, perplexity
from spacy_pll.cli.agree import differences
from spacy_pll.evaluation.agreement import agree, level_agreement
from spacy_pll.pipelines import PipelineSettings, parse_settings

from ..conftest import PARAGRAPH, SENTENCES

TEXTS = [*SENTENCES, PARAGRAPH, "", " ", "The souvenir!"]


@pytest.fixture
def exact(make_nlp):
    return make_nlp("bert", keep_pieces=True)


def test_any_pipelines_are_compared_and_stay_as_they_are(make_nlp):
    nlp = make_nlp("bert")
    result = agree(nlp, make_nlp("bert", mask_spacing=4), TEXTS)
    assert result.piece is not None and result.piece.n > 0
    assert not get_scorer(nlp).settings.keep_pieces and "pieces" not in nlp("A text.")._.pll_data


def test_forward_passes_are_those_of_the_model(make_nlp):
    """And not the rows in them."""
    first, second = make_nlp("bert"), make_nlp("bert", max_batch_tokens=128)
    passes = [0, 0]
    for i, nlp in enumerate((first, second)):
        get_scorer(nlp).initialize()

        def count(*_, i=i):
            passes[i] += 1

        get_scorer(nlp).model.loaded.forward.model.base_model.register_forward_pre_hook(count)
    result = agree(first, second, TEXTS)
    assert [run.forward_passes for run in result.scorers] == passes
    assert 0 < passes[0] < passes[1] < result.scorers[1].scored_pieces


@pytest.mark.core
@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 1000))
def test_values_of_a_level_are_those_of_numpy(n, texts, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(-500, 3, n)
    b = 0.8 * a + rng.normal(0, 1, n)
    found = level_agreement(a, b, rng.integers(0, texts, n), rng)
    assert found.n == n and found.r == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-9)
    assert found.mean_difference == pytest.approx((b - a).mean())
    assert found.mean_absolute_difference == pytest.approx(np.abs(b - a).mean())


@pytest.mark.core
def test_intervals_are_about_other_texts():
    rng = np.random.default_rng(0)
    text = np.repeat(np.arange(200), 10)
    a = rng.normal(size=2000)
    shift = rng.normal(size=200)[text]  # the pieces of a text err together
    found = level_agreement(a, a + shift, text, np.random.default_rng(1))
    low, high = found.mean_difference_interval
    # The standard error of a mean of 200 shifts, not of 2,000.
    assert low < found.mean_difference < high and (high - low) / 4 == pytest.approx(shift.std() / 200**0.5, rel=0.15)
    assert found.r_interval[0] < found.r < found.r_interval[1]
    again = level_agreement(a, a + shift, text, np.random.default_rng(1))
    assert again == found
    one = level_agreement(a[:10], a[:10] + 1, text[:10], rng)
    assert one.r == pytest.approx(1) and one.r_interval is None
    constant = level_agreement(np.ones(5), np.ones(5), np.arange(5), rng)
    assert constant.r is None and constant.mean_difference_interval == (0, 0)


def test_a_scorer_agrees_with_itself(exact, make_nlp):
    result = agree(exact, make_nlp("bert", keep_pieces=True), TEXTS)
    assert result.texts == len(TEXTS) and json.loads(json.dumps(asdict(result)))["texts"] == len(TEXTS)
    for level in (result.piece, result.word, result.text, result.text_mean):
        assert level.r == pytest.approx(1) and level.mean_absolute_difference < 1e-6
    first, second = result.scorers
    assert first.forward_pieces == second.forward_pieces > first.scored_pieces > 0


def test_values_come_from_the_attributes(exact, make_nlp):
    fast = make_nlp("bert", keep_pieces=True, mask_spacing=4)
    docs = [list(nlp.pipe(TEXTS)) for nlp in (exact, fast)]
    result = agree(exact, fast, iter(TEXTS), labels=("exact", "fast"), batch_size=2)
    pieces = [np.concatenate([d._.pll_data["scores"]["word_l2r"] for d in own]) for own in docs]
    words = [np.array([t._.pll for d in own for t in d if t._.pll_pieces]) for own in docs]
    texts = [np.array([d._.pll for d in own if d._.pll_pieces]) for own in docs]
    means = [np.array([d._.pll / d._.pll_pieces for d in own if d._.pll_pieces]) for own in docs]
    for level, (a, b) in zip(("piece", "word", "text", "text_mean"), (pieces, words, texts, means)):
        assert getattr(result, level).n == len(a)
        assert getattr(result, level).r == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-6)
        assert getattr(result, level).mean_difference == pytest.approx((b - a).mean(), abs=1e-5)
    assert [scorer.settings["mask_spacing"] for scorer in result.scorers] == [None, 4]
    assert result.scorers[1].forward_passes < result.scorers[0].forward_passes
    found = result.tokens
    assert len(found) == 20
    differences = np.abs(words[1] - words[0])
    expected = np.sort(differences)[::-1][:20]
    np.testing.assert_allclose([abs(one.difference) for one in found], expected, atol=1e-5)
    for one in found:
        assert one.before + one.token + one.after in TEXTS[one.text]


def test_other_tokenizers_are_compared_by_word(exact, make_nlp):
    result = agree(exact, make_nlp("roberta", keep_pieces=True), TEXTS)
    assert result.piece is None and result.word.n > 20
    assert "different wordpieces" in differences(result)
    assert all("by piece" not in one.measure for one in result.measurements())


def test_docs_and_texts_with_nothing_to_score(exact, make_nlp):
    docs = list(spacy.blank("en").pipe(TEXTS))
    by_doc = agree(exact, make_nlp("bert", keep_pieces=True), docs)
    assert by_doc.text.n == len(TEXTS) - 2 and docs[0]._.pll is None
    with pytest.raises(ValueError, match="Of the 2 texts, none was scored"):
        agree(exact, make_nlp("bert", keep_pieces=True), ["", " "])


def test_the_tables_have_the_numbers(exact, make_nlp):
    other = make_nlp("bert", keep_pieces=True, mask_spacing=2)
    result = agree(exact, other, TEXTS, labels=("exact", "spacing 2"))
    shown = differences(result)
    assert "spacing 2" in shown and "the tokens that differ most" in shown and "wordpieces" not in shown
    found = {(one.scorer, one.measure): one for one in result.measurements()}
    r = found["spacing 2", "r by piece"]
    assert (r.n, r.value, (r.low, r.high)) == (result.piece.n, result.piece.r, result.piece.r_interval)
    mean = found["spacing 2", "mean absolute difference by text mean"]
    assert (mean.n, mean.value) == (result.text_mean.n, result.text_mean.mean_absolute_difference)
    assert ("exact", "r by piece") not in found and found["exact", "times as fast"].value == 1
    for run in result.scorers:
        assert found[run.label, "seconds"].value == run.seconds
        assert found[run.label, "wordpieces in forward passes"].value == run.forward_pieces
        assert found[run.label, "forward passes"].n == result.texts


def test_a_scorer_as_a_text():
    assert parse_settings("builtin") == parse_settings("built-in") == PipelineSettings(None)
    assert parse_settings("a/b, mask_spacing=16 ,precision=bfloat16,metrics=original+word_l2r", gpu_id=0) == (
        PipelineSettings("a/b", ["original", "word_l2r"], mask_spacing=16, precision="bfloat16", gpu_id=0)
    )
    with pytest.raises(
        ValueError, match="Unknown setting 'spacing' of the scorer 'x,spacing=3'.* The settings are: com"
    ):
        parse_settings("x,spacing=3")
    for wrong in ("mask_spacing=many", "precision=float8", "spans=words"):
        with pytest.raises(ValueError, match=f"is '{wrong.split('=')[1]}'. It must be"):
            parse_settings(f"x,{wrong}")


def test_one_text_is_no_list_of_texts(make_nlp):
    nlp = make_nlp("bert", metrics=["original"])
    for text in (SENTENCES[0], nlp(SENTENCES[0])):
        for measure in (partial(agree, nlp, nlp), partial(compare_margins, nlp), partial(perplexity, nlp)):
            with pytest.raises(ValueError, match="`texts` must be a list .*one text: "):
                measure(text)


def test_of_a_part_of_the_words_what_both_drew_is_compared(make_nlp, exact):
    part, margin = make_nlp(sample_words=0.4), make_nlp(sample_words=0.4, mask_margin=1)
    docs = list(part.pipe(TEXTS))
    drawn = [token for doc in docs for token in doc if token._.pll_pieces]
    for other, differs in ((part, False), (margin, True)):
        for first in (part, exact):
            result = agree(first, other, TEXTS)
            assert result.word.n == len(drawn) and result.piece.n == sum(doc._.pll_pieces or 0 for doc in docs)
            assert (result.piece.mean_absolute_difference > 1e-4) == differs
    whole = agree(exact, part, TEXTS).text
    estimates = [doc._.pll_estimate - exact(doc.text)._.pll for doc in docs if doc._.pll_estimate]
    assert whole.mean_difference == pytest.approx(np.mean(estimates), abs=1e-4) and whole.n == len(estimates)
    mean = agree(exact, part, TEXTS).text_mean.mean_difference
    of_pieces = [doc._.pll_estimate - exact(doc.text)._.pll for doc in docs if doc._.pll_estimate]
    n = [doc._.pll_all_pieces for doc in docs if doc._.pll_estimate]
    assert mean == pytest.approx(np.mean(np.divide(of_pieces, n)), abs=1e-4)
    others = agree(part, make_nlp(sample_words=0.4, seed=8), TEXTS)
    assert 0 < others.word.n < len(drawn) / 2 and others.text.n == whole.n
