"""The bound of a text in its place, such as an answer after its prompt: against all orders of its own pieces, one by
one, with what stands beside it in sight.
"""

import csv
from itertools import permutations

import numpy as np
import pytest
import spacy

from spacy_pll import InputError, PLLError, log_probability_bounds, make_pipeline
from spacy_pll.span_getters import TEXT_SPAN
from spacy_pll.stream.contexts import doc_in_context

from .. import reference
from ..cli.conftest import run
from ..conftest import write_jsonl

MODELS = [("bert", "wordpiece"), ("roberta", "byte-level"), ("albert", "unigram"), ("modernbert", "byte-level")]
# With texts of at most five pieces under each of the tokenizers.
PLACES = [
    (" the cup.", "The young traveler lost", ""),
    ("the tree", "She saw ", " and left."),
    (" it.", "They did", ""),
]


def own_pieces(folder, text, before, after):
    """The ids of the whole text, and the positions of the pieces that begin in the text itself."""
    _, tokenizer = reference.load_model(folder)
    doc = spacy.blank("en")(before + text + after)
    ids, kept, *_ = reference.read(doc, tokenizer, "spacy")
    offsets = tokenizer.backend_tokenizer.encode(doc.text).offsets
    # A piece that begins with a space belongs to where its first visible character is.
    first = [
        offsets[i][0] + len(doc.text[slice(*offsets[i])]) - len(doc.text[slice(*offsets[i])].lstrip()) for i in kept
    ]
    return ids, [i for i, at in zip(kept, first) if len(before) <= at < len(before + text)]


def bound_of(folder, ids, own, scored=None):
    """The mean over all orders of the pieces `own` of the sum of the log-probabilities; what else there is, is seen.

    scored: Sum up those of these pieces alone.
    """
    model, known = reference.load_model(folder), {}

    def log_probability(hidden, piece):
        if hidden not in known:
            known[hidden] = reference.log_probabilities(*model, ids, hidden)
        return known[hidden][piece]

    orders = list(permutations(own))
    return np.mean(
        [
            sum(log_probability(frozenset(o[n:]), t) for n, t in enumerate(o) if scored is None or t in scored)
            for o in orders
        ]
    )


@pytest.mark.parametrize("architecture, tokenizer", MODELS)
def test_all_orders_of_the_scored_pieces(make_nlp, tmp_path, architecture, tokenizer):
    nlp = make_nlp(architecture, tokenizer, metrics=["sentence_any_order"], targets=TEXT_SPAN)
    folder = nlp.get_pipe("pll").model.name
    read = [own_pieces(folder, *one) for one in PLACES]
    assert all(2 <= len(own) <= 6 and len(ids) > len(own) + 3 for ids, own in read), [len(own) for _, own in read]
    expected = [bound_of(folder, *one) for one in read]
    docs = list(nlp.pipe(doc_in_context(nlp, *one) for one in PLACES))
    assert [doc._.pll for doc in docs] == pytest.approx(expected, abs=1e-4)
    bounds = log_probability_bounds(make_nlp(architecture, tokenizer), PLACES)
    assert [bound.score for bound in bounds] == pytest.approx(expected, abs=1e-4)
    assert [bound.standard_error for bound in bounds] == pytest.approx([0] * 3, abs=1e-6)


@pytest.mark.parametrize("architecture", [name for name, _ in MODELS])
def test_pll_choices_takes_the_bound(model_folder, tmp_path, architecture):
    items = [(before, [text.strip(), "a dog."]) for text, before, after in PLACES if not after]
    rows = [{"context": before, "options": options, "label": 0} for before, options in items]
    file = write_jsonl(tmp_path / "choices.jsonl", *rows)
    folder = str(model_folder(architecture))
    how = ("choices", file, "--model", folder, "--metrics", "sentence_any_order")
    run(*how, "--items", tmp_path / "items.csv")
    with (tmp_path / "items.csv").open(newline="") as table:
        found = list(csv.DictReader(table))
    expected = [bound_of(folder, *own_pieces(folder, f" {one}", before, "")) for before, two in items for one in two]
    assert [float(row["pll_sentence_any_order"]) for row in found] == pytest.approx(expected, abs=1e-4)
    refused = run(*how, "--mask-margin", "0", fails=True).unwrapped_stderr
    assert "does not mask within words, so with --mask-margin" in refused


def test_what_shares_passes_is_refused(make_nlp):
    for setting in ("mask_margin", "mask_spacing"):
        with pytest.raises(PLLError, match=f"'sentence_any_order' does not mask within words.*`{setting}`"):
            make_nlp("bert", metrics=["sentence_any_order"], **{setting: 2})


@pytest.mark.parametrize("room, n_windows", [(16, 1), (12, 2)])
def test_a_window_cuts_what_stands_beside_the_text(model_folder, room, n_windows):
    """Each order is a chain still, of what is seen in the window in which a piece is scored."""
    before, text, after = (
        "The hooligans, who are young, didn't travel, and she lost",
        " the cup.",
        " It is over now, he said.",
    )
    folder = str(model_folder("bert"))
    nlp = make_pipeline({"name": folder, "tokenizer_config": {"model_max_length": room}})
    (bound,) = log_probability_bounds(nlp, [(text, before, after)])
    scoring = make_pipeline(nlp, ["sentence_any_order"], targets=TEXT_SPAN)
    doc = doc_in_context(nlp, text, before, after)
    windows = list(scoring.get_pipe("pll").predictor.tokenize([doc]).contexts)
    assert len(windows) == n_windows and all(len(one) <= room for one in windows)
    expected = 0.0
    for one in windows:
        places = np.arange(len(one.word)) + one.first
        expected += bound_of(folder, one.ids.tolist(), places[one.to_score].tolist(), places[one.scored].tolist())
    assert sum(one.scored.sum() for one in windows) == len(own_pieces(folder, text, before, after)[1])
    assert bound.score == pytest.approx(expected, abs=1e-4)
    assert scoring(doc)._.pll == pytest.approx(expected, abs=1e-4)


def test_bad_places(make_nlp):
    nlp = make_nlp("bert")
    with pytest.raises(InputError, match="'eler lost it.' after 'The trav'"):
        log_probability_bounds(nlp, [("eler lost it.", "The trav", "")])
    assert log_probability_bounds(nlp, [("eler lost it.", "The trav", "")], shared_pieces=True)[0].score < 0
    with pytest.raises(ValueError, match="It is one text"):
        log_probability_bounds(nlp, "A text")
    alone, placed, _ = log_probability_bounds(nlp, ["The cup.", ("The cup.", "", ""), (" It.", "The cup.", "")])
    assert alone == placed == pytest.approx(log_probability_bounds(nlp, ["The cup."])[0], abs=1e-4)
