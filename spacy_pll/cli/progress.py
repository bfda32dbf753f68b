"""The progress bar. It is shown on standard error, if that is a terminal."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

from tqdm import tqdm

from ..corpus.rows import ScoredText


def progress_bar(items: Iterable[Any], total: int | None = None) -> Iterable[Any]:
    """Show how many texts have passed here.

    total (Optional[int]): How many there are, if known.
    """
    return tqdm(items, total=total, unit=" texts", disable=None)


def progress_with_speed(scored: Iterable[ScoredText], total: int | None, done: int) -> Iterator[ScoredText]:
    """Show how many texts were scored, and how many wordpieces per second.

    total (Optional[int]): How many texts there are, if known.
    done (int): How many were scored by an earlier run.
    """
    pieces, start = 0, time.monotonic()
    with tqdm(total=total, initial=done, unit=" texts", disable=None) as bar:
        for text in scored:
            pieces += text.pieces
            bar.set_postfix_str(f"{pieces / (time.monotonic() - start):.0f} pieces/s", refresh=False)
            bar.update()
            yield text
