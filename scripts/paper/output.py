"""The results of an analysis: a folder with tables (CSV, JSON), figures (SVG, PNG) and a list of these."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .files import atomic_folder, write_json

CONTENTS = "contents.json"
INSTALL = "pip install -c constraints.txt . --group project"  # as on docs/project.md


class Output:
    """Writes the results of one analysis into a folder.

    folder (Path): Where to write.
    title (str): The analysis' heading in the report.
    about (str): What the numbers are and how to read them: paragraphs, separated by blank lines.
    """

    def __init__(self, folder: Path, title: str, about: str):
        self.folder = folder
        self.contents: dict[str, Any] = {"title": title, "about": about, "items": []}

    def table(self, name: str, rows: list[dict], caption: str, show: dict[str, str] | None = None):
        """Write rows as NAME.csv and NAME.json.

        show (Optional[dict[str, str]]): The columns of the table in the report, each with its format, such as ".1f", or
            "" for text. The other columns are only in the files. None shows all columns, {} leaves the table out.
        """
        import pandas as pd

        frame = pd.DataFrame(rows)
        frame.to_csv(self.folder / f"{name}.csv", index=False)
        write_json(self.folder / f"{name}.json", json.loads(frame.to_json(orient="records", double_precision=12)))
        show = dict.fromkeys(frame.columns, "") if show is None else show
        self.contents["items"].append({"kind": "table", "name": name, "caption": caption, "show": show})

    def figure(self, name: str, figure, caption: str):
        """Write a matplotlib figure as NAME.svg and NAME.png, and close it."""
        import matplotlib.pyplot as plt

        figure.savefig(self.folder / f"{name}.svg", metadata={"Date": None})
        figure.savefig(self.folder / f"{name}.png", dpi=160)
        plt.close(figure)
        self.contents["items"].append({"kind": "figure", "name": name, "caption": caption})


def check_packages():
    """RAISES (ImportError): A package that the tables and figures need is not installed."""
    missing = [name for name in ("matplotlib", "pandas") if find_spec(name) is None]
    if missing:
        raise ImportError(f"The analyses need {', '.join(missing)}, not installed here: {INSTALL}")


@contextmanager
def analysis(results: Path, name: str, title: str, about: str) -> Iterator[Output]:
    """An `Output` for the folder RESULTS/NAME. The folder is replaced only once all results are written."""
    check_packages()
    with atomic_folder(results / name) as folder:
        output = Output(folder, title, about)
        yield output
        write_json(folder / CONTENTS, output.contents)
    print(f"{results / name}: {', '.join(item['name'] for item in output.contents['items'])}")
