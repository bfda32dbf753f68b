"""The notebooks of examples/ are run from top to bottom, and their outputs compared with those that they show.

    python -m tests.project.test_notebooks --write

runs them and writes what came out into them: look at `git diff` then.
"""

import json
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ..doc_examples import ROOT, reconcile

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
# Streams of the libraries, such as progress bars, and what names the machine.
LEFT_OUT = "stderr"
# As Jupyter sets it. Other tests draw without a screen.
FIGURES = {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}


def read(path: Path):
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed: pip install . --group test-all")
    return nbformat.read(path, as_version=4)


def run(path: Path):
    """The notebook with new outputs. RAISES (CellExecutionError, AssertionError): A cell fails, or warns."""
    client = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install . --group test-all")
    if not find_spec("ipykernel"):  # it is not imported here: progress bars take a process that has it for a notebook
        pytest.skip("ipykernel is not installed: pip install . --group test-all")
    notebook = read(path)
    metadata = dict(notebook.metadata)
    with TemporaryDirectory() as folder:
        # so deep that "../assets", with data that the notebooks may use, is not there
        place = Path(folder, "examples")
        place.mkdir()
        # What a cell prints with pauses would otherwise be several outputs.
        options = {"timeout": 600, "record_timing": False, "kernel_name": "python3", "coalesce_streams": True}
        client.NotebookClient(notebook, resources={"metadata": {"path": str(place)}}, **options).execute(env=FIGURES)
    notebook.metadata = metadata
    for cell in notebook.cells:
        if cell.cell_type == "code":
            errors = [output.text for output in cell.outputs if output.get("name") == LEFT_OUT]
            assert not any("UserWarning" in text for text in errors), (cell.source, errors)
            cell.outputs = [output for output in cell.outputs if output.get("name") != LEFT_OUT]
    return notebook


def texts(cell) -> list[str]:
    """What a cell prints or shows, without HTML."""
    return [output.get("text") or output["data"]["text/plain"] for output in cell.get("outputs", [])]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_shows_what_its_cells_give(path):
    for shown, actual in zip(read(path).cells, run(path).cells, strict=True):
        assert len(texts(shown)) == len(texts(actual)), shown.source
        for before, after in zip(texts(shown), texts(actual)):
            # the same up to the last digit that is shown
            assert reconcile(before, after) == reconcile(before, before), shown.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_is_small_and_complete(path):
    assert path.stat().st_size < 200_000
    source = path.read_text(encoding="utf8")
    cells = json.loads(source)["cells"]
    assert cells[0]["source"][0].startswith("# ")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert sum(bool(cell["outputs"]) for cell in code) >= 3
    assert not any("execution" in cell["metadata"] for cell in cells)
    assert "/site-packages/" not in source and "Traceback" not in source


def test_the_index_names_each_notebook_and_the_extra_that_it_needs():
    lines = (ROOT / "examples" / "README.md").read_text(encoding="utf8").splitlines()
    rows = {line.split("](")[1].split(")")[0]: line.split("|")[3] for line in lines if line.startswith("| [")}
    assert sorted(rows) == [path.name for path in NOTEBOOKS] and len(rows) == 6
    for path in NOTEBOOKS:
        needed = re.findall(r"You need the extras? (`\[\w+\]`)(?: and (`\[\w+\]`))?", path.read_text(encoding="utf8"))
        assert rows[path.name].split() == [extra for found in needed for extra in found if extra]


def test_a_notebook_draws_a_figure():
    assert any('"image/png"' in path.read_text(encoding="utf8") for path in NOTEBOOKS)


def main():
    import nbformat

    for path in NOTEBOOKS:
        nbformat.write(run(path), path)
        print(path.relative_to(ROOT))


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    main()
