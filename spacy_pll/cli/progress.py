"""The progress bar. It is shown on standard error, if that is a terminal."""

from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def progress_bar(items: Iterable[Any], total: int | None = None, done: int = 0) -> Iterable[Any]:
    """Show how many texts were scored.

    total (Optional[int]): How many there are, if known.
    done (int): How many were scored by an earlier run.
    """
    return tqdm(items, total=total, initial=done, unit=" texts", disable=None)
