"""The files of choices: own tables, and those of BLiMP, EWoK, COMPS, entity tracking and WUG as they are published."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from ..corpus.records import get_text
from ..errors import InputError, no_column
from .choices import check_choice
from .items import PARADIGM, Choice, Option
from .labels import LabelKind, Labelled, read_labels
from .readers import check_distinct, rows_of

EwokReading = Literal["texts", "contexts"]


def read_choices(
    path: str,
    context: Sequence[str] = (),
    options: Sequence[str] = (),
    label: str | None = None,
    *,
    labels: LabelKind | None = None,
    separator: str = " ",
    after: str | None = None,
    reading: EwokReading = "texts",
    **how: Any,
) -> list[Choice]:
    """Read choices from a file, or from the files of a folder in the order of their names.

    If you name no column, those that are there say how a row is read: those of BLiMP, EWoK (Ivanova et al. 2024), COMPS
    (Misra et al. 2023), entity tracking (Kim & Schuster 2023) and BabyLM's WUG, whose `ratio` is a preference of
    people, or else `context`, `options` and `label`.

    context (Sequence[str]): The columns of the contexts, or one column of a list. Empty: `context`, if there is one.
    options (Sequence[str]): The columns of the texts, or one column of a list. A single text is an option in each of
        several contexts.
    label (Optional[str]): The column that says which option is right: its text, its column, its number from 0, or its
        letter; in one file all in the same way. None: `label`.
    labels (Optional[LabelKind]): How labels are read: "text", "column", "from0", "from1" (numbers from 1), or "letter".
        None: as all of a file can be read.
    separator (str): Put between a context and a text, unless one of them has white space there.
    after (Optional[str]): The column of what stands after the text, of files of your own.
    reading (Literal["texts", "contexts"]): Whether a row of EWoK is two texts after the first context, or each of its
        texts in two contexts.
    how (Any): How files are written: `encoding`, `delimiter`, `quoting`, `header`, `na_as_text` (see `FileOptions`).
    RETURNS (List[Choice]): Those from a folder also have the field `file`: the name without endings.
    RAISES (InputError): A row cannot be read; the message gives the line.
    """
    check_distinct(context=context, options=options, label=[label], after=[after])
    found, labelled = list[Choice](), defaultdict[Path, dict[int, Labelled]](dict)
    made: Iterable[Choice]
    for file, place, row, of_file in rows_of(path, "choices", how):
        published = [read for columns, read in PUBLISHED.items() if columns <= row.keys()]
        if context or options or label or after or not published:
            choice, right = _own(
                row, place, context or ["context"] * ("context" in row), options or ["options"], label, after
            )
            labelled[file][len(found)], made = right, [choice]
        else:
            made = published[0](row, place, file.stem, reading)
        for choice in made:
            check_choice(choice, place)
            texts = [option._replace(separator=separator) for option in choice.options]
            found.append(choice._replace(options=texts, fields={**of_file, **choice.fields}))
    if not found:
        raise InputError(f"There is no choice in {path!r}.")
    for of_one in labelled.values():
        numbers = read_labels([*of_one.values()], label or "label", labels)
        for i, number in zip(of_one, numbers):
            found[i] = found[i]._replace(right=number)
    return found


def _own(
    row: dict[str, Any],
    place: str,
    context: Sequence[str],
    options: Sequence[str],
    label: str | None,
    after: str | None,
) -> tuple[Choice, Labelled]:
    """A choice of which it is not known yet which option is right, and what says so."""
    contexts, texts = _texts_in(row, place, context, "`context`"), _texts_in(row, place, options, "`options`")
    if len(contexts) > 1 and len(texts) > 1:
        raise InputError(
            f"{place}: {len(contexts)} contexts and {len(texts)} options. One of the two must be a single text."
        )
    name = label or "label"
    if name not in row:
        raise no_column(place, name, row, "Name the column that says which option is right with `label`.")
    if len(contexts) < 2 and len(texts) < 2:
        raise InputError(f"{place}: a choice needs two options or more. It has {len(texts)}.")
    several, columns = (contexts, context) if len(contexts) > 1 else (texts, options)
    rest = get_text(row, place, after, "`after`") if after else ""
    made = [Option(text, before, after=rest) for before in contexts or [""] for text in texts]
    fields = {column: value for column, value in row.items() if column not in {*context, *options, name, after}}
    return Choice(made, 0, fields), Labelled(place, row[name], several, columns)


def _texts_in(row: dict[str, Any], place: str, columns: Sequence[str], setting: str | None) -> list[str]:
    """The texts of several columns, or of a list in one column."""
    if len(columns) == 1 and isinstance(values := row.get(columns[0]), list):
        return [get_text({columns[0]: value}, place, columns[0], setting) for value in values]
    return [get_text(row, place, column, setting) for column in columns]


def _blimp(row: dict[str, Any], place: str, file: str, reading: EwokReading) -> Iterator[Choice]:
    good, bad, others = _split(row, place, "sentence_good", "sentence_bad")
    yield Choice([Option(good), Option(bad)], 0, others)


def _comps(row: dict[str, Any], place: str, file: str, reading: EwokReading) -> Iterator[Choice]:
    good, bad, text, others = _split(row, place, "prefix_acceptable", "prefix_unacceptable", "property_phrase")
    fields = {PARADIGM: file.removeprefix("comps_").replace("-", "_"), **others}
    yield Choice([Option(text, good), Option(text, bad)], 0, fields)


def _entities(row: dict[str, Any], place: str, file: str, reading: EwokReading) -> Iterator[Choice]:
    texts, numops = row["options"], row["numops"]
    context, others = _split({k: v for k, v in row.items() if k != "options"}, place, "input_prefix")
    options = [Option(text, context) for text in _texts_in({"options": texts}, place, ["options"], None)]
    yield Choice(options, 0, {PARADIGM: f"{file}_{numops}_ops", **others})


def _ewok(row: dict[str, Any], place: str, file: str, reading: EwokReading) -> Iterator[Choice]:
    *contexts, one, two, others = _split(row, place, "Context1", "Context2", "Target1", "Target2")
    fields = {PARADIGM: row.get("Domain", ""), **others}
    if reading == "texts":
        yield Choice([Option(one, contexts[0]), Option(two, contexts[0])], 0, fields)
    else:
        for right, text in enumerate((one, two)):
            yield Choice([Option(text, context) for context in contexts], right, fields)


def _wug(row: dict[str, Any], place: str, file: str, reading: EwokReading) -> Iterator[Choice]:
    texts, ratio = row["sentences"], row["ratio"]
    options = texts.split("\t") if isinstance(texts, str) else _texts_in(row, place, ["sentences"], None)
    try:
        preference = float(ratio)
    except (TypeError, ValueError):
        raise InputError(f"{place}: 'ratio' must be a number. It is {ratio!r:.100}.") from None
    fields = {name: value for name, value in row.items() if name != "sentences"}
    uid = file.removesuffix("_nominalization").removesuffix("_tense")
    yield Choice([Option(text) for text in options], 0, {PARADIGM: uid, **fields}, preference)


def _split(row: dict[str, Any], place: str, *columns: str) -> list[Any]:
    """The texts of these columns, and last the other columns."""
    texts: list[Any] = [get_text(row, place, column, None) for column in columns]
    return [*texts, {name: value for name, value in row.items() if name not in columns}]


# How a row with these columns is read. The first option is right, or, in a second choice of a row, the second.
PUBLISHED: dict[frozenset[str], Callable[[dict[str, Any], str, str, EwokReading], Iterator[Choice]]] = {
    frozenset(("sentence_good", "sentence_bad")): _blimp,
    frozenset(("Context1", "Context2", "Target1", "Target2")): _ewok,
    frozenset(("prefix_acceptable", "prefix_unacceptable", "property_phrase")): _comps,
    frozenset(("input_prefix", "options", "numops")): _entities,
    frozenset(("sentences", "ratio")): _wug,
}
