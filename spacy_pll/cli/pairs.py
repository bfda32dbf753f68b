"""`pll pairs PATH`: the accuracy on minimal pairs."""

from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.language import Language

from ..component import get_scorer
from ..corpus.formats import write_table
from ..evaluation.accuracies import OVERALL, Accuracy
from ..evaluation.groups import sample_pairs
from ..evaluation.intervals import Estimate
from ..evaluation.minimal_pairs import minimal_pairs
from ..evaluation.readers import BAD, GOOD, read_pairs
from ..files import check_output, write_json
from ..pipelines import BUILTIN_NAME, PipelineSettings, make_pipeline, parse_settings
from ..settings import BATCH_SIZE
from ..visualize.text import Table, text_table
from . import options
from .options import OF_TOKENS, PICTURES, pipeline_options, several
from .terminal import draw, save, say, shows_progress


@pipeline_options(without=OF_TOKENS)
def pairs_cli(
    path: Annotated[
        str, typer.Argument(help="A file of minimal pairs (.jsonl, .csv, .tsv or .parquet), or a folder of such files.")
    ],
    settings: PipelineSettings,
    scorers: Annotated[
        list[str],
        typer.Option(
            "--scorer",
            help="In place of --model and its settings, and once for each of several scorers to compare: a model, with "
            "settings after commas, as for `pll agree`, such as builtin,mask_margin=0. NAME= before it names the "
            "scorer in the results: margin0=builtin,mask_margin=0.",
        ),
    ] = [],  # noqa: B006
    good: Annotated[
        str | None,
        typer.Option(help=f"Column of the sentence that should score higher. [default: {' or '.join(GOOD)}]"),
    ] = None,
    bad: Annotated[
        str | None, typer.Option(help=f"Column of the other sentence. [default: {' or '.join(BAD)}]")
    ] = None,
    header: options.Header = [],  # noqa: B006
    by: Annotated[
        list[str],
        several(
            "Columns to group by, separated by commas: conditions. The groups of several are crossed, too. [default: "
            "linguistics_term and UID, or the file, as far as the pairs have them]"
        ),
    ] = [],  # noqa: B006
    per_piece: Annotated[
        bool, typer.Option("--per-piece", help="Compare the mean scores per wordpiece instead of the sums.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Use at most this many pairs of each of the smallest groups, the same in each run."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also write the results to FILE.json or FILE.csv."),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            help="Also write a table with one row per pair to FILE.csv, FILE.tsv or FILE.parquet: its columns, and its "
            "scores."
        ),
    ] = None,
    plot: options.Plot = None,
    force: options.Force = False,
    batch_size: options.BatchSize = BATCH_SIZE,
    n_process: options.Processes = 1,
) -> None:
    """Measure the accuracy on minimal pairs.

    The accuracy is the share of pairs in which the better sentence has the higher score. Ties count as half.

    PATH is a file of BLiMP, a folder of such files, or your own table with two columns of sentences. With several
    metrics or scorers, each is compared with the first one on the same pairs.
    """
    check_output(output, (".json", ".csv"), force, path)
    check_output(items, (".csv", ".tsv", ".parquet"), force, path)
    check_output(plot, PICTURES, force, path)
    pairs, groups = read_pairs(path, good, bad, header or None), by or None
    if sample:
        pairs = sample_pairs(pairs, sample, groups)
    common: dict[str, Any] = {name: getattr(settings, name) for name in ("lang", "gpu_id", "threads")}
    if scorers and settings != PipelineSettings(**common):
        raise ValueError(
            "--scorer takes the place of --model and its settings. Write them after commas: "
            "--scorer MODEL,words=tokenizer."
        )
    used = named_settings(scorers, **common) or {settings.model or BUILTIN_NAME: settings}
    nlps = {name: make_pipeline(one) for name, one in used.items()}
    found = minimal_pairs(
        nlps if len(nlps) > 1 else next(iter(nlps.values())),
        pairs,
        per_piece=per_piece,
        batch_size=batch_size,
        n_process=n_process,
        show_progress=shows_progress(),
    )
    results = found.accuracies(groups)
    say(accuracy_table(results))
    rows = [one._asdict() for one in results]
    if len(found.scores) > 1:
        say(difference_table(results))
    else:
        rows = [{name: value for name, value in row.items() if value is not None} for row in rows]
    first, *others = (scorer_record(name, used[name], nlp) for name, nlp in nlps.items())
    about = {"path": path, **first, "compared": others, "by": by, "per_piece": per_piece, "sample": sample}
    if output and output.suffix == ".csv":
        rows = [row | {f"by_{k}": value for k, value in row.pop("group").items()} for row in rows]
        save(output, write_table, rows)
    else:
        save(output, write_json, {"settings": about, "results": rows})
    save(items, write_table, list(found.rows()))
    save(plot, draw, found.plot, groups)


def named_settings(scorers: list[str], **common: Any) -> dict[str, PipelineSettings]:
    """The settings of each scorer by its name: what stands before `=`, as in small=builtin, or else the whole text.

    RAISES (ValueError): Two scorers have the same name.
    """
    found: dict[str, PipelineSettings] = {}
    for text in scorers:
        name, _, spec = text.partition("=")
        if not name.isidentifier() or not spec:
            name = spec = text
        if name in found:
            raise ValueError(f"Two scorers have the name {name!r}. Name one with --scorer NAME=MODEL.")
        found[name] = parse_settings(spec, **common)
    return found


def scorer_record(name: str, given: PipelineSettings, nlp: Language) -> dict[str, Any]:
    """What a scorer is, for the file of results."""
    settings = get_scorer(nlp).settings
    about = {"scorer": name, "model": given.model or BUILTIN_NAME, "metrics": list(settings.metrics)}
    return {**about, "spans": given.spans, "precision": given.precision, **settings.record}


def accuracy_table(results: list[Accuracy]) -> str:
    """Accuracies in percent with their intervals, for all pairs and for each group; a column for each scorer."""
    scorers = list(dict.fromkeys(one.scorer for one in results))
    rows: Table = [("accuracy in % (95 % interval)", "pairs", *scorers)]
    last: tuple[str, ...] = ()
    # The results of a scorer are those of the same groups, in the same order.
    overall, *others = zip(*([one for one in results if one.scorer == scorer] for scorer in scorers))
    for own in (overall, *others):
        level, name, columns = own[0].level, own[0].name, tuple(own[0].group)
        if columns != last and columns:
            last = columns
            rows += [("",) * (2 + len(own)), (level.upper(), *[""] * (1 + len(own)))]
        title = name if columns else OVERALL if level == OVERALL else f"mean over {name}"
        rows.append((title, own[0].pairs, *(percent(one.estimate) for one in own)))
    ties = ", ".join(f"{one.ties} under {one.scorer}" for one in overall)
    return text_table(rows) + f"Ties, counted as half: {ties}.\n"


def difference_table(results: list[Accuracy]) -> str:
    """What the other scorers gain against the first one, on all pairs."""
    first, *others = (one for one in results if one.level == OVERALL and not one.group)
    rows = [(one.scorer, percent(one.gain, "+"), one.better, one.worse, f"{one.p:.2g}") for one in others if one.gain]
    header = (f"minus {first.scorer}", "difference in % (95 % interval)", "better", "worse", "McNemar's p")
    return text_table([header, *rows])


def percent(shares: Estimate, sign: str = "") -> str:
    """A share in percent with its interval."""
    shown, *ends = (f"{100 * share:{sign}.1f}" for share in shares if share is not None)
    return f"{shown} ({(' to ' if sign else '-').join(ends)})"
