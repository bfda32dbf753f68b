"""What `pll pairs` and `pll choices` have in common: several scorers, and what is printed and written."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from spacy.language import Language

from ..component import get_scorer
from ..corpus.formats import write_table
from ..evaluation.accuracies import OVERALL, Accuracy
from ..evaluation.decisions import Decided
from ..evaluation.intervals import Estimate
from ..evaluation.items import Item, levels
from ..evaluation.preferences import Correlation
from ..files import check_output, write_json
from ..pipelines import BUILTIN_NAME, PipelineSettings, make_pipeline, parse_settings
from ..visualize.text import Table, text_table
from .options import one_of, several
from .terminal import check_picture, check_table, save, say

Result = TypeVar("Result", bound=Accuracy | Correlation)  # of a scorer in a group

Scorers = Annotated[
    list[str],
    typer.Option(
        "--scorer",
        help="In place of --model and its settings, and once for each of several scorers to compare: a model, with "
        "settings after commas, as for `pll agree`. NAME= before it names the scorer in the results: "
        "margin0=builtin,mask_margin=0.",
    ),
]
Revisions = Annotated[
    list[str],
    several(
        "In place of --revision: those of several checkpoints of the model, to compare them in this order. --plot then "
        "draws curves."
    ),
]
By = Annotated[
    list[str],
    several(
        "Columns to group by, separated by commas: conditions. The groups of several are crossed, too. [default: "
        "those of phenomena and paradigms, such as linguistics_term and UID, or the file, as far as they are there]"
    ),
]
PerPiece = Annotated[
    bool, typer.Option("--per-piece", help="Compare the mean scores per wordpiece instead of the sums.")
]
TiesOption = Annotated[
    str,
    typer.Option(
        "--ties",
        help="What a tie counts: a share (a half, if two options are equal), or as right where the first of the equal "
        "options is right.",
        **one_of("share", "first"),
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(min=1, help="Use at most this many of each of the smallest groups, the same in each run."),
]
Results = Annotated[
    Path | None, typer.Option("--output", "-o", help="Also write the results to FILE.json or FILE.csv.")
]


def check_outputs(output: Path | None, items: Path | None, plot: Path | None, force: bool, path: str) -> None:
    """RAISES (ValueError): A file cannot be written."""
    check_output(output, (".json", ".csv"), force, path)
    check_table(items, force, path)
    check_picture(plot, force, path)


def check_groups(found: Sequence[Item], by: list[str]) -> None:
    """RAISES (InputError): The items cannot be grouped so."""
    levels(found, by or None)


class LoadedScorers(Mapping[str, Language]):
    """The pipelines to compare, by name. Each is loaded when it is taken, and only the last one is kept in memory."""

    def __init__(self, settings: dict[str, PipelineSettings]):
        self.settings = settings
        self._kept: tuple[str, Language] | None = None
        # All are loaded once before anything is scored, so that an error in the last one costs no time.
        self.records = [scorer_record(name, given, self[name]) for name, given in settings.items()]

    def __getitem__(self, name: str) -> Language:
        if self._kept is None or self._kept[0] != name:
            self._kept = None
            self._kept = name, make_pipeline(self.settings[name])
        return self._kept[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self.settings)

    def __len__(self) -> int:
        return len(self.settings)

    @property
    def labels(self) -> dict[str, str]:
        """What `score_options` calls the scorers, and what their columns begin with."""
        if len(self) == 1:
            return dict(get_scorer(next(iter(self.values()))).names.metrics)
        several = [(one["scorer"], one["metrics"]) for one in self.records]
        names = (name if len(metrics) == 1 else f"{name} {metric}" for name, metrics in several for metric in metrics)
        return {name: name for name in names}

    @property
    def compared(self) -> Language | Mapping[str, Language]:
        """One pipeline, whose metrics are compared, or several by name."""
        return self if len(self) > 1 else next(iter(self.values()))


def load_scorers(scorers: list[str], revisions: list[str], settings: PipelineSettings) -> LoadedScorers:
    """The pipelines to compare, or the one that the other options describe.

    RAISES (ValueError): Several of these are given, or two have one name.
    """
    common: dict[str, Any] = {name: getattr(settings, name) for name in ("lang", "gpu_id", "threads")}
    if scorers and (revisions or settings != PipelineSettings(**common)):
        raise ValueError(
            "--scorer takes the place of --model and its settings. Write them after commas: "
            "--scorer MODEL,words=tokenizer."
        )
    if revisions and settings.revision:
        raise ValueError("Give either --revision or --revisions.")
    if len(set(revisions)) < len(revisions):
        raise ValueError(f"--revisions has one of these twice: {','.join(revisions)}.")
    checkpoints = {revision: settings.changed(revision=revision) for revision in revisions}
    used = named_settings(scorers, **common) or checkpoints or {settings.model or BUILTIN_NAME: settings}
    return LoadedScorers(used)


def report(
    found: Decided,
    by: list[str],
    loaded: LoadedScorers,
    about: dict[str, Any],
    output: Path | None,
    items: Path | None,
    unit: str,
) -> None:
    """Print the accuracies, and write what is asked for.

    about (Dict[str, Any]): What was read, for the file of results.
    unit (str): What the items are called: "pairs".
    """
    results = found.accuracies(by or None)
    say(accuracy_table(results, unit) + ties_line(results, about["ties"], unit))
    rows = [{unit if name == "pairs" else name: value for name, value in one._asdict().items()} for one in results]
    if len(found.scores) > 1:
        say(difference_table(results))
    else:
        rows = [{name: value for name, value in row.items() if value is not None} for row in rows]
    write_results(rows, by, loaded, about, output)
    save(items, write_table, list(found.rows()))


def write_results(
    rows: list[dict[str, Any]],
    by: list[str],
    loaded: LoadedScorers,
    about: dict[str, Any],
    output: Path | None,
) -> None:
    """Write the results of groups, and what the scorers are."""
    if output and output.suffix == ".csv":
        rows = [row | {f"by_{k}": value for k, value in row.pop("group").items()} for row in rows]
        save(output, write_table, rows)
        return
    first, *others = loaded.records
    save(output, write_json, {"settings": {**first, "compared": others, "by": by, **about}, "results": rows})


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
    return {**about, "revision": given.revision, "spans": given.spans, "precision": given.precision, **settings.record}


def accuracy_table(results: list[Accuracy], unit: str) -> str:
    """Accuracies in percent with their intervals, for all items and for each group; a column for each scorer."""
    return group_table(
        "accuracy in % (95 % interval)", unit, results, lambda one: one.pairs, lambda one: percent(one.estimate)
    )


def group_table(
    title: str, unit: str, results: Sequence[Result], count: Callable[[Result], int], show: Callable[[Result], str]
) -> str:
    """Results of all items and of each group; a column for each scorer."""
    scorers = list(dict.fromkeys(one.scorer for one in results))
    rows: Table = [(title, unit, *scorers)]
    last: tuple[str, ...] = ()
    # The results of a scorer are those of the same groups, in the same order.
    overall, *others = zip(*([one for one in results if one.scorer == scorer] for scorer in scorers))
    for own in (overall, *others):
        level, name, columns = own[0].level, own[0].name, tuple(own[0].group)
        if columns != last and columns:
            last = columns
            rows += [("",) * (2 + len(own)), (level.upper(), *[""] * (1 + len(own)))]
        label = name if columns else OVERALL if level == OVERALL else f"mean over {name}"
        rows.append((label, count(own[0]), *map(show, own)))
    return text_table(rows)


def ties_line(results: list[Accuracy], ties: str, unit: str) -> str:
    """How many ties there are under each scorer, and what they count."""
    counted = "with the first option as chosen" if ties == "first" else "as half" if unit == "pairs" else "as a share"
    found = (f"{one.ties} under {one.scorer}" for one in results if one.level == OVERALL and not one.group)
    return f"Ties, counted {counted}: {', '.join(found)}.\n"


def difference_table(results: list[Accuracy]) -> str:
    """What the other scorers gain against the first one, on all items."""
    first, *others = (one for one in results if one.level == OVERALL and not one.group)
    rows = [(one.scorer, percent(one.gain, "+"), one.better, one.worse, f"{one.p:.2g}") for one in others if one.gain]
    header = (f"minus {first.scorer}", "difference in % (95 % interval)", "better", "worse", "McNemar's p")
    return text_table([header, *rows])


def percent(shares: Estimate, sign: str = "") -> str:
    """A share in percent with its interval."""
    shown, *ends = (f"{100 * share:{sign}.1f}" for share in shares if share is not None)
    return f"{shown} ({(' to ' if sign else '-').join(ends)})"
