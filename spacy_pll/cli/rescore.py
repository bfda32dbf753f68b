"""`pll rescore NBEST`: n-best lists reranked with the PLL."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..analysis.visualize.text import Table, text_table
from ..corpus.files import check_output, to_json, write_text
from ..corpus.readers import InputError
from ..evaluation.rescoring import (
    ADDED,
    FORMAT,
    MAX_WEIGHTS,
    Measure,
    ReferencedLists,
    best_by,
    bleu,
    corpus_value,
    grid,
    oracle,
    read_nbest,
    rescored_rows,
    second_pass,
    word_error_rate,
)
from ..evaluation.scoring import score_distinct
from ..pipelines import PipelineSettings, get_scorer, make_pipeline
from .errors import shown_errors
from .options import EXPECTED, BatchSizeOption, ForceOption, ProcessesOption, pipeline_options
from .progress import progress_bar
from .terminal import say

EDITS = ("substitutions", "deletions", "insertions")


def parse_grid(value: str) -> list[float]:
    """The weights of START:STOP:STEP."""
    try:
        start, stop, step = (float(number) for number in value.split(":"))
        return grid(start, stop, step)
    except ValueError:
        raise typer.BadParameter(
            "--grid must be START:STOP:STEP, such as 0:2:0.05, with START <= STOP, STEP above 0, and at most "
            f"{MAX_WEIGHTS:,} steps. It is {value!r}."
        ) from None


@pipeline_options(without=("metrics", *EXPECTED))
def rescore_cli(
    path: Annotated[
        str, typer.Argument(metavar="NBEST", help=f"A .jsonl file. Each line is a list: {FORMAT}", show_default=False)
    ],
    settings: PipelineSettings,
    metric: Annotated[
        str | None,
        typer.Option(
            help="Name of the metric. [default: word_l2r, or causal for a left-to-right model]", show_default=False
        ),
    ] = None,
    weight: Annotated[
        float | None,
        typer.Option(
            help="Weight of the PLL, which is added to the first-pass score. Give this or --dev.", show_default=False
        ),
    ] = None,
    dev: Annotated[
        str | None,
        typer.Option(
            help="Instead of --weight: take the best weight of --grid for this file of n-best lists with references.",
            show_default=False,
        ),
    ] = None,
    grid_: Annotated[
        str, typer.Option("--grid", help="The weights to try with --dev, as START:STOP:STEP.")
    ] = "0:2:0.05",
    per_piece: Annotated[
        bool,
        typer.Option("--per-piece", help="Normalise by length: use the mean score per wordpiece instead of the sum."),
    ] = False,
    use_bleu: Annotated[
        bool, typer.Option("--bleu", help="The texts are translations: show BLEU instead of the word error rate.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the reranked lists with all scores to FILE.jsonl.", show_default=False
        ),
    ] = None,
    force: ForceOption = False,
    batch_size: BatchSizeOption = 512,
    n_process: ProcessesOption = 1,
) -> None:
    """Rerank n-best lists with the PLL.

    Hypotheses are ranked by first-pass score + weight * PLL (Salazar et al. 2020, section 3). The first-pass score is
    the "score" of the input. Scores are natural logarithms.

    If lists have a "reference", the word error rates before and after reranking are shown. With --bleu, a list can
    also have several "references".
    """
    if (weight is None) == (dev is None):
        raise typer.BadParameter("Give either --weight, or --dev FILE to tune it.")
    if weight is not None and not math.isfinite(weight):
        raise typer.BadParameter(f"--weight must be a finite number. It is {weight}.")
    weights = parse_grid(grid_)
    with shown_errors():
        files = check_output(output, (".jsonl",), force, path, dev)
        rows, lists = read_nbest(path, several_references=use_bleu, added=ADDED if files else ())
        dev_lists = read_nbest(dev, several_references=use_bleu)[1] if dev else []
        if dev and not any(nbest.references for nbest in dev_lists):
            raise InputError(f"No list in {dev!r} has a reference, so no weight can be tuned on it.")
        has_references = any(nbest.references for nbest in (*lists, *dev_lists))
        measure, missing = None, ""
        try:
            measure = (bleu() if use_bleu else word_error_rate()) if has_references else None
        except ImportError as error:  # needed to tune, not to rank
            if dev:
                raise
            missing = str(error)
        nlp = make_pipeline(replace(settings, metrics=[metric] if metric else None))
        texts = [text for nbest in (*dev_lists, *lists) for text in nbest.texts]
        scores = score_distinct(nlp, get_scorer(nlp).names, texts, batch_size, progress_bar, n_process)
        if dev:
            assert measure is not None  # a list in it has a reference
            weight = _tune(ReferencedLists.select(dev_lists, scores, per_piece, measure), measure, weights, dev)
        assert weight is not None  # without --dev it was given
        n_hypotheses = sum(len(nbest.texts) for nbest in lists)
        say(f"{len(lists)} {'list' if len(lists) == 1 else 'lists'}, {n_hypotheses} hypotheses, weight {weight:g}.")
        evaluated = ReferencedLists.select(lists, scores, per_piece, measure)
        if measure and evaluated.lists:
            say(quality_table(evaluated, measure, weight))
        else:
            say(missing or f"No list in {path!r} has a reference.\n")
        plls = second_pass(lists, scores, per_piece)
        for file in files:
            reranked = rescored_rows(rows, lists, plls, scores, weight)
            write_text(file, (to_json(row) + "\n" for row in reranked))


def _tune(dev: ReferencedLists, measure: Measure, weights: list[float], name: str) -> float:
    """The best weight on the development set. Prints how good it is there."""
    weight, value = dev.tune(measure, weights)
    before = dev.value(measure, 0.0)
    say(f"Tuned on {name}: {measure.name} {value:.2f} with weight {weight:g}, {before:.2f} without the PLL.")
    if weight == weights[-1] > weights[0]:
        say(f"The grid ends at {weight:g}, and a higher weight may be better: give a wider --grid.")
    return weight


def quality_table(evaluated: ReferencedLists, measure: Measure, weight: float) -> str:
    """The measure before and after. For the word error rate also the kinds of errors, and the best possible ranking."""
    chosen = {
        "first pass": best_by(evaluated.lists, evaluated.plls, 0.0),
        "rescored": best_by(evaluated.lists, evaluated.plls, weight),
    }
    if measure.name == "WER":
        chosen["oracle"] = oracle(evaluated.counts)
    rows: Table = [
        ("", *chosen),
        (measure.name, *(f"{corpus_value(evaluated.counts, best, measure):.2f}" for best in chosen.values())),
    ]
    if measure.name == "WER":
        totals = [sum(of_list[i] for of_list, i in zip(evaluated.counts, best)) for best in chosen.values()]
        rows += [(kind, *(total[k] for total in totals)) for k, kind in enumerate(EDITS)]
    n = len(evaluated.lists)
    caption = "1 list has a reference" if n == 1 else f"{n} lists have references"
    if measure.name == "WER":
        caption += f", of {totals[0][3]} words"
    return text_table(rows) + caption + ".\n"
