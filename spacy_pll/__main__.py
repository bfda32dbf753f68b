"""`python -m spacy_pll` is `python -m spacy pll`."""

from .cli import app

if __name__ == "__main__":
    app(prog_name="python -m spacy_pll")
