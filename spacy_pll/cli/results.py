"""What commands print and write of what they have measured: one kind of table, and one kind of file."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from ..corpus.formats import write_table
from ..evaluation.measurements import ACCURACY, OVERALL, PEARSON, Measurement
from ..files import write_json
from ..settings import plain_number
from ..visualize.text import Table, text_table
from .terminal import save

RESULTS = (".json", ".csv")  # how the name of a file of results may end
INTERVAL = "(95 % interval)"  # stands behind what has one


def measurement_table(measured: Sequence[Measurement], unit: str = "n") -> str:
    """A text table: one row per group and measure, one column per scorer. Groups by the same columns stand under the
    names of these columns. A measure that is the only one stands above all; accuracies are then in percent.

    unit (str): What the items are called.
    """
    scorers = dict.fromkeys(measurement.scorer for measurement in measured)
    measures = dict.fromkeys(measurement.measure for measurement in measured)
    have_interval = {measurement.measure for measurement in measured if measurement.low is not None}
    is_one, all_have = len(measures) == 1, len(have_interval) == len(measures) > 0
    in_percent = [*measures] == [ACCURACY]
    has_groups = not is_one and any(measurement.label != OVERALL for measurement in measured)
    # By the columns of a group, its name, and what is measured of it: by scorer, the value.
    shown = defaultdict[Any, Any](lambda: defaultdict(lambda: defaultdict(dict)))
    for measurement in measured:
        write, to = (percent, "-") if in_percent else (writer_of(measurement.measure), " to ")
        by_scorer = shown[tuple(measurement.group)][measurement.label][measurement.measure, measurement.n]
        by_scorer[measurement.scorer] = with_interval((measurement.value, measurement.low, measurement.high), write, to)
    what = "accuracy in %" if in_percent else [*measures][0] if is_one else "measure"
    names = (*(["group"] * has_groups), f"{what} {INTERVAL}" if all_have else what)
    rows: Table = [(*names, unit, *scorers)]
    for columns, groups in shown.items():
        if columns:
            blank = [""] * (len(rows[0]) - 1)
            rows += [("", *blank)] * (len(rows) > 1) + [(" x ".join(columns).upper(), *blank)]
        for label, of_group in groups.items():
            for (measure, n), values in of_group.items():
                title = f"{measure} {INTERVAL}" if measure in have_interval and not all_have else measure
                cells = [label] if is_one else [label, title] if has_groups else [title]
                rows.append((*cells, f"{n:,}", *(values.get(scorer, "") for scorer in scorers)))
    return text_table(rows, left=names)


def with_interval(values: Sequence[float | None], write: Callable[[float], str], to: str = " to ") -> str:
    """A value with the ends of its interval, as far as they are there. write (Callable[[float], str]): Of each."""
    value, *ends = [write(value) for value in values if value is not None] or ["-"]
    return f"{value} ({to.join(ends)})" if ends else value


def writer_of(measure: str) -> Callable[[float], str]:
    """How the values of a measure are written: with three decimals; Pearson's r, which may be near 1, with four; and
    counts as they are.
    """
    decimals = 4 if measure.startswith(PEARSON) else 3
    return lambda value: f"{value:,}" if isinstance(value, Integral) else f"{value:,.{decimals}f}"


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def rows_of_results(measured: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Measurements as rows of a table, without the columns that none has."""
    rows = [{name: plain_number(value) for name, value in measurement._asdict().items()} for measurement in measured]
    kept = [name for name in Measurement._fields if any(row[name] is not None for row in rows)]
    return [{name: row[name] for name in kept} for row in rows]


def save_results(
    output: Path | None, measured: Sequence[Measurement], settings: Mapping[str, Any], **more: Any
) -> None:
    """Write a file of results, if it is asked for: its settings and its results as JSON, or its results as CSV.

    settings (Mapping[str, Any]): What the results depend on.
    more (Any): What else the JSON has that is no measurement.
    """
    rows = rows_of_results(measured)
    if output and output.suffix == ".csv":
        save(output, write_table, [_flat(**row) for row in rows])
    else:
        save(output, write_json, {"settings": settings, "results": rows, **more})


def _flat(group: Mapping[str, Any], **row: Any) -> dict[str, Any]:
    """A row of results in which each column of the groups is a column."""
    return {**row, **{f"by_{name}": value for name, value in group.items()}}
