"""`spacy-pll agree SCORER_A SCORER_B CORPUS`: how well two scorers agree."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ..corpus.readers import list_files, read_texts
from ..corpus.records import STANDARD_STREAM, FileOptions, ReadOptions
from ..errors import PLLError
from ..evaluation.agreement import Agreement, agree
from ..files import check_output
from ..pipelines import SETTINGS, PipelineSettings, describe_scorer, make_pipeline, parse_settings
from ..settings import BATCH_SIZE
from ..visualize.text import Table, text_table
from .options import described, file_options, options_from, pipeline_options
from .results import RESULTS, measurement_table, save_results
from .terminal import Stoppable, say

SCORER = (
    "A hub name or folder of a model, a spaCy pipeline, or builtin. Settings can follow after commas: "
    "builtin,mask_margin=1 or bert-base-cased,precision=bfloat16."
)
# Options for all scorers. The other settings of a scorer follow its name.
COMMON = ("lang", "gpu_id", "threads")


@pipeline_options(without=[name for name in SETTINGS if name not in COMMON])
@file_options
@described(limit={"min": 1})
def _compare(
    command: str,
    scorers: Sequence[str],
    n_scorers: int,
    compare: Callable[..., Any],
    below: Callable[[Any], str],
    more: Callable[[Any], Mapping[str, Any]],
    about: Mapping[str, Any],
    corpus: str,
    column: str = "text",
    *,
    files: FileOptions,
    limit: int | None = None,
    settings: PipelineSettings,
    output: Path | None = None,
    force: bool = False,
    batch_size: int = BATCH_SIZE,
) -> None:
    """Load scorers, have texts compared under them, print the results, and write them if that is asked for.

    corpus (str): The texts: a file or folder, as for `spacy-pll score`.
    limit (Optional[int]): Use only this many texts, from the beginning.
    """
    check_order(command, scorers, corpus)
    if len(scorers) != n_scorers:
        there = "There is one" if len(scorers) == 1 else f"There are {len(scorers)}"
        raise PLLError(
            f"Give two scorers before the corpus. {there}: {', '.join(scorers)}.",
            "To compare one scorer with its own exact scores, use spacy-pll margins.",
        )
    check_output(output, RESULTS, force)
    if corpus != STANDARD_STREAM:
        list_files(corpus)  # fails before a model is loaded
    parsed = [parse_settings(scorer, **{name: getattr(settings, name) for name in COMMON}) for scorer in scorers]
    nlps = list(map(make_pipeline, parsed))
    each = zip(scorers, nlps, parsed) if output else ()
    records = [{"scorer": name, **describe_scorer(nlp, own)} for name, nlp, own in each]
    texts = list(islice(read_texts(corpus, ReadOptions(column, nlps[0].vocab, files)), limit))
    with Stoppable(texts) as used:
        result = compare(*nlps, used, batch_size=batch_size, show_progress=True)
        measured = result.measurements()
        say(measurement_table(measured) + below(result))
    if output:
        about = {**about, "path": corpus, "column": column, **vars(files), "limit": limit}
        used_settings = {**records[0], "compared": records[1:], **about}
        save_results(output, measured, used_settings, **more(result))


# Gives a command the texts and what else `spacy-pll agree` and `spacy-pll margins` have in common, in place of its
# parameter `compare`, a function that does the rest.
comparison_options = options_from("compare", _compare, make=partial(partial, _compare))


@comparison_options
@described(
    scorers={"metavar": "SCORER_A SCORER_B", "help": f"{SCORER} The settings are: {', '.join([*SETTINGS][1:])}."}
)
def agree_cli(scorers: list[str], compare: Callable[..., None]) -> None:
    """Compare the scores of two scorers on the same texts.

    The scorers are any two pipelines: an exact one and an approximate one, two models, or two precisions. The results
    are the time that each scorer took, the correlation r and the differences, in nats, by wordpiece (if both have the
    same wordpieces), word and text, and the tokens that differ most. If you stop the command, it prints the results for
    the texts that were scored.

    $ spacy-pll agree builtin builtin,mask_margin=1 texts.txt
    $ spacy-pll agree bert-base-cased bert-large-cased texts.txt
    docs/evaluation.md
    """
    first, second = scorers[0], scorers[-1]
    run = partial(agree, labels=(first, second if second != first else f"{second} again"))
    shown = {"below": differences, "more": lambda result: {"tokens": [asdict(token) for token in result.tokens]}}
    compare(command="agree", scorers=scorers, n_scorers=2, compare=run, about={}, **shown)


def check_order(command: str, scorers: Sequence[str], corpus: str) -> None:
    """RAISES (ValueError): What should be the corpus is not there, and one of the scorers is a file."""
    files = [scorer for scorer in scorers if Path(scorer).is_file()]
    if files and corpus != STANDARD_STREAM and not Path(corpus).exists():
        in_order = " ".join([*(scorer for scorer in scorers if scorer != files[0]), corpus, files[0]])
        raise PLLError(
            f"The scorers come first, and the texts last: spacy-pll {command} {in_order}. There is no file or folder "
            f"{corpus!r}."
        )


def differences(result: Agreement) -> str:
    """What stands below the table: the tokens that differ most, and why pieces are not compared."""
    names = [scorer.label for scorer in result.scorers]
    rows: Table = [("the tokens that differ most", *names, "difference")]
    for token in result.tokens:
        in_context = " ".join(f"{token.before[-16:]}[{token.token}]{token.after[:16]}".split())
        rows.append((in_context, *(f"{score:.2f}" for score in token.scores), f"{token.difference:+.2f}"))
    note = "" if result.piece else "The two have different wordpieces, so nothing is compared by piece.\n"
    return note + text_table(rows)
