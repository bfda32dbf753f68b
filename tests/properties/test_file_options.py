"""A table reads the same however it is written, if the options say how: for all functions that read tables."""

import csv
import io

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from spacy.vocab import Vocab

import spacy_pll
from spacy_pll import InputError
from spacy_pll.corpus.inputs import Input
from spacy_pll.corpus.readers import read_records, read_rows, read_texts
from spacy_pll.corpus.records import FileOptions, ReadOptions
from spacy_pll.evaluation.slots import read_slots

TEXTS = ["The cats sleep.", "Der Bär läuft.", 'She said: "It is".', "a; b, c", "NA", "N/A is no name."]
WITH_GAP = [f"{text} ___" for text in TEXTS]
SITES = ["K2R", "T3S", "A4G:Y5F", "K2T"]
HEADERS = {
    "pairs": ("good", "bad"),
    "choices": ("context", "a", "b", "label"),
    "slots": ("text", "right"),
    "acceptability": ("sentence", "label"),
    "crows_pairs": ("sent_more", "sent_less", "stereo_antistereo", "bias_type"),
    "variants": ("mutant", "effect"),
    "texts": ("text", "n"),
}
ROWS = {
    "pairs": [(text, f"{text} No.") for text in TEXTS],
    "choices": [(text, f"{text} Yes.", "no", "a") for text in TEXTS],
    "slots": [(text, "tea") for text in WITH_GAP],
    "acceptability": [(text, str(i % 2)) for i, text in enumerate(TEXTS)],
    "crows_pairs": [(text, f"{text} No.", "stereo", "age") for text in TEXTS],
    "variants": [(site, "0.5") for site in SITES],
    "texts": [(text, "1") for text in TEXTS],
}


def of_suite(reader):
    def read(path, **options):
        suite = spacy_pll.read_suite(path, reader, **options)
        return [suite.texts, suite.places]

    return read


def without_places(items):
    """A file without a header begins one line earlier."""
    return [one._replace(place="") for one in items]


READERS = {
    "read_pairs": ("pairs", lambda path, **options: spacy_pll.read_pairs(path, **options)),
    "read_choices": (
        "choices",
        lambda path, **options: spacy_pll.read_choices(path, ["context"], ["a", "b"], "label", **options),
    ),
    **{f"read_suite, {name}": (name, of_suite(name)) for name in ("pairs", "acceptability", "crows_pairs")},
    "read_slots": (
        "slots",
        lambda path, **options: without_places(read_slots(path, ["tea", "cup"], gold="right", **options)),
    ),
    "read_variants": ("variants", lambda path, **options: without_places(spacy_pll.read_variants(path, **options))),
}
# Those that take the options as one.
INNER = {
    "read_rows": lambda path, files: [row for _, row in read_rows(path, files)],
    "read_texts": lambda path, files: list(read_texts(str(path), ReadOptions("text", files=files))),
    "read_records": lambda path, files: [
        (one.text, one.fields) for one in read_records(str(path), ReadOptions(files=files))
    ],
    "Input": lambda path, files: [(one.text, one.fields) for one in Input(str(path), files=files).records(Vocab())],
}


def write(path, header, rows, files):
    """A table as the options say."""
    text = io.StringIO(newline="")
    delimiter = files.delimiter or ("\t" if path.suffix == ".tsv" else ",")
    quoting = csv.QUOTE_NONE if files.quoting == "none" else csv.QUOTE_MINIMAL
    table = csv.writer(text, delimiter=delimiter, quoting=quoting, quotechar=None if files.quoting == "none" else '"')
    try:
        table.writerows([*([] if files.header else [header]), *rows])
    except csv.Error:  # without quotation marks, no cell can have a delimiter
        assume(False)
    path.write_bytes(text.getvalue().encode(files.encoding))


written = st.fixed_dictionaries(
    {},
    optional={
        "encoding": st.sampled_from(["utf-8", "cp1252", "utf-16", "latin-1"]),
        "delimiter": st.sampled_from([",", ";", "\t", "|"]),
        "quoting": st.sampled_from(["csv", "none"]),
        "header": st.booleans(),
        "na_as_text": st.just(True),
    },
)


def options_of(options, header):
    """With `header` as names, and what all tables here need: that NA is a text, and no guess at quotation marks."""
    named = {**options, "header": header} if options.pop("header", False) else options
    return {"quoting": "csv", **named, "na_as_text": True}


@pytest.mark.parametrize("name", READERS)
def test_keyword_arguments_say_how_a_table_is_written(name, tmp_path_factory):
    kind, read = READERS[name]
    folder = tmp_path_factory.mktemp("tables")
    plain = folder / "plain.csv"
    write(plain, HEADERS[kind], ROWS[kind], FileOptions())
    expected = read(str(plain), na_as_text=True, quoting="csv")

    @given(written, st.sampled_from([".csv", ".tsv"]))
    @example({"encoding": "cp1252", "delimiter": ";", "header": True}, ".csv")
    def check(options, ending):
        options, path = options_of(dict(options), HEADERS[kind]), folder / f"a{ending}"
        write(path, HEADERS[kind], ROWS[kind], FileOptions(**options))
        found = read(str(path), **options)
        assert found == expected

    check()
    with pytest.raises((InputError, ValueError), match="`colour` says nothing of|argument 'colour'"):
        read(str(plain), colour="red")


@pytest.mark.parametrize("name", INNER)
def test_options_as_one_say_how_a_table_is_written(name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    plain = folder / "plain.csv"
    write(plain, HEADERS["texts"], ROWS["texts"], FileOptions())
    expected = INNER[name](plain, FileOptions(na_as_text=True, quoting="csv"))

    @given(written, st.sampled_from([".csv", ".tsv"]))
    def check(options, ending):
        files, path = FileOptions(**options_of(dict(options), HEADERS["texts"])), folder / f"a{ending}"
        write(path, HEADERS["texts"], ROWS["texts"], files)
        assert INNER[name](path, files) == expected

    check()
