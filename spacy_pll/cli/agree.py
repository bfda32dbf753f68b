"""`pll agree SCORER_A SCORER_B CORPUS`: how well two scorers agree, or `pll agree SCORER CORPUS --margins 0,1,2,4`: how
close the scores with margins are to the exact ones."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from ..corpus.readers import list_files, read_records
from ..corpus.records import STANDARD_STREAM, texts_of
from ..evaluation.agreement import Agreement, LevelAgreement, agree
from ..evaluation.margins import AT_LEAST, MarginAgreement, compare_margins
from ..files import check_output, write_json
from ..pipelines import SETTINGS, make_pipeline, parse_settings
from ..settings import BATCH_SIZE
from ..visualize.text import Table, text_table
from . import options
from .options import file_options, parse_numbers, several
from .terminal import check_picture, draw, save, say


@file_options
def agree_cli(
    scorers: Annotated[
        list[str],
        typer.Argument(
            metavar="SCORER_A [SCORER_B]",
            help="A hub name or folder of a model, a spaCy pipeline, or builtin. Settings can follow after commas: "
            "builtin,mask_margin=1 or bert-base-cased,precision=bfloat16. With --margins or --spacings, give one. "
            f"The settings are: {', '.join([*SETTINGS][1:])}.",
        ),
    ],
    corpus: Annotated[str, typer.Argument(help="The texts: a file or folder, as for `pll score`.")],
    margins: Annotated[
        list[str],
        several(
            "Compare the exact scores of one scorer with those that --mask-margin gives, for each of these margins, "
            "and say which is the smallest that is close enough.",
            metavar="0,1,2,4",
        ),
    ] = [],  # noqa: B006
    spacings: Annotated[list[str], several("The same for --mask-spacing. Both can be given.", metavar="8,16")] = [],  # noqa: B006
    at_least: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="What is close enough: the correlation with the exact scores, by word. With --margins or --spacings. "
            f"[default: {AT_LEAST}]",
        ),
    ] = None,
    column: options.Column = "text",
    *,
    how: dict[str, Any],
    limit: Annotated[int | None, typer.Option(min=1, help="Use only this many texts, from the beginning.")] = None,
    lang: Annotated[str, typer.Option(help="Language of spaCy's tokenizer. Not used for spaCy pipelines.")] = "en",
    gpu_id: options.Gpu = -1,
    threads: options.Threads = None,
    output: options.Output = None,
    plot: options.Plot = None,
    force: options.Force = False,
    batch_size: options.BatchSize = BATCH_SIZE,
) -> None:
    """Compare the scores of two scorers on the same texts, or choose a margin.

    The scorers are any two pipelines: an exact one and an approximate one, two models, or two precisions. The results
    are the correlation r and the differences by wordpiece (if both have the same wordpieces), word and text, the mean
    scores by decile, the tokens that differ most, and the time that each scorer took.

    With --margins, the exact scores of one scorer are compared with those of each margin: the time, r by wordpiece,
    word and text, and the mean absolute difference by word. So you can choose the margin that your texts need.
    """
    _check_order(scorers, corpus)
    tried = parse_numbers("--margins", margins), parse_numbers("--spacings", spacings)
    if len(scorers) != (1 if any(tried) else 2):
        wanted = (
            "--margins and --spacings compare one scorer with its own exact scores. Give one."
            if any(tried)
            else "Give two scorers before the corpus, or one with --margins 0,1,2,4."
        )
        raise ValueError(f"{wanted} The scorers before the corpus are: {', '.join(scorers)}.")
    if not any(tried) and at_least is not None:
        raise ValueError(f"--at-least {at_least} is for choosing a margin. Add --margins 0,1,2,4, or leave it out.")
    check_output(output, (".json",), force, corpus)
    check_picture(plot, force, corpus)
    if corpus != STANDARD_STREAM:
        list_files(corpus)  # fails before a model is loaded
    settings = [parse_settings(scorer, lang=lang, gpu_id=gpu_id, threads=threads) for scorer in scorers]
    nlps = [make_pipeline(one) for one in settings]
    texts = list(islice(texts_of(read_records(corpus, column, nlps[0].vocab, **how)), limit))
    result: Agreement | MarginAgreement
    settled: dict[str, Any] = {"batch_size": batch_size, "show_progress": True}
    if any(tried):
        goal = AT_LEAST if at_least is None else at_least
        result = compare_margins(nlps[0], texts, *tried, at_least=goal, **settled)
        say(margin_tables(result))
    else:
        result = agree(nlps[0], nlps[1], texts, labels=(scorers[0], scorers[1]), **settled)
        say(agreement_tables(result))
    save(output, write_json, {"corpus": corpus, **asdict(result)})
    save(plot, draw, result.plot)


def _check_order(scorers: list[str], corpus: str) -> None:
    """RAISES (ValueError): What should be the corpus is not there, and one of the scorers is a file."""
    files = [one for one in scorers if Path(one).is_file()]
    if files and corpus != STANDARD_STREAM and not Path(corpus).exists():
        in_order = " ".join([*(one for one in scorers if one != files[0]), corpus, files[0]])
        raise ValueError(
            f"The scorers come first, and the texts last: pll agree {in_order}. There is no file or folder {corpus!r}."
        )


def agreement_tables(result: Agreement) -> str:
    """The levels, the costs, the deciles and the tokens that differ most."""
    names = [scorer.label for scorer in result.scorers]
    header = ("number", "r", "95 % interval", "mean difference", "95 % interval", "mean absolute difference")
    levels: Table = [("agreement by", *header)]
    titles = {"piece": "piece", "word": "word", "text": "text", "text_mean": "text mean per piece"}
    for level, title in titles.items():
        one = getattr(result, level)
        differences = ("mean_difference", "mean_difference_interval")
        values = one and (f"{one.n:,}", *shown(one, ".4f", "r", "r_interval"), *shown(one, "+.3f", *differences),
                          *shown(one, ".3f", "mean_absolute_difference"))  # fmt: skip
        levels.append((title, *(values or ("different pieces", *["–"] * 5))))
    costs: Table = [("scorer", "metric", "seconds", "forward passes", "pieces in them")]
    for run in result.scorers:
        costs.append(
            (run.label, run.metric, f"{run.seconds:,.1f}", f"{run.forward_passes:,}", f"{run.forward_pieces:,}")
        )
    deciles: Table = [("scores from", "to", "number", *(f"mean, {name}" for name in names), "difference")]
    for group in result.deciles:
        means = f"{group.mean_first:.3f}", f"{group.mean_second:.3f}", f"{group.mean_difference:+.3f}"
        deciles.append((f"{group.low:.2f}", f"{group.high:.2f}", f"{group.n:,}", *means))
    tokens: Table = [("the tokens that differ most", *names, "difference")]
    for token in result.tokens:
        place = " ".join(f"{token.before[-16:]}[{token.token}]{token.after[:16]}".split())
        tokens.append((place, *(f"{score:.2f}" for score in token.scores), f"{token.difference:+.2f}"))
    return "".join(map(text_table, (levels, costs, deciles, tokens)))


def margin_tables(result: MarginAgreement) -> str:
    """A row for the exact scores and one per margin and spacing; which to take."""
    exact = result.comparisons[0].scorers[0]
    header = ("r by piece", "r by word", "95 % interval", "r by text", "difference by word", "95 % interval")
    rows: Table = [("scores", "seconds", "times faster", *header)]
    rows.append(("exact", f"{exact.seconds:,.1f}", "1.0", *["–"] * 6))
    for one in result.comparisons:
        scorer, word = one.scorers[1], one.word
        difference = ("mean_absolute_difference", "mean_absolute_difference_interval")
        levels = (*shown(one.piece, ".4f", "r"), *shown(word, ".4f", "r", "r_interval"),
                  *shown(one.text_mean, ".4f", "r"), *shown(word, ".3f", *difference))  # fmt: skip
        rows.append((scorer.label, f"{scorer.seconds:,.1f}", f"{exact.seconds / scorer.seconds:,.1f}", *levels))
    lines = [
        "r by text: of mean scores per wordpiece. Difference: the mean absolute difference from the exact scores, in "
        "nats."
    ]
    for setting, smallest in result.smallest.items():
        goal, option = f"r = {result.at_least:g} by word", "--" + setting.replace("_", "-")
        lines.append(
            f"No {setting} of these reaches {goal}. Try larger ones, or keep the exact scores."
            if smallest is None
            else f"{setting} {smallest} is the smallest of these that reaches {goal}. The option for it: {option} "
            f"{smallest}"
        )
    return text_table(rows) + "\n".join(lines)


def shown(level: LevelAgreement | None, spec: str, *names: str) -> Iterator[str]:
    """Some of the numbers and intervals of a level; "–" for none."""
    for name in names:
        value = getattr(level, name, None)
        ends = value if isinstance(value, tuple) else [value]
        yield "–" if value is None else " to ".join(format(end, spec) for end in ends)
