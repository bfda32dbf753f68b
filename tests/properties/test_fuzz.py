"""A short, seeded run of what scripts/checks/fuzz.py does for as long as one likes, and what it found worth keeping."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .. import fuzzing
from ..conftest import odd_text

CORPUS = Path(__file__).parents[1] / "fuzz_corpus.txt"


@settings(max_examples=50, derandomize=True)
@given(
    choice=st.binary(min_size=fuzzing.CHOICES, max_size=fuzzing.CHOICES),
    text=st.one_of(odd_text.map(lambda text: text.encode("utf8")), st.binary(max_size=40)),
)
def test_seeded_bytes(choice, text):
    fuzzing.check(choice + text)


@pytest.mark.slow
def test_inputs_that_reach_different_paths_are_read_as_the_references_read_them():
    """What the fuzzer kept: a line each, in hexadecimal."""
    lines = CORPUS.read_text().split()
    assert len(lines) >= 50
    for line in lines:
        fuzzing.check(bytes.fromhex(line))
