"""What commands print, as it is compared between versions."""

import pytest

from scripts.checks.command_outputs import _settled

TABLE = "scores   seconds   times faster   r\nexact     {0}             1.0   –\nmargin    {0}            {0}   1\n"


@pytest.mark.parametrize(
    "text",
    [
        TABLE + "\nr: correlation",
        '{{\n  "seconds": {0},\n  "n": 3}}',
        "Wrote o.csv: 3 texts in {0} seconds.",
        "100%|###| 22/22 [00:00<00:00, {0} sites/s]\nWrote o.csv.",
        "5 texts [00:00, {0} texts/s]\nWrote o.csv.",
    ],
)
def test_times_are_left_out_and_nothing_else(text):
    settled = _settled(text.format("1.5"))
    assert settled == _settled(text.format("0.2")) and "1.5" not in settled
    for kept in ("exact", "margin", "correlation", '"n": 3', "3 texts", "Wrote o.csv"):
        assert (kept in settled) == (kept in text)


def test_a_table_without_times_is_whole():
    text = "level   r\nword    0.99\n\nscorer   seconds\na        1.0\n\nlevel   n\nword    3"
    assert _settled(text) == "level   r\nword    0.99\n\nscorer\na\n\nlevel   n\nword    3"
