"""Messages with settings in them, in several spellings, and errors that go to another process."""

import pickle

import pytest

from spacy_pll.errors import InputError, PLLError, ResumeError, listed, settings_in, shown_errors, spell


def test_an_error_has_a_problem_an_advice_and_the_settings_that_it_names():
    error = PLLError("`lags` is -1.", "Give `lags=0`, or `metrics=['a', 'b']`, or another `attr`.")
    assert str(error) == "`lags` is -1. Give `lags=0`, or `metrics=['a', 'b']`, or another `attr`."
    assert error.settings == {"lags": 0, "metrics": ["a", "b"], "attr": ...}
    assert isinstance(error, ValueError) and str(PLLError("No text.")) == "No text."


@pytest.mark.parametrize("cls", [PLLError, InputError, ResumeError])
def test_it_travels_between_processes(cls):
    error = cls("It is bad.", "Give `x=1`.")
    vars(error).setdefault("__notes__", []).append("a note")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.settings, copy.__notes__) == (cls, str(error), {"x": 1}, ["a note"])


def test_what_looks_like_a_setting_is_written_in_another_spelling():
    text = 'Set `resume=True`, `spans="strided"`, `free=text here` or `other`; not `doc.spans` or `doc._.pll`.'
    values = {"resume": True, "spans": "strided", "free": "text here", "other": ...}
    assert settings_in(text) == values
    assert spell(text, lambda name, value: f"<{name}>" if name != "other" else None) == (
        "Set <resume>, <spans>, <free> or `other`; not `doc.spans` or `doc._.pll`."
    )


@pytest.mark.parametrize(
    ("name", "names", "shown"),
    [
        ("Phenomenon", ["phenomenon", "n"], "'phenomenon', 'n'. Similar: phenomenon."),
        ("metric", ["metrics", "model"], "'metrics', 'model'. Similar: metrics."),
        ("text", ["Text ", "TEXT", 3], "'Text ', 'TEXT', 3. Similar: TEXT, Text ."),
        ("x", ["phenomenon"], "'phenomenon'."),
        ("x", {}, "none."),
    ],
)
def test_names_that_are_like_a_wrong_one(name, names, shown):
    assert listed(name, names) == shown


def test_only_what_a_user_can_put_right_is_shown():
    shown = []
    for error in (PLLError("a"), ImportError("b"), OSError("c")):
        with shown_errors(shown.append):
            raise error
    assert list(map(str, shown)) == ["a", "b", "c"]
    with pytest.raises(KeyError), shown_errors(shown.append):
        raise KeyError("a defect")


@pytest.mark.parametrize("error", [ValueError("operands could not be broadcast"), TypeError("x"), KeyError("x")])
def test_defects_keep_their_traceback(error):
    shown = []
    with pytest.raises(type(error)) as raised, shown_errors(shown.append):
        raise error
    assert raised.value is error and shown == []


@pytest.mark.parametrize("error", [PLLError("a"), InputError("a"), OSError("a"), ImportError("a")])
def test_errors_for_people_are_shown(error):
    shown = []
    with shown_errors(shown.append):
        raise error
    assert shown == [error]
