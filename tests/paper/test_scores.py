import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.paper.data import CONTEXTS
from scripts.paper.files import atomic_folder, write_whole
from scripts.paper.names import file_name, split_list
from scripts.paper.scores import Scores

from .conftest import EVENTS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def own_model(model_folder, tmp_path_factory):
    """A copy that a test may change."""
    folder = tmp_path_factory.mktemp("models") / "own"
    shutil.copytree(model_folder("bert"), folder)
    return folder


def test_texts_are_scored_once(command, tiny_assets, tmp_path, own_model):
    arguments = ["--models", own_model, "--blimp-pairs", 1, "--assets", tiny_assets, "--results", tmp_path]
    printed = command("scores", *arguments)
    assert "eventsadapt: 8 texts in" in printed and "scored before" not in printed
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "scores").rglob("*.*")}
    printed = command("scores", *arguments)
    assert "eventsadapt: 8 texts, scored before" in printed and " in " not in printed
    assert files == {path: path.stat().st_mtime_ns for path in (tmp_path / "scores").rglob("*.*")}

    # Another sample is scored again, and the rest is kept.
    arguments[3] = 2
    printed = command("scores", *arguments)
    assert [line.split(": ")[0].split(", ")[1] for line in printed.splitlines() if "before" not in line] == ["blimp"]

    # What was damaged, or never got its record, is not taken for done.
    folder = next(path for path in (tmp_path / "scores").iterdir() if path.is_dir())
    (folder / "eventsadapt.spacy").write_bytes(b"half")
    (folder / "blimp.json").unlink()
    printed = command("scores", *arguments)
    assert printed.count("texts in") == 2 and "eventsadapt: 8 texts in" in printed and "blimp: 8 texts in" in printed

    # Other weights under the same name are another model.
    config = own_model / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"layer_norm_eps": 1e-3}))
    assert "scored before" not in command("scores", *arguments)


def test_the_docs_carry_all_scores(command, tiny_assets, tmp_path, model_folder):
    name = str(model_folder("bert"))
    command("scores", "--models", name, "--assets", tiny_assets, "--results", tmp_path)
    scores = Scores(tmp_path)
    (model,) = scores.models("masked")
    docs = scores.docs(model, "eventsadapt")
    assert list(docs) == EVENTS and all(doc._.pll_original < 0 and doc._.pll_pieces for doc in docs.values())
    for context, pattern in CONTEXTS.items():
        for text, doc in scores.docs(model, f"words-{context}").items():
            word = doc.spans["word"][0]
            assert text == pattern.format(word.text) and word._.pll_word_l2r < 0
            # only the word is scored
            assert [token._.pll is None for token in doc] == [token.i != word.start for token in doc]


def test_left_to_right_models(command, tiny_assets, tmp_path, model_folder, causal_folder):
    arguments = ["--models", model_folder("bert"), "--assets", tiny_assets, "--results", tmp_path, "--blimp-pairs", 0]
    # A default that is not there is no model; one that is there is.
    command("scores", *arguments, "--causal-default", tmp_path / "nowhere")
    assert Scores(tmp_path).models("causal") == []
    command("scores", *arguments, "--causal-default", causal_folder, "--leading-space", "previous")
    (causal,) = Scores(tmp_path).models("causal")
    corrected = [doc._.causal for doc in Scores(tmp_path).docs(causal, "eventsadapt").values()]
    command("scores", *arguments, "--causal-models", causal_folder)
    plain = [doc._.causal for doc in Scores(tmp_path).docs(causal, "eventsadapt").values()]
    assert all(a < b for a, b in zip(corrected, plain))


def test_a_model_on_the_hub_is_identified_by_its_commit(hub_cache):
    """In a process of its own, because transformers and huggingface_hub look up the cache when they are imported."""
    code = (
        "from scripts.paper.scores import Model, identify\n"
        "print([identify(Model(name, 'masked'))['commit'] for name in ('team/baby', 'team/baby@chck_1M')])"
    )
    found = subprocess.run([sys.executable, "-c", code], env=hub_cache, cwd=ROOT, capture_output=True, text=True)
    assert found.stdout == f"{['a' * 40, 'b' * 40]}\n", found.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "no-such/model"], "The model 'no-such/model' was not found"),
        (["--models", "builtin", "--datasets", "nonesuch"], "Unknown data set 'nonesuch'"),
        (["--models", "builtin", "--datasets", ""], "No data set is named"),
        (["--models", "a/b,a-b"], "the same folder of scores: a-b, a-b"),
    ],
)
def test_errors_are_messages(command, tiny_assets, tmp_path, arguments, message):
    assert message in command.fails("scores", *arguments, "--assets", tiny_assets, "--results", tmp_path)
    assert not (tmp_path / "scores" / "index.json").exists()


def test_analyses_without_scores(command, tmp_path):
    for name in ("inflation", "length", "frequency", "causal", "blimp", "report"):
        assert "Make them: python -m spacy project run score" in command.fails(name, "--results", tmp_path)
        assert not list(tmp_path.iterdir())


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    write_whole(tmp_path / "a" / "file", "old")

    def full(*paths):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr("os.replace", full)
        write_whole(tmp_path / "a" / "file", "new")
    assert (tmp_path / "a" / "file").read_text() == "old"
    with atomic_folder(tmp_path / "b") as folder:
        (folder / "x").write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "b") as folder:
        (folder / "x").write_text("new")
        raise KeyboardInterrupt
    assert (tmp_path / "b" / "x").read_text() == "old"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "file", "x"]


def test_names():
    assert (
        split_list("a, b,,a") == split_list("[a, b]") == split_list('["a", "b"]') == ["a", "b"] and split_list("") == []
    )
    assert file_name("org/model@v1.0") == "org-model-v1.0" and file_name("../../x y/") == "x-y"
