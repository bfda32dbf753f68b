"""Students in the component: nothing is masked, one row per context, and only what they were trained for is served."""

import json
import shutil

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Span

from spacy_pll.corpus.runs import make_manifest
from spacy_pll.language_model import student_card, student_scores
from spacy_pll.language_model.checks import STUDENT_KEY
from spacy_pll.language_model.forward import Forward
from spacy_pll.language_model.masked import MaskedLanguageModel
from spacy_pll.language_model.one_pass import OnePassLanguageModel
from spacy_pll.language_model.student_card import read_card
from spacy_pll.pipelines import PipelineSettings, get_scorer, make_pipeline

from ..conftest import ARCHITECTURES, PARAGRAPH, SENTENCES, scores
from ..reference import load_model
from ..students import make_student


@pytest.fixture(scope="module")
def student(tmp_path_factory, model_folder):
    """student(architecture, **settings): the folder of a student, made once."""
    made = {}

    def make(architecture="bert", **settings):
        key = (architecture, *settings.items())
        if key not in made:
            folder = tmp_path_factory.mktemp("students") / "student"
            made[key] = make_student(model_folder(architecture), folder, **settings)
        return made[key]

    return make


def make_nlp(folder, nlp=None, **config):
    nlp = nlp or spacy.blank("en")
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.OnePass.v1", "name": str(folder)}, **config})
    return nlp


def unmasked_scores(folder, text, normal=False):
    """The log-probability of each piece of a text, with the whole text as input; for `normal` its logit."""
    model, tokenizer = load_model(str(folder))
    ids = tokenizer(text, return_tensors="pt").input_ids
    with torch.inference_mode():
        logits = model(input_ids=ids).logits.float()[0]
    log_probs = logits if normal else logits.log_softmax(-1)
    return log_probs.gather(1, ids[0, :, None])[1:-1, 0].numpy()


@pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert", "deberta-v2", "fnet"])
def test_scores_are_those_of_one_pass_without_masks(student, architecture):
    nlp = make_nlp(student(architecture), keep_pieces=True)
    for doc in nlp.pipe(SENTENCES[:3]):
        expected = unmasked_scores(student(architecture), doc.text)
        np.testing.assert_allclose(doc._.pll_data["scores"]["word_l2r"], expected, atol=1e-5)
        assert doc._.pll == pytest.approx(expected.sum(), abs=1e-4)
    assert get_scorer(nlp).counts["rows"] == 3


@pytest.mark.parametrize("normal", [False, True])
@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if name != "convbert"])
def test_scores_take_the_place_of_logits(student, architecture, normal, monkeypatch):
    monkeypatch.setattr(student_scores, "CPU_TARGETS", 3)
    nlp = make_nlp(student(architecture, normal=normal), keep_pieces=True)
    model = get_scorer(nlp).model
    at_output = architecture != "esm"  # which adds a bias after its output matrix
    assert model.load().log_probs.at_output == at_output and model.load().forward.narrowing
    widths = []
    run = Forward.run
    monkeypatch.setattr(Forward, "run", lambda *args: widths.append((out := run(*args)).shape[-1]) or out)
    for doc in nlp.pipe(SENTENCES[:2]):
        expected = unmasked_scores(student(architecture), doc.text, normal)
        np.testing.assert_allclose(doc._.pll_data["scores"]["word_l2r"], expected, atol=1e-5)
    assert at_output == (set(widths) == {1})


def test_the_work_is_one_row_per_window(student):
    nlp = make_nlp(student(), keep_pieces=True)
    scorer, text = get_scorer(nlp), " ".join([PARAGRAPH] * 3)
    doc = nlp(text)
    encoding = scorer.model.tokenizer.encode(text)
    assert doc._.pll_data["ids"] == encoding.ids[1:-1] and len(encoding.ids) > 1.8 * scorer.model.max_length
    assert scorer.counts["targets"] == doc._.pll_pieces == len(encoding.ids) - 2
    # Windows overlap by half.
    assert scorer.counts["rows"] <= 2 * len(encoding.ids) / (scorer.model.max_length - 2) + 1
    assert np.isfinite(scores(doc)).all()


def test_passes_on_a_cpu_are_small():
    exact, fast = (get_scorer(make_pipeline(PipelineSettings(one_pass=one_pass))) for one_pass in (False, True))
    assert fast.model.max_batch_tokens == 512 < exact.model.max_batch_tokens


def test_scores_depend_neither_on_the_batch_nor_on_the_targets(student):
    alone = [make_nlp(student(), max_batch_tokens=1)(text) for text in SENTENCES]
    for doc, expected in zip(make_nlp(student()).pipe(SENTENCES), alone):
        np.testing.assert_allclose(scores(doc), scores(expected), atol=1e-5)
    nlp = make_nlp(student(), targets="some")
    doc = nlp.make_doc(SENTENCES[0])
    doc.spans["some"] = [Span(doc, 1, 2), Span(doc, 4, 5)]
    doc = nlp.get_pipe("pll")(doc)
    assert [token._.pll is not None for token in doc] == [False, True, False, False, True, False]
    assert doc[4]._.pll == pytest.approx(alone[0][4]._.pll, abs=1e-5)


def test_continuations_and_worker_processes(student):
    nlp = make_nlp(student())
    first, second = nlp.get_pipe("pll").score_continuations("The traveler lost the", ["souvenir", "bus"], ".")
    assert first.score != second.score
    expected = [scores(doc) for doc in nlp.pipe(SENTENCES)]
    for doc, values in zip(nlp.pipe(SENTENCES, n_process=2, batch_size=2), expected):
        np.testing.assert_allclose(scores(doc), values, atol=1e-5)


def test_the_record_and_the_manifest_say_it(student, make_nlp):
    folder = student()
    nlp = make_pipeline(PipelineSettings(str(folder), one_pass=True, keep_pieces=True))
    doc = nlp(SENTENCES[0])
    assert doc._.pll_data["one_pass"] is True and doc._.pll_data["mask_spacing"] is None
    assert doc.to_json(underscore=["pll_data"])
    exact = make_nlp("bert", keep_pieces=True)
    assert exact(SENTENCES[0])._.pll_data["one_pass"] is False
    manifest = make_manifest({}, {}, str(folder), nlp, "cpu")
    assert manifest["model"]["one_pass"]["metric"] == "word_l2r" and manifest["model"]["folder"] == str(folder)
    assert manifest["pipeline"]["pll"]["model"]["@architectures"] == "spacy-pll.OnePass.v1"
    assert json.loads(json.dumps(manifest)) == manifest
    assert "one_pass" not in make_manifest({}, {}, exact.get_pipe("pll").model.name, exact, "cpu")["model"]


@pytest.mark.parametrize("mask_spacing", [None, 4])
def test_a_saved_student_is_the_same(student, tmp_path, mask_spacing):
    nlp = make_nlp(student(mask_spacing=mask_spacing), keep_pieces=True)
    expected = nlp(SENTENCES[0])
    nlp.to_disk(tmp_path / "pipeline")
    shutil.move(tmp_path / "pipeline", tmp_path / "moved")
    again = spacy.load(tmp_path / "moved")
    assert again(SENTENCES[0])._.pll_data == expected._.pll_data
    model = tmp_path / "moved" / "pll" / "model"
    assert read_card(str(model)) == nlp.get_pipe("pll").model.card
    assert " one_pass.json\n" in (model / "SHA256SUMS").read_text()
    empty = make_nlp(student(metric="original"), metrics=["original"])
    with pytest.raises(ValueError, match="trained for the metric 'word_l2r', and cannot serve 'original'"):
        empty.from_bytes(nlp.to_bytes(exclude=["tokenizer"]), exclude=["tokenizer"])(SENTENCES[0])
    (model / "one_pass.json").write_text((model / "one_pass.json").read_text().replace("word_l2r", "original"))
    with pytest.raises(OSError, match="one_pass.json is not as it was saved"):
        spacy.load(tmp_path / "moved")


def test_a_few_pass_student_is_masked_as_with_its_mask_spacing(student, model_folder):
    nlp = make_nlp(student(mask_spacing=4), keep_pieces=True)
    exact = spacy.blank("en")
    model = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(model_folder("bert"))}
    exact.add_pipe("pll", config={"model": model, "mask_spacing": 4, "keep_pieces": True})
    for doc, expected in zip(nlp.pipe(SENTENCES), exact.pipe(SENTENCES)):
        record, exact_record = doc._.pll_data, expected._.pll_data
        assert record["mask_spacing"] == 4
        np.testing.assert_allclose(record.pop("scores")["word_l2r"], exact_record.pop("scores")["word_l2r"], atol=1e-5)
        assert record == exact_record
    assert get_scorer(make_nlp(student(mask_spacing=4), mask_spacing=4)).mask_spacing == 4
    with pytest.raises(ValueError, match=r"few-pass model \(mask_spacing = 4\). It needs no `mask_spacing`.* 8. Set"):
        make_nlp(student(mask_spacing=4), mask_spacing=8)


def test_it_serves_only_what_it_was_trained_for(student, tmp_path):
    with pytest.raises(ValueError, match=r"trained for the metric 'word_l2r', and cannot serve 'original'. Set `metr"):
        make_nlp(student(), metrics=["word_l2r", "original"])
    with pytest.raises(ValueError, match="trained with words = 'spacy', and cannot serve 'tokenizer'. Set `words` to"):
        make_nlp(student(), words="tokenizer")
    with pytest.raises(ValueError, match="It needs no `mask_spacing`, which is 16. Set it to null"):
        make_nlp(student(), mask_spacing=16)
    with pytest.raises(ValueError, match="'causal' needs a causal language model"):
        make_nlp(student(), metrics=["causal"])
    # What is not known before the model is loaded shows with the first text.
    nlp = make_nlp(tmp_path / "later", metrics=["original"])
    shutil.copytree(student(), tmp_path / "later")
    with pytest.raises(ValueError, match="cannot serve 'original'"):
        nlp(SENTENCES[0])


def test_the_settings_of_a_pipeline_are_those_that_it_serves(student):
    folder = student(metric="whole_word", words="tokenizer")
    scorer = get_scorer(make_pipeline(PipelineSettings(str(folder), one_pass=True)))
    assert (scorer.metrics, scorer.words) == (["whole_word"], "tokenizer")
    with pytest.raises(ValueError, match="cannot serve 'word_l2r'"):
        make_pipeline(PipelineSettings(str(folder), one_pass=True, metrics=["word_l2r"]))


def test_folders_that_are_not_whole(student, model_folder, tmp_path):
    for damage, error, message in [
        (lambda path: path.unlink(), OSError, "has no one_pass.json.*Copy the whole folder"),
        (lambda path: path.write_text("{"), ValueError, "one_pass.json is damaged.*Get the folder again"),
        (lambda path: path.write_text('{"metric": "original"}'), ValueError, "one_pass.json is damaged.*'teacher'"),
    ]:
        folder = tmp_path / "student"
        shutil.copytree(student(), folder)
        damage(folder / "one_pass.json")
        with pytest.raises(error, match=message):
            OnePassLanguageModel(str(folder)).load()
        shutil.rmtree(folder)
    with pytest.raises(OSError, match="has no one_pass.json.*use spacy-pll.MaskedLM.v1"):
        make_pipeline(PipelineSettings(str(model_folder("bert")), one_pass=True))
    with pytest.raises(OSError, match="no folder 'some/student', and no one_pass.json of a model of that name"):
        OnePassLanguageModel("some/student").load()


def test_a_student_with_another_tokenizer_is_refused(student, tmp_path):
    shutil.copytree(student(), tmp_path / "student")
    tokenizer = json.loads((tmp_path / "student" / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    first, second = list(vocabulary)[-2:]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (tmp_path / "student" / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ValueError, match="tokenizer of .* is not the one with which the model was distilled"):
        OnePassLanguageModel(str(tmp_path / "student")).load()


def test_a_student_is_not_taken_for_a_masked_language_model(student, tmp_path):
    with pytest.raises(ValueError, match="was distilled by `pll distill`.*spacy-pll.OnePass.v1 for it, or --one-pass"):
        MaskedLanguageModel(str(student())).load()
    OnePassLanguageModel(str(student())).to_disk(tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / "config.json").read_text())[STUDENT_KEY] is True


def test_without_a_built_in_student_it_says_how_to_train_one(monkeypatch, tmp_path, student):
    folder = tmp_path / "builtin"
    monkeypatch.setattr(OnePassLanguageModel, "builtin", folder)
    monkeypatch.setattr(student_card, "BUILTIN_ONE_PASS", folder)
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.OnePass.v1"}})
    with pytest.raises(OSError, match="without a built-in one-pass model. Train one: python -m spacy pll distill"):
        nlp(SENTENCES[0])
    shutil.copytree(student(), folder)
    assert nlp(SENTENCES[0])._.pll == make_nlp(student())(SENTENCES[0])._.pll
    assert OnePassLanguageModel(None).card.metric == "word_l2r"


def test_a_spacy_pipeline_needs_no_option(student, tmp_path):
    make_nlp(student()).to_disk(tmp_path)
    with pytest.raises(ValueError, match="is a spaCy pipeline.*leave out --one-pass"):
        make_pipeline(PipelineSettings(str(tmp_path), one_pass=True))
    nlp = make_pipeline(PipelineSettings(str(tmp_path)))
    assert nlp(SENTENCES[0])._.pll == make_nlp(student())(SENTENCES[0])._.pll


@pytest.mark.parametrize("normal", [False, True])
@pytest.mark.parametrize("architecture", ["modernbert", "esm"])
def test_what_a_student_expects(student, architecture, normal):
    """Rank, entropy and alternatives are those of the normalised distribution at the piece, which is not masked."""
    folder = student(architecture, normal=normal)
    nlp = make_nlp(folder, keep_pieces=True, alternatives=3, distribution=True)
    record = nlp(SENTENCES[0])._.pll_data
    model, tokenizer = load_model(folder)
    ids = tokenizer(SENTENCES[0], return_tensors="pt").input_ids
    with torch.inference_mode():
        log_probs = model(input_ids=ids).logits.float()[0, 1:-1].log_softmax(-1)
    own = log_probs.gather(1, ids[0, 1:-1, None])
    assert record["rank"] == (1 + (log_probs > own).sum(1)).tolist()
    np.testing.assert_allclose(record["entropy"], -(log_probs.exp() * log_probs).sum(1), atol=1e-4)
    best = [[p for _, p, _ in alternatives] for alternatives in record["alternatives"]]
    np.testing.assert_allclose(best, log_probs.topk(3).values, atol=1e-4)
    plain = make_nlp(folder, keep_pieces=True)(SENTENCES[0])._.pll_data["scores"]
    np.testing.assert_allclose(record["scores"]["word_l2r"], plain["word_l2r"], atol=1e-5)
