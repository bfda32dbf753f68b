"""Ready configs, `spacy apply`, streams of tasks as in recipes of Prodigy, and the entry in spaCy Universe."""

import re
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.tokens import DocBin

from ..cli.conftest import run_spacy
from ..conftest import PARAGRAPH, SENTENCES, scores, write_jsonl

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*.cfg"))
# The categories of spaCy Universe (website/meta/universe.json in the repository of spaCy), and its fields.
CATEGORIES = {"pipeline", "training", "conversational", "research", "scientific", "visualizers", "apis", "nonpython"}
CATEGORIES |= {"standalone", "models"}
FIELDS = {
    "id": str, "title": str, "slogan": str, "description": str, "github": str, "pip": str, "code_example": list,
    "code_language": str, "url": str, "image": str, "author": str, "author_links": dict, "category": list, "tags": list,
}  # fmt: skip


@pytest.fixture
def assembled(model_folder, tmp_path, monkeypatch):
    """assembled(name): the pipeline of a config, with tiny models in place of those of the hub."""
    (tmp_path / "hub").mkdir()
    for name, architecture in {"bert-base-cased": "bert", "roberta-base": "roberta"}.items():
        (tmp_path / "hub" / name).symlink_to(model_folder(architecture))

    def assemble(name, *overrides):
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path / "hub")
            run_spacy("assemble", ROOT / "configs" / name, tmp_path / "pipeline", *overrides)
        return spacy.load(tmp_path / "pipeline")

    return assemble


def test_exact(assembled, make_nlp):
    doc, expected = assembled("exact.cfg")(PARAGRAPH), make_nlp("bert", metrics=["word_l2r", "original"])(PARAGRAPH)
    assert scores(doc) == pytest.approx(scores(expected), abs=1e-5)
    assert scores(doc, "pll_original") == pytest.approx(scores(expected, "pll_original"), abs=1e-5)


@pytest.mark.slow
def test_corpus(assembled):
    nlp = assembled("corpus.cfg")
    component = nlp.get_pipe("pll")
    assert component.settings.mask_spacing == 16 and component.model.name is None
    shared, exact = nlp(PARAGRAPH), assembled("corpus.cfg", "--components.pll.mask_spacing", "null")
    assert shared._.pll < 0 and shared._.pll != exact(PARAGRAPH)._.pll
    assert component.predictor.counts.rows < 0.5 * exact.get_pipe("pll").predictor.counts.rows


def test_two_models(assembled, make_nlp):
    doc = assembled("two_models.cfg")(PARAGRAPH)
    for name, architecture in {"bert": "bert", "roberta": "roberta"}.items():
        assert scores(doc, name) == pytest.approx(scores(make_nlp(architecture)(PARAGRAPH)), abs=1e-5)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_each_config_says_when_to_use_it(path):
    text = path.read_text(encoding="utf8")
    assert text.startswith("# ") and "Use it " in text.partition("[nlp]")[0]
    assert f"python -m spacy assemble configs/{path.name} FOLDER" in text
    assert f"](../configs/{path.name})" in (ROOT / "docs" / "spacy.md").read_text(encoding="utf8")
    assert f"def test_{path.stem}(" in Path(__file__).read_text(encoding="utf8")


def test_apply_to_text_and_jsonl(make_nlp, tmp_path):
    nlp = make_nlp("bert")
    nlp.to_disk(tmp_path / "pipeline")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(PARAGRAPH, encoding="utf8")
    write_jsonl(tmp_path / "in" / "b.jsonl", *({"said": text} for text in SENTENCES))
    run_spacy("apply", tmp_path / "pipeline", tmp_path / "in", tmp_path / "out.spacy", "--text-key", "said")
    docs = {doc.text: doc for doc in DocBin().from_disk(tmp_path / "out.spacy").get_docs(nlp.vocab)}
    assert set(docs) == {PARAGRAPH, *SENTENCES}
    for text, doc in docs.items():
        expected = nlp(text)
        assert scores(doc) == pytest.approx(scores(expected), abs=1e-5)
        assert doc._.pll == pytest.approx(expected._.pll, abs=1e-4) and doc._.pll_pieces == expected._.pll_pieces


@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_a_stream_of_tasks_keeps_its_order(make_nlp, tmp_path, batch_size):
    """How a recipe of Prodigy uses a pipeline: loaded by its folder, over pairs of a text and its task."""
    make_nlp("bert").to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    taken = []

    def stream():
        for number, text in enumerate(SENTENCES * 2):
            taken.append(number)
            yield {"text": text, "number": number}

    pairs = nlp.pipe(((task["text"], task) for task in stream()), as_tuples=True, batch_size=batch_size)
    first = next(pairs)
    assert len(taken) <= 2 * batch_size + 1  # a stream without an end is not read to its end
    scored = [first, *pairs]
    assert [task["number"] for _, task in scored] == list(range(len(SENTENCES) * 2))
    for doc, task in scored:
        assert doc.text == task["text"] and scores(doc) == pytest.approx(scores(nlp(doc.text)), abs=1e-5)


@pytest.fixture(scope="module")
def entry():
    return srsly.read_json(ROOT / "docs" / "universe.json")


def test_the_entry_for_spacy_universe(entry):
    assert {name: type(value) for name, value in entry.items()} == FIELDS
    assert entry["id"] == entry["pip"] == "spacy-pll" and re.fullmatch(r"[\w-]+/[\w-]+", entry["github"])
    assert set(entry["category"]) <= CATEGORIES and set(entry["author_links"]) <= {"twitter", "github", "website"}
    assert all(isinstance(text, str) for name in ("code_example", "category", "tags") for text in entry[name])
