import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.util import raise_error

import spacy_pll
from spacy_pll.stream.error_handlers import handled
from spacy_pll.user_warnings import no_warnings, warn_user

from ..conftest import change

USES = {
    "nlp.pipe": lambda nlp, texts: [doc._.pll for doc in nlp.pipe(texts)],
    "score_docs": lambda nlp, texts: [doc._.pll for doc in spacy_pll.score_docs(nlp, texts, 8)],
    "score": lambda nlp, texts: [one.score for one in spacy_pll.score(texts, nlp)],
    "minimal_pairs": lambda nlp, texts: numbers(spacy_pll.minimal_pairs(nlp, [texts[:2], texts[1:]])),
    "choices": lambda nlp, texts: numbers(
        spacy_pll.choices(nlp, [spacy_pll.Choice([spacy_pll.Option(text) for text in texts], 0)])
    ),
}


def numbers(scores):
    return [score for of_scorer in scores.scores.values() for score in of_scorer.sums.tolist()]


@Language.factory("meets")
class Meets(Pipe):
    """Fails at bad texts, and waits where a test says so."""

    def __init__(self, nlp, name):
        self.name, self.wait = name, lambda text: None

    def __call__(self, doc):
        self.wait(doc.text)
        if doc.text.startswith("bad"):
            raise ValueError("this doc is bad")
        return doc


@Language.component("meets_too")
def meets_too(doc):
    if doc.text.startswith("also bad"):
        raise ValueError("this doc is bad, too")
    return doc


@pytest.fixture
def nlp(make_nlp):
    nlp = make_nlp("bert")
    nlp.add_pipe("meets", first=True)
    nlp.add_pipe("meets_too")
    return nlp


def what_comes(use, nlp, texts):
    try:
        return use(nlp, texts)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


def handlers(nlp):
    return [nlp.default_error_handler, *(pipe.get_error_handler() for _, pipe in nlp.components if "pipe" in dir(pipe))]


def check_two_threads(nlp, first, second, bad):
    texts = {"First": ["First.", bad, "A text."], "Second": ["Second.", "It is.", "A text."]}
    expected = {"First": what_comes(first, nlp, texts["First"])}
    expected["Second"] = what_comes(second, nlp, texts["Second"])
    before = handlers(nlp)
    inside, done = {name: threading.Event() for name in texts}, threading.Event()

    def wait(text):
        if (name := text.strip(".")) in inside:
            inside[name].set()
            (inside["Second"] if name == "First" else done).wait(20)

    def run(name, use):
        found = what_comes(use, nlp, texts[name])
        done.set()
        return found

    nlp.get_pipe("meets").wait = wait
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(run, "First", first)
        assert inside["First"].wait(20)
        other = pool.submit(run, "Second", second)
        found = {"First": one.result(), "Second": other.result()}
    for name, values in found.items():
        is_error = isinstance(expected[name], str)
        assert values == (expected[name] if is_error else pytest.approx(expected[name], abs=1e-4))
    assert handlers(nlp) == before


@pytest.mark.parametrize("second", USES)
@pytest.mark.parametrize("first", USES)
def test_each_of_two_threads_has_its_own_errors_and_leaves_nothing_behind(nlp, first, second):
    """The first begins, the second begins, the first ends, the second ends. The handler of the first stayed, and
    `nlp.pipe` left docs out without an error.
    """
    for bad in ("a word", "bad", "also bad"):
        check_two_threads(nlp, USES[first], USES[second], bad)
    with pytest.raises(ValueError, match="this doc is bad"):
        list(nlp.pipe(["good", "bad", "good"]))


def test_the_scorer_is_never_changed(nlp):
    scorer, seen = nlp.get_pipe("pll"), list[object]()
    own = lambda *about: pytest.fail("this handler is of others")  # noqa: E731
    scorer.set_error_handler(own)

    def fails(docs):
        seen.append(scorer.get_error_handler())
        raise RuntimeError("no spans")

    change(scorer, get_spans=fails)
    with pytest.raises(RuntimeError, match="no spans"):
        list(spacy_pll.score_docs(nlp, ["A text."], 8))
    assert seen and {*seen} == {own}


@pytest.mark.parametrize("use", ["score_docs", "score", "minimal_pairs", "choices"])
def test_errors_of_the_pipeline_that_makes_the_texts_are_its_own(nlp, use):
    """Its docs that failed were left out, as if they were those that are scored."""
    made = (doc.text for doc in nlp.pipe(["A text.", "bad", "It is."]))
    with pytest.raises(ValueError, match="this doc is bad"):
        USES[use](nlp, made) if use in ("score_docs", "score") else USES[use](nlp, list(made))
    logged = []
    nlp.set_error_handler(lambda *about: logged.append(about[2][0].text))
    made = (doc.text for doc in nlp.pipe(["A text.", "bad", "It is.", "also bad", "We."]))
    assert len(list(spacy_pll.score_docs(nlp, made, 2))) == 3 and logged == ["bad", "also bad"]


class Component:
    """What `handled` needs of a component."""

    def __init__(self):
        self.handler = raise_error

    def get_error_handler(self):
        return self.handler

    def set_error_handler(self, handler):
        self.handler = handler


@given(st.lists(st.integers(0, 3), max_size=20), st.booleans())
def test_in_whatever_order_threads_come_and_go_each_has_its_own_handler(turns, has_other):
    """property: in a thread that is inside, its function is called; in the others and behind the last, the own one."""
    component, heard, stacks = Component(), [], {}
    other = raise_error if not has_other else lambda *about: heard.append("own")
    component.set_error_handler(other)

    def turn(number):
        if number in stacks:
            stacks.pop(number).close()
        else:
            stacks[number] = ExitStack()
            stacks[number].enter_context(
                handled([("a", component), ("again", component)], lambda own, *about: heard.append((number, own)))
            )

    def fail():
        heard.clear()
        try:
            component.get_error_handler()("a", component, [], KeyError("x"))
        except KeyError:
            heard.append("own")
        return heard[:]

    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(4)]
        for number in turns:
            threads[number].submit(turn, number).result()
            for i, thread in enumerate(threads):
                assert thread.submit(fail).result() == ([(i, other)] if i in stacks else ["own"])
            assert fail() == ["own"] and (component.handler is other) == (not stacks)
        for number in list(stacks):
            threads[number].submit(turn, number).result()
    assert component.handler is other


def test_a_handler_that_is_set_meanwhile_stays():
    component, new = Component(), lambda *about: None
    with handled([("a", component)], lambda own, *about: None):
        component.set_error_handler(new)
    assert component.handler is new


def test_warnings_are_off_in_one_thread_alone():
    """`catch_warnings` of two threads left all warnings of the process off."""
    with ThreadPoolExecutor(1) as other, no_warnings():
        warn_user("of nobody")
        with pytest.warns(UserWarning, match="of somebody"):
            other.submit(warn_user, "of somebody").result()
    with pytest.warns(UserWarning, match="of somebody"):
        warn_user("of somebody")
