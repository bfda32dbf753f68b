"""How long spaCy takes to start, and how much memory, with this package installed and without it.

    python benchmarks/startup.py [--rounds 5]

Each command runs in a process of its own, with and without the package in turn. spaCy reads the entry points of
whatever is installed, so the package can slow down every command. "Without" is the same environment, in which the
package and its metadata cannot be found. The first run of each is not counted: it reads the files from disk.

Times are wall times, and memory is the peak resident size that the operating system reports (Linux).
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMANDS = {
    "python -m spacy info": ["-m", "spacy", "info"],
    "spacy.blank('en')": ["-c", "import spacy; spacy.blank('en')"],
    "pll --help": ["-m", "spacy", "pll", "--help"],
}
ONLY_WITH = ("pll --help",)
OWN = ("spacy_pll", "__editable__")


def make_folders(folder: Path) -> tuple[str, str]:
    """Two search paths that a Python without `site` can use: without the package, and with it.

    folder (Path): Where to put links to what is installed.
    """
    others, own = folder / "others", folder / "own"
    others.mkdir()
    own.mkdir()
    for place in (Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")):
        for entry in place.iterdir():
            target = own if entry.name.startswith(OWN[0]) else others
            if not entry.name.startswith(OWN[1]) and not (target / entry.name).exists():
                (target / entry.name).symlink_to(entry)
    if not any(own.glob("spacy_pll-*")):
        raise SystemExit("spacy-pll is not installed in this environment: pip install .")
    if not (own / "spacy_pll").exists():  # an editable installation: the code is in the checkout
        (own / "spacy_pll").symlink_to(Path(__file__).parents[1] / "spacy_pll")
    return str(others), os.pathsep.join([str(others), str(own)])


def measure(arguments: list[str], search_path: str) -> tuple[float, float]:
    """Run Python. RETURNS: Seconds, and MB at the peak."""
    environment = {**os.environ, "PYTHONPATH": search_path}
    # Python also looks in the working folder, which is no checkout of the package there.
    elsewhere = Path(search_path.split(os.pathsep)[0]).parent
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-S", *arguments],
        cwd=elsewhere,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{errors}")
    return seconds, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        without, with_it = make_folders(Path(folder))
        cases = [
            (name, label, path)
            for name in COMMANDS
            for label, path in (("without", without), ("with", with_it))
            if label == "with" or name not in ONLY_WITH
        ]
        runs = {case: [] for case in cases}
        for number in range(args.rounds + 1):
            for case in cases:
                measured = measure(COMMANDS[case[0]], case[2])
                if number:
                    runs[case].append(measured)
    print("| command | spacy-pll | seconds: median (range) | MB at the peak: median |")
    print("| --- | --- | ---: | ---: |")
    for (name, label, _), results in runs.items():
        seconds, megabytes = zip(*results)
        spread = f"{statistics.median(seconds):.2f} ({min(seconds):.2f}-{max(seconds):.2f})"
        print(f"| `{name}` | {label} | {spread} | {statistics.median(megabytes):.0f} |")


if __name__ == "__main__":
    main()
