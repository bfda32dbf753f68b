import codecs
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.advice.encodings import WINDOWS, other_encoding

from ..corpus.reading import read_texts


@given(st.text(st.characters(codec="cp1252"), max_size=20), st.sampled_from(["latin-1", "iso8859-15"]))
def test_a_line_of_windows(line, encoding):
    """It is named if it has what is a control character in the given encoding, and what it says is what was written."""
    read = line.encode("cp1252").decode(encoding)
    has_control = any("\x80" <= character <= "\x9f" for character in read)
    message = other_encoding((3, read), "a.txt", encoding)
    assert bool(message) == has_control
    if message and "give `encoding='cp1252'`" in message:
        assert message.startswith(f"a.txt, line 3: in {encoding}, U+00") and f"{line.strip()!r:.100}" in message


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "cp1252", "iso8859-5", "utf-16"])
def test_where_a_file_is_read(tmp_path, encoding):
    """Once, of the first line that looks odd, however far down; of encodings that Windows has another of."""
    lines = ["One."] * 1500 + ["\u0085 \u0093No\u0094."] * 2
    (tmp_path / "a.txt").write_text(
        "".join(f"{line}\n" for line in lines), "latin-1" if encoding == "cp1252" else encoding, newline=""
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        texts = list(read_texts(tmp_path / "a.txt", encoding=encoding))
    assert len(texts) == len(lines)
    assert len(caught) == (codecs.lookup(encoding).name in WINDOWS)
    assert all("a.txt, line 1501: " in str(one.message) for one in caught)
