"""One model, several settings."""

import pytest

from spacy_pll.component import get_scorer
from spacy_pll.pipelines import PipelineSettings

app = pytest.importorskip("spacy_pll.explorer.app", reason="Streamlit is not installed: pip install '.[explore]'")

TEXT = "The cats sleep in a house."


@pytest.fixture
def shared(model_folder):
    return app.SharedPipeline(PipelineSettings(str(model_folder("bert")), mask_spacing=8))


def test_the_scores_are_those_of_a_pipeline_with_the_settings(model_folder, make_nlp):
    shared = app.SharedPipeline(PipelineSettings(str(model_folder("bert")), alternatives=5))
    shown = {"keep_pieces": True, "alternatives": 5, "distribution": True}
    for metrics, words in [(["original"], "spacy"), (["whole_word", "word_l2r"], "tokenizer"), (None, None)]:
        expected = make_nlp(metrics=metrics or ["word_l2r"], words=words or "spacy", **shown)(TEXT)
        with shared.use(PipelineSettings(metrics=metrics, words=words)) as nlp:
            doc = nlp(TEXT)
        assert [token._.pll for token in doc] == [token._.pll for token in expected]
        assert [token._.pll_alternatives for token in doc] == [token._.pll_alternatives for token in expected]
        assert doc._.pll_data == expected._.pll_data


def test_the_model_is_loaded_once(shared):
    with shared.use(PipelineSettings()) as nlp:
        model = get_scorer(nlp).model
    with shared.use(PipelineSettings(metrics=["original"], words="whitespace")) as nlp:
        assert get_scorer(nlp).model is model
        assert get_scorer(nlp).settings.mask_spacing == 8  # other settings stay


def test_a_wrong_setting_leaves_the_pipeline_as_it_was(shared):
    with shared.use(PipelineSettings(metrics=["original"])) as nlp:
        before = nlp(TEXT)._.pll
    with pytest.raises(ValueError, match="does not mask within words"):
        with shared.use(PipelineSettings(metrics=["sentence_l2r"])):
            pass
    with shared.use(PipelineSettings(metrics=["original"])) as nlp:
        assert nlp(TEXT)._.pll == before


def test_other_components_and_names_stay(make_nlp, tmp_path):
    nlp = make_nlp(name="scores", attr="mine", metrics=["original"])
    nlp.add_pipe("sentencizer", first=True)
    nlp.add_pipe("doc_cleaner", last=True)
    nlp.to_disk(tmp_path)
    shared = app.SharedPipeline(PipelineSettings(str(tmp_path)))
    assert (shared.attr, shared.metrics) == ("mine", ["original"])
    with shared.use(PipelineSettings(metrics=["word_l2r"])) as changed:
        assert changed.pipe_names == ["sentencizer", "scores", "doc_cleaner"]
        assert changed(TEXT)._.mine == make_nlp(attr="mine")(TEXT)._.mine


def test_the_metrics_that_a_model_can_compute(shared):
    metrics = shared.list_metrics()
    assert metrics[0] == "word_l2r" and "causal" not in metrics
    assert set(metrics) >= {"original", "whole_word", "sentence_l2r", "word_any_order", "word_r2l"}
    assert len(set(metrics)) == len(metrics)
