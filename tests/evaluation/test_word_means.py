from itertools import product

import numpy as np
import pandas as pd
import pytest

from spacy_pll import InputError
from spacy_pll.evaluation.intervals import mean_estimate
from spacy_pll.evaluation.word_means import WordGroups
from spacy_pll.tables.word_rows import texts_of_rows


def make_groups(rows, by, columns, items=()):
    rows = [{"word": f"{row.get('item')} {row.get('kind')}", **row} for row in rows]
    return WordGroups(rows, texts_of_rows(rows, "word", by), columns, items)


def means_of(groups, values):
    """By the values of its columns, the mean of each group."""
    return {tuple(one.group.values()): one for one in groups.means(values, "m", "x")}


def make_rows():
    """Twelve items in two conditions, with a word in region 2 and two in region 10."""
    cells = product(range(12), "ba", (2, 10, 10))
    return [dict(zip(("item", "kind", "region"), cell)) for cell in cells]


def test_means_are_those_of_pandas():
    rows, values = make_rows(), np.random.default_rng(1).gamma(2, 3, 72)
    found = means_of(make_groups(rows, ["item", "kind"], ["region", "kind"], ["item"]), list(values))
    assert list(found) == [("2", "b"), ("2", "a"), ("10", "b"), ("10", "a")]
    by_item = pd.DataFrame(rows).assign(x=values).groupby(["region", "kind", "item"])["x"].mean()
    for group, one in found.items():
        of_items = by_item[int(group[0]), group[1]].to_numpy()
        assert (one.n, one[3:6]) == (12, pytest.approx(mean_estimate(of_items)))
        assert one.value == pytest.approx(of_items.mean())
        assert (one.scorer, one.measure, one.label) == ("m", "mean x", " x ".join(group))


@pytest.mark.parametrize("items", [[], ["item"]])
def test_a_text_that_many_people_have_read_counts_once(items):
    """The intervals were a third as long with nine readers, whose texts have the same surprisals."""
    rows, values = make_rows(), list(np.random.default_rng(1).gamma(2, 3, 72))
    once = make_groups(rows, ["item", "kind"], ["region", "kind"], items).means(values, "m", "x")
    by_all = [{**row, "subject": subject} for subject in range(9) for row in rows]
    many = make_groups(by_all, ["subject", "item", "kind"], ["region", "kind"], items).means(values * 9, "m", "x")
    assert many == once


def test_readers_of_one_version_have_no_more_weight_than_those_of_another():
    rows = [dict(item=1, kind=kind, version=v, region=1, word=v, subject=s) for kind in "ab" for v, s in
            [("x", 1), ("x", 2), ("x", 3), ("y", 4)]]  # fmt: skip
    (found,) = make_groups(rows, ["subject", "kind"], ["region"], ["item"]).means([1.0, 1.0, 1.0, 5.0] * 2, "m", "x")
    assert found[2:6] == (1, 3.0, None, None) and found.group == {"region": "1"}


def test_an_item_with_several_texts_is_one_item():
    rows = [dict(item=i // 2, region=1, word=f"w{i}") for i in range(8)]
    groups = make_groups(rows, ["word"], ["region"], ["item"])
    assert means_of(groups, np.arange(8.0))["1",].n == 4
    assert means_of(make_groups(rows, ["word"], ["region"]), np.arange(8.0))["1",].n == 8


@pytest.mark.parametrize("texts", [["short", "long"], ["long", "short"]])
def test_a_place_that_only_some_texts_have_is_in_its_order(texts):
    places = {"short": ["subject", "verb", "end"], "long": ["start", "subject", "who was", "verb", "end"]}
    rows = [{"item": 1, "kind": kind, "at": at} for kind in texts for at in places[kind]]
    found = make_groups(rows, ["kind"], ["at", "kind"]).means([1.0] * 8, "m", "x")
    assert list(dict.fromkeys(one.group["at"] for one in found)) == places["long"]
    assert {(one.low, one.high) for one in found} == {(None, None)}


def test_what_is_missing_is_no_place():
    lost = [None, float("nan"), "", " "]
    rows = [{"item": 1, "region": region} for region in (10.0, 9.0, "-1.5", *lost)]
    groups = make_groups(rows, ["item"], ["region"])
    assert groups.places == ["-1.5", "9", "10"]
    assert list(means_of(groups, [1.0, None, 2.0, *[3.0] * 4])) == [("-1.5",), ("10",)]
    assert make_groups([{"item": 1, "region": one} for one in ("nan", "2", "1")], ["item"], ["region"]).places == [
        "nan",
        "2",
        "1",
    ]


def test_an_error_for_a_column_that_is_not_there():
    rows = make_rows()
    with pytest.raises(InputError, match="no column 'regio'.*: 'word', 'item', 'kind', 'region'.*region"):
        make_groups(rows, ["item"], ["regio"])
    with pytest.raises(InputError, match="no column 'subject'"):
        make_groups(rows, ["item"], ["region"], ["subject"])
    with pytest.raises(InputError, match="No word .* region, kind"):
        make_groups([{**row, "kind": None} for row in rows], ["item"], ["region", "kind"])


def test_the_figure_has_a_line_for_each_condition():
    groups = make_groups([*make_rows(), dict(item=1, kind="$c$", region=2)], ["item", "kind"], ["region", "kind"])
    means = groups.means([*np.random.default_rng(1).gamma(2, 3, 72), 4.0], "m", "surprisal")
    axes = groups.plot(means, "surprisal").axes[0]
    assert axes.get_ylabel() == "mean surprisal\nwith 95 % intervals"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["2", "10"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["b", "a", "$c$"]
    for container, kind in zip(axes.containers, ("b", "a", "$c$"), strict=True):
        line, _, (bars,) = container
        of_line = [one for one in means if one.group["kind"] == kind]
        assert list(line.get_ydata()) == [one.value for one in of_line]
        ends = [y for bar in bars.get_segments() for _, y in bar]
        assert ends == pytest.approx([y for one in of_line for y in one[4:6] if y is not None])
    alone = make_groups(make_rows()[:3], ["item", "kind"], ["region", "kind"])
    axes = alone.plot(alone.means([1.0] * 3, "m", "surprisal"), "surprisal").axes[0]
    assert axes.get_ylabel() == "mean surprisal"


def test_groups_whose_names_are_equal_are_told_apart():
    rows = [dict(item=1, a=a, b=b) for a, b in (("x", "y x z"), ("x x y", "z"))]
    found = make_groups(rows, ["item"], ["a", "b"]).means([1.0, 2.0], "m", "x")
    assert [one.label for one in found] == ["'x' x 'y x z'", "'x x y' x 'z'"]
