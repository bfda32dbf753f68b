import json
import multiprocessing
import os
import socket
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_pll import WordTable
from spacy_pll.corpus import runs, scored_texts
from spacy_pll.corpus.columns import InputColumns
from spacy_pll.corpus.distribution import Distribution
from spacy_pll.corpus.inputs import Input, checked_records, read_all, with_faults
from spacy_pll.corpus.records import Record
from spacy_pll.errors import InputError, ResumeError
from spacy_pll.pipelines import PACKAGES, PipelineSettings, describe_model
from spacy_pll.span_getters import TEXT_SPAN

from ..conftest import SENTENCES
from .reading import write_table
from .running import make_run


class Stopped(Exception):
    pass


@pytest.fixture
def watched_by(monkeypatch):
    """watched_by(function): the scored docs of runs pass it, with their number and that of the texts done before."""

    def use(function):
        monkeypatch.setattr(
            scored_texts, "with_progress", lambda scored, total, done, show: function(scored, total or 0, done)
        )

    return use


@pytest.fixture
def settings(model_folder):
    return PipelineSettings(model=str(model_folder("bert")))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{sentence} {i}\n" for i, sentence in enumerate(SENTENCES * 4)))
    return str(path)


@pytest.mark.parametrize(
    ("ending", "table"),
    [
        (".jsonl", "texts"),
        (".csv", "tokens"),
        (".spacy", "texts"),
        (".parquet", "texts"),
        (".parquet", "tokens"),
        (".csv", "words"),
        (".parquet", "words"),
    ],
)
def test_an_interrupted_run_resumes_and_scores_nothing_twice(
    settings, source, tmp_path, parts_of, watched_by, ending, table
):
    parts_of(8)
    n_texts = len(SENTENCES) * 4
    output, scored, calls = tmp_path / f"out{ending}", [], []

    def watch(texts, total, done):
        calls.append((total, done))
        for number, text in enumerate(texts, done):
            if number == stop_at:
                raise Stopped
            scored.append(number)
            yield text

    words = WordTable(lags=1, log_frequency=False)
    run = make_run(source, settings, 2, table=table, words=words)
    watched_by(watch)
    stop_at = None
    runs.score_to_file(run, str(tmp_path / f"whole{ending}"))
    assert scored == list(range(n_texts))
    scored.clear()
    stop_at = 19  # in the middle of the last part
    with pytest.raises(Stopped):
        runs.score_to_file(run, str(output))
    assert not output.exists()
    assert part_ends(tmp_path / f"out{ending}.parts", ending) == [(0, 2), (2, 4), (4, 8), (8, 16)]
    stop_at = None
    runs.score_to_file(run, str(output), resume=True)
    assert scored == [*range(19), *range(16, n_texts)]
    assert calls == [(n_texts, 0), (n_texts, 0), (n_texts, 16)]
    assert output.read_bytes() == (tmp_path / f"whole{ending}").read_bytes()
    runs.score_to_file(run, str(output), resume=True)  # it is complete, so nothing happens
    assert len(calls) == 3


def part_ends(folder, ending):
    """Of each part, the numbers of its first text and of the one behind its last."""
    return [tuple(map(int, path.name.split("-")[:2])) for path in sorted(folder.glob(f"0*{ending}"))]


CHANGES = {
    "appended": lambda lines: [*lines, "One more.\n"],
    "cut": lambda lines: lines[:-1],
    "reordered": lambda lines: [*lines[:-2], lines[-1], lines[-2]],
    "changed": lambda lines: [*lines[:-1], "Another.\n"],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "change, ending", [*((change, ".txt") for change in CHANGES), ("changed", ".csv"), ("reordered", ".spacy")]
)
def test_an_input_that_changes_while_it_is_scored_is_noticed(
    settings, source, tmp_path, parts_of, watched_by, change, ending
):
    """And what was scored of it is not used, even if it is changed back."""
    parts_of(2)
    lines = Path(source).read_text().splitlines(keepends=True)
    path, output = tmp_path / f"in{ending}", tmp_path / "out.jsonl"

    def write(lines):
        if ending == ".spacy":
            nlp = spacy.blank("en")
            DocBin(docs=[nlp(line.strip()) for line in lines]).to_disk(path)
        elif ending == ".csv":
            path.write_text("".join(["text\n", *(f'"{line.strip()}"\n' for line in lines)]))
        else:
            path.write_text("".join(lines))

    def changing(scored, total, done):
        write(CHANGES[change](lines))
        yield from scored

    lines = [line.replace('"', "'") for line in lines]
    write(lines)
    before = path.read_bytes()
    run = make_run(path, settings, 2)
    runs.score_to_file(run, str(tmp_path / "whole.jsonl"))
    watched_by(changing)
    with pytest.raises(InputError, match="has changed while it was scored: .* Change it back, or") as raised:
        runs.score_to_file(run, str(output))
    watched_by(lambda scored, total, done: scored)
    assert "are kept in" in raised.value.__notes__[0] and not output.exists()
    with pytest.raises(ResumeError, match="texts of the input or their columns"):
        runs.score_to_file(run, str(output), resume=True)
    path.write_bytes(before)
    runs.score_to_file(run, str(output), resume=True)
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_folder_of_parts_that_another_version_wrote_is_refused_with_a_message(settings, source, tmp_path, watched_by):
    def stop(texts, total, done):
        raise Stopped

    run = make_run(source, settings)
    watched_by(stop)
    with pytest.raises(Stopped):
        runs.score_to_file(run, str(tmp_path / "out.jsonl"))
    path = tmp_path / "out.jsonl.parts" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "versions": {**manifest["versions"], "spacy-pll": "0.0.9"}}))
    with pytest.raises(
        ResumeError, match="versions.spacy-pll: it was '0.0.9', and is now .* start again with `force=True`"
    ):
        runs.score_to_file(run, str(tmp_path / "out.jsonl"), resume=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "ends", "ending"),
    [
        ({}, [(0, 2), (2, 4), (4, 8), (8, 16), (16, 20)], ".jsonl"),
        ({"TEXTS_PER_PART": 3}, [(0, 2), (2, 4), (4, 8), (8, 12), (12, 16), (16, 20)], ".csv"),
        ({"PIECES_PER_PART": 1}, [(n, n + 2) for n in range(0, 20, 2)], ".spacy"),
        ({"SECONDS_PER_PART": 0}, [(n, n + 2) for n in range(0, 20, 2)], ".parquet"),
    ],
)
def test_parts_grow_and_end_with_a_batch_after_so_many_texts_or_pieces_or_seconds(
    settings, source, tmp_path, monkeypatch, limits, ends, ending
):
    runs.score_to_file(make_run(source, settings, 2), str(tmp_path / f"whole{ending}"))
    for name, value in limits.items():
        monkeypatch.setattr(runs, name, value)
    merge, found = runs.ResumableOutput.merge, []

    def noting(parts, join):
        found.extend(part_ends(parts.folder, ending))
        merge(parts, join)

    monkeypatch.setattr(runs.ResumableOutput, "merge", noting)
    runs.score_to_file(make_run(source, settings, 2), str(tmp_path / f"out{ending}"))
    assert found == ends
    assert (tmp_path / f"out{ending}").read_bytes() == (tmp_path / f"whole{ending}").read_bytes()


def test_a_run_that_is_stopped_early_keeps_its_first_batch(settings, source, tmp_path, watched_by):
    def stop(texts, total, done):
        yield from islice(texts, 3)
        raise KeyboardInterrupt

    watched_by(stop)
    with pytest.raises(KeyboardInterrupt) as raised:
        runs.score_to_file(make_run(source, settings, 2), str(tmp_path / "out.jsonl"))
    assert "The scores of 2 of 20 texts are kept" in raised.value.__notes__[0]


@pytest.mark.slow
@pytest.mark.parametrize("error", [Stopped, KeyboardInterrupt, ChildProcessError])
def test_a_run_that_stops_ends_its_workers_and_says_what_is_kept(
    settings, source, tmp_path, parts_of, watched_by, error
):
    parts_of(8)

    def fail(texts, total, done):
        yield from islice(texts, 9)
        raise error("it")

    run = make_run(source, settings, 2, n_process=2)
    watched_by(fail)
    with pytest.raises(error) as raised:  # it is kept, and so is all that its frames refer to
        runs.score_to_file(run, str(tmp_path / "out.jsonl"))
    assert not multiprocessing.active_children()
    note = f"The scores of 8 of 20 texts are kept in {tmp_path / 'out.jsonl.parts'}. Go on with `resume=True`."
    assert raised.value.__notes__ == [note] and str(raised.value) == "it"
    watched_by(lambda scored, total, done: scored)
    runs.score_to_file(run, str(tmp_path / "out.jsonl"), resume=True)
    runs.score_to_file(make_run(source, settings, 2), str(tmp_path / "whole.jsonl"))
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


OTHER = """
import json, sys
from typer.testing import CliRunner
from spacy_pll.cli import app
for options in (["--resume"], ["--force"], []):
    result = CliRunner().invoke(app, ["score", *sys.argv[1:], *options])
    print(json.dumps([result.exit_code, " ".join(result.stderr.split())]))
"""


@pytest.mark.slow
def test_two_processes_do_not_write_one_output(settings, source, tmp_path, watched_by):
    output, answers = tmp_path / "out.jsonl", []

    def meanwhile(texts, total, done):
        command = [sys.executable, "-c", OTHER, source, output, "--model", settings.model]
        second = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
        answers.extend(map(json.loads, second.stdout.splitlines()))
        return texts

    watched_by(meanwhile)
    runs.score_to_file(make_run(source, settings), str(output))
    assert len(answers) == 3
    for code, error in answers:
        assert code == 1 and f"Another run (process {os.getpid()} on {socket.gethostname()}, since 2" in error
        assert f") is writing {output}. Wait until" in error
    assert len(output.read_text().splitlines()) == len(SENTENCES) * 4
    assert not (tmp_path / "out.jsonl.parts").exists()


def test_a_stream_gives_the_lines_of_the_file(settings, source, tmp_path, watched_by):
    calls = []

    def watch(texts, total, done):
        calls.append((total, done))
        return texts

    run = make_run(source, settings, 3)
    watched_by(watch)
    runs.score_to_file(run, str(tmp_path / "out.jsonl"))
    assert b"".join(runs.score_to_stream(run)) == (tmp_path / "out.jsonl").read_bytes()
    assert calls == [(len(SENTENCES) * 4, 0)] * 2


def test_rows_that_do_not_fit_the_output_are_refused_before_anything_is_loaded(tmp_path):
    run = make_run("none.txt", PipelineSettings(model="no-such/model"), table="tokens")
    with pytest.raises(InputError, match="Write the table of texts to it"):
        runs.score_to_file(run, str(tmp_path / "out.spacy"))


def test_the_summary_of_the_input(tmp_path, make_nlp):
    (tmp_path / "b.jsonl").write_text('{"line": "x", "n": 1}\n{"line": "y", "m": 2}\n')
    (tmp_path / "a.csv").write_text("line,n\nz,1\n")
    run, nlp = make_run(tmp_path, column="line"), make_nlp("bert")
    columns = InputColumns("line")
    fingerprints = read_all(checked_records(run.input, nlp, run.make_rows(nlp), columns, False, False), ends=[2])
    assert [*columns.types()] == ["line", "file", "n", "m"]
    first, second, third = (record.fingerprint for record in run.input.records(nlp.vocab))
    assert fingerprints == {0: "", 2: second, 3: third} and max(fingerprints) == 3
    (tmp_path / "a.csv").write_text("line,n\nz,2\n")
    assert not {first, second, third} & {record.fingerprint for record in run.input.records(nlp.vocab)}


def test_the_manifest_has_what_scores_depend_on(make_nlp, model_folder):
    folder = str(model_folder("bert"))
    run = make_run("in.txt", PipelineSettings(folder), 8, words=WordTable(lags=2))
    manifest = runs.make_manifest(run, make_nlp("bert"), 1, "abc", ["n"])
    assert manifest["input"] == {"texts": 1, "fields": ["n"], "digest": "abc"}
    assert manifest["run"]["batch_size"] == 8 and manifest["run"]["words"]["lags"] == 2
    assert {"path", "n_process", "show_progress"}.isdisjoint(json.loads(json.dumps(manifest["run"])))
    assert manifest["weights"] == describe_model(folder) and list(manifest["versions"]) == PACKAGES
    assert manifest["pipeline"]["pll"]["metrics"] == ["word_l2r"]


def test_a_run_is_not_resumed_with_another_tokenizer_of_spacy(settings, source, tmp_path):
    output = str(tmp_path / "out.jsonl")
    runs.score_to_file(make_run(source, settings), output)
    with pytest.raises(ResumeError, match="lang: it was 'en', and is now 'de'"):
        runs.score_to_file(make_run(source, replace(settings, lang="de")), output, resume=True)


def test_a_run_of_a_version_with_other_columns_is_not_resumed(settings, source, tmp_path):
    run, output = make_run(source, settings), tmp_path / "out.jsonl"
    runs.score_to_file(run, str(output))
    path = output.with_name(f"{output.name}.manifest.json")
    manifest = json.loads(path.read_text())
    assert manifest.pop("score_columns") == ["pll_word_l2r"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(
        ResumeError, match=r"score_columns: it was None, and is now \['pll_word_l2r'\].*with `force=True`"
    ):
        runs.score_to_file(run, str(output), resume=True)


def test_the_manifest_where_spacy_transformers_is_not_installed(make_nlp, monkeypatch):
    monkeypatch.setattr("spacy_pll.pipelines.PACKAGES", ["torch", "no-such-package"])
    manifest = runs.make_manifest(make_run("in.txt"), make_nlp("bert"), 1, "abc", ["n"])
    assert manifest["versions"] == {"torch": version("torch"), "no-such-package": None}


def test_a_context_that_is_missing_is_none_and_white_space_is_one(tmp_path):
    """In all formats. Neither a text nor a context loses white space."""
    cells, texts = ["He ran. ", " ", "\n", "", "NA", " NA ", None, float("nan")], [" A cat. ", "A dog."]
    expected = [*("He ran. ", " ", "\n", "", "", "", "", "")]
    rows = [{"text": texts[n % 2], "before": cell} for n, cell in enumerate(cells)]
    write_table(tmp_path / "a.csv", rows)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_table(
        tmp_path / "a.parquet",
        [{**row, "before": None if row["before"] != row["before"] else row["before"]} for row in rows],
    )
    for ending in (".csv", ".jsonl", ".parquet"):
        source = Input(str(tmp_path / f"a{ending}"), context_column="before", separator="")
        read = list(source.records(spacy.blank("en").vocab))
        assert [record.text for record in read] == [row["text"] for row in rows]
        wanted = expected if ending == ".csv" else [*expected[:4], "NA", " NA ", "", ""]
        assert [record.sides[0] for record in read] == wanted


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("skip_errors", [False, True])
@pytest.mark.parametrize("sides", [None, ("", ""), ("A dog. ", "")])
def test_a_stream_waits_for_no_more_texts_than_a_batch_has(make_nlp, batch_size, skip_errors, sides):
    taken = []

    def records():
        for number in range(30):
            taken.append(number)
            yield Record(f"line {number}", "The cats sleep.", {}, sides)

    nlp = make_nlp("bert", targets=TEXT_SPAN) if sides else make_nlp("bert")
    scoring = scored_texts.Scoring(batch_size=batch_size, skip_errors=skip_errors)
    with closing(scoring.score(nlp, records())) as scored:
        next(scored)
    assert len(taken) == batch_size
    taken.clear()
    first = next(with_faults(nlp, records(), True, batch_size))
    assert first[1] is None and len(taken) == (batch_size if sides and any(sides) else 1)


def test_the_text_of_a_row_is_as_it_was_read(make_nlp):
    """Also with a tokenizer whose docs have other white space."""
    nlp = make_nlp("bert")
    nlp.tokenizer = lambda text: Doc(nlp.vocab, text.split())
    records = [Record("line 1", "The  cats sleep.", {}), Record("line 2", nlp.make_doc("The  cats sleep."), {})]
    texts = list(scored_texts.Scoring().score(nlp, records))
    assert [text.text for text in texts] == ["The  cats sleep.", "The cats sleep. "]
    assert texts[0].sums == texts[1].sums


@pytest.mark.filterwarnings("ignore:.*texts could not be scored")
def test_what_none_of_all_texts_has_is_known_also_of_earlier_runs(settings, tmp_path, monkeypatch, parts_of):
    parts_of(1)
    score = scored_texts.Scoring.score

    def stops(*args):
        yield from islice(score(*args), 2)
        raise Stopped

    for first in ("It ran.", None):
        (tmp_path / "in.jsonl").write_text(json.dumps({"text": first}) + '\n{"text": 3}\n' * 2)
        run = make_run(tmp_path / "in.jsonl", settings, 1, skip_errors=True)
        with monkeypatch.context() as patch:
            patch.setattr(scored_texts.Scoring, "score", stops)
            with pytest.raises(Stopped):
                runs.score_to_file(run, str(tmp_path / "out.jsonl"), force=True)
        found = Distribution()
        _, earlier, _ = runs.score_to_file(run, str(tmp_path / "out.jsonl"), resume=True, distribution=found)
        assert earlier and found.are_errors == (first is None)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet", ".spacy"])
@pytest.mark.parametrize("new", ['{"text": "A.", "b": 1}', '{"text": "A.", "a": 1, "b": 2}', '{"text": "B."}', ""])
def test_an_input_that_changes_is_named(settings, tmp_path, monkeypatch, ending, new):
    path, read = tmp_path / "in.jsonl", runs.read_all
    path.write_text('{"text": "A.", "a": 1}\n')

    def changes(records, ends=()):
        found = read(records, ends)
        path.write_text(new and new + "\n")
        return found

    monkeypatch.setattr(runs, "read_all", changes)
    with pytest.raises(
        InputError, match="The input .*in.jsonl' has changed while it was scored: .*`force=True`"
    ) as error:
        runs.score_to_file(make_run(path, settings), str(tmp_path / f"out{ending}"))
    assert ("has a column 'b'" in str(error.value)) == ('"b"' in new)
