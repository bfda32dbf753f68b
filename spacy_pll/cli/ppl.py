"""`pll ppl INPUT`: the pseudo-perplexity of a corpus."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from spacy.tokens import Doc
from wasabi import table

from ..component import PLLScorer
from ..corpus.outputs import ForceOption, check_output, json_text, write_whole
from ..corpus.readers import InputError, read_records
from ..corpus.workers import watch_workers
from ..evaluation.perplexity import Corpus, perplexity, pieces_per_word, word_starts
from ..pipelines import (
    BatchSizeOption,
    GpuOption,
    LangOption,
    MaskSpacingOption,
    MetricsOption,
    ModelOption,
    PrecisionOption,
    ProcessesOption,
    SpansOption,
    WordsOption,
    get_scorer,
    make_pipeline,
    split_names,
)
from . import app
from .errors import shown_errors
from .progress import progress_bar

UNITS = {
    "spacy": "spaCy's tokens",
    "tokenizer": "the tokenizer's own pre-tokens",
    "whitespace": "what stands between white space",
}


@app.command("ppl", no_args_is_help=True)
def ppl_cli(
    path: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A file, .txt (one text a line), .jsonl, .csv, .tsv or .spacy, a folder of them, or - for .txt on "
            "standard input.",
            show_default=False,
        ),
    ],
    column: Annotated[str, typer.Option(help="Column, or key, that holds the text.")] = "text",
    model: ModelOption = None,
    metrics: MetricsOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="FILE.json.", show_default=False)] = None,
    force: ForceOption = False,
    words: WordsOption = None,
    spans: SpansOption = None,
    mask_spacing: MaskSpacingOption = None,
    lang: LangOption = "en",
    gpu_id: GpuOption = -1,
    precision: PrecisionOption = None,
    batch_size: BatchSizeOption = 512,
    n_process: ProcessesOption = 1,
):
    """Pseudo-perplexity of a corpus, per wordpiece and per word (Salazar et al. 2020, section 2.3).

    Words are counted in the unit that --words names. Nothing of the corpus is kept in memory.
    """
    with shown_errors():
        files = check_output(output, (".json",), force)
        options = (model, split_names(metrics), words, spans, lang, precision)
        nlp = make_pipeline(*options, keep_pieces=True, gpu_id=gpu_id, mask_spacing=mask_spacing)
        scorer = get_scorer(nlp)
        if scorer.targets is not None:
            raise ValueError(
                f"The pipeline {model!r} scores some spans only (its setting `targets` is {scorer.targets!r}), and "
                "perplexity is of whole texts. Use a pipeline without `targets`."
            )
        texts = (record.text for record in read_records(path, column, nlp.vocab))
        corpus = Corpus()
        with watch_workers():
            for doc in progress_bar(nlp.pipe(texts, batch_size=batch_size, n_process=n_process)):
                add_doc(corpus, doc, scorer)
        if not corpus.pieces:
            raise InputError(f"Nothing was scored: {path!r} has {corpus.texts} texts, none of them with a wordpiece.")
        result = summary(corpus, scorer)
        print(summary_tables(result, scorer.words))
        settings = {
            "path": path,
            "model": model or "builtin",
            "words": scorer.words,
            "mask_spacing": scorer.mask_spacing,
        }
        for file in files:
            write_whole(file, json_text({"settings": settings, **result}))


def add_doc(corpus: Corpus, doc: Doc, scorer: PLLScorer):
    """Count a scored doc in."""
    data = doc._.get(scorer.names.data)
    tokenizer = scorer.model.tokenizer
    per_word = pieces_per_word(data["start"], word_starts(doc, scorer.words, tokenizer))
    # What the model reads at once is a span and the special tokens around it.
    room = scorer.model.max_length - len(tokenizer.encode("").ids)
    windowed = any((span._.get(scorer.names.pieces) or 0) > room for span in scorer.get_spans([doc])[0])
    scores = {metric: sum(values) for metric, values in data["scores"].items()}
    corpus.add(per_word, np.array(data["ids"]), scorer.model.unknown_id, windowed, scores)


def summary(corpus: Corpus, scorer: PLLScorer) -> dict:
    """The figures, for a file; shares are 0 to 1."""
    return {
        "texts": corpus.texts,
        "empty_texts": corpus.empty,
        "windowed_texts": corpus.windowed,
        "words": corpus.words,
        "split_words": corpus.split,
        "split_share": corpus.split / max(1, corpus.words),
        "pieces": corpus.pieces,
        "unknown_pieces": corpus.unknown,
        "metrics": {
            metric: {
                "log_likelihood": total,
                "pppl_per_piece": perplexity(total, corpus.pieces),
                "pppl_per_word": perplexity(total, corpus.words) if corpus.words else None,
            }
            for metric, total in corpus.log_likelihood.items()
        },
    }


def summary_tables(result: dict, unit: str) -> str:
    """What was counted, and the perplexities by metric."""
    counts = [
        ("texts", f"{result['texts']:,}"),
        ("  without a piece", f"{result['empty_texts']:,}"),
        ("  read in windows", f"{result['windowed_texts']:,}"),
        (f"words ({UNITS[unit]})", f"{result['words']:,}"),
        ("  split into several pieces", f"{result['split_words']:,} ({100 * result['split_share']:.1f} %)"),
        ("wordpieces", f"{result['pieces']:,}"),
        ("  unknown to the tokenizer", f"{result['unknown_pieces']:,}"),
    ]
    rows = [
        (metric, *(_shown(figures[f"pppl_per_{n}"]) for n in ("piece", "word")))
        for metric, figures in result["metrics"].items()
    ]
    header = ("pseudo-perplexity", "per piece", "per word")
    aligns = ["l", "r", "r"]
    return table(counts, aligns=aligns[:2]) + table(rows, header=header, divider=True, aligns=aligns)


def _shown(perplexity: float | None) -> str:
    return "" if perplexity is None else f"{perplexity:,.1f}"
