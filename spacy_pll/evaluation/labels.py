"""Labels in a column: which option is right, in the one way that all rows of a file have; which sentence is good."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..cells import Missing, is_missing, label_of, whole_number
from ..errors import InputError
from ..user_warnings import warn_user

# A label is the text of an option, its column, its number from 0 or from 1, or its letter.
LabelKind = Literal["text", "column", "from0", "from1", "letter"]
KIND_NAMES: dict[LabelKind, str] = {
    "text": "texts of options",
    "column": "columns of options",
    "from0": "numbers from 0",
    "from1": "numbers from 1",
    "letter": "letters",
}
# Labels, in small letters, that say of themselves what they mean.
GOOD_LABELS = ("1", "1.0", "true", "good", "grammatical", "acceptable", "correct", "plausible", "yes")
BAD_LABELS = ("0", "0.0", "false", "bad", "ungrammatical", "unacceptable", "incorrect", "implausible", "no", "*")


class FromZero(int):
    """The number of an option that is known to be one from 0."""


class Labelled(NamedTuple):
    """A row with its label."""

    location: str  # for messages
    label: Any
    texts: Sequence[str]  # of the options
    columns: Sequence[str]  # those of the options, if each has one


def read_labels(rows: Sequence[Labelled], column: str, kind: LabelKind | None = None) -> list[int]:
    """The numbers of the right options of a file, from 0.

    column (str): That of the labels, for messages.
    kind (Optional[LabelKind]): How labels are read. None: as all of them can be, but not as numbers from 1, which most
        files of numbers from 0 could be by chance.
    RAISES (InputError): A label fits no option, or the labels can be read in two ways that differ. Numbers that may be
        from 1 are read from 0, with a warning.
    """
    if kind and kind not in KIND_NAMES:
        raise InputError(f"`labels` must be one of {', '.join(KIND_NAMES)}. It is {kind!r}.")
    named = [_options_named(row) for row in rows]
    all_numbers = {each: [of_row[each] for of_row in named] for each in KIND_NAMES}
    may_be_from_1 = None not in all_numbers["from1"]
    kinds = [kind] if kind else [each for each in KIND_NAMES if each != "from1"]
    tried: dict[LabelKind, list[int | None]] = {each: all_numbers[each] for each in kinds}
    fitting = {each: [n for n in numbers if n is not None] for each, numbers in tried.items() if None not in numbers}
    if not fitting:
        raise _no_option(rows, tried, column, kind, may_be_from_1)
    (read_as, right), *more = fitting.items()
    for other, numbers in more:
        for row, a, b in zip(rows, right, numbers):
            if a != b:
                raise InputError(
                    f"{row.location}: {column!r} is {row.label!r:.100}. All labels can be {KIND_NAMES[read_as]}, and "
                    f"{KIND_NAMES[other]}, and here that is not the same option.",
                    f"Give `labels={read_as!r}` or `labels={other!r}`.",
                )
    if read_as == "from0" and not kind and may_be_from_1:
        warn_user(
            f"{rows[0].location}: {column!r} is {rows[0].label!r:.100}. Labels are read as numbers from 0, and none is "
            "0: they may count from 1. Give `labels='from1'`, or `labels='from0'` if they do not."
        )
    return right


def _no_option(
    rows: Sequence[Labelled],
    tried: Mapping[LabelKind, list[int | None]],
    column: str,
    given: LabelKind | None,
    may_be_from_1: bool,
) -> InputError:
    """About the first label that cannot be read as most others can.

    tried: By kind, the number of the option that each label names. may_be_from_1 (bool): All can be numbers from 1.
    """
    kind = min(tried, key=lambda each: tried[each].count(None))
    i = tried[kind].index(None)
    row = rows[i]
    n, options = len(row.texts), ", ".join(map(repr, row.texts))
    problem = f"{row.location}: {column!r} is {row.label!r:.100}, which is none of the options: {options:.200}."
    advice = f"Give the text of the right one, or its number from 0 to {n - 1}."
    if other := [each for each, numbers in tried.items() if numbers[i] is not None]:
        problem = f"{row.location}: {column!r} is {row.label!r:.100}, one of the {KIND_NAMES[other[0]]}."
        advice = f"Other labels of the file are {KIND_NAMES[kind]}. Write all in the same way."
    elif given:
        advice = f"The labels are read as {KIND_NAMES[given]}. Correct it, or give other `labels`."
    elif may_be_from_1:
        advice = "If the labels count from 1, give `labels='from1'`."
    return InputError(problem, advice)


def _options_named(row: Labelled) -> dict[LabelKind, int | None]:
    """The number of the option that a label names, if it is read in each way. None: it names none."""
    # What a table has is text or a number. Otherwise the label is missing.
    is_known = isinstance(row.label, str | int | float) and not isinstance(row.label, bool)
    text, n = str(row.label) if is_known and not is_missing(row.label) else "", len(row.texts)
    letter, whole = text.strip().upper(), whole_number(text)

    def option_called(names: Sequence[str]) -> int | None:
        """White space at the ends counts if it distinguishes two of them."""
        alike = [i for i, name in enumerate(names) if name.strip() == text.strip()]
        exact = [i for i in alike if names[i] == text]
        fitting = exact[:1] or (alike if len(alike) == 1 else [])
        return fitting[0] if text.strip() and fitting and len(names) == n else None

    numbers: dict[LabelKind, int | None] = {
        "text": option_called(row.texts),
        "column": option_called(row.columns),
        "from0": whole,
        "from1": None if whole is None or isinstance(row.label, FromZero) else whole - 1,
        "letter": ord(letter) - ord("A") if len(letter) == 1 else None,
    }
    return {kind: i if i is not None and 0 <= i < n else None for kind, i in numbers.items()}


def is_good(label: Any, location: str, column: str, good: str | None = None) -> bool:
    """Whether a label says of a sentence that it is good.

    column (str): That of the labels, for messages.
    good (Optional[str]): What good sentences have there. None: one of `GOOD_LABELS`.
    RAISES (InputError): It says neither.
    """
    text = label_of(label)
    if text and good is not None:
        return good.strip() in (text, str(label).strip())  # 1.0 may be written so
    if text.lower() in (*GOOD_LABELS, *BAD_LABELS):
        return text.lower() in GOOD_LABELS
    raise InputError(
        f"{location}: the label is {label!r:.100}, which does not say whether the sentence is good.",
        f"Give the value of the good ones: `label='{column}=VALUE'`."
        if text
        else "Add it." + " Or, if NA is a value, give `na_as_text=True`." * isinstance(label, Missing),
    )
