"""Lines with control characters, which other encodings have as quotation marks and dashes."""

import codecs
import re
from contextlib import suppress

CONTROL_CHARACTER = re.compile(r"[\x80-\x9f]")
# What is most like each encoding, and has characters there.
WINDOWS = {
    "iso8859-1": "cp1252", "iso8859-15": "cp1252", "iso8859-2": "cp1250", "iso8859-5": "cp1251", "iso8859-7": "cp1253",
    "iso8859-9": "cp1254", "iso8859-8": "cp1255", "iso8859-6": "cp1256", "iso8859-13": "cp1257",
}  # fmt: skip


def other_encoding(line: tuple[int, str], name: str, encoding: str) -> str | None:
    """About a line with a control character which is text in UTF-8, or in the encoding of Windows that is most like the
    given one.

    line (Tuple[int, str]): Its number, and its text. name (str): What the file is called.
    """
    number, text = line
    control = CONTROL_CHARACTER.search(text)
    if control and (used := codecs.lookup(encoding).name) in WINDOWS:
        for other in ("utf-8", WINDOWS[used]):
            with suppress(UnicodeError):
                meant = text.encode(used).decode(other).strip()
                return (
                    f"{name}, line {number}: in {encoding}, U+{ord(control[0]):04X} is a control character, which no "
                    f"model reads. In {other}, the line is {meant!r:.100}. If that is right, give `encoding={other!r}`."
                )
    return None
