"""Install the wheel in fresh environments, and run the first commands and example of README.md in each.

    python -m build --wheel
    python -m scripts.checks.check_installs dist/*.whl --python python3.10 python3.13 --with "transformers==4.48.*" ""
    python -m scripts.checks.check_installs dist/*.whl --with spacy-transformers -- --extra-index-url URL

It prints a row of a Markdown table for each interpreter and each set of requirements. An environment is removed before
the next is made. Commands that need an extra or a model of the hub are left out. What stands after `--` goes to
`pip install`: without an index of PyTorch's CPU builds, pip downloads gigabytes of CUDA. The exit code is 1 if any of
them failed.
"""

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.doc_examples import read_blocks, reconcile
from tests.doc_examples import read_commands as words_of

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
SHOWN = ["transformers", "spacy-transformers", "spacy", "torch"]
# Runs in the environment. The input is the example; a comment that begins with a number states a value.
RUN_EXAMPLE = """
import ast, contextlib, io, re, sys
source, wrong, names = sys.stdin.read(), [], {}
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    for statement in ast.parse(source).body:
        code = ast.get_source_segment(source, statement)
        line = source.splitlines()[statement.end_lineno - 1]
        stated = re.search(r"# (-?\\d+\\.(\\d+))", line)
        if isinstance(statement, ast.Expr) and stated:
            value = eval(code, names)
            if abs(value - float(stated[1])) > 10 ** -len(stated[2]):
                wrong.append(f"{code} is {value}, and README.md says {stated[1]}")
        else:
            exec(code, names)
if wrong:
    sys.exit("; ".join(wrong))
print(printed.getvalue(), end="")
"""
VERSIONS = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
found = {"Python": "%d.%d.%d" % sys.version_info[:3]}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        found[name] = "none"
print(json.dumps(found))
"""


class Failed(Exception):
    """A command failed. The message has the errors that it wrote, the cause first; or the last line."""


def run(command: list, **more) -> str:
    """RAISES (Failed): The command failed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        errors = [line for line in dict.fromkeys(lines) if re.match(r"[\w.]*(Error|Exception)\b", line)]
        raise Failed("; ".join(errors or lines[-1:]) or f"exit code {done.returncode}")
    return done.stdout


def read_example(page: Path = README) -> tuple[str, str]:
    """The first Python block of a page, and the block after it: what it prints."""
    blocks = read_blocks(page)
    at = [block.language for block in blocks].index("python")
    return blocks[at].text, blocks[at + 1].text


def run_example(python: Path | str, folder: str, example: tuple[str, str]):
    """RAISES (Failed): The example fails, or gives other values than the page states."""
    source, expected = example
    compare(run([python, "-c", RUN_EXAMPLE], input=source, cwd=folder), expected)


def compare(printed: str, expected: str):
    """RAISES (Failed): They differ by more than the tests allow: the last decimals of numbers."""
    printed = printed.strip("\n") + "\n"
    if reconcile(expected, printed) != expected:
        raise Failed(f"it printed {printed!r}, and README.md shows {expected!r}")


def read_commands(page: Path = README) -> tuple[list[str], str, list[list[str]]]:
    """The first command of a page, what it prints, and the commands of its table, each as its words."""
    commands, printed = read_blocks(page)[:2]
    rows = re.findall(r"^\| [^|]+ \| `spacy-pll ([^`]+)` \|", page.read_text(encoding="utf8"), re.M)
    others = [shlex.split(row) for row in rows if "--model" not in row]
    return words_of(commands.text)[-1][1:], printed.text, others


def run_commands(programs: Path, folder: str, page: Path = README):
    """RAISES (Failed): A command fails, or the first one prints something else than the page shows."""
    shutil.copytree(ROOT / "examples", Path(folder, "examples"))
    first, expected, others = read_commands(page)
    compare(run([programs / "spacy-pll", *first], cwd=folder), expected)
    for words in others:
        try:
            run([programs / "spacy-pll", *words], cwd=folder)
        except Failed as error:
            raise Failed(f"spacy-pll {shlex.join(words)}: {error}") from None


def check(python: str, wheel: Path, more: list[str], options: list[str]) -> tuple[dict, str]:
    """Install the wheel in a fresh environment and run what README.md shows.

    more (list[str]): Requirements besides those of the wheel.
    RETURNS (tuple[dict, str]): The versions by package, and the result in words.
    """
    with tempfile.TemporaryDirectory() as folder:
        versions = dict.fromkeys(["Python", *SHOWN], "?")
        try:
            run([python, "-m", "venv", f"{folder}/env"])
            own = Path(folder, "env", "bin", "python")
            run([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options, wheel, *more])
            versions = json.loads(run([own, "-c", VERSIONS, *SHOWN]))
            run_example(own, folder, read_example())
            run_commands(own.parent, folder)
        except Failed as error:
            return versions, f"failed: {error}"
        return versions, "as in README.md"


def main():
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, options = arguments[:at], arguments[at + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="Interpreters")
    parser.add_argument("--with", nargs="+", default=[""], dest="sets", help="Sets of requirements, each in quotes")
    args = parser.parse_args(arguments)
    print(f"| {' | '.join(['Python', *SHOWN])} | README's commands and example |", flush=True)
    print("| --- " * (len(SHOWN) + 2) + "|", flush=True)
    failed = False
    for python in args.python:
        for more in args.sets:
            versions, result = check(python, args.wheel.resolve(), more.split(), options)
            failed |= result.startswith("failed")
            print(f"| {' | '.join(versions.values())} | {result} |", flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
