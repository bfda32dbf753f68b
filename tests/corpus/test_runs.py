import json
import os
import subprocess
import sys
import threading
from importlib.metadata import version

import pytest

from spacy_pll.corpus.formats import JsonLines
from spacy_pll.corpus.readers import InputError
from spacy_pll.corpus.resumable import ResumeError
from spacy_pll.corpus.runs import PACKAGES, Run, make_manifest, score_to_file, score_to_stream, summarize_input
from spacy_pll.language_model.checksums import files_digest
from spacy_pll.pipelines import PipelineSettings, describe_model

from ..conftest import SENTENCES


class Stopped(Exception):
    pass


@pytest.fixture
def settings(model_folder):
    return PipelineSettings(model=str(model_folder("bert")))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{sentence} {i}\n" for i, sentence in enumerate(SENTENCES * 4)))
    return str(path)


@pytest.mark.parametrize(
    ("ending", "rows"),
    [
        (".jsonl", "texts"),
        (".csv", "tokens"),
        (".spacy", "texts"),
        (".jsonl", "prodigy"),
        (".parquet", "texts"),
        (".parquet", "tokens"),
    ],
)
def test_an_interrupted_run_resumes_and_scores_nothing_twice(settings, source, tmp_path, ending, rows):
    n_texts = len(SENTENCES) * 4
    output, scored, calls = tmp_path / f"out{ending}", [], []

    def watch(texts, total, done):
        calls.append((total, done))
        for text in texts:
            if text.number == stop_at:
                raise Stopped
            scored.append(text.number)
            yield text

    run = Run(source, settings, rows, batch_size=2, progress=watch)
    stop_at = None
    score_to_file(run, str(tmp_path / f"whole{ending}"))
    assert scored == list(range(n_texts))
    scored.clear()
    stop_at = 19  # in the middle of the third part
    with pytest.raises(Stopped):
        score_to_file(run, str(output))
    assert not output.exists()
    parts = sorted(path.name for path in (tmp_path / f"out{ending}.parts").iterdir())
    assert parts == [f"000000{ending}", f"000001{ending}", "lock", "manifest.json"]
    stop_at = None
    score_to_file(run, str(output), resume=True)
    assert scored == [*range(19), *range(16, n_texts)]
    assert calls == [(n_texts, 0), (n_texts, 0), (n_texts, 16)]
    assert output.read_bytes() == (tmp_path / f"whole{ending}").read_bytes()
    score_to_file(run, str(output), resume=True)  # it is complete, so nothing happens
    assert len(calls) == 3


def test_a_folder_of_parts_that_another_version_wrote_is_refused_with_a_message(settings, source, tmp_path):
    def stop(texts, total, done):
        raise Stopped

    run = Run(source, settings, progress=stop)
    with pytest.raises(Stopped):
        score_to_file(run, str(tmp_path / "out.jsonl"))
    path = tmp_path / "out.jsonl.parts" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "versions": {**manifest["versions"], "spacy-pll": "0.0.9"}}))
    with pytest.raises(ResumeError, match="versions.spacy-pll: it was '0.0.9', and is now .* start again with --force"):
        score_to_file(run, str(tmp_path / "out.jsonl"), resume=True)


def test_a_run_that_fails_no_longer_watches_worker_processes(settings, source, tmp_path):
    def fail(texts, total, done):
        yield next(iter(texts))
        raise Stopped

    threads = threading.active_count()
    with pytest.raises(Stopped) as error:  # it is kept, and so is all that its frames refer to
        score_to_file(Run(source, settings, progress=fail), str(tmp_path / "out.jsonl"))
    assert error.traceback and threading.active_count() == threads


@pytest.mark.slow
def test_two_processes_do_not_write_one_output(settings, source, tmp_path):
    output, answers = tmp_path / "out.jsonl", []

    def meanwhile(texts, total, done):
        for option in ("--resume", "--force"):
            command = [sys.executable, "-m", "spacy_pll", "score", source, output, "--model", settings.model, option]
            second = subprocess.run(list(map(str, command)), capture_output=True, text=True)
            answers.append((second.returncode, " ".join(second.stderr.split())))
        return texts

    score_to_file(Run(source, settings, progress=meanwhile), str(output))
    assert len(answers) == 2
    for code, error in answers:
        assert code == 1 and f"Another process, {os.getpid()}, is writing {output}. Wait until" in error
    assert len(output.read_text().splitlines()) == len(SENTENCES) * 4
    assert not (tmp_path / "out.jsonl.parts").exists()


def test_a_stream_gives_the_lines_of_the_file(settings, source, tmp_path):
    calls = []

    def watch(texts, total, done):
        calls.append((total, done))
        return texts

    run = Run(source, settings, batch_size=3, progress=watch)
    score_to_file(run, str(tmp_path / "out.jsonl"))
    assert b"".join(score_to_stream(run)) == (tmp_path / "out.jsonl").read_bytes()
    assert calls == [(len(SENTENCES) * 4, 0)] * 2


def test_rows_that_do_not_fit_the_output_are_refused_before_anything_is_loaded(tmp_path):
    run = Run("none.txt", PipelineSettings(model="no-such/model"), rows="tokens")
    with pytest.raises(InputError, match="Leave out --tokens"):
        score_to_file(run, str(tmp_path / "out.spacy"))
    with pytest.raises(InputError, match="With --prodigy"):
        list(score_to_stream(Run("none.txt", rows="prodigy")))


def test_the_summary_of_the_input(tmp_path, make_nlp):
    (tmp_path / "b.jsonl").write_text('{"line": "x", "n": 1}\n{"line": "y", "m": 2}\n')
    (tmp_path / "a.csv").write_text("line,n\nz,1\n")
    summary = summarize_input(Run(str(tmp_path), column="line"), str(tmp_path), make_nlp("bert"), JsonLines)
    assert (summary.texts, summary.fields) == (3, ["file", "n", "m"])
    assert summary.digest == files_digest([tmp_path / "a.csv", tmp_path / "b.jsonl"])


def test_the_manifest_has_what_scores_depend_on(make_nlp, model_folder):
    folder = str(model_folder("bert"))
    manifest = make_manifest({"texts": 1}, {"batch_size": 8}, folder, make_nlp("bert"), "cpu")
    assert list(manifest) == ["input", "batch_size", "model", "pipeline", "device", "versions"]
    assert manifest["model"] == describe_model(folder) and list(manifest["versions"]) == PACKAGES
    assert manifest["pipeline"]["pll"]["metrics"] == ["word_l2r"]


def test_the_manifest_where_spacy_transformers_is_not_installed(make_nlp, monkeypatch):
    monkeypatch.setattr("spacy_pll.corpus.runs.PACKAGES", ["torch", "no-such-package"])
    manifest = make_manifest({"texts": 1}, {"batch_size": 8}, None, make_nlp("bert"), "cpu")
    assert manifest["versions"] == {"torch": version("torch"), "no-such-package": None}
