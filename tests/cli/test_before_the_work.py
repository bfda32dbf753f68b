"""In each command, what follows from options, paths, headers and the model is refused before a text is scored."""

import csv
import json
import shutil
import warnings
from itertools import count, islice
from pathlib import Path
from types import MappingProxyType

import pytest
import transformers as hf

from spacy_pll.metrics import pll_metrics
from spacy_pll.prediction.asking import WorkDone

from ..conftest import UNCHANGED, get_tokenizer, write_jsonl
from ..protein_models import PROTEIN
from .conftest import COMMANDS, invoke, parameters_of

ROWS = [("The cats sleep.", "The cats sleeps."), ("She saw herself.", "She saw himself.")]
VARIANTS = [{"mutant": one, "dms": n, "gene": "p", "seq": PROTEIN} for n, one in enumerate(("M1A", "K2R", "T3W"))]
TABLES = {
    "texts.csv": [{"text": text, "n": n} for n, (text, _) in enumerate(ROWS)],
    "words.csv": [{"word": word, "id": n} for n, (text, _) in enumerate(ROWS) for word in text.split()],
    "pairs.csv": [{"good": good, "bad": bad, "kind": "a"} for good, bad in ROWS],
    "choices.csv": [{"good": good, "bad": bad, "label": 0, "kind": "a"} for good, bad in ROWS],
    "cola.csv": [{"sentence": text, "label": label} for row in ROWS for text, label in zip(row, (1, 0))],
    "gaps.csv": [{"text": "The ___ sleeps.", "right": "cat", "kind": "a"}],
    "variants.csv": VARIANTS,
    "assays/a.csv": VARIANTS,
    "assays/b.csv": VARIANTS[1:],
    "sheet.csv": [{"DMS_id": one, "DMS_filename": f"{one}.csv", "target_seq": PROTEIN} for one in "ab"],
}
# A call of each command that scores, by the names of its options and arguments. "model" is a tiny one.
CALLS = {
    "score": {"input_path": "texts.csv", "output_path": "o.csv", "model": "bert"},
    "words": {"path": "words.csv", "output": "o.csv", "model": "bert", "log_frequency": False},
    "render": {"input": "texts.csv", "output": "o.html", "model": "bert"},
    "slots": {"path": "gaps.csv", "output": "o.csv", "candidates": "cat,mice", "gold": "right", "model": "bert"},
    "pairs": {"path": "pairs.csv", "model": "bert", "output": "o.json", "items": "i.csv"},
    "choices": {"path": "choices.csv", "options": "good,bad", "model": "bert", "output": "o.json", "items": "i.csv"},
    "suite": {"path": "cola.csv", "reader": "acceptability", "model": "bert", "output": "o.json", "items": "i.csv"},
    "ppl": {"path": "texts.csv", "model": "bert", "output": "o.json"},
    "rescore": {"path": "nbest.jsonl", "weight": "1", "model": "bert", "output": "o.jsonl"},
    "agree": {"scorers": ["bert", "bert,mask_margin=1"], "corpus": "texts.csv", "output": "o.json"},
    "margins": {"scorer": "bert", "corpus": "texts.csv", "margins": "0", "output": "o.json"},
    "variants": {"path": "variants.csv", "sequence": PROTEIN, "model": "protein", "output": "o.csv"},
    "show": {"texts": ["A cat."], "model": "bert"},
}
# Other ways to call them, of which all that is refused is refused early as well.
OTHERS = {
    "words of texts": ("score", {"table": "words", "log_frequency": False}),
    "means of words": ("words", {"by": "id", "means": "id", "item": "id", "plot": "p.svg"}),
    "windows": ("ppl", {"windows": "2", "output": "o.csv"}),
    "a bound": ("ppl", {"metrics": "sentence_any_order"}),
    "several scorers": ("pairs", {"model": None, "scorers": ["bert", "bert,mask_margin=1"]}),
    "many proteins": ("variants", {"sequence": None, "sequence_column": "seq", "protein": "gene", "output": "o"}),
    "assays": (
        "variants",
        {"path": "sheet.csv", "sequence": None, "assays": "assays", "measured": "dms", "output": "o"},
    ),
    "left to right": ("score", {"model": "gpt2"}),
}
WAYS = {**{name: (name, {}) for name in CALLS}, **OTHERS}


def called(way):
    command, others = WAYS[way]
    return {**CALLS[command], **others}


def write_table(path, rows):
    if path == "mixed.jsonl":
        return write_jsonl(Path(path), *rows)
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


@pytest.fixture(scope="module")
def models(model_folder, protein_folder, tmp_path_factory):
    gpt2 = tmp_path_factory.mktemp("gpt2")
    tokenizer = get_tokenizer("causal-gpt2")
    config = hf.GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2, n_positions=140)
    hf.GPT2LMHeadModel(config).save_pretrained(gpt2)
    tokenizer.save_pretrained(gpt2)
    UNCHANGED.add(str(gpt2))
    return {"bert": str(model_folder("bert")), "gpt2": str(gpt2), "protein": str(protein_folder())}


@pytest.fixture
def fails_early(models, tmp_path, monkeypatch):
    """fails_early(way, changes, tables, tails): call a command with some values changed, and text behind some tables;
    if it fails, nothing was scored.

    RETURNS: What it says, or None if it is done.
    """
    rows, number, add = [], count(), WorkDone.add
    monkeypatch.setattr(WorkDone, "add", lambda self, batch: rows.append(batch) or add(self, batch))

    def spelled(value):
        values = value if isinstance(value, list) else [value]
        return [",".join([models.get(one.split(",")[0], one.split(",")[0]), *one.split(",")[1:]]) for one in values]

    def call(way, changes, tables=TABLES, tails=MappingProxyType({})):
        folder = tmp_path / str(next(number))
        folder.mkdir()
        monkeypatch.chdir(folder)
        for name, table in tables.items():
            Path(name).parent.mkdir(exist_ok=True)
            write_table(name, table)
            with open(name, "a") as file:
                file.write(tails.get(name, ""))
        hypotheses = [{"text": text, "score": -1} for text in ROWS[0]]
        Path("nothing").touch()
        Path("nbest.jsonl").write_text(json.dumps({"hypotheses": hypotheses, "reference": ROWS[0][0]}))
        arguments, options = [], []
        for one in parameters_of(WAYS[way][0]):
            value = {**called(way), **changes}.get(one.name)
            if value is None or value == []:
                continue
            if one.flag is None:
                arguments += spelled(value)
            elif isinstance(value, bool):
                options += [one.flag] if value else one.about.secondary_opts[:1]
            else:
                options += [part for text in spelled(value) for part in (one.flag, text)]
        rows.clear()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = invoke(WAYS[way][0], *options, "--", *arguments)
        finally:
            call.left = {str(path): path.read_text() for path in Path().rglob("*.*") if path.is_file()}
            monkeypatch.chdir(tmp_path)
            shutil.rmtree(folder)
        assert not (result.exit_code and rows), (way, changes, result.stderr)
        return result.stderr if result.exit_code else None

    call.rows = rows
    return call


def test_each_command_that_scores_is_here():
    assert set(COMMANDS) - set(CALLS) == {"unigrams", "explore", "lm-eval"}


def wrong_values(one, given):
    """Values that may be wrong for an option or argument, by its type. given: The right one, if it is given."""
    if one.type is bool:
        return [True, *([False] if one.about.secondary_opts else [])]
    if one.type is Path:
        return [f"nothing/{given or 'o.svg'}", "o.xyz", "nothing", "."]
    if one.type is int:
        return ["-2", "0", *(["999"] if one.name not in ("n_process", "threads") else [])]
    if one.type is float:
        return ["nan", "inf", "-1", "1e300"]
    if one.name in ("metrics", "metric"):
        return ["no-such", *pll_metrics.get_all(), "word_l2r,causal"]
    if "|" in (one.about.metavar or ""):
        return one.about.metavar.strip("[]").split("|")
    return ["no-such", "", "text", "texts.csv", "0", "x=1"]


CHANGES = [
    (way, one, value)
    for way, (command, _) in WAYS.items()
    for one in parameters_of(command)
    for value in wrong_values(one, called(way).get(one.name))
]
# A value of each option in one of the ways that have it, and of each output in all ways.
SOME = {
    (one.name, way if one.type is Path else ""): (way, one, value)
    for way, one, value in reversed(CHANGES)
    if one.type is not bool
}


def in_some_ways():
    """Each value of an option in at most two of the ways that have it, others for each value."""
    ways = {}
    for change in CHANGES:
        ways.setdefault((change[1].name, change[2]), []).append(change)
    for n, of_value in enumerate(ways.values()):
        half = -(-len(of_value) // 2)
        yield from (of_value[(n + i) % len(of_value)] for i in range(0, len(of_value), half))


def without(rows, column):
    return [{name: value for name, value in row.items() if name != column} for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_sound_calls_are_done(way, fails_early):
    assert fails_early(way, {}) is None and fails_early.rows


def test_a_wrong_value_is_refused_before_the_work(fails_early):
    said = [fails_early(way, {one.name: value}) for way, one, value in SOME.values()]
    assert sum(map(bool, said)) > len(said) / 3


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_any_value(way, fails_early):
    for _, one, value in (change for change in in_some_ways() if change[0] == way):
        fails_early(way, {one.name: value})


def missing_columns(way):
    """Tables in which one column is missing, and the same in the second file of a folder."""
    for parameter, name in called(way).items():
        for column in TABLES[name][0] if isinstance(name, str) and name in TABLES else ():
            lacking = without(TABLES[name], column)
            yield {}, {**TABLES, name: lacking}
            first = {**TABLES, "folder/a.csv": TABLES[name], "folder/b.csv": lacking}
            yield {parameter: "folder", "batch_size": "1"}, first


@pytest.mark.parametrize("way", WAYS)
def test_a_missing_column_is_found_before_the_work(way, fails_early):
    for change in islice(missing_columns(way), 2):
        assert fails_early(way, *change), change


@pytest.mark.parametrize("way", WAYS)
def test_a_fault_of_the_last_row_is_found_before_the_work(way, fails_early):
    batches = {"batch_size": "1"} if "batch_size" in {one.name for one in parameters_of(WAYS[way][0])} else {}
    read = {str(value) for value in called(way).values()} & TABLES.keys()
    for name in (*read, *(["assays/b.csv"] if way == "assays" else [])):
        said = fails_early(way, batches, tails={name: ",".join("abcdefgh") + "\n"})
        assert said and f"{Path(name).name}, line {len(TABLES[name]) + 2}" in said.replace("\n", ""), said


@pytest.mark.parametrize("way", ["words", "slots", "pairs", "choices", "suite", "windows", "variants"])
def test_a_column_that_parquet_cannot_hold_is_found_before_the_work(way, fails_early):
    [(parameter, name)] = [(one, name) for one, name in called(way).items() if str(name) in TABLES]
    rows = [{**row, "mine": one} for row, one in zip(TABLES[name] * 2, (1, "a"))]
    outputs = dict.fromkeys({"items", "output"} & called(way).keys(), "o.parquet")
    outputs |= {"output": "o.json"} if len(outputs) == 2 else {}
    said = fails_early(way, {parameter: "mixed.jsonl", **outputs}, {**TABLES, "mixed.jsonl": rows})
    assert said and "values of two types" in " ".join(said.split()), said


ADDED = (
    "pll_word_l2r",
    "pll_pieces",
    "pppl",
    "surprisal",
    "length",
    "doc",
    "window",
    "masked_marginals",
    "choice",
    "item",
)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_any_columns(way, fails_early):
    for change in missing_columns(way):
        fails_early(way, *change)
    for name in {*map(str, called(way).values())} & TABLES.keys():
        for column in ADDED:
            fails_early(way, {}, {**TABLES, name: [{column: 0, **row} for row in TABLES[name]]})


MINE = [{"mine": "precious"}]


@pytest.mark.parametrize("way", [way for way in WAYS if way != "show"])
def test_what_force_replaces_stays_until_the_new_one_is_whole(way, fails_early, monkeypatch):
    """In each output, when a run is stopped in its first pass, and in a later one."""

    def stop(self, batch):
        left.pop()
        if not left:
            raise KeyboardInterrupt
        return batch

    monkeypatch.setattr(WorkDone, "add", stop)
    parameters = parameters_of(WAYS[way][0])
    outputs = [one.name for one in parameters if one.type is Path]
    given = {name: called(way).get(name, "p.svg" if name == "plot" else "more.csv") for name in outputs}
    old = {name if "." in name else f"{name}/gene.csv": MINE for name in given.values()}
    batches = {"batch_size": "1"} if "batch_size" in {one.name for one in parameters} else {}
    for n in (1, 2):
        left = [None] * n
        said = fails_early(way, {**given, **batches, "force": True}, {**TABLES, **old})
        assert said or (n == 2 and left)
        kept = {name: fails_early.left.get(name) for name in old}
        assert (kept == dict.fromkeys(old, "mine\nprecious\n")) == (said is not None)
