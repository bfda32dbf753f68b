"""What the other columns of a text may hold: checked when the input is first read, before anything is scored."""

from types import NoneType
from typing import Any

from .readers import InputError, check_utf8

MAX_DEPTH = 100  # of lists and objects within each other
SPACY_INTEGERS = range(-(2**63), 2**64)  # what msgpack, the format of .spacy files, can hold


def check_fields(fields: dict[str, Any], location: str, for_spacy: bool = False) -> None:
    """Check that the other columns of a text can be written.

    location (str): Where the text is, for the message.
    for_spacy (bool): They go to a .spacy file. Otherwise they must be values that JSON has.
    RAISES (InputError): They cannot.
    """
    for name, value in fields.items():
        _check(value, name, location, for_spacy)


def _check(value: Any, name: str, location: str, for_spacy: bool, depth: int = 0) -> None:
    check_utf8(name, location, name)
    if depth > MAX_DEPTH:
        raise InputError(f"{location}: {name!r} has more than {MAX_DEPTH} lists or objects in each other. Flatten it.")
    if isinstance(value, str):
        check_utf8(value, location, name)
    elif isinstance(value, list | tuple):
        for item in value:
            _check(item, name, location, for_spacy, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str):
                check_utf8(key, location, name)
            _check(item, name, location, for_spacy, depth + 1)
    elif for_spacy:
        if isinstance(value, int) and value not in SPACY_INTEGERS:
            raise InputError(
                f"{location}: {name!r} is {value!r:.100}. A .spacy file holds whole numbers of up to 64 bits. Make it "
                "a string, or write .jsonl."
            )
    elif not isinstance(value, bool | int | float | NoneType):
        raise InputError(
            f"{location}: {name!r} is {value!r:.100}, which JSON does not have. Write .spacy or remove it."
        )
