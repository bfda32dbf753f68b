"""Install the wheel in fresh environments, and run the first Python example of README.md in each.

    python -m build --wheel
    python -m scripts.checks.check_installs dist/*.whl --python python3.10 python3.13 --with "transformers==4.48.*" ""
    python -m scripts.checks.check_installs dist/*.whl --with spacy-transformers -- --extra-index-url URL

It prints a row of a Markdown table for each interpreter and each set of requirements. An environment is removed before
the next is made. What stands after `--` goes to `pip install`: without an index of PyTorch's CPU builds, pip downloads
gigabytes of CUDA. The exit code is 1 if any of them failed.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
NUMBER = r"-?\d+\.\d+"
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
    found = re.search(r"^```python\n(.*?)^```\n\s*^```\n(.*?)^```\n", page.read_text(encoding="utf8"), re.M | re.S)
    if not found:
        raise SystemExit(f"{page} has no Python block with its output.")
    return found[1], found[2]


def run_example(python: Path | str, folder: str, example: tuple[str, str]):
    """RAISES (Failed): The example fails, or gives other values than the page states."""
    source, expected = example
    printed = run([python, "-c", RUN_EXAMPLE], input=source, cwd=folder)
    # Scores may differ in the sixth digit, and so be rounded to another last decimal.
    numbers, expected_numbers = re.findall(NUMBER, printed), re.findall(NUMBER, expected)
    agrees = re.sub(NUMBER, "", printed) == re.sub(NUMBER, "", expected) and all(
        abs(float(one) - float(other)) < 0.011 for one, other in zip(numbers, expected_numbers, strict=True)
    )
    if not agrees:
        raise Failed(f"the example printed {printed!r}, and README.md shows {expected!r}")


def check(python: str, wheel: Path, more: list[str], options: list[str]) -> tuple[dict, str]:
    """Install the wheel in a fresh environment and run the example.

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
    print(f"| {' | '.join(['Python', *SHOWN])} | README's first example |", flush=True)
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
