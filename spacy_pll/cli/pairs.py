"""`pll pairs PATH`: the accuracy on minimal pairs."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from wasabi import table

from ..corpus.files import check_output, write_csv, write_json
from ..evaluation.minimal_pairs import BLIMP, Accuracy, accuracies, read_pairs, sample_pairs, wins
from ..evaluation.scoring import score_distinct
from ..pipelines import PipelineSettings, get_scorer, make_pipeline
from .errors import shown_errors
from .options import EXPECTED, BatchSizeOption, ForceOption, ProcessesOption, pipeline_options
from .progress import progress_bar
from .terminal import say


@pipeline_options(without=EXPECTED)
def pairs_cli(
    path: Annotated[
        str,
        typer.Argument(
            help="A file of minimal pairs (.jsonl, .csv, .tsv or .parquet), or a folder of such files.",
            show_default=False,
        ),
    ],
    settings: PipelineSettings,
    good: Annotated[str, typer.Option(help="Column of the sentence that should score higher.")] = BLIMP["good"],
    bad: Annotated[str, typer.Option(help="Column of the other sentence.")] = BLIMP["bad"],
    phenomenon: Annotated[
        str | None,
        typer.Option(
            help="Column to group by. [default: linguistics_term, if there is such a column]", show_default=False
        ),
    ] = None,
    paradigm: Annotated[
        str | None,
        typer.Option(
            help="Column of smaller groups. [default: UID, or the name of the file if there is no such column]",
            show_default=False,
        ),
    ] = None,
    per_piece: Annotated[
        bool, typer.Option("--per-piece", help="Compare the mean scores per wordpiece instead of the sums.")
    ] = False,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Use at most this many pairs per paradigm, the same ones in each run.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Also write the results to FILE.json or FILE.csv. A name without an ending writes both.",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
    batch_size: BatchSizeOption = 512,
    n_process: ProcessesOption = 1,
) -> None:
    """Measure the accuracy on minimal pairs.

    The accuracy is the share of pairs in which the better sentence has the higher score. Ties count as half.

    PATH is a file of BLiMP, a folder of such files, or your own table with two columns of sentences.
    """
    with shown_errors():
        files = check_output(output, (".json", ".csv"), force, path)
        columns = {"good": good, "bad": bad, "phenomenon": phenomenon, "paradigm": paradigm}
        pairs = read_pairs(path, columns)
        if sample:
            pairs = sample_pairs(pairs, sample)
        nlp = make_pipeline(settings)
        scorer = get_scorer(nlp)
        sentences = [sentence for pair in pairs for sentence in (pair.good, pair.bad)]
        scores = score_distinct(nlp, scorer.names, sentences, batch_size, progress_bar, n_process)
        if per_piece:
            scores = {text: score.per_piece() for text, score in scores.items()}
        results = {metric: accuracies(pairs, won) for metric, won in wins(pairs, scores, scorer.settings.metrics)}
        say(accuracy_table(results))
        used = {
            "path": path,
            "model": settings.model or "builtin",
            **scorer.settings.record,
            "per_piece": per_piece,
            "sample": sample,
        }
        rows = [{"metric": metric, **result._asdict()} for metric, own in results.items() for result in own]
        for file in files:
            if file.suffix == ".csv":
                write_csv(file, rows)
            else:
                write_json(file, {"settings": used, "results": rows})


TITLES = {"overall": "overall", "macro": "mean over paradigms"}


def accuracy_table(results: dict[str, list[Accuracy]]) -> str:
    """Accuracies in percent with their intervals, for all pairs, for phenomena and for paradigms.

    results (dict[str, list[Accuracy]]): By metric. All metrics have the same groups.
    """
    rows, level = [], "overall"
    for same_group in zip(*results.values()):
        first = same_group[0]
        if first.level not in (level, "macro"):
            level = first.level
            rows += [[""] * (2 + len(results)), [level.upper(), *[""] * (1 + len(results))]]
        rows.append([TITLES.get(first.level, first.name), first.pairs, *map(_cell, same_group)])
    ties = ", ".join(f"{own[0].ties} under {metric}" for metric, own in results.items())
    header = ("accuracy in % (95 % interval)", "pairs", *results)
    aligns: list[Literal["l", "r"]] = ["l"]
    aligns.extend("r" for _ in header[1:])
    # BLiMP's longest paradigm name has 54 characters.
    return table(rows, header=header, divider=True, aligns=aligns, max_col=60) + f"Ties, counted as half: {ties}.\n"


def _cell(result: Accuracy) -> str:
    return f"{100 * result.accuracy:.1f} ({100 * result.low:.1f}-{100 * result.high:.1f})"
