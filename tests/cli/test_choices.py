import csv
import json

import pytest

from spacy_pll.stream import known

from ..conftest import write_jsonl
from .conftest import run

ROWS = [
    {"context": "The traveler", "options": ["lost it.", "souvenir it."], "label": 0, "kind": "verb"},
    {"context": "The hooligans", "options": ["travel.", "travels.", "young."], "label": 0, "kind": "number"},
]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "choices.jsonl"
    write_jsonl(file, *ROWS)
    return file


def test_what_is_printed_and_written(path, tmp_path, model_folder):
    files = {name: tmp_path / f"out.{name}" for name in ("json", "csv", "svg")}
    predictions = tmp_path / "predictions.json"
    options = ("-o", files["json"], "--items", files["csv"], "--plot", files["svg"], "--predictions", predictions)
    metrics = ("--metrics", "word_l2r,original", "--by", "kind")
    result = run("choices", path, "--model", model_folder("bert"), *metrics, *options)
    assert "choices" in result.stdout.splitlines()[1] and "minus word_l2r" in result.stdout
    written = json.loads(files["json"].read_text())
    assert written["settings"]["ties"] == "share" and written["settings"]["metrics"] == ["word_l2r", "original"]
    overall = written["results"][0]
    assert (overall["scorer"], overall["level"], overall["n"]) == ("word_l2r", "overall", 2)
    with files["csv"].open() as file:
        table = list(csv.DictReader(file))
    assert [(row["choice"], row["text"], row["right"]) for row in table[:2]] == [
        ("1", "lost it.", "true"),
        ("1", "souvenir it.", "false"),
    ]
    right = sum(row["right"] == row["pll_word_l2r_chosen"] == "true" for row in table)
    assert overall["value"] == right / 2
    chosen = {row["kind"]: f" {row['text']}" for row in table if row["pll_word_l2r_chosen"] == "true"}
    found = json.loads(predictions.read_text())
    assert {kind: group["predictions"] for kind, group in found.items()} == {
        kind: [{"id": f"{kind}_0", "pred": text}] for kind, text in chosen.items()
    }
    assert 'id="xtick_6"' in files["svg"].read_text()  # accuracies from 0 to 100


def test_scorers_and_columns_with_other_names(tmp_path, model_folder):
    (tmp_path / "a.csv").write_text("before,one,two,right\nThe traveler,lost it.,souvenir it.,two\n")
    columns = ("--context", "before", "--options", "one,two", "--label", "right", "--ties", "first")
    folder = model_folder("bert")
    scorers = ("--scorer", f"exact={folder}", "--scorer", f"fast={folder},mask_margin=0")
    result = run("choices", tmp_path / "a.csv", *columns, *scorers)
    assert "exact" in result.stdout and "fast" in result.stdout
    assert "--label" in run("choices", tmp_path / "a.csv", "--options", "one,two", fails=True).unwrapped_stderr


def test_preferences_of_people(tmp_path, model_folder):
    rows = [{"sentences": f"a {one}\ta {two}", "ratio": n} for n, (one, two) in enumerate(zip("abcde", "vwxyz"))]
    file, out = tmp_path / "wug_past_tense.jsonl", tmp_path / "p.json"
    write_jsonl(file, *rows)
    options = ("--model", model_folder("bert"), "--metrics", "original,word_l2r", "--predictions", out)
    result = run("choices", file, *options, "-o", tmp_path / "r.json", "--items", tmp_path / "i.csv")
    title, _, overall, *_ = result.stdout.strip().splitlines()
    assert title.split() == "Spearman's rho (95 % interval) choices original word_l2r".split()
    first, *others = json.loads((tmp_path / "r.json").read_text())["results"]
    assert overall.split()[:3] == ["overall", "5", f"{first['value']:.3f}"] and len(others) == 3
    (predictions,) = json.loads(out.read_text()).values()
    items = list(csv.DictReader((tmp_path / "i.csv").open()))
    assert [one["prob"] for one in predictions["predictions"]] == [
        pytest.approx(float(row["pll_original_probability"])) for row in items[::2]
    ]
    assert "and these choices have none" in run("choices", file, "--plot", tmp_path / "a.png", fails=True).stderr


def test_a_sample(path, tmp_path, model_folder):
    out = tmp_path / "out.json"
    run("choices", path, "--model", model_folder("bert"), "--sample", "1", "--by", "kind", "-o", out)
    assert json.loads(out.read_text())["results"][0]["n"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("command, processes", [("choices", 2), ("pairs", 1)])
def test_a_run_that_is_stopped_goes_on(tmp_path, model_folder, monkeypatch, command, processes):
    """With two scorers, of which the second is stopped in the middle: the numbers are those of one run."""
    texts = [f"The traveler lost {n}." for n in range(10)]
    rows = [{"options": [one, f"It {one}"], "label": 0, "good": one, "bad": f"It {one}"} for one in texts]
    file = write_jsonl(tmp_path / "in.jsonl", *rows)
    folder = model_folder("bert")
    scorers = ("--scorer", f"a={folder}", "--scorer", f"b={folder},mask_margin=0")
    more = ("--batch-size", 4, "--n-process", processes, "--items")
    once, out = tmp_path / "once.csv", tmp_path / "out.csv"
    run(command, file, *scorers, *more, once)
    original, n = known.KeptScores.add, 0

    def stop(self, sums, ends_batch):
        nonlocal n
        original(self, sums, ends_batch)
        if (n := n + ends_batch) == 7:  # five batches for each scorer
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(known.KeptScores, "add", stop)
        error = run(command, file, *scorers, *more, out, code=130).unwrapped_stderr
    assert "The scores of 28 of 40 texts are kept in" in error and "--resume" in error and not out.exists()
    seen = []
    monkeypatch.setattr(known.KeptScores, "add", lambda self, sums, end: seen.extend(sums) or original(self, sums, end))
    error = run(command, file, *scorers, *more, out, fails=True).unwrapped_stderr
    assert "unfinished run. Continue it with --resume" in error
    others = (*scorers[:3], f"b={folder},mask_margin=1")
    assert "cannot be resumed" in run(command, file, *others, *more, out, "--resume", fails=True).unwrapped_stderr
    run(command, file, *scorers, *more, out, "--resume")
    assert len(seen) == 12 and out.read_bytes() == once.read_bytes()
    assert not list(tmp_path.glob("*.parts"))


def test_what_goes_on_must_be_named(path, model_folder):
    error = run("choices", path, "--resume", fails=True).unwrapped_stderr
    assert "--resume goes on with what is kept beside --output or --items" in error
