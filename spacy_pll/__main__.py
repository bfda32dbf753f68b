"""python -m spacy_pll TEXT ...: score texts with the built-in model, or another, and print a table for each."""

import argparse

import spacy
from spacy.tokens import Doc
from wasabi import table

from .component import DEFAULT_CONFIG
from .wordpieces import WORDS


def score_table(doc: Doc, metrics: list[str]) -> str:
    """A doc's tokens with their wordpieces and scores, and the sums in the last row."""
    names = metrics if len(metrics) > 1 else ["pll"]
    pieces = {token.i: [] for token in doc}
    for piece, token in zip(doc._.pll_data["pieces"], doc._.pll_data["token"]):
        pieces[token].append(piece)
    rows = [
        (token.text, " ".join(pieces[token.i]), *(f"{_score(token, name):.2f}" for name in names))
        for token in doc
        if not token.is_space
    ]
    total = (f"PPPL {doc._.pppl:.1f}" if doc._.pppl else "", f"{doc._.pll_pieces or 0} pieces")
    footer = (*total, *(f"{_score(doc, name) or 0.0:.2f}" for name in names))
    aligns = ["l", "l", *("r" for _ in names)]
    return table(rows, header=("token", "wordpieces", *names), footer=footer, divider=True, aligns=aligns)


def _score(item, name: str):
    return item._.get(name if name == "pll" else f"pll_{name}")


def main(arguments: list[str] | None = None):
    parser = argparse.ArgumentParser(prog="python -m spacy_pll", description=__doc__.split(": ", 1)[1])
    parser.add_argument("texts", nargs="+", metavar="TEXT")
    parser.add_argument("--model", help="hub name or folder of a masked language model (the built-in English one)")
    parser.add_argument("--lang", default="en", help="language of spaCy's tokenizer (%(default)s)")
    parser.add_argument(
        "--metrics",
        type=lambda names: names.split(","),
        default=DEFAULT_CONFIG["metrics"],
        help="comma-separated, of word_l2r, original, whole_word, sentence_l2r (word_l2r)",
    )
    parser.add_argument("--words", choices=WORDS, default=WORDS[0], help="what counts as a word (%(default)s)")
    args = parser.parse_args(arguments)
    model = {**DEFAULT_CONFIG["model"], "name": args.model}
    settings = {"model": model, "metrics": args.metrics, "words": args.words, "keep_pieces": True}
    try:
        nlp = spacy.blank(args.lang)
        nlp.add_pipe("pll", config=settings)
        nlp.initialize()
    except (ImportError, OSError, ValueError) as error:
        parser.error(str(error))
    # A shell argument that is no valid UTF-8 reaches Python as lone surrogates, which spaCy refuses.
    texts = [text.encode("utf8", "surrogateescape").decode("utf8", "replace") for text in args.texts]
    for doc in nlp.pipe(texts):
        print(score_table(doc, args.metrics))


if __name__ == "__main__":
    main()
