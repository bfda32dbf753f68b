"""Scripts and benchmarks: they call what the package has, and the small ones do what they say."""

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import startup
from scripts.builtin import evaluate
from scripts.checks import check_installs
from scripts.docs_site import markdown_tables
from scripts.experiments import compare_packages, evaluate_crows_pairs, evaluate_reading
from spacy_pll import Pair, PipelineSettings, agree, make_pipeline, score
from spacy_pll.evaluation.crows_pairs import CrowsPairs
from spacy_pll.pipelines import SETTINGS

from ..evaluation.given_scores import of_pieces

ROOT = Path(__file__).parents[2]
FILES = sorted(path for name in ("benchmarks", "scripts") for path in (ROOT / name).rglob("*.py"))
PYTHON = Path(sys.executable)
EXPERIMENTS = [f"experiments/{name}" for name in ("evaluate_beyond", "evaluate_crows_pairs", "find_replaced_words")]


def wrong_calls(source: str) -> list[str]:
    """Calls of functions of the package with arguments that these do not take.

    What is not a function's name, imported from the package, is passed over. So are calls with `*` or `**`.
    """
    tree, imported = ast.parse(source), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "spacy_pll":
            module = importlib.import_module(node.module)
            imported.update({name.asname or name.name: getattr(module, name.name, None) for name in node.names})
    wrong = []
    for node in ast.walk(tree):
        function = (
            imported.get(node.func.id) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
        )
        is_error = isinstance(function, type) and issubclass(function, Exception)  # whose signature is not known
        if not callable(function) or is_error or any(isinstance(argument, ast.Starred) for argument in node.args):
            continue
        if any(keyword.arg is None for keyword in node.keywords):
            continue
        signature = inspect.signature(function)
        try:
            bound = signature.bind(*node.args, **{keyword.arg: keyword.value for keyword in node.keywords})
        except TypeError as error:
            wrong.append(f"line {node.lineno}: {node.func.id}: {error}")
            continue
        if function in (make_pipeline, score, PipelineSettings):  # any name is bound without an error
            unknown = set(bound.arguments.get("settings", ())) - set(SETTINGS)
            wrong.extend(f"line {node.lineno}: there is no setting {name!r}" for name in unknown)
    return wrong


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_calls_of_the_package_have_arguments_that_it_takes(path):
    source = path.read_text(encoding="utf8")
    if "spacy_pll.distributed" in source:
        pytest.importorskip("ray", reason="needs Ray: pip install '.[ray]'")
    if "spacy_pll.lm_eval" in source:
        pytest.importorskip("lm_eval", reason="needs lm-evaluation-harness: pip install '.[lm-eval]'")
    assert wrong_calls(source) == []


@pytest.mark.parametrize(
    ("call", "is_wrong"),
    [
        ("make_pipeline(name, metrics=METRICS)", False),
        ("make_pipeline(settings)", False),
        ("make_pipeline(name, METRICS, 'spacy')", True),
        ("make_pipeline(args.model, mask_margn=0)", True),
        ("PipelineSettings(model, keep_piece=True)", True),
        ("make_pipeline(*settings)", False),
        ("print(1, sep=2)", False),
    ],
)
def test_a_wrong_call_is_found(call, is_wrong):
    assert bool(wrong_calls(f"from spacy_pll.pipelines import PipelineSettings, make_pipeline\n{call}")) == is_wrong


@pytest.mark.slow
def test_the_example_of_the_readme_is_run_and_compared(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    source, expected = check_installs.read_example()
    assert "spacy_pll.score(" in source
    assert re.match(r"-\d+\.\d\d \[\('The', -\d", expected)
    check_installs.run_example(PYTHON, tmp_path, (source, expected))
    for wrong, message in [
        (("1.5 + 1  # 2.50\n1.5 + 1  # 2.52\n", ""), r"1.5 \+ 1 is 2.5, and README.md says 2.52"),
        (("print('a 1.50')", "a 1.52\n"), r"printed 'a 1.50\\n', and README.md shows 'a 1.52"),
        (("print('a 1.50')", "b 1.50\n"), r"printed 'a 1.50\\n', and README.md shows 'b 1.50"),
        (("import spacy_pllx", ""), "No module named 'spacy_pllx'"),
    ]:
        with pytest.raises(check_installs.Failed, match=message):
            check_installs.run_example(PYTHON, tmp_path, wrong)
    check_installs.run_example(
        PYTHON, tmp_path, ("1.5 + 1  # 2.51\nprint('a 1.50')", "a 1.51\n")
    )  # another last decimal


def test_the_commands_of_the_readme_are_run_where_it_is_installed(tmp_path):
    """With their input files, and a command that fails is named."""
    first, expected, others = check_installs.read_commands()
    assert first[0] == "show" and "hungry" in expected and {words[0] for words in others} >= {"score", "pairs", "slots"}
    assert not any({"--model", "explore", "rescore"} & set(words) for words in others)
    program = tmp_path / "spacy-pll"
    # Not the real one, for speed: that is installed in a release, and `.ci/run` has it.
    program.write_text(
        f"#!{PYTHON}\nimport sys\nfrom pathlib import Path\n"
        f"[print({expected!r}) if sys.argv[1] == 'show' else Path(sys.argv[2]).read_bytes()]\n"
        "sys.argv[1] == 'pairs' and Path('broken').exists() and sys.exit('no pairs')\n"
    )
    program.chmod(0o755)
    for broken in (False, True):
        folder = tmp_path / str(broken)
        folder.mkdir()
        if not broken:
            check_installs.run_commands(tmp_path, str(folder))
            continue
        (folder / "broken").touch()
        with pytest.raises(check_installs.Failed, match="spacy-pll pairs examples/data/pairs.csv .*no pairs"):
            check_installs.run_commands(tmp_path, str(folder))


LOOK = """
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec

found = [find_spec("spacy"), find_spec("spacy_pll"), entry_points(group="spacy_cli", name="pll")]
sys.exit([bool(one) for one in found] != {expected})
"""


def test_starting_times_are_measured_with_and_without_the_package(tmp_path):
    without, with_it = startup.make_folders(tmp_path)
    seconds, megabytes = startup.measure(["-c", LOOK.format(expected=[True, False, False])], without)
    assert seconds > 0 and megabytes > 5
    startup.measure(["-c", LOOK.format(expected=[True, True, True])], with_it)
    with pytest.raises(SystemExit, match="failed"):
        startup.measure(["-c", LOOK.format(expected=[True, True, True])], without)


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("docs/coming-from.md", ["experiments/compare_packages"]),
        ("docs/experiments.md", [*EXPERIMENTS, "paper/causal"]),
        ("docs/normalised-scores.md", ["experiments/evaluate_acceptability"]),
        ("docs/reading.md", ["experiments/evaluate_reading"]),
        ("spacy_pll/language_model/builtin/README.md", ["builtin/evaluate"]),
    ],
)
def test_every_place_for_a_table_is_filled_by_a_script(page, names):
    source = "".join((ROOT / "scripts" / f"{name}.py").read_text(encoding="utf8") for name in names)
    places = markdown_tables.find_places(ROOT / page)
    # Some names are put together: "replaced by any word".
    parts = {name: [name, *name.split(" by ")[1:]] for name in places}
    assert len(places) == len(set(places))
    assert [name for name in parts if not any(f'"{part}' in source for part in parts[name])] == []


def test_the_page_for_users_of_other_packages_shows_what_its_script_finds():
    """The rows that need no other package, and a row for each package."""
    page = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf8")
    found = compare_packages.snippet_tables()
    assert f"<!-- table: the loop -->\n\n{markdown_tables.markdown_table(found['the loop'])}\n\n<!-- end -->" in page
    for row in found["packages"] + compare_packages.with_fill_mask():
        assert f"| {row['there']} | {row['here']} | 20 | 0.0000" in page
        assert float(row["largest difference"]) < 1e-4
    for package in compare_packages.COMPARISONS:
        assert re.search(rf"^\| {package} .* \| (not run|0\.0000\d\d) \|$", page, re.MULTILINE)


def test_regressions_of_reading_times_find_what_is_there():
    """Here, reading times depend on the first metric alone."""
    pytest.importorskip("statsmodels", reason="statsmodels is not installed: pip install '.[reading]'")
    rng = np.random.default_rng(0)
    baseline = list(evaluate_reading.BASELINES)[-1]
    metrics = evaluate_reading.METRICS
    names = evaluate_reading.with_lags([*evaluate_reading.BASELINES[baseline], *(f"pll_{one}" for one in metrics)])
    words = pd.DataFrame({name: rng.normal(size=400) for name in names})
    words["item"] = np.arange(400) // 100
    words["meanItemRT"] = 300 + 5 * words["length"] - 3 * words["pll_word_l2r"] + rng.normal(size=400)
    first, second = (evaluate_reading.compare(words, metric, baseline, seed=0) for metric in metrics)
    effect, low, high = map(float, re.findall(r"-?[\d.]+", first["ms per nat"]))
    assert low < 3 < high and effect == pytest.approx(3, abs=0.2)
    assert first["p"] == "< 1e-10" and float(second["p"]) > 0.01
    # half the logarithm of a variance of 10 in place of 1 is 1.15 nats per word
    for held_out in ("gain, words held out", "gain, stories held out"):
        gain, other = (float(row[held_out].split()[0]) for row in (first, second))
        assert 900 < gain < 1400 and -50 < other < 50
    assert first["stories with a gain"] == "4 of 4"


def test_the_table_of_crows_pairs_does_not_cross_direction_and_type():
    groups = [(direction, kind) for direction in ("stereo", "antistereo") for kind in ("age", "gender")]
    columns = [dict(zip(("stereo_antistereo", "bias_type"), group)) for group in groups]
    suite, more, less = CrowsPairs([Pair("a", "b", one) for one in columns]), (-1.0, 0), (-2.0, 0)
    scores = dict.fromkeys(evaluate_crows_pairs.METRICS, of_pieces([[more], [less]] * 3 + [[more], [more]]))
    rows = evaluate_crows_pairs.table_of(list(suite.measurements(scores)))
    assert [(row["pairs"], row["n"]) for row in rows] == [
        ("all", "4"),
        ("antistereo", "2"),
        ("stereo", "2"),
        ("age", "2"),
        ("gender", "2"),
    ]
    for name in evaluate_crows_pairs.COLUMNS:
        assert rows[1][name].startswith("75.0 [")


def test_the_learning_curve_of_several_runs(tmp_path):
    logs = []
    for name, n_rows in (("a", 23), ("b", 2)):
        rows = [f"{step},{1000 * step},3.5,{4 - step / 100},1" for step in range(250, 250 * (n_rows + 1), 250)]
        logs.append(tmp_path / f"{name}.csv")
        logs[-1].write_text("\n".join(["step,pieces,train_loss,held_out_loss,seconds", *rows]) + "\n")
    curve = evaluate.learning_curve(logs)
    assert [row["step"] for row in curve if row["run"] == "1"] == [f"{step:,}" for step in range(250, 5751, 500)]
    assert [(row["step"], row["million pieces seen"]) for row in curve[-2:]] == [("250", "6.0"), ("500", "6.2")]
    assert curve[-1]["held-out masked loss"] == "-1.00" and curve[-1]["perplexity"] == "0.4"
    logs[-1].write_text("step,pieces,train_loss,held_out_loss,seconds\n")
    with pytest.raises(SystemExit, match="b.csv has no rows"):
        evaluate.learning_curve(logs)


def test_the_table_by_length_of_line():
    texts = ["Rain is expected.", "She put the book on the elephant.", " ".join(["She put it on the table."] * 9)]
    accuracy = {name: {"overall": value} for name, value in (("word_l2r", 70), ("original", 65), ("margin 0", 60))}
    *rows, whole, r, blimp = evaluate.length_table(None, texts, accuracy)
    assert [(row["pieces of the line"], row["lines"]) for row in rows] == [
        ("1 to 14 pieces", "2"),
        ("60 pieces and more", "1"),
    ]
    assert (whole["lines"], blimp["word_l2r"], blimp["word_l2r, margin 0"]) == ("3", "70.0", "60.0")
    assert (blimp["original"], blimp["original, margin 0"], blimp["word_l2r, margin 1"]) == ("65.0", "", "")
    for metric in ("word_l2r", "original"):
        assert r[metric] == ""
        for margin in (None, 0, 1):
            docs = list(make_pipeline(metrics=[metric], mask_margin=margin).pipe(texts))
            name = metric if margin is None else f"{metric}, margin {margin}"
            for row, some in ((rows[0], docs[:2]), (rows[1], docs[2:]), (whole, docs)):
                expected = -sum(doc._.pll for doc in some) / sum(doc._.pll_pieces for doc in some)
                assert float(row[name]) == pytest.approx(expected, abs=6e-4)
            if margin is not None:
                first, second = (
                    make_pipeline(metrics=[metric], keep_pieces=True, mask_margin=m) for m in (None, margin)
                )
                assert r[name] == f"{agree(first, second, texts).piece.r:.4f}"


def test_the_table_of_one_pass():
    texts = ["The traveler lost the souvenir.", "She put the book on the elephant.", "Rain is expected."]
    accuracy = {name: {"overall": value} for name, value in (("word_l2r", 70), ("margin 0", 60), ("margin 1", 65))}
    exact, none, one = evaluate.one_pass_table(None, texts, accuracy)
    assert [row["BLiMP"] for row in (exact, none, one)] == ["70.0", "60.0", "65.0"]

    def pipeline(margin=None):
        return make_pipeline(keep_pieces=True, mask_margin=margin)

    without, with_margin = (agree(pipeline(), pipeline(margin), texts) for margin in (0, 1))
    assert none["*r* by piece"].startswith(f"{without.piece.r:.4f} [") and exact["*r* by piece"] == "1"
    assert one["difference by word"] == f"{with_margin.word.mean_absolute_difference:.2f}"


def test_tables_are_put_into_pages(tmp_path, capsys):
    rows = [
        {"name": "a", "r": "-0.9 [-0.95, -0.8]", "cost": "÷ 1.5 (1.4-1.6)", "texts": "3 lines"},
        {"name": "b", "r": 1, "cost": "", "texts": "5"},
    ]
    shown = (
        "| name | r | cost | texts |\n| -- | -: | -: | -- |\n"
        "| a | −0.9 [−0.95, −0.8] | ÷ 1.5 (1.4-1.6) | 3 lines |\n| b | 1 |  | 5 |"
    )
    assert markdown_tables.markdown_table(rows) == shown
    markdown_tables.print_table("Title", rows)
    assert capsys.readouterr().out == f"\nTitle\n\n{shown}\n"
    page = tmp_path / "page.md"
    page.write_text("A\n\n<!-- table: one -->\nold\n<!-- end -->\n\nB <!-- table: two -->\nkept <!-- end --> C\n")
    for _ in range(2):  # the second time, its own table is replaced
        markdown_tables.replace_tables(page, {"one": rows, "three": rows})
        assert "page.md, which has no <!-- table: three -->\n" in capsys.readouterr().out
        assert page.read_text() == (
            f"A\n\n<!-- table: one -->\n\n{shown}\n\n<!-- end -->\n\nB <!-- table: two -->\nkept <!-- end --> C\n"
        )
    with pytest.raises(ValueError, match="page.md has no place for a table. Add .*<!-- table: three -->"):
        markdown_tables.replace_tables(page, {"three": rows})
