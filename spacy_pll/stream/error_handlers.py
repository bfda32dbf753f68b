"""Who is told that a component cannot process docs. spaCy asks the component, which several threads may use: each
thread has a handler of its own while it needs one, and whoever else uses the component has the component's.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import partial
from threading import Lock
from typing import Any

from spacy.language import Language

from ..component import PLLScorer

# What is done with errors in this thread: a function of the component's own error handler and of what spaCy gives that,
# the name of the component, the component, the docs and the error.
_handle: ContextVar[Callable[..., Any] | None] = ContextVar("handle", default=None)
_lock = Lock()


def _new_lock() -> None:
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)  # another thread may hold it, and does not exist in the child


class _Shared:
    """The handler of a component while some threads have others: in all other threads, it is the component's own."""

    def __init__(self, own: Callable[..., Any]):
        self.own, self.users = own, 0

    def __call__(self, *about: Any) -> Any:
        handle = _handle.get()
        return handle(self.own, *about) if handle else self.own(*about)


@contextmanager
def handled(pipeline: Iterable[tuple[str, Any]], handle: Callable[..., Any]) -> Iterator[None]:
    """A context in which errors of a pipeline's components go to a function, in this thread alone. Behind the last
    thread, each component has its own handler again. Scorers are not changed: they get a handler with each call.

    handle (Callable): Gets the component's own handler, and what spaCy gives that.
    """
    shared, token = list[tuple[Any, _Shared]](), _handle.set(handle)
    try:
        with _lock:
            for _, pipe in pipeline:
                if hasattr(pipe, "get_error_handler") and not isinstance(pipe, PLLScorer):
                    handler = pipe.get_error_handler()
                    if not isinstance(handler, _Shared):
                        pipe.set_error_handler(handler := _Shared(handler))
                    handler.users += 1
                    shared.append((pipe, handler))
        yield
    finally:
        _handle.reset(token)
        with _lock:
            for pipe, handler in shared:
                handler.users -= 1
                if not handler.users and pipe.get_error_handler() is handler:  # nobody has set another one
                    pipe.set_error_handler(handler.own)


def with_default(nlp: Language, handle: Callable[..., Any]) -> Language:
    """The same pipeline, in which errors of components that have no handler of their own go to a function, too."""
    nlp = copy(nlp)
    nlp.default_error_handler = partial(handle, nlp.default_error_handler)
    return nlp
