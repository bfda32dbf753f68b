"""`log_probability_bounds`, against the plainest implementation."""

from itertools import permutations

import numpy as np
import pytest
import spacy

from spacy_pll import PLLError, log_probability_bounds
from spacy_pll.analysis.any_order import draws_of, ladder
from spacy_pll.metrics import MAX_EXACT, all_orders, any_order, draw_orders

from .. import reference
from ..conftest import SENTENCES
from .test_continuations import causal_folder

TEXT = "The carnivore lost the souvenir."  # 6 words, of which two are of several pieces


def chain(nlp, doc, order):
    """The log-probability of a text whose pieces are revealed in this order of their numbers."""
    transformer, tokenizer = reference.load_model(nlp.get_pipe("pll").model.name)
    ids, kept, *_ = reference.read(doc, tokenizer, "spacy")
    total = 0.0
    for n, piece in enumerate(order):
        hidden = frozenset(kept[i] for i in order[n:])
        total += reference.log_probabilities(transformer, tokenizer, ids, hidden)[kept[piece]]
    return total


def pieces_by_word(nlp, doc):
    _, tokenizer = reference.load_model(nlp.get_pipe("pll").model.name)
    word = reference.read(doc, tokenizer, "spacy")[2]
    return [[i for i, of_piece in enumerate(word) if of_piece == one] for one in dict.fromkeys(word)]


def test_all_orders_of_the_words_of_a_short_text(make_nlp):
    nlp = make_nlp("bert")
    doc = nlp.make_doc(TEXT)
    words = pieces_by_word(nlp, doc)
    assert len(words) == MAX_EXACT and max(map(len, words)) > 1
    sums = [chain(nlp, doc, sum(order, start=[])) for order in permutations(words)]
    (bound,) = log_probability_bounds(nlp, [TEXT], unit="word")
    assert bound.score == pytest.approx(np.mean(sums), abs=1e-4) and bound.standard_error == pytest.approx(0, abs=1e-9)
    assert bound.score <= np.log(np.mean(np.exp(sums)))


@pytest.mark.parametrize("unit", ["piece", "word"])
@pytest.mark.parametrize("architecture, tokenizer", [("bert", "wordpiece"), ("roberta", "byte-level")])
def test_random_orders_and_the_error_of_their_mean(make_nlp, architecture, tokenizer, unit):
    nlp = make_nlp(architecture, tokenizer)
    doc = nlp.make_doc(SENTENCES[1])
    words = pieces_by_word(nlp, doc)
    units = words if unit == "word" else [[i] for word in words for i in word]
    assert len(units) > MAX_EXACT
    pairs = []
    for rank in draw_orders(len(units), 3, seed=5):
        order = [units[i] for i in np.argsort(rank)]
        pairs.append(np.mean([chain(nlp, doc, sum(one, start=[])) for one in (order, order[::-1])]))
    (bound,) = log_probability_bounds(nlp, [SENTENCES[1]], n_pairs=3, seed=5, unit=unit)
    assert bound.score == pytest.approx(np.mean(pairs), abs=1e-4)
    assert bound.standard_error == pytest.approx(np.std(pairs, ddof=1) / 3**0.5, abs=1e-4) and bound.standard_error > 0


def test_by_default_it_is_the_metric(make_nlp):
    nlp = make_nlp("bert", metrics=["sentence_any_order"], keep_pieces=True)
    texts = [*SENTENCES, "", " "]
    bounds = log_probability_bounds(nlp, texts, batch_size=2)
    assert [bound and pytest.approx(bound.score, abs=1e-4) for bound in bounds] == [
        doc._.pll for doc in nlp.pipe(texts)
    ]
    assert bounds[-1] is bounds[-2] is None and None not in bounds[: len(SENTENCES)]
    docs = list(map(make_nlp("bert", metrics=["original"]), SENTENCES))
    before = [doc._.pll for doc in docs]
    np.testing.assert_allclose(log_probability_bounds(nlp, docs), bounds[: len(SENTENCES)], atol=1e-4)
    assert [doc._.pll for doc in docs] == before
    (other,) = log_probability_bounds(nlp, texts[:1], seed=1)
    assert other.score != pytest.approx(bounds[0].score, abs=1e-3)


def test_each_sentence_has_a_bound_of_its_own(make_nlp):
    text, nlp = " ".join(SENTENCES[:2]), spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp = make_nlp("bert", nlp=nlp, get_spans={"@span_getters": "spacy-pll.sent_spans.v1"})
    whole, *parts = log_probability_bounds(nlp, [text, *(sent.text for sent in nlp(text).sents)])
    assert len(parts) > 1 and whole.score == pytest.approx(sum(part.score for part in parts), abs=1e-4)


def test_other_settings_have_no_effect_and_no_component_scores(make_nlp):
    nlp = make_nlp("bert", targets="some", mask_margin=1, alternatives=2)
    make_nlp("bert", nlp=nlp, name="another", attr="another")
    doc = nlp.make_doc(SENTENCES[1])
    (found,), (expected,) = (log_probability_bounds(*one) for one in ((nlp, [doc]), (make_nlp("bert"), [SENTENCES[1]])))
    assert found == pytest.approx(expected, abs=1e-4)
    assert doc._.pll is doc._.another is None and nlp.pipe_names == ["pll", "another"]


def likelihood_of_llada(log_probs, n, n_passes, draw):
    """`get_log_likelihood` of LLaDA (Nie et al. 2025, appendix), written from the paper: the number of masked pieces
    goes in equal steps from a random start, and a pass that masks x of n pieces weighs n / x.
    """
    start = draw.randint(1, n + 1)
    counts = (np.round(np.linspace(start, start + (n_passes - 1) * (n / n_passes), n_passes)).astype(int) - 1) % n + 1
    sums = []
    for x in counts:
        hidden = frozenset(draw.permutation(n)[:x].tolist())
        sums.append(n / x * sum(log_probs(hidden, piece) for piece in hidden))
    return np.mean(sums)


@pytest.mark.slow
def test_a_fixed_number_of_passes_is_the_estimate_of_llada(make_nlp):
    """Both have the bound as their mean. All orders of six words of one piece give it, as 16 passes do not."""
    nlp, text = make_nlp("bert", words="piece"), "The young traveler lost the tree"
    doc, known = nlp.make_doc(text), {}
    model = reference.load_model(nlp.get_pipe("pll").model.name)
    ids, kept, *_ = reference.read(doc, model[1], "spacy")
    n = len(kept)

    def log_probs(hidden, piece):
        if hidden not in known:
            known[hidden] = reference.log_probabilities(*model, ids, frozenset(kept[i] for i in hidden))
        return known[hidden][kept[piece]]

    (exact,) = log_probability_bounds(nlp, [text], n_pairs=200)
    predicted = [log_probability_bounds(nlp, [text], n_passes=16, seed=seed)[0] for seed in range(30)]
    theirs = [likelihood_of_llada(log_probs, n, 16, np.random.RandomState(seed)) for seed in range(200)]
    for draws in ([one.score for one in predicted], theirs):
        assert abs(np.mean(draws) - exact.score) < 4 * np.std(draws) / len(draws) ** 0.5 + 4 * exact.standard_error
    # The error that is stated is that between draws.
    stated = np.mean([one.standard_error**2 for one in predicted]) ** 0.5
    assert stated == pytest.approx(np.std([one.score for one in predicted]), rel=0.4)


def test_a_ladder_has_its_passes_whatever_the_length():
    for k in (5, 6, 7, 100):
        rows = ladder(np.arange(k), number=1, n_passes=4, seed=3)
        if k == 5:  # 31 sets, and so all orders
            assert len(np.unique(rows.masked, axis=0)) == 31
            continue
        assert rows.weight.sum() == pytest.approx(k) and rows.masked[np.arange(len(rows.target)), rows.target].all()
    mean = sum(np.bincount((one := ladder(np.arange(7), number=i, n_passes=4, seed=0)).target, one.weight, 7)
               for i in range(4000)) / 4000  # fmt: skip
    assert mean == pytest.approx(np.ones(7), abs=0.1)


def test_a_ladder_that_masks_everything_leaves_the_context_in_sight(make_nlp):
    draws = [one for seed in range(30) for one in draws_of(n_passes=8, seed=seed)]
    assert any(one.mask_rows(np.arange(60)).masked.all() for one in draws)
    assert all(one.shows_what_follows for one in draws)


def test_orders_do_not_change_between_versions():
    assert draw_orders(7, 2).tolist() == [[2, 5, 0, 6, 3, 1, 4], [4, 5, 3, 2, 1, 0, 6]]
    assert draw_orders(7, 1, seed=4095).tolist() != draw_orders(7, 1).tolist()
    np.testing.assert_array_equal(any_order(MAX_EXACT).masked, all_orders(MAX_EXACT).masked)


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_pairs": 1},
        {"n_passes": 4},
        {"n_passes": 17},
        {"unit": "word", "n_passes": 16},
        {"seed": -1},
        {"seed": 4096},
        {"unit": "words"},
    ],
)
def test_bad_arguments(make_nlp, arguments):
    with pytest.raises(ValueError, match=f"They are .*{next(iter(arguments.values()))}"):
        log_probability_bounds(make_nlp("bert"), ["A text"], **arguments)


def test_a_left_to_right_model_is_refused(make_nlp, model_folder):
    model = {"@architectures": "spacy-pll.CausalLM.v1", "name": causal_folder(model_folder)}
    with pytest.raises(PLLError, match="'sentence_any_order' needs a masked language model"):
        log_probability_bounds(make_nlp(metrics=["causal"], model=model), ["A text"])
