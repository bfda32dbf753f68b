"""Texts with a gap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import InputError
from spacy_pll.analysis.gaps import GAP, Slot, distinct_candidates


@given(st.text(), st.text(), st.sampled_from([GAP, "____", "[MASK]", "<m>", "*"]))
def test_what_stands_beside_a_gap_stays_as_it_is(before, after, gap):
    """White space and all. A gap of one character may be longer, so it takes what is equal beside it."""
    if gap.count(gap[0]) == len(gap):
        before, after = before.replace(gap[0], "-"), after.replace(gap[0], "-")
    before, after = before.replace(gap, "-"), after.replace(gap, "-")
    slot = Slot.of(f"{before}{gap}{after}", GAP if gap == "____" else gap, ("a",), None, "Text 1")
    assert (slot.before, slot.after) == (before, after)
    for number, text in ((0, before), (2, f"{gap}{before}-{gap}")):
        with pytest.raises(InputError, match=rf"^Text 1: a text must have one gap, .* It has {number}: "):
            Slot.of(text, gap, ("a",), None, "Text 1")


@given(st.lists(st.text()))
def test_candidates_are_distinct_texts(candidates):
    stripped = [one.strip() for one in candidates]
    if all(stripped) and len({*stripped}) == len(stripped):
        assert distinct_candidates("Candidate", candidates) == tuple(stripped)
    else:
        with pytest.raises(InputError, match=r"^Candidate \d+( is empty|: .* is there twice)"):
            distinct_candidates("Candidate", candidates)
