import io
import multiprocessing
import os
from contextlib import redirect_stderr

import pytest

from spacy_pll import agree, score_docs
from spacy_pll import progress as module
from spacy_pll.progress import Forecast, hidden_progress, with_progress
from spacy_pll.stream.outcomes import TextError

TEXTS = ["The traveler lost the souvenir. " * 6, *["A text."] * 30, "It's over. " * 12]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def nlp(make_nlp):
    return make_nlp("bert")


@pytest.mark.parametrize("n_process", [1, 2])
def test_the_bar_ends_at_100_percent(nlp, n_process):
    with redirect_stderr(Terminal()) as shown:
        assert [doc.text for doc in score_docs(nlp, TEXTS, 8, n_process, show_progress=True)] == TEXTS
    lines = shown.getvalue().strip().split("\r")
    assert "0/32" in lines[0] and "100%" in lines[-1] and "32/32" in lines[-1] and "texts/s" in lines[-1]


def test_without_a_total_there_is_no_percentage(nlp):
    with redirect_stderr(Terminal()) as shown:
        assert len(list(score_docs(nlp, iter(TEXTS), 8, show_progress=True))) == len(TEXTS)
    assert "%" not in shown.getvalue() and "32 texts" in shown.getvalue()


def test_a_stream_may_say_how_many_texts_it_has(nlp):
    with redirect_stderr(Terminal()) as shown:
        list(score_docs(nlp, iter(TEXTS), 8, show_progress=True, total=len(TEXTS)))
    assert "32/32" in shown.getvalue()


def test_nothing_is_shown_where_it_is_not_wanted(nlp):
    for stream in (Terminal(), io.StringIO()):
        with redirect_stderr(stream):
            assert len(list(score_docs(nlp, TEXTS, 8))) == len(TEXTS)
        assert stream.getvalue() == ""


def test_nothing_is_shown_where_it_is_hidden_whoever_asks(nlp):
    with redirect_stderr(Terminal()) as shown:
        with hidden_progress(), hidden_progress():
            assert len(list(score_docs(nlp, TEXTS, 8, show_progress=True))) == len(TEXTS)
            assert not Forecast(10).left
        assert shown.getvalue() == ""
        list(score_docs(nlp, TEXTS, 8, show_progress=True))
    assert "32/32" in shown.getvalue() and Forecast(10).left == 10


def test_what_was_done_before_counts():
    with redirect_stderr(Terminal()) as shown:
        assert list(with_progress("abc", 10, 7)) == [*"abc"]
    assert "7/10" in shown.getvalue() and "10/10" in shown.getvalue()


@pytest.mark.parametrize(
    "total, first, last", [(50, "0/50 texts [", "50/50 texts ["), (None, "0 texts [", "50 texts [")]
)
def test_a_log_has_a_line_at_the_start_and_at_the_end(total, first, last):
    with redirect_stderr(io.StringIO()) as logged:
        list(with_progress(range(50), total))
    lines = logged.getvalue().strip().splitlines()
    assert len(lines) == 2 and lines[0].startswith(first) and lines[1].startswith(last)
    assert "\r" not in logged.getvalue() and "texts/s" in lines[1]


def test_a_log_has_a_line_now_and_then(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_PER_LINE", 0)
    with redirect_stderr(io.StringIO()) as logged:
        list(with_progress(range(5), 5))
    assert [line.split("/")[0] for line in logged.getvalue().splitlines()[:6]] == [*"012345"]


def test_a_terminal_without_a_width_has_lines(monkeypatch):
    monkeypatch.setattr(module.shutil, "get_terminal_size", lambda: os.terminal_size((0, 0)))
    with redirect_stderr(Terminal()) as shown:
        list(with_progress(range(5), 5))
    assert shown.getvalue().splitlines()[0].startswith("0/5 texts [")


def test_nothing_is_left_of_a_bar_and_of_workers_while_an_error_is_kept(nlp):
    nlp.max_length = 100
    for show in (False, True):
        with pytest.raises(TextError) as kept:
            list(score_docs(nlp, ["A text.", "x " * 200], 8, 2, show_progress=show))
        assert not multiprocessing.active_children() and kept.value


def test_two_scorers_share_a_bar(nlp, make_nlp):
    other = make_nlp("bert", metrics=["original"])
    with redirect_stderr(Terminal()) as shown:
        agree(nlp, other, TEXTS[:4], show_progress=True)
    last = shown.getvalue().strip().split("\r")[-1]
    assert "100%" in last and "4/4" in last


@pytest.fixture
def forecast(monkeypatch):
    """forecast(total, done, seconds): what is said when batches of two texts with 7 pieces took so long each."""

    def said(total, done=0, seconds=3.0, show=True, batches=4):
        clock = [0.0]
        monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
        with redirect_stderr(io.StringIO()) as logged:
            one = module.Forecast(total, done, show)
            for _ in range(batches):
                clock[0] += seconds
                one.add(4, False)
                one.add(3, True)
        return logged.getvalue()

    return said


def test_a_forecast_comes_once_after_the_first_seconds(forecast):
    assert forecast(1000) == "1,000 texts to go, with about 3,500 wordpieces: about 25 min on this device.\n"
    assert forecast(1000, 400).startswith("600 texts to go, with about 2,100 wordpieces: about 15 min")
    assert "about 41.7 hours" in forecast(100_000) and "about 350,000 wordpieces" in forecast(100_000)


def test_where_there_is_nothing_to_forecast(forecast):
    assert not forecast(None) and not forecast(1000, show=False) and not forecast(20)
    assert not forecast(1000, batches=1) and forecast(1000, batches=2)


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_forecast_leaves_the_bar_whole(stream, monkeypatch):
    monkeypatch.setattr(module, "FIRST_SECONDS", 0)
    monkeypatch.setattr(module, "WORTH_SAYING", 0)
    with redirect_stderr(stream()) as shown:
        one = module.Forecast(5)
        for _ in with_progress(range(5), 5):
            one.add(3, True)
    lines = shown.getvalue().strip().replace("\r", "\n").splitlines()
    assert [line for line in lines if "to go" in line] == [
        next(line for line in lines if line.startswith("5 texts to go"))
    ]
    assert "5/5" in lines[-1] and (stream is Terminal or "" not in lines)
