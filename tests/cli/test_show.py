import pytest

from .conftest import run


def test_prints_a_table_for_each_text(model_folder):
    result = run("show", "The traveler lost  it.", "", "Bad \udcff byte", "--model", model_folder("bert"))
    lines = result.stdout.splitlines()
    rows = {line.split()[0]: line for line in lines if line.strip()}
    assert float(rows["traveler"].split()[-1]) < 0
    assert sum("pieces" in line and "wordpieces" not in line for line in lines) == 3
    assert "Bad" in result.stdout and "PPPL" in result.stdout


def test_the_name_of_a_file_is_shown_with_a_warning(model_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sentences.csv").write_text("text\nA text.\n")
    with pytest.warns(UserWarning, match="'sentences.csv' is read as a text.*pll score FILE"):
        result = run("show", "A text.", "sentences.csv", "--model", model_folder("bert"))
    assert result.stdout.count("PPPL") == 2


def test_what_has_no_wordpiece_has_no_score(model_folder):
    lines = run("show", "\u200b", "--distribution", "--model", model_folder("bert")).stdout.splitlines()
    assert any("0 pieces" in line for line in lines) and not any("0.00" in line for line in lines)


def test_metrics_are_columns(model_folder):
    result = run("show", "--metrics", "word_l2r,original", "The traveler", "--model", model_folder("bert"))
    twice = ("--metrics", "word_l2r", "--metrics", "original")
    assert run("show", *twice, "The traveler", "--model", model_folder("bert")).stdout == result.stdout
    assert "pll_word_l2r   pll_original" in result.stdout


def test_a_spacy_pipeline_with_its_own_settings(make_nlp, tmp_path):
    make_nlp("bert", attr="tiny", metrics=["original", "whole_word"]).to_disk(tmp_path / "pipeline")
    result = run("show", "The traveler", "--model", tmp_path / "pipeline")
    assert "tiny_original   tiny_whole_word" in result.stdout
    result = run("show", "The traveler", "--model", tmp_path / "pipeline", "--metrics", "causal", fails=True)
    assert "needs a causal language model" in result.unwrapped_stderr
    result = run("show", "The traveler", "--model", tmp_path / "pipeline", "--metrics", "word_l2r")
    assert "tiny_word_l2r\n" in result.stdout


def test_a_spacy_pipeline_with_two_components(make_nlp, tmp_path):
    make_nlp("roberta", nlp=make_nlp("bert"), name="second", attr="other").to_disk(tmp_path)
    result = run("show", "A word.", "--model", tmp_path, fails=True)
    assert "has 2 `pll` components. Set --component to one of these: pll, second" in result.unwrapped_stderr
    header = [
        run("show", "A word.", "--model", tmp_path, "--component", name).stdout.split()[2] for name in ("pll", "second")
    ]
    assert header == ["pll_word_l2r", "other_word_l2r"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--metrics", "nope"), "Set --metrics to a list of these"),
        (("--metrics", "causal"), "Set --metrics to some of these"),
        (("--metrics", "sentence_l2r", "--mask-spacing", "3"), "Leave out --mask-spacing, or set --metrics to"),
        (("--model", "nowhere"), "or give its folder in place of the name. The built-in English model needs no"),
    ],
)
def test_messages_name_options_not_settings(options, message):
    assert message in run("show", "A word.", *options, fails=True).unwrapped_stderr


def test_a_spacy_pipeline_without_the_component(tmp_path):
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path)
    result = run("show", "A text", "--model", tmp_path, fails=True)
    assert "has no `pll` component; it has these: sentencizer" in result.unwrapped_stderr


def test_without_text_it_says_how_it_is_used():
    assert "Usage: " in run("show", code=2).output


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--metrics", "nonesuch"), "Unknown PLL metric 'nonesuch'"),
        (("--model", "no-such/model"), "was not found"),
        (("--lang", "nonesuch"), "nonesuch"),
    ],
)
def test_errors_are_messages(option, message):
    assert message in run("show", "A text", *option, fails=True).unwrapped_stderr


def test_an_option_of_fixed_choices():
    result = run("show", "A text", "--words", "nonesuch", code=2)
    assert "'nonesuch' is not one of spacy, tokenizer, whitespace" in result.unwrapped_stderr


def test_what_the_model_expected(make_nlp, tmp_path):
    make_nlp("bert", alternatives=1, distribution=True).to_disk(tmp_path)
    saved = run("show", "The traveler", "--model", tmp_path).stdout
    assert "pll_word_l2r   " in saved and "entropy   expected" in saved and "rank 1" in saved
    [row] = [line for line in saved.splitlines() if line.startswith("The ")]
    assert row.count(" %") == 1
    other = ("--alternatives", 3, "--no-distribution")
    changed = run("show", "The traveler", "", "--model", tmp_path, *other).stdout
    [row] = [line for line in changed.splitlines() if line.startswith("The ")]
    assert row.count(" %") == 3 and "entropy" not in changed
    assert all(line == line.rstrip() for line in changed.splitlines())


def test_what_the_model_reads(model_folder):
    arguments = "show", "The souvenir.", "", "--model", model_folder("bert"), "--metrics", "original,word_l2r"
    lines = run(*arguments, "--masks").stdout.splitlines()
    assert [line.split()[2] for line in lines if line.startswith("wordpiece")] == ["pll_original", "pll_word_l2r"] * 2
    assert next(line for line in lines if line.startswith("souveni ")).endswith("   [CLS] The [MASK] ##r . [SEP]")
    assert [line for line in lines if line.endswith(" [CLS] The >[MASK]< [MASK] . [SEP]")]
    # the last row has the score of the text, under each metric; the empty text has none
    sums = [line.strip() for line in lines if line.startswith(" ")]
    assert sums == run(*arguments).stdout.split("pieces")[2].split()[:2] and not any(
        line != line.rstrip() for line in lines
    )
    for more, message in (
        (("--mask-margin", 0), "With --mask-margin, "),
        (("--alternatives", 2), "Leave out --alternatives and --distribution"),
    ):
        assert message in run(*arguments, "--masks", *more, fails=True).unwrapped_stderr
