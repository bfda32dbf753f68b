import math
import re
import warnings

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_pll import make_pipeline, score_words
from spacy_pll.cells import Missing
from spacy_pll.tables.word_rows import surprisal_with_unit, texts_of_rows

PLAIN = {"log_frequency": False}


@pytest.fixture(scope="module")
def nlp():
    return make_pipeline(metrics=["word_l2r", "original"])


def rows_of(words, **more):
    return [{"word": word, **more} for word in words]


def test_values_are_those_of_the_text(nlp):
    doc = nlp("The traveler lost the souvenir .")
    found = score_words(rows_of([token.text for token in doc]), nlp, **PLAIN)
    for row, token in zip(found, doc, strict=True):
        assert row["pll_word_l2r"] == pytest.approx(token._.pll_word_l2r, abs=1e-5) and row["word"] == token.text
        assert row["pll_original"] == pytest.approx(token._.pll_original, abs=1e-5)
        assert row["surprisal"] == pytest.approx(-token._.pll, abs=1e-5) and row["pll_pieces"] == token._.pll_pieces
        assert row["length"] == len(token.text)


def test_a_word_is_what_the_row_says(nlp):
    """Contractions, hyphens, punctuation, other scripts: by an independent sum over the pieces' offsets."""
    words = ["She", "can't", "re-enter", "3,14", "New York,", "猫", "🙂", "[MASK]", "don't", "“so”", "end."]
    text = " ".join(words)
    found = score_words(rows_of(words), nlp, **PLAIN)
    whole = make_pipeline(metrics=["original"], keep_pieces=True)(text)
    record = whole._.pll_data
    start = 0
    for row, word in zip(found, words, strict=True):
        end = start + len(word)
        inside = [i for i, at in enumerate(record["start"]) if start <= at < end]
        assert row["pll_original"] == pytest.approx(sum(record["scores"]["original"][i] for i in inside), abs=1e-4)
        assert row["pll_pieces"] == len(inside)
        start = end + 1
    assert sum(row["pll_original"] for row in found) == pytest.approx(whole._.pll, abs=1e-4)


def test_texts_by_columns_in_their_order(nlp):
    one, two = "The cats sleep .".split(), "She saw herself .".split()
    rows = [{"item": n, "part": 1.0, "word": word} for both in zip(one, two) for n, word in enumerate(both)]
    with pytest.warns(UserWarning, match="Rows 1 and 3 are read as neighbours"):
        found = score_words(rows, nlp, by=["item", "part"], **PLAIN)
    assert [(row["item"], row["word"]) for row in found] == [(row["item"], row["word"]) for row in rows]
    for n, text in enumerate(("The cats sleep .", "She saw herself .")):
        total = sum(row["pll_word_l2r"] for row in found if row["item"] == n)
        assert total == pytest.approx(nlp(text)._.pll, abs=1e-5)
    alone = score_words(rows_of(one), nlp, **PLAIN)
    assert [row["pll_word_l2r"] for row in found[::2]] == pytest.approx(
        [row["pll_word_l2r"] for row in alone], abs=1e-5
    )


@pytest.mark.parametrize("empty", [None, "", "  ", float("nan"), "\u00a0", pd.NA, Missing("NA")])
def test_rows_without_a_word_are_kept(nlp, empty):
    words = ["The", empty, "cats", "sleep", "sleep", empty]
    with pytest.warns(UserWarning, match="2 of 6 rows .*'word'"):
        found = score_words(rows_of(words), nlp, lags=1, **PLAIN)
    assert len(found) == 6 and all(found[i]["surprisal"] is None and found[i]["pll_pieces"] is None for i in (1, 5))
    full = score_words(rows_of(["The", "cats", "sleep", "sleep"]), nlp, lags=1, **PLAIN)
    assert [found[i]["surprisal_lag1"] for i in (0, 2, 3, 4)] == [row["surprisal_lag1"] for row in full]


def test_white_space_after_words(nlp):
    rows = [{"word": word, "s": space} for word, space in zip(["She", "left", "."], ["true", "0", ""])]
    found = score_words(rows, nlp, space_after="s", **PLAIN)
    assert sum(row["pll_word_l2r"] for row in found) == pytest.approx(nlp("She left.")._.pll, abs=1e-5)
    spaced = [{**row, "s": space} for row, space in zip(rows, [" ", "\n", "1"])]
    assert score_words(spaced, nlp, space_after="s", **PLAIN)[1]["surprisal"] == pytest.approx(
        score_words(rows_of(["She", "left", "."]), nlp, **PLAIN)[1]["surprisal"], abs=1e-5
    )


def test_bits(nlp):
    nats = score_words(rows_of(["The", "cats"]), nlp, lags=1, **PLAIN)
    bits = score_words(rows_of(["The", "cats"]), nlp, lags=1, base=2, **PLAIN)
    assert [row["surprisal_base2"] * math.log(2) for row in bits] == pytest.approx([row["surprisal"] for row in nats])
    assert bits[1]["surprisal_base2_lag1"] == pytest.approx(
        nats[1]["surprisal"] * 0 + nats[0]["surprisal"] / math.log(2)
    )
    assert "surprisal" not in bits[0] and bits[0]["pll_word_l2r"] == nats[0]["pll_word_l2r"]
    named = score_words(rows_of(["The", "cats"]), nlp, lags=1, base=2, attr="surprisal", **PLAIN)
    as_pll = [{re.sub("^surprisal_(?!base)(?!lag)", "pll_", name): row[name] for name in row} for row in named]
    assert as_pll == bits


def test_what_the_surprisal_is_for_people():
    named = [surprisal_with_unit(base, "causal") for base in (None, 2, 2.0, 10)]
    assert named == [
        "surprisal (causal, nats)",
        *["surprisal_base2 (causal, bits)"] * 2,
        "surprisal_base10 (causal, base 10)",
    ]


def test_data_frames(nlp):
    table = pd.DataFrame({"word": ["The", None, "cats", 3], "rt": [1.5, 2, 3, 4]}, index=[7, 8, 9, 3])
    with pytest.warns(UserWarning, match="1 of 4 rows"):
        found = score_words(table, nlp)
    assert list(found.index) == [7, 8, 9, 3] and list(found["rt"]) == [1.5, 2, 3, 4]
    assert found["surprisal"].isna().tolist() == [False, True, False, False] and "log_frequency" in found
    assert list(table.columns) == ["word", "rt"]


class Frame:
    """What `score_words` needs of polars, which need not be installed: its rows, and columns beside them."""

    def __init__(self, data, schema_overrides=None):
        self.data, self.types = {name: [*values] for name, values in data.items()}, schema_overrides or {}

    @property
    def columns(self):
        return [*self.data]

    def to_dict(self):  # which in polars has no argument as that of pandas
        return self.data

    def to_dicts(self):
        return [dict(zip(self.data, row)) for row in zip(*self.data.values())]

    def hstack(self, other):
        return Frame({**self.data, **other.data}, {**self.types, **other.types})


def of_polars(data):
    return pytest.importorskip("polars").DataFrame(data)


@pytest.mark.filterwarnings("ignore:Rows 1 and 5 are read as neighbours")
@pytest.mark.parametrize("make", [Frame, of_polars])
def test_data_frames_of_polars(nlp, make):
    """In their order, and None where pandas has NaN."""
    data = {"word": ["The", None, "cats", "", "3"], "rt": [1.5, None, 3, 4, math.nan], "item": [*"aabba"]}
    table, as_rows = make(data), [dict(zip(data, row)) for row in zip(*data.values())]
    with pytest.warns(UserWarning, match="2 of 5 rows"):
        found = score_words(table, nlp, by="item", lags=1)
    with pytest.warns(UserWarning, match="2 of 5 rows"):
        rows = score_words(as_rows, nlp, by="item", lags=1)
    assert type(found) is type(table) and list(found.columns) == [*rows[0]] and list(table.columns) == [*data]
    for one, other in zip(found.to_dicts(), rows, strict=True):
        assert one.keys() == other.keys()
        for name, value in other.items():
            number = pytest.approx(value, abs=1e-4, nan_ok=True) if isinstance(value, float) else value
            assert one[name] == number
    if make is Frame:
        assert found.types["pll_pieces"] is int and found.types["surprisal"] is float


def test_a_data_frame_of_polars_without_a_word_has_columns_with_types(nlp):
    table = of_polars({"word": ["", None]})
    with pytest.warns(UserWarning, match="2 of 2 rows"):
        found = score_words(table, nlp)
    assert str(found["pll_pieces"].dtype) == "Int64" and str(found["surprisal"].dtype) == "Float64"


@pytest.mark.parametrize("empty", [None, "", "  ", float("nan"), pd.NA, Missing("NA")])
@pytest.mark.filterwarnings("ignore:.*have no word")
def test_a_text_that_is_not_named_is_an_error_with_its_row(nlp, empty):
    """Merged cells of a sheet have their value in the first row alone."""
    rows = [{"item": item, "word": word} for item, word in zip([1, empty, 2, empty], ["The", "cats", "She", "left"])]
    with pytest.raises(ValueError, match="Row 2: .*'item' of `by`"):
        texts_of_rows(rows, "word", ["item"])
    rows = [{**row, "word": row["word"] if isinstance(row["item"], int) else empty} for row in rows]
    assert texts_of_rows(rows, "word", ["item"]) == [[(0, "The")], [(2, "She")]]  # without a word, it does not matter


def test_white_space_around_a_value_names_no_other_text():
    rows = [{"item": item, "word": "a"} for item in ("1", "1 ", 1, " 1", "2")]
    assert [len(text) for text in texts_of_rows(rows, "word", ["item"])] == [4, 1]


def test_numbers_that_are_sorted_as_text_are_noticed(nlp):
    rows = [{"story": "s", "place": i, "word": word} for i, word in enumerate("a b c d e f g h i j k l".split(), 1)]
    rows.sort(key=lambda row: str(row["place"]))
    with pytest.warns(UserWarning, match="Rows 4 and 5 are .* have 12 and 2 in the column 'place', .* not as text"):
        score_words(rows, nlp)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score_words(sorted(rows, key=lambda row: row["place"]), nlp)


@pytest.mark.parametrize(
    ("rows", "how", "message"),
    [
        ([{"w": "a"}], {}, "Row 1: there is no column 'word'. The columns are: 'w'. Name another with `word`"),
        ([{"word": "a"}], {"by": ["item"]}, "Row 1: there is no column 'item'.*`by`"),
        ([{"word": ["a"]}], {}, r"Row 1: a word must be text. It is \['a'\]"),
        ([{"word": "a", "surprisal": 1}], {}, "already has a column 'surprisal'"),
        ([{"word": "a", "s": "maybe"}], {"space_after": "s"}, "Row 1: 's' is 'maybe', which does not say"),
        ([{"word": "a"}], {"space_after": "s"}, "Row 1: there is no column 's'"),
        ([{"word": "a"}], {"base": 1}, "`base` must be a number above 1"),
    ],
)
def test_tables_that_cannot_be_scored(nlp, rows, how, message):
    with pytest.raises(ValueError, match=message):
        score_words(rows, nlp, **how, **PLAIN)


@settings(max_examples=8)
@given(words=st.lists(st.text(st.sampled_from("ab'-. \u00e9\u732b"), max_size=5), min_size=1, max_size=6))
@pytest.mark.filterwarnings("ignore:.*have no word")
def test_sums_are_those_of_the_text(nlp, words):
    found = score_words(rows_of(words), nlp, **PLAIN)
    assert len(found) == len(words)
    scores = [row["pll_original"] for row in found if row["pll_original"] is not None]
    text = " ".join(word.strip() for word in words if word.strip())
    assert sum(scores) == pytest.approx(nlp(text)._.get("pll_original") or 0.0, abs=1e-3)
