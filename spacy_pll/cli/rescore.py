"""`spacy-pll rescore NBEST`: n-best lists reranked with the PLL."""

import math
import warnings
from pathlib import Path
from typing import Any

import typer

from ..corpus.records import FileOptions
from ..errors import InputError
from ..evaluation import rescoring
from ..evaluation.measurements import Measurement
from ..evaluation.readers import FORMAT, NBest, read_nbest
from ..files import to_json, write_text
from ..pipelines import PipelineSettings, describe_scorer, make_pipeline
from ..stream.known import digest_of
from ..stream.workers import Work
from .options import OF_TOKENS, described, options_as_in, options_from, pipeline_options, work_options
from .results import measurement_table
from .terminal import check_outputs, save, say

MAX_WEIGHTS = 100_000  # in a grid


def parse_grid(value: str) -> list[float]:
    """The weights of START:STOP:STEP."""
    try:
        start, stop, step = (float(number) for number in value.split(":"))
        n = (stop - start) / step
    except (ValueError, ZeroDivisionError):
        n = step = math.nan
    if not (step > 0 and 0 <= n < MAX_WEIGHTS):
        raise typer.BadParameter(
            "A grid must be START:STOP:STEP, such as 0:2:0.05, with START <= STOP, STEP above 0, and at most "
            f"{MAX_WEIGHTS:,} steps. It is {value!r}."
        )
    return [round(start + i * step, 10) for i in range(int(n + 1e-9) + 1)]


@pipeline_options(without=("metrics", *OF_TOKENS))
@options_as_in(FileOptions, "encoding")
@work_options
@options_from("reading", read_nbest, "beam_size", "references", "costs", beam_size={"min": 1})
@described(
    path={
        "metavar": "NBEST",
        "help": f'A .jsonl file. Each line is a list: {FORMAT} It may have a "context": what was said before. Or a '
        ".tsv file with a text, a tab and a score a line.",
    },
    grid_={"param_decls": ["--grid"]},
)
def rescore_cli(
    path: str,
    settings: PipelineSettings,
    metric: str | None = None,
    weight: float | None = None,
    dev: str | None = None,
    grid_: str = "0:2:0.05",
    word_weight: float = 0.0,
    word_grid: str = "0:0:1",
    *,
    reading: dict[str, Any],
    dev_references: str | None = None,
    error_rate: rescoring.ErrorKind = "auto",
    per_piece: bool = False,
    encoding: str,
    output: Path | None = None,
    resume: bool = False,
    force: bool = False,
    work: Work,
) -> None:
    """Rerank n-best lists with the PLL.

    Hypotheses are ranked by first-pass score + weight * PLL + word weight * words (Salazar et al. 2020, section 3). The
    first-pass score is the "score" of the input. Scores are natural logarithms.

    If lists have a "reference", the error rates before and after reranking are shown. For translations, which may
    have several "references", measure BLEU on the output.

    $ spacy-pll rescore nbest.jsonl --weight 0.4 --output best.jsonl
    $ spacy-pll rescore nbest.jsonl --dev dev.jsonl --output best.jsonl
    docs/rescoring.md

    metric (Optional[str]): Name of the metric. [default: word_l2r, or causal for a left-to-right model]
    weight (Optional[float]): Weight of the PLL, which is added to the first-pass score. Give this or --dev.
    dev (Optional[str]): Instead of --weight: take the best weight of --grid for this file of n-best lists with
        references.
    grid_ (str): The weights to try with --dev, as START:STOP:STEP.
    word_weight (float): Weight of the number of words, beside --weight. It favours longer hypotheses.
    word_grid (str): The weights of the number of words to try with --dev, as START:STOP:STEP.
    dev_references (Optional[str]): The same for --dev.
    error_rate (str): Whether words (wer) or characters (cer) are compared with the reference. With auto, these are
        characters if most letters of the references are of scripts that are written without spaces, such as Chinese.
    output (Optional[Path]): Write the reranked lists with all scores to FILE.jsonl.
    """
    if (weight is None) == (dev is None):
        raise typer.BadParameter("Give either --weight, or --dev FILE to tune it.")
    if dev and word_weight:
        raise typer.BadParameter("--word-weight is for --weight. With --dev, give --word-grid.")
    if dev_references and not dev:
        raise typer.BadParameter("--dev-references is for --dev.")
    for name, value in (("--weight", weight), ("--word-weight", word_weight)):
        if value is not None and not math.isfinite(value):
            raise typer.BadParameter(f"{name} must be a finite number. It is {value}.")
    grids = [parse_grid(grid_), parse_grid(word_grid)]
    if len(grids[0]) * len(grids[1]) > MAX_WEIGHTS:
        raise typer.BadParameter(f"--grid and --word-grid have more than {MAX_WEIGHTS:,} combinations.")
    kept = check_outputs(force, resume, output, (output, (".jsonl",)))
    lists = read_nbest(path, rescoring.ADDED if output else (), encoding, **reading)
    dev_lists = read_nbest(dev, (), encoding, **{**reading, "references": dev_references}) if dev else []
    if dev and not rescoring.with_reference(dev_lists):
        raise InputError(f"No list in {dev!r} has one reference, so no weight can be tuned on it.")
    of_dev = {repr(nbest.row) for nbest in dev_lists}
    if tuned := sum(repr(nbest.row) in of_dev for nbest in lists):
        warnings.warn(
            f"{tuned:,} of {len(lists):,} lists of {path!r} are also in {dev!r}: the weight is chosen on what it is "
            "measured on. Give other lists as `dev`.",
            stacklevel=1,
        )
    missing = f"No list in {path!r} has one reference.\n"
    has_references = bool(rescoring.with_reference([*lists, *dev_lists]))
    if has_references:
        try:
            rescoring.word_error_rate(["a"], ["a"])  # fails here without the extra, before anything is scored
        except ImportError as error:  # needed to tune, not to rank
            if dev:
                raise
            has_references, missing = False, str(error)
    rate = rescoring.choose_error_rate(rescoring.with_reference([*lists, *dev_lists]), error_rate)
    nlp = make_pipeline(settings, metric)
    of_weights = {"weight": weight, "word_weight": word_weight, "dev": dev, "grids": grids, "per_piece": per_piece}
    of_weights |= {"error_rate": error_rate, "dev_references": dev_references}
    source = {
        "path": path,
        "encoding": encoding,
        **reading,
        "lists": digest_of(nbest.row for nbest in (*dev_lists, *lists)),
    }
    kept.about = {**describe_scorer(nlp, settings), "batch_size": work.batch_size, **of_weights, **source}
    with kept.until_done():
        scores = rescoring.score_hypotheses(nlp, (*dev_lists, *lists), work, kept=kept)
        lists, dev_lists = (rescoring.with_pll(nbests, scores, per_piece) for nbests in (lists, dev_lists))
        if dev:
            weight, word_weight = tuned_weights(dev, rescoring.with_reference(dev_lists), grids, rate)
        assert weight is not None  # without --dev it was given
        n_lists = "1 list" if len(lists) == 1 else f"{len(lists)} lists"
        say(f"{n_lists}, {sum(len(nbest.texts) for nbest in lists)} hypotheses, {shown_weights(weight, word_weight)}.")
        if same := sum(rescoring.keeps_order(nbest, weight) for nbest in lists):
            say(f"{same} in the order of the first pass, whose best hypothesis has no wordpiece, and so no PLL.")
        if silent := sum(rescoring.is_silence_last(nbest, weight) for nbest in lists):
            say(f"{silent} with an empty hypothesis last, since it has no PLL, though the reference is empty, too.")
        evaluated = rescoring.with_reference(lists) if has_references else []
        say(error_table(evaluated, rate, weight, word_weight) if evaluated else missing)
        if evaluated and error_rate == "auto" and rate is rescoring.character_error_rate:
            say("Characters are compared, since the references are of a script that is written without spaces.")
        rows = rescoring.rescored_rows(lists, scores, weight, word_weight)
        save(output, write_text, (to_json(row) + "\n" for row in rows))


def tuned_weights(
    dev: str, lists: list[NBest], grids: list[list[float]], rate: rescoring.ErrorRate
) -> tuple[float, float]:
    """The best weights of the grids for some lists. It prints them, and what they bring."""
    weight, word_weight = rescoring.best_weights(lists, grids[0], grids[1], rate)
    figures = [rescoring.errors_at(lists, *both, error_rate=rate) for both in ((0.0,), (weight, word_weight))]
    (name, before), (_, value) = (next(iter(figure.items())) for figure in figures)
    say(f"Tuned on {dev}: {name} {value:.2f} with {shown_weights(weight, word_weight)}, {before:.2f} without the PLL.")
    for option, best, grid in zip(("--grid", "--word-grid"), (weight, word_weight), grids):
        if best == grid[-1] > grid[0]:
            say(f"The grid ends at {best:g}, and a higher weight may be better: give a wider {option}.")
    return weight, word_weight


def shown_weights(weight: float, word_weight: float) -> str:
    return f"weight {weight:g}" + (f", word weight {word_weight:g}" if word_weight else "")


def error_table(lists: list[NBest], rate: rescoring.ErrorRate, *weights: float) -> str:
    """The error rate before and after, and the kinds of errors."""
    measured = list[Measurement]()
    for name, of in {"first pass": (0.0,), "rescored": weights}.items():
        figures = rescoring.errors_at(lists, *of, error_rate=rate)
        units, n = figures.popitem()
        (rate_name, value), *kinds = figures.items()
        measured += [Measurement(name, measure, int(n), x) for measure, x in ((f"{rate_name} in %", value), *kinds)]
    caption = "1 list has a reference" if len(lists) == 1 else f"{len(lists)} lists have references"
    return f"{measurement_table(measured, units)}{caption}.\n"
