"""`spacy-pll margins SCORER CORPUS`: how close the scores with margins are to the exact ones."""

from collections.abc import Callable, Sequence
from functools import partial

from ..evaluation.margins import AT_LEAST, MARGINS, MarginAgreement, compare_margins
from ..visualize.text import Table, text_table
from .agree import SCORER, cells, comparison_options
from .options import described, parse_numbers


@comparison_options
@described(
    scorer={"help": f"{SCORER} The settings are those of `spacy-pll agree`."},
    margins={
        "metavar": "0,1,2,4",
        "help": f"The values of --mask-margin to try. [default: {','.join(map(str, MARGINS))}, or none with "
        "--spacings]",
    },
    spacings={"metavar": "8,16"},
    at_least={"min": 0, "max": 1},
)
def margins_cli(
    scorer: str,
    margins: Sequence[str] = (),
    spacings: Sequence[str] = (),
    at_least: float = AT_LEAST,
    *,
    compare: Callable[..., None],
) -> None:
    """Compare approximate scores with exact ones, to choose --mask-margin.

    The exact scores of a scorer are compared with those of each margin: the time, r by wordpiece, word and text, and
    the mean absolute difference by word. So you can choose the margin that your texts need. If it is stopped, the
    results are those of the texts until then.

    $ spacy-pll margins builtin texts.txt
    $ spacy-pll margins bert-base-cased texts.txt --margins 0,1,2 --limit 200
    docs/one-pass.md

    spacings (Sequence[str]): Values of --mask-spacing to try. Both can be given.
    at_least (float): What is close enough: the correlation with the exact scores, by word.
    """
    tried = parse_numbers("--margins", margins), parse_numbers("--spacings", spacings)
    if not any(tried):
        tried = [*MARGINS], []
    run = partial(compare_margins, margins=tried[0], spacings=tried[1], at_least=at_least)
    compare(command="margins", scorers=[scorer], n_scorers=1, compare=run, tables=margin_tables)


def margin_tables(result: MarginAgreement) -> str:
    """A row for the exact scores and one per margin and spacing; which to take."""
    exact = result.comparisons[0].scorers[0]
    header = ("r by piece", "r by word", "95 % interval", "r by text", "difference by word", "95 % interval")
    rows: Table = [("scores", "seconds", "times faster", *header)]
    rows.append(("exact", f"{exact.seconds:,.1f}", "1.0", *["–"] * 6))
    for one in result.comparisons:
        scorer, word = one.scorers[1], one.word
        difference = ("mean_absolute_difference", "mean_absolute_difference_interval")
        levels = (*cells(one.piece, ".4f", "r"), *cells(word, ".4f", "r", "r_interval"),
                  *cells(one.text_mean, ".4f", "r"), *cells(word, ".3f", *difference))  # fmt: skip
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
