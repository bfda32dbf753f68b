"""The command line: `python -m spacy pll ...`, or `spacy-pll ...`, which is the same."""

import typer
from spacy.cli._util import app as spacy_cli

HELP = """Score text with masked language models: pseudo-log-likelihood (Kauf & Ivanova 2023)."""

app = typer.Typer(name="pll", help=HELP, no_args_is_help=True, rich_markup_mode=None, add_completion=False)
# spaCy loads what is registered under `spacy_cli` before it runs: this import makes `python -m spacy pll`.
spacy_cli.add_typer(app)

from . import pairs, ppl, render, rescore, score, show  # noqa: E402, F401

__all__ = ["app"]
