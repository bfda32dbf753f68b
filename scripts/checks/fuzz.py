"""Coverage-guided fuzzing of alignment and planning, with atheris (`pip install atheris`, Linux and macOS).

    python -m scripts.checks.fuzz FOLDER -max_total_time=600

FOLDER keeps the inputs that reach something new; further options are libFuzzer's. An input that fails is written to
the current folder as crash-*; `python -m scripts.checks.fuzz crash-*` runs it again. With `--keep FILE`, the inputs of
FOLDER are written to FILE, a line each in hexadecimal, where the tests run them: tests/fuzz_corpus.txt.
"""

import sys
from pathlib import Path


def keep(folder: Path, file: Path):
    inputs = sorted({path.read_bytes() for path in folder.iterdir()}, key=lambda data: (len(data), data))
    file.write_text("".join(data.hex() + "\n" for data in inputs if data))


def main():
    if "--keep" in sys.argv:
        keep(Path(sys.argv[1]), Path(sys.argv[-1]))
        return
    import atheris

    # Only what is fuzzed is watched: paths inside torch or spaCy would count as news, too.
    watched = ["metrics", "scoring.masks", "scoring.passes", "scoring.windows", "scoring.wordpieces"]
    with atheris.instrument_imports(include=[f"spacy_pll.{name}" for name in watched]):
        import spacy_pll.scoring.passes  # noqa: F401
    from tests import fuzzing

    # atheris keeps some 45 kB of each execution; without its instrumentation memory stays flat.
    atheris.Setup([*sys.argv, "-max_len=300", "-rss_limit_mb=0"], fuzzing.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
