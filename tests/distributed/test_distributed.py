"""Most of this runs in one process: the workers are called as Ray calls them. What needs a cluster is slow."""

import gzip
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

import pytest
import spacy
from spacy.language import Language

pytest.importorskip("ray")

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import ray.data  # noqa: E402
from ray.data.exceptions import ExecutionTimeoutError  # noqa: E402

from spacy_pll import distributed  # noqa: E402
from spacy_pll.corpus.parquet import reader  # noqa: E402
from spacy_pll.corpus.readers import InputError  # noqa: E402
from spacy_pll.distributed import datasets  # noqa: E402
from spacy_pll.distributed.datasets import read_text_files, summarize_files  # noqa: E402
from spacy_pll.distributed.runs import write_parquet  # noqa: E402
from spacy_pll.distributed.workers import Worker, added_columns, serialize_pipeline  # noqa: E402
from spacy_pll.pipelines import PipelineSettings, make_pipeline  # noqa: E402
from spacy_pll.prediction import Predictor  # noqa: E402
from spacy_pll.requirements import install_command  # noqa: E402

from ..cli.conftest import run  # noqa: E402
from ..conftest import SENTENCES  # noqa: E402


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
    names = added_columns(make_nlp("bert", metrics=["word_l2r", "original"]), "text")
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

    monkeypatch.setattr(Predictor, "_collect", broken)
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


def read_here(corpus):
    """What the reading tasks give, as rows."""
    items = [{"path": s.path, "first": s.first, "fields": json.dumps(s.fields)} for s in corpus.files]
    return [row for t in read_text_files(pa.Table.from_pylist(items), corpus) for row in t.to_pylist()]


def test_texts_are_numbered_through_the_files_of_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "ROWS_PER_READ", 2)
    (tmp_path / "b.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.csv").write_text("text,n\nfour,1\nfive,2\n")
    (tmp_path / "notes.md").write_text("not read")
    corpus = summarize_files(str(tmp_path))
    assert corpus.texts == 5 and corpus.numbered and corpus.schema.names == ["id", "text", "file", "n"]
    csv = str(Path("sub", "a.csv"))
    assert [tuple(row.values()) for row in read_here(corpus)] == [
        (0, "one", "b.txt", None),
        (1, "two", "b.txt", None),
        (2, "three", "b.txt", None),
        (3, "four", csv, "1"),
        (4, "five", csv, "2"),
    ]


def test_what_stands_beside_a_text_keeps_its_type_where_it_has_one(tmp_path):
    rows = [
        {"text": "a", "i": 1, "f": 1, "b": True, "s": "x", "mixed": 1, "list": ["ä"], "none": None, "big": 2**70},
        {"text": "b", "i": None, "f": 2.5, "s": None, "mixed": "1"},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = summarize_files(str(tmp_path / "in.jsonl"))
    types = {"id": "int64", "text": "string", "i": "int64", "f": "double", "b": "bool", "s": "string"}
    texts = dict.fromkeys(["mixed", "list", "none", "big"], "string")
    assert {field.name: str(field.type) for field in corpus.schema} == types | texts
    first, second = read_here(corpus)
    assert first == rows[0] | {"id": 0, "f": 1.0, "mixed": "1", "list": '["ä"]', "big": str(2**70)}
    assert second == dict.fromkeys(first) | rows[1] | {"id": 1}


def test_parquet_is_read_with_its_own_columns_and_ids(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "ROWS_PER_READ", 2)
    for name, start in (("a", 0), ("b", 3)):
        ids = [f"t{n}" for n in range(start, start + 3)]
        pq.write_table(pa.table({"Sentence": ["x"] * 3, "key": ids, "l": [[1]] * 3}), tmp_path / f"{name}.parquet")
    corpus = summarize_files(str(tmp_path), "Sentence", "key")
    assert corpus.texts == 6 and not corpus.numbered
    assert read_here(corpus) == [{"Sentence": "x", "key": f"t{n}", "l": [1]} for n in range(6)]
    corpus = summarize_files(str(tmp_path), "Sentence", "id")
    assert [row["id"] for row in read_here(corpus)] == [0, 1, 2, 3, 4, 5]


def test_compressed_files_are_read(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"x\ny\n"))
    assert read_here(summarize_files(str(tmp_path))) == [
        {"id": 0, "text": "x", "file": "a.txt.gz"},
        {"id": 1, "text": "y", "file": "a.txt.gz"},
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "contains no file that ends in .txt"),
        ({"a.txt": b"x", "b.spacy": b""}, "b.spacy: Ray cannot read this file.*score it without Ray"),
        ({"a.txt": b""}, "There is no text in"),
        ({"a.jsonl": b'{"text": "x"}\n{"text": \n'}, "a.jsonl, line 2: not valid JSON"),
        ({"a.jsonl": b'{"text": "x", "id": 1}\n{"text": "y"}\n'}, "Only 1 of the 2 texts in .* have 'id'"),
        ({"a.jsonl": b'{"text": "x", "id": 1.5}\n'}, "'id', must hold whole numbers or strings. It holds double"),
        ({"a.parquet": b"PAR1"}, "a.parquet: this is not a Parquet file, or it is damaged"),
        ({"a.parquet": {"t": ["x"]}}, "a.parquet: there is no column 'text'. The columns are: 't'.*--column"),
        ({"a.parquet": {"text": [1]}}, "a.parquet: 'text' must hold text. It holds int64"),
        ({"a.parquet": {"text": ["x"]}, "b.parquet": {"text": ["x"], "n": [1]}}, "b.parquet: its columns differ"),
        ({"a.parquet": {"text": ["x"]}, "b.txt": b"x"}, "contains Parquet files and other files"),
    ],
)
def test_input_that_cannot_be_read_is_named(tmp_path, files, message):
    for name, content in files.items():
        if isinstance(content, dict):
            pq.write_table(pa.table(content), tmp_path / name)
        else:
            (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        summarize_files(str(tmp_path))
    with pytest.raises(InputError, match="There is no file or folder"):
        summarize_files(str(tmp_path / "none"))


def test_settings_that_are_not_legal(make_nlp):
    with pytest.raises(ValueError, match="`workers` must be 1 or more. It is 0"):
        distributed.annotate(None, make_nlp("bert"), workers=0)
    with pytest.raises(ValueError, match="`gpus_per_worker` must be 0 to 1.* It is 2"):
        distributed.annotate(None, make_nlp("bert"), gpus_per_worker=2)
    with pytest.raises(ValueError, match="no `pll` component"):
        added_columns(spacy.blank("en"), "text")


FRESH_WORKER = """
import pickle, sys
Worker, make_nlp, table = pickle.load(sys.stdin.buffer)
print(Worker(make_nlp, "text")(table)["pll_word_l2r"].to_pylist())
print([name for name in sys.modules if name.startswith("spacy_pll.cli")])
"""


@pytest.mark.slow
def test_a_worker_does_not_import_the_command_line(model_folder, make_nlp):
    """Neither from settings nor from a pipeline. (spaCy itself imports Typer, so that is not looked at.)"""
    nlp = make_nlp("bert")
    makers = [partial(make_pipeline, PipelineSettings(model=str(model_folder("bert")))), serialize_pipeline(nlp)]
    for make_nlp in makers:
        job = pickle.dumps((Worker, make_nlp, table(SENTENCES[:2])))
        out = subprocess.run([sys.executable, "-c", FRESH_WORKER], input=job, check=True, capture_output=True)
        scores, modules = map(json.loads, out.stdout.splitlines())
        assert scores == pytest.approx([nlp(text)._.pll for text in SENTENCES[:2]], abs=1e-5)
        assert modules == []


def test_without_ray_the_error_says_what_to_install(monkeypatch, tmp_path):
    for name in list(sys.modules):
        if name.split(".")[0] == "ray" or name.startswith("spacy_pll.distributed"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delattr("spacy_pll.distributed")
    (tmp_path / "in.txt").write_text("x\n")
    result = run("score", tmp_path / "in.txt", tmp_path / "out.parquet", "--engine", "ray", fails=True)
    assert install_command("ray") in result.unwrapped_stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "ray", "--resume"], "--resume cannot be combined with --engine ray"),
        (["--engine", "ray", "--tokens"], "--tokens cannot be combined with --engine ray"),
        (["--engine", "ray", "--format", ".txt"], "--format cannot be combined with --engine ray"),
        (["--engine", "ray", "--n-process", "2"], "--n-process cannot be combined with --engine ray"),
        (["--engine", "ray", "--gpu-id", "0"], "--gpu-id cannot be combined with --engine ray"),
        (["--workers", "2"], "--workers cannot be combined with --engine local. Add --engine ray"),
        (["--gpus-per-worker", "1"], "--gpus-per-worker cannot be combined with --engine local"),
        (["--id-column", "x"], "--id-column cannot be combined with --engine local"),
    ],
)
def test_options_of_the_other_engine_are_refused(tmp_path, options, message):
    (tmp_path / "in.txt").write_text("x\n")
    result = run("score", tmp_path / "in.txt", tmp_path / "out.parquet", *options, fails=True)
    assert message in result.unwrapped_stderr
    assert not list(tmp_path.glob("out*"))


def test_outputs_and_inputs_that_are_refused(tmp_path, model_folder):
    def refused(*arguments):
        return run("score", *arguments, "--engine", "ray", "--model", model_folder("bert"), fails=True).unwrapped_stderr

    (tmp_path / "in.jsonl").write_text('{"text": "x", "error": 1}\n')
    assert "OUTPUT must be a folder that ends in .parquet" in refused(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert "There is no file or folder '-'" in refused("-", tmp_path / "out.parquet")
    assert "already has a column 'error'" in refused(tmp_path / "in.jsonl", tmp_path / "out.parquet")
    (tmp_path / "out.parquet").mkdir()
    assert "exists. Replace it with --force" in refused(tmp_path / "in.jsonl", tmp_path / "out.parquet")


@pytest.mark.parametrize("error", [ExecutionTimeoutError, ray.exceptions.RayError])
def test_a_job_that_fails_leaves_nothing_and_what_was_there(tmp_path, error):
    class Failing:
        def write_parquet(self, path, **more):
            (Path(path) / "part").mkdir(parents=True)
            raise error("no progress")

    output = tmp_path / "out.parquet"
    output.mkdir()
    (output / "precious").touch()
    with pytest.raises(ChildProcessError, match="The job failed, and nothing was written. no progress"):
        write_parquet(Failing(), output)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["out.parquet", "precious"]


@pytest.fixture(scope="module")
def two_workers():
    logging.getLogger("ray").setLevel(logging.WARNING)  # otherwise a failure is lost among Ray's notes on each block
    with distributed.cluster(2):
        yield


@pytest.mark.slow
def test_the_command_gives_what_a_single_process_gives(two_workers, tmp_path, model_folder):
    lines = [{"text": text, "id": -n} for n, text in enumerate(SENTENCES * 4)]
    lines.append({"text": "long " * 250_000, "id": 1})  # more than spaCy takes
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "good.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:-1]))
    model = ("--model", model_folder("bert"), "--batch-size", 3)
    run("score", tmp_path / "good.jsonl", tmp_path / "out.jsonl", *model)
    for _ in range(2):  # the second replaces the first
        options = ("--engine", "ray", "--workers", 2, "--force")
        run("score", tmp_path / "all.jsonl", tmp_path / "out.parquet", *model, *options)
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["id"] for row in rows] == sorted(line["id"] for line in lines)
    assert rows[-1]["error"].startswith("ValueError: [E088]") and rows[-1]["pll_word_l2r"] is None
    alone = {row["id"]: row for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())}
    for row in rows[:-1]:
        assert row["error"] is None and row["pll_word_l2r"] == pytest.approx(alone[row["id"]]["pll_word_l2r"], abs=1e-5)
        assert sum(row["token_pll_word_l2r"]) == pytest.approx(row["pll_word_l2r"], abs=1e-9)
        assert row["pll_pieces"] == alone[row["id"]]["pll_pieces"] and row["text"] == alone[row["id"]]["text"]
    manifest = json.loads((tmp_path / "out.parquet.manifest.json").read_text())
    assert manifest["engine"] == "ray" and manifest["input"]["texts"] == len(lines)
    assert sorted(path.name for path in tmp_path.glob("out.parquet*")) == ["out.parquet", "out.parquet.manifest.json"]


@pytest.mark.slow
def test_a_worker_is_killed_and_every_row_is_there_once(two_workers, tmp_path, make_nlp):
    nlp = make_nlp("bert")
    make, folder = serialize_pipeline(nlp), str(tmp_path)
    texts = [f"{text} {n}" for n, text in enumerate(SENTENCES * 20)]

    def make_slow_and_known():
        Path(folder, str(os.getpid())).touch()
        nlp = make()
        make_doc = nlp.make_doc
        nlp.make_doc = lambda text: time.sleep(0.05) or make_doc(text)  # both are at work when one is killed
        return nlp

    dataset = ray.data.from_items([{"id": n, "text": text} for n, text in enumerate(texts)])
    scored = distributed.annotate(dataset, make_slow_and_known, workers=2, batch_size=4)
    rows = []
    for batch in scored.iter_batches(batch_size=None, batch_format="pyarrow"):
        if not rows:
            os.kill(int(os.listdir(folder)[0]), signal.SIGKILL)
        rows += batch.to_pylist()
    assert len(os.listdir(folder)) == 3  # two, and the one that took the place of the one killed
    assert [row["id"] for row in rows] == list(range(len(texts)))
    assert [row["text"] for row in rows] == texts
    assert [row["pll_word_l2r"] for row in rows] == pytest.approx([doc._.pll for doc in nlp.pipe(texts)], abs=1e-5)
    assert not any(row["error"] for row in rows)


@pytest.mark.slow
def test_a_dataset_and_a_pipeline_in_python(two_workers, make_nlp, tmp_path):
    nlp = make_nlp("bert", attr="naturalness")
    items = [{"key": str(n), "sentence": text} for n, text in reversed(list(enumerate(SENTENCES)))]
    dataset = ray.data.from_items(items)
    with pytest.raises(ValueError, match="no column 'text'. Its columns are: 'key', 'sentence'"):
        distributed.annotate(dataset, nlp)
    names = {"column": "sentence", "id_column": "key"}
    rows = distributed.annotate(dataset, nlp, **names).take_all()
    assert [row["key"] for row in rows] == [str(n) for n in range(len(SENTENCES))]
    expected = [nlp(row["sentence"])._.naturalness for row in rows]
    assert [row["naturalness_word_l2r"] for row in rows] == pytest.approx(expected, abs=1e-5)

    def cannot():
        raise OSError("no such model")

    with pytest.raises(ChildProcessError, match="The job failed.*nothing was written"):
        write_parquet(distributed.annotate(dataset, cannot, **names), tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_a_worker_adds_what_the_model_expected(make_nlp):
    def make():
        return make_nlp("bert", alternatives=2, distribution=True)

    texts = ["The traveler lost it.", "", "x" * 3]
    out = Worker(make, "text")(table(texts))
    assert set(out.column_names) == {"text", *added_columns(make(), "text")} | set(table(texts).column_names)
    for row, doc in zip(out.to_pylist(), make().pipe(texts), strict=True):
        assert row["token_rank"] == [token._.pll_rank for token in doc]
        assert row["token_alternatives"] == [[text for text, _, _ in token._.pll_alternatives] for token in doc]
        assert [len(one) for one in row["token_alternative_log_probs"]] == [2] * len(doc)
        assert row["pll_top1"] == doc._.pll_top1
        assert sum(row["token_entropy"]) == pytest.approx(row["pll_entropy"] or 0)
