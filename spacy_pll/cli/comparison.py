"""What `spacy-pll pairs`, `choices` and `suite` have in common: several scorers, and what is printed and written."""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy.language import Language

from ..component import PLLScorer, get_scorer
from ..corpus.formats import write_table
from ..errors import InputError, PLLError
from ..evaluation.choices import ChoiceSuite
from ..evaluation.items import levels, sample_items
from ..evaluation.measurements import Measurement, Ties
from ..evaluation.suites import Suite, check_suite, score_texts, with_fake_scores
from ..files import write_json
from ..language_model import BUILTIN_NAME
from ..pipelines import PipelineSettings, assemble_pipeline, describe_scorer, parse_settings, pipeline_config
from ..scoring.kept_encodings import KeptEncodings
from ..settings import BATCH_SIZE, at_least
from ..stream.known import digest_of
from ..stream.workers import Work
from ..visualize.text import Table, text_table
from .options import options_from
from .results import INTERVAL, RESULTS, measurement_table, save_results, with_interval
from .terminal import PICTURES, TABLES, check_outputs, check_parquet, draw, save, say

# Settings that several scorers do not share.
OF_ONE_MODEL = ("model", "revision", "component", "causal", "leading_space")


@dataclass(frozen=True)
class Evaluation:
    """What is compared on which items, and what is written.

    scorers (Sequence[str]): A scorer to compare, as MODEL,setting=value,... (see `spacy-pll agree`). Give it once for
        each scorer, in place of --model. NAME=MODEL names it in the results: margin0=builtin,mask_margin=0. Other
        options, such as --metrics, hold for all.
    revisions (Sequence[str]): Compare these revisions of the model (branches or tags on the hub), in this order.
        --plot then draws curves.
    by (Sequence[str]): Columns to group by, separated by commas: conditions. With several columns, each combination of
        their values is a group, too. Empty: the columns of phenomena and paradigms that the file has, such as
        linguistics_term and UID, or the name of the file.
    ties (str): How a tie counts. share: 1 divided by the number of equal options. first: 1 if the right option comes
        first, else 0.
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
            if self.plot and suite.has_preferences:
                raise InputError("--plot draws accuracies, and these choices have none. Leave it out.")
            if self.sample:
                suite = type(suite)(sample_items(suite.items, self.sample, self.by or None), suite.shared_pieces)
            suite.ties = self.ties
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
        files = (self.output, RESULTS), (self.items, TABLES), (self.plot, PICTURES), (predictions, (".json",))
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
            check_parquet(self.items, list(with_fake_scores(suite, names_of).rows()))
        about = {**about, "by": list(self.by), "sample": self.sample, "per_piece": self.per_piece, "ties": self.ties}
        about_items = {**about, "items": self._digest_of(suite)}
        kept.about = {"scorers": loaded.records, "batch_size": self.batch_size, **about_items}
        work = Work(self.batch_size, self.n_process, show_progress=True)
        with kept.until_done():
            scored = score_texts(loaded.compared, suite, work, kept=kept, checked=checked, per_piece=self.per_piece)
            measured = scored.measurements(self.by or None)
            say(measurement_table(measured, suite.unit) + self._remarks(suite, measured))
            used = {**loaded.records[0], "compared": loaded.records[1:], **about}
            save_results(self.output, measured, used)
            if self.items:
                save(self.items, write_table, list(scored.rows()))
            save(self.plot, draw, scored.plot_curves if self.revisions else scored.plot, self.by or None)
            if predictions and isinstance(suite, ChoiceSuite):
                save(predictions, write_json, suite.predictions(next(iter(scored.scores.values())), self.by or None))

    def _digest_of(self, suite: Suite) -> str:
        """A digest of what the outputs depend on, besides scores."""
        if isinstance(suite, ChoiceSuite):
            return digest_of(suite.choices)
        fake, known = with_fake_scores(suite, {"": {"": ""}}), list[object](suite.texts)
        # What cannot be made of such scores, or was not asked for, is no reason to stop.
        with suppress(Exception):
            known += fake.rows()
        with suppress(Exception):
            known += [
                (measurement.measure, measurement.n, measurement.value, measurement.level, measurement.name)
                for measurement in fake.measurements()
            ]
        return digest_of(known)

    def _remarks(self, suite: Suite, measured: Sequence[Measurement]) -> str:
        """What stands below the table of choices that have a right option: about ties, and what scorers gain."""
        if not isinstance(suite, ChoiceSuite) or suite.has_preferences:
            return ""
        overall = [accuracy for accuracy in measured if accuracy.is_of(())]
        lines = [ties_line(overall, self.ties, suite.unit)]
        if equal := suite.with_equal_options:
            has, first = "has" if len(equal) == 1 else "have", suite.locations[equal[0]]
            lines.append(f"{len(equal):,} of the {suite.unit} {has} two equal options, first {first}.\n")
        return "".join(lines) + (f"\n{difference_table(overall)}" if len(overall) > 1 else "")


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


def signed_percent(share: float) -> str:
    return f"{100 * share:+.1f}"


def ties_line(overall: Sequence[Measurement], ties: str, unit: str) -> str:
    """How many ties there are under each scorer, and what they count."""
    counted = "with the first option as chosen" if ties == "first" else "as half" if unit == "pairs" else "as a share"
    return (
        f"Ties, counted {counted}: {', '.join(f'{accuracy.ties} under {accuracy.scorer}' for accuracy in overall)}.\n"
    )


def difference_table(overall: Sequence[Measurement]) -> str:
    """What the other scorers gain against the first one, on all items."""
    first, *others = overall
    rows: Table = [(f"minus {first.scorer}", f"difference in % {INTERVAL}", "better", "worse", "McNemar's p")]
    for accuracy in others:
        ends = accuracy.difference, accuracy.difference_low, accuracy.difference_high
        rows.append(
            (accuracy.scorer, with_interval(ends, signed_percent), accuracy.better, accuracy.worse, f"{accuracy.p:.2g}")
        )
    return text_table(rows)
