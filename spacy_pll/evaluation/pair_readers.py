"""The files of minimal pairs: two columns of sentences, or one with a label, as they are published.

Columns that the user names come first, then those that are known. Where neither is there, an error lists the columns.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..advice.giving import advise
from ..advice.items import copies
from ..advice.lines import no_sentences
from ..cells import is_missing, label_of
from ..compression import format_of
from ..corpus.records import AS_R_WRITES, FileOptions, get_text, has_spaces
from ..errors import InputError, no_column
from ..settings import in_order, with_known_values
from ..user_warnings import warn_user
from .items import Fields, Pair
from .labels import is_good
from .readers import TABLE_ENDINGS, check_distinct, of_folders, rows_of

First = Literal["good", "bad"]
TXT, TEXT = ".txt", "text"  # the column of the lines of .txt files
# What the columns of the two sentences are called: in BLiMP and others; here; in JBLiMP and TurBLiMP; in MultiBLiMP; in
# RuBLiMP; in CrowS-Pairs.
KNOWN = (
    ("sentence_good", "sentence_bad"),
    ("good", "bad"),
    ("good_sentence", "bad_sentence"),
    ("sen", "wrong_sen"),
    ("source_sentence", "target_sentence"),
    ("sent_more", "sent_less"),
)


class Long(NamedTuple):
    """How a table with one sentence in a row is read."""

    sentence: str  # the column of the sentences
    label: str | None = None  # the column that says which are good
    good: str | None = None  # what it has there; None: see `is_good`
    item: Sequence[str] = ()  # columns that the two sentences of a pair have in common; none: they are neighbours
    first: First | None = None  # which of two neighbours comes first, if there is no label
    renamed: Mapping[str, str] = {}  # other names for columns


class _Row(NamedTuple):
    location: str
    sentence: str
    good: bool | None  # None: there is no label
    fields: dict[str, Any]  # the other columns


@of_folders
@with_known_values
def read_pairs(
    path: str,
    good: str | None = None,
    bad: str | None = None,
    *,
    sentence: str | None = None,
    label: str | None = None,
    item: Sequence[str] = (),
    first: First | None = None,
    **file_options: Any,
) -> list[Pair]:
    """Read minimal pairs from a file, or from the files of a folder in the order of their names.

    Each row is a pair. If `sentence` is given, each row is one of the two sentences of a pair. If you name no column,
    the names of many published files are known: docs/test-sets.md has a table of them.

    good (Optional[str]): Column of the sentence that should score higher. None: a known name, such as good.
    bad (Optional[str]): Column of the other sentence. None: a known name, such as bad.
    sentence (Optional[str]): Column of the sentences, if each has a row of its own, in place of `good` and `bad`.
    label (Optional[str]): With `sentence`: the column that says which sentences are good, and what it has there, as in
        "Voice=active", if it is not 1, True, Grammatical or the like.
    item (Sequence[str]): With `sentence`: columns that have the same values in the two rows of a pair, and in no
        others. Empty: the two rows follow one another.
    first (Optional[Literal["good", "bad"]]): Which sentence of a pair comes first, if no column says which is good.
        None: in .txt files the bad one, as in Zorro.
    file_options (Any): How files are written: `encoding`, `delimiter`, `quoting`, `header`, `na_as_text` (see
        `FileOptions`).
    RETURNS (list[Pair]): Those from a folder also have the field `file`: the name without endings, with its subfolder.
        A column in which the two rows of a pair differ becomes two, such as `cue_good` and `cue_bad`.
    RAISES (InputError): A pair cannot be read; the message gives the line.

    ``` title="pairs.csv"
    good,bad
    The cats sleep.,The cats sleeps.
    ```

    ```python
    import spacy_pll

    [pair] = spacy_pll.read_pairs("pairs.csv")
    pair.good  # 'The cats sleep.'
    ```
    """
    files, item = FileOptions.of(file_options, "minimal pairs"), in_order(item)
    column, _, value = (label or "").partition("=")
    check_distinct(good=[good], bad=[bad], sentence=[sentence], label=[column], item=item)
    if (good or bad) and sentence:
        raise InputError("`sentence` is for tables with one sentence in a row.", "Leave it out, or `good` and `bad`.")
    if sentence and not label and (item or not first):
        raise InputError(
            "Nothing says which sentences are good.",
            "Name the column that does with `label`; or, if good and bad ones take turns, give `first='good'` or "
            "`first='bad'`.",
        )
    if (label or item) and not sentence:
        raise InputError("`label` and `item` are for tables with one sentence in a row.", "Give `sentence`, too.")
    long = Long(sentence, column or None, value or None, item, None if label else first) if sentence else None
    pairs, rows, layouts = list[Pair](), defaultdict[Path, list[_Row]](list), dict[Path, Long | None]()
    for file, location, row, of_file in rows_of(path, "minimal pairs", files, (TXT, *TABLE_ENDINGS)):
        if file not in layouts:
            layouts[file] = long if good or bad or long else _known_layout(file, row, first)
        if layout := layouts[file]:
            rows[file].append(_read_row(row, location, layout, of_file))
            continue
        names = _names(row, location, good, bad, files.header is None and format_of(file) in (".csv", ".tsv"))
        both = [_sentence(row, location, name, setting) for name, setting in zip(names, ("`good`", "`bad`"))]
        others = {k: v for k, v in row.items() if k not in names}
        pairs.append(Pair(both[0], both[1], Fields(location, {**of_file, **others})))
    if first and not any(layout and layout.first for layout in layouts.values()):
        raise InputError("`first` is for files in which good and bad sentences take turns.", "Leave it out.")
    for file, layout in layouts.items():
        if layout and format_of(file) == TXT and not layout.label:
            lines = [(row.location.rpartition(", ")[2], row.sentence) for row in rows[file]]
            advise(no_sentences(lines, str(file)))
        pairs += _paired(rows[file], layout) if layout else []
    if not pairs:
        raise InputError(f"There is no pair in {path!r}.")
    advise(*copies((pair.fields, pair[:2]) for pair in pairs))
    return pairs


def _known_layout(file: Path, row: dict[str, Any], first: First | None) -> Long | None:
    """The layout of a table with one sentence in a row, if it is known. None: each row has both sentences."""
    if format_of(file) == TXT:
        head, tab, _ = row[TEXT].partition("\t")
        if tab and head in ("True", "False"):  # CLAMS
            return Long(TEXT, TEXT)
        if first is None:
            warn_user(
                f"{file}: of each two lines, the second is read as the good sentence, as in Zorro. `first='bad'` says "
                "so, and `first='good'` the contrary."
            )
        return Long(TEXT, first=first or "bad")
    if {"Sentence", "Grammaticality", "Item"} <= row.keys():  # BLiMP-NL
        return Long("Sentence", "Grammaticality", item=[c for c in ("Phenomenon", "Paradigm", "Item") if c in row])
    if {"0", "1", "2", "3"} == row.keys() - {""}:  # CLiMP
        return Long("2", "3", renamed={"0": "phenomenon", "1": "paradigm"})
    return None


def _names(row: dict[str, Any], location: str, good: str | None, bad: str | None, table: bool) -> tuple[str, str]:
    """The columns of the two sentences. RAISES (InputError): They are not named, and not known."""
    # All that is missing is named as what is there suggests.
    known = max(KNOWN, key=lambda pair: len(row.keys() & {*pair}))
    partners = {**dict(KNOWN), **{b: a for a, b in KNOWN}}
    columns = good or partners.get(bad or "", known[0]), bad or partners.get(good or "", known[1])
    if missing := [name for name in columns if name not in row]:
        raise no_column(
            location,
            missing[0],
            row,
            "Name those of the two sentences with `good` and `bad`. Or, if each sentence has a row of its own, name its"
            " column with `sentence`, and that which says if it is good with `label`."
            + " If the file has no header, name its columns with `header`." * table
            + f" {AS_R_WRITES}" * (table and has_spaces(row)),
        )
    return columns


def _sentence(row: dict[str, Any], location: str, column: str, setting: str) -> str:
    sentence = get_text(row, location, column, setting)
    if not sentence.strip():
        raise InputError(f"{location}: {column!r} is empty. Each pair needs two sentences.")
    return sentence


def _read_row(row: dict[str, Any], location: str, layout: Long, of_file: dict[str, str]) -> _Row:
    if layout.sentence == layout.label:  # CLAMS: both are in one line
        label, _, sentence = row[TEXT].partition("\t")
        if not sentence.strip():
            raise InputError(
                f"{location}: there must be True or False, a tab and a sentence. It is {row[TEXT]!r:.100}."
            )
        return _Row(location, sentence, is_good(label, location, TEXT), of_file)
    sentence, good = _sentence(row, location, layout.sentence, "`sentence`"), None
    for setting, columns in (("label", [layout.label or layout.sentence]), ("item", layout.item)):
        if missing := [column for column in columns if column not in row]:
            raise no_column(location, missing[0], row, f"Give another `{setting}`.")
    if layout.item and all(is_missing(row[column]) for column in layout.item):
        named = ", ".join(map(repr, layout.item))
        raise InputError(f"{location}: there is no value in {named}.", "Add it, or leave the row out.")
    if layout.label:
        good = is_good(row[layout.label], location, layout.label, layout.good)
    others = {k: v for k, v in row.items() if k not in (layout.sentence, layout.label, "")}
    return _Row(location, sentence, good, {**of_file, **{layout.renamed.get(k, k): v for k, v in others.items()}})


def _paired(rows: list[_Row], layout: Long) -> Iterator[Pair]:
    """The pairs of a file."""
    if layout.item:
        items = defaultdict[tuple[str, ...], list[_Row]](list)
        for row in rows:
            items[tuple(label_of(row.fields[column]) for column in layout.item)].append(row)
        groups = [*items.values()]
    else:
        if layout.label is None:
            rows = [row._replace(good=(layout.first == "good") == (i % 2 == 0)) for i, row in enumerate(rows)]
        groups = [rows[i : i + 2] for i in range(0, len(rows), 2)]
    for group in groups:
        _check_group(group, layout, groups[0])
        good, bad = sorted(group, key=lambda row: not row.good)
        fields = Fields(group[0].location, _joined_fields(good.fields, bad.fields))
        yield Pair(good.sentence, bad.sentence, fields)


def _check_group(group: list[_Row], layout: Long, first: list[_Row]) -> None:
    """RAISES (InputError): It is not one good and one bad sentence, or neighbours have not the order of the first."""
    places = " and ".join([group[0].location, *(row.location.rpartition(", ")[2] for row in group[1:])])
    of = "of these neighbours"
    advice = (
        "A pair is one of each, in neighbouring rows. Name the columns that its rows share with `item`, or correct the "
        "rows."
    )
    if layout.item:
        of = f"of the item {', '.join(label_of(group[0].fields[column]) for column in layout.item)}"
        advice = "A pair has one of each. Name more columns with `item`, or correct the rows."
    elif len(group) == 1:
        raise InputError(f"{places}: the sentence has no partner.", "Each pair needs two rows, one after the other.")
    n_good = sum(bool(row.good) for row in group)
    if (n_good, len(group)) != (1, 2):
        raise InputError(f"{places}: {n_good} good and {len(group) - n_good} bad sentences {of}.", advice)
    if not layout.item and group[0].good != first[0].good:
        raise InputError(
            f"{places}: the {'good' if group[0].good else 'bad'} sentence comes first, and not in the pair before.",
            "A row may be missing. Or name the columns that the rows of a pair share with `item`.",
        )


def _joined_fields(good: dict[str, Any], bad: dict[str, Any]) -> dict[str, Any]:
    fields = dict[str, Any]()
    for name in {**good, **bad}:
        sides = {side: row[name] for side, row in (("good", good), ("bad", bad)) if name in row}
        is_shared = len(sides) == 2 and label_of(sides["good"]) == label_of(sides["bad"])
        fields |= {name: good[name]} if is_shared else {f"{name}_{side}": value for side, value in sides.items()}
    return fields
