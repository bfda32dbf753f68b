import math

import numpy as np
import pytest

from spacy_pll import PipelineSettings, PLLError, make_pipeline
from spacy_pll.corpus.distribution import SHARES, Distribution
from spacy_pll.corpus.runs import score_to_file
from spacy_pll.corpus.scored_texts import Scoring
from spacy_pll.stream.parts import ResumableOutput

from ..conftest import SENTENCES, write_jsonl
from .running import make_run

TEXTS = [f"{sentence} {i}" for i, sentence in enumerate(SENTENCES * 6)]


def make(values, name="pppl"):
    found = Distribution()
    found.name, found.metric = name, "word_l2r"
    found.values.extend(values)
    return found


@pytest.fixture
def settings(model_folder):
    return PipelineSettings(model=str(model_folder("bert")), attr="x")


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv.gz", ".parquet", ".spacy"])
def test_what_an_output_has_is_counted_also_of_earlier_runs(settings, tmp_path, monkeypatch, parts_of, ending):
    parts_of(4)
    texts = [*TEXTS, " ", 'It\r"is",\n\0 so; \x85.', "x " * 400]
    source = tmp_path / "in.jsonl"
    write_jsonl(source, *({"text": text, "n": 0.5} for text in texts))
    run, output = (
        make_run(source, settings, 4, max_length=500, skip_errors=True),
        tmp_path / f"o{ending}",
    )
    score = Scoring.score

    def stops(*args):
        for i, text in enumerate(score(*args)):
            if i == 21:
                raise KeyboardInterrupt
            yield text

    with monkeypatch.context() as patch:
        patch.setattr(Scoring, "score", stops)
        with pytest.raises(KeyboardInterrupt):
            score_to_file(run, str(output))
    found = Distribution()
    with pytest.warns(UserWarning, match="1 of .* texts could not be scored"):
        score_to_file(run, str(output), resume=True, distribution=found)
    docs = make_pipeline(settings).pipe(texts[:-1], batch_size=4)
    expected = [doc._.x_pppl for doc in docs if doc._.x_pieces]
    assert (found.name, found.metric) == ("x_pppl", "word_l2r") and list(found.values) == pytest.approx(
        expected, rel=1e-3
    )
    assert sorted(found.missing.values()) == [1, 1] and any("error" in reason for reason in found.missing)


def test_numbers_with_a_decimal_comma(settings, tmp_path):
    (tmp_path / "in.csv").write_text("text;n\n" + "".join(f"{text.replace(';', ',')};0,5\n" for text in TEXTS))
    found = Distribution()
    score_to_file(make_run(tmp_path / "in.csv", settings), str(tmp_path / "o.csv"), distribution=found)
    values = [
        float(line.split(";")[-1].replace(",", ".")) for line in (tmp_path / "o.csv").read_text().split("\n")[1:-1]
    ]
    assert list(found.values) == values and len(values) == len(TEXTS)


def test_a_part_that_is_damaged(settings, tmp_path, monkeypatch, parts_of):
    """Its values are before what it adds to the output."""
    parts_of(2)
    write_jsonl(tmp_path / "in.jsonl", *({"text": text} for text in TEXTS))
    run, write = make_run(tmp_path / "in.jsonl", settings, 2), ResumableOutput.write

    def damages(self, part, *more):
        write(self, b"\0" + part[1:], *more)

    monkeypatch.setattr(ResumableOutput, "write", damages)
    with pytest.raises(PLLError, match="A part of the run is damaged: .*Start again with `force=True`"):
        score_to_file(run, str(tmp_path / "o.csv"))


def test_quantiles_are_numpys_and_few_texts_have_none():
    values = np.random.default_rng(0).gamma(2, 3, 101)
    found = make(values)
    assert list(found.quantiles) == list(SHARES) and found.quantiles[80] == pytest.approx(np.quantile(values, 0.8))
    assert f"{np.median(values):.2f} (50 %)" in next(found.lines())
    assert make(values[:19]).quantiles == {} and not list(make(values[:19]).lines())
    assert len(make(values[:20]).quantiles) == 5


def test_why_there_is_no_score():
    found = make([2.0] * 3)
    found.missing.update({"no wordpiece": 1200, "an error": 1})
    assert list(found.lines()) == ["1,201 of 1,204 texts have no score: 1,200 with no wordpiece, 1 with an error."]


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv", ".parquet", ".spacy"])
def test_infinite_pseudo_perplexities_are_not_missing(settings, tmp_path, monkeypatch, ending):
    """Formats of text do not hold infinity, and NumPy has NaN between two that are infinite."""
    monkeypatch.setattr("spacy_pll.attributes.values.exp_or_inf", lambda x: math.inf)
    write_jsonl(tmp_path / "in.jsonl", *({"text": text} for text in [*TEXTS, " "]))
    found = Distribution()
    score_to_file(make_run(tmp_path / "in.jsonl", settings), str(tmp_path / f"o{ending}"), distribution=found)
    assert [*found.values] == [math.inf] * len(TEXTS) and found.missing == {"no wordpiece to score": 1}
    assert {*found.quantiles.values()} == {math.inf}


def test_quantiles_of_which_some_are_infinite():
    assert [*make([2.0] * 10 + [math.inf] * 10).quantiles.values()] == [2, 2, math.inf, math.inf, math.inf]
    assert [*make([2.0] * 17 + [math.inf] * 4).quantiles.values()] == [2, 2, 2, 2, math.inf]


@pytest.mark.parametrize(
    "values",
    [[], [3.0], [1.0] * 30, [1.5, 2.5, 1e9] * 10, [1.5] * 10 + [math.inf] * 11, [math.inf] * 20],
)
def test_a_figure_has_every_text(values):
    """On an axis that names the metric and the unit."""
    axes, finite = make(values, "x$_pppl$").plot().axes[0], [value for value in values if value < math.inf]
    numbers, edges, _ = axes.patches[0].get_data()
    assert "x$_pppl$: pseudo-perplexity per wordpiece (word_l2r)" in axes.get_xlabel()
    assert sum(numbers) == len(finite) and axes.get_xscale() == "log"
    assert all(edges[0] <= value <= edges[-1] for value in finite)
    assert len(axes.texts) == sum(value < math.inf for value in make(values).quantiles.values())
    assert (", and 11 infinite" in axes.get_legend_handles_labels()[1][0]) == (len(values) - len(finite) == 11)
    axes.figure.savefig("/dev/null", format="svg")


def test_a_sample_of_the_words_has_no_pseudo_perplexities(settings, tmp_path):
    """That is no lack of scores; a figure of nothing is refused before anything is scored."""
    write_jsonl(tmp_path / "in.jsonl", *({"text": text} for text in TEXTS))
    run = make_run(tmp_path / "in.jsonl", settings.changed(sample_words=0.5))
    found = Distribution()
    score_to_file(run, str(tmp_path / "o.jsonl"), distribution=found)
    assert not [*found.lines()]
    with pytest.raises(PLLError, match="`plot` draws x_pppl.*`sample_words`"):
        score_to_file(run, str(tmp_path / "p.jsonl"), distribution=Distribution(is_drawn=True))
    assert not [*tmp_path.glob("p.*")]
