"""`pll rescore NBEST`: reorder n-best lists with the PLL."""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from wasabi import table

from ..corpus.outputs import ForceOption, check_output, write_whole
from ..corpus.readers import InputError
from ..evaluation.rescoring import (
    FORMAT,
    Measure,
    NBest,
    best_by,
    bleu,
    corpus_value,
    grid,
    interpolate,
    oracle,
    ranking,
    read_nbest,
    tune,
    word_error_rate,
)
from ..evaluation.scoring import TextScore, score_distinct
from ..pipelines import (
    BatchSizeOption,
    GpuOption,
    LangOption,
    MaskSpacingOption,
    ModelOption,
    PrecisionOption,
    ProcessesOption,
    SpansOption,
    WordsOption,
    get_scorer,
    make_pipeline,
)
from . import app
from .errors import shown_errors
from .progress import progress_bar

EDITS = ("substitutions", "deletions", "insertions")


def parse_grid(value: str) -> list[float]:
    """The weights of START:STOP:STEP."""
    try:
        start, stop, step = (float(number) for number in value.split(":"))
        return grid(start, stop, step)
    except ValueError:
        raise typer.BadParameter(
            f"--grid must be START:STOP:STEP, such as 0:2:0.05, with START <= STOP and STEP above 0. It is {value!r}."
        ) from None


@app.command("rescore", no_args_is_help=True)
def rescore_cli(
    path: Annotated[str, typer.Argument(metavar="NBEST", help=f"A .jsonl file: {FORMAT}", show_default=False)],
    model: ModelOption = None,
    metric: Annotated[str | None, typer.Option(help="Of the PLL. [default: word_l2r]", show_default=False)] = None,
    weight: Annotated[float | None, typer.Option(help="Of the PLL, beside the first pass.", show_default=False)] = None,
    dev: Annotated[
        str | None,
        typer.Option(help="Tune the weight on this file, of the same form, with references.", show_default=False),
    ] = None,
    grid_: Annotated[str, typer.Option("--grid", help="START:STOP:STEP, the weights to try with --dev.")] = "0:2:0.05",
    per_piece: Annotated[
        bool, typer.Option("--per-piece", help="Normalise by length: the mean of the wordpieces' scores, not the sum.")
    ] = False,
    use_bleu: Annotated[
        bool, typer.Option("--bleu", help="References are translations: BLEU in the place of word error rate.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="FILE.jsonl: the lists reordered, with all scores.", show_default=False),
    ] = None,
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
    """Reorder n-best lists by first-pass score + weight * PLL (Salazar et al. 2020, section 3).

    Scores are natural logarithms. Word error rate, or BLEU, is shown where lists have a "reference" (for BLEU also
    "references", several).
    """
    if (weight is None) == (dev is None):
        raise typer.BadParameter("Give either --weight, or --dev FILE to tune it.")
    if weight is not None and not math.isfinite(weight):
        raise typer.BadParameter(f"--weight must be a finite number. It is {weight}.")
    weights = parse_grid(grid_)
    with shown_errors():
        files = check_output(output, (".jsonl",), force)
        rows, lists = read_nbest(path, several_references=use_bleu)
        dev_lists = read_nbest(dev, several_references=use_bleu)[1] if dev else []
        if dev and not any(nbest.references for nbest in dev_lists):
            raise InputError(f"No list in {dev!r} has a reference, so no weight can be tuned on it.")
        has_references = any(nbest.references for nbest in (*lists, *dev_lists))
        measure = (bleu() if use_bleu else word_error_rate()) if has_references else None
        nlp = make_pipeline(
            model, [metric] if metric else None, words, spans, lang, precision, gpu_id=gpu_id, mask_spacing=mask_spacing
        )
        texts = [text for nbest in (*dev_lists, *lists) for text in nbest.texts]
        scores = score_distinct(nlp, get_scorer(nlp).names, texts, batch_size, progress_bar, n_process)
        if dev:
            judged = Judged.of(dev_lists, scores, per_piece, measure)
            weight = tuned_weight(judged, measure, weights, dev)
        n_hypotheses = sum(len(nbest.texts) for nbest in lists)
        print(f"{len(lists)} lists, {n_hypotheses} hypotheses, weight {weight:g}.")
        judged = Judged.of(lists, scores, per_piece, measure)
        print(quality_table(judged, measure, weight) if judged.lists else f"No list in {path!r} has a reference.\n")
        plls = plls_of(lists, scores, per_piece)
        for file in files:
            write_whole(file, rescored_lines(rows, lists, plls, scores, weight))


def plls_of(lists: Sequence[NBest], scores: dict[str, TextScore], per_piece: bool) -> list[np.ndarray]:
    """What the second pass adds to each hypothesis, before it is weighted: one array (hypotheses,) a list."""
    used = {text: (score.per_piece() if per_piece else score).scores[0] for text, score in scores.items()}
    return [np.array([used[text] for text in nbest.texts]) for nbest in lists]


class Judged(NamedTuple):
    """The lists that have references."""

    lists: list[NBest]
    plls: list[np.ndarray]
    counts: list[np.ndarray]  # (hypotheses, counts) each: those of the measure

    @classmethod
    def of(cls, lists: Sequence[NBest], scores: dict[str, TextScore], per_piece: bool, measure: Measure | None):
        lists = [nbest for nbest in lists if nbest.references]
        counts = [np.array([measure.counts(text, nbest.references) for text in nbest.texts]) for nbest in lists]
        return cls(lists, plls_of(lists, scores, per_piece), counts)

    def value(self, measure: Measure, weight: float) -> float:
        return corpus_value(self.counts, best_by(self.lists, self.plls, weight), measure)


def tuned_weight(dev: Judged, measure: Measure, weights: list[float], name: str) -> float:
    """The best weight of the grid on the development set; says how good it is there."""
    weight, value = tune(dev.lists, dev.plls, dev.counts, measure, weights)
    before = dev.value(measure, 0.0)
    print(f"Tuned on {name}: {measure.name} {value:.2f} with weight {weight:g}, {before:.2f} without the PLL.")
    if weight == weights[-1] > weights[0]:
        print(f"The grid ends at {weight:g}, and a higher weight may be better: give a wider --grid.")
    return weight


def quality_table(judged: Judged, measure: Measure, weight: float) -> str:
    """The measure before and after. For the word error rate also the kinds of errors, and the best that could be."""
    chosen = {
        "first pass": best_by(judged.lists, judged.plls, 0.0),
        "rescored": best_by(judged.lists, judged.plls, weight),
    }
    if measure.name == "WER":
        chosen["oracle"] = oracle(judged.counts)
    rows = [(measure.name, *(f"{corpus_value(judged.counts, best, measure):.2f}" for best in chosen.values()))]
    if measure.name == "WER":
        totals = [sum(of_list[i] for of_list, i in zip(judged.counts, best)) for best in chosen.values()]
        rows += [(kind, *(total[k] for total in totals)) for k, kind in enumerate(EDITS)]
    caption = f"{len(judged.lists)} lists have references"
    if measure.name == "WER":
        caption += f", of {totals[0][3]} words"
    return table(rows, header=("", *chosen), divider=True, aligns=["l", *("r" for _ in chosen)]) + caption + ".\n"


def rescored_lines(
    rows: list[dict], lists: list[NBest], plls: list[np.ndarray], scores: dict[str, TextScore], weight: float
) -> Iterator[str]:
    """The rows with their hypotheses reordered, each with the first pass's score, its PLL and the two together."""
    for row, nbest, pll in zip(rows, lists, plls, strict=True):
        total = interpolate(nbest.first_pass, pll, weight)
        hypotheses = []
        for i in ranking(nbest.first_pass, pll, weight):
            score = scores[nbest.texts[i]]
            more = {"pll": score.scores[0], "pieces": score.pieces, "rescored": float(total[i])}
            hypotheses.append({**row["hypotheses"][i], **more})
        yield json.dumps({**row, "hypotheses": hypotheses}, ensure_ascii=False) + "\n"
