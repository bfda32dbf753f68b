"""What `spacy-pll pairs`, `choices` and `suite` have in common: several scorers, and what is printed and written."""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy.language import Language

from ..component import PLLScorer, get_scorer
from ..corpus.formats import write_table
from ..errors import InputError, PLLError
from ..evaluation.accuracies import OVERALL, Accuracy, Ties
from ..evaluation.choices import ChoiceScores, ChoiceSuite, place_of, with_equal_options
from ..evaluation.intervals import Estimate
from ..evaluation.items import levels, sample_items
from ..evaluation.preferences import Correlation
from ..evaluation.suites import Measure, Suite, check_rows, check_suite, fake_scores, score_texts
from ..files import write_json
from ..language_model import BUILTIN_NAME
from ..pipelines import PipelineSettings, assemble_pipeline, describe_scorer, parse_settings, pipeline_config
from ..scoring.kept_encodings import KeptEncodings
from ..settings import BATCH_SIZE, at_least
from ..stream.known import digest_of
from ..stream.workers import Work
from ..visualize.text import Table, text_table
from .options import options_from
from .terminal import PICTURES, TABLES, check_outputs, check_parquet, draw, save, say

# Settings that several scorers do not share.
OF_ONE_MODEL = ("model", "revision", "component", "causal", "leading_space")
Figure = Accuracy | Correlation | Measure  # of a scorer, on all items or a group of them


@dataclass(frozen=True)
class Evaluation:
    """What is compared on which items, and what is written.

    scorers (Sequence[str]): In place of --model, and once for each of several scorers to compare: a model, with
        settings of its own after commas, as for `spacy-pll agree`. Other options, such as --metrics, are for all. NAME=
        before it names the scorer in the results: margin0=builtin,mask_margin=0.
    revisions (Sequence[str]): Compare these revisions of the model (branches or tags on the hub), in this order.
        --plot then draws curves.
    by (Sequence[str]): Columns to group by, separated by commas: conditions. With several columns, each combination of
        their values is a group, too. Empty: the columns of phenomena and paradigms that the file has, such as
        linguistics_term and UID, or the name of the file.
    ties (str): What a tie counts: a share (a half, if two options are equal), or as right where the first of the equal
        options is right.
    sample (Optional[int]): Use at most this many items of each smallest group, such as a paradigm. They are the same in
        each run.
    output (Optional[Path]): Also write the results to FILE.json or FILE.csv.
    items (Optional[Path]): Also write a table with one row per pair, or per option of a choice, to FILE.csv, FILE.tsv
        or FILE.parquet: its columns, and its scores.
    resume (bool): Continue an interrupted run: what was scored is kept beside --output, or else --items.
    """

    scorers: Sequence[str] = ()
    revisions: Sequence[str] = ()
    by: Sequence[str] = ()
    per_piece: bool = False
    ties: Ties = "share"
    sample: int | None = at_least(1)
    output: Path | None = None
    items: Path | None = None
    plot: Path | None = None
    resume: bool = False
    force: bool = False
    batch_size: int = BATCH_SIZE
    n_process: int = 1

    def _chosen(self, suite: Suite) -> Suite:
        """The items to use. RAISES (InputError): One has no column to group by, or options are of no use here."""
        if isinstance(suite, ChoiceSuite):
            levels(suite.items, self.by or None)
            if self.plot and suite.choices[0].preference is not None:
                raise InputError("--plot draws accuracies, and these choices have none. Leave it out.")
            if self.sample:
                return type(suite)(sample_items(suite.items, self.sample, self.by or None), suite.shared_pieces)
            return suite
        of_items = {"--by": self.by, "--sample": self.sample, "--plot": self.plot, "--ties": self.ties != "share"}
        if given := [option for option, value in of_items.items() if value]:
            raise InputError(f"This suite has measures and groups of its own. Leave out {', '.join(given)}.")
        return suite

    def measure(
        self,
        read: Callable[[], Suite],
        settings: PipelineSettings,
        about: dict[str, Any],
        predictions: Path | None = None,
    ) -> None:
        """Score the texts of a suite, print what it measures, and write what is asked for.

        read (Callable[[], Suite]): Reads it.
        about (Dict[str, Any]): What was read, for the file of results.
        predictions (Optional[Path]): The file of predictions to write, too.
        RAISES (ValueError): Something cannot be scored or written. What can be known before the work is said before it.
        """
        files = (self.output, (".json", ".csv")), (self.items, TABLES), (self.plot, PICTURES), (predictions, (".json",))
        kept = check_outputs(self.force, self.resume, self.output or self.items, *files, beside="--output or --items")
        suite = self._chosen(read())
        suite.check(self.per_piece)
        checked = deque[KeptEncodings | None](maxlen=1)  # of the scorer that stays in memory
        loaded = load_scorers(
            self.scorers, self.revisions, settings, lambda scorer: checked.append(check_suite(scorer, suite))
        )
        if self.items:
            one_alone = len(loaded) == 1
            names_of = {"" if one_alone else name: names for name, names in loaded.attributes.items()}
            check_parquet(self.items, check_rows(suite, names_of))
        how: dict[str, Any] = {"per_piece": self.per_piece}
        how |= {"ties": self.ties} if isinstance(suite, ChoiceSuite) else {}
        of_items = {"by": list(self.by), "sample": self.sample, **how, "items": digest_of(self._known_of(suite))}
        kept.about = {"scorers": loaded.records, "batch_size": self.batch_size, **about, **of_items}
        work = Work(self.batch_size, self.n_process, show_progress=True)
        with kept.until_done():
            found = score_texts(loaded.compared, suite, work, kept=kept, checked=checked, **how)
            used = {**loaded.records[0], "compared": loaded.records[1:]}
            if isinstance(found, ChoiceScores):
                printed, rows = self._of_choices(found)
                used |= {"by": list(self.by), **about, **how, "sample": self.sample}
            else:
                measures = found.measures()
                printed = figure_table(("group", "measure (95 % interval)", "items"), measures)
                rows = [one._asdict() for one in measures]
                used |= {**about, **how}
            say(printed)
            if self.output and self.output.suffix == ".csv":
                save(self.output, write_table, [_flat(**row) for row in rows])
            else:
                save(self.output, write_json, {"settings": used, "results": rows})
            if self.items:
                save(self.items, write_table, list(found.rows()))
            if isinstance(found, ChoiceScores):
                save(self.plot, draw, found.plot_curves if self.revisions else found.plot, self.by or None)
                if predictions:
                    save(predictions, write_json, found.predictions(next(iter(found.scores)), self.by or None))

    def _known_of(self, suite: Suite) -> list[object]:
        """What the outputs depend on, besides scores."""
        if isinstance(suite, ChoiceSuite):
            return list(suite.choices)
        fake, known = fake_scores(suite), list[object](suite.texts)
        # What cannot be made of such scores, or was not asked for, is no reason to stop.
        with suppress(Exception):
            known += suite.rows(fake)
        with suppress(Exception):
            known += [one[:4] for one in suite.measures(fake, self.per_piece)]
        return known

    def _of_choices(self, found: ChoiceScores) -> tuple[str, list[dict[str, Any]]]:
        """What is printed of choices, and the rows of the results."""
        unit, by = found.unit, self.by or None
        if found.has_preferences:
            correlations = found.correlations(by)
            printed = figure_table(("Spearman's rho (95 % interval)", unit), correlations)
            return printed, [one._asdict() for one in correlations]
        accuracies = found.accuracies(by)
        printed = figure_table(("accuracy in % (95 % interval)", unit), accuracies)
        printed += ties_line(accuracies, self.ties, unit)
        if equal := with_equal_options(found.choices):
            has = "has" if len(equal) == 1 else "have"
            first = place_of(found.choices, equal[0], unit)
            printed += f"{len(equal):,} of the {unit} {has} two equal options, first {first}.\n"
        rows = [{unit if k == "pairs" else k: value for k, value in one._asdict().items()} for one in accuracies]
        if len(found.scores) > 1:
            return printed + "\n" + difference_table(accuracies), rows
        return printed, [{k: value for k, value in row.items() if value is not None} for row in rows]


def _flat(group: Any, **row: Any) -> dict[str, Any]:
    """A row of results in which each column of the groups is a column."""
    return {**row, **({f"by_{k}": v for k, v in group.items()} if isinstance(group, dict) else {"group": group})}


evaluation_options = options_from(
    "evaluation", Evaluation, make=Evaluation, scorers={"param_decls": ["--scorer"], "metavar": None, "callback": None}
)


class LoadedScorers(Mapping[str, Language]):
    """The pipelines to compare, by name. Each is loaded when it is taken, and only the last one is kept in memory. The
    next one has its model, if they differ in how texts are scored alone.

    check (Callable[[PLLScorer], None]): Raises an error if one of them cannot be used.
    """

    def __init__(self, settings: dict[str, PipelineSettings], check: Callable[[PLLScorer], None]):
        self.settings = settings
        self._kept: tuple[str, Language] | None = None
        self.records, self.attributes = list[dict[str, Any]](), dict[str, Mapping[str, str]]()
        # Before anything is scored, so that an error in one costs no time, and the first one last, so that it stays.
        for name, given in reversed(settings.items()):
            scorer = get_scorer(self[name])
            self.records.insert(0, {"scorer": name, **describe_scorer(self[name], given)})
            self.attributes[name] = scorer.names.metrics
            check(scorer)

    def __getitem__(self, name: str) -> Language:
        if self._kept is None or self._kept[0] != name:
            given, model = self.settings[name], None
            if self._kept and _model_of(given) == _model_of(self.settings[self._kept[0]]):
                model = get_scorer(self._kept[1]).model
            self._kept = None
            self._kept = name, assemble_pipeline(given, model)
        return self._kept[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self.settings)

    def __len__(self) -> int:
        return len(self.settings)

    @property
    def compared(self) -> Language | Mapping[str, Language]:
        """One pipeline, whose metrics are compared, or several by name."""
        return self if len(self) > 1 else next(iter(self.values()))


def _model_of(settings: PipelineSettings) -> object:
    """What the model depends on; a saved pipeline always has its own."""
    is_saved = settings.model and pipeline_config(settings.model)
    return object() if is_saved else settings.changed(attr=None, spans=None, scoring={})


def load_scorers(
    scorers: Sequence[str],
    revisions: Sequence[str],
    settings: PipelineSettings,
    check: Callable[[PLLScorer], None] = lambda scorer: None,
) -> LoadedScorers:
    """The pipelines to compare, or the one that the other options describe. A scorer has the name that stands before
    `=`, as in small=builtin, or else its whole text. What it does not say is as the other options have it.

    check (Callable[[PLLScorer], None]): See `LoadedScorers`.
    RAISES (ValueError): Several of these are given, or two have one name.
    """
    common = {name: value for name, value in vars(settings).items() if name not in (*OF_ONE_MODEL, "scoring")}
    common |= settings.scoring
    if scorers and (revisions or settings != PipelineSettings(**common)):
        raise PLLError(
            "--scorer takes the place of --model, --revision, --component, --causal and --leading-space. Write them "
            "after commas: --scorer MODEL,revision=v2."
        )
    if revisions and settings.revision:
        raise PLLError("Give either --revision or --revisions.")
    if len(set(revisions)) < len(revisions):
        raise PLLError(f"--revisions has one of these twice: {','.join(revisions)}.")
    model = settings.model or BUILTIN_NAME
    if revisions and (model == BUILTIN_NAME or Path(model).is_dir()):
        raise PLLError(
            f"--revisions are of a model on the Hugging Face hub, and {model!r} is none. To compare folders, give "
            "--scorer NAME=FOLDER for each."
        )
    used = {revision: settings.changed(revision=revision) for revision in revisions}
    for text in scorers:
        name, _, spec = text.partition("=")
        # The rest is a model whose settings have =, or a folder: lr=0.1 and runs/lr=0.1 name none.
        if not (spec and re.fullmatch(r"[\w.-]+", name)) or Path(text.partition(",")[0]).is_dir():
            name = spec = text
        if name in used:
            raise PLLError(f"Two scorers have the name {name!r}. Name one with --scorer NAME=MODEL.")
        used[name] = parse_settings(spec, **common)
    return LoadedScorers(used or {model: settings}, check)


def figure_table(header: Sequence[str], figures: Sequence[Figure]) -> str:
    """A row for each group and measure, below the columns that groups are made by; a column for each scorer, some of
    which may have no such row. header (Sequence[str]): What stands above what `_cells_of` gives before the value.
    """
    scorers, shown = dict.fromkeys(one.scorer for one in figures), defaultdict[Any, dict[str, str]](dict)
    for one in figures:
        columns, place, value = _cells_of(one)
        shown[columns, place][one.scorer] = value
    rows: Table = [(*header, *scorers)]
    last: tuple[str, ...] = ()
    for (columns, place), of_scorers in shown.items():
        if columns != last:
            last, blank = columns, [""] * (len(rows[0]) - 1)
            rows += [("", *blank), (" x ".join(columns).upper(), *blank)]
        rows.append((*place, *(of_scorers.get(scorer, "") for scorer in scorers)))
    return text_table(rows)


def _cells_of(one: Figure) -> tuple[tuple[str, ...], tuple[object, ...], str]:
    """The columns that its group is made by, of what it is, and its value with the interval."""
    if isinstance(one, Measure):
        return (), (one.group, one.measure, one.n), with_interval(*one[3:6])
    if isinstance(one, Accuracy):
        return tuple(one.group), (one.label, one.pairs), percent(one.estimate)
    return tuple(one.group), (one.name or OVERALL, one.choices), with_interval(*one[4:7])


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
    shown, *ends = (f"{100 * share:{sign}.1f}" for share in shares)
    return f"{shown} ({(' to ' if sign else '-').join(ends)})"


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """A value with its interval, as far as there is one."""
    return "-" if value is None else f"{value:.3f}" + ("" if low is None else f" ({low:.3f} to {high:.3f})")
