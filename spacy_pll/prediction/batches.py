"""Where a batch ends."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from ..language_model.protocol import Loaded
from ..texts import Text

# On a GPU, the first batch has no more docs than `batch_size`, so that the GPU begins soon. The next may have as many
# as all before them and `batch_size` more, up to the second of these numbers, so that their passes are full. That is so
# where `batch_size` is at least the first, which spaCy gives if nothing is said; a smaller one is kept. With batches of
# 1,000, passes of sentences of BLiMP cost 7 to 15 % more under a model of BERT-base's size, and 23 to 49 % more with
# `mask_margin=0` (`test_blimp_rows.py`).
GPU_DOCS = 1000, 8000
T = TypeVar("T")


class EndsBatch(Protocol):
    """Says of one text after the other whether a batch ends with it.

    characters (Optional[str]): The text of a doc, if it is known.
    """

    def __call__(self, text: Text, characters: str | None = None) -> bool: ...


def batches_of(texts: Iterable[T], ends_batch: Callable[[T], bool]) -> Iterator[list[T]]:
    """Divide texts or docs, in their order. No more are taken than a batch has, so that long ones do not fill the
    memory.

    ends_batch (Callable): See `ends_of_batches`.
    RAISES (Exception): Whatever the texts raise, once the batch before is given.
    """
    batch = list[T]()
    try:
        for text in texts:
            batch.append(text)
            if ends_batch(text):
                yield batch
                batch = []
    except Exception:  # of the text that comes next
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def with_next_ahead(submitted: Iterable[T], on_gpu: bool) -> Iterator[T]:
    """What was submitted to a model, in its order. On a GPU, each is given once the next is submitted, too: while the
    GPU works on that, what is given is finished.

    submitted (Iterable): Is submitted as it is taken.
    RAISES (Exception): Whatever it raises, once all that was submitted is given.
    """
    pending = deque[T]()
    try:
        for submission in submitted:
            pending.append(submission)
            if len(pending) > on_gpu:
                yield pending.popleft()
    except Exception:
        yield from pending
        raise
    yield from pending


def ends_of_batches(
    estimate: Callable[[Text, str | None], int], loaded: Loaded, max_docs: int, n_before: int = 0
) -> EndsBatch:
    """A function that is called with each text, in order, and says whether a batch ends with it. A batch ends after
    `max_docs` texts, or after `Loaded.ids_at_once` ids if these come first: a CPU reads them in two or three seconds.
    This depends only on the texts of the batch and on the number of texts before it, so a run may begin behind any
    batch.

    estimate (Callable): About how many ids are read for a text.
    max_docs (int): The most texts in a batch. For a GPU, they may become more (`GPU_DOCS`).
    n_before (int): How many texts come before the first one.
    """
    n_texts = n_ids = 0
    grows = loaded.on_gpu and max_docs >= GPU_DOCS[0]

    def ends(text: Text, characters: str | None = None) -> bool:
        nonlocal n_before, n_texts, n_ids
        n_texts, n_ids = n_texts + 1, n_ids + estimate(text, characters)
        # Each batch may have as many as all before it, and `max_docs` besides.
        most = max(max_docs, min(n_before + max_docs, GPU_DOCS[1])) if grows else max_docs
        if n_texts < most and n_ids < loaded.ids_at_once:
            return False
        n_before, n_texts, n_ids = n_before + n_texts, 0, 0
        return True

    return ends
