"""The code that the page shows is run, and gives what the page shows."""

from dataclasses import replace

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin

from spacy_pll import compare, score_continuations
from spacy_pll.explorer.loading import SharedPipeline, show_expected
from spacy_pll.explorer.snippets import (
    candidates_code,
    compare_code,
    docs_code,
    literal,
    pipeline_code,
    score_code,
)
from spacy_pll.pipelines import PipelineSettings, get_scorer

TEXTS = ['A "quoted" house.', "The cat sat on it.\\"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


def run(code):
    names = {}
    exec(code, names)
    return names


@pytest.fixture(params=["hub name", "pipeline"])
def settings(request, model_folder, make_nlp, tmp_path):
    model = model_folder("bert")
    if request.param == "pipeline":
        make_nlp("bert", name="scores", attr="mine").to_disk(tmp_path)
        model = tmp_path
    settings = PipelineSettings(str(model), metrics=("original", "word_l2r"), words="whitespace")
    return show_expected(settings)


@pytest.fixture
def shared(settings):
    return SharedPipeline(replace(settings, metrics=None, words=None))


def test_candidates_under_one_of_several_components():
    code = candidates_code(PipelineSettings("folder", component="second"), "The ", ["cat"], " sat.", component="second")
    assert 'separator="", component="second")' in code


def test_scores(settings, shared):
    names = run(score_code(settings, TEXTS, shared.name, shared.attr))
    with shared.use(settings.metrics, settings.words) as nlp:
        expected = list(nlp.pipe(TEXTS))
    for attribute in (shared.attr, f"{shared.attr}_word_l2r", f"{shared.attr}_rank"):
        shown = [[token._.get(attribute) for token in doc] for doc in names["docs"]]
        assert shown == [[pytest.approx(token._.get(attribute)) for token in doc] for doc in expected]
    assert list(names["table"]["text"]) == [token.text for doc in expected for token in doc]


@pytest.mark.parametrize("metric", [None, "word_l2r"])
def test_a_comparison(settings, shared, metric):
    code = compare_code(settings, *TEXTS, metric, shared.name, shared.attr)
    with shared.use(settings.metrics, settings.words) as nlp:
        expected = compare(nlp, *TEXTS, metric, attr=shared.attr)
    assert run(code)["comparison"].difference == pytest.approx(expected.difference)


def test_candidates(settings, shared):
    code = candidates_code(settings, "The ", ["cat", "house"], " sat.", shared.name, shared.attr)
    with shared.use(settings.metrics, settings.words) as nlp:
        expected = score_continuations(nlp, "The ", ["cat", "house"], " sat.", separator="")
    assert [c.score for c in run(code)["ranked"]] == [pytest.approx(c.score) for c in expected]


def test_docs_of_a_file(make_nlp, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    docs = list(make_nlp().pipe(TEXTS))
    DocBin(docs=docs, store_user_data=True).to_disk("scores.spacy")
    read = run(docs_code("scores.spacy"))["docs"]
    assert [doc._.pll for doc in read] == [doc._.pll for doc in docs]


@pytest.mark.parametrize(
    ("changes", "attribute", "value"),
    [
        ({"mask_spacing": 8}, "mask_spacing", 8),
        ({"mask_margin": 0}, "mask_margin", 0),
        ({"alternatives": 3}, "alternatives", 3),
        ({"words": "tokenizer"}, "words", "tokenizer"),
    ],
)
def test_settings_of_the_command_line(model_folder, changes, attribute, value):
    settings = PipelineSettings(str(model_folder("bert")), **changes)
    assert getattr(get_scorer(run(pipeline_code(settings))["nlp"]).settings, attribute) == value


def test_the_builtin_model_and_sentences():
    nlp = run(pipeline_code(PipelineSettings(spans="sents", precision="bfloat16")))["nlp"]
    assert nlp.pipe_names == ["sentencizer", "pll"]
    config = nlp.get_pipe_config("pll")
    assert config["get_spans"] == {"@span_getters": "spacy-pll.sent_spans.v1"}
    assert config["model"]["mixed_precision"] and config["model"]["name"] is None
    assert "spacy.require_gpu(1)" in pipeline_code(PipelineSettings(gpu_id=1))


@given(VALUES)
def test_literals_are_what_they_stand_for(value):
    assert eval(literal(value)) == value


def test_long_literals_take_several_lines():
    assert literal({"a": ["b"]}) == '{"a": ["b"]}'
    texts = ["A sentence that is rather long, so that not all fit into one line."] * 2
    assert literal(texts) == f'[\n    "{texts[0]}",\n    "{texts[0]}",\n]'


def test_the_code_is_plain(model_folder):
    code = score_code(PipelineSettings(metrics=("word_l2r",), words="spacy"), ["One.", "Two."])
    assert max(map(len, code.splitlines())) <= 100
    assert 'nlp = spacy.blank("en")' in code and '"@architectures"' not in code
    assert spacy.__name__ in code
