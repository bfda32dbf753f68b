"""A progress bar that moves with the work that is done: long texts take more of it than short ones."""

from collections.abc import Callable, Generator, Iterable, Sized
from typing import Any, TypeVar

from spacy.tokens import Doc
from tqdm import tqdm

from .prediction import Predictor, WorkDone
from .scoring.passes import Batch

T = TypeVar("T")
BAR = "{percentage:3.0f}%|{bar}| {desc} [{elapsed}<{remaining}, {rate_fmt}]"
MOVES: dict[str, Any] = {"mininterval": 0.1, "miniters": 1}  # with each pass, up to ten times a second
NO_BAR = "{desc} [{elapsed}, {rate_fmt}]"  # where it is not known how much there is


def work_of(*predictors: Predictor) -> Callable[[object], int]:
    """Gives for a text, its doc, or the error in its place, about how many ids the predictors read for it together."""

    def work(text: object) -> int:
        characters = text.text if isinstance(text, Doc) else str(text)
        return sum(predictor.estimate(characters) for predictor in predictors)

    return work


def total_work(texts: Iterable[T], work: Callable[[T], int]) -> tuple[int, int]:
    """The work of all texts, and how many they are; zeros for a stream."""
    return (sum(map(work, texts)), len(texts)) if isinstance(texts, Sized) else (0, 0)


def with_progress(
    items: Iterable[T],
    predictor: Predictor | None,
    work: Callable[[T], int],
    total: int,
    n_texts: int,
    done: int = 0,
    show: bool = True,
) -> Generator[T, None, None]:
    """Pass items on, each the outcome of a text, and show on standard error how much of the work is done.

    predictor (Optional[Predictor]): Does the work. If it is in this process, the bar moves with each forward pass.
        None: the bar moves with each item, since something else works, or several predictors do.
    work (Callable): Gives for an item about how many ids are read for its text: `work_of`.
    total (int): The sum for all items; 0 if it is not known.
    n_texts (int): How many texts there are, those included that were done before; 0 if that is not known.
    done (int): How many were done before.
    """
    of_all = f"/{n_texts:,} texts" if n_texts else " texts"
    bar = _WorkBar(total, f"{done:,}{of_all}", not show)
    before = predictor.counts if predictor else WorkDone()
    if predictor:
        predictor.counts = _WorkDoneOnBar(bar, before)
    try:
        with bar:
            for number, item in enumerate(items, done + 1):
                bar.set_description_str(f"{number:,}{of_all}", refresh=False)
                bar.text_is_done(work(item))
                yield item
            if predictor and bar.here:
                bar.read(predictor.counts.ids)  # the last pass, too
            bar.total = bar.n
    finally:
        if predictor:
            predictor.counts = before


class _WorkBar(tqdm):  # type: ignore[type-arg]
    """The number of ids that are read is estimated anew with each batch that is done.

    work (int): The estimate before anything is read; 0 if there is none.
    """

    def __init__(self, work: int, desc: str, disable: bool):
        look: dict[str, Any] = {"bar_format": BAR if work else NO_BAR, "unit": " pieces", "unit_scale": True}
        super().__init__(total=work or None, desc=desc, disable=disable, **look, **MOVES)
        self.work = work
        self.here = False  # whether ids are read in this process
        self.done = 0  # the estimate of the texts that are done
        self.read_before = 0  # what was read for all but the last

    def read(self, ids: int) -> None:
        """In all, so many ids have been read."""
        self.here = True
        if self.total:
            self.total = max(self.total, ids)
        self.update(ids - self.n)

    def text_is_done(self, ids: int) -> None:
        """One for which so many ids were to be read."""
        if not self.here:
            self.update(ids)
        elif self.work and self.done and self.n > self.read_before:  # the first of another batch, which was read now
            self.total = max(int(self.n), self.work * self.read_before // self.done)
        self.done, self.read_before = self.done + ids, int(self.n)


class _WorkDoneOnBar(WorkDone):
    """Moves a bar, and counts on where others count."""

    def __init__(self, bar: _WorkBar, before: WorkDone):
        super().__init__()
        self.bar, self.before = bar, before

    def __reduce__(self) -> tuple[type[WorkDone], tuple[()]]:
        """A process that gets a copy of the predictor shows no bar."""
        return WorkDone, ()

    def add(self, batch: Batch) -> Batch:
        self.bar.read(self.ids)  # what was read before it
        self.before.add(batch)
        return super().add(batch)
