import json
from dataclasses import asdict, replace

import pytest

from spacy_pll import agree, compare_margins, get_scorer, make_pipeline
from spacy_pll.cli.margins import advice

from ..conftest import PARAGRAPH, SENTENCES

TEXTS = [*SENTENCES[:4], PARAGRAPH, "", " "]
WIDE = 1000


@pytest.fixture
def result(make_nlp):
    return compare_margins(make_nlp("bert", metrics=["original"]), TEXTS, (WIDE, 0), (4,), batch_size=2)


def test_each_comparison_is_that_of_two_pipelines(result, make_nlp):
    exact = make_nlp("bert", metrics=["original"], keep_pieces=True)
    assert [one.scorers[1].label for one in result.comparisons] == [
        "mask_margin 0",
        f"mask_margin {WIDE}",
        "mask_spacing 4",
    ]
    for setting, index in (({"mask_margin": 0}, 0), ({"mask_spacing": 4}, 2)):
        other = make_nlp("bert", metrics=["original"], keep_pieces=True, **setting)
        two = agree(exact, other, TEXTS, batch_size=2)
        found = result.comparisons[index]
        for level in ("piece", "word", "text", "text_mean"):
            for name, value in asdict(getattr(two, level)).items():
                assert asdict(found)[level][name] == pytest.approx(value, abs=1e-4), (level, name)
        for one, another in zip(found.scorers, two.scorers, strict=True):
            assert replace(one, label="", seconds=0) == replace(another, label="", seconds=0)
    assert json.loads(json.dumps(asdict(result)))["smallest"] == result.smallest


def test_the_smallest_margin_that_is_close_enough(result, make_nlp):
    small, wide = (one.word for one in result.comparisons[:2])
    assert small.r < wide.r and wide.r == pytest.approx(1) and wide.mean_absolute_difference < 1e-4
    low, high = small.mean_absolute_difference_interval
    assert low < small.mean_absolute_difference < high
    nlp = make_nlp("bert", metrics=["original"], mask_margin=3)
    for at_least, smallest in ((small.r - 1e-6, 0), ((small.r + wide.r) / 2, WIDE), (1.1, None)):
        found = compare_margins(nlp, TEXTS, (0, WIDE), at_least=at_least)
        assert found.smallest == {"mask_margin": smallest}
    assert get_scorer(nlp).settings.mask_margin == 3 and nlp.pipe_names == ["pll"]  # the pipeline is as it was


def test_exact_scores_are_computed_once_and_the_model_is_loaded_once(make_nlp):
    nlp = make_nlp("bert", mask_spacing=2)
    scorer = get_scorer(make_pipeline(nlp, mask_spacing=None))
    assert scorer.model is get_scorer(nlp).model and (
        scorer.settings.mask_spacing,
        get_scorer(nlp).settings.mask_spacing,
    ) == (None, 2)
    models, submit = [], type(scorer.model).submit

    def counted(model, batches):
        models.append(model)
        return submit(model, batches)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(scorer.model), "submit", counted)
        found = compare_margins(nlp, TEXTS[:2], (0, 1), batch_size=8)
    assert len(models) == 3 and set(map(id, models)) == {id(scorer.model)}
    exact = [one.scorers[0] for one in found.comparisons]
    assert exact[0] == exact[1] and exact[0].settings["mask_spacing"] is None and exact[0].forward_pieces > 0


def test_which_to_take_is_said(result):
    said = advice(replace(result, smallest={"mask_margin": 1000, "mask_spacing": None}))
    assert (
        "mask_margin 1000 is the smallest of these that reaches r = 0.99 by word. The option for it: --mask-margin"
        in said
    )
    assert "No mask_spacing of these reaches r = 0.99" in said


def test_measurements_are_those_of_each_comparison_and_the_exact_scores_come_once(result):
    found = {(one.scorer, one.measure): one for one in result.measurements()}
    assert len(found) == len(result.measurements()) == 5 * 4 + 12 * 3
    for one in result.comparisons:
        for own in one.measurements():
            assert found[own.scorer, own.measure] == own


def test_what_cannot_be_compared_is_an_error(make_nlp):
    nlp = make_nlp("bert")
    with pytest.raises(ValueError, match="nothing to compare.*Give `margins`"):
        compare_margins(nlp, TEXTS, ())
    with pytest.raises(ValueError, match="`mask_margin` must be 0 or more. It is -1"):
        compare_margins(nlp, TEXTS, (-1,))
    with pytest.raises(ValueError, match="sentence_l2r.*does not mask within words"):
        compare_margins(make_nlp("bert", metrics=["sentence_l2r"]), TEXTS)
    with pytest.raises(ValueError, match="Of the 1 texts, none was scored"):
        compare_margins(nlp, [" "])
