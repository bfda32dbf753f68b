import json
from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import Choice, Measurement, Option
from spacy_pll.cli.results import INTERVAL, measurement_table, rows_of_results, save_results, with_interval, writer_of
from spacy_pll.evaluation.measurements import correlations


def test_a_table_of_any_measurements():
    """With an interval or without; of scorers that have other measures; in groups of any columns; - is not defined."""
    shares = [Measurement("m", "accuracy", 4, 0.75), Measurement("n", "accuracy", 4, 0.5, 0.1, 0.9)]
    assert cells_of(measurement_table(shares, "pairs")) == [
        ["accuracy in % (95 % interval)", "pairs", "m", "n"],
        ["overall", "4", "75.0", "50.0 (10.0-90.0)"],
    ]
    (rho,) = correlations(
        [Choice([Option(one) for one in "ab"], fields={"k": "a"}, preference=1.0)], {"m": np.ones(1)}, np.ones(1), []
    )
    assert cells_of(measurement_table([rho], "items")) == [
        ["Spearman's rho", "items", "m"],
        ["overall", "1", "-"],
    ]
    group = {"level": "kind", "name": "a", "group": {"kind": "a"}}
    mixed = [
        *shares,
        Measurement("m", "AUC", 2, np.float64(0.5), **group),
        Measurement("n", "accuracy", 2, 1.0, **group),
    ]
    assert cells_of(measurement_table([mixed[2], *mixed])) == [
        ["group", "measure", "n", "m", "n"],
        ["KIND"],
        ["a", "AUC", "2", "0.500"],
        ["a", "accuracy (95 % interval)", "2", "", "1.000"],
        ["overall", "accuracy (95 % interval)", "4", "0.750", "0.500 (0.100 to 0.900)"],
    ]
    assert cells_of(measurement_table([])) == [["measure", "n"]]
    rows = rows_of_results(mixed)
    assert [*rows[0]] == ["scorer", "measure", "n", "value", "low", "high", "level", "name", "group"]
    assert json.loads(json.dumps(rows))[2]["value"] == 0.5 and rows[0]["low"] is None


numbers = st.integers(0, 10**7) | st.floats(-1e4, 1e4)
ENDS = st.none() | st.tuples(numbers, numbers)


@st.composite
def measurements(draw):
    """Of some scorers, measures and groups, each at most once."""
    keys = draw(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "y", "r by word"]),
                                   st.sampled_from(["", "g", "h"])), unique=True, min_size=1))  # fmt: skip
    of_group = {one: {"level": "k", "name": one, "group": {"k": one}} for one in "gh"}
    return [
        Measurement(scorer, measure, 3, draw(st.none() | numbers), *(draw(ENDS) or ()), **of_group.get(group, {}))
        for scorer, measure, group in keys
    ]


@given(measurements())
def test_each_number_has_its_cell_and_an_interval_is_named_where_there_is_one(measured):
    header, *rows = cells_of(measurement_table(measured))
    n_names = header.index("n")
    have_interval = {one.measure for one in measured if one.low is not None}
    named, found, is_one = header[n_names - 1], 0, len({one.measure for one in measured}) == 1
    for row in rows:
        if len(row) == 1:
            assert row == ["K"]
            continue
        if n_names == 2:
            group, measure = row[:2]
        else:
            group, measure = (row[0], named) if is_one else ("overall", row[0])
        has = INTERVAL in measure or INTERVAL in named
        measure = measure.replace(f" {INTERVAL}", "")
        assert has == (measure in have_interval)
        for scorer, cell in zip(header[n_names + 1 :], row[n_names + 1 :]):
            if cell:
                (one,) = (one for one in measured if (one.scorer, one.measure, one.label) == (scorer, measure, group))
                assert cell == with_interval((one.value, one.low, one.high), writer_of(measure))
                found += 1
    assert found == len(measured) and (INTERVAL in measurement_table(measured)) == bool(have_interval)


def test_numbers_as_they_are_shown():
    shown = [
        writer_of(measure)(value)
        for measure, value in (("x", 1234.5), ("x", 1234), ("x", np.int64(5)), ("r by word", 0.99951))
    ]
    assert shown == ["1,234.500", "1,234", "5", "0.9995"]


def test_a_file_of_results(tmp_path):
    measured = [Measurement("m", "AUC", 4, 0.75, level="kind", name="a", group={"kind": "a"})]
    save_results(tmp_path / "o.json", measured, {"path": "x"}, counts={"texts": 2})
    content = json.loads((tmp_path / "o.json").read_text())
    assert [*content] == ["settings", "results", "counts"] and content["results"][0]["group"] == {"kind": "a"}
    save_results(tmp_path / "o.csv", measured, {"path": "x"}, counts={"texts": 2})
    assert (tmp_path / "o.csv").read_text() == "scorer,measure,n,value,level,name,by_kind\nm,AUC,4,0.75,kind,a,a\n"
    save_results(None, measured, {})


def cells_of(table):
    """The cells of each line; those that are empty at its end have no space."""
    header, rule, *lines = table.strip("\n").splitlines()
    ends = list(accumulate((len(one) + 3 for one in rule.split("   ")), initial=0))
    rows = [[line[a:b].strip() for a, b in zip(ends, ends[1:])] for line in (header, *lines)]
    return [row[: max(i for i, cell in enumerate(row, 1) if cell)] for row in rows if any(row)]
