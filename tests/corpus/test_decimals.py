import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.cells import Missing
from spacy_pll.corpus.decimals import DecimalComma, Decimals, with_decimal_comma

from .reading import read_rows, write_table


@pytest.mark.parametrize("cell", ["375,0", "-0,5", "+12,25", "0,125", "1,2345"])
def test_numbers_with_a_comma(cell):
    assert isinstance(with_decimal_comma(cell), DecimalComma)


@pytest.mark.parametrize("cell", ["1,000", "a,b", "1,2,3", "375.0", ",5", "5,", "", "x 1,5"])
def test_other_cells(cell):
    assert not isinstance(with_decimal_comma(cell), DecimalComma)


MARK, NUMBER = DecimalComma("3,5"), "3.5"


@pytest.mark.parametrize(
    ("rows", "commas"),
    [
        ([{"rt": MARK}, {"rt": "4"}, {"rt": ""}, {"rt": Missing("NA")}], True),
        ([{"rt": MARK}, {"rt": "often"}], False),
        ([{"word": MARK, "rt": "1"}, {"word": "Pi", "rt": "2"}], False),  # a word of a text
        ([{"rt": MARK, "other": NUMBER}], False),
        ([{"rt": MARK, "word": NUMBER}, {"rt": MARK, "word": "Version"}], True),
        ([{"rt": MARK}, {"rt": "375,123"}], True),  # which may be thousands, were it alone
        ([{"rt": "375,123"}], False),
        ([{"rt": "3,5"}], False),  # of no table
        ([{"score": -1.5}], False),
    ],
)
def test_which_tables_have_decimal_commas(rows, commas):
    decimals = Decimals()
    for row in rows:
        decimals.add(row)
    assert decimals.are_commas == commas


@given(st.lists(st.tuples(st.floats(0, 999).map(lambda x: round(x, 1)), st.floats(-50, 0)), min_size=1, max_size=5))
@pytest.mark.parametrize(("mark", "ending"), [(";", ".csv"), ("\t", ".tsv"), (",", ".csv"), ('","', ".csv")])
def test_numbers_are_written_as_those_of_the_input(tmp_path_factory, mark, ending, numbers):
    """Read back with one decimal mark, all numbers are what they were."""
    folder = tmp_path_factory.mktemp("tables")
    comma, quote = mark != ",", '"' * (mark == '","')  # quoted cells may have commas
    shown = [str(rt).replace(".", ",") if comma else str(rt) for rt, _ in numbers]
    lines = [f"{quote}{word}{mark}{rt}{quote}\n" for word, rt in [("word", "rt"), *(("Wort", rt) for rt in shown)]]
    (folder / f"in{ending}").write_text("".join(lines))
    rows = [row for _, row in read_rows(folder / f"in{ending}")]
    write_table(folder / f"out{ending}", [{**row, "pll": score} for row, (_, score) in zip(rows, numbers)])
    content = (folder / f"out{ending}").read_text()
    found = csv.DictReader(io.StringIO(content), delimiter=";" if quote else mark)
    read = [
        tuple(float(row[name].replace(",", ".") if comma else row[name]) for name in ("rt", "pll")) for row in found
    ]
    assert read == numbers and ("." not in content if comma else "," in content)
