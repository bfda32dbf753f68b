"""`pll pairs PATH`: accuracy on minimal pairs."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import table

from ..corpus.outputs import ForceOption, check_output, csv_text, json_text, write_whole
from ..evaluation.minimal_pairs import BLIMP, Accuracy, accuracies, read_pairs, sample_pairs, wins
from ..evaluation.scoring import score_distinct
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


@app.command("pairs", no_args_is_help=True)
def pairs_cli(
    path: Annotated[
        str,
        typer.Argument(help="A file of minimal pairs, .jsonl, .csv or .tsv, or a folder of them.", show_default=False),
    ],
    model: ModelOption = None,
    metrics: MetricsOption = None,
    good: Annotated[str, typer.Option(help="Column of the sentence that should score higher.")] = BLIMP["good"],
    bad: Annotated[str, typer.Option(help="Column of the other sentence.")] = BLIMP["bad"],
    phenomenon: Annotated[
        str | None,
        typer.Option(help="Column to group by. [default: linguistics_term, if there]", show_default=False),
    ] = None,
    paradigm: Annotated[
        str | None,
        typer.Option(
            help="Column to group by more finely. [default: UID if there, else the file's name]", show_default=False
        ),
    ] = None,
    per_piece: Annotated[
        bool, typer.Option("--per-piece", help="Compare mean scores of wordpieces, not their sums.")
    ] = False,
    sample: Annotated[
        int | None, typer.Option(min=1, help="At most so many pairs of each paradigm, always the same ones.")
    ] = None,
    bootstrap: Annotated[int, typer.Option(min=100, help="Samples that the 95 % intervals rest on.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="FILE.json or FILE.csv; without ending both.", show_default=False),
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
    """Accuracy on minimal pairs: how often the better of two sentences has the higher score.

    PATH is one of BLiMP's own files or a folder of them, or any table with two sentence columns. Ties count as half.
    The intervals are bootstrap intervals over the pairs of each paradigm.
    """
    with shown_errors():
        files = check_output(output, (".json", ".csv"), force)
        columns = {"good": good, "bad": bad, "phenomenon": phenomenon, "paradigm": paradigm}
        pairs = read_pairs(path, columns)
        if sample:
            pairs = sample_pairs(pairs, sample)
        nlp = make_pipeline(
            model, split_names(metrics), words, spans, lang, precision, gpu_id=gpu_id, mask_spacing=mask_spacing
        )
        scorer = get_scorer(nlp)
        sentences = [sentence for pair in pairs for sentence in (pair.good, pair.bad)]
        scores = score_distinct(nlp, scorer.names, sentences, batch_size, progress_bar, n_process)
        if per_piece:
            scores = {text: score.per_piece() for text, score in scores.items()}
        results = {
            metric: accuracies(pairs, won, bootstrap, seed) for metric, won in wins(pairs, scores, scorer.metrics)
        }
        print(accuracy_table(results))
        settings = {
            "path": path,
            "model": model or "builtin",
            "words": scorer.words,
            "mask_spacing": scorer.mask_spacing,
            "per_piece": per_piece,
            "sample": sample,
            "bootstrap": bootstrap,
            "seed": seed,
        }
        rows = [{"metric": metric, **result._asdict()} for metric, own in results.items() for result in own]
        for file in files:
            is_csv = file.suffix == ".csv"
            write_whole(file, csv_text(rows) if is_csv else json_text({"settings": settings, "results": rows}))


TITLES = {"overall": "overall", "macro": "mean over paradigms"}


def accuracy_table(results: dict[str, list[Accuracy]]) -> str:
    """Percent, with intervals; a block each for the whole, phenomena and paradigms.

    results (dict[str, list[Accuracy]]): By metric, the same groups in each.
    """
    rows, level = [], "overall"
    for same_group in zip(*results.values()):
        first = same_group[0]
        if first.level not in (level, "macro"):
            level = first.level
            rows += [[""] * (2 + len(results)), [level.upper(), *[""] * (1 + len(results))]]
        rows.append((TITLES.get(first.level, first.name), first.pairs, *map(_cell, same_group)))
    ties = ", ".join(f"{own[0].ties} under {metric}" for metric, own in results.items())
    header = ("accuracy in % (95 % interval)", "pairs", *results)
    aligns = ["l", *("r" for _ in header[1:])]
    # The longest name of a paradigm of BLiMP has 54 characters.
    return table(rows, header=header, divider=True, aligns=aligns, max_col=60) + f"Ties, counted as half: {ties}.\n"


def _cell(result: Accuracy) -> str:
    return f"{100 * result.accuracy:.1f} ({100 * result.low:.1f}-{100 * result.high:.1f})"
