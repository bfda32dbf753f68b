"""Every example of the documentation is run, and every name that it uses is there.

    python -m tests.project.test_docs --write

runs all examples, those of docstrings and of docs/universe.json too, and writes what came out into the pages and
docstrings, for new weights or a new format: look at `git diff` then.
It takes the data sets from the folder that SPACY_PLL_DATA names, and leaves out what needs one that is not there.
"""

import ast
import importlib
import inspect
import json
import re
import sys
import tempfile
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

import pytest
import spacy
import srsly
import typer

import spacy_pll
from spacy_pll import visualize
from spacy_pll.cli import app

from ..doc_commands import (
    ONLY_CHECKED,
    PYTHON_ONLY_CHECKED,
    SLOW,
    check_block,
    check_command,
    check_python,
    is_python_run,
    make_inputs,
    make_runner,
    make_stand_ins,
    read_setup_cfg,
    reason_not_run,
    slow_part,
)
from ..doc_examples import (
    CARD,
    MODULES,
    PAGES,
    ROOT,
    Block,
    PageRun,
    Result,
    assemble,
    read_blocks,
    read_commands,
    read_prose,
    reconcile,
    restate,
    write,
)
from ..protein_models import save_protein_model

# Sound inputs are silent: not even what the tests of tiny tokenizers ignore is warned of.
pytestmark = pytest.mark.filterwarnings("error::UserWarning")

BLOCKS = {page: read_blocks(page) for page in PAGES}
EXAMPLES = {module: read_blocks(module) for module in MODULES}
UNIVERSE = ROOT / "docs" / "universe.json"
PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
LINK = re.compile(r"\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[([^]]*)\]\(([^)\s]+)\)")
URL = read_setup_cfg()["metadata"]["url"]
# What names a file of this repository with its full address; pages do so nowhere.
OWN = re.compile(rf"{re.escape(URL)}/(?:blob|raw|tree)/(?:HEAD|main)/([^\s)\"#?]+)")
CODE = re.compile(r"`([^`]+)`")
# Options of other programs, and the pages about those.
OTHERS_OPTIONS = {"--help", "--no-mask", "--backend", "--extra-index-url"}
OTHERS_PAGES = {"CONTRIBUTING", "lm-eval", "project", "reliability"}
# What needs an extra, and a module of that.
OF_EXTRAS = {"spacy_pll.distributed": "ray", "spacy_pll.lm_eval": "lm_eval", "pll lm-eval": "lm_eval"}


def run_blocks(blocks: list[Block], folder: Path, models: dict[str, Path], slow: Collection[str] = ()) -> list[Result]:
    make_inputs(folder, slow, models)
    return list(PageRun(folder, make_runner(slow), is_python_run).run(blocks))


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    return make_stand_ins(tmp_path_factory.mktemp("models"))


def assert_shown(results: list[Result]):
    for result in results:
        assert result.text == result.block.text, (
            f"{result.block.where}; mend: python -m tests.project.test_docs --write"
        )


def test_pictures_are_small_and_said_in_words():
    shown = [(page, *image) for page in PAGES for image in IMAGE.findall(read_prose(page))]
    files = {(page.parent / path).resolve() for page, _, path in shown}
    assert {path.name: path.stat().st_size for path in files if path.stat().st_size >= 100_000} == {}
    assert [(page.name, path) for page, text, path in shown if len(text.split()) < 5] == []
    assert {
        path.name for ending in ("png", "svg") for path in (ROOT / "docs").glob(f"*.{ending}") if path not in files
    } == set()


@PAGE
def test_examples_give_what_the_page_shows(page, tmp_path, stand_ins):
    assert_shown(run_blocks(BLOCKS[page], tmp_path, stand_ins))


@pytest.mark.slow
@pytest.mark.usefixtures("real_english")
@pytest.mark.parametrize("part", SLOW)
def test_slow_examples_give_what_the_page_shows(part, tmp_path, stand_ins):
    if not SLOW[part].exists():
        pytest.skip(f"There is no {SLOW[part].name}: no package, or SPACY_PLL_DATA names no folder with it")
    pairs = [pair for blocks in BLOCKS.values() for pair in zip(blocks, blocks[1:])]
    [(example, output)] = [pair for pair in pairs if part in pair[0].text]
    assert output.is_output
    assert_shown(run_blocks([example, output], tmp_path, stand_ins, slow={part}))


def run_module(module: Path, folder: Path) -> list[Result]:
    """The blocks of the docstrings of a module as they should be. The examples do not share names. All are run: a tiny
    random model of proteins has the name of the one on the hub.
    """
    results: list[Result] = []
    (esm := folder / "facebook" / "esm2_t12_35M_UR50D").mkdir(parents=True)
    save_protein_model(esm, "esm")
    for i, block in enumerate(EXAMPLES[module]):
        if not block.is_output:
            end = next((j for j, one in enumerate(EXAMPLES[module]) if j > i and not one.is_output), None)
            page = PageRun(folder, make_runner(), lambda block: True)
            results += page.run(EXAMPLES[module][i:end])
    return results


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(ROOT)))
def test_examples_in_docstrings_give_what_they_show(module, tmp_path):
    assert {block.language for block in EXAMPLES[module]} <= {"python", ""}
    assert_shown(run_module(module, tmp_path))


def test_each_public_function_has_an_example():
    functions = {name for name in spacy_pll.__all__ if inspect.isfunction(getattr(spacy_pll, name))}
    assert len(functions) == 32
    without = [name for name in {"PLLScorer", *functions} if "```python" not in getattr(spacy_pll, name).__doc__]
    assert without == []


def run_universe(folder: Path) -> list[tuple[str, str]]:
    """Run the example of docs/universe.json. RETURNS: Each line of it, and what the line should be."""
    lines = srsly.read_json(UNIVERSE)["code_example"]
    block = Block(UNIVERSE, 1, "python", None, "".join(f"{line}\n" for line in lines), "")
    [result] = PageRun(folder, make_runner(), is_python_run).run([block])
    return list(zip(lines, result.text.splitlines(), strict=True))


def test_the_example_in_spacy_universe(tmp_path):
    lines = run_universe(tmp_path)
    assert all(line == expected for line, expected in lines), "python -m tests.project.test_docs --write mends it"
    assert sum("  # -" in line for line, _ in lines) == 2


def is_installed(text: str) -> bool:
    """Whether the extra that an example is about, or a name, is installed. The lane `slow` has all."""
    return all(find_spec(module) for part, module in OF_EXTRAS.items() if part in text)


def test_spacy_assemble_takes_the_config_of_the_page_about_spacy(tmp_path, stand_ins, monkeypatch):
    [config] = [block for block in BLOCKS[ROOT / "docs" / "spacy.md"] if block.text.startswith("[nlp]")]
    make_inputs(tmp_path, (), stand_ins)
    (tmp_path / "bert.cfg").write_text(config.text)
    monkeypatch.chdir(tmp_path)
    make_runner()("python -m spacy assemble bert.cfg bert".split())
    assert spacy.load("bert").get_pipe("pll").settings.metrics == ("word_l2r", "original")


def test_the_commands_in_the_table_of_the_readme(tmp_path, stand_ins, monkeypatch):
    rows = re.findall(r"^\| .+? \| `(spacy-pll .+?)`.*? \| .*\[.+ \|$", text_of("README.md"), re.MULTILINE)
    assert len(rows) == 10
    make_inputs(tmp_path, (), stand_ins)
    monkeypatch.chdir(tmp_path)
    printed = [make_runner()(row.split()) for row in rows]
    assert [row for row, text in zip(rows, printed) if text is None] == rows[-2:]  # a model of the hub, and a server
    for row in rows[-2:]:
        check_command(row.split())
    written = "scores.csv words.csv page.html slor.csv fillers.csv quality.csv best.jsonl"
    assert {path.name for path in tmp_path.iterdir()} >= set(written.split())


@PAGE
def test_what_is_not_run_names_what_is_there(page):
    for block in filter(lambda block: is_installed(block.text), BLOCKS[page]):
        if block.language == "bash":
            check_block(block)
        elif block.language == "python" and not is_python_run(block):
            check_python(block)


@PAGE
def test_no_block_is_passed_over(page):
    before = None
    for block in BLOCKS[page]:
        if block.is_output:
            assert before in ("python", "bash"), f"{block.where}: this is the output of no example"
        elif not block.file:
            assert block.language in ("python", "bash", "ini", "bibtex"), f"{block.where}: nothing tests this block"
        before = None if block.is_output else block.language


@pytest.mark.parametrize("part", [*ONLY_CHECKED, *SLOW, *PYTHON_ONLY_CHECKED])
def test_the_lists_of_exceptions_hold_nothing_that_no_page_has(part):
    assert any(part in block.text for blocks in BLOCKS.values() for block in blocks)


@PAGE
def test_links_lead_somewhere(page):
    """In a checkout, too: pages name files of the repository by relative links."""
    prose = read_prose(page)
    assert not OWN.search(prose) and not re.search(r"^\[[^\]]+\]: ", prose, re.MULTILINE)
    for target in LINK.findall(prose):
        path, _, anchor = target.partition("#")
        if target.startswith("https://"):
            continue
        file = (page.parent / path).resolve() if path else page
        assert file.exists() and file.is_relative_to(ROOT), f"{page.name}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", read_prose(file), re.MULTILINE)
            assert anchor in map(slug, headings), f"{page.name}: {target}"


@PAGE
def test_links_say_what_they_lead_to(page):
    """And no name of a file, but for those that everyone knows."""
    texts = re.findall(r"\[([^]]+)\]\(", read_prose(page))
    assert [text for text in texts if text.endswith(".md") and text not in ("README.md", "CONTRIBUTING.md")] == []


def test_the_repository_has_one_name():
    """That of setup.cfg: in the command that clones it, and in the entry for spaCy Universe."""
    universe = srsly.read_json(UNIVERSE)
    assert f"git clone {URL} &&" in (ROOT / "README.md").read_text(encoding="utf8")
    assert URL.endswith(f"/{universe['github']}")
    named = [OWN.fullmatch(universe[name]) for name in ("url", "image")]
    assert all(named) and all((ROOT / found[1]).is_file() for found in named)


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@PAGE
def test_files_modules_and_commands_in_the_text_are_there(page):
    for code in filter(is_installed, CODE.findall(read_prose(page).replace("\n", " "))):
        if re.fullmatch(r"(scripts|tests|docs|benchmarks|spacy_pll)/[\w./]*", code):
            assert (ROOT / code).exists(), f"{page.name}: {code}"
        elif test := re.fullmatch(r"(tests/[\w/]+\.py)::(\w+)", code):
            assert f"def {test[2]}(" in (ROOT / test[1]).read_text(encoding="utf8"), f"{page.name}: {code}"
        elif re.fullmatch(r"spacy_pll(\.\w+)+", code):
            find(code)
        elif re.match(r"pytest |python (benchmarks|-m scripts\.|-m pytest|-m spacy project)", code):
            check_command(code.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_an_example_imports_what_it_uses(page):
    """In its section, so that it can be copied from there."""
    ends = [number for number, line in enumerate(page.read_text(encoding="utf8").splitlines(), 1) if line[:3] == "## "]
    blocks = [block for block in BLOCKS[page] if block.language == "python"]
    modules = {name for block in blocks for name in names_in(block)[1]}
    for block in blocks:
        start = max((end for end in ends if end < block.line), default=0)
        before = [one for one in blocks if start < one.line <= block.line]
        missing = names_in(block)[0] & modules - {name for one in before for name in names_in(one)[1]}
        assert not missing, f"{block.where}: {missing}"


def names_in(block: Block) -> tuple[set[str], set[str]]:
    """The names that a block of Python reads, and those that it imports."""
    nodes = list(ast.walk(ast.parse(block.text)))
    read = {node.id for node in nodes if isinstance(node, ast.Name)}
    imports = [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    return read, {(alias.asname or alias.name).partition(".")[0] for alias in imports}


def test_options_in_the_text_are_there():
    """Each is one of the command that is named with it, or of any command."""
    commands = typer.main.get_command(app).commands
    options = {
        name: {option for one in command.params for option in [*one.opts, *one.secondary_opts]}
        for name, command in commands.items()
    }
    every = set().union(*options.values())
    for page in PAGES:
        for code in CODE.findall(read_prose(page).replace("\n", " ")):
            words = code.split()
            if words[0].startswith("--") and page.stem not in OTHERS_PAGES and page != CARD:
                assert words[0].partition("=")[0] in every | OTHERS_OPTIONS, f"{page.name}: {code}"
            if (command := re.match(r"(?:python -m spacy |spacy-)?pll ([\w-]+)", code)) and command[1] in options:
                for word in words:
                    assert not word.startswith("--") or word in options[command[1]], f"{page.name}: {code}"


def test_the_readme_and_the_page_about_speed_give_the_same_numbers():
    readme, page, measured = (
        " ".join(text_of(name).split()) for name in ("README.md", "docs/speed.md", "benchmarks/README.md")
    )
    cpu = re.search(r"scored (\d+ to \d+) BLiMP.*?BERT-base (\d+ to \d+)\. On a GPU \(NVIDIA (\w+)\)", readme)
    slowest, fastest = re.search(r"scored \[([\d,]+) to\s+([\d,]+)\]\(docs/speed.md#precision\)", readme).groups()
    assert f"scored {cpu[1]} BLiMP" in page and f"BERT-base {cpu[2]};" in page and f"one NVIDIA {cpu[3]}" in page
    assert re.search(rf"BLiMP, exact \| {slowest} \| [\d,]+ \| {fastest} \|", page)
    assert re.search(rf"BLiMP, exact \| {slowest} .*\| {fastest} ", measured)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf8")


def find(dotted: str):
    """What a dotted name stands for: a module, or what a module has."""
    module, _, name = dotted.rpartition(".")
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(module), name)


def test_the_full_config_has_every_setting():
    (block,) = [block for block in BLOCKS[ROOT / "docs" / "settings.md"] if "max_batch_tokens" in block.text]
    component = assemble(block.text).config["components"]["pll"]
    shown = {line.partition(" = ")[0] for line in block.text.splitlines() if " = " in line}
    assert shown >= {name for name in component if not isinstance(component[name], dict)} | set(component["model"])


def test_the_table_of_metrics_has_what_the_model_reads():
    rows = re.findall(
        r"^\| `(\w+)`(?:, the default)? \| `(She .+)` \| ([\d.]+) % \|", text_of("docs/metrics.md"), re.MULTILINE
    )
    assert len(rows) == 7
    nlp = spacy_pll.make_pipeline(metrics=[metric for metric, _, _ in rows])
    for metric, read, percent in rows:
        [text] = [
            one for one in visualize.masked_texts(nlp, "She lost the souvenir today.", metric) if one.piece == "##u"
        ]
        asked = text.text.replace(">[MASK]<", "?").replace(">", "").replace("<", "").replace("[MASK]", "_")
        assert f"{100 * text.probability:.1f}" == percent
        assert asked == f"[CLS] {read} [SEP]" or asked.replace("_", "?") == f"[CLS] {read} [SEP]"


def test_citation_names_this_version():
    citation = srsly.read_yaml(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license", "references"} <= set(citation)
    address = re.search(r"^url = (.+)$", text_of("setup.cfg"), re.MULTILINE)[1]
    assert citation["url"] == citation["repository-code"] == address and citation["date-released"]
    assert re.search(rf"^version = {re.escape(citation['version'])}$", (ROOT / "setup.cfg").read_text(), re.MULTILINE)
    heading = re.search(rf"^## {re.escape(citation['version'])} \((.+)\)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert heading and heading[1] in ("unreleased", str(citation["date-released"]))


def test_the_entries_in_bibtex_are_those_of_the_citation_file():
    citation = srsly.read_yaml(ROOT / "CITATION.cff")
    (block,) = [block for block in BLOCKS[ROOT / "docs" / "citing.md"] if block.language == "bibtex"]
    software, *papers = re.findall(r"@\w+\{.+?^\}", block.text, re.DOTALL | re.MULTILINE)
    wanted = [citation["url"], f"Version {citation['version']}", citation["authors"][0]["name"]]
    assert all(part in software for part in [*wanted, f"{{{str(citation['date-released'])[:4]}}}"])
    assert len(papers) == len(citation["references"])
    for paper, reference in zip(papers, citation["references"]):
        wanted = [f"{one['family-names']}, {one['given-names']}" for one in reference["authors"]]
        wanted += [reference["title"], str(reference["year"]), reference.get("doi") or reference["url"]]
        wanted += [
            reference.get("collection-title", ""),
            "--".join(str(reference.get(n, "")) for n in ("start", "end")),
        ]
        assert not [part for part in wanted if part.strip("-") and part not in re.sub(r"\{(\w+)\} ", r"\1 ", paper)]


def test_the_readme_stays_short():
    """Words are counted without code blocks and the addresses of links."""
    prose = re.sub(r"\]\([^)]*\)", "]", read_prose(ROOT / "README.md"))
    assert len(prose.split()) <= 1100
    assert len(prose[: prose.index("The least expected")].split()) <= 90  # before the first command


@pytest.mark.parametrize(
    "shown, actual, expected",
    [
        ("a  -44.16\n", "a  -44.164\n", "a  -44.16\n"),
        ("a  -44.16\n", "a  -44.19\n", "a  -44.19\n"),
        ("a  -44.16\n", "a  -44.1912\n", "a  -44.1912\n"),
        ("a ... -44.16, 5\n", "a b c -44.1912, 7\n", "a ... -44.19, 7\n"),
        ("The  -0.090574\n", "The  -0.090572\n", "The  -0.090574\n"),
        ("The  -0.090574\n", "The  -0.090772\n", "The  -0.090772\n"),
        ("-95.42336702346802\n", "-95.42336702399999\n", "-95.42336702346802\n"),
        ("10 pieces\n", "11 pieces\n", "11 pieces\n"),
        ("first 1.00\n...\nlast\n", "first 1.00\nx\ny\nlast\n", "first 1.00\n...\nlast\n"),
        ("first 1.00\n...\nlast\n", "first 2.00\nx\ny\nend\n", "first 2.00\n...\nend\n"),
        ('{"a": "They ...", "b": 1.5}\n', '{"a": "They could", "b": 2.5}\n', '{"a": "They ...", "b": 2.5}\n'),
        ("one\n", "one\ntwo\n", "one\ntwo\n"),
    ],
)
def test_shown_output_is_kept_where_it_agrees(shown, actual, expected):
    assert reconcile(shown, actual) == expected


@pytest.mark.parametrize(
    "comment, value, expected",
    [
        ("-44.16", -44.1634, "-44.16"),
        ("-44.16: the sum", -40.0, "-40.00: the sum"),
        ("-26.99, None", (-26.9911, None), "-26.99, None"),
        ("-26.99, None", (-26.9911, 3), "-26.99, 3"),
        ("3 words", 4, "4 words"),
        ("[16.51, 12.89] for both", [16.5149, 17.6822], "[16.51, 17.68] for both"),
        ("[None, 1.0]; the second", [None, 0.5], "[None, 0.5]; the second"),
    ],
)
def test_stated_values_are_kept_where_they_agree(comment, value, expected):
    assert restate(comment, value) == expected


def test_an_example_whose_output_is_not_shown_is_an_error(tmp_path):
    block = Block(PAGES[0], 1, "python", None, "print(1)\n", "")
    with pytest.raises(AssertionError, match="does not show"):
        list(PageRun(tmp_path, make_runner(), is_python_run).run([block]))


def test_a_value_that_nothing_computes_is_an_error(tmp_path):
    block = Block(PAGES[0], 1, "python", None, "x = 2  # 3\n", "")
    with pytest.raises(AssertionError, match="no expression"):
        list(PageRun(tmp_path, make_runner(), is_python_run).run([block]))


def count() -> str:
    """How many examples there are, and how they are tested."""
    every = [*BLOCKS.values(), *EXAMPLES.values()]
    python = [block for blocks in every for block in blocks if block.language == "python"]
    bash = [block for blocks in BLOCKS.values() for block in blocks if block.language == "bash"]
    commands = [words for block in bash for words in read_commands(block.text)]
    checked = [words for words in commands if reason_not_run(words)]
    slow = [words for words in commands if slow_part(words)]
    others = sum(bool(block.file or block.language == "ini") for blocks in BLOCKS.values() for block in blocks)
    outputs = sum(block.is_output for blocks in every for block in blocks)
    run = sum(map(is_python_run, python))
    return (
        f"{run} Python blocks run, {len(python) - run} only checked; {len(commands) - len(checked)} commands run, "
        f"{len(slow)} of them slow, {len(checked)} only checked; {outputs} outputs compared; "
        f"{others} files and configs read, written or compared."
    )


def show_written(page: Path, results: list[Result]):
    print(f"{page.relative_to(ROOT)}: {write(page, results)} of {len(results)} blocks changed", flush=True)


def main():
    if sys.argv[1:] == ["--write"]:
        with tempfile.TemporaryDirectory() as models:
            stand_ins, here = make_stand_ins(Path(models)), {part for part, needed in SLOW.items() if needed.exists()}
            for page in PAGES:
                with tempfile.TemporaryDirectory() as folder:
                    results = run_blocks(BLOCKS[page], Path(folder), stand_ins, slow=here)
                show_written(page, results)
        for module in MODULES:
            with tempfile.TemporaryDirectory() as folder:
                show_written(module, run_module(module, Path(folder)))
        universe = UNIVERSE.read_text(encoding="utf8")
        with tempfile.TemporaryDirectory() as folder:
            for line, expected in run_universe(Path(folder)):
                universe = universe.replace(json.dumps(line), json.dumps(expected))
        UNIVERSE.write_text(universe, encoding="utf8")
    print(count())


if __name__ == "__main__":
    main()
