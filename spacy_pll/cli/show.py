"""`spacy-pll show TEXT ...`: a table for each text."""

from collections.abc import Sequence

from spacy.tokens import Doc

from ..advice.giving import advise
from ..advice.texts import path_as_text
from ..component import PLLScorer, get_scorer
from ..errors import PLLError
from ..pipelines import PipelineSettings, make_pipeline
from ..tables.rows import ScoredText, TokenRows
from ..visualize.masked_texts import MaskedText, masked_table, masked_texts
from ..visualize.text import format_cell, format_percent, list_alternatives, text_table
from .options import described, pipeline_options
from .terminal import say


@pipeline_options(without=("keep_pieces",))
@described()
def show_cli(texts: list[str], settings: PipelineSettings, masks: bool = False) -> None:
    """Print the tokens of some texts with their wordpieces and scores.

    Scores are natural logarithms. The last row has the sums. With --alternatives, the last column shows what the model
    expected in the place of each token, with probabilities. With --distribution, there are columns for the rank of the
    token and the entropy of the model's prediction, in nats.

    $ spacy-pll show "The children is hungry." --alternatives 3
    $ spacy-pll show "The traveler lost the souvenir." --masks
    docs/command-line.md

    texts (List[str]): Texts, each in quotes.
    masks (bool): Show the text with masks that the model read for each wordpiece.
    """
    if masks and any(map(settings.scoring.get, ("alternatives", "distribution"))):
        raise PLLError("--masks shows probabilities of the text alone. Leave out --alternatives and --distribution.")
    nlp = make_pipeline(settings, keep_pieces=True)
    scorer = get_scorer(nlp)
    # Python decodes shell arguments that are not valid UTF-8 to lone surrogates, which spaCy does not accept.
    clean = [text.encode("utf8", "surrogateescape").decode("utf8", "replace") for text in texts]
    advise(*map(path_as_text, clean))
    for doc in nlp.pipe(clean):
        for name in scorer.settings.metrics if masks else ():
            say(mask_table(masked_texts(nlp, doc, name), scorer.names.metrics[name]))
        if not masks:
            say(score_table(doc, scorer))


def score_table(doc: Doc, scorer: PLLScorer) -> str:
    """A doc's tokens with their wordpieces and scores, and the sums in the last row. doc: Scored with `keep_pieces`."""
    names, alternatives = scorer.names, scorer.settings.alternatives
    rows = list(TokenRows("text", names, scorer.settings)(ScoredText.of(doc, names)))
    perplexity, top1 = doc._.get(names.perplexity), doc._.get(names.top1)
    columns: list[tuple[str, list[str], str]] = [  # heading, cells, sum
        ("token", [row["text"] for row in rows], f"PPPL {perplexity:.1f}" if perplexity else ""),
        ("wordpieces", [" ".join(row["pieces"]) for row in rows], f"{doc._.get(names.pieces) or 0} pieces"),
    ]
    sums = {name: format_cell(doc._.get(name)) for name in names.metrics.values()}
    if scorer.settings.distribution:
        sums["rank"] = "" if top1 is None else f"{format_percent(top1)} rank 1"
        sums["entropy"] = format_cell(doc._.get(names.entropy))
    columns += [(name, [format_cell(row[name]) for row in rows], total) for name, total in sums.items()]
    if alternatives:
        columns.append(("expected", [list_alternatives(doc[row["token"]], names) for row in rows], ""))
    header, cells, footer = zip(*columns)
    return text_table([header, *zip(*cells)], ("wordpieces", "expected"), footer)


def mask_table(texts: Sequence[MaskedText], score: str) -> str:
    """What the model reads for each wordpiece. score (str): What the scores are called."""
    header, *rows, footer = masked_table(texts, score)
    return text_table([header, *rows], header[-1:], footer)
