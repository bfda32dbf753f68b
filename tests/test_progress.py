import io
import multiprocessing
import pickle
import re
import sys
from dataclasses import replace

import pytest

from spacy_pll import agree
from spacy_pll.outcomes import TextError
from spacy_pll.prediction import WorkDone
from spacy_pll.progress import with_progress
from spacy_pll.workers import score_docs

TEXTS = ["The traveler lost the souvenir. " * 6, *["A text."] * 30, "It's over. " * 12]


@pytest.fixture
def nlp(make_nlp, monkeypatch):
    nlp = make_nlp("bert")
    predictor = nlp.get_pipe("pll").predictor
    monkeypatch.setattr(predictor.model, "loaded", replace(predictor.prepare(), ids_at_once=300))
    return nlp


def bars(nlp, monkeypatch, n_process=1, show=True, texts=TEXTS, known=True):
    """The docs, and all that was shown, in its order."""
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    predictor = nlp.get_pipe("pll").predictor
    work = [predictor.estimate(text) for text in texts]
    sizes, total = iter(work), sum(work) if known else 0
    docs = score_docs(nlp, texts, 8, n_process)
    monkeypatch.setattr("spacy_pll.progress.MOVES", {"mininterval": 0, "miniters": 0})
    n_texts = len(texts) if known else 0
    found = list(with_progress(docs, predictor, lambda doc: next(sizes), total, n_texts, show=show))
    return found, [line for line in shown.getvalue().split("\r") if line.strip()]


@pytest.mark.parametrize("n_process", [1, 2])
def test_the_bar_begins_at_0_and_ends_at_100_percent(nlp, monkeypatch, n_process):
    docs, shown = bars(nlp, monkeypatch, n_process)
    assert [doc.text for doc in docs] == TEXTS
    percents = [int(line.split("%")[0]) for line in shown]
    assert percents[0] == 0 and percents[-1] == 100 and max(percents) <= 100
    assert "0/32 texts" in shown[0] and "32/32 texts" in shown[-1] and "pieces/s" in shown[-1]


def test_it_moves_while_a_long_text_is_read(nlp, monkeypatch):
    predictor = nlp.get_pipe("pll").predictor
    predictor.settings = replace(predictor.settings, max_batch_tokens=100)
    _, shown = bars(nlp, monkeypatch, texts=TEXTS[:1])
    assert sum("0/1 texts" in line for line in shown) > 10


def test_what_remains_is_estimated_from_what_was_read(nlp, monkeypatch):
    """The texts take far less work than their length says."""
    _, shown = bars(nlp, monkeypatch, texts=[" " * 400 + "A text."] * 64)
    found = [re.search(r"^ *(\d+)%.* (\d+)/64 texts", line) for line in shown]
    percent = {int(match[2]): int(match[1]) for match in found}
    assert 40 <= percent[40] <= 80 and percent[64] == 100


def test_without_a_total_there_is_no_percentage(nlp, monkeypatch):
    _, shown = bars(nlp, monkeypatch, known=False)
    assert "%" not in "".join(shown) and "32 texts [" in shown[-1]


def test_nothing_is_shown_where_it_is_not_wanted(nlp, monkeypatch):
    assert bars(nlp, monkeypatch, show=False)[1] == []


def test_others_count_on(nlp, monkeypatch):
    before = nlp.get_pipe("pll").predictor.counts = WorkDone()
    bars(nlp, monkeypatch)
    assert nlp.get_pipe("pll").predictor.counts is before and before.rows > len(TEXTS)


def test_score_docs_shows_it(nlp, monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    assert len(list(score_docs(nlp, TEXTS, 8, show_progress=True))) == len(TEXTS)
    assert "100%" in shown.getvalue() and "32/32 texts" in shown.getvalue()
    assert len(list(score_docs(nlp, iter(TEXTS), 8, show_progress=True))) == len(TEXTS)
    assert shown.getvalue().endswith("\n") and " 32 texts [" in shown.getvalue().replace("\r", " ")
    before = len(shown.getvalue())
    assert len(list(score_docs(nlp, TEXTS, 8))) == len(TEXTS) and len(shown.getvalue()) == before


def test_workers_show_no_bar(nlp, monkeypatch, tmp_path):
    """Neither where they are forked, nor where they get a copy."""
    predictor = nlp.get_pipe("pll").predictor
    with open(tmp_path / "shown", "w+", buffering=1) as shown:  # a file, which forked processes share
        monkeypatch.setattr(sys, "stderr", shown)
        monkeypatch.setattr("spacy_pll.progress.MOVES", {"mininterval": 0, "miniters": 0})
        list(score_docs(nlp, TEXTS, 8, 2, show_progress=True))
        numbers = [int(number) for number in re.findall(r"(\d+)/32 texts", (tmp_path / "shown").read_text())]
        assert numbers == sorted(numbers) and numbers[-1] == 32
        items = with_progress([None], predictor, lambda item: 1, 1, 1, show=True)
        next(items)
        assert type(pickle.loads(pickle.dumps(predictor.counts))) is WorkDone is not type(predictor.counts)
        items.close()


def test_nothing_is_left_of_a_bar_and_of_workers_while_an_error_is_kept(nlp):
    before = nlp.get_pipe("pll").predictor.counts
    nlp.max_length = 100
    for show in (False, True):
        with pytest.raises(TextError) as kept:
            list(score_docs(nlp, ["A text.", "x " * 200], 8, 2, show_progress=show))
        assert not multiprocessing.active_children() and nlp.get_pipe("pll").predictor.counts is before
        assert kept.value


def test_two_scorers_share_a_bar_and_their_passes_are_counted_as_without_it(nlp, make_nlp, monkeypatch):
    other = make_nlp("bert", metrics=["original"])
    quiet = agree(nlp, other, TEXTS[:4])
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr("spacy_pll.progress.MOVES", {"mininterval": 0, "miniters": 0})
    found = agree(nlp, other, TEXTS[:4], show_progress=True)
    lines = [line for line in shown.getvalue().split("\r") if line.strip()]
    assert "100%" in lines[-1] and "4/4 texts" in lines[-1] and "pieces/s" in lines[-1]
    assert [one.forward_pieces for one in found.scorers] == [one.forward_pieces for one in quiet.scorers]
    with pytest.raises(ValueError, match="no `pll` component 'none'"):
        agree(nlp, other, TEXTS[:4], component="none")
