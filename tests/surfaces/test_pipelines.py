"""Two components in one pipeline, and spaCy's own ways of putting pipelines together."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_pll import make_pipeline

from ..cli.conftest import run_spacy
from ..conftest import PARAGRAPH, SENTENCES, scores, write_jsonl


@pytest.fixture
def two(make_nlp):
    """Two models of different tokenizers and lengths, each with its attributes."""
    nlp = make_nlp("bert", metrics=["word_l2r", "original"])
    return make_nlp("albert", nlp=nlp, name="second", attr="other", keep_pieces=True)


def check_two(nlp, make_nlp):
    first, second = make_nlp("bert", metrics=["word_l2r", "original"]), make_nlp("albert", attr="other")
    for doc in nlp.pipe([PARAGRAPH, *SENTENCES]):
        assert scores(doc, "pll") == pytest.approx(scores(first(doc.text), "pll"), abs=1e-5)
        assert scores(doc, "pll_original") == pytest.approx(scores(first(doc.text), "pll_original"), abs=1e-5)
        assert scores(doc, "other") == pytest.approx(scores(second(doc.text), "other"), abs=1e-5)


@pytest.mark.slow
def test_two_models_do_not_disturb_each_other(two, make_nlp, tmp_path):
    check_two(two, make_nlp)
    two.to_disk(tmp_path)
    check_two(spacy.load(tmp_path), make_nlp)


def test_after_entities_are_merged(make_nlp):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "X", "pattern": "the hooligans"}])
    nlp.add_pipe("merge_entities")
    make_nlp("bert", nlp=nlp, keep_pieces=True)
    doc, separate = nlp(SENTENCES[1]), make_nlp("bert", metrics=["original"])(SENTENCES[1])
    [merged] = [token for token in doc if token.text == "the hooligans"]
    assert len(doc) == len(separate) - 1 and merged._.pll_pieces == sum(
        token._.pll_pieces for token in separate if token.text in ("the", "hooligans")
    )
    assert doc._.pll_pieces == len(doc._.pll_data["ids"]) == separate._.pll_pieces
    # The merged token is one word, so its pieces do not give each other away.
    assert doc._.pll != pytest.approx(make_nlp("bert")(SENTENCES[1])._.pll, abs=1e-4)


@pytest.mark.parametrize("stride", [3, 7, 12])
def test_strided_spans_score_every_piece_once(make_nlp, stride):
    getter = {"@span_getters": "spacy-pll.strided_spans.v1", "window": 12, "stride": stride}
    doc = make_nlp("roberta", get_spans=getter, keep_pieces=True)(PARAGRAPH)
    assert all(token._.pll is not None for token in doc)
    assert doc._.pll_pieces == sum(token._.pll_pieces for token in doc) == len(doc._.pll_data["ids"])
    places = zip(doc._.pll_data["start"], doc._.pll_data["end"])
    covered = [i for start, end in places for i in range(start, end)]
    assert set(covered) == {i for i, character in enumerate(PARAGRAPH) if not character.isspace()}
    assert PARAGRAPH.isascii()  # so that no character has several pieces
    assert len(covered) == len(set(covered))


def test_components_that_are_switched_off(two):
    with two.select_pipes(disable="pll"):
        doc = two(SENTENCES[0])
    assert doc._.pll is None and doc._.other < 0
    with two.select_pipes(enable="pll"):
        doc = two(SENTENCES[0])
    assert doc._.other is None and doc._.pll < 0


def test_analyze_pipes_shows_the_attributes_by_their_default_names(two, make_nlp):
    plain = make_nlp("bert")
    analysis = two.analyze_pipes()
    everywhere = {
        f"{level}._.{name}" for level in ("doc", "span", "token") for name in ("pll", "pll_word_l2r", "pll_pieces")
    }
    for name in ("pll", "second"):
        sums = {f"{level}._.{name}" for level in ("doc", "span") for name in ("pppl", "pll_data")}
        assert set(analysis["summary"][name]["assigns"]) == everywhere | sums
        assert not analysis["problems"][name]
    doc, declared = plain(SENTENCES[0]), plain.get_pipe_meta("pll").assigns
    assert {key[1] for key in doc.user_data} == {"pll_data"}  # from which all of them are computed
    for one in declared:
        level, name = one.split("._.")
        assert {"doc": doc, "span": doc[:], "token": doc[0]}[level]._.get(name) is not None


def save_with_attr(nlp, folder, name, attr):
    """Save a pipeline as an earlier version let one do it: with a component that has the attribute of another."""
    nlp.to_disk(folder)
    config = spacy.util.load_config(folder / "config.cfg")
    config["components"][name]["attr"] = attr
    config.to_disk(folder / "config.cfg")


def test_a_saved_pipeline_with_two_components_of_one_attribute(two, tmp_path):
    expected = scores(two(SENTENCES[0]), "other")
    save_with_attr(two, tmp_path, "second", "pll")
    with pytest.raises(ValueError, match=r'spacy.load\(folder, config=\{"components.second.attr": "pll_2"\}\)'):
        spacy.load(tmp_path)
    loaded = spacy.load(tmp_path, config={"components.second.attr": "pll_2"})
    assert scores(loaded(SENTENCES[0]), "pll_2") == pytest.approx(expected, abs=1e-5)


def test_a_component_from_another_pipeline(make_nlp, tmp_path):
    other = make_nlp("roberta")
    expected = scores(other(SENTENCES[0]))
    alone = spacy.blank("en")
    alone.add_pipe("pll", source=other)
    alone.to_disk(tmp_path)
    assert scores(spacy.load(tmp_path)(SENTENCES[0])) == pytest.approx(expected, abs=1e-5)
    beside = make_nlp("bert", attr="mine")
    beside.add_pipe("pll", name="second", source=other)
    doc = beside(SENTENCES[0])
    assert scores(doc) == pytest.approx(expected, abs=1e-5) and doc._.mine != doc._.pll


@pytest.mark.parametrize("position", [{"last": True}, {"first": True}])
def test_a_component_from_another_pipeline_with_the_same_attribute_is_refused(make_nlp, position):
    nlp = make_nlp("bert")
    expected = scores(nlp(SENTENCES[0]))
    with pytest.raises(
        ValueError, match=r"component '\w+' already writes the attribute _.pll\. .*remove_pipe\(.*pll_2"
    ):
        nlp.add_pipe("pll", name="sourced", source=make_nlp("roberta"), **position)
    nlp.remove_pipe("sourced")
    assert scores(nlp(SENTENCES[0])) == pytest.approx(expected, abs=1e-5)


def test_two_components_from_other_pipelines_with_the_same_attribute_are_refused(make_nlp):
    nlp, other = spacy.blank("en"), make_nlp("bert", metrics=["word_l2r", "original"])
    nlp.add_pipe("pll", name="one", source=other)
    with pytest.raises(ValueError, match=r"component 'one' already writes the attribute _.pll\. "):
        nlp.add_pipe("pll", name="two", source=make_nlp("roberta", metrics=["original"]))
    nlp.remove_pipe("two")
    with pytest.raises(ValueError, match=r"already writes the attribute _.pll\. .*remove_pipe\('again'\)"):
        nlp.add_pipe("pll", name="again", source=other)
    nlp.remove_pipe("again")
    assert nlp(SENTENCES[0])._.pll < 0


def test_listeners_of_other_components_are_found_as_before(two):
    """The component has spaCy's listener protocol only to see its neighbours."""
    two.add_pipe("tok2vec", first=True)
    two.add_pipe("tagger", config={"model": {"tok2vec": {"@architectures": "spacy.Tok2VecListener.v1", "width": 96}}})
    assert two.get_pipe("tok2vec").listening_components == ["tagger"]
    assert list(two.get_pipe("pll").listening_components) == [] == list(two.get_pipe("pll").listeners)


def test_scores_of_metrics_that_are_not_asked_for_any_more_are_taken_away(make_nlp):
    doc = make_nlp("bert", metrics=["word_l2r", "original"])(SENTENCES[0])
    kept = make_nlp("albert", attr="other", metrics=["word_l2r", "original"])(doc)._.other_original
    assert doc._.pll_original is not None
    doc = make_nlp("roberta")(doc)
    assert doc._.pll_original is None and doc._.pll_word_l2r == doc._.pll and doc[0:2]._.pll_original is None
    assert all(token._.pll_original is None for token in doc)
    assert doc._.other_original == kept and doc._.pll < 0
    assert doc._.pll_data["scores"].keys() == {"word_l2r"} and len(doc.user_data) == 2


def test_assemble(model_folder, tmp_path, make_nlp):
    make_nlp("bert").config.to_disk(tmp_path / "config.cfg")
    run_spacy("assemble", tmp_path / "config.cfg", tmp_path / "pipeline")
    assert scores(spacy.load(tmp_path / "pipeline")(PARAGRAPH)) == pytest.approx(scores(make_nlp("bert")(PARAGRAPH)))


@pytest.mark.parametrize("batch_size", [1, 4])
def test_apply(make_nlp, tmp_path, batch_size):
    nlp = make_nlp("bert")
    nlp.to_disk(tmp_path / "pipeline")
    write_jsonl(tmp_path / "in.jsonl", *({"text": text} for text in SENTENCES))
    run_spacy("apply", tmp_path / "pipeline", tmp_path / "in.jsonl", tmp_path / "out", "--batch-size", batch_size)
    docs = list(DocBin().from_disk(tmp_path / "out.spacy").get_docs(nlp.vocab))
    assert [doc.text for doc in docs] == SENTENCES
    for doc in docs:
        assert scores(doc) == pytest.approx(scores(nlp(doc.text)), abs=1e-5)


@pytest.mark.slow
def test_a_package_installs_and_loads_in_a_fresh_environment(model_folder, tmp_path):
    """With the model card and the licence of the model."""
    pytest.importorskip("wheel", reason="wheel is not installed: pip install . --group test-all")
    shutil.copytree(model_folder("bert"), tmp_path / "model")
    documents = {"README.md": "the card", "LICENSE": "the licence"}
    for name, text in documents.items():
        (tmp_path / "model" / name).write_text(text)
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(tmp_path / "model")}})
    expected = nlp(SENTENCES[0])._.pll
    nlp.to_disk(tmp_path / "pipeline")
    (tmp_path / "packages").mkdir()
    run_spacy("package", tmp_path / "pipeline", tmp_path / "packages", "--name", "tiny_pll", "--build", "none")
    [package] = (tmp_path / "packages").iterdir()
    assert [line for line in (package / "meta.json").read_text().splitlines() if "spacy-pll" in line]
    # A fresh environment that sees this one's packages, so that nothing is downloaded; the package itself is installed.
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    here = [path for path in sys.path if path and Path(path).is_dir()]
    (site / "here.pth").write_text("\n".join(here))
    install = ["-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation", "--quiet", package]
    subprocess.run([python, *install], check=True, capture_output=True, cwd=tmp_path)
    (installed,) = site.glob("en_tiny_pll/en_tiny_pll-*/pll/model")
    assert {name: (installed / name).read_text() for name in documents} == documents
    code = f"import spacy; print(spacy.load('en_tiny_pll')({SENTENCES[0]!r})._.pll)"
    out = subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path, env={"HF_HUB_OFFLINE": "1"}
    )
    assert float(out.stdout) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("package", ["numpy", "prompt-toolkit", "PyYAML"])
def test_an_installed_package_that_is_no_pipeline_may_be_a_model_on_the_hub(package):
    pytest.importorskip({"PyYAML": "yaml"}.get(package, package.replace("-", "_")))
    with pytest.raises(OSError, match=rf"The model '{package}' was not found"):
        make_pipeline(model=package)


@pytest.mark.parametrize("module", ["odd_package/data.txt", "odd_package.py", "odd_package/__init__.py", "other.py"])
def test_a_package_that_may_be_no_pipeline_is_not_imported(module, tmp_path, monkeypatch):
    (tmp_path / "odd_package-1.5.dist-info").mkdir()
    (tmp_path / "odd_package-1.5.dist-info" / "METADATA").write_text("Name: odd_package\nVersion: 1.5\n")
    (tmp_path / module).parent.mkdir(exist_ok=True)
    (tmp_path / module).write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OSError, match="The model 'odd_package' was not found"):
        make_pipeline(model="odd_package")
