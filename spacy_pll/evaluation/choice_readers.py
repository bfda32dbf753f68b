"""The files of choices: own tables, and those of BLiMP, EWoK, COMPS, entity tracking and WUG as they are published."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any, Literal

from ..advice.giving import advise
from ..advice.items import copies
from ..cells import label_of, number_in
from ..corpus.records import FileOptions, Nested, get_text
from ..errors import InputError, no_column
from ..settings import in_order, with_known_values
from ..stream.contexts import separated
from .choices import check_choice
from .items import ONE_OPTION, PARADIGM, Choice, Fields, Option
from .labels import FromZero, LabelKind, Labelled, read_labels
from .readers import check_distinct, of_folders, rows_of

EwokReading = Literal["texts", "contexts"]
# The columns of files that are published.
BLIMP = ("sentence_good", "sentence_bad")
EWOK = ("Context1", "Context2", "Target1", "Target2")
COMPS = ("prefix_acceptable", "prefix_unacceptable", "property_phrase")
ENTITIES = ("input_prefix", "options", "numops")
WUG = ("sentences", "ratio")
PUBLISHED = (BLIMP, EWOK, COMPS, ENTITIES, WUG)


@of_folders
@with_known_values
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
    **file_options: Any,
) -> list[Choice]:
    """Read choices from a file, or from the files of a folder in the order of their names.

    If you name no column, the columns of the file decide how a row is read: the columns of BLiMP, EWoK (Ivanova et al.
    2024), COMPS (Misra et al. 2023), entity tracking (Kim & Schuster 2023) and BabyLM's WUG, whose `ratio` is a
    preference of people, or else `context`, `options` and `label`.

    context (Sequence[str]): Column of the context, or of a list; or the columns of several. If there are several texts
        to choose from, the columns are read one after the other. Empty: context, if it is there.
    options (Sequence[str]): Columns of the texts to choose from, or one column of a list, also of one inside another
        field, such as choices.text. A single text is an option in each of several contexts. Empty: options.
    label (Optional[str]): Column that says which option is right: its text, its column, its number from 0, or its
        letter; or a list with a 1 for the right option, and 0 for the others. An object of options with these numbers,
        as TruthfulQA has it, is its own label. None: label.
    labels (Optional[LabelKind]): How all labels of a file are read, if they can be read in two ways, or count from 1.
        None: as all can be read.
    separator (str): Put between a context and a text, unless one of them has white space there.
    after (Optional[str]): Column of the text after the option. The model reads it, and it is not scored.
    reading (Literal["texts", "contexts"]): How EWoK is read: two texts after the first context, or each text in two
        contexts.
    file_options (Any): How files are written: `encoding`, `delimiter`, `quoting`, `header`, `na_as_text` (see
        `FileOptions`).
    RETURNS (List[Choice]): Those from a folder also have the field `file`: the name without endings.
    RAISES (InputError): A row cannot be read; the message gives the line.

    ``` title="choices.csv"
    context,a,b,label
    The keys,are here.,is here.,a
    ```

    ```python
    import spacy_pll

    [choice] = spacy_pll.read_choices("choices.csv", ["context"], ["a", "b"], "label")
    choice.options[0].text, choice.right  # 'are here.', 0
    ```
    """
    files, context, options = FileOptions.of(file_options, "choices"), in_order(context), in_order(options)
    check_distinct(context=context, options=options, label=[label], after=[after])
    choices, labelled = list[Choice](), defaultdict[Path, dict[int, Labelled]](dict)
    for file, location, row, of_file in rows_of(path, "choices", files):
        made = [] if context or options or label or after else [*_published(row, location, file.stem, reading)]
        if not made:
            contexts = context or ["context"] * ("context" in row)
            choice, right = _own(row, location, contexts, options or ["options"], label or "label", after, separator)
            labelled[file][len(choices)] = right
            made = [choice]
        for choice in made:
            check_choice(choice, location)
            separate = [option._replace(separator=separator) for option in choice.options]
            choices.append(choice._replace(options=separate, fields=Fields(location, {**of_file, **choice.fields})))
    if not choices:
        raise InputError(f"There is no choice in {path!r}.")
    for of_one in labelled.values():
        numbers = read_labels([*of_one.values()], label or "label", labels)
        for i, number in zip(of_one, numbers):
            choices[i] = choices[i]._replace(right=number)
    advise(*copies((choice.fields, (*choice.options, choice.right)) for choice in choices))
    return choices


def _own(
    row: dict[str, Any],
    location: str,
    context: Sequence[str],
    options: Sequence[str],
    label: str,
    after: str | None,
    separator: str,
) -> tuple[Choice, Labelled]:
    """A choice of which it is not known yet which option is right, and what says so."""
    cell = row.get(options[0]) if len(options) == 1 else None
    if isinstance(cell, dict) and all(isinstance(value, int | float) for value in cell.values()):
        row = Nested({label: [*cell.values()], **row, options[0]: [*cell]})  # as {"answer": 1, "other": 0}
    contexts, texts = _texts_in(row, location, context, "`context`"), _texts_in(row, location, options, "`options`")
    if len(contexts) > 1 and len(texts) > 1:
        if len(context) < 2:
            raise InputError(
                f"{location}: {len(contexts)} contexts and {len(texts)} options. One of the two must be a single text.",
                "If the contexts are read one after the other, join them to one text.",
            )
        contexts = [reduce(lambda before, text: separated(before, text, separator) + text, contexts)]
    if label not in row:
        raise no_column(location, label, row, "Name the column that says which option is right with `label`.")
    if len(contexts) < 2 and len(texts) < 2:
        raise InputError(f"{location}: a choice needs two options or more. It has {len(texts)}.", ONE_OPTION)
    several, columns = (contexts, context) if len(contexts) > 1 else (texts, options)
    rest = get_text(row, location, after, "`after`") if after else ""
    made = [Option(text, before, after=rest) for before in contexts or [""] for text in texts]
    choice = Choice(made, 0, _without(row, *context, *options, label, after))
    return choice, Labelled(location, _one_hot(row[label], len(several), location, label), several, columns)


def _one_hot(label: Any, n: int, location: str, column: str) -> Any:
    """The number of the right option, if a label is a list with a number for each.

    RAISES (InputError): It is not 1 for one option, and 0 for the others.
    """
    if not isinstance(label, list):
        return label
    if (len(label), label.count(1), label.count(0)) != (n, 1, n - 1):
        advice = "A list has a number for each option: 1 for the right one, and 0 for the others."
        raise InputError(f"{location}: {column!r} is {label!r:.100} for {n} options.", advice)
    return FromZero(label.index(1))


def _texts_in(row: dict[str, Any], location: str, columns: Sequence[str], setting: str | None) -> list[str]:
    """The texts of several columns, or of a list in one column."""
    if len(columns) == 1 and isinstance(values := row.get(columns[0]), list):
        return [get_text({columns[0]: value}, location, columns[0], setting) for value in values]
    return [get_text(row, location, column, setting) for column in columns]


def _without(row: dict[str, Any], *columns: str | None) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in columns}


def _published(row: dict[str, Any], location: str, file: str, reading: EwokReading) -> Iterator[Choice]:
    """The choices in a row of a file as it is published; none if its columns are not known.

    The first option is right, or, in a second choice of a row, the second.
    """
    columns = next((known for known in PUBLISHED if row.keys() >= {*known}), ())
    others, texts = _without(row, *columns), partial(_texts_in, row, location, setting=None)
    if columns == BLIMP:
        yield Choice([Option(text) for text in texts(BLIMP)], 0, others)
    elif columns == COMPS:
        good, bad, text = texts(COMPS)
        fields = {PARADIGM: file.removeprefix("comps_").replace("-", "_"), **others}
        yield Choice([Option(text, good), Option(text, bad)], 0, fields)
    elif columns == ENTITIES:
        (context,) = texts(["input_prefix"])
        fields = {PARADIGM: f"{file}_{label_of(row['numops'])}_ops", **_without(row, "input_prefix", "options")}
        yield Choice([Option(text, context) for text in texts(["options"])], 0, fields)
    elif columns == EWOK:
        first, second, *targets = texts(EWOK)
        fields = {PARADIGM: row.get("Domain", ""), **others}
        if reading == "texts":
            yield Choice([Option(text, first) for text in targets], 0, fields)
        else:
            for right, text in enumerate(targets):
                yield Choice([Option(text, first), Option(text, second)], right, fields)
    elif columns == WUG:
        sentences, ratio = row["sentences"], row["ratio"]
        options = sentences.split("\t") if isinstance(sentences, str) else texts(["sentences"])
        if (preference := number_in(ratio)) is None:
            raise InputError(f"{location}: 'ratio' must be a number. It is {ratio!r:.100}.")
        uid = file.removesuffix("_nominalization").removesuffix("_tense")
        fields = {PARADIGM: uid, **_without(row, "sentences")}
        yield Choice([Option(text) for text in options], 0, fields, preference)
