import math
import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.visualize import render
from spacy_pll.visualize.scale import N_STEPS, colour_step


@pytest.mark.parametrize(
    ("score", "step"), [(0.0, 0), (0.5, 0), (-1.99, 0), (-2.0, 1), (-17.9, 8), (-18.0, 9), (-1000.0, 9)]
)
def test_equal_steps_and_what_lies_below_has_the_last(score, step):
    assert colour_step(score, -20.0) == step


@given(st.floats(-100, 0), st.floats(-100, 0), st.floats(-50, -0.1))
def test_a_less_likely_token_never_has_a_more_likely_ones_colour(a, b, vmin):
    low, high = sorted([a, b])
    assert colour_step(low, vmin) >= colour_step(high, vmin)


def luminance(colour):
    """Relative luminance (WCAG 2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("theme", "sign"), [(0, -1), (1, 1)], ids=["light", "dark"])
def test_every_colour_can_be_read_and_told_from_the_next_by_lightness_alone(theme, sign):
    css = files("spacy_pll.visualize").joinpath("style.css").read_text(encoding="utf8")
    rules = re.findall(r"\.s(\d+) \{ background: light-dark\((.*?)\); color: light-dark\((.*?)\) \}", css)
    assert [int(number) for number, _, _ in rules] == list(range(N_STEPS))
    backgrounds, inks = ([luminance(rule[i].split(", ")[theme]) for rule in rules] for i in (1, 2))
    for background, ink in zip(backgrounds, inks):
        low, high = sorted([background, ink])
        assert (high + 0.05) / (low + 0.05) >= 4.5
    assert all((after - before) * sign > 0.005 for before, after in zip(backgrounds, backgrounds[1:]))


@pytest.mark.parametrize("page", [False, True])
@pytest.mark.parametrize("vmin", [0.0, 3.0, math.nan, -math.inf])
def test_a_scale_without_an_end(doc, vmin, page):
    with pytest.raises(ValueError, match="`vmin` must be a number below 0.* It is "):
        render(doc, vmin=vmin, page=page)
