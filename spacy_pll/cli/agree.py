"""`spacy-pll agree SCORER_A SCORER_B CORPUS`: how well two scorers agree."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ..corpus.readers import list_files, read_texts
from ..corpus.records import STANDARD_STREAM, FileOptions, ReadOptions
from ..errors import PLLError
from ..evaluation.agreement import Agreement, LevelAgreement, agree
from ..files import check_output, write_json
from ..pipelines import SETTINGS, PipelineSettings, make_pipeline, parse_settings
from ..settings import BATCH_SIZE
from ..visualize.text import Table, text_table
from .options import described, file_options, options_from, pipeline_options
from .terminal import Stoppable, save, say

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
    tables: Callable[[Any], str],
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
    """Load scorers, have texts compared under them, print tables of the result, and write it if that is asked for.

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
    check_output(output, (".json",), force)
    if corpus != STANDARD_STREAM:
        list_files(corpus)  # fails before a model is loaded
    common = {name: getattr(settings, name) for name in COMMON}
    nlps = [make_pipeline(parse_settings(scorer, **common)) for scorer in scorers]
    texts = list(islice(read_texts(corpus, ReadOptions(column, nlps[0].vocab, files)), limit))
    with Stoppable(texts) as used:
        result = compare(*nlps, used, batch_size=batch_size, show_progress=True)
        say(tables(result))
    save(output, write_json, {"corpus": corpus, **asdict(result)})


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
    are the correlation r and the differences by wordpiece (if both have the same wordpieces), word and text, the tokens
    that differ most, and the time that each scorer took. If you stop the command, it prints the results for the texts
    that were scored.

    $ spacy-pll agree builtin builtin,mask_margin=1 texts.txt
    $ spacy-pll agree bert-base-cased bert-large-cased texts.txt
    docs/evaluation.md
    """
    run = partial(agree, labels=(scorers[0], scorers[-1]))
    compare(command="agree", scorers=scorers, n_scorers=2, compare=run, tables=agreement_tables)


def check_order(command: str, scorers: Sequence[str], corpus: str) -> None:
    """RAISES (ValueError): What should be the corpus is not there, and one of the scorers is a file."""
    files = [one for one in scorers if Path(one).is_file()]
    if files and corpus != STANDARD_STREAM and not Path(corpus).exists():
        in_order = " ".join([*(one for one in scorers if one != files[0]), corpus, files[0]])
        raise PLLError(
            f"The scorers come first, and the texts last: spacy-pll {command} {in_order}. There is no file or folder "
            f"{corpus!r}."
        )


def agreement_tables(result: Agreement) -> str:
    """The levels, the costs and the tokens that differ most."""
    names = [scorer.label for scorer in result.scorers]
    header = ("number", "r", "95 % interval", "mean difference", "95 % interval", "mean absolute difference")
    levels: Table = [("agreement by", *header)]
    for level in ("piece", "word", "text", "text_mean"):
        one = getattr(result, level)
        differences = ("mean_difference", "mean_difference_interval")
        values = one and (f"{one.n:,}", *cells(one, ".4f", "r", "r_interval"), *cells(one, "+.3f", *differences),
                          *cells(one, ".3f", "mean_absolute_difference"))  # fmt: skip
        levels.append((level.replace("_mean", " mean per piece"), *(values or ("different pieces", *["–"] * 5))))
    costs: Table = [("scorer", "metric", "seconds", "forward passes", "pieces in them")]
    for run in result.scorers:
        numbers = f"{run.seconds:,.1f}", f"{run.forward_passes:,}", f"{run.forward_pieces:,}"
        costs.append((run.label, run.metric, *numbers))
    tokens: Table = [("the tokens that differ most", *names, "difference")]
    for token in result.tokens:
        place = " ".join(f"{token.before[-16:]}[{token.token}]{token.after[:16]}".split())
        tokens.append((place, *(f"{score:.2f}" for score in token.scores), f"{token.difference:+.2f}"))
    return "".join(map(text_table, (levels, costs, tokens)))


def cells(level: LevelAgreement | None, spec: str, *names: str) -> Iterator[str]:
    """Some of the numbers and intervals of a level; "–" for none."""
    for name in names:
        value = getattr(level, name, None)
        ends = value if isinstance(value, tuple) else [value]
        yield "–" if value is None else " to ".join(format(end, spec) for end in ends)
