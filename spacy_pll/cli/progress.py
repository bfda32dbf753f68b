"""The progress bar. It is shown on standard error, if that is a terminal."""

from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def progress_bar(items: Iterable[Any], total: int | None = None) -> Iterable[Any]:
    """Show how many texts have passed here.

    total (Optional[int]): How many there are, if known.
    """
    return tqdm(items, total=total, unit=" texts", disable=None)
