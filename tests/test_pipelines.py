"""`spacy_pll.pipelines`: from settings to a pipeline."""

import inspect
import json
import re
import shutil
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import spacy
import torch
from hypothesis import strategies as st
from spacy.tokens import Doc
from thinc.api import Config
from thinc.compat import has_cupy

from spacy_pll import PLLError, ScoringSettings, get_scorer, score, score_words
from spacy_pll.files import files_digest, folder_digest
from spacy_pll.pipelines import (
    SETTINGS,
    SPAN_GETTERS,
    PipelineSettings,
    describe_model,
    describe_scorer,
    make_pipeline,
    parse_settings,
    parse_value,
)

from .cli.conftest import run
from .conftest import BUILTIN, SENTENCES, build_transformer, get_tokenizer


@pytest.mark.parametrize("function", [score, score_words, make_pipeline, PipelineSettings])
def test_each_setting_is_shown_with_its_type_and_default(function):
    """To who presses Shift-Tab, and to completion, which know no more than the signature."""
    parameters = inspect.signature(function).parameters
    assert parameters.keys() >= SETTINGS.keys() and "settings" not in parameters
    assert not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    assert parameters["mask_margin"].annotation == int | None and parameters["mask_margin"].default is None
    defaults = {**vars(ScoringSettings()), **vars(PipelineSettings())}
    for name in SETTINGS.keys() - {"model", "metrics"}:
        assert parameters[name].default == defaults[name] and parameters[name].annotation == SETTINGS[name], name
    with pytest.raises(TypeError, match="Unknown setting 'mask_margn'. Similar: mask_margin"):
        function(*[[]] * (function in (score, score_words)), mask_margn=1)


@pytest.mark.skipif(has_cupy, reason="CuPy is installed")
def test_a_gpu_without_cupy():
    with pytest.raises(PLLError, match=r"The GPU 0 cannot be used: .* CuPy \(see .*docs/speed.md#gpu\), or leave"):
        make_pipeline(gpu_id=0)


def test_the_settings_reach_the_component(model_folder):
    settings = PipelineSettings(
        model=str(model_folder("bert")),
        metrics=("original", "word_l2r"),
        words="whitespace",
        spans="sents",
        precision="bfloat16",
        mask_spacing=3,
        keep_pieces=True,
        lang="de",
    )
    nlp = make_pipeline(settings)
    scorer = get_scorer(nlp)
    assert nlp.lang == "de" and nlp.pipe_names == ["sentencizer", "pll"]
    assert scorer.settings == ScoringSettings(["original", "word_l2r"], "whitespace", keep_pieces=True, mask_spacing=3)
    assert scorer.model.precision == "bfloat16" and scorer.model.loaded
    assert len(scorer.predictor.get_spans([nlp("Ein Satz. Noch einer.")])[0]) == 2


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"spans": "sent"}, "`spans` must be doc or sents or strided. It is 'sent'"),
        ({"precision": "bf16"}, "'bf16'"),
        ({"gpu_id": "0"}, "`gpu_id` must be a whole number, -1 or more. It is '0'"),
    ],
)
def test_settings_with_other_values_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        PipelineSettings(**setting)


def test_a_language_that_spacy_does_not_have():
    with pytest.raises(PLLError, match="`lang` is 'german'.*such as"):
        make_pipeline(lang="german")
    with pytest.raises(PLLError, match="'enn', .*Similar: nn, en."):
        make_pipeline(lang="enn")


def test_a_language_whose_tokenizer_needs_a_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pythainlp.tokenize", None)  # whether it is installed or not
    with pytest.raises(PLLError, match="for `lang='th'` needs a package that is missing: .*PyThaiNLP.* `lang='xx'`"):
        make_pipeline(lang="th")


@pytest.mark.cpu
def test_a_model_by_its_name_alone(model_folder, tmp_path):
    """What everyone types first. The config that is saved has the block."""
    folder = str(model_folder("bert"))
    expected = make_pipeline(folder, ["word_l2r", "original"])(SENTENCES[0])._.pll
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": folder, "metrics": ["word_l2r", "original"]})
    assert nlp(SENTENCES[0])._.pll == expected
    block = nlp.config["components"]["pll"]["model"]
    assert (
        block["@architectures"] == "spacy-pll.MaskedLM.v1" and block["name"] == folder and block["revision"] == "main"
    )
    for path in (tmp_path / "first", tmp_path / "second"):
        nlp.to_disk(path)
        nlp = spacy.load(path)
        assert nlp.config["components"]["pll"]["model"] == block and nlp(SENTENCES[0])._.pll == expected
    config = nlp.config.copy()
    config["components"]["pll"]["model"] = folder  # as in a file of one's own
    nlp = spacy.util.load_model_from_config(config)
    assert nlp.config["components"]["pll"]["model"] == block and nlp(SENTENCES[0])._.pll == expected


@pytest.mark.cpu
@pytest.mark.parametrize("name", ["builtin", "built-in", None])
def test_the_built_in_model_by_its_name(name):
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": name})
    assert nlp.config["components"]["pll"]["model"]["name"] is None
    assert nlp(SENTENCES[0])._.pll == make_pipeline(name)(SENTENCES[0])._.pll
    assert get_scorer(make_pipeline({"name": name})).model.describe() == get_scorer(nlp).model.describe()


def test_the_block_of_a_config_is_a_model(model_folder):
    folder = str(model_folder("bert"))
    nlp = make_pipeline({"name": folder, "tokenizer_config": {"model_max_length": 12}}, ["original"])
    assert get_scorer(nlp).model.load().max_length == 12
    causal = {"@architectures": "spacy-pll.CausalLM.v1", "name": folder}
    with pytest.raises(ValueError, match="sees what follows a piece"):
        make_pipeline(causal)


@pytest.fixture(scope="module")
def causal_folder(tmp_path_factory):
    import transformers

    folder, tokenizer = tmp_path_factory.mktemp("gpt2"), get_tokenizer("byte-level")
    config = transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=64)
    for saved in (transformers.GPT2LMHeadModel(config), tokenizer):
        saved.save_pretrained(folder)
    return str(folder)


def test_the_block_of_a_left_to_right_model(causal_folder, model_folder):
    expected = make_pipeline(causal_folder)(SENTENCES[0])._.pll
    block = {"name": causal_folder, "tokenizer_config": {"model_max_length": 32}}  # as in the docstring
    for settings in ({}, {"causal": True}, {"metrics": ["causal"]}):
        nlp = make_pipeline(block, **settings)
        assert nlp(SENTENCES[0])._.pll == expected and get_scorer(nlp).model.load().max_length == 32
    masked = {"name": str(model_folder("bert"))}
    with pytest.raises(ValueError, match="sees what follows a piece"):  # it is tried as one
        make_pipeline(masked, causal=True)
    block = {**masked, "@architectures": "spacy-pll.MaskedLM.v1"}
    with pytest.raises(
        ValueError, match="`causal` asks .*the block of the model has 'spacy-pll.MaskedLM.v1'. Leave out"
    ):
        make_pipeline(block, causal=True)
    for builtin in (None, {"name": "builtin"}):
        with pytest.raises(ValueError, match="`causal` asks .*the built-in one is a masked one. Leave out `causal`"):
            make_pipeline(builtin, causal=True)


def test_a_block_and_settings_that_contradict_it(model_folder):
    folder = str(model_folder("bert"))
    for name in ("builtin", folder):
        for block in ({"precision": "float32"}, {"precision": "tf32", "revision": "main"}):
            with pytest.raises(
                ValueError, match="`precision` is 'bfloat16', and the block .* has '(float|tf)32'. Leave"
            ):
                make_pipeline({"name": name, **block}, precision="bfloat16")
        with pytest.raises(ValueError, match="`precision` is 'float32', and the block .* has 'bfloat16'"):
            make_pipeline({"name": name, "mixed_precision": True}, precision="float32")
        for settings in ({"revision": "v2"}, {"model": {"name": name, "revision": "v2"}}):
            message = f"`revision` is 'v2', and '{name}' is no model on the Hugging Face hub. Leave out `revision`"
            with pytest.raises(ValueError, match=message):
                make_pipeline(**{"model": {"name": name}, **settings})
    assert get_scorer(make_pipeline({"name": folder, "precision": "float32"}, precision="float32")).model.loaded


def test_what_a_model_in_memory_or_a_pipeline_does_not_take(model_folder, make_nlp, tmp_path, monkeypatch):
    tokenizer = get_tokenizer("wordpiece")
    pair = build_transformer("bert", tokenizer), tokenizer
    monkeypatch.setattr(spacy, "require_gpu", lambda gpu_id: None)
    for settings in ({"revision": "v2"}, {"gpu_id": 0}):
        with pytest.raises(ValueError, match=f"`{[*settings][0]}` is .*in memory already, on .*. Leave out"):
            make_pipeline(pair, **settings)
    make_nlp("bert").to_disk(tmp_path)
    with pytest.raises(ValueError, match="`lang` is 'de', and the pipeline .* is in 'en'. Leave out `lang`"):
        make_pipeline(tmp_path, lang="de")


GIVEN = {
    "metrics": [["original", "word_l2r"], ["sentence_l2r"]],
    "words": ["whitespace", "piece"],
    "targets": ["t"],
    "sample_words": [0.5],
    "seed": [3],
    "units": ["u"],
    "keep_pieces": [True],
    "max_batch_tokens": [99],
    "mask_spacing": [3],
    "mask_margin": [0, 1],
    "alternatives": [2],
    "distribution": [True],
    "attr": ["mine"],
    "spans": ["sents", "strided"],
    "lang": ["de"],
    "precision": ["float32", "bfloat16", "tf32"],
    "revision": ["v2"],
    "causal": [True],
    "leading_space": ["word", "previous"],
    "threads": [2],
    "mixed_precision": [True],
    "tokenizer_config": [{"model_max_length": 40}],
    "transformer_config": [{"attn_implementation": "eager"}],
}
ONLY_OF_BLOCK = ("mixed_precision", "tokenizer_config", "transformer_config")
OF_BLOCK = ("precision", "revision", "leading_space", *ONLY_OF_BLOCK)
NOT_OF_MASKED = ("mask_spacing", "revision", "causal", "leading_space")
# Each has tests of its own: of what is scored, of several components, of a GPU, and of a file that is imported.
NOT_GIVEN = {"model", "component", "gpu_id", "code"}


def parts_of(given):
    """Those of the block `model`, and the others."""
    return ({k: v for k, v in given.items() if (k in OF_BLOCK) == is_block} for is_block in (True, False))


def by_block(folder, given):
    block, others = parts_of(given)
    return make_pipeline({"name": folder, **block}, **others)


def config_of(folder, given):
    block, others = parts_of(given)
    config = {key: value for key, value in others.items() if key not in ("lang", "spans", "causal", "threads")}
    torch.set_num_threads(others.get("threads", 1))
    if "spans" in others:
        config["get_spans"] = SPAN_GETTERS[others["spans"]]
    kind = "CausalLM" if given.get("causal") else "MaskedLM"
    return {**config, "model": {"@architectures": f"spacy-pll.{kind}.v1", "name": folder, **block}}


def by_component(folder, given):
    nlp = spacy.blank(given.get("lang", "en"))
    nlp.add_pipe("pll", config=config_of(folder, given))
    nlp.initialize()
    return nlp


def by_file(folder, given):
    nlp = spacy.blank(given.get("lang", "en"))
    block = {"factory": "pll", **config_of(folder, given)}
    text = Config({"nlp": {"lang": nlp.lang, "pipeline": ["pll"]}, "components": {"pll": block}}).to_str()
    nlp = spacy.util.load_model_from_config(Config().from_str(text), auto_fill=True)
    nlp.initialize()
    return nlp


def in_memory(folder, given):
    tokenizer = get_tokenizer("wordpiece")
    return make_pipeline((build_transformer("bert", tokenizer), tokenizer), **given)


@cache
def saved(folder):
    path = Path(f"{folder}-saved")
    make_pipeline(folder).to_disk(path)
    return path


def as_text(value):
    return "+".join(value) if isinstance(value, list) else str(value).lower()


def by_text(folder, given):
    return make_pipeline(parse_settings(",".join([folder, *(f"{name}={as_text(of)}" for name, of in given.items())])))


def by_lm_eval(folder, given):
    pytest.importorskip("lm_eval")
    from spacy_pll.lm_eval import PLL

    return PLL(folder, **{name: as_text(of) for name, of in given.items()}).nlp


WAYS = {
    "text": by_text,
    "lm-eval": by_lm_eval,
    "keywords": lambda folder, given: make_pipeline(folder, **given),
    "settings": lambda folder, given: make_pipeline(PipelineSettings(folder, **given)),
    "settings, then keywords": lambda folder, given: make_pipeline(PipelineSettings(folder), **given),
    "block": by_block,
    "block and keywords": lambda folder, given: make_pipeline({"name": folder}, **given),
    "component": by_component,
    "file": by_file,
    "in memory": in_memory,
    "saved pipeline": lambda folder, given: make_pipeline(saved(folder), **given),
    "pipeline": lambda folder, given: make_pipeline(make_pipeline(folder), **given),
}


def used_by(nlp):
    """What a pipeline uses, by the names of settings."""
    scorer = get_scorer(nlp)
    doc = Doc(nlp.vocab, ["a"] * 200, sent_starts=[i % 10 == 0 for i in range(200)])
    kinds = {1: "doc", 20: "sents", 2: "strided"}
    return {
        **vars(scorer.settings),
        "metrics": [*scorer.settings.metrics],
        "attr": scorer.attr,
        "spans": kinds[len(scorer.predictor.get_spans([doc])[0])],
        "lang": nlp.lang,
        "precision": scorer.model.load().forward.precision,
        "revision": scorer.model.revision,
        "causal": scorer.model.kind == "causal",
        "leading_space": getattr(scorer.model, "leading_space", None),
        "threads": torch.get_num_threads(),
        "mixed_precision": scorer.model.load().forward.precision == "bfloat16",
        "tokenizer_config": {"model_max_length": scorer.model.load().max_length},
        "transformer_config": {"attn_implementation": scorer.model.load().forward.model.config._attn_implementation},
    }


def test_all_settings_are_given():
    assert {*GIVEN} | NOT_GIVEN == {*SETTINGS, *ONLY_OF_BLOCK}


@pytest.mark.filterwarnings("ignore:bfloat16")
def test_the_block_of_a_pipeline_is_a_model(model_folder):
    """What it leaves open may be given beside it."""
    nlp = make_pipeline(str(model_folder("bert")))
    block = nlp.config["components"]["pll"]["model"]
    assert block["precision"] is None
    for given in ("float32", "bfloat16"):
        assert make_pipeline(block, precision=given).get_pipe("pll").model.precision == given
    with pytest.raises(ValueError, match="`precision` is 'float32', .* 'bfloat16'"):
        make_pipeline({**block, "mixed_precision": True}, precision="float32")


@pytest.fixture(autouse=True)
def same_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.filterwarnings("ignore:bfloat16")
@pytest.mark.parametrize("way", WAYS)
@hypothesis.settings(max_examples=hypothesis.settings.default.max_examples // 8)
@hypothesis.example([("causal", True)])
@hypothesis.example([("causal", True), ("leading_space", "previous")])
@hypothesis.given(
    st.lists(st.sampled_from([(name, value) for name, of in GIVEN.items() for value in of]), min_size=1, max_size=3)
)
def test_what_a_pipeline_was_given_is_what_it_uses_or_it_is_refused(model_folder, way, chosen):
    given = dict(chosen)
    try:
        nlp = WAYS[way](str(model_folder("bert")), given)
    except (ValueError, TypeError) as error:
        assert any(re.search(rf"\b{name}\b", str(error)) for name in given)
    else:
        used = used_by(nlp)
        assert {name: used[name] for name in given} == given


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:bfloat16")
@pytest.mark.parametrize("way", WAYS)
def test_settings_are_used_wherever_they_can_be(model_folder, way):
    """So that nothing passes because all is refused."""
    others = {
        "saved pipeline": ["lang"],
        "pipeline": ["lang", "precision"],
        "lm-eval": ["metrics", "targets", "units", "sample_words"],
    }.get(way, [])
    if way not in ("block", "component", "file"):
        others += ONLY_OF_BLOCK
    given = {name: of[-1] for name, of in GIVEN.items() if name not in (*NOT_OF_MASKED, *others)}
    given.update({"precision": "bfloat16"} if "precision" in given else {})
    given.update(metrics=["original", "word_l2r"] if "metrics" in given else ["original"])
    used = used_by(WAYS[way](str(model_folder("bert")), given))
    assert {name: used[name] for name in given} == given


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:bfloat16")
@pytest.mark.parametrize(
    "given",
    [
        *({"metrics": ["original"]}, {"words": "piece"}, {"mask_spacing": 2}, {"mask_margin": 0}),
        *({"spans": "sents"}, {"lang": "de"}, {"precision": "bfloat16"}),
    ],
)
def test_functions_and_commands_use_what_they_are_given(model_folder, tmp_path, given):
    """Scores are those of a pipeline with the settings, and other ones than without."""
    folder, text = str(model_folder("bert")), f"{SENTENCES[2]} {SENTENCES[1]} Am 3. Mai."
    expected = [token._.pll for token in make_pipeline(folder, **given)(text)]
    assert expected != [token._.pll for token in make_pipeline(folder)(text)]
    assert [token.score for token in score([text], folder, **given)[0].tokens] == expected
    (tmp_path / "texts.txt").write_text(text)
    values = {name: ",".join(value) if isinstance(value, list) else str(value) for name, value in given.items()}
    options = [part for name, value in values.items() for part in (f"--{name.replace('_', '-')}", value)]
    run("score", tmp_path / "texts.txt", tmp_path / "o.jsonl", "--model", folder, "--table", "tokens", *options)
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [row[f"pll_{given.get('metrics', ['word_l2r'])[0]}"] for row in rows] == pytest.approx(expected, abs=1e-5)


def test_a_pipeline_is_no_language_model(make_nlp, tmp_path):
    make_nlp("bert").to_disk(tmp_path)
    for model in (str(tmp_path), {"name": str(tmp_path)}):
        nlp = spacy.blank("en")
        nlp.add_pipe("pll", config={"model": model})
        with pytest.raises(ValueError, match="is a spaCy pipeline.*spacy.load"):
            nlp(SENTENCES[0])


def test_a_type_that_transformers_does_not_know(model_folder, tmp_path):
    folder = shutil.copytree(model_folder("bert"), tmp_path / "model")
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"model_type": "bert"', '"model_type": "foobert"'))
    message = "of the type 'foobert', which transformers .* does not know.*as `code`"
    with pytest.raises(ValueError, match=message) as caught:
        make_pipeline(str(folder))
    assert "sentencepiece" not in str(caught.value)
    code = tmp_path / "code.py"
    code.write_text("x = 1\n")
    with pytest.warns(UserWarning, match="code.py was imported, and it registers nothing"):
        with pytest.raises(ValueError, match=message):
            make_pipeline(str(folder), code=str(code))


def test_settings_that_are_none_stay_as_a_saved_pipeline_has_them(make_nlp, tmp_path):
    make_nlp("bert", metrics=["original"], words="whitespace", keep_pieces=True).to_disk(tmp_path)
    kept = get_scorer(make_pipeline(str(tmp_path)))
    assert (kept.settings.metrics, kept.settings.words, kept.settings.keep_pieces) == (
        ("original",),
        "whitespace",
        True,
    )
    changed = get_scorer(make_pipeline(str(tmp_path), metrics=["word_l2r"]))
    assert (changed.settings.metrics, changed.settings.words) == (("word_l2r",), "whitespace")


def test_a_saved_pipeline_may_have_the_name_of_a_package(make_nlp, tmp_path, monkeypatch):
    make_nlp("bert", metrics=["original"]).to_disk(tmp_path / "numpy")
    monkeypatch.chdir(tmp_path)
    assert get_scorer(make_pipeline("numpy")).settings.metrics == ("original",)


def test_a_model_folder_may_have_a_saved_pipeline_in_it(make_nlp, model_folder, tmp_path):
    folder = shutil.copytree(model_folder("bert"), tmp_path / "model")
    make_nlp("bert", metrics=["original"]).to_disk(folder / "pipeline")
    assert get_scorer(make_pipeline(str(folder))).settings.metrics == ("word_l2r",)


@pytest.fixture
def two(make_nlp, tmp_path):
    """A saved pipeline with two components, of which one has a metric of its own."""
    nlp = make_nlp("bert", metrics=["original"])
    make_nlp("roberta", nlp=nlp, name="second", attr="other").to_disk(tmp_path)
    return str(tmp_path)


def test_one_of_several_components_is_chosen_and_the_others_do_not_run(two):
    for problem, settings in (
        ("has 2 `pll` components", PipelineSettings(two)),
        ("has no `pll` component 'third'", PipelineSettings(two, component="third")),
    ):
        with pytest.raises(ValueError, match=f"{problem}. Set `component` to one of these: pll, second"):
            make_pipeline(settings)
    for name, attr in (("pll", "pll"), ("second", "other")):
        nlp = make_pipeline(two, component=name, words="whitespace")
        assert nlp.component_names == [name] and get_scorer(nlp).settings.words == "whitespace"
        assert [token._.get(attr) for token in nlp("A word.")] and list(nlp.config["components"]) == [name]
    with pytest.raises(ValueError, match="`component` .* 'builtin' is a lang"):
        make_pipeline(component="pll")


def test_a_component_that_is_disabled(two):
    nlp = spacy.load(two, disable=["second"])
    nlp.to_disk(two)
    assert make_pipeline(two).pipe_names == ["pll"]
    assert make_pipeline(two, component="second").pipe_names == ["second"]


def test_a_pipeline_without_the_component():
    with pytest.raises(ValueError, match="has no `pll` component, only \\['sentencizer'\\]. Add one"):
        nlp = spacy.blank("en")
        nlp.add_pipe("sentencizer")
        get_scorer(nlp)


def test_no_gpu_is_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(spacy, "require_gpu", asked.append)
    make_pipeline()
    make_pipeline(gpu_id=1)
    assert asked == [1]


def test_a_model_is_identified_by_its_files_or_its_commit(model_folder, tmp_path):
    folder = model_folder("bert")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert describe_model(str(folder)) == {"folder": str(folder), "digest": files_digest(files)}
    assert describe_model(None).keys() == {"folder", "digest"} and describe_model(None)["folder"] is None
    assert (
        describe_model(None)["digest"]
        == describe_model(str(BUILTIN))["digest"]
        != describe_model(str(folder))["digest"]
    )
    assert describe_model("some/model", "c0ffee") == {"hub": "some/model", "commit": "c0ffee"}


def test_a_package_is_identified_by_its_version_and_its_files(tmp_path, monkeypatch):
    for name in ("en_tiny", "no_pipeline"):
        (tmp_path / f"{name}-1.2.3.dist-info").mkdir()
        (tmp_path / f"{name}-1.2.3.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1.2.3\n")
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    data = tmp_path / "en_tiny" / "en_tiny-1.2.3"
    data.mkdir()
    (data / "config.cfg").touch()
    monkeypatch.syspath_prepend(tmp_path)
    about = {"package": "en_tiny", "version": "1.2.3"}
    assert describe_model("en_tiny") == {**about, "digest": folder_digest(data)}
    (data / "weights").write_text("of an installation that is edited")
    assert describe_model("en_tiny") == {**about, "digest": folder_digest(data)}
    assert describe_model("no_pipeline", "c0ffee") == {"hub": "no_pipeline", "commit": "c0ffee"}
    (tmp_path / "here" / "en_tiny").mkdir(parents=True)
    (tmp_path / "here" / "en_tiny" / "config.cfg").write_text("a folder of that name, which is what is loaded")
    monkeypatch.chdir(tmp_path / "here")
    assert describe_model("en_tiny") == {"folder": "en_tiny", "digest": folder_digest(Path("en_tiny"))}


def test_scores_are_those_of_a_pipeline_made_by_hand(model_folder, make_nlp):
    nlp, expected = make_pipeline(PipelineSettings(str(model_folder("bert")))), make_nlp("bert")
    for text in SENTENCES:
        assert nlp(text)._.pll == pytest.approx(expected(text)._.pll, abs=1e-5)


def test_what_the_model_expected_is_kept_as_the_settings_or_the_saved_pipeline_say(model_folder, make_nlp, tmp_path):
    model = str(model_folder("bert"))
    new = get_scorer(make_pipeline(model, alternatives=2, distribution=True))
    assert (new.settings.alternatives, new.settings.distribution) == (2, True)
    make_nlp("bert", alternatives=3, distribution=True).to_disk(tmp_path)
    kept = get_scorer(make_pipeline(str(tmp_path)))
    assert (kept.settings.alternatives, kept.settings.distribution) == (3, True)
    changed = get_scorer(make_pipeline(str(tmp_path), alternatives=0, distribution=False))
    assert (changed.settings.alternatives, changed.settings.distribution) == (0, False)


def test_a_mistyped_key_in_the_config_of_a_saved_pipeline(make_nlp, tmp_path):
    """The message has the key and those like it, and not the whole block."""
    make_nlp("bert").to_disk(tmp_path)
    config = (tmp_path / "config.cfg").read_text()
    for key, wrong, block in (("mask_margin", "mask_margn", "pll"), ("revision", "revison", "model")):
        (tmp_path / "config.cfg").write_text(config.replace(f"\n{key} =", f"\n{wrong} ="))
        with pytest.raises(
            ValueError, match=rf"^The config .* is not valid. .*{block} -> {wrong}: .*Similar: {key}"
        ) as error:
            make_pipeline(PipelineSettings(str(tmp_path)))
        assert len(str(error.value)) < 300 and "keep_pieces" not in str(error.value)


def test_settings_come_one_by_one_or_together(model_folder):
    model = model_folder("bert")
    nlp = make_pipeline(model, "original", units="u", targets="t", max_batch_tokens=99, attr="mine", keep_pieces=True)
    scorer = get_scorer(nlp)
    assert scorer.attr == "mine"
    assert scorer.settings == ScoringSettings("original", units="u", targets="t", max_batch_tokens=99, keep_pieces=True)
    settings = PipelineSettings(model, "original", units="u", spans="strided")
    assert settings.scoring == {"metrics": "original", "units": "u"}
    changed = get_scorer(make_pipeline(settings, ["word_l2r"], mask_margin=0)).settings
    assert changed == ScoringSettings(["word_l2r"], units="u", mask_margin=0)
    assert settings == PipelineSettings(**vars(settings)) == settings.changed() != settings.changed(units=None)
    with pytest.raises(
        TypeError, match="Unknown setting 'unit'. Similar: units. The settings are: model, component, .*, units, "
    ):
        make_pipeline(model, unit="u")
    for wrong in ({"mask_margin": -1}, {"metrics": ["nonesuch"]}, {"words": "letters"}):  # before a model is loaded
        with pytest.raises(ValueError, match="must be|Unknown"):
            PipelineSettings("no such model", **wrong)


def test_none_is_exact_where_a_setting_can_be_none_and_says_nothing_elsewhere(make_nlp, tmp_path):
    make_nlp("bert", mask_margin=1, words="whitespace").to_disk(tmp_path)
    kept = get_scorer(make_pipeline(tmp_path, metrics=None, words=None)).settings
    assert (kept.mask_margin, kept.words) == (1, "whitespace")
    assert get_scorer(make_pipeline(tmp_path, mask_margin=None)).settings.mask_margin is None


def test_another_pipeline_on_the_same_model(make_nlp, tmp_path):
    nlp = make_nlp("bert")
    nlp.add_pipe("sentencizer", first=True)
    make_nlp("roberta", nlp=nlp, name="second", attr="other")
    nlp.add_pipe("doc_cleaner", last=True)
    nlp.disable_pipe("doc_cleaner")
    expected, config = nlp(SENTENCES[0]), nlp.config
    varied = make_pipeline(nlp, ["original"], component="second", attr="mine", mask_spacing=4)
    assert varied.config["components"]["second"]["attr"] == "mine" != config["components"]["second"]["attr"]
    assert varied.pipe_names == ["sentencizer", "second"] and varied.disabled == ["doc_cleaner"]
    assert get_scorer(varied).model is get_scorer(nlp, "second").model
    doc = varied(SENTENCES[0])
    assert doc._.mine < 0 and doc._.other is doc._.pll is None and doc.has_annotation("SENT_START")
    varied.to_disk(tmp_path)
    saved = spacy.load(tmp_path)
    assert saved(SENTENCES[0])._.mine == doc._.mine and get_scorer(saved).settings == get_scorer(varied).settings
    again = nlp(SENTENCES[0])
    assert (again._.pll, again._.other) == (expected._.pll, expected._.other)
    assert nlp.pipe_names == ["sentencizer", "pll", "second"] and "mine" not in nlp.config.to_str()


def test_values_from_texts():
    for name, text, value in (
        ("units", "u", "u"),
        ("max_batch_tokens", "9", 9),
        ("keep_pieces", "", True),
        ("distribution", "false", False),
        ("metrics", "a+b", ["a", "b"]),
        ("words", "tokenizer", "tokenizer"),
        ("gpu_id", "1", 1),
    ):
        assert parse_value(text, SETTINGS[name]) == value
    for name, text in (("max_batch_tokens", "nine"), ("keep_pieces", "perhaps"), ("words", "letters")):
        with pytest.raises(ValueError, match="It must be (a whole number|true or false|spacy or tokenizer or whites)"):
            parse_value(text, SETTINGS[name])


def test_the_number_of_threads_is_set_if_it_is_given(model_folder, monkeypatch):
    given = []
    monkeypatch.setattr("torch.set_num_threads", given.append)
    make_pipeline(str(model_folder("bert")))
    assert given == []
    make_pipeline(str(model_folder("bert")), threads=3)
    assert given == [3]
    make_pipeline(make_pipeline(str(model_folder("bert"))), threads=2)
    assert given == [3, 2]
    with pytest.raises(ValueError, match="`threads` must be 1 or more. It is 0."):
        make_pipeline(str(model_folder("bert")), threads=0)


def test_a_component_that_is_disabled_is_not_the_first(make_nlp):
    nlp = make_nlp("bert", attr="one")
    nlp = make_nlp("bert", nlp=nlp, name="second", attr="two")
    assert get_scorer(nlp).name == "pll"
    nlp.disable_pipe("pll")
    assert get_scorer(nlp).name == "second" and get_scorer(nlp, "pll").name == "pll"


def test_what_is_read_as_one_context_can_be_changed(make_nlp):
    nlp = make_nlp("bert")
    nlp.add_pipe("sentencizer", first=True)
    sentences = ["The traveler lost it.", "The cat sleeps."]
    whole, alone = nlp(" ".join(sentences))._.pll, sum(nlp(text)._.pll for text in sentences)
    varied = make_pipeline(nlp, spans="sents")
    assert varied(" ".join(sentences))._.pll == pytest.approx(alone, abs=1e-4) != pytest.approx(whole, abs=1e-2)
    assert varied.config["components"]["pll"]["get_spans"] == SPAN_GETTERS["sents"]
    assert nlp(" ".join(sentences))._.pll == pytest.approx(whole, abs=1e-4)  # it stays as it is


@pytest.mark.parametrize("name", ["model", "component", "revision", "lang", "attr", "code"])
def test_a_setting_that_is_empty_is_no_default(name):
    """A variable of the shell that is not set: the built-in model answered in the place of another one."""
    with pytest.raises(PLLError, match=f"`{name}` is empty"):
        make_pipeline(**{name: " " if name == "lang" else ""})
    with pytest.raises(ValueError, match="`name` is empty"):
        make_pipeline({"name": ""})


def test_weights_that_a_saved_pipeline_does_not_hold_are_part_of_what_it_is(model_folder, tmp_path):
    """The model may be trained on between two runs: the folder of the pipeline stays as it is."""
    model, saved = tmp_path / "model", str(tmp_path / "saved")
    shutil.copytree(model_folder("bert"), model)
    make_pipeline(str(model)).to_disk(saved, exclude=["pll"])
    settings = PipelineSettings(saved)
    before, same = (describe_scorer(make_pipeline(settings), settings) for _ in range(2))
    assert before == same
    for path in model.glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\0")
    assert describe_scorer(make_pipeline(settings), settings) != before


@pytest.mark.parametrize("linked", ["saved", "saved/pll", "saved/pll/model"])
def test_weights_behind_links_are_part_of_what_a_pipeline_is(make_nlp, tmp_path, linked):
    """They were in no digest, so a run that went on mixed the scores of two models."""
    saved, moved, found = tmp_path / "saved", tmp_path / "elsewhere" / linked, set()
    make_nlp("bert").to_disk(saved)
    shutil.copytree(tmp_path / linked, moved)
    shutil.rmtree(tmp_path / linked)
    (tmp_path / linked).symlink_to(moved, target_is_directory=True)
    settings = PipelineSettings(str(saved))
    for last in (b"\0\0", b"\0\1"):
        (weights,) = moved.rglob("*.safetensors")
        weights.write_bytes(weights.read_bytes()[:-2] + last)
        found.add(describe_scorer(make_pipeline(settings), settings)["weights"]["digest"])
    assert len(found) == 2


NUMBERS = {"mask_margin": np.int64(1), "sample_words": np.float64(0.5), "alternatives": np.int32(2)}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_numpy_are_pythons_own(model_folder, name):
    nlp = make_pipeline(str(model_folder("bert")), **{name: NUMBERS[name]})
    value = getattr(get_scorer(nlp).settings, name)
    assert value == NUMBERS[name] and type(value) in (int, float)
    json.dumps(nlp.config["components"]["pll"])  # as configs and manifests have it


WITH_DEFAULTS = {**vars(ScoringSettings()), **{one.name: one.default for one in fields(PipelineSettings)}}


@pytest.mark.parametrize("name", [name for name in SETTINGS if WITH_DEFAULTS[name] is not None])
def test_a_setting_that_cannot_be_none_has_its_default_then(name):
    assert PipelineSettings(**{name: None}) == PipelineSettings()


def test_a_pipeline_with_a_component_that_nothing_registered(model_folder, tmp_path):
    make_pipeline(str(model_folder("bert"))).to_disk(tmp_path)
    config = (tmp_path / "config.cfg").read_text().replace('["pll"]', '["shout","pll"]')
    (tmp_path / "config.cfg").write_text(f'{config}\n[components.shout]\nfactory = "shout"\n')
    with pytest.raises(PLLError, match=r"E002.*'shout'.*\(en\)\. Give the Python file that registers it as `code`\.$"):
        make_pipeline(str(tmp_path))
