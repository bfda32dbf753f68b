"""The names of the attributes."""

import pytest

from spacy_pll.attributes.names import Names, select_metrics

pytestmark = pytest.mark.core


def test_names_of_the_default_attribute():
    one, two = Names("pll", ["word_l2r"]), Names("pll", ["word_l2r", "original"])
    expected = ["pll_entropy", "pll_first_choices", "pll_top1", "pll_rank", "pll_alternatives"]
    expected += ["pll_all_pieces", "pll_estimate", "pll_error"]
    expected += ["pll_word_l2r_estimate", "pll_word_l2r_error"]
    assert one.all == ["pll", "pll_word_l2r", "pll_pieces", "pppl", "pll_data", *expected]
    expected += ["pll_original_estimate", "pll_original_error"]
    assert two.all == ["pll", "pll_word_l2r", "pll_original", "pll_pieces", "pppl", "pll_data", *expected]
    assert one.metrics == {"word_l2r": "pll_word_l2r"}
    assert two.metrics == {"word_l2r": "pll_word_l2r", "original": "pll_original"}


def test_names_of_another_attribute():
    expected = ["x_entropy", "x_first_choices", "x_top1", "x_rank", "x_alternatives"]
    expected += ["x_all_pieces", "x_estimate", "x_error"]
    assert Names("x", []).all == ["x", "x_pieces", "x_pppl", "x_data", *expected]


@pytest.mark.parametrize(
    ("attr", "metrics"),
    [
        ("pll", ["pieces", "original"]),
        ("x", ["original", "pppl"]),
        ("x", ["data", "original"]),
        ("set", []),
        ("get", []),
        ("_obj", []),
        ("_doc", []),
        ("__class__", []),
        ("doc_extensions", []),
    ],
)
def test_names_that_would_have_two_meanings(attr, metrics):
    with pytest.raises(ValueError, match="two meanings.*Choose another `attr`"):
        Names(attr, metrics)


def test_the_columns_of_some_metrics():
    names = Names("pll", ["word_l2r", "original"])
    assert select_metrics(names) == names.metrics
    assert list(select_metrics(names, ["original", "word_l2r"])) == ["original", "word_l2r"]
    assert select_metrics(names, ["original"]) == {"original": "pll_original"}
    for missing in (["whole_word"], []):
        with pytest.raises(ValueError, match="Set `metrics` to some of these: word_l2r, original"):
            select_metrics(names, missing)
