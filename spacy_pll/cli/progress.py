"""The progress bar: on standard error, if that is a terminal."""

from collections.abc import Iterable, Iterator

from tqdm import tqdm


def progress_bar(texts: Iterable, total: int | None = None) -> Iterator:
    """Pass texts on, and show how many there were."""
    return tqdm(texts, total=total, unit=" texts", disable=None)
