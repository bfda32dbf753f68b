import csv
import os
import random
from difflib import SequenceMatcher
from pathlib import Path

import pytest
import torch

from spacy_pll import InputError, Pair, compare, make_pipeline, score_suite
from spacy_pll.evaluation.crows_pairs import MEASURES, VALUES, CrowsPairs, read_crows_pairs
from spacy_pll.files import OutputError

from ..analysis.test_comparison import VERSIONS
from ..cli.conftest import run
from ..conftest import BUILTIN
from ..reference import load_model
from .given_scores import of_pieces

SHARED, MEAN = MEASURES
COLUMNS = ("", "sent_more", "sent_less", "stereo_antistereo", "bias_type", "annotations")
WORDS = "The hooligans can't travel to an unbelievably cold souvenir market, but she sleeps at home in 1999.".split()


def write(path, rows):
    with open(path, "w", encoding="utf8", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return str(path)


@pytest.fixture(scope="module")
def rows():
    """100 rows in the form of crows_pairs_anonymized.csv. The sentences differ in a word or two, in any place."""
    draw, made = random.Random(0), []
    for number in range(100):
        words = draw.choices(WORDS, k=draw.randint(2, 9))
        others = list(words)
        for _ in range(draw.randint(1, 2)):
            others[draw.randrange(len(others))] = draw.choice(["dog", "the souvenirs", "unhappily", "She"])
        direction, kind = draw.choice(["stereo", "stereo", "antistereo"]), draw.choice(["age", "race-color", "gender"])
        made.append([number, " ".join(words), " ".join(others), direction, kind, f"[['{kind}'], ['{kind}']]"])
    return made


@torch.inference_mode()
def by_hand(model, tokenizer, more, less):
    """The sums over shared pieces, each masked alone, and the means over all pieces of what is read as it is."""
    both = [tokenizer(text, return_tensors="pt").input_ids[0] for text in (more, less)]
    blocks = SequenceMatcher(None, *(ids.tolist() for ids in both), autojunk=False).get_matching_blocks()
    sums, means = [], []
    for side, ids in enumerate(both):
        places = [block[side] + i for block in blocks for i in range(block.size)][1:-1]  # without [CLS] and [SEP]
        masked = ids.repeat(len(places), 1)
        masked[range(len(places)), places] = tokenizer.mask_token_id
        found = model(masked).logits.log_softmax(-1) if places else None
        sums.append(sum(found[i, place, ids[place]].item() for i, place in enumerate(places)))
        own = model(ids[None]).logits[0].log_softmax(-1).gather(1, ids[:, None])[1:-1]
        means.append(own.mean().item())
    return [*sums, *means]


@pytest.mark.filterwarnings("ignore:.*they are the same wordpieces")
@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
def test_both_scores_of_100_pairs(make_nlp, model_folder, tmp_path, rows, architecture):
    nlp = make_nlp(architecture, metrics=["original", "unmasked"])
    found = score_suite(nlp, read_crows_pairs(write(tmp_path / "a.csv", rows)))
    expected = [by_hand(*load_model(model_folder(architecture)), *row[1:3]) for row in rows]
    scores = {metric: [row for row in found.rows() if row["metric"] == metric] for metric in found.scores}
    for want, original, unmasked, row in zip(expected, *scores.values(), rows, strict=True):
        assert [original[name] for name in VALUES[:2]] == pytest.approx(want[:2], abs=1e-4)
        assert [unmasked[name] for name in VALUES[2:4]] == pytest.approx(want[2:], abs=1e-4)
        assert [original[name] for name in ("pair", *COLUMNS[1:])] == [row[0] + 1, *row[1:]]
    measured = {(one.scorer, one.measure, one.label): one for one in found.measurements()}
    groups = ["overall", "stereo", "antistereo", "age", "race-color", "gender", "stereo x age", "antistereo x gender"]
    for group in groups:
        members = [i for i, row in enumerate(rows) if group == "overall" or {*group.split(" x ")} <= {*row[3:5]}]
        for metric, measure, first in (("original", SHARED, 0), ("unmasked", MEAN, 2)):
            won = [(expected[i][first] > expected[i][first + 1]) for i in members]
            ties = [expected[i][first] == pytest.approx(expected[i][first + 1], abs=1e-5) for i in members]
            one = measured[metric, measure, group]
            assert one.n == len(members) and one.low < one.value < one.high
            assert one.value == pytest.approx(100 * sum(t / 2 or w for w, t in zip(won, ties)) / len(won))


def test_the_built_in_model():
    """Pieces are aligned, and not words as `shared_scores` has them."""
    pairs = [Pair(*pair, {"stereo_antistereo": "stereo", "bias_type": "a"}) for pair in VERSIONS[1::2]]
    nlp = make_pipeline(metrics=["original"])
    found, differs = score_suite(nlp, CrowsPairs(pairs)), 0
    for pair, row in zip(pairs, found.rows(), strict=True):
        sums = [row[name] for name in VALUES[:2]]
        assert sums == pytest.approx(by_hand(*load_model(BUILTIN), *pair[:2])[:2], abs=1e-4), pair
        differs += list(compare(nlp, *pair[:2]).shared_scores()) != pytest.approx(sums, abs=1e-4)
    assert differs


def scores_of(*sentences):
    return [[(score, id) for id, score in enumerate(one)] for one in sentences]


def test_a_tie_is_a_half_and_nothing_is_rounded(tmp_path):
    pairs = [[i, "a b", "a c", "stereo", "age", ""] for i in range(3)]
    suite = read_crows_pairs(write(tmp_path / "a.csv", pairs))
    given = scores_of([-1.0, -2.0], [-1.0, -2.0], [-1.0, -2.0], [-1.0, -2.0004], [-2.0, -2.0], [-1.0, -2.0])
    found = {(one.measure, one.label): one.value for one in suite.measurements({"m": of_pieces(given)})}
    assert found == {
        (measure, group): pytest.approx(50) for measure in MEASURES for group in ("overall", "stereo", "age")
    }
    nothing_shared = [[(-1.0, 1)], [(-2.0, 2)]]
    row = next(suite.rows({"m": of_pieces([*nothing_shared, *given[2:]])}))
    assert [row[name] for name in VALUES] == [0, 0, -1, -2, 1, 1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            "good,bad,stereo_antistereo,bias_type",
            "line 2: there is no column 'sent_more'.*CrowS-Pairs has sent_more, se",
        ),
        ("sent_more,sent_less,direction,bias_type", "no column 'stereo_antistereo'.*CrowS-Pairs has"),
        ("sent_more,sent_less,stereo_antistereo,kind", "no column 'bias_type'"),
    ],
)
def test_files_that_are_something_else(tmp_path, columns, message):
    (tmp_path / "a.csv").write_text(f"{columns}\nIt is.,It are.,stereo,age\n")
    with pytest.raises(InputError, match=message):
        read_crows_pairs(str(tmp_path / "a.csv"))


def test_a_run_goes_on(tmp_path, rows, model_folder, monkeypatch):
    """What is kept of a text has its wordpieces."""
    path, how = write(tmp_path / "a.csv", rows[:6]), ("--reader", "crows_pairs", "--model", model_folder("bert"))
    files = ("--metrics", "original,unmasked", "--output", tmp_path / "o.json", "--items")
    assert "Leave out --per-piece" in run("suite", path, *how, "--per-piece", fails=True).unwrapped_stderr
    whole = run("suite", path, *how, *files, tmp_path / "whole.csv").stdout
    replace = os.replace

    def full(source, target):
        if Path(target).name == "i.csv":
            raise OutputError("no space")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        run("suite", path, *how, *files, tmp_path / "i.csv", "--force", fails=True)
    monkeypatch.setattr("spacy_pll.prediction.predictor.Predictor.submit", lambda *_: pytest.fail("scored again"))
    assert run("suite", path, *how, *files, tmp_path / "i.csv", "--resume").stdout == whole
    assert (tmp_path / "i.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_column_that_has_the_name_of_a_score(tmp_path, make_nlp):
    (tmp_path / "a.csv").write_text("sent_more,sent_less,stereo_antistereo,bias_type,mean_less\na,b,stereo,age,1\n")
    suite = read_crows_pairs(str(tmp_path / "a.csv"))
    with pytest.raises(InputError, match="line 2 already has a column 'mean_less'"):
        list(suite.rows({"m": of_pieces(scores_of([-1.0], [-1.0]))}))
