import json
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_pll.cells import NA, Missing, is_missing, label_of, name_of, number_in, numbers_in, whole_number
from spacy_pll.corpus.decimals import DecimalComma

from .corpus.reading import read_rows

white_space = st.text(" \t\n\u00a0\u3000\u2009", max_size=3)
MISSING = [None, "", " ", "\u00a0\t", math.nan, np.float32("nan"), Decimal("nan"), pd.NA, pd.NaT, Missing("NA")]


@pytest.mark.parametrize("value", MISSING)
def test_what_is_missing(value):
    assert is_missing(value) and label_of(value) == "" and math.isnan(number_in(value)) and whole_number(value) is None


@pytest.mark.parametrize(
    "value", [0, 0.0, False, "0", "NA", "nan", "None", "-", [], {}, np.array([math.nan, 1]), "\u200b"]
)
def test_what_is_there(value):
    assert not is_missing(value) and label_of(value)


@pytest.mark.parametrize(
    ("value", "label"),
    [(" a b ", "a b"), (1.0, "1"), (np.float64(-2), "-2"), (1, "1"), (True, "True"), (0.5, "0.5"), ("1.0", "1.0"),
     (math.inf, "inf"), (DecimalComma("1,5 "), "1,5"), (["a"], "['a']"), (1e22, "10000000000000000000000")],
)  # fmt: skip
def test_labels(value, label):
    assert label_of(value) == label == name_of(value) and type(label_of(value)) is str


def test_what_has_no_label_is_called_as_it_is_written():
    assert [name_of(value) for value in (Missing("N/A "), None, "", " ", math.nan)] == [
        "N/A",
        "None",
        "''",
        "''",
        "nan",
    ]


@pytest.mark.parametrize(
    ("value", "number"),
    [(2, 2), ("2.0", 2), (" -3 ", -3), (2.0, 2), ("+1", 1), ("2.5", None), (2.5, None), ("1,0", None), ("1e3", None),
     (True, None), ("", None), (math.inf, None), ("9" * 5000, None), ("x", None)],
)  # fmt: skip
def test_whole_numbers(value, number):
    assert whole_number(value) == number


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        (["1", 2, "3.5", "-1e-3", ".5", "inf", True], [1, 2, 3.5, -0.001, 0.5, math.inf, 1]),
        (["0,4", "-12,25", "375,123", "4", "1e-3"], [0.4, -12.25, 375.123, 4, 0.001]),
        (["1,234", "2"], [None, 2]),  # which may be thousands
        (["0,4", "1.234"], [None, 1.234]),  # one of the two separates thousands
        (["0,4", 0.5], [None, 0.5]),
        (["0,4", "1.234,5"], [None, None]),
        (["1,2,3", "1_000", "0x1", "high", [1], {}, "1 2"], [None] * 7),
        ([10**400, "1"], [None, 1]),
    ],
)
def test_numbers(column, numbers):
    assert numbers_in(column) == numbers


@pytest.mark.parametrize("name", [*sorted(NA), "n/a", "None", "null", "NULL", "nan", "NAN"])
def test_no_name_of_what_is_missing_is_a_number(name):
    """In all formats, and also where NA is a text elsewhere."""
    assert math.isnan(numbers_in(["0,5", name])[1]) and math.isnan(number_in(f" {name} "))


any_cell = st.one_of(st.text(max_size=4), st.sampled_from(["1", "-2.5", "0,5", "1,5", "NA", "1e3", "x"]))


@given(before=white_space, column=st.lists(any_cell, max_size=4), after=white_space)
@example(before=" ", column=["0,5", "1,234"], after="\u00a0")
def test_white_space_around_a_cell_says_nothing(before, column, after):
    padded = [f"{before}{cell}{after}" for cell in column]
    for read in (is_missing, label_of, name_of, whole_number):
        assert list(map(read, padded)) == list(map(read, column))
    assert list(map(repr, numbers_in(padded))) == list(map(repr, numbers_in(column)))


def cells_of(folder, ending, column, delimiter=","):
    """A column as it is read from a file of a format."""
    path = folder / f"a{ending}"
    if ending == ".parquet":
        pq.write_table(pa.table({"n": range(len(column)), "x": column}), path)
    elif ending == ".jsonl":
        path.write_text("".join(json.dumps({"n": n, "x": one}) + "\n" for n, one in enumerate(column)))
    else:
        cells = ["" if one is None else str(one) for one in column]
        cells = [one.replace(".", ",") for one in cells] if delimiter == ";" else cells
        path.write_text("".join(f"{n}{delimiter}{one}\n" for n, one in [("n", "x"), *enumerate(cells)]))
    return [row["x"] for _, row in read_rows(path)]


@given(column=st.lists(st.none() | st.floats(-999, 999).map(lambda x: round(x, 3)), min_size=1, max_size=5))
@example(column=[1.125, 0.5, None])
def test_numbers_are_the_same_in_all_formats(tmp_path_factory, column):
    """With a decimal comma, some of them must show that it is one."""
    folder, commas = tmp_path_factory.mktemp("tables"), [*column, 0.5]
    wanted = [math.nan if one is None else one for one in commas]
    for ending, delimiter in ((".csv", ","), (".csv", ";"), (".jsonl", ""), (".parquet", "")):
        assert numbers_in(cells_of(folder, ending, commas, delimiter)) == pytest.approx(wanted, abs=0, nan_ok=True)


@given(column=st.lists(st.none() | st.integers(-9, 9).map(float), min_size=1, max_size=5))
def test_labels_are_the_same_in_all_formats(tmp_path_factory, column):
    folder = tmp_path_factory.mktemp("tables")
    whole = [None if one is None else int(one) for one in column]
    wanted = ["" if one is None else str(one) for one in whole]
    for ending, written in ((".csv", whole), (".jsonl", column), (".jsonl", whole), (".parquet", column)):
        assert list(map(label_of, cells_of(folder, ending, written))) == wanted


@pytest.mark.parametrize("name", sorted(NA))
def test_the_names_are_marked_in_tables_alone(tmp_path, name):
    for ending in (".csv", ".tsv"):
        (tmp_path / f"a{ending}").write_text(
            f"x,n\n{name},1\n {name} ,2\n{name}.,3\n".replace(",", "\t" if "t" in ending else ",")
        )
        read = [row["x"] for _, row in read_rows(tmp_path / f"a{ending}")]
        assert list(map(is_missing, read)) == [True, True, False] and read == [name, f" {name} ", f"{name}."]
        assert not any(is_missing(row["x"]) for _, row in read_rows(tmp_path / f"a{ending}", na_as_text=True))
    assert not is_missing(cells_of(tmp_path, ".jsonl", [name])[0])
