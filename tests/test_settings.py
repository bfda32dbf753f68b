"""`ScoringSettings`: each setting once. The component's arguments and the options are made from it."""

import inspect
from dataclasses import dataclass, fields
from typing import Literal

import pytest

import spacy_pll
from spacy_pll.component import DEFAULT_CONFIG, make_pll
from spacy_pll.settings import ScoringSettings, at_least, check_values, choices_of, describe_settings, with_known_values

pytestmark = pytest.mark.core

NAMES = [field.name for field in fields(ScoringSettings)]


def test_each_setting_is_described_and_is_an_argument_of_the_component():
    assert list(describe_settings(ScoringSettings)) == NAMES
    parameters = inspect.signature(make_pll).parameters
    assert list(parameters)[-len(NAMES) :] == NAMES == list(DEFAULT_CONFIG)[-len(NAMES) :]
    assert parameters["words"].annotation == Literal["spacy", "tokenizer", "whitespace", "piece"]


def test_a_single_metric_is_a_list_of_one():
    assert ScoringSettings("original") == ScoringSettings(("original",)) == ScoringSettings(["original"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"mask_margin": -1}, "`mask_margin` must be 0 or more. It is -1."),
        ({"mask_margin": "1"}, "`mask_margin` must be a whole number, 0 or more. It is '1'."),
        ({"mask_margin": 1.0}, "`mask_margin` must be a whole number, 0 or more. It is 1.0."),
        ({"mask_spacing": True}, "`mask_spacing` must be a whole number, 1 or more. It is True."),
        ({"max_batch_tokens": 0}, "`max_batch_tokens` must be 1 or more. It is 0."),
        ({"alternatives": None}, "`alternatives` must be a whole number, 0 or more. It is None."),
        *(
            ({"sample_words": part}, "`sample_words` must be .* above 0, and at most 1.")
            for part in (0, 1.5, True, "0.2")
        ),
        ({"seed": -1}, "`seed` must be 0 or more. It is -1."),
        ({"targets": ["souvenir"]}, "`targets` must be one key of doc.spans: .* no words. It is .'souvenir'.. Put"),
        ({"units": 3}, "`units` must be one key of doc.spans: .* It is 3."),
        ({"metrics": 3}, "Unknown PLL metric 3. Set `metrics` to a list of these: causal"),
        ({"words": None}, "`words` must be spacy or tokenizer or whitespace or piece. It is None."),
    ],
)
def test_values_that_are_not_allowed(setting, message):
    with pytest.raises(ValueError, match=message):
        ScoringSettings(**setting)


@dataclass
class Others:
    """Others.

    size (Optional[int]): How large
        it is. None: small.
    kind (Optional[str]): Which.
    RAISES (ValueError): Never.
    """

    size: int | None = at_least(3)
    kind: Literal["a", "b"] | None = None


def test_another_dataclass():
    assert describe_settings(Others) == {"size": "How large it is. None: small.", "kind": "Which."}
    assert choices_of(Literal["a", "b"] | None) == ["a", "b"] and choices_of(int | None) == []
    check_values(Others())
    with pytest.raises(ValueError, match="`kind` must be a or b. It is 'c'."):
        check_values(Others(kind="c"))


@with_known_values
def greet(name: str, how: Literal["softly", "loudly"] | None = None) -> str:
    return f"{name}, {how}"


def test_values_of_arguments():
    assert greet("a", "softly") == "a, softly" and greet(name="b", how=None) == greet("b") == "b, None"
    for wrong in ({"how": "Loudly"}, {"how": 1}):
        with pytest.raises(ValueError, match="`how` must be softly or loudly. It is"):
            greet("a", **wrong)
    with pytest.raises(TypeError, match="greet"):
        greet("a", when="now")


def test_no_public_function_takes_another_value_for_one_that_it_knows():
    """A wrong value was read as the last of those that a function knows."""
    functions = [getattr(spacy_pll, name) for name in spacy_pll.__all__]
    functions = [one for one in functions if inspect.isfunction(one)]
    found = set()
    for function in functions:
        parameters = inspect.signature(function).parameters
        needed = {name: [] for name, one in parameters.items() if one.default is one.empty and one.kind < 4}
        for name in (name for name, one in parameters.items() if choices_of(one.annotation)):
            found.add(name)
            with pytest.raises(ValueError, match=f"`{name}`"):
                function(**needed, **{name: "x"})
    assert {"ties", "first", "reading", "labels", "method", "others", "unit"} <= found
