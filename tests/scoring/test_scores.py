"""Rank, entropy and alternatives: equal to a plain reference, exact at ties, and what the texts of pieces are."""

import numpy as np
import pytest
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_pll import make_pipeline
from spacy_pll.scoring.piece_texts import PieceTexts

from ..conftest import PARAGRAPH, SENTENCES, change, get_tokenizer
from ..reference import expect, load_model
from ..scoring.planned import log_probs_of

K = 5
NEAR = 1e-5


def check(doc, metric, words, model):
    """The record of a doc against full distributions. Other batches round in another way: near ties may be swapped."""
    transformer, tokenizer = load_model(model.name)
    ids, distributions = expect(doc, transformer, tokenizer, metric, words)
    record, texts = doc._.pll_data, PieceTexts(model.load().tokenizer)
    assert record["ids"] == ids
    for i, (id, expected) in enumerate(zip(ids, distributions, strict=True)):
        assert (expected > expected[id] + NEAR).sum() < record["rank"][i] <= (expected >= expected[id] - NEAR).sum()
        assert record["entropy"][i] == pytest.approx(-(np.exp(expected) * expected).sum(), abs=NEAR)
        found = record["alternatives"][i]
        np.testing.assert_allclose([log_prob for _, log_prob, _ in found], np.sort(expected)[::-1][:K], atol=NEAR)
        known = {}
        for other in np.flatnonzero(expected >= np.sort(expected)[-K] - NEAR).tolist():
            known.setdefault((texts[other].text, texts[other].begins_word), []).append(expected[other])
        for text, log_prob, begins_word in found:
            assert np.abs(np.array(known[text, begins_word]) - log_prob).min() < NEAR


def ask(nlp, texts, ids):
    """The contexts of some texts, and the log-probabilities of ids at their pieces."""
    predictor = nlp.get_pipe("pll").predictor
    contexts = predictor.tokenize([nlp.make_doc(text) for text in texts]).contexts
    return contexts, log_probs_of(predictor, contexts, ids)


@pytest.mark.parametrize(
    "architecture",
    ["bert", "roberta", "xlm-roberta", "albert", "distilbert", "electra", "deberta-v2", "modernbert", "mpnet", "fnet"],
)
def test_they_equal_the_brute_force_reference(make_nlp, architecture):
    for metric, words in (("word_l2r", "spacy"), ("whole_word", "tokenizer"), ("sentence_l2r", "whitespace")):
        metrics = [metric, "original"]  # those of the second are not described
        nlp = make_nlp(architecture, metrics=metrics, words=words, keep_pieces=True, alternatives=K, distribution=True)
        for doc in nlp.pipe(["The hooligans can't travel.", PARAGRAPH[:60], "a"]):
            check(doc, metric, words, nlp.get_pipe("pll").model)


@pytest.mark.parametrize(
    "name",
    ["bert-base-cased", "roberta-base", "albert-base-v2", pytest.param("deberta-v3-base", marks=pytest.mark.slow)],
)
def test_they_do_with_real_tokenizers(make_nlp, name):
    architecture = {"roberta-base": "roberta", "albert-base-v2": "albert", "deberta-v3-base": "deberta-v2"}.get(
        name, "bert"
    )
    nlp = make_nlp(architecture, name, keep_pieces=True, alternatives=K, distribution=True)
    for doc in nlp.pipe(["The traveler lost the souvenir.", SENTENCES[2]]):
        check(doc, "word_l2r", "spacy", nlp.get_pipe("pll").model)


def test_with_several_contexts_a_piece_the_first_counts(make_nlp):
    """`word_any_order` begins with the context in which the piece alone is masked, as `original` has it."""
    settings = {"keep_pieces": True, "alternatives": K, "distribution": True}
    for spacing in (None, 4):
        nlp = make_nlp(metrics=["word_any_order"], mask_spacing=spacing, **settings)
        other = make_nlp(metrics=["original"], **settings)
        scorer = nlp.get_pipe("pll")
        for max_batch_tokens in (None, 30):
            change(scorer, {"max_batch_tokens": max_batch_tokens})
            record, expected = nlp("The souvenir.")._.pll_data, other("The souvenir.")._.pll_data
            if spacing is None:
                assert record["rank"] == expected["rank"]
                np.testing.assert_allclose(record["entropy"], expected["entropy"], atol=NEAR)
            assert [len(one) for one in record["alternatives"]] == [K] * len(record["ids"])


def test_scores_stay_the_same_to_the_last_bit(make_nlp):
    metrics = ["word_l2r", "original", "word_any_order"]
    plain = list(make_nlp(metrics=metrics, keep_pieces=True).pipe(SENTENCES))
    described = list(make_nlp(metrics=metrics, keep_pieces=True, alternatives=3, distribution=True).pipe(SENTENCES))
    for one, other in zip(plain, described, strict=True):
        assert one._.pll_data["scores"] == other._.pll_data["scores"]


def test_a_pass_that_is_halved_loses_none(make_nlp):
    nlp = make_nlp(keep_pieces=True, alternatives=2, distribution=True)
    expected = [doc._.pll_data for doc in nlp.pipe(SENTENCES)]
    model, (_, given_ids) = nlp.get_pipe("pll").model, ask(nlp, SENTENCES, [9, 30])
    original = model.loaded.log_probs

    def small_memory(batch):
        if len(batch.ids) > 3:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return original(batch)

    object.__setattr__(model.loaded, "log_probs", small_memory)
    for doc, record in zip(nlp.pipe(SENTENCES), expected, strict=True):
        assert doc._.pll_data["rank"] == record["rank"]
        np.testing.assert_allclose(doc._.pll_data["entropy"], record["entropy"], atol=NEAR)
    np.testing.assert_allclose(ask(nlp, SENTENCES, [9, 30])[1], given_ids, atol=NEAR)


TEXT = "The hooligans can't travel."
SETTINGS = {"alternatives": 3, "distribution": True}


def test_the_attributes(make_nlp):
    for attr in ("pll", "x"):
        doc = make_nlp(attr=attr, keep_pieces=True, **SETTINGS)(TEXT + " \n")
        record = doc._.get(f"{attr}_data")
        ranks, entropies = np.array(record["rank"]), np.array(record["entropy"])
        for token in doc:
            mine = np.flatnonzero(np.array(record["token"]) == token.i)
            rank, entropy, alternatives, first_choices = (
                token._.get(f"{attr}_{name}") for name in ("rank", "entropy", "alternatives", "first_choices")
            )
            assert entropy == pytest.approx(entropies[mine].sum()) and type(entropy) is float
            assert first_choices == (ranks[mine] == 1).sum()
            if len(mine):
                assert rank == ranks[mine].max() and type(rank) is int
                assert alternatives == list(record["alternatives"][mine[0]]) and len(alternatives) == 3
            else:  # white space
                assert rank is None and alternatives == []
        assert doc._.get(f"{attr}_entropy") == pytest.approx(entropies.sum())
        assert doc[1:3]._.get(f"{attr}_first_choices") == sum(
            token._.get(f"{attr}_first_choices") for token in doc[1:3]
        )
        assert doc._.get(f"{attr}_top1") == (ranks == 1).mean()
        assert doc[:0]._.get(f"{attr}_top1") is None


def test_each_setting_gives_its_own_attributes(make_nlp):
    neither, one, other = (make_nlp(**config)(TEXT) for config in ({}, {"alternatives": 2}, {"distribution": True}))
    assert neither[0]._.pll_rank is None and neither[0]._.pll_alternatives is None and neither._.pll_top1 is None
    assert one[0]._.pll_rank is None and len(one[0]._.pll_alternatives) == 2 and one._.pll_entropy is None
    assert other[0]._.pll_rank >= 1 and other[0]._.pll_alternatives is None and 0 <= other._.pll_top1 <= 1


def test_a_second_scoring_without_them_takes_them_away(make_nlp):
    doc = make_nlp(**SETTINGS)(TEXT)
    make_nlp().get_pipe("pll")(doc)
    assert doc[0]._.pll is not None and doc[0]._.pll_rank is None and doc[0]._.pll_alternatives is None


def test_only_targets_have_them(make_nlp):
    nlp = make_nlp(targets="here", **SETTINGS)
    doc = nlp.make_doc(TEXT)
    doc.spans["here"] = [doc[1:2]]
    doc = nlp.get_pipe("pll")(doc)
    assert [token._.pll_rank is not None for token in doc] == [token.i == 1 for token in doc]
    assert [token._.pll_alternatives is not None for token in doc] == [token.i == 1 for token in doc]


def test_they_survive_a_docbin(make_nlp):
    nlp = make_nlp(keep_pieces=True, **SETTINGS)
    doc = nlp(TEXT)
    docbin = DocBin(store_user_data=True).from_bytes(DocBin(docs=[doc], store_user_data=True).to_bytes())
    # spaCy reads lists back as tuples, or tuples as lists.
    for other in (*docbin.get_docs(nlp.vocab), Doc(nlp.vocab).from_bytes(doc.to_bytes())):
        for name in ("pll_rank", "pll_entropy", "pll_first_choices"):
            assert [token._.get(name) for token in other] == [token._.get(name) for token in doc]
        assert [token._.pll_alternatives for token in other] == [token._.pll_alternatives for token in doc]
        best = other[1]._.pll_alternatives[0]
        assert (best.text, best.log_prob, best.begins_word) == doc[1]._.pll_alternatives[0]
        assert list(other._.pll_data["entropy"]) == doc._.pll_data["entropy"] and other._.pll_top1 == doc._.pll_top1
    [record] = doc.user_data.values()
    assert {type(one) for own in record["alternatives"] for one in own} == {tuple}  # anything can read it


def test_merged_and_split_tokens(make_nlp):
    doc = make_nlp(**SETTINGS)(TEXT)
    before = [(t._.pll_rank, t._.pll_entropy, t._.pll_first_choices, t._.pll_alternatives) for t in doc]
    total, score = doc._.pll_entropy, doc[0]._.pll
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    assert doc[1]._.pll_rank == max(before[1][0], before[2][0])
    assert doc[1]._.pll_entropy == pytest.approx(before[1][1] + before[2][1])
    assert doc[1]._.pll_first_choices == before[1][2] + before[2][2]
    assert doc[1]._.pll_alternatives == before[1][3]
    assert doc._.pll_entropy == pytest.approx(total)
    with doc.retokenize() as retokenizer:
        retokenizer.split(doc[0], ["Th", "e"], heads=[(doc[0], 0), (doc[0], 1)])
    names = ("pll_rank", "pll_entropy", "pll_first_choices", "pll_alternatives", "pll", "pll_pieces")
    assert get_tokenizer("wordpiece").tokenize("The") == ["The"]  # its piece begins in the first part
    assert tuple(map(doc[0]._.get, names)) == (*before[0], score, 1)
    assert tuple(map(doc[1]._.get, names)) == (None, 0.0, 0, [], 0.0, 0)
    assert doc[0:2]._.pll_entropy == before[0][1] and doc._.pll_entropy == pytest.approx(total)


def test_figures_of_nlp_evaluate(make_nlp):
    nlp = make_nlp(metrics=["word_l2r", "original"])
    texts = [TEXT, "a"]
    found = nlp.evaluate([Example.from_dict(nlp.make_doc(text), {}) for text in [*texts, " "]])
    docs = list(nlp.pipe(texts))  # a text without a wordpiece has no score
    pieces = sum(doc._.pll_pieces for doc in docs)
    for name in ("pll", "pll_word_l2r", "pll_original"):
        scores = [doc._.get(name) for doc in docs]
        assert found[f"{name}_mean"] == pytest.approx(np.mean(scores))
        assert found[f"{name}_pppl"] == pytest.approx(np.exp(-np.sum(scores) / pieces))
    assert make_nlp().get_pipe_meta("pll").default_score_weights == {"pll_pppl": None, "pll_mean": None}
    other = make_nlp(attr="x", targets="none")
    with pytest.warns(UserWarning, match="no spans under `targets`"):
        found = other.evaluate([Example.from_dict(other.make_doc(TEXT), {})])
    assert found["x_mean"] is None and found["x_pppl"] is None


def test_a_negative_number_is_refused(make_nlp):
    with pytest.raises(ValueError, match="`alternatives` must be 0 or more. It is -1."):
        make_nlp(alternatives=-1)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "xlm-roberta"])
def test_given_ids_have_the_log_probabilities_of_the_reference(make_nlp, architecture):
    texts, ids = ["The hooligans can't travel.", "a", "The traveler lost the souvenir."], [9, 30, 7, 9]
    for metric in ("word_l2r", "whole_word", "sentence_l2r"):
        nlp = make_nlp(architecture, metrics=[metric, "original"])
        _, found = ask(nlp, texts, ids)
        model = load_model(nlp.get_pipe("pll").model.name)
        reference = [row for text in texts for row in expect(nlp(text), *model, metric, "spacy")[1]]
        np.testing.assert_allclose(found.T, [row[ids] for row in reference], atol=NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("approximate", [{}, {"mask_margin": 0}, {"mask_margin": 2}, {"mask_spacing": 3}])
def test_given_ids_agree_with_all_alternatives(model_folder, precision, approximate):
    """To the last bit."""
    nlp = make_pipeline(str(model_folder("bert")), precision=precision, **approximate)
    asking, ids = nlp.get_pipe("pll").predictor.asking, [11, 40, 8]
    contexts, found = ask(nlp, SENTENCES, ids)
    loaded = asking.prepare()
    _, every = asking.submit(contexts, loaded, loaded.n_ids).result()
    table = np.zeros(every.ids.shape)
    np.put_along_axis(table, every.ids, every.log_probs, axis=0)
    assert (found == table[ids]).all() and (found < 0).all() and found.shape == (3, len(contexts.word))
