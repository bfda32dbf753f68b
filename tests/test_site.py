"""The documentation site: its pages are short, and its parts name all that there is. Only .ci/run builds it."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
MAX_LINES = 250


def test_no_page_is_too_long():
    lengths = {page.name: len(page.read_text(encoding="utf8").splitlines()) for page in PAGES}
    assert len(PAGES) > 10 and {page: n for page, n in lengths.items() if n > MAX_LINES} == {}
