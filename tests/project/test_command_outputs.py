"""What commands print, as it is compared between versions."""

import pytest

from scripts.checks.command_outputs import _settled

TABLE = "measure   n   exact   margin\nseconds         3   1.0   {0}\ntimes as fast   3   {0}   {0}\nr   3   1\n"
RESULT = '{{\n  "scorer": "exact",\n  "measure": "seconds",\n  "n": 3,\n  "value": {0},\n  "level": "overall"}}'


@pytest.mark.parametrize(
    "text",
    [
        TABLE + "\nr: correlation",
        RESULT,
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
    text = "level   r\nword    0.99\n\nmeasure   a\nseconds   1.0\nr         1.0\n\nlevel   n\nseconds behind   3"
    assert _settled(text) == text.replace("seconds   1.0", "seconds")
