"""`spacy_pll.pipelines`: from settings to a pipeline."""

import shutil
import sys

import pytest
import spacy

from spacy_pll.component import get_scorer
from spacy_pll.errors import PLLError
from spacy_pll.files import files_digest
from spacy_pll.language_model import BUILTIN
from spacy_pll.pipelines import (
    SETTINGS,
    SPAN_GETTERS,
    PipelineSettings,
    describe_model,
    make_pipeline,
    parse_value,
)
from spacy_pll.settings import ScoringSettings

from .conftest import SENTENCES


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
    [({"spans": "sent"}, "`spans` must be doc or sents or strided. It is 'sent'"), ({"precision": "bf16"}, "'bf16'")],
)
def test_settings_with_other_values_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        PipelineSettings(**setting)


def test_a_language_that_spacy_does_not_have():
    with pytest.raises(PLLError, match="`lang` is 'german', and spaCy has no such language. Set it to a code, such as"):
        make_pipeline(lang="german")
    with pytest.raises(PLLError, match="'enn', and spaCy has no such language. Similar: nn, en."):
        make_pipeline(lang="enn")


def test_a_language_whose_tokenizer_needs_a_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pythainlp.tokenize", None)  # whether it is installed or not
    with pytest.raises(PLLError, match="for `lang='th'` needs a package that is missing: .*PyThaiNLP.* `lang='xx'`"):
        make_pipeline(lang="th")


def test_a_model_by_its_name_alone(model_folder, tmp_path):
    """What everyone types first. The config that is saved has the block."""
    folder = str(model_folder("bert"))
    expected = make_pipeline(folder)(SENTENCES[0])._.pll
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


def test_a_pipeline_is_no_language_model(make_nlp, tmp_path):
    make_nlp("bert").to_disk(tmp_path)
    for model in (str(tmp_path), {"name": str(tmp_path)}):
        nlp = spacy.blank("en")
        nlp.add_pipe("pll", config={"model": model})
        with pytest.raises(ValueError, match="is a spaCy pipeline, not a language model. Load it with spacy.load"):
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
    assert (kept.settings.metrics, kept.settings.words, kept.settings.keep_pieces) == (["original"], "whitespace", True)
    changed = get_scorer(make_pipeline(str(tmp_path), metrics=["word_l2r"]))
    assert (changed.settings.metrics, changed.settings.words) == (["word_l2r"], "whitespace")


def test_a_saved_pipeline_may_have_the_name_of_a_package(make_nlp, tmp_path, monkeypatch):
    make_nlp("bert", metrics=["original"]).to_disk(tmp_path / "numpy")
    monkeypatch.chdir(tmp_path)
    assert get_scorer(make_pipeline("numpy")).settings.metrics == ["original"]


def test_a_model_folder_may_have_a_saved_pipeline_in_it(make_nlp, model_folder, tmp_path):
    folder = shutil.copytree(model_folder("bert"), tmp_path / "model")
    make_nlp("bert", metrics=["original"]).to_disk(folder / "pipeline")
    assert get_scorer(make_pipeline(str(folder))).settings.metrics == ["word_l2r"]


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
    with pytest.raises(ValueError, match="`component` names a component of a spaCy pipeline, and 'builtin' is a lang"):
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


def test_a_package_is_identified_by_its_version(tmp_path, monkeypatch):
    for name in ("en_tiny", "no_pipeline"):
        (tmp_path / f"{name}-1.2.3.dist-info").mkdir()
        (tmp_path / f"{name}-1.2.3.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1.2.3\n")
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "en_tiny" / "en_tiny-1.2.3").mkdir()
    (tmp_path / "en_tiny" / "en_tiny-1.2.3" / "config.cfg").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert describe_model("en_tiny") == {"package": "en_tiny", "version": "1.2.3"}
    assert describe_model("no_pipeline", "c0ffee") == {"hub": "no_pipeline", "commit": "c0ffee"}


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
