import json
import re

import pytest

from .conftest import run
from .test_agree import corpus  # noqa: F401  # a fixture


def test_margins_of_one_scorer(tmp_path, model_folder, corpus):  # noqa: F811
    bert = str(model_folder("bert"))
    options = ("--column", "line", "--at-least", "0", "-o", tmp_path / "out.json")
    result = run("margins", f"{bert},metrics=original", corpus, "--margins", "1000,0", "--spacings", "4", *options)
    assert "mask_margin 0" in result.stdout and "mask_spacing 4" in result.stdout
    assert "mask_margin 0 is the smallest of these that reaches r = 0 by word" in result.stdout
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["smallest"] == {"mask_margin": 0, "mask_spacing": 4}
    assert content["settings"]["at_least"] == 0 and content["settings"]["metrics"] == ["original"]
    of_words = {one["scorer"]: one for one in content["results"] if one["measure"] == "r by word"}
    assert [*of_words] == ["mask_margin 0", "mask_margin 1000", "mask_spacing 4"]
    assert all(one["low"] <= one["value"] <= one["high"] + 1e-6 for one in of_words.values())
    assert [one["n"] for one in content["results"] if one["measure"] == "seconds"] == [4] * 4


def test_some_margins_are_tried_if_none_is_named(model_folder, corpus):  # noqa: F811
    shown = run("margins", model_folder("bert"), corpus, "--column", "line").stdout
    header = shown.split("\n")[1]
    assert re.findall(r"mask_\w+ \d+", header) == [f"mask_margin {n}" for n in (0, 1, 2, 4)] and "exact" in header


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["TEXTS", "builtin"], "come first, and the texts last: spacy-pll margins builtin .*no file .*'builtin'"),
        (["a", "TEXTS", "--margins", "1,x"], "--margins must be whole numbers with commas, such as 0,1. It is '1,x'"),
        (["builtin", "TEXTS", "--column", "line", "--margins", "-1"], "`mask_margin` must be 0 or more.*It is -1"),
    ],
)
def test_what_cannot_be_compared(corpus, arguments, message):  # noqa: F811
    arguments = [corpus if one == "TEXTS" else one for one in arguments]
    assert re.search(message, run("margins", *arguments, fails=True).unwrapped_stderr)
