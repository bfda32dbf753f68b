"""The options for the settings of the component: made from the settings, and given on to it."""

import re
from dataclasses import fields

import pytest

import spacy_pll
from spacy_pll import PLLError, WordTable, score_words
from spacy_pll.corpus.records import FileOptions
from spacy_pll.pipelines import SETTINGS, PipelineSettings
from spacy_pll.settings import ScoringSettings, describe_settings

from .conftest import COMMANDS, run


def options(command):
    return {
        parameter.name: parameter for parameter in COMMANDS[command].params if parameter.param_type_name == "option"
    }


def test_each_setting_is_an_option_whose_help_is_its_description():
    found = options("score")
    assert list(SETTINGS) == [name for name in found if name in SETTINGS]
    for cls in (PipelineSettings, ScoringSettings):
        for name, text in describe_settings(cls).items():
            if name != "scoring":
                assert found[name].help.startswith(text[:20]), name
                assert not found[name].show_default
    assert "--max-batch-tokens" in run("show", "a", "--max-batch-tokens", 0, code=2).output
    assert found["mask_margin"].help.endswith("not together with --mask-spacing. [default: exact scores] (0 or more)")
    assert found["words"].help.endswith("such as proteins). [default: spacy]")
    assert found["metrics"].help.endswith("[default: word_l2r]")


@pytest.mark.parametrize(
    ("command", "source", "n"), [("render", FileOptions, 5), ("score", WordTable, 4), ("words", score_words, 6)]
)
def test_other_options_say_what_docstrings_say(command, source, n):
    found, texts = options(command), describe_settings(source)
    said = [name for name in texts if name in found and texts[name].partition(" None:")[0][:40] in found[name].help]
    assert len(said) == n and not [name for name in said if "None:" in found[name].help]
    assert options("score")["marked"].secondary_opts == []


@pytest.mark.parametrize(
    ("command", "function", "names"),
    [
        ("pairs", spacy_pll.read_pairs, ["good", "bad", "sentence", "label", "item", "first"]),
        ("choices", spacy_pll.read_choices, ["context", "options", "label", "labels", "after", "reading"]),
        ("choices", spacy_pll.choices, ["shared_pieces"]),
        ("variants", spacy_pll.variants, ["method", "others", "offset", "u_as_t"]),
        ("ppl", spacy_pll.perplexity, ["n_passes"]),
    ],
)
def test_options_for_arguments_are_described_as_these_are(command, function, names):
    found, texts = options(command), describe_settings(function)
    for name in names:
        start = re.split("[`.:]", texts[name])[0]
        assert found[name].help.startswith(start) and "`" not in found[name].help, name
        assert found[name].opts == [f"--{name.replace('_', '-')}"] and not found[name].secondary_opts
    if command == "pairs":
        assert found["item"].help == (
            "With --sentence: columns that have the same values in the two rows of a pair, and in no others. [default: "
            "the two rows follow one another]"
        )
        assert found["label"].metavar == "COLUMN[=VALUE]"


def test_what_says_nothing_about_whole_texts_is_no_option_of_evaluations():
    of_tokens = {"alternatives", "distribution", "keep_pieces", "attr"}
    for command in ("pairs", "ppl", "rescore"):
        assert not of_tokens & set(options(command)) and {"units", "max_batch_tokens"} <= set(options(command))


@pytest.fixture
def calls(monkeypatch):
    """The settings with which `pll show` makes pipelines."""
    from spacy_pll.cli import show

    made = []

    def make(settings, **changes):
        made.append(settings)
        raise PLLError("stop")

    monkeypatch.setattr(show, "make_pipeline", make)
    return made


def test_only_what_is_given_is_a_setting(calls):
    run("show", "a", fails=True)
    given = ("--units", "u", "--targets", "t", "--max-batch-tokens", 9, "--no-distribution", "--attr", "mine")
    run("show", "a", *given, "--metrics", "original,word_l2r", fails=True)
    assert calls[0] == PipelineSettings()
    scoring = {"units": "u", "targets": "t", "max_batch_tokens": 9, "distribution": False}
    assert calls[1] == PipelineSettings(attr="mine", metrics=["original", "word_l2r"], **scoring)
    assert {field.name for field in fields(ScoringSettings)} >= set(calls[1].scoring)


def test_settings_that_do_not_go_together_are_a_message():
    result = run("show", "a", "--mask-margin", 1, "--mask-spacing", 8, fails=True)
    assert "--mask-margin (1) and --mask-spacing (8)" in result.unwrapped_stderr


def test_the_spans_of_docs_and_names_of_columns(tmp_path, model_folder):
    import spacy
    from spacy.tokens import DocBin

    doc = spacy.blank("en")("The traveler lost the souvenir.")
    doc.spans["here"] = [doc[3:5]]
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "in.spacy")
    common = ("--model", model_folder("bert"), "--attr", "mine", "--table", "tokens")
    for name in ("plain", "targets", "units"):
        option = [] if name == "plain" else [f"--{name}", "here"]
        run("score", tmp_path / "in.spacy", tmp_path / f"{name}.csv", *common, *option)
    plain, targets, units = ((tmp_path / f"{name}.csv").read_text() for name in ("plain", "targets", "units"))
    assert "mine_word_l2r" in plain and len({plain, targets, units}) == 3
    # A wordpiece record is kept in .spacy files on request.
    for option in ([], ["--keep-pieces"]):
        run("score", tmp_path / "in.spacy", tmp_path / "out.spacy", *common[:4], *option, "--force")
        [scored] = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab)
        [record] = [of for key, of in scored.user_data.items() if key[1] == "mine_data"]
        assert ("pieces" in record) == bool(option)
