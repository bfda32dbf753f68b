from importlib.metadata import metadata
from pathlib import Path

from spacy_pll import documentation
from spacy_pll.documentation import page, with_addresses

ROOT = Path(__file__).parents[1]


def test_the_address_of_a_page():
    home = metadata("spacy-pll")["Home-page"]
    assert page("speed.md#gpu") == f"{home}/blob/HEAD/docs/speed.md#gpu"
    assert with_addresses("Read docs/speed.md, docs/one-pass.md#long-words.") == (
        f"Read {page('speed.md')}, {page('one-pass.md#long-words')}."
    )


def test_a_package_that_is_not_installed_names_the_path(monkeypatch):
    monkeypatch.setattr(documentation, "NAME", "no-such-package")
    assert page("speed.md") == "docs/speed.md"
