"""`spacy-pll ppl INPUT`: the pseudo-perplexity of a corpus."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, variance
from typing import Any
from warnings import catch_warnings, simplefilter

from spacy.language import Language
from spacy.tokens import Doc
from wasabi import table

from ..cells import label_of, name_of
from ..component import get_scorer
from ..corpus.formats import write_table
from ..corpus.readers import check_records, list_files, read_records, read_texts
from ..corpus.records import STANDARD_STREAM, FileOptions, Nested, ReadOptions, warn_of_missing
from ..errors import InputError, no_column
from ..evaluation.perplexity import PER, Perplexity, perplexity, window_perplexities
from ..files import files_digest, write_json
from ..pipelines import PipelineSettings, describe_scorer, make_pipeline
from ..stream.known import KeptScores
from ..stream.workers import Work
from ..tables.rows import check_columns
from ..visualize.text import Table, text_table
from .options import INPUT, OF_TOKENS, described, file_options, options_as_in, pipeline_options, work_options
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
    output (Optional[Path]): Also write the results to FILE.json, or with --windows .csv.
    """
    if by is not None and windows is None:
        raise InputError("--by divides the windows of --windows. Give both.")
    is_stream = path == STANDARD_STREAM
    if resume and is_stream:
        raise InputError("--resume needs an INPUT that can be read again, not -.")
    endings = (".json",) if windows is None else TABLES
    kept = check_outputs(force, resume, None if is_stream else output, (output, endings))
    nlp = make_pipeline(settings)
    seed = get_scorer(nlp).settings.seed
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
            say(windows_table(rows, by or "doc"))
            save(output, write_table, rows)
            return
        if not is_stream and not output:  # or else they are read once more to know them
            check_records(path, options)
        texts: Iterable[str | Doc] = read_texts(path, options) if is_stream else _Texts(path, options)
        result = perplexity(nlp, texts, kept=kept, n_passes=n_passes, seed=seed, **work._asdict())
        if not result.pieces:
            kept.discard()
            raise InputError(f"Nothing was scored. None of the {result.texts} texts in {path!r} has a wordpiece.")
        say(summary_tables(result, get_scorer(nlp).settings.words))
        about |= bound if result.standard_error else {}
        save(output, write_json, {"settings": about, **result.to_dict()})


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
    records = [(number, one) for number, one in every if not one.problem]
    warn_of_missing(len(every) - len(records), len(every), "They are left out")
    for _, record in records:
        check_columns(list(record.fields), ["doc", "window", "window_text", "pppl"], record.location)
        if by is not None and by not in record.fields:
            raise no_column(record.location, by, record.fields)
    check_parquet(output, [one.fields for _, one in records])
    found = window_perplexities(nlp, [str(one.text) for _, one in records], n, kept=kept, **work._asdict())
    rows: list[dict[str, Any]] = [
        Nested({"doc": number, **record.fields, "window": i, "window_text": text, "pppl": value})
        for (number, record), of_text in zip(records, found)
        for i, (text, value) in enumerate(of_text)
    ]
    if not rows:
        kept.discard()
        raise InputError(f"Nothing was scored. No text in {path!r} has a word.")
    return rows


def windows_table(rows: list[dict[str, Any]], by: str) -> str:
    """The mean, the maximum and the variance (of the sample) of the perplexities of the windows of each group."""
    groups = dict[str, tuple[str, list[float]]]()  # by label, with what it is called
    for row in rows:
        _, values = groups.setdefault(label_of(row.get(by)), (name_of(row.get(by)), []))
        values += [] if math.isnan(row["pppl"]) else [row["pppl"]]
    lines: Table = [(by, "windows", "mean", "maximum", "variance")]
    for name, values in groups.values():
        spread = f"{variance(values):,.1f}" if len(values) > 1 else ""
        lines.append((name, f"{len(values):,}", *(f"{f(values):,.1f}" if values else "" for f in (fmean, max)), spread))
    return text_table(lines)


def summary_tables(result: Perplexity, unit: str) -> str:
    """The counts, and the perplexities by metric."""
    counts = [
        ("texts", f"{result.texts:,}"),
        ("  without a piece", f"{result.empty_texts:,}"),
        ("  read in windows", f"{result.windowed_texts:,}"),
        (f"words ({UNIT_TITLES[unit]})", f"{result.words:,}"),
        ("  split into several pieces", f"{result.split_words:,} ({100 * result.split_share:.1f} %)"),
        ("wordpieces", f"{result.pieces:,}"),
        ("  unknown to the tokenizer", f"{result.unknown_pieces:,}"),
    ]
    if result.intervals:
        counts.append(("  scored", f"{result.scored_pieces:,} ({100 * result.scored_pieces / result.pieces:.1f} %)"))
    rows: Table = [("pseudo-perplexity", "per piece", "per word", "per byte")]
    columns = (
        (result.per_piece, result.pieces, 1),
        (result.per_word, result.words, 1),
        (result.per_byte, result.bytes, 2),
    )
    for metric in result.log_likelihood:
        error = result.standard_error.get(metric)
        cells = (
            f"{values[metric]:,.{digits}f}" + (f" ± {100 * error / n:.1g} %" if error is not None else "")
            if values
            else ""
            for values, n, digits in columns
        )
        if result.intervals:
            ends = (result.intervals[name].get(metric, ()) for name in PER)
            cells = (" to ".join(f"{end:,.{column[2]}f}" for end in both) for both, column in zip(ends, columns))
        rows.append((metric, *cells))
    return table(counts, aligns=["l", "r"]) + text_table(rows)
