"""Parquet as the commands read and write it."""

import csv
import datetime
import json
import random
import re
import signal
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy
from spacy.tokens import DocBin

from spacy_pll.corpus.readers import FIELDS

from ..columns import added
from ..conftest import SENTENCES, write_jsonl
from .conftest import run, start

TEXTS = [*SENTENCES, "", "  "]


@pytest.fixture
def tiny(model_folder):
    return ("--model", model_folder("bert"))


@pytest.fixture
def corpus(tmp_path):
    """Texts with columns of types that JSON does not have."""
    n = len(TEXTS)
    table = pa.table(
        {
            "id": pa.array(range(n), pa.int16()),
            "text": pa.array(TEXTS, pa.large_string()),
            "kind": pa.array(["a", None, *"bab", "a", None]).dictionary_encode(),
            "when": pa.array([None, *range(1, n)], pa.timestamp("ns")),
            "bytes": pa.array([b"\xff"] * n),
            "more": [{"tags": ["x", "y"]}] * n,
        }
    )
    path = tmp_path / "in.parquet"
    pq.write_table(table, path, row_group_size=2)
    return path


def read_json(path):
    return [json.loads(line) for line in path.read_text(encoding="utf8").split("\n")[:-1]]


def test_times_that_python_does_not_know_are_kept(tiny, tmp_path):
    """The output was read whole for the quantiles of one column, when all was scored."""
    table = pa.table({"text": ["A word."] * 2, "until": pa.array([2**62, None], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "in.parquet")
    run("score", tmp_path / "in.parquet", tmp_path / "out.parquet", *tiny)
    assert pq.read_table(tmp_path / "out.parquet")["until"].equals(table["until"])


def test_rows_have_the_scores_of_the_pipeline_and_their_columns(corpus, tiny, tmp_path, make_nlp):
    run("score", corpus, tmp_path / "out.parquet", *tiny, "--metrics", "word_l2r,original", "--batch-size", 2)
    before, after = pq.read_table(corpus), pq.read_table(tmp_path / "out.parquet")
    scores = ["pll_word_l2r", "pll_original", "pll_pieces", "pppl"]
    assert after.schema.names == ["text", "id", "kind", "when", "bytes", "more", *added("word_l2r", "original")]
    for name in before.schema.names:
        assert after[name].combine_chunks().equals(before[name].combine_chunks())
    docs = list(make_nlp("bert", metrics=["word_l2r", "original"]).pipe(TEXTS))
    for name in scores:
        for value, doc in zip(after[name].to_pylist(), docs, strict=True):
            own = doc._.get(name) if doc._.pll_pieces or name == "pll_pieces" else None
            assert value == (None if own is None else pytest.approx(own, rel=1e-4))
    assert not (tmp_path / "out.parquet.parts").exists()
    manifest = json.loads((tmp_path / "out.parquet.manifest.json").read_text())
    assert manifest["input"]["fields"] == ["id", "kind", "when", "bytes", "more"]


def test_parquet_to_formats_without_its_types(corpus, tiny, tmp_path):
    for name in ("out.jsonl", "out.csv", "out.spacy"):
        run("score", corpus, tmp_path / name, *tiny)
    own = {
        "id": 1,
        "kind": None,
        "when": "1970-01-01T00:00:00.000000001",
        "bytes": "/w==",
        "more": {"tags": ["x", "y"]},
    }
    rows = read_json(tmp_path / "out.jsonl")
    assert [row["text"] for row in rows] == TEXTS and rows[1].items() >= own.items()
    with (tmp_path / "out.csv").open(encoding="utf8", newline="") as file:
        assert (
            list(csv.DictReader(file))[1].items()
            >= {**own, "id": "1", "kind": "", "more": '{"tags": ["x", "y"]}'}.items()
        )
    docs = list(DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab))
    assert docs[1].user_data[FIELDS] == {**own, "more": {"tags": ("x", "y")}}
    # and back, now with JSON's types
    run("score", tmp_path / "out.spacy", tmp_path / "again.parquet", *tiny)
    again = pq.read_table(tmp_path / "again.parquet")
    assert (
        list(map(json.loads, again["more"].to_pylist())) == [own["more"]] * len(TEXTS)
        and again["when"].type == pa.string()
    )
    assert again["pll_word_l2r"].to_pylist() == [row["pll_word_l2r"] for row in rows]


def test_categories_and_texts_that_failed_in_a_parquet_file(tiny, tmp_path):
    words = pa.array(["A cat.", "A dog.", "A cat."]).dictionary_encode()
    pq.write_table(pa.table({"text": words, "kind": words}), tmp_path / "a.parquet")
    run("score", tmp_path / "a.parquet", tmp_path / "o.parquet", "--table", "tokens", *tiny)
    table = pq.read_table(tmp_path / "o.parquet")
    assert table["text"].to_pylist()[:3] == ["A", "cat", "."] and table["kind"].type == words.type
    (tmp_path / "a.jsonl").write_text('{"text": "A cat."}\n{"text": 3}\n{"text": null}\n{"text": ["a"]}\n')
    with pytest.warns(UserWarning, match="3 of 4 texts could not be scored"):
        run("score", tmp_path / "a.jsonl", tmp_path / "p.parquet", "--skip-errors", *tiny)
    assert pq.read_table(tmp_path / "p.parquet")["text"].to_pylist() == ["A cat.", "3", None, '["a"]']


def test_other_formats_to_parquet(tiny, tmp_path):
    rows = [
        {"text": "A cat.", "n": 1, "x": 1, "ok": True, "tags": ["a"], "meta": {"a": 1}},
        {"text": "A dog.", "n": None, "x": 2.5, "meta": {"b": "c"}},
    ]
    write_jsonl(tmp_path / "in.jsonl", *rows)
    run("score", tmp_path / "in.jsonl", tmp_path / "out.parquet", *tiny, "--batch-size", 1)
    table = pq.read_table(tmp_path / "out.parquet")
    assert [str(table.schema.field(name).type) for name in ("text", "n", "x", "ok")] == [
        "string",
        "int64",
        "double",
        "bool",
    ]
    first, second = table.to_pylist()
    assert first["meta"] == '{"a": 1}' and first["tags"] == '["a"]'
    assert (second["n"], second["ok"], second["meta"]) == (None, None, '{"b": "c"}')
    (tmp_path / "in.csv").write_text("text,n\nA cat.,1\n")
    run("score", tmp_path / "in.csv", tmp_path / "table.parquet", *tiny)
    assert pq.read_table(tmp_path / "table.parquet")["n"].to_pylist() == ["1"]


def test_a_row_per_token(corpus, tiny, tmp_path):
    run("score", corpus, tmp_path / "tokens.parquet", *tiny, "--table", "tokens")
    run("score", corpus, tmp_path / "tokens.jsonl", *tiny, "--table", "tokens")
    table, rows = pq.read_table(tmp_path / "tokens.parquet"), read_json(tmp_path / "tokens.jsonl")
    for name in ("doc", "token", "text", "id", "pll_word_l2r", "surprisal", "pieces"):
        assert table[name].to_pylist() == [row[name] for row in rows]
    assert table.schema.field("id").type == pa.int16() and table.schema.field("when").type == pa.timestamp("ns")
    assert table.schema.field("pieces").type == pa.list_(pa.string())


def test_a_folder_of_several_formats(tiny, tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    pq.write_table(
        pa.table({"text": ["One."], "n": pa.array([1], pa.int8()), "t": pa.array([5], pa.timestamp("ns"))}),
        folder / "a.parquet",
    )
    pq.write_table(pa.table({"text": ["Two."], "n": pa.array([300], pa.int32())}), folder / "b.parquet")
    (folder / "c.jsonl").write_text('{"text": "Three.", "n": 5000000000}\n')
    (folder / "d.txt").write_text("Four.\n")
    run("score", folder, tmp_path / "out.parquet", *tiny)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.names == ["text", "file", "n", "t", *added()]
    assert table["file"].to_pylist() == ["a.parquet", "b.parquet", "c.jsonl", "d.txt"]
    assert table["n"].type == pa.int64() and table["n"].to_pylist() == [1, 300, 5_000_000_000, None]
    assert table["t"].type == pa.timestamp("ns") and table["t"].null_count == 3
    run("score", folder, tmp_path / "out.jsonl", *tiny)
    assert [row["pll_word_l2r"] for row in read_json(tmp_path / "out.jsonl")] == table["pll_word_l2r"].to_pylist()
    (folder / "c.jsonl").write_text('{"text": "Three.", "n": "many"}\n')
    error = run("score", folder, tmp_path / "none.parquet", *tiny, fails=True).unwrapped_stderr
    assert "'n' has values of two types, int32" in error
    assert f"b.parquet) and string ({folder / 'c.jsonl'}, line 1)" in "".join(error.split("\n"))
    assert not list(tmp_path.glob("none*"))


def test_no_text_at_all(tiny, tmp_path):
    schema = pa.schema({"text": pa.string(), "n": pa.int8()})
    pq.write_table(schema.empty_table(), tmp_path / "in.parquet")
    with pytest.warns(UserWarning, match="has no text: nothing was scored"):
        run("score", tmp_path / "in.parquet", tmp_path / "out.parquet", *tiny)
    assert pq.read_schema(tmp_path / "out.parquet").names == ["text", "n", *added()]
    (tmp_path / "in.jsonl").touch()
    with pytest.warns(UserWarning, match="has no text: nothing was scored"):
        run("score", tmp_path / "in.jsonl", tmp_path / "two.parquet", *tiny)
    assert pq.read_table(tmp_path / "two.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["x", None]}, "row 2: 'text' must be text. It is None"),
        ({"text": [1]}, "in.parquet: 'text' must hold text. It holds int64"),
        ({"line": ["x"]}, "in.parquet: there is no column 'text'. The columns are: 'line'"),
        ({"text": ["x"], "pll_word_l2r": [1]}, "already has a column 'pll_word_l2r', which the scores would overwrite"),
    ],
)
@pytest.mark.parametrize("output", ["out.parquet", "out.jsonl"])
def test_input_that_cannot_be_scored_is_a_message(tiny, tmp_path, columns, message, output):
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    error = run("score", tmp_path / "in.parquet", tmp_path / output, *tiny, fails=True).unwrapped_stderr
    assert message in error and not list(tmp_path.glob("out*"))


def test_a_column_that_would_be_overwritten_is_found_without_any_row(tiny, tmp_path):
    pq.write_table(pa.schema({"text": pa.string(), "pll_word_l2r": pa.int8()}).empty_table(), tmp_path / "in.parquet")
    error = run("score", tmp_path / "in.parquet", tmp_path / "out.parquet", *tiny, fails=True).unwrapped_stderr
    assert "already has a column 'pll_word_l2r'" in error
    pq.write_table(pa.table({"pll_word_l2r": ["A cat."]}), tmp_path / "in.parquet")
    error = run(
        "score", tmp_path / "in.parquet", tmp_path / "out.parquet", *tiny, "--column", "pll_word_l2r", fails=True
    )
    assert "already has a column 'pll_word_l2r'" in error.unwrapped_stderr


def test_standard_input(corpus, tiny, tmp_path):
    data = corpus.read_bytes()
    run("score", corpus, tmp_path / "out.jsonl", *tiny)
    lines = run("score", "-", "-", *tiny, "--format", ".parquet", input=data).stdout
    assert lines == (tmp_path / "out.jsonl").read_text()
    run("score", "-", tmp_path / "out.parquet", *tiny, "--format", ".parquet", input=data)
    assert pq.read_table(tmp_path / "out.parquet").schema.field("id").type == pa.int16()


def test_two_processes_give_the_same(corpus, tiny, tmp_path):
    """A nanosecond would be lost on the way to a worker process and back."""
    for name, n in (("one", 1), ("two", 2)):
        run("score", corpus, tmp_path / f"{name}.parquet", *tiny, "--batch-size", 2, "--n-process", n)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    assert pq.read_table(tmp_path / "two.parquet")["when"].equals(pq.read_table(corpus)["when"])


def test_pairs_perplexity_and_pages(tiny, tmp_path):
    rows = [{"good": text, "bad": f"{text[-2::-1]}.", "topic": "a"} for text in SENTENCES]
    write_jsonl(tmp_path / "pairs.jsonl", *rows)
    pq.write_table(
        pa.Table.from_pylist(rows).append_column("when", pa.array([datetime.date(2020, 1, 1)] * len(rows))),
        tmp_path / "pairs.parquet",
    )
    columns = ("--good", "good", "--bad", "bad", "--by", "topic")
    pairs = [run("pairs", tmp_path / f"pairs{ending}", *tiny, *columns).stdout for ending in (".jsonl", ".parquet")]
    assert pairs[0] == pairs[1]
    ppl = [
        run("ppl", tmp_path / f"pairs{ending}", *tiny, "--column", "good").stdout for ending in (".jsonl", ".parquet")
    ]
    assert ppl[0] == ppl[1] and f"texts {len(rows)}" in " ".join(ppl[0].split())
    run("render", tmp_path / "pairs.parquet", tmp_path / "page.html", *tiny, "--column", "bad")
    assert (tmp_path / "page.html").read_text(encoding="utf8").count("<article") == len(rows)


def test_without_pyarrow_the_error_says_what_to_install(corpus, tiny, tmp_path, monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] == "pyarrow" or name.startswith("spacy_pll.corpus.parquet"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delattr("spacy_pll.corpus.parquet", raising=False)
    texts = tmp_path / "in.txt"
    texts.write_text("A cat.\n")
    for arguments in [
        ("score", corpus, tmp_path / "out.jsonl"),
        ("score", texts, tmp_path / "out.parquet"),
        ("ppl", corpus),
        ("pairs", corpus, "--good", "text", "--bad", "other"),
        ("render", corpus, tmp_path / "page.html"),
    ]:
        error = run(*arguments, *tiny, fails=True).unwrapped_stderr
        assert re.search(r"need pyarrow.*pip install .*\[parquet\]", error)
    run("score", texts, tmp_path / "texts.jsonl", *tiny)  # what has nothing to do with Parquet works
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == ["texts.jsonl"]


@pytest.mark.slow
def test_killed_twice_and_resumed_it_gives_the_same_bytes(tiny, tmp_path, parts_of):
    parts_of(64)
    rng = random.Random(0)
    words = " ".join(SENTENCES).split()
    texts = [" ".join(rng.sample(words, 6)) for _ in range(500)]
    pq.write_table(pa.table({"text": texts, "n": pa.array(range(500), pa.int16())}), tmp_path / "in.parquet")
    options = (*tiny, "--batch-size", 16)
    whole, output, parts = (tmp_path / name for name in ("whole.parquet", "out.parquet", "out.parquet.parts"))
    run("score", tmp_path / "in.parquet", whole, *options)
    for at_least in sorted(rng.sample(range(7), 2)):  # of 8 parts
        process = start("score", tmp_path / "in.parquet", output, *options, "--resume")
        while not parts.exists() or len(list(parts.glob("0*.parquet"))) < at_least:
            assert process.is_alive()
            time.sleep(0.01)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert not output.exists()
    run("score", tmp_path / "in.parquet", output, *options, "--resume")
    assert output.read_bytes() == whole.read_bytes()
    table = pq.read_table(output)
    assert table["text"].to_pylist() == texts and table["n"].to_pylist() == list(range(500))


@pytest.mark.slow
def test_hugging_faces_datasets_read_what_is_written(tiny, tmp_path):
    datasets = pytest.importorskip("datasets", reason="pip install datasets")
    rows = [{"text": text, "label": 1, "grid": [[1.0, 2.0]], "tags": ["x"]} for text in SENTENCES]
    features = datasets.Features(
        text=datasets.Value("string"),
        label=datasets.ClassLabel(names=["bad", "good"]),
        grid=datasets.Array2D((1, 2), "float32"),
        tags=datasets.Sequence(datasets.Value("string")),
    )
    datasets.Dataset.from_list(rows, features=features).to_parquet(tmp_path / "in.parquet")
    for options in (
        (),
        (
            "--table",
            "tokens",
        ),
    ):
        run("score", tmp_path / "in.parquet", tmp_path / "out.parquet", *tiny, *options, "--force")
        load = {"split": "train", "cache_dir": str(tmp_path / "cache")}
        scored = datasets.load_dataset("parquet", data_files=str(tmp_path / "out.parquet"), **load)
        assert scored.to_list() == pq.read_table(tmp_path / "out.parquet").to_pylist()
        assert scored[0]["grid"] == rows[0]["grid"] and scored.features["pll_word_l2r"] == datasets.Value("float64")


def test_columns_of_what_the_model_expected(model_folder, tmp_path):
    (tmp_path / "in.txt").write_text("The traveler lost it.\n \n", encoding="utf8")
    options = ("--model", model_folder("bert"), "--table", "tokens", "--distribution", "--alternatives", 2)
    for name in ("out.parquet", "out.jsonl"):
        run("score", tmp_path / "in.txt", tmp_path / name, *options)
    table = pq.read_table(tmp_path / "out.parquet")
    types = {"rank": pa.int64(), "entropy": pa.float64(), "alternatives": pa.list_(pa.string())}
    types["alternative_log_probs"] = pa.list_(pa.float64())
    assert {name: table.schema.field(name).type for name in types} == types
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf8").splitlines()
    assert table.to_pylist() == [json.loads(line) for line in lines]
