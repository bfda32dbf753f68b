"""The columns of an input: which there are, and whether they can be written."""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..errors import InputError
from ..files import to_json
from .decimals import Decimals
from .records import Record


def json_bytes(value: Any) -> bytes:
    """JSON in UTF-8."""
    return to_json(value).encode("utf8")


def check_fields(
    fields: dict[str, Any], location: str, encode: Callable[[Any], object] = json_bytes, of_halves: str = ""
) -> None:
    """Check the other columns of a text.

    encode (Callable): What writes values of the format.
    of_halves (str): What else to do about half of a character, beside changing it.
    RAISES (InputError): They cannot be written.
    """
    for name, value in fields.items():
        try:
            encode({name: value})
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            problem = f"{location}: {name!r} is {reprlib.repr(value)}, which cannot be written: {error}."
            also = of_halves if isinstance(error, UnicodeEncodeError) else ""
            raise InputError(problem, f"Change or remove it. {also}".strip()) from None


@dataclass
class InputColumns:
    """The columns of an input, found and checked while it is read."""

    typed: ClassVar = False  # whether they have types: the columns of a Parquet input then arrive as they are
    column: str  # that of the texts
    encode: Callable[[Any], object] = json_bytes  # writes a value as the format does
    names: dict[str, None] = field(default_factory=dict)  # of the others that the texts have, in their order
    declared: dict[str, None] = field(default_factory=dict)  # of those that tables name, which may have no text
    decimals: Decimals = field(default_factory=Decimals)  # of their numbers

    def declare(self, table: str, columns: Mapping[str, Any]) -> None:
        """Note the columns that a table names, with their types."""
        self.declared.update(dict.fromkeys(columns))

    def add(self, record: Record) -> None:
        """Note the columns of a text.

        RAISES (InputError): The row of this text could not be written, or would lose a value of the input.
        """
        of_halves = "Or give `skip_errors=True`: then it is written as an escape."
        check_fields(record.fields, record.location, self.encode, of_halves)
        self.decimals.add(record.fields)
        self.names.update(dict.fromkeys(record.fields))

    def types(self) -> dict[str, Any]:
        """The columns of the input, the texts first, with their types if the format has types, else None."""
        return dict.fromkeys([self.column, *self.names, *self.declared])
