"""`pll show TEXT ...`: a table for each text."""

from dataclasses import replace
from typing import Annotated, Literal

import typer
from spacy.tokens import Doc
from wasabi import table

from ..extensions import Names, pieces_by_token
from ..pipelines import PipelineSettings, get_scorer, make_pipeline
from .errors import shown_errors
from .options import pipeline_options


@pipeline_options()
def show_cli(
    texts: Annotated[list[str], typer.Argument(help="Texts, each in quotes.", show_default=False)],
    settings: PipelineSettings,
):
    """Print the tokens of some texts with their wordpieces and scores.

    Scores are natural logarithms. The last row has the sums.
    """
    with shown_errors():
        nlp = make_pipeline(replace(settings, keep_pieces=True))
        names = get_scorer(nlp).names
        # Python decodes shell arguments that are not valid UTF-8 to lone surrogates, which spaCy does not accept.
        clean = [text.encode("utf8", "surrogateescape").decode("utf8", "replace") for text in texts]
        for doc in nlp.pipe(clean):
            print(score_table(doc, names))


def score_table(doc: Doc, names: Names) -> str:
    """A doc's tokens with their wordpieces and scores, and the sums in the last row.

    doc (Doc): Scored with `keep_pieces`.
    names (Names): What the component calls its attributes.
    """
    columns = names.columns
    groups, pieces = pieces_by_token(doc, names), doc._.get(names.data)["pieces"]
    rows = [
        (
            token.text,
            " ".join(pieces[i] for i in groups[token.i]),
            *(_shown(token._.get(name)) for name in columns.values()),
        )
        for token in doc
        if not token.is_space
    ]
    perplexity = doc._.get(names.perplexity)
    total = (f"PPPL {perplexity:.1f}" if perplexity else "", f"{doc._.get(names.pieces) or 0} pieces")
    footer = (*total, *(f"{doc._.get(name) or 0.0:.2f}" for name in columns.values()))
    aligns: list[Literal["l", "r"]] = ["l", "l"]
    aligns.extend("r" for _ in columns)
    return table(rows, header=("token", "wordpieces", *columns), footer=footer, divider=True, aligns=aligns)


def _shown(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"
