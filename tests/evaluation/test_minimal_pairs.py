from pathlib import Path

import numpy as np
import pytest
import spacy

from spacy_pll import InputError, Pair, get_scorer, read_pairs
from spacy_pll.evaluation.intervals import paired_difference
from spacy_pll.evaluation.minimal_pairs import PairSuite, minimal_pairs

from .given_scores import suite_scores

PIECES = [[1, 1], [2, 2], [4, 2]]
SCORES = {
    "m": [[-1.0, -3.0], [-2.0, -2.0], [-4.0, -3.0]],
    "n": [[-5.0, -4.0], [-1.0, -2.0], [-2.0, -3.0]],
}


def scored(pairs, scores=SCORES, pieces=PIECES, **more):
    return suite_scores(PairSuite(pairs), scores, dict.fromkeys(scores, pieces), **more)


def outcomes(found):
    return {scorer: found.suite.outcomes(one).tolist() for scorer, one in found.scores.items()}


PAIRS = [Pair("a", "b", {"id": 0}), Pair("b", "c", {"id": 1}), Pair("d", "e", {"id": 2})]


def test_outcomes_and_differences_of_two_scorers():
    found = scored(PAIRS)
    assert outcomes(found) == {"m": [1, 0.5, 0], "n": [0, 1, 1]}
    assert outcomes(scored(PAIRS, per_piece=True))["m"] == [1, 0.5, 1]
    first, overall = found.measurements([])
    assert overall[:3] == ("n", "accuracy", 3) and first[:3] == ("m", "accuracy", 3)
    assert first.ties == 1 and set(first[-6:]) == {None}
    assert overall.difference == pytest.approx(0.5 / 3) and (overall.better, overall.worse, overall.p) == (2, 1, 1.0)
    assert overall[-6:-3] == paired_difference(np.array([-1.0, 0.5, 1.0]))
    assert {one.name: one.better for one in found.measurements(["id"])[5:]} == {"0": 0, "1": 1, "2": 1}


def test_a_row_for_each_pair():
    frame = scored(PAIRS).to_dataframe()
    assert list(frame)[:6] == ["pair", "sentence_good", "sentence_bad", "id", "m_correct", "m_good"]
    assert frame["pair"].tolist() == [1, 2, 3] and frame["m_correct"].tolist() == [1, 0.5, 0]
    assert frame["m_difference"].tolist() == [2, 0, -1] and frame["n_bad_pieces"].tolist() == [1, 2, 2]
    assert frame["n_difference_per_piece"].tolist() == [-1, 0.5, 1]
    with pytest.raises(ValueError, match="The pairs have a column 'm_good'"):
        list(scored([Pair("a", "b", {"m_good": 1})], {"m": [[-1.0, -3.0]]}, [[1, 1]]).rows())
    # A number that the pairs have themselves is kept.
    (first,) = scored([Pair("a", "b", {"pair": "x7"})], {"m": [[-1.0, -3.0]]}, [[1, 1]], columns={"m": "pll_m"}).rows()
    assert first["pair"] == "x7" and first["pll_m_difference"] == 2 and "m_good" not in first


def test_a_picture_has_the_groups():
    pairs = [Pair("a", "b", {"kind": "x"}), Pair("b", "c", {"kind": "y"}), Pair("d", "e", {"kind": "x"})]
    axes = scored(pairs).plot(["kind"]).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["m", "n"]
    assert [label.get_text() for label in scored(pairs).plot().axes[0].get_yticklabels()] == ["overall"]


def test_columns_that_are_called_as_the_levels_are():
    for column in ("macro", "overall"):
        found = scored([Pair("a", "b", {column: name}) for name in "xyx"])
        assert [label.get_text() for label in found.plot([column]).axes[0].get_yticklabels()] == ["x", "y"]
        assert [one.name for one in found.measurements([column]) if one.group] == ["x", "y"] * 2


def test_a_group_without_a_name_is_not_all():
    found = scored([Pair("a", "b", {"topic": topic}) for topic in ("", "x", "x")])
    assert [label.get_text() for label in found.plot(["topic"]).axes[0].get_yticklabels()] == ["''", "x"]
    curves = [line.get_label() for line in found.plot_curves(["topic"]).axes[0].lines[:-1]]
    assert curves == ["overall", "''", "x"]


def test_curves_over_checkpoints():
    pairs = [Pair("a", "b", {"kind": kind}) for kind in "xxy"]
    sides, pieces = [[2, 1], [1, 2], [2, 1]], [[1, 1]] * 3
    scorers = {f"{name} {metric}": sides for name in ("my 1M", "my 2M") for metric in ("original", "word_l2r")}
    axes = scored(pairs, scorers, pieces).plot_curves(["kind"]).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["my 1M", "my 2M"]
    curves = {line.get_label(): list(line.get_ydata()) for line in axes.lines[:-1]}
    assert curves["x original"] == [50, 50] and curves["overall word_l2r"] == pytest.approx([200 / 3] * 2)
    assert len(curves) == 6
    axes = scored(pairs, {"my 1M": sides, "my 2M": sides}, pieces).plot_curves([]).axes[0]
    assert [line.get_label() for line in axes.lines[:-1]] == ["overall"] and len(axes.get_xticklabels()) == 2
    many = [Pair("a", "b", {"kind": str(i)}) for i in range(3)] + [Pair("a", "b", {"kind": "z"})] * 9
    many = [pair._replace(fields={"kind": str(i)}) for i, pair in enumerate(many)]
    sides = [[i, i] for i in range(12)]
    assert len(scored(many, {"a": sides}, sides).plot_curves(["kind"]).axes[0].lines) == 2


def test_white_space_before_one_sentence_alone_is_warned_of(make_nlp):
    """Byte-level BPE has other pieces for the first word behind a space."""
    nlp = make_nlp("roberta", metrics=["original"])
    pairs = [("The cats.", "The traveler."), (" The cats.", " The traveler."), ("The cats.", "\tThe traveler.")]
    minimal_pairs(nlp, pairs[:2])
    with pytest.warns(UserWarning, match="^Pair 3: white space stands before one option, .* in 1 of 3 pairs"):
        plain, both, odd = minimal_pairs(nlp, pairs).scores["original"].sums.reshape(-1, 2)
    assert plain[0] == odd[0] != both[0] and plain[1] != odd[1]


@pytest.mark.filterwarnings("ignore:.*they are the same wordpieces")
def test_a_full_stop_behind_one_sentence_alone_is_warned_of(make_nlp):
    nlp = make_nlp("bert")
    alike = [
        ("The cats", "The cat"),
        ("The cats?", "The cat."),
        ('She said "The cats."', "The cat!) "),
        ("一。", "二！"),
    ] * 3
    odd = ("The cats sleep.", "The cat sleep")
    minimal_pairs(nlp, [*alike, odd][4:])  # of so few, all may be meant so
    minimal_pairs(nlp, alike)
    with pytest.warns(UserWarning, match="^Pair 13: a full stop .* in 1 of 13 pairs"):
        minimal_pairs(nlp, [*alike, odd])


@pytest.mark.parametrize("mark", ["*", "??", "# ", "*?", " *"])
def test_judgments_before_sentences_are_no_part_of_them(make_nlp, mark):
    nlp = make_nlp("bert")
    pairs = [("The cats sleep.", mark.strip() + "The cats sleeps."), ("*Sigh*, she said.", "*Sigh*, she say.")]
    with pytest.warns(UserWarning, match=r"^Pair 1: a mark such as \* stands only before .* so in 1 of 2 pairs. If"):
        minimal_pairs(nlp, pairs)
    marked = [(good, mark.lstrip() + bad) for good, bad in [("A cat.", "A cats."), ("He is.", "He are.")]]
    with pytest.warns(UserWarning, match="Pair 1: a mark .* so in all pairs.*remove it."):
        assert len(minimal_pairs(nlp, marked).suite.items) == 2


def test_pairs_of_texts_are_scored(make_nlp):
    nlp = make_nlp("bert", metrics=["word_l2r", "original"])
    found = minimal_pairs(nlp, [("The traveler.", "The souvenir."), ("The traveler.", "The cats sleep.")])
    docs = {text: nlp(text) for text in ("The traveler.", "The souvenir.", "The cats sleep.")}
    assert list(found.scores) == ["word_l2r", "original"]
    good, bad = found.scores["word_l2r"].sums.reshape(-1, 2).T
    assert good == pytest.approx([docs["The traveler."]._.pll] * 2, abs=1e-4)
    assert bad == pytest.approx([docs[text]._.pll for text in ("The souvenir.", "The cats sleep.")], abs=1e-4)
    pieces = [docs[text]._.pll_pieces for text in ("The souvenir.", "The cats sleep.")]
    assert found.scores["word_l2r"].pieces[1::2].tolist() == pieces
    other = make_nlp("bert", metrics=["original"])
    both = minimal_pairs({"one": nlp, "two": other}, found.suite.items)
    assert list(both.scores) == ["one word_l2r", "one original", "two"]
    assert {"pll_word_l2r_good", "pll_original_correct"} <= set(found.to_dataframe())
    assert {"one word_l2r_good", "two_correct"} <= set(both.to_dataframe())
    with pytest.raises(ValueError, match="There is no pair"):
        minimal_pairs(nlp, [])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("mine.tsv", "Pair 1 must be two texts, or a `Pair`. It is 'mine.tsv'. `spacy_pll.read_pairs` reads a file"),
        (Path("mine.tsv"), r"Pair 1 must be two texts, or a `Pair`. It is .*Path\('mine.tsv'\)"),
        ([("A.", "B."), {"good": "A.", "bad": "B."}], "Pair 2 must be two texts, or a `Pair`. It is {'good': 'A.'"),
        ([("A.", "B.", "kind")], r"Pair 1 must be two texts, or a `Pair`. It is \('A.', 'B.', 'kind'\)"),
        (["AB"], "Pair 1 must be two texts"),
        ([Pair("A.", None)], "Pair 1 must be two texts"),
    ],
)
def test_what_is_no_pair(pairs, message):
    with pytest.raises(ValueError, match=message):
        minimal_pairs(spacy.blank("en"), pairs)


def test_pairs_of_equal_sentences(make_nlp, tmp_path):
    nlp = make_nlp("bert")
    pairs = [("The traveler.", "The souvenir."), ("It.", "It. "), ("It.", "It.")]
    with pytest.warns(UserWarning, match="Pair 2: .* equal, 'It.', as in 2 of 3"):
        assert minimal_pairs(nlp, pairs).measurements()[0].ties == 2
    before = get_scorer(nlp).predictor.counts.passes
    with pytest.raises(InputError, match="Pair 1: .* equal, 'It.', as in all pairs. Is one column giv"):
        minimal_pairs(nlp, pairs[1:])
    assert get_scorer(nlp).predictor.counts.passes == before
    (tmp_path / "a.csv").write_text("good,bad\nThe traveler.,The souvenir.\nIt.,It.\n")
    (tmp_path / "b.csv").write_text("s,l,i\nThe traveler.,1,1\nIt.,0,2\nThe souvenir.,0,1\nIt.,1,2\n")
    for name, line, how in (("a.csv", 3, {}), ("b.csv", 3, {"sentence": "s", "label": "l", "item": ["i"]})):
        with pytest.warns(UserWarning, match=f"{name}, line {line}: both sentences are equal, .* 1 of 2 pairs"):
            minimal_pairs(nlp, read_pairs(str(tmp_path / name), **how))


def test_columns_are_a_list():
    with pytest.raises(ValueError, match=r"`by` must be a list .*It is 'kind'."):
        scored(PAIRS).measurements("kind")
