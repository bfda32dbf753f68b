import pytest
import spacy
from spacy.util import registry

from spacy_pll import (
    Choice,
    InputError,
    Measurement,
    Option,
    Pair,
    PLLError,
    Suite,
    SuiteScores,
    choices,
    minimal_pairs,
    score_suite,
)
from spacy_pll.evaluation.suite_readers import pll_readers, read_suite
from spacy_pll.stream.contexts import TextInContext


class Lengths(Suite):
    """Of another package."""

    def __init__(self, path, sign=1):
        with open(path, encoding="utf8") as file:
            self.texts = [
                TextInContext(line.strip(), parts=[(0, 3), (4, len(line.strip()))]) for line in file if line.strip()
            ]
        self.sign = sign

    def measurements(self, scores):
        return [
            Measurement(name, "pieces", len(self.texts), self.sign * one.pieces.sum()) for name, one in scores.items()
        ]

    def rows(self, scores):
        for one in scores.values():
            for score in one.sums.tolist():
                yield {"score": score}


def test_a_reader_of_another_package(tmp_path, monkeypatch):
    pll_readers.register("lengths", func=Lengths)
    monkeypatch.setattr(registry, "pll_readers", pll_readers)
    (tmp_path / "a.txt").write_text("The cats sleep.\nThe dogs bark.\n")
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"metrics": ["original", "word_l2r"]})
    found = score_suite(nlp, read_suite(str(tmp_path / "a.txt"), "lengths", sign=-1))
    assert [(one.scorer, one.value < 0) for one in found.measurements()] == [("original", True), ("word_l2r", True)]
    doc = nlp("The cats sleep.")
    for metric in ("original", "word_l2r"):
        scores = found.scores[metric].sums[:2]
        attribute = f"pll_{metric}"
        assert scores == pytest.approx([doc[0]._.get(attribute), doc[1:]._.get(attribute)], abs=1e-4)
    assert len(list(found.rows())) == 2 * 4
    with pytest.raises(PLLError, match="groups of its own. Leave out `by`"):
        found.measurements(["kind"])
    with pytest.raises(PLLError, match="Pictures are of accuracies"):
        found.plot()
    with pytest.raises(PLLError, match="no `reader` 'nonesuch'.*: acceptability, .*lengths"):
        read_suite("x", "nonesuch")
    with pytest.raises(PLLError, match="'stereoset' does not take what is given.*sentence"):
        read_suite("x", "stereoset", sentence="s")
    with pytest.raises(PLLError, match="`threshold` says nothing of minimal pairs"):
        read_suite("x", "pairs", threshold=1.0)  # which was a TypeError
    (tmp_path / "b.txt").write_text("\n")
    with pytest.raises(InputError, match="There is no text in"):
        read_suite(str(tmp_path / "b.txt"), "lengths")


def test_an_error_in_a_reader_is_shown_as_it_is(monkeypatch):
    def broken(path):
        return len(None)

    monkeypatch.setattr(pll_readers, "get_all", lambda: {"broken": broken})
    with pytest.raises(TypeError, match=r"object of type 'NoneType' has no len\(\)"):
        read_suite("x", "broken")


@pytest.mark.filterwarnings("ignore:.*they are the same wordpieces")
def test_a_reader_of_another_package_may_give_pairs_or_choices(make_nlp, monkeypatch):
    pairs = [Pair("The cats sleep.", "The cats sleeps.", {"kind": "a"})]
    items = [Choice([Option("are here.", "The keys"), Option("is here.", "The keys"), Option("am.")], 0)]
    given = {"mine": lambda path: pairs, "theirs": lambda path: items, "empty": lambda path: []}
    monkeypatch.setattr(pll_readers, "get_all", lambda: given)
    nlp = make_nlp("bert")
    found, expected = score_suite(nlp, read_suite("x", "mine")), minimal_pairs(nlp, pairs)
    assert isinstance(found, SuiteScores) and list(found.rows()) == list(expected.rows())
    found, expected = score_suite(nlp, read_suite("x", "theirs")), choices(nlp, items)
    assert isinstance(found, SuiteScores) and found.measurements() == expected.measurements()
    with pytest.raises(InputError, match="There is no text in 'x'"):
        read_suite("x", "empty")


OPTIONS = [Option("are here."), Option("is here.")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([Choice(OPTIONS, -1)], "Choice 1: the right option has the number -1"),
        ([Choice(OPTIONS[:1])], "Choice 1: a choice needs two options"),
        ([Choice([*OPTIONS, Option("am.", parts=[(0, 1)])])], "Choice 1: an option has `parts`"),
        ((Pair("a", "b"),), "The reader 'mine' gives .* It must give a `Suite`"),
        ([Pair("a", "b"), Choice(OPTIONS)], "The reader 'mine' gives .* It must give a `Suite`"),
    ],
)
def test_what_a_reader_gives_is_checked(make_nlp, monkeypatch, given, message):
    """A right option -1 was the last one without a word."""
    monkeypatch.setattr(pll_readers, "get_all", lambda: {"mine": lambda path: given})
    with pytest.raises(PLLError, match=message):
        score_suite(make_nlp("bert"), read_suite("x", "mine"))
