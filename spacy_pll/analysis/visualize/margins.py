"""What margins and spacings cost and save, as a table and as a web page."""

from ..agreement import MarginAgreement
from .agreement import interval, render_page, shown
from .text import Table, text_table

HEADER = (
    "scores",
    "seconds",
    "times faster",
    "r by piece",
    "r by word",
    "95 % interval",
    "r by text",
    "difference by word",
    "95 % interval",
)
ABOUT = (
    "r by text: of mean scores per wordpiece. Difference: the mean absolute difference from the exact scores, in nats."
)


def margin_tables(result: MarginAgreement) -> str:
    """What the command line prints."""
    return "\n".join([text_table(margin_rows(result)) + ABOUT, *conclusions(result)])


def margin_rows(result: MarginAgreement) -> Table:
    """One row for the exact scores, and one per margin and spacing."""
    exact = result.comparisons[0].scorers[0]
    rows: Table = [HEADER, ("exact", f"{exact.seconds:,.1f}", "1.0", *["–"] * 6)]
    for one in result.comparisons:
        scorer, word = one.scorers[1], one.word
        rows.append(
            (
                scorer.label,
                f"{scorer.seconds:,.1f}",
                f"{exact.seconds / scorer.seconds:,.1f}",
                shown(one.piece.r if one.piece else None, 4),
                shown(word.r, 4),
                interval(word.r_interval, 4),
                shown(one.text_mean.r, 4),
                shown(word.mean_absolute_difference, 3),
                interval(word.mean_absolute_difference_interval, 3),
            )
        )
    return rows


def conclusions(result: MarginAgreement) -> list[str]:
    """A sentence for each setting that was tried."""
    return [_conclusion(setting, smallest, result.at_least) for setting, smallest in result.smallest.items()]


def _conclusion(setting: str, smallest: int | None, at_least: float) -> str:
    goal = f"r = {at_least:g} by word"
    if smallest is None:
        return f"No {setting} of these reaches {goal}. Try larger ones, or keep the exact scores."
    option = "--" + setting.replace("_", "-")
    return f"{setting} {smallest} is the smallest of these that reaches {goal}. The option for it: {option} {smallest}"


def margins_page(result: MarginAgreement) -> str:
    """A web page with the table, and all that is known of each margin and spacing below it. It loads nothing else."""
    about = f"{result.texts:,} texts. {ABOUT} Intervals are bootstrap intervals over texts."
    title = f"Exact and approximate scores of {result.model}"
    return render_page(title, about, result.comparisons, margin_rows(result), conclusions(result))
