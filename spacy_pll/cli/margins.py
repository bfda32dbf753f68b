"""`spacy-pll margins SCORER CORPUS`: how close the scores with margins are to the exact ones."""

from collections.abc import Callable, Sequence
from functools import partial

from ..evaluation.margins import AT_LEAST, MARGINS, MarginAgreement, compare_margins
from .agree import SCORER, comparison_options
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

    The exact scores of a scorer are compared with the scores of each margin: the time, and by wordpiece, word and text
    the correlation r and the differences, in nats. So you can choose the margin that your texts need. If you stop the
    command, it prints the results for the texts that were scored.

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
    about = {"margins": tried[0], "spacings": tried[1], "at_least": at_least}
    shown = {"below": advice, "more": lambda result: {"smallest": result.smallest}}
    compare(command="margins", scorers=[scorer], n_scorers=1, compare=run, about=about, **shown)


def advice(result: MarginAgreement) -> str:
    """Which margin or spacing to take."""
    lines = list[str]()
    for setting, smallest in result.smallest.items():
        goal, option = f"r = {result.at_least:g} by word", "--" + setting.replace("_", "-")
        lines.append(
            f"No {setting} of these reaches {goal}. Try larger ones, or keep the exact scores."
            if smallest is None
            else f"{setting} {smallest} is the smallest of these that reaches {goal}. The option for it: {option} "
            f"{smallest}"
        )
    return "\n".join(lines)
