"""What an analysis leaves behind: a folder of tables (CSV, JSON) and figures (SVG, PNG), and a list of them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from .files import atomic_folder, write_json

CONTENTS = "contents.json"


class Output:
    """The folder of one analysis, while it is written.

    folder (Path): Where to write.
    about (str): What the numbers are and how to read them, in Markdown's plainest: paragraphs.
    """

    def __init__(self, folder: Path, title: str, about: str):
        self.folder = folder
        self.contents = {"title": title, "about": about, "items": []}

    def table(self, name: str, rows: list[dict], caption: str, show: dict[str, str] | None = None):
        """Write rows as NAME.csv and NAME.json.

        show (Optional[dict]): For the report: column -> format such as ".1f", or "" for text;
            the other columns stay in the files. None shows all, {} leaves the table out.
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
    """RAISES (ImportError): What the tables and figures are made with is not installed."""
    missing = [name for name in ("matplotlib", "pandas", "scipy") if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"The analyses need {', '.join(missing)}, not installed here: pip install 'spacy-pll[project]'"
        )


@contextmanager
def analysis(results: Path, name: str, title: str, about: str) -> Iterator[Output]:
    """RESULTS/NAME as a new `Output`; it appears when all went well."""
    check_packages()
    with atomic_folder(results / name) as folder:
        output = Output(folder, title, about)
        yield output
        write_json(folder / CONTENTS, output.contents)
    print(f"{results / name}: {', '.join(item['name'] for item in output.contents['items'])}")
