"""Most of this runs in one process: the workers are called as Ray calls them. What needs a cluster is slow."""

import importlib
import json
import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
import spacy
from spacy.language import Language

pytest.importorskip("ray")

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import ray.data  # noqa: E402

from spacy_pll import PipelineSettings, get_scorer, make_pipeline
from spacy_pll.distributed import Worker, added_columns, annotate, serialize_pipeline  # noqa: E402
from spacy_pll.prediction.asking import PendingScores  # noqa: E402

from .conftest import SENTENCES  # noqa: E402


@Language.component("fails_on_bad")
def fails_on_bad(doc):
    if "bad" in doc.text:
        raise RuntimeError("a bad text")
    return doc


@Language.factory("fails_in_its_pipe")
class FailsInItsPipe:
    """Knows nothing of error handlers, as components of other packages may."""

    def __init__(self, nlp, name):
        pass

    def __call__(self, doc):
        return fails_on_bad(doc)

    def pipe(self, docs, **cfg):
        yield from map(self, docs)


def table(texts):
    return pa.table({"id": range(len(texts)), "text": pa.array(texts, pa.string()), "more": ["x"] * len(texts)})


def test_a_worker_adds_what_the_pipeline_scores(make_nlp):
    texts = [*SENTENCES, "", "  two  spaces "]
    out = Worker(lambda: make_nlp("bert", metrics=["word_l2r", "original"]), "text")(table(texts))
    names = added_columns(get_scorer(make_nlp("bert", metrics=["word_l2r", "original"])))
    assert out.column_names == ["id", "text", "more", *names]
    nlp = make_nlp("bert", metrics=["word_l2r", "original"], keep_pieces=True)
    for row, doc in zip(out.to_pylist(), nlp.pipe(texts), strict=True):
        words = [token for token in doc if not token.is_space]
        assert row["error"] is None and row["more"] == "x" and row["text"] == doc.text
        assert row["pll_pieces"] == doc._.pll_pieces and row["tokens"] == [token.text for token in words]
        assert (row["pppl"] or 0) == pytest.approx(doc._.pppl or 0, rel=1e-5)
        for metric in ("word_l2r", "original"):
            assert (row[f"pll_{metric}"] or 0) == pytest.approx(doc._.get(f"pll_{metric}") or 0, abs=1e-5)
            own = [token._.get(f"pll_{metric}") for token in words]
            assert row[f"token_pll_{metric}"] == pytest.approx(own, abs=1e-5)
        assert [piece for pieces in row["token_pieces"] for piece in pieces] == doc._.pll_data["pieces"]


@pytest.mark.parametrize("component", ["fails_on_bad", "fails_in_its_pipe"])
def test_rows_that_fail_are_kept_with_their_error(make_nlp, component):
    def make():
        nlp = spacy.blank("en")
        nlp.max_length = 200
        nlp.add_pipe(component)
        return make_nlp("bert", nlp=nlp)

    texts = [SENTENCES[0], "a bad one", SENTENCES[1], "long " * 100, None, SENTENCES[2]]
    rows = Worker(make, "text")(table(texts)).to_pylist()
    assert [row["text"] for row in rows] == texts
    errors = [row["error"] for row in rows]
    assert errors[1] == "RuntimeError: a bad text"
    assert errors[3].startswith("ValueError: [E088]") and errors[4].startswith("ValueError: [E1041]")
    assert [errors[n] for n in (0, 2, 5)] == [None] * 3
    assert all(rows[n][name] is None for n in (1, 3, 4) for name in ("pll_word_l2r", "pll_pieces", "pppl", "tokens"))
    nlp = make_nlp("bert")
    assert [rows[n]["pll_word_l2r"] for n in (0, 2, 5)] == pytest.approx(
        [nlp(texts[n])._.pll for n in (0, 2, 5)], abs=1e-5
    )


def test_a_fault_of_the_worker_is_no_texts_fault(make_nlp, monkeypatch):
    worker = Worker(lambda: make_nlp("bert"), "text")

    def broken(self, *args):
        raise RuntimeError("device lost")

    monkeypatch.setattr(PendingScores, "result", broken)
    with pytest.raises(RuntimeError, match="device lost"):
        worker(table(SENTENCES))
    with pytest.raises(RuntimeError, match="device lost"):
        Worker(lambda: make_nlp("bert"), "text")


def test_a_pipeline_travels_with_its_weights(model_folder, tmp_path):
    """The place that the model came from need not be there where it arrives."""
    shutil.copytree(model_folder("bert"), tmp_path / "model")
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(tmp_path / "model")}
    nlp.add_pipe("pll", config={"model": model, "metrics": ["original"]})
    expected = [nlp(text)._.pll for text in SENTENCES]
    make = serialize_pipeline(nlp)
    shutil.rmtree(tmp_path / "model")
    rows = Worker(make, "text")(table(SENTENCES)).to_pylist()
    assert [row["pll_original"] for row in rows] == pytest.approx(expected, abs=1e-5)


def test_one_of_several_components(make_nlp):
    def make():
        nlp = make_nlp("bert", nlp=make_nlp("bert"), name="second", attr="other", metrics=["original"])
        return make_pipeline(nlp, component="second")

    expected = [doc._.other for doc in make().pipe(SENTENCES)]
    for send in (make, serialize_pipeline(make())):
        rows = Worker(send, "text")(table(SENTENCES)).to_pylist()
        assert [row["other_original"] for row in rows] == pytest.approx(expected, abs=1e-4)
        assert "pll_word_l2r" not in rows[0]


def test_settings_that_are_not_legal(make_nlp):
    dataset = type("Dataset", (), {"columns": lambda self: ["text", "error"]})()
    with pytest.raises(ValueError, match="`workers` must be 1 or more. It is 0"):
        annotate(dataset, make_nlp("bert"), workers=0)
    with pytest.raises(ValueError, match="`gpus_per_worker` must be 0 to 1.* It is 2"):
        annotate(dataset, make_nlp("bert"), gpus_per_worker=2)
    with pytest.raises(ValueError, match="no `pll` component"):
        annotate(dataset, spacy.blank("en"))
    with pytest.raises(ValueError, match="no column 'x'. The columns are: 'text', 'error'"):
        annotate(dataset, make_nlp("bert"), column="x")
    with pytest.raises(ValueError, match="The dataset already has a column 'error'"):
        annotate(dataset, make_nlp("bert"))
    # Where a function makes the pipeline, only a worker knows what it would add.
    for columns, message in (
        ({"text": ["A word."], "pppl": [3.0]}, "a column 'pppl'"),
        ({"a": [1]}, "no column 'text'"),
    ):
        with pytest.raises(ValueError, match=message):
            Worker(lambda: make_nlp("bert"), "text")(pa.table(columns))


FRESH_WORKER = """
import pickle, sys
Worker, makers, table = pickle.load(sys.stdin.buffer)
for make_nlp in makers:
    print(Worker(make_nlp, "text")(table)["pll_word_l2r"].to_pylist())
    print([name for name in sys.modules if name.startswith("spacy_pll.cli")])
"""


@pytest.mark.slow
def test_a_worker_does_not_import_the_command_line(model_folder, make_nlp):
    """Neither from settings nor from a pipeline. (spaCy itself imports Typer, so that is not looked at.)"""
    nlp = make_nlp("bert")
    makers = [partial(make_pipeline, PipelineSettings(model=str(model_folder("bert")))), serialize_pipeline(nlp)]
    job = pickle.dumps((Worker, makers, table(SENTENCES[:2])))
    out = subprocess.run([sys.executable, "-c", FRESH_WORKER], input=job, check=True, capture_output=True)
    found = [*map(json.loads, out.stdout.splitlines())]
    for scores in found[::2]:
        assert scores == pytest.approx([nlp(text)._.pll for text in SENTENCES[:2]], abs=1e-5)
    assert found[1::2] == [[], []]


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] == "ray" or name == "spacy_pll.distributed":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install .*\[ray\]"):
        importlib.import_module("spacy_pll.distributed")


@pytest.fixture(scope="module")
def two_workers():
    logging.getLogger("ray").setLevel(logging.WARNING)  # otherwise a failure is lost among Ray's notes on each block
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(address="local", num_cpus=3, include_dashboard=False)
    yield
    ray.shutdown()


@pytest.mark.slow
def test_a_worker_is_killed_and_every_row_is_there_once(two_workers, tmp_path, make_nlp):
    nlp = make_nlp("bert")
    make, folder = serialize_pipeline(nlp), str(tmp_path)
    texts = [f"{text} {n}" for n, text in enumerate(SENTENCES * 4)]

    def make_slow_and_known():
        nlp = make()
        make_doc = nlp.make_doc

        def read(text):
            if text in texts:
                Path(folder, str(os.getpid())).touch()
                wait_for_both()
                time.sleep(0.05)
            return make_doc(text)

        nlp.make_doc = read
        return nlp

    def wait_for_both():
        while len(os.listdir(folder)) < 2:
            time.sleep(0.01)

    def kill_one():  # while both are at work
        wait_for_both()
        os.kill(int(os.listdir(folder)[0]), signal.SIGKILL)

    Thread(target=kill_one, daemon=True).start()
    dataset = ray.data.from_items([{"id": n, "text": text} for n, text in enumerate(texts)])
    rows = annotate(dataset, make_slow_and_known, workers=2, batch_size=4).take_all()
    rows.sort(key=lambda row: row["id"])
    assert len(os.listdir(folder)) == 3  # two, and the one that took the place of the one killed
    assert [row["id"] for row in rows] == list(range(len(texts)))
    assert [row["text"] for row in rows] == texts
    assert [row["pll_word_l2r"] for row in rows] == pytest.approx([doc._.pll for doc in nlp.pipe(texts)], abs=1e-5)
    assert not any(row["error"] for row in rows)


@pytest.mark.slow
def test_files_are_read_and_written_by_ray(two_workers, make_nlp, tmp_path):
    """As docs/distributed.md does it."""
    nlp = make_nlp("bert", attr="naturalness")
    rows = [{"key": n, "sentence": text} for n, text in enumerate(SENTENCES * 20)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "texts.parquet", row_group_size=7)
    dataset = ray.data.read_parquet(str(tmp_path / "texts.parquet"))
    scored = annotate(dataset, nlp, column="sentence", workers=2, batch_size=4)
    scored.write_parquet(str(tmp_path / "scores"), min_rows_per_file=50)
    assert len(list((tmp_path / "scores").iterdir())) > 1
    written = pq.read_table(tmp_path / "scores").sort_by("key").to_pylist()
    assert [{name: row[name] for name in ("key", "sentence")} for row in written] == rows
    expected = [doc._.naturalness for doc in nlp.pipe(row["sentence"] for row in rows)]
    assert [row["naturalness_word_l2r"] for row in written] == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
def test_a_pipeline_that_cannot_be_made_ends_the_job(two_workers):
    def cannot():
        raise OSError("no such model")

    with pytest.raises(ray.exceptions.RayError, match="no such model"):
        annotate(ray.data.from_items([{"text": "x"}]), cannot).take_all()


def test_a_worker_adds_what_the_model_expected(make_nlp):
    def make():
        return make_nlp("bert", alternatives=2, distribution=True)

    texts = ["The traveler lost it.", "", "x" * 3]
    out = Worker(make, "text")(table(texts))
    assert set(out.column_names) == {"text", *added_columns(get_scorer(make()))} | set(table(texts).column_names)
    for row, doc in zip(out.to_pylist(), make().pipe(texts), strict=True):
        assert row["token_rank"] == [token._.pll_rank for token in doc]
        assert row["token_alternatives"] == [[text for text, _, _ in token._.pll_alternatives] for token in doc]
        assert [len(one) for one in row["token_alternative_log_probs"]] == [2] * len(doc)
        assert row["pll_top1"] == doc._.pll_top1
        assert sum(row["token_entropy"]) == pytest.approx(row["pll_entropy"] or 0)
