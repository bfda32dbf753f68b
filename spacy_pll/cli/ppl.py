"""`spacy-pll ppl INPUT`: the pseudo-perplexity of a corpus."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

from spacy.language import Language
from spacy.tokens import Doc

from ..component import get_scorer
from ..corpus.formats import write_table
from ..corpus.readers import check_records, list_files, read_records, read_texts
from ..corpus.records import STANDARD_STREAM, FileOptions, Nested, ReadOptions, warn_of_missing
from ..errors import InputError, no_column
from ..evaluation.perplexity import Perplexity, Window, perplexity, window_measurements, window_perplexities
from ..files import files_digest
from ..pipelines import PipelineSettings, describe_scorer, make_pipeline
from ..stream.known import KeptScores
from ..stream.workers import Work
from ..tables.rows import check_columns
from ..visualize.text import Table, text_table
from .options import INPUT, OF_TOKENS, described, file_options, options_as_in, pipeline_options, work_options
from .results import RESULTS, measurement_table, save_results
from .terminal import TABLES, check_outputs, check_parquet, save, say

UNIT_TITLES = {
    "spacy": "spaCy's tokens",
    "tokenizer": "the tokenizer's own pre-tokens",
    "whitespace": "separated by white space",
    "piece": "wordpieces",
}


@pipeline_options(without=OF_TOKENS, sample=True)
@file_options
@work_options
@options_as_in(perplexity, "n_passes")
@described(path=INPUT, windows={"min": 1})
def ppl_cli(
    path: str,
    settings: PipelineSettings,
    column: str = "text",
    *,
    files: FileOptions,
    windows: int | None = None,
    by: str | None = None,
    n_passes: int | None,
    output: Path | None = None,
    resume: bool = False,
    force: bool = False,
    work: Work,
) -> None:
    """Measure the pseudo-perplexity of a corpus.

    The result is given per wordpiece and per word (Salazar et al. 2020, section 2.3). --words says what counts as a
    word. The corpus is read as a stream, so it can have any size.

    The metric sentence_any_order alone gives an upper bound on the perplexity, with its standard error by the draw of
    the orders, in per cent.

    $ spacy-pll ppl corpus.txt
    $ spacy-pll ppl corpus.jsonl --column text --metrics word_l2r,original --output ppl.json
    docs/corpora.md

    windows (Optional[int]): Measure the pseudo-perplexity of each window of this many words instead, and print its
        mean, maximum and variance for each text. Words are separated by white space. --output is a table with a row for
        each window.
    by (Optional[str]): With --windows: a column, such as the speaker, instead of each text by itself.
    output (Optional[Path]): Also write the results to FILE.json or FILE.csv. With --windows: a table of the windows.
    """
    if by is not None and windows is None:
        raise InputError("--by divides the windows of --windows. Give both.")
    is_stream = path == STANDARD_STREAM
    if resume and is_stream:
        raise InputError("--resume needs an INPUT that can be read again, not -.")
    endings = RESULTS if windows is None else TABLES
    kept = check_outputs(force, resume, None if is_stream else output, (output, endings))
    nlp = make_pipeline(settings)
    scorer = get_scorer(nlp)
    seed = scorer.settings.seed
    bound = {"n_passes": n_passes, "seed": seed}
    options = ReadOptions(column, nlp.vocab, files)
    about = {"path": path, **describe_scorer(nlp, settings)}
    run = {"column": column, "batch_size": work.batch_size, "windows": windows, "by": by, **bound, **vars(files)}
    with catch_warnings():
        simplefilter("ignore")  # of files that are not read, which comes when the others are
        digest = None if is_stream else files_digest(list_files(path))
    kept.about = {**about, "run": run, "files": digest}
    with kept.until_done():
        if windows is not None:
            rows = _windows(nlp, path, options, windows, by, output, kept, work)
            of_rows = [Window(row["pppl"], row) for row in rows]
            say(measurement_table(window_measurements(of_rows, by or "doc", scorer.settings.metrics[0]), "windows"))
            save(output, write_table, rows)
            return
        if not is_stream and not output:  # or else they are read once more to know them
            check_records(path, options)
        texts: Iterable[str | Doc] = read_texts(path, options) if is_stream else _Texts(path, options)
        result = perplexity(nlp, texts, kept=kept, n_passes=n_passes, seed=seed, **work._asdict())
        if not result.pieces:
            kept.discard()
            raise InputError(f"Nothing was scored. None of the {result.texts} texts in {path!r} has a wordpiece.")
        measured = result.measurements()
        say(counts_table(result, scorer.settings.words) + measurement_table(measured))
        about |= bound if result.standard_error else {}
        save_results(output, measured, about, counts=result.counts)


@dataclass
class _Texts(Iterable[str | Doc]):
    """The texts of files, which are read each time."""

    path: str
    options: ReadOptions

    def __iter__(self) -> Iterator[str | Doc]:
        return read_texts(self.path, self.options)


def _windows(
    nlp: Language,
    path: str,
    options: ReadOptions,
    n: int,
    by: str | None,
    output: Path | None,
    kept: KeptScores,
    work: Work,
) -> list[dict[str, Any]]:
    """A row for each window of n words."""
    every = list(enumerate(read_records(path, options)))
    records = [(number, record) for number, record in every if not record.problem]
    warn_of_missing(len(every) - len(records), len(every), "They are left out")
    for _, record in records:
        check_columns(list(record.fields), ["doc", "window", "window_text", "pppl"], record.location)
        if by is not None and by not in record.fields:
            raise no_column(record.location, by, record.fields)
    check_parquet(output, [record.fields for _, record in records])
    windows = window_perplexities(nlp, [str(record.text) for _, record in records], n, kept=kept, **work._asdict())
    rows: list[dict[str, Any]] = [
        Nested({"doc": number, **record.fields, "window": i, "window_text": text, "pppl": value})
        for (number, record), of_text in zip(records, windows)
        for i, (text, value) in enumerate(of_text)
    ]
    if not rows:
        kept.discard()
        raise InputError(f"Nothing was scored. No text in {path!r} has a word.")
    return rows


def counts_table(result: Perplexity, unit: str) -> str:
    """How many texts, words and wordpieces there are. unit (str): What counts as a word."""
    rows: Table = [
        ("counted", "number"),
        ("texts", f"{result.texts:,}"),
        ("  without a piece", f"{result.empty_texts:,}"),
        ("  read in windows", f"{result.windowed_texts:,}"),
        (f"words ({UNIT_TITLES[unit]})", f"{result.words:,}"),
        ("  split into several pieces", f"{result.split_words:,} ({100 * result.split_share:.1f} %)"),
        ("wordpieces", f"{result.pieces:,}"),
        ("  unknown to the tokenizer", f"{result.unknown_pieces:,}"),
    ]
    if result.scored_pieces < result.pieces:
        rows.append(("  scored", f"{result.scored_pieces:,} ({100 * result.scored_pieces / result.pieces:.1f} %)"))
    return text_table(rows)
