"""`--n-process` of the commands that evaluate: `score` has tests of its own."""

import json

import pytest
from spacy.language import Language

from ..conftest import SENTENCES
from .conftest import run


@pytest.fixture
def inputs(tmp_path):
    """A command's name: its arguments."""
    pairs = [{"sentence_good": a, "sentence_bad": b} for a, b in zip(SENTENCES, SENTENCES[1:])]
    lists = [{"hypotheses": [{"text": text, "score": 0.0} for text in SENTENCES[:3]]}] * 2
    for name, rows in (("pairs", pairs), ("rescore", lists), ("ppl", [{"text": text} for text in SENTENCES])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "pairs": (tmp_path / "pairs.jsonl",),
        "rescore": (tmp_path / "rescore.jsonl", "--weight", "1"),
        "ppl": (tmp_path / "ppl.jsonl",),
    }


@pytest.mark.parametrize("command", ["pairs", "rescore", "ppl"])
def test_two_processes_give_the_same(command, inputs, tmp_path, model_folder, monkeypatch):
    processes, pipe = [], Language.pipe

    def noting(nlp, *args, n_process=1, **more):
        processes.append(n_process)
        return pipe(nlp, *args, n_process=n_process, **more)

    monkeypatch.setattr(Language, "pipe", noting)
    options = ("--model", model_folder("bert"), "--batch-size", 2)
    outputs = [tmp_path / f"{n}{'.jsonl' if command == 'rescore' else '.json'}" for n in (1, 2)]
    for n, output in enumerate(outputs, 1):
        run(command, *inputs[command], *options, "--n-process", n, "-o", output)
    assert processes == [1, 2]
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
