import csv
import gc
import gzip
import json
import shutil
import weakref
from contextlib import nullcontext

import pyarrow.parquet as pq
import pytest

from spacy_pll import PipelineSettings, read_pairs
from spacy_pll.cli.comparison import load_scorers
from spacy_pll.evaluation.items import sample_items
from spacy_pll.language_model.base import TransformerLanguageModel

from ..conftest import data_folder, write_jsonl
from .conftest import run

# The folder of the fixture `blimp` has one, and a pair that differs in spaces alone.
pytestmark = pytest.mark.filterwarnings(
    "ignore:1 file of other formats .*'README.txt':UserWarning", "ignore:.*they are the same wordpieces"
)

GOOD, BAD = "The traveler lost it.", "The traveler souvenir it."


def blimp_row(good, bad, phenomenon, paradigm):
    return {"sentence_good": good, "sentence_bad": bad, "linguistics_term": phenomenon, "UID": paradigm, "pairID": "0"}


@pytest.fixture
def blimp(tmp_path):
    """Two files in BLiMP's form: a pair, its mirror image and a tie; and one pair more of another phenomenon."""
    folder = tmp_path / "blimp"
    folder.mkdir()
    rows = [(GOOD, BAD), (BAD, GOOD), (GOOD, GOOD.replace(" ", "  "))]
    write_jsonl(folder / "one.jsonl", *(blimp_row(*row, "agreement", "one") for row in rows))
    write_jsonl(folder / "two.jsonl", blimp_row(GOOD, BAD, "islands", "two"))
    (folder / "README.txt").write_text("not pairs\n")
    return folder


def results(path):
    """By (metric, level, name), from a JSON output."""
    return {(row["scorer"], row["level"], row["name"]): row for row in json.loads(path.read_text())["results"]}


def test_a_folder_in_blimps_form(blimp, tmp_path, model_folder, make_nlp):
    for name in ("it.csv", "it.json"):
        options = ("--metrics", "word_l2r,original", "-o", tmp_path / "out" / name)
        result = run("pairs", blimp, "--model", model_folder("bert"), *options)
    rows = results(tmp_path / "out" / "it.json")
    # A pair and its mirror image make one half, the tie another half of one.
    for metric in ("word_l2r", "original"):
        one = rows[metric, "UID", "one"]
        assert (one["n"], one["ties"], one["value"]) == (3, 1, 0.5)
        assert rows[metric, "linguistics_term", "agreement"]["value"] == 0.5
        two = rows[metric, "UID", "two"]["value"]
        assert rows[metric, "overall", ""]["value"] == (1.5 + two) / 4
        assert rows[metric, "macro", "UID"]["value"] == (0.5 + two) / 2
    docs = list(make_nlp("bert").pipe([GOOD, BAD]))
    assert rows["word_l2r", "UID", "two"]["value"] == float(docs[0]._.pll > docs[1]._.pll)
    with (tmp_path / "out" / "it.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [(row["scorer"], row["level"], row["name"]) for row in table] == list(rows)
    assert [float(row["value"]) for row in table] == [row["value"] for row in rows.values()]
    assert "Ties, counted as half: 1 under word_l2r, 1 under original." in result.stdout
    assert "mean over UID" in result.stdout and "50.0 (" in result.stdout
    options = ("--model", model_folder("bert"), "--ties", "first", "-o", tmp_path / "f.json")
    first = run("pairs", blimp, *options)
    rows = results(tmp_path / "f.json")
    one = rows["word_l2r", "UID", "one"]
    assert (one["n"], one["ties"], one["value"]) == (3, 1, pytest.approx(2 / 3))
    assert "Ties, counted with the first option as chosen: 1 under word_l2r" in first.stdout
    settings = json.loads((tmp_path / "out" / "it.json").read_text())["settings"]
    assert settings["path"] == str(blimp) and settings["words"] == "spacy" and settings["revision"] is None
    assert settings["metrics"] == ["word_l2r", "original"] and settings["model"] == str(model_folder("bert"))


def test_the_pairs_as_a_table(blimp, tmp_path, model_folder, make_nlp):
    options = ("--model", model_folder("bert"), "--metrics", "word_l2r,original", "--items")
    for ending in ("csv", "tsv", "parquet"):
        run("pairs", blimp, *options, tmp_path / f"items.{ending}")
    with (tmp_path / "items.csv").open() as file:
        table = list(csv.DictReader(file))
    with (tmp_path / "items.tsv").open() as file:
        assert list(csv.DictReader(file, delimiter="\t")) == table
    assert [(row["pair"], row["pll_original_correct"]) for row in table[2:3]] == [("3", "0.5")]
    assert [(row["sentence_good"], row["UID"], row["pairID"]) for row in table[::2]] == [(GOOD, "one", "0")] * 2
    good, bad = make_nlp("bert").pipe([GOOD, BAD])
    assert float(table[0]["pll_word_l2r_difference"]) == pytest.approx(good._.pll - bad._.pll, abs=1e-4)
    assert int(table[0]["pll_word_l2r_bad_pieces"]) == bad._.pll_pieces
    assert float(table[0]["pll_word_l2r_bad_per_piece"]) == pytest.approx(bad._.pll / bad._.pll_pieces, abs=1e-4)
    parquet = pq.read_table(tmp_path / "items.parquet").to_pylist()
    assert [{name: str(value) for name, value in row.items()} for row in parquet] == table


def test_two_scorers_on_the_same_pairs(blimp, tmp_path, model_folder):
    folder = model_folder("bert")
    result = run("pairs", blimp, "--scorer", folder, "--scorer", f"{folder},mask_margin=0", "-o", tmp_path / "o.json")
    assert f"minus {folder}" in result.stdout and "McNemar's p" in result.stdout
    rows = results(tmp_path / "o.json")
    one, two = (rows[scorer, "overall", ""] for scorer in (str(folder), f"{folder},mask_margin=0"))
    assert one["difference"] is None and two["difference"] == two["value"] - one["value"]
    assert two["difference_low"] < two["difference"] < two["difference_high"] and two["p"] <= 1
    settings = json.loads((tmp_path / "o.json").read_text())["settings"]
    assert settings["scorer"] == settings["model"] == str(folder) and settings["metrics"] == ["word_l2r"]
    (compared,) = settings["compared"]
    assert (compared["scorer"], compared["model"], compared["mask_margin"]) == (
        f"{folder},mask_margin=0",
        str(folder),
        0,
    )
    for option in (
        ("--model", folder),
        ("--revision", "v2"),
        ("--causal",),
        ("--leading-space", "previous"),
        ("--component", "pll"),
    ):
        message = run("pairs", blimp, "--scorer", folder, *option, fails=True).unwrapped_stderr
        assert "--scorer takes the place of --model, --revision, --component, --causal and --leading-space" in message


def test_options_are_for_all_scorers_that_do_not_say_otherwise(blimp, tmp_path, model_folder):
    folder = model_folder("bert")
    scorers = (f"a={folder}", f"b={folder},metrics=whole_word,mask_margin=1", f"c={folder},words=whitespace")
    given = ("--metrics", "original,word_l2r", "--mask-margin", "0", "--lang", "xx", "--max-batch-tokens", "999")
    run("pairs", blimp, *(x for one in scorers for x in ("--scorer", one)), *given, "-o", tmp_path / "o.json")
    first = json.loads((tmp_path / "o.json").read_text())["settings"]
    found = [[one[name] for name in ("metrics", "mask_margin", "words", "lang")] for one in (first, *first["compared"])]
    assert found == [
        [["original", "word_l2r"], 0, "spacy", "xx"],
        [["whole_word"], 1, "spacy", "xx"],
        [["original", "word_l2r"], 0, "whitespace", "xx"],
    ]
    names = {scorer for scorer, _, _ in results(tmp_path / "o.json")}
    assert names == {"a original", "a word_l2r", "b", "c original", "c word_l2r"}


def test_a_column_that_is_called_as_one_of_scores(tmp_path, model_folder):
    """It is refused before anything is scored, if the table is written; and else it is none of our business."""
    (tmp_path / "a.csv").write_text(f"good,bad,pll_word_l2r_good\n{GOOD},{BAD},1\n")
    command = ("pairs", tmp_path / "a.csv", "--model", model_folder("bert"))
    assert "overall" in run(*command).stdout
    error = run(*command, "--items", tmp_path / "o.csv", fails=True).unwrapped_stderr
    assert "have a column 'pll_word_l2r_good'" in error and "texts [" not in error


def test_scorers_with_names(blimp, tmp_path, model_folder):
    folder = model_folder("bert")
    scorers = ("--scorer", f"exact={folder}", "--scorer", f"margin0={folder},mask_margin=0,metrics=original+word_l2r")
    result = run("pairs", blimp, *scorers, "-o", tmp_path / "o.json", "--items", tmp_path / "items.csv")
    assert [line[-8:] for line in result.stderr.splitlines() if "Wrote" in line] == ["/o.json.", "ems.csv."]
    compared = json.loads((tmp_path / "o.json").read_text())["settings"]["compared"][0]
    assert (compared["scorer"], compared["model"], compared["mask_margin"]) == ("margin0", str(folder), 0)
    assert compared["metrics"] == ["original", "word_l2r"]
    names = {scorer for scorer, _, _ in results(tmp_path / "o.json")}
    assert names == {"exact", "margin0 original", "margin0 word_l2r"}
    header = (tmp_path / "items.csv").read_text().splitlines()[0].split(",")
    assert {"exact_good", "margin0 original_correct"} <= set(header)
    message = run("pairs", blimp, "--scorer", "a=builtin", "--scorer", f"a={folder}", fails=True).unwrapped_stderr
    assert "Two scorers have the name 'a'. Name one with --scorer NAME=MODEL" in message


def test_conditions_and_a_picture(tmp_path, model_folder):
    (tmp_path / "p.tsv").write_text(f"{GOOD}\t{BAD}\ta\tx\n{BAD}\t{GOOD}\tb\tx\n{GOOD}\t{BAD}\tb\ty\n")
    options = ("--columns", "good,bad", "--columns", "voice, kind", "--model", model_folder("bert"))
    twice = run("pairs", tmp_path / "p.tsv", *options, "--by", "voice", "--by", "kind")
    options += ("--by", "voice,kind", "--plot", tmp_path / "p.svg", "-o", tmp_path / "o.json")
    result = run("pairs", tmp_path / "p.tsv", *options)
    assert result.stdout == twice.stdout
    assert "VOICE X KIND" in result.stdout
    rows = results(tmp_path / "o.json")
    assert {name for _, level, name in rows if level == "voice x kind"} == {"a x x", "b x x", "b x y"}
    assert "accuracy in %" in (tmp_path / "p.svg").read_text() or (tmp_path / "p.svg").stat().st_size > 1000


@pytest.mark.slow
def test_groups_whose_values_make_the_same_text(tmp_path, model_folder):
    values = [("a x b", "c"), ("a", "b x c"), (None, "c"), ("None", "c"), ("a", "c")]
    rows = [{"good": GOOD, "bad": BAD, "p": p, "overall": q} for p, q in values]
    path, options = write_jsonl(tmp_path / "p.jsonl", *rows), ("--by", "p", "--by", "overall")
    folder = model_folder("bert")
    scorers = ("--scorer", f"exact={folder}", "--scorer", f"fast={folder},mask_margin=0")
    for name in ("o.json", "o.csv"):
        result = run("pairs", path, *options, *scorers, "-o", tmp_path / name)
    lines = [line.split("  ")[0] for line in result.stdout.splitlines()]
    names = ["'a x b' x 'c'", "'a' x 'b x c'", "None x 'c'", "'None' x 'c'", "a x c"]
    assert {*names, "None", "'None'", "a x b", "a", "P", "OVERALL", "P X OVERALL"} <= set(lines)
    assert lines.count("fast") == 1 and lines.count("overall") == 1
    groups = [row["group"] for row in json.loads((tmp_path / "o.json").read_text())["results"]]
    crossed = [(group["p"], group["overall"]) for group in groups if len(group) == 2]
    assert sorted(crossed, key=str) == sorted(values * 2, key=str)
    with (tmp_path / "o.csv").open() as file:
        table = [row for row in csv.DictReader(file) if row["level"] == "p x overall"]
    assert {(row["by_p"] or None, row["by_overall"]) for row in table} == set(values)
    assert {row["name"] for row in table} == set(names)


def test_equal_sentences_are_scored_once(blimp, model_folder, monkeypatch):
    from spacy_pll.prediction import asking

    seen = []
    plan_passes = asking.plan_passes

    def counting(contexts, *args, **more):
        seen.extend(contexts)
        return plan_passes(contexts, *args, **more)

    monkeypatch.setattr(asking, "plan_passes", counting)
    run("pairs", blimp, "--model", model_folder("bert"))
    assert len(seen) == 3  # of eight


def test_a_table_with_columns_of_its_own(tmp_path, model_folder):
    for ending, delimiter in ((".csv", ","), (".tsv", "\t")):
        path = tmp_path / f"mine{ending}"
        lines = [["right", "wrong", "kind"], [GOOD, BAD, "x"], [BAD, BAD.replace(" ", "  "), "y"]]
        path.write_text("\n".join(delimiter.join(line) for line in lines) + "\n")
        options = ("--good", "right", "--bad", "wrong", "--model", model_folder("bert"), "--force")
        run("pairs", path, *options, "-o", tmp_path / "out.json")
        rows = results(tmp_path / "out.json")
        assert set(rows) == {("word_l2r", "overall", "")}
        run("pairs", path, *options, "--by", "kind", "-o", tmp_path / "out.json")
        rows = results(tmp_path / "out.json")
        assert rows["word_l2r", "kind", "y"]["value"] == 0.5


def test_per_piece(tmp_path, model_folder, make_nlp):
    longer = "The traveler lost the souvenir , who are young , and left ."
    path = write_jsonl(tmp_path / "p.jsonl", {"sentence_good": longer, "sentence_bad": "Dr ."})
    good, bad = make_nlp("bert").pipe([longer, "Dr ."])
    accuracy = {}
    for options in ((), ("--per-piece",)):
        run("pairs", path, "--model", model_folder("bert"), "-o", tmp_path / "o.json", "--force", *options)
        accuracy[options] = results(tmp_path / "o.json")["word_l2r", "overall", ""]["value"]
    assert accuracy[()] == float(good._.pll > bad._.pll)
    assert accuracy["--per-piece",] == float(good._.pll / good._.pll_pieces > bad._.pll / bad._.pll_pieces)
    assert good._.pll < bad._.pll  # the longer text: otherwise this would test less


def test_files_of_one_name_in_two_folders_are_two_paradigms(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_jsonl(tmp_path / folder / "p.jsonl", {"sentence_good": GOOD, "sentence_bad": BAD})
    assert [pair.paradigm for pair in read_pairs(str(tmp_path))] == ["a/p", "b/p"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ('{"sentence_good": "A"}\n', (), "line 1: there is no column 'sentence_bad'. The columns are: 'sentence_good'"),
        ('{"sentence_good": "A", "sentence_bad": "B"}\n{"a"\n', (), "line 2: not valid JSON"),
        ('{"sentence_good": "A", "sentence_bad": 3}\n', (), "line 1: 'sentence_bad' must be text. It is 3"),
        ('{"sentence_good": "A", "sentence_bad": " "}\n', (), "line 1: 'sentence_bad' is empty"),
        ('{"sentence_good": "A", "sentence_bad": "B"}\n', ("--by", "x"), "Pair 1: there is no column 'x'"),
        (
            '{"sentence_good": "A", "sentence_bad": "B"}\n',
            ("--good", "x"),
            "Name those of the two sentences with --good and --bad.",
        ),
        ('{"sentence_good": "A", "sentence_bad": "B"}\n', ("--metrics", "nonesuch"), "Unknown PLL metric 'nonesuch'"),
        ('{"sentence_good": "A", "sentence_bad": "B"}\n', ("--model", "no/such"), "'no/such' was not found"),
        ('{"sentence_good": "A", "sentence_bad": "B"}\n', ("-o", "out.txt"), "must end in .json or .csv. It is"),
        ("", (), "There is no pair in"),
    ],
)
def test_errors_are_messages(tmp_path, content, options, message):
    path = tmp_path / "pairs.jsonl"
    path.write_text(content)
    assert message in run("pairs", path, *options, fails=True).unwrapped_stderr


def test_a_sentence_without_a_wordpiece_has_no_score(tmp_path, model_folder):
    path = write_jsonl(
        tmp_path / "pairs.jsonl", blimp_row(GOOD, BAD, "a", "b"), blimp_row("The cats", "\u200b", "a", "b")
    )
    result = run("pairs", path, "--model", model_folder("bert"), fails=True)
    assert r"The text '\u200b' has no wordpiece" in result.unwrapped_stderr


def test_a_folder_with_compressed_files_and_others(blimp, tmp_path):
    compressed = tmp_path / "compressed"
    compressed.mkdir()
    for file in blimp.glob("*.jsonl"):
        (compressed / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    (compressed / "README.txt").touch()
    with pytest.warns(UserWarning, match="1 file of other formats in .* will not be read: 'README.txt'"):
        pairs = read_pairs(str(compressed))
    assert pairs == read_pairs(str(blimp))
    rows = [json.loads(line) for line in (blimp / "one.jsonl").read_text().splitlines()]
    (compressed / "sub").mkdir()
    for row in rows:
        del row["UID"]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (compressed / "sub" / "three.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    assert {pair.paradigm for pair in read_pairs(str(compressed))} == {"one", "two", "sub/three"}


def test_paths_that_hold_no_pairs(tmp_path):
    assert "There is no file or folder" in run("pairs", tmp_path / "nowhere", fails=True).unwrapped_stderr
    (tmp_path / "a.pdf").write_text("text\n")
    for path in (tmp_path, tmp_path / "a.pdf"):
        assert ".txt, .jsonl, .json, .csv, .tsv, .parquet." in run("pairs", path, fails=True).unwrapped_stderr


def test_an_output_that_is_there_is_kept(blimp, tmp_path, model_folder):
    for there in ("out.json", "out.csv"):
        (tmp_path / there).write_text("precious")
        result = run("pairs", blimp, "--model", model_folder("bert"), "-o", tmp_path / there, fails=True)
        assert "exists already. Add --force to replace it" in result.unwrapped_stderr
        assert (tmp_path / there).read_text() == "precious"
        (tmp_path / there).unlink()
    (tmp_path / "out.csv").write_text("old")
    run("pairs", blimp, "--model", model_folder("bert"), "-o", tmp_path / "out.csv", "--force")
    header = (tmp_path / "out.csv").read_text().splitlines()[0]
    assert header == "scorer,measure,n,value,low,high,level,name,ties,by_linguistics_term,by_UID"


def test_without_arguments_it_says_how_it_is_used():
    assert "Usage: " in run("pairs", code=2).output


@pytest.mark.slow
def test_all_of_blimp_is_read():
    pairs = read_pairs(str(data_folder("data/blimp")))
    assert len(pairs) == 67_000
    assert len({pair.paradigm for pair in pairs}) == 67 and len({pair.phenomenon for pair in pairs}) == 13
    assert sample_items(pairs, 100) == sample_items(pairs, 100)


def test_checkpoints_of_a_model(blimp, tmp_path, model_folder, hub_cache):
    options = ("--model", "team/baby", "--revisions", "chck_1M,main", "-o", tmp_path / "r.json", "--plot")
    said = run("pairs", blimp, *options, tmp_path / "curve.svg").stdout
    assert "chck_1M" in said and "minus chck_1M" in said
    settings = json.loads((tmp_path / "r.json").read_text())["settings"]
    assert [one["revision"] for one in (settings, *settings["compared"])] == ["chck_1M", "main"]
    for revision, architecture in (("chck_1M", "electra"), ("main", "bert")):
        run("pairs", blimp, "--model", model_folder(architecture), "-o", tmp_path / "one.json", "--force")
        for (_, *group), row in results(tmp_path / "one.json").items():
            assert results(tmp_path / "r.json")[(revision, *group)]["value"] == row["value"]
    curve = (tmp_path / "curve.svg").read_text()
    assert 'id="xtick_2"' in curve and 'id="xtick_3"' not in curve  # the revisions, and no accuracies


@pytest.mark.parametrize(
    "options, message",
    [
        ("--revisions a,b --scorer builtin", "--scorer takes the place of --model, --revision"),
        ("--revisions a,b --revision main", "Give either --revision or --revisions."),
        ("--revisions a,b,a", "--revisions has one of these twice: a,b,a."),
        (
            "--revisions a,b",
            "--revisions are of a model on the Hugging Face hub, and 'builtin' is none. To compare folders",
        ),
        ("--revisions a,b --model .", "and '.' is none. To compare folders, give --scorer NAME=FOLDER for each."),
    ],
)
def test_revisions_that_cannot_be_compared(blimp, options, message):
    assert message in run("pairs", blimp, *options.split(), fails=True).unwrapped_stderr


def test_the_name_of_a_scorer(tmp_path, monkeypatch, model_folder):
    monkeypatch.chdir(tmp_path)
    for folder in ("lr=0.1", "runs/lr=0.1"):
        shutil.copytree(model_folder("bert"), folder)
    expected = {
        "step-500=runs/lr=0.1": "step-500",
        "v1.5=lr=0.1,mask_spacing=4": "v1.5",
        "lr=0.1": "lr=0.1",
        "runs/lr=0.1,mask_spacing=4": "runs/lr=0.1,mask_spacing=4",
        "small=builtin": "small",
        "builtin,mask_margin=0": "builtin,mask_margin=0",
    }
    scorers = load_scorers([*expected], [], PipelineSettings())
    assert [*scorers] == [*expected.values()]
    models = ["runs/lr=0.1", "lr=0.1", "lr=0.1", "runs/lr=0.1", "builtin", "builtin"]
    assert [record["model"] for record in scorers.records] == models


def test_only_one_of_the_compared_models_is_in_memory(model_folder, monkeypatch):
    folders = {name: str(model_folder(name)) for name in ("bert", "electra", "roberta")}
    scorers = load_scorers([f"{name}={folder}" for name, folder in folders.items()], [], PipelineSettings())
    loaded, made = [], []
    load = TransformerLanguageModel._load
    monkeypatch.setattr(TransformerLanguageModel, "_load", lambda self, *how: made.append(how) or load(self, *how))
    for name, nlp in scorers.compared.items():
        assert scorers[name] is nlp and nlp.get_pipe("pll").model.name == folders[name]
        loaded.append(weakref.ref(nlp.get_pipe("pll").model))
    del nlp
    gc.collect()
    assert [model() is None for model in loaded] == [True, True, False] and len(made) == 2  # the first one was there
    assert [record["scorer"] for record in scorers.records] == list(folders)


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_scorers_that_differ_in_settings_alone_have_one_model_which_is_loaded_once(
    blimp, tmp_path, model_folder, monkeypatch
):
    bert, electra, loaded = model_folder("bert"), model_folder("electra"), []
    options = [bert, f"{bert},mask_margin=0", f"{bert},mask_spacing=2,spans=sents", f"{bert},metrics=original"]
    scorers = [part for n, one in enumerate(options) for part in ("--scorer", f"s{n}={one}")]
    load = TransformerLanguageModel._load
    monkeypatch.setattr(TransformerLanguageModel, "_load", lambda self, *how: loaded.append(how[0]) or load(self, *how))
    run("pairs", blimp, *scorers, "--items", tmp_path / "all.csv")
    assert loaded == [str(bert)]
    run("pairs", blimp, *scorers, "--scorer", f"e={electra}", "--items", tmp_path / "more.csv")
    assert loaded[1:] == [str(electra), str(bert), str(electra)]  # all are looked at before the first one scores
    rows = {name: read(tmp_path / f"{name}.csv") for name in ("all", "more")}
    for n, one in enumerate(options):
        run("pairs", blimp, "--scorer", one, "--items", tmp_path / f"{n}.csv")
        (column,) = {"pll_word_l2r_good", "pll_original_good"} & set((table := read(tmp_path / f"{n}.csv"))[0])
        alone = [row[column] for row in table]
        assert [[row[f"s{n}_good"] for row in found] for found in rows.values()] == [alone, alone]


def test_one_pair_in_many_whose_sentences_are_equal_is_counted_without_a_warning(tmp_path, model_folder):
    """BLiMP has 7 in 67,000."""
    rows = [(f"{GOOD} {n}", f"{BAD} {n}") for n in range(120)]
    rows[70] = GOOD, f"{GOOD} "
    (tmp_path / "pairs.csv").write_text("good,bad\n" + "".join(f"{good},{bad}\n" for good, bad in rows))
    result = run("pairs", tmp_path / "pairs.csv", "--model", model_folder("bert"), "--mask-margin", "0")
    said = " ".join(result.stdout.split())
    assert f"1 of the pairs has two equal options, first {tmp_path / 'pairs.csv'}, line 72." in said


def test_a_group_with_a_space_behind_its_name_is_one_group_and_its_cells_stay(tmp_path, model_folder):
    """In all formats. The sentences keep their white space, too."""
    kinds = ["a", "a ", " b", "b\u00a0", "a"]
    rows = [{"good": f" {GOOD}", "bad": f" {BAD}", "kind": kind, "note": f" {n} "} for n, kind in enumerate(kinds)]
    write_jsonl(tmp_path / "p.jsonl", *rows)
    with open(tmp_path / "p.csv", "w", newline="") as file:
        (table := csv.DictWriter(file, rows[0])).writeheader()
        table.writerows(rows)
    for name, ending in (("p.csv", ".csv"), ("p.jsonl", ".csv"), ("p.csv", ".parquet"), ("p.jsonl", ".parquet")):
        items, options = tmp_path / f"i{ending}", ("--by", "kind", "-o", tmp_path / "o.json", "--force")
        run("pairs", tmp_path / name, "--model", model_folder("bert"), *options, "--items", items)
        found = {key[2]: row["n"] for key, row in results(tmp_path / "o.json").items() if key[1] == "kind"}
        assert found == {"a": 3, "b": 2}
        with open(items, newline="", encoding="utf8") if ending == ".csv" else nullcontext() as file:
            written = list(csv.DictReader(file)) if file else pq.read_table(items).to_pylist()
        assert [(row["sentence_good"], row["kind"], row["note"]) for row in written] == [
            (row["good"], row["kind"], row["note"]) for row in rows
        ]
