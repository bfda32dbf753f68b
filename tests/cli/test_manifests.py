"""What a manifest says is enough: from it and the input, the functions of the package make the same scores."""

import csv
import json
from inspect import signature
from pathlib import Path

import pytest
import spacy

import spacy_pll
from spacy_pll import Choice, Option
from spacy_pll.corpus.records import FileOptions
from spacy_pll.evaluation.items import sample_items
from spacy_pll.evaluation.readers import read_nbest

from ..conftest import SENTENCES, write_jsonl
from .conftest import run

CLOSE = 1e-4  # between scores in other batches, in nats; tables have them as they are
PLACES = [("The keys", "are here", "today."), ("She", "left.", ""), ("A cat", "sleeps", "on the mat.")]


def manifest_of(output):
    return json.loads(Path(f"{output}.manifest.json").read_text(encoding="utf8"))


def pipeline_of(manifest):
    """The pipeline that a manifest describes."""
    nlp = spacy.blank(manifest["lang"])
    for name, block in manifest["pipeline"].items():
        config = {key: value for key, value in block.items() if key != "factory"}
        nlp.add_pipe(block["factory"], name=name, config=config)
    return nlp


def rows_of(path, how):
    """The rows of a table of text."""
    with open(path, encoding=how.get("encoding", "utf-8"), newline="") as file:
        return list(csv.DictReader(file, how.get("header"), delimiter=how.get("delimiter") or ","))


def given_to(function, *records):
    """What manifests say of the arguments of a function, and of how files are written."""
    names = {*signature(function).parameters, *vars(FileOptions())} - {"path"}
    return {name: value for record in records for name, value in record.items() if name in names}


def numbers(rows, column):
    return [float(row[column]) for row in rows if row[column]]


@pytest.fixture
def saved(make_nlp, tmp_path):
    """A pipeline with two `pll` components, of which only the second has the settings that are used."""
    nlp = make_nlp("bert", name="other")
    model = {**nlp.get_pipe_config("other")["model"]}
    nlp.add_pipe(
        "pll", name="mine", config={"model": model, "metrics": ["original"], "words": "tokenizer", "attr": "own"}
    )
    nlp.to_disk(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        ("--metrics", "original,word_l2r", "--words", "tokenizer", "--batch-size", "2"),
        ("--mask-margin", "1", "--words", "whitespace", "--delimiter", ";", "--encoding", "latin-1"),
        ("--sample-words", "0.5", "--seed", "3", "--lang", "de", "--columns", "sentence,n"),
        ("--spans", "sents", "--mask-spacing", "3", "--attr", "x"),
        ("--metrics", "left_context", "--spans", "strided", "--table", "tokens"),
    ],
)
def test_score(tmp_path, model_folder, options):
    sign, encoding = (";", "latin-1") if ";" in options else (",", "utf-8")
    with open(tmp_path / "a.csv", "w", encoding=encoding, newline="") as file:
        table = csv.writer(file, delimiter=sign)
        texts = [*SENTENCES[:4], "Zwei Bären, dort. Ein Bär."]
        head = [] if "--columns" in options else [["sentence", "n"]]
        table.writerows([*head, *([text, i] for i, text in enumerate(texts))])
    output = tmp_path / "o.csv"
    run("score", tmp_path / "a.csv", output, "--column", "sentence", "--model", model_folder("bert"), *options)
    manifest, written = manifest_of(output), rows_of(output, {})
    read = [row[manifest["run"]["column"]] for row in rows_of(tmp_path / "a.csv", manifest["run"])]
    assert read == texts
    found = spacy_pll.score(read, pipeline_of(manifest), batch_size=manifest["run"]["batch_size"])
    for metric, column in zip(manifest["metrics"], manifest["score_columns"]):
        scores = [one.scores[metric] for one in found]
        if manifest["run"]["table"] == "tokens":
            scores = [token.scores[metric] for one in found for token in one.tokens if token.pieces]
            written = [row for row in written if row[column] and float(row[column])]
        assert numbers(written, column) == pytest.approx(scores, abs=CLOSE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        ("--context-column", "before"),
        ("--context-column", "before", "--after-column", "after", "--separator", "  ", "--metrics", "original"),
        ("--marked", "--word-unit", "whitespace", "--words", "whitespace", "--column", "whole"),
    ],
)
def test_score_in_contexts(tmp_path, model_folder, options):
    rows = [
        {"text": text, "before": before, "after": after, "whole": f"{before} *{text}* {after}"}
        for before, text, after in PLACES
    ]
    output, how = tmp_path / "o.csv", ("--table", "words", "--no-log-frequency", "--model", model_folder("bert"))
    run("score", write_jsonl(tmp_path / "a.jsonl", *rows), output, *how, *options)
    manifest, written = manifest_of(output), rows_of(output, {})
    said, items = manifest["run"], []
    for row in map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines()):
        text, separator = row[said["column"]], said["separator"]
        if said["marked"]:
            before, text, after = text.split("*")
        else:
            before, after = ((row[said[name]] if said[name] else "") for name in ("context_column", "after_column"))
            before, after = before + separator * bool(before), separator * bool(after) + after
        items.append(Choice([Option(text, before, after=after), Option(f"{text} x", before, after=after)]))
    nlp, metric = pipeline_of(manifest), manifest["metrics"][0]
    nlp = spacy_pll.make_pipeline(nlp, targets=None)
    scores = spacy_pll.choices(nlp, items).scores[metric].sums[::2]
    [column] = manifest["score_columns"]
    sums = [sum(numbers([row for row in written if row["doc"] == str(i)], column)) for i in range(len(items))]
    assert sums == pytest.approx(scores, abs=CLOSE)


@pytest.mark.filterwarnings("ignore")
def test_a_component_of_a_saved_pipeline(tmp_path, saved):
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES[:3]), encoding="utf8")
    run("score", tmp_path / "a.txt", tmp_path / "o.csv", "--model", saved, "--component", "mine")
    manifest = manifest_of(tmp_path / "o.csv")
    found = spacy_pll.score((tmp_path / "a.txt").read_text("utf8").splitlines(), pipeline_of(manifest))
    written = rows_of(tmp_path / "o.csv", {})
    assert numbers(written, manifest["score_columns"][0]) == pytest.approx([one.score for one in found], abs=CLOSE)
    assert manifest["metrics"] == ["original"] and manifest["words"] == "tokenizer"


def check_accuracies(output, manifest, read, score):
    """The figures of a file of results, from what its manifest says. RETURNS: The scores."""
    by = manifest["by"] or None
    how = {name: manifest[name] for name in ("per_piece", "ties", "batch_size")}
    nlps = {one["scorer"]: pipeline_of(one) for one in manifest["scorers"]}
    items = read(manifest["path"], **given_to(read, manifest))
    items = sample_items(items, manifest["sample"], by) if manifest["sample"] else items
    found = score(nlps if len(nlps) > 1 else next(iter(nlps.values())), items, **how)
    written = json.loads(output.read_text())["results"]
    assert [one["value"] for one in written] == [one.value for one in found.measurements(by)]
    assert [one["group"] for one in written] == [one.group for one in found.measurements(by)]
    return found


PAIR = {"right": "The keys are here.", "wrong": "The keys is here.", "kind": "a", "why": "x"}
PAIRS = [PAIR, {**PAIR, "right": "She left early.", "wrong": "She leave early.", "kind": "b"}]
PAIRS += [{**PAIR, "right": f"A cat sat {n}.", "wrong": f"Cat a sat {n}."} for n in ("there", "here", "down")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        ("--metrics", "word_l2r,original", "--by", "kind", "--per-piece"),
        ("--scorer", "a={},words=tokenizer", "--scorer", "b={},mask_margin=0,metrics=original", "--ties", "first"),
        ("--sample", "2", "--by", "kind", "--spans", "sents", "--batch-size", "2"),
    ],
)
def test_pairs(tmp_path, model_folder, options):
    model, output, items = str(model_folder("bert")), tmp_path / "o.json", tmp_path / "i.csv"
    options = [one.format(model) for one in options]
    options += [] if "--scorer" in options else ["--model", model]
    columns = ("--good", "right", "--bad", "wrong", "--output", output, "--items", items)
    run("pairs", write_jsonl(tmp_path / "a.jsonl", *PAIRS), *columns, *options)
    found = check_accuracies(output, manifest_of(output), spacy_pll.read_pairs, spacy_pll.minimal_pairs)
    written, computed = rows_of(items, {}), found.rows()
    for row, other in zip(written, computed, strict=True):
        values = {name: value for name, value in other.items() if isinstance(value, float)}
        assert {name: float(row[name]) for name in values} == pytest.approx(values, abs=CLOSE)


CHOICE = {
    "story": "The keys to the cabinet",
    "yes": "are here.",
    "no": "is here.",
    "maybe": "am here.",
    "best": "no",
    "which": 0,
}
CHOICES = [CHOICE, {**CHOICE, "story": "She", "yes": "left early.", "no": "leave early.", "best": "yes"}]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        ("--context", "story", "--options", "yes,no,maybe", "--label", "which"),
        ("--context", "story", "--options", "yes,no", "--separator", "  ", "--metrics", "original", "--label", "which"),
        ("--context", "story", "--options", "yes,no,maybe", "--label", "best", "--per-piece", "--words", "tokenizer"),
        ("--options", "no,yes", "--after", "story", "--shared-pieces", "--label", "which"),
    ],
)
def test_choices(tmp_path, model_folder, options):
    output, items = tmp_path / "o.json", tmp_path / "i.csv"
    how = ("--model", model_folder("roberta"), "--output", output, "--items", items)
    run("choices", write_jsonl(tmp_path / "a.jsonl", *CHOICES), *how, *options)
    manifest = manifest_of(output)

    def score(nlp, choices, **more):
        return spacy_pll.choices(nlp, choices, shared_pieces=manifest["shared_pieces"], **more)

    found = check_accuracies(output, manifest, spacy_pll.read_choices, score)
    for row, other in zip(rows_of(items, {}), found.rows(), strict=True):
        values = {name: value for name, value in other.items() if isinstance(value, float)}
        assert {name: float(row[name]) for name in values} == pytest.approx(values, abs=CLOSE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", [("--threshold", "-20", "--metrics", "original,word_l2r"), ("--per-piece",)])
def test_suite(tmp_path, model_folder, options):
    rows = "".join(f"{i % 2};{text}\n" for i, text in enumerate(SENTENCES[:4]))
    (tmp_path / "a.csv").write_text(f"fine;says\n{rows}", encoding="utf8")
    output = tmp_path / "o.json"
    how = ("--reader", "acceptability", "--sentence", "says", "--label", "fine", "--delimiter", ";")
    run("suite", tmp_path / "a.csv", *how, "--output", output, "--model", model_folder("bert"), *options)
    manifest = manifest_of(output)
    [scorer] = manifest["scorers"]
    of_reader = {name: manifest[name] for name in ("sentence", "label", "threshold", "delimiter") if name in manifest}
    suite = spacy_pll.read_suite(manifest["path"], manifest["reader"], **of_reader)
    found = spacy_pll.score_suite(pipeline_of(scorer), suite, per_piece=manifest["per_piece"]).measurements()
    written = json.loads(output.read_text())["results"]
    assert [one["value"] for one in written] == pytest.approx([one.value for one in found], abs=CLOSE)


LISTS = [
    {"hypotheses": [{"text": f"{a} cat sat", "score": 2.0}, {"text": f"{a} cats sat down", "score": 1.0}],
     "reference": f"{a} cat sat", "context": "It was late."} for a in ("the", "a")
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        ("--weight", "0.4", "--word-weight", "0.2", "--metric", "original"),
        ("--dev", "DEV", "--grid", "0:1:0.25", "--word-grid=-1:1:0.5", "--per-piece", "--error-rate", "cer"),
    ],
)
def test_rescore(tmp_path, model_folder, options):
    pytest.importorskip("jiwer")
    dev = write_jsonl(tmp_path / "dev.jsonl", *[{**one, "context": "So it was."} for one in LISTS])
    output = tmp_path / "o.jsonl"
    options = [str(dev) if one == "DEV" else one for one in options]
    how = ("--costs", "--output", output, "--model", model_folder("bert"))
    run("rescore", write_jsonl(tmp_path / "a.jsonl", *LISTS), *how, *options)
    manifest = manifest_of(output)
    nlp, shared = pipeline_of(manifest), {name: manifest[name] for name in ("per_piece", "costs", "batch_size")}

    def read(path, references):
        of_file = {name: manifest[name] for name in ("encoding", "beam_size", "costs")}
        return [one.row for one in read_nbest(path, references=references, **of_file)]

    weights = manifest["weight"], manifest["word_weight"]
    if manifest["dev"]:
        lists, kind = read(manifest["dev"], manifest["dev_references"]), manifest["error_rate"]
        weights = spacy_pll.tune_rescoring(nlp, lists, *manifest["grids"], error_rate=kind, **shared)
    lists = read(manifest["path"], manifest["references"])
    found = spacy_pll.rescore(nlp, lists, weights[0], word_weight=weights[1], **shared)
    for line, one in zip(output.read_text().splitlines(), found, strict=True):
        for row, other in zip(json.loads(line)["hypotheses"], one["hypotheses"], strict=True):
            assert row["text"] == other["text"]
            numbers = [[one[name] for name in ("pll", "rescored")] for one in (row, other)]
            assert numbers[0] == pytest.approx(numbers[1], abs=CLOSE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        ("--metrics", "original,whole_word", "--words", "whitespace", "--lang", "de"),
        ("--metrics", "sentence_any_order", "--n-passes", "8", "--seed", "5"),
        ("--sample-words", "0.5", "--seed", "2", "--spans", "sents"),
        ("--windows", "3", "--by", "n"),
    ],
)
def test_ppl(tmp_path, model_folder, options):
    path = write_jsonl(tmp_path / "a.jsonl", *({"says": text, "n": i % 2} for i, text in enumerate(SENTENCES[:4])))
    output = tmp_path / ("o.csv" if "--windows" in options else "o.json")
    run("ppl", path, "--column", "says", "--output", output, "--model", model_folder("bert"), *options)
    manifest = manifest_of(output)
    nlp, said = pipeline_of(manifest), manifest["run"]
    lines = Path(manifest["path"]).read_text(encoding=said["encoding"]).splitlines()
    texts = [json.loads(line)[said["column"]] for line in lines]
    if said["windows"]:
        found = spacy_pll.window_perplexities(nlp, texts, said["windows"])
        values = [value for some in found for _, value in some]
        assert numbers(rows_of(output, {}), "pppl") == pytest.approx(values, rel=CLOSE)
        return
    how = {name: said[name] for name in ("n_passes", "seed", "batch_size")}
    found, written = spacy_pll.perplexity(nlp, texts, **how).measurements(), json.loads(output.read_text())
    for one, row in zip(found, written["results"], strict=True):
        assert (one.scorer, one.measure, one.n) == (row["scorer"], row["measure"], row["n"])
        assert row["value"] == pytest.approx(one.value, rel=CLOSE), one.measure


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        ("--by", "item", "--metrics", "left_context", "--base", "2", "--lags", "2"),
        ("--by", "item", "--metrics", "word_l2r,original", "--space-after", "space", "--lang", "de"),
    ],
)
def test_words(tmp_path, model_folder, options):
    words = "Smith can't find his mother-in-law's umbrella.".split()
    rows = "".join(f"{item}\t{word}\t{'no' if i == 1 else 'yes'}\n" for item in "12" for i, word in enumerate(words))
    (tmp_path / "a.tsv").write_text(f"item\tthe word\tspace\n{rows}", encoding="utf8")
    output, how = tmp_path / "o.csv", ("--word", "the word", "--no-log-frequency", "--model", model_folder("bert"))
    run("words", tmp_path / "a.tsv", output, *how, *options)
    manifest = manifest_of(output)
    assert manifest["words"] == "rows"
    read = rows_of(tmp_path / "a.tsv", {**manifest["run"], "delimiter": manifest["run"]["delimiter"] or "\t"})
    of_words = {name: manifest["run"][name] for name in ("word", "by", "space_after", "base", "lags", "log_frequency")}
    found = spacy_pll.score_words(read, pipeline_of(manifest), **of_words)
    for row, other in zip(rows_of(output, {}), found, strict=True):
        values = {name: value for name, value in other.items() if isinstance(value, float)}
        assert {name: float(row[name]) for name in values} == pytest.approx(values, abs=CLOSE)


def test_slots_and_what_the_page_of_slots_names(tmp_path, model_folder):
    page = (Path(__file__).parents[2] / "docs" / "slots.md").read_text(encoding="utf8")
    path = write_jsonl(
        tmp_path / "a.jsonl", {"says": "The ## left.", "best": "cat"}, {"says": "A ## sat.", "best": "dog"}
    )
    settings = {"column": "says", "gold": "best", "gap": "##", "keep": 1, "shared_pieces": True}
    output = tmp_path / "o.csv"
    flags = [f"--{k.replace('_', '-')}" + ("" if v is True else f"={v}") for k, v in settings.items()]
    run("slots", path, output, *flags, "--candidates", "cat,dog", "--hits", "1,2", "--model", model_folder("bert"))
    manifest = manifest_of(output)
    said = manifest["run"]
    assert {name: said[name] for name in settings} == settings
    assert (said["candidates"], manifest["outputs"]["hits"]) == (["cat", "dog"], [1, 2])
    for name in ("candidates", "vocabulary", "candidate-column", "gap", "keep", "gold", "shared-pieces", "top"):
        assert f"--{name}" in page and name.replace("-", "_") in said, name
    assert "--max-pieces" in page and said["max_pieces"] == 3 and "by" in manifest["outputs"]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    found = spacy_pll.slots(
        pipeline_of(manifest), [row[said["column"]] for row in rows], said["candidates"],
        gold=[row[said["gold"]] for row in rows],
        **{name: said[name] for name in ("gap", "keep", "top", "max_pieces", "shared_pieces")},
    )  # fmt: skip
    scores = [one.score for some in found for one in some]
    assert numbers(rows_of(output, {}), "score") == pytest.approx(scores, abs=CLOSE)
