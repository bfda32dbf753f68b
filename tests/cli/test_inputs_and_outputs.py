"""What all commands do about the files that they read and write."""

import json
import os
import re
import resource

import pyarrow.parquet
import pytest

from ..columns import added
from .conftest import run

ROWS = {
    "score": {"text": "A word."},
    "render": {"text": "A word."},
    "ppl": {"text": "A word."},
    "agree": {"text": "A word."},
    "pairs": {"sentence_good": "A word.", "sentence_bad": "Word a."},
    "rescore": {"hypotheses": [{"text": "A word.", "score": -1.0}], "reference": "A word."},
}
OUTPUTS = {"score": "jsonl", "render": "html", "rescore": "jsonl"}


def arguments(command, source, output, *options):
    """A call that fails if it gets as far as to load the model."""
    model = ("none", "none") if command == "agree" else ()
    to = (output,) if command in ("score", "render") else ("-o", output)
    weight = ("--weight", "1") if command == "rescore" else ()
    more = () if command == "agree" else ("--model", "none")
    return [command, *model, source, *to, *weight, *more, *options]


@pytest.fixture
def source(tmp_path):
    def write(command):
        path = tmp_path / f"{command}.jsonl"
        path.write_text(json.dumps(ROWS[command]) + "\n")
        return path

    return write


@pytest.mark.parametrize("command", ROWS)
def test_no_input_is_overwritten(command, source, tmp_path):
    """By its name, by another spelling, in a folder that is read, through a link: not even with --force."""
    path = source(command)
    before = path.read_bytes()
    ending = OUTPUTS.get(command, "json")
    (tmp_path / f"link.{ending}").symlink_to(path)
    for name in (path, tmp_path / "." / "x" / ".." / path.name, tmp_path / f"link.{ending}"):
        result = run(*arguments(command, path, name, "--force"), fails=True)
        assert "is the input" in result.unwrapped_stderr
    if command != "rescore":  # reads no folders
        result = run(*arguments(command, tmp_path, tmp_path / "new" / f"out.{ending}"), fails=True)
        assert "or lies in it" in result.unwrapped_stderr
    assert path.read_bytes() == before and not (tmp_path / "new").exists()


def test_the_file_that_tunes_the_weight_is_an_input(source, tmp_path):
    path, dev = source("rescore"), tmp_path / "dev.jsonl"
    dev.write_bytes(path.read_bytes())
    result = run("rescore", path, "--dev", dev, "-o", dev, "--force", fails=True)
    assert "is the input" in result.unwrapped_stderr


def test_an_output_that_is_a_folder_is_found_before_scoring(source, tmp_path):
    (tmp_path / "out.jsonl").mkdir()
    result = run(*arguments("score", source("score"), tmp_path / "out.jsonl", "--force"), fails=True)
    assert "is a folder. Name a file" in result.unwrapped_stderr


def test_the_parts_of_a_run_that_was_interrupted_are_an_input(tmp_path):
    part = tmp_path / "out.jsonl.parts" / "000000000-000000001-abc-0s.jsonl"
    part.parent.mkdir()
    (part.parent / "manifest.json").write_text("{}")
    part.write_text(json.dumps(ROWS["score"]) + "\n")
    result = run(*arguments("score", part, tmp_path / "out.jsonl", "--force"), fails=True)
    assert "would be lost" in result.unwrapped_stderr and part.exists()


def strict(line):
    """JSON as the standard has it: without NaN and Infinity."""
    return json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize(
    "options",
    [
        (),
        (
            "--table",
            "tokens",
        ),
        ("-",),
    ],
)
def test_rows_are_strict_json(options, tmp_path, model_folder):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text('{"text": "A word.", "x": NaN, "y": [1e400, {"z": -Infinity}], "ok": 1.5}\n')
    if options == ("-",):
        lines = run("score", path, "-", "--model", model_folder("bert")).stdout
    else:
        run("score", path, out, "--model", model_folder("bert"), *options)
        lines = out.read_text()
    for row in map(strict, lines.splitlines()):
        assert (row["x"], row["y"], row["ok"]) == (None, [None, {"z": None}], 1.5)


def test_a_table_has_no_nan_either(tmp_path, model_folder):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.csv"
    path.write_text('{"text": "A word.", "x": NaN, "y": [1e400], "z": 1e400}\n')
    run("score", path, out, "--model", model_folder("bert"))
    assert out.read_text().splitlines()[1].startswith("A word.,,[null],,-")


def test_reranked_lists_are_strict_json(tmp_path, model_folder):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text('{"hypotheses": [{"text": "A word.", "score": -1, "x": NaN}], "y": Infinity}\n')
    run("rescore", path, "--weight", "1", "-o", out, "--model", model_folder("bert"))
    row = strict(out.read_text())
    assert row["y"] is row["hypotheses"][0]["x"] is None


def test_a_perplexity_that_no_float_holds_is_null(tmp_path, model_folder, monkeypatch):
    monkeypatch.setattr("spacy_pll.attributes.values.exp_or_inf", lambda x: float("inf"))
    (tmp_path / "in.txt").write_text("A word.\n")
    run("score", tmp_path / "in.txt", tmp_path / "out.jsonl", "--model", model_folder("bert"))
    assert strict((tmp_path / "out.jsonl").read_text())["pppl"] is None


@pytest.mark.parametrize(
    ("output", "row", "message"),
    [
        ("out.jsonl", {"x": "\ud800"}, "line 2: 'x' is '\\ud800', which cannot be written"),
        ("out.csv", {"\ud800": 1}, "line 2: '\\ud800' is 1, which cannot be written"),
        ("-", {"x": ["\ud800"]}, "line 2: 'x' is ['\\ud800'], which cannot be written"),
        ("out.spacy", {"x": 2**64}, "line 2: 'x' is 18446744073709551616, which cannot"),
        ("out.spacy", {"\ud800": 1}, "line 2: '\\ud800' is 1, which cannot be written"),
        ("out.parquet", {"x": {"\ud800": 1}}, "line 2: 'x' is {'\\ud800': 1}, which cannot be written"),
    ],
)
def test_what_cannot_be_written_is_found_before_scoring(output, row, message, tmp_path, model_folder, monkeypatch):
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "A word."}\n' + json.dumps({"text": "A word.", **row}) + "\n")
    monkeypatch.setattr(
        "spacy_pll.corpus.scored_texts.score_outcomes", lambda *arguments: pytest.fail("this is scored")
    )
    output = output if output == "-" else tmp_path / output
    assert message in run("score", path, output, "--model", model_folder("bert"), fails=True).unwrapped_stderr
    assert not (tmp_path / "out.jsonl.parts").exists()


def test_standard_input_is_checked_as_it_is_read(model_folder):
    lines = '{"text": "A word.", "x": "\\ud800"}\n'
    result = run("score", "-", "-", "--format", ".jsonl", "--model", model_folder("bert"), input=lines, fails=True)
    assert "standard input, line 1: 'x' is '\\ud800', which cannot be written" in result.unwrapped_stderr


@pytest.mark.parametrize("key", ["pll", "pieces", "rescored"])
def test_nothing_in_a_hypothesis_is_overwritten(key, tmp_path, model_folder):
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"hypotheses": [{"text": "A word.", "score": -1, key: 5}]}) + "\n")
    arguments = ("rescore", path, "--weight", "1", "--model", model_folder("bert"))
    result = run(*arguments, "-o", tmp_path / "out.jsonl", fails=True)
    assert f"line 1, hypothesis 1 already has a column {key!r}" in result.unwrapped_stderr
    run(*arguments)  # nothing is written


def test_a_table_without_rows_keeps_its_columns(tmp_path, model_folder):
    (tmp_path / "in.csv").write_text("id,text,n\n")
    for ending in ("csv", "parquet"):
        with pytest.warns(UserWarning, match="in.csv' has no text: nothing was scored"):
            run("score", tmp_path / "in.csv", tmp_path / f"out.{ending}", "--model", model_folder("bert"))
    expected = ["text", "id", "n", *added()]
    assert (tmp_path / "out.csv").read_text() == ",".join(expected) + "\n"
    assert pyarrow.parquet.read_schema(tmp_path / "out.parquet").names == expected


@pytest.mark.parametrize("command", ["score", "render", "words"])
@pytest.mark.parametrize(("name", "text"), [("in.csv", "text,word\n"), ("in.jsonl", ""), ("in.csv", "")])
def test_an_input_without_any_text_is_a_warning(tmp_path, model_folder, command, name, text):
    (tmp_path / name).write_text(text)
    output = tmp_path / ("out.html" if command == "render" else "out.csv")
    with pytest.warns(UserWarning, match=f"{name}' has no text: nothing was scored"):
        run(command, tmp_path / name, output, "--model", model_folder("bert"))
    assert output.exists()


def test_nothing_on_standard_input(model_folder):
    with pytest.warns(UserWarning, match="Standard input has no text: nothing was scored"):
        assert run("score", "-", "-", "--model", model_folder("bert"), input="").stdout == ""


def test_a_file_that_may_not_be_read(tmp_path, model_folder, monkeypatch):
    """Root may read any file."""
    (tmp_path / "in.txt").write_text("A word.")
    shown = []

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    for allowed in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr("spacy_pll.cli.render.check_records", refuse)
            patch.setattr("os.access", lambda _, mode, allowed=allowed: allowed or mode != os.R_OK)
            shown.append(run("render", tmp_path / "in.txt", tmp_path / "out.html", fails=True).unwrapped_stderr)
    assert "Permission denied" in shown[0]
    assert f"You may not read '{tmp_path / 'in.txt'}'" in shown[1]


@pytest.mark.parametrize(
    ("command", "name", "advice"),
    [
        ("score", "in.docx", r"the format '.docx' cannot be read. .* plain text \(UTF-8\), and give the .txt file."),
        ("words", "in.xlsx", "the format '.xlsx' cannot be read. .* CSV UTF-8"),
        ("words", "in.txt", r"the format '.txt' cannot be read. .* spacy-pll score \S+in.txt \S+out.csv --table words"),
    ],
)
def test_formats_that_cannot_be_read_say_what_to_do(tmp_path, command, name, advice):
    (tmp_path / name).write_text("A word.")
    assert re.search(advice, run(command, tmp_path / name, tmp_path / "out.csv", fails=True).unwrapped_stderr)


def test_a_full_disk_has_the_same_message_in_all_commands(tmp_path, model_folder):
    path = tmp_path / "in.txt"
    path.write_text("A word.\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        result = run("render", path, tmp_path / "out.html", "--model", model_folder("bert"), fails=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "out.html cannot be written: File too large" in result.unwrapped_stderr


def test_the_format_of_standard_input(tmp_path, model_folder):
    how = ("--model", model_folder("bert"))
    assert run("score", "-", "-", "--format", ".jsonl", *how, input='{"text": "A word.", "n": 1}').stdout.startswith(
        '{"text"'
    )
    result = run("score", "-", "-", "--format", "jsonl", code=2)
    assert "'jsonl' is not one of .txt, .jsonl" in result.unwrapped_stderr
    result = run("score", tmp_path, "-", "--format", ".jsonl", fails=True)
    assert "--format is for standard input" in result.unwrapped_stderr


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--n-process", "0", "It must be 1 or more, or -1 for one per core. It is 0"),
        ("--n-process", "-2", "It must be 1 or more, or -1 for one per core. It is -2"),
        ("--batch-size", str(2**63 - 1), f"It must be 1 or more, and at most 1000000. It is {2**63 - 1}"),
        ("--mask-margin", "-1", "'--mask-margin': It must be 0 or more. It is -1."),
        ("--gpu-id", "-5", "It must be -1 or more. It is -5."),
    ],
)
def test_numbers_that_do_not_serve(option, value, message, tmp_path):
    assert message in run("score", tmp_path, "-", option, value, code=2).unwrapped_stderr
