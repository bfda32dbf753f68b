"""One of several `pll` components: `make_pipeline(nlp, component=NAME)` chooses it, for all that takes a pipeline."""

import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

import spacy_pll
from spacy_pll import Choice, Option, Unigrams, Variant, get_scorer, make_pipeline
from spacy_pll.proteins.assays import Assay

from ..conftest import SENTENCES, get_tokenizer
from ..protein_models import PROTEIN

TEXTS = [SENTENCES[0], SENTENCES[2], "", "The souvenir travels."]
PAIRS = [("The souvenir travels.", "The souvenir travel."), ("It lost.", "It losts.")]
CHOICES = [Choice([Option(text, "The traveler") for text in ("lost it.", "travels.")])] * 2
NBEST = [
    {"hypotheses": [{"text": text, "score": -1.0} for text in pair], "reference": pair[0], "context": "So:"}
    for pair in PAIRS
]
SEQUENCE, MUTANTS = PROTEIN[:8], ["M1A", "K2R:T3A", "A4G"]


def suite(folder):
    path = folder / "suite.csv"
    path.write_text("sentence,label\nThe souvenir travels.,1\nThe souvenir travel.,0\n")
    return spacy_pll.read_suite(str(path), "acceptability")


def slor(nlp, folder):
    path = folder / "unigrams.json"
    path.write_text(json.dumps(Unigrams.count(get_tokenizer("byte-level").backend_tokenizer, TEXTS).to_json()))
    doc = make_pipeline(nlp, keep_pieces=True)(TEXTS[0])
    return spacy_pll.normalise(doc, "slor", spacy_pll.load_unigrams(nlp, path), attr="other")


def assays(nlp, folder):
    scored = spacy_pll.score_assays(nlp, [Assay("a", SEQUENCE, [Variant(one) for one in MUTANTS])], folder)
    return [one.path.read_text() for one in scored]


def agreement(nlp, folder):
    return vars(spacy_pll.agree(nlp, make_pipeline(nlp, mask_margin=0), TEXTS).word)


WAYS = {
    "nlp": lambda nlp, folder: [nlp(text) for text in TEXTS],
    "score": lambda nlp, folder: list(spacy_pll.score(TEXTS, nlp)),
    "score_docs": lambda nlp, folder: list(spacy_pll.score_docs(nlp, TEXTS, batch_size=2)),
    "score_words": lambda nlp, folder: spacy_pll.score_words(
        [{"word": word} for word in TEXTS[0].split()], nlp, log_frequency=False
    ),
    "score_continuations": lambda nlp, folder: spacy_pll.score_continuations(nlp, "The traveler", ["lost", "travels"]),
    "slots": lambda nlp, folder: spacy_pll.slots(nlp, ["The ___ lost it."], ["traveler", "souvenir"]),
    "words for slots": lambda nlp, folder: spacy_pll.slots(nlp, ["The ___ lost it."], top=2),
    "compare": lambda nlp, folder: vars(spacy_pll.compare(nlp, *PAIRS[0])),
    "compare_pairs": lambda nlp, folder: [vars(one) for one in spacy_pll.compare_pairs(nlp, PAIRS)],
    "log_probability_bounds": lambda nlp, folder: spacy_pll.log_probability_bounds(nlp, [*TEXTS, ("lost.", "It ", "")]),
    "normalise": slor,
    "masked_texts": lambda nlp, folder: spacy_pll.visualize.masked_texts(nlp, TEXTS[0]),
    "minimal_pairs": lambda nlp, folder: spacy_pll.minimal_pairs(nlp, PAIRS).scores,
    "several scorers": lambda nlp, folder: spacy_pll.minimal_pairs({"it": nlp, "again": nlp}, PAIRS).scores,
    "choices": lambda nlp, folder: spacy_pll.choices(nlp, CHOICES).scores,
    "score_suite": lambda nlp, folder: spacy_pll.score_suite(nlp, suite(folder)).scores,
    "rescore": lambda nlp, folder: spacy_pll.rescore(nlp, NBEST, 0.5),
    "tune_rescoring": lambda nlp, folder: spacy_pll.tune_rescoring(nlp, NBEST),
    "perplexity": lambda nlp, folder: spacy_pll.perplexity(nlp, TEXTS),
    "window_perplexities": lambda nlp, folder: spacy_pll.window_perplexities(nlp, TEXTS, 2),
    "agree": agreement,
    "compare_margins": lambda nlp, folder: spacy_pll.compare_margins(nlp, TEXTS, [0]).comparisons[0].word,
    "variants": lambda nlp, folder: spacy_pll.variants(nlp, SEQUENCE, MUTANTS).scores,
    "score_assays": assays,
}
OF_PROTEINS = {"variants", "score_assays"}
OF_SETTINGS = {"make_pipeline", "PipelineSettings", "get_scorer", "score", "score_words"}  # which have it still


def leaves(value):
    """All numbers and texts in it; of docs and spans those of their tokens."""
    if isinstance(value, Doc | Span):
        return leaves([value.text, value._.other, value._.other_pieces, *(token._.other for token in value)])
    if is_dataclass(value):
        return leaves([getattr(value, one.name) for one in fields(value)])
    if isinstance(value, Mapping):
        return leaves([*value.items()])
    if isinstance(value, np.ndarray):
        return leaves(value.tolist())
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [value]
    if hasattr(value, "to_dict"):  # a data frame
        return leaves(value.to_dict())
    return [leaf for one in value for leaf in leaves(one)]


@pytest.fixture(scope="module")
def models(model_folder, protein_folder):
    """The folders of two models for texts, and of two for proteins: of the component, and of the others beside it."""
    return {
        False: [model_folder("roberta"), model_folder("bert")],
        True: [protein_folder("esm"), protein_folder("bert")],
    }


def add(nlp, name, attr, folder, metrics):
    model = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(folder)}
    nlp.add_pipe("pll", name, config={"model": model, "metrics": [metrics], "attr": attr})


@pytest.mark.parametrize("way", WAYS)
def test_numbers_are_those_of_a_pipeline_with_it_alone(way, models, tmp_path_factory):
    own, others = models[way in OF_PROTEINS]
    alone = spacy.blank("en")
    add(alone, "mine", "other", own, "word_l2r")
    expected = leaves(WAYS[way](alone, tmp_path_factory.mktemp("alone")))
    assert any(isinstance(one, float) for one in expected) or way == "score_assays"

    @settings(max_examples=max(3, settings().max_examples // 7))
    @given(place=st.integers(0, 2), disabled=st.sets(st.sampled_from(["mine", "a", "b"])), twice=st.booleans())
    def check(place, disabled, twice):
        nlp = spacy.blank("en")
        names = ["a", "b"]
        names.insert(place, "mine")
        for name in names:
            add(nlp, name, *(("other", own, "word_l2r") if name == "mine" else (name, others, "original")))
        for name in disabled:
            nlp.disable_pipe(name)
        chosen = make_pipeline(nlp, component="mine")
        assert get_scorer(chosen).name == "mine" and chosen.pipe_names == ["mine"]
        if twice:
            chosen = make_pipeline(chosen, component="mine")
        found = leaves(WAYS[way](chosen, tmp_path_factory.mktemp("chosen")))
        assert found == [pytest.approx(one, abs=1e-4, nan_ok=True) for one in expected]
        assert nlp.pipe_names == [name for name in names if name not in disabled]

    check()


def test_what_takes_a_pipeline_is_here_and_has_no_other_way_to_choose():
    public = {name: getattr(spacy_pll, name) for name in spacy_pll.__all__}
    public |= {name: one for name, one in vars(spacy_pll.visualize).items() if inspect.isfunction(one)}
    functions = {name: inspect.signature(one).parameters for name, one in public.items() if callable(one)}
    assert {name for name, parameters in functions.items() if "component" in parameters} == OF_SETTINGS
    given = {name for name, parameters in functions.items() if "nlp" in parameters} | {"agree"}
    assert given - {"get_scorer", "load_unigrams", "PLLScorer"} <= WAYS.keys()
    for name in ("perplexity", "slots", "compare"):
        with pytest.raises(TypeError, match="unexpected keyword argument 'component'"):
            public[name](spacy.blank("en"), ["A ___."], ["word"], component="pll")


def test_no_component_has_the_name(make_nlp):
    with pytest.raises(ValueError, match="no `pll` component 'third', only \\['pll'\\]"):
        make_pipeline(make_nlp("bert"), component="third")
