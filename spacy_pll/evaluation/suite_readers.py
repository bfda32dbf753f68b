"""The readers of suites, by name. A reader is a function

    path (str): a file or folder
    options (Any): other arguments: see `read_suite`; the command passes those whose value is not the default
    RETURNS (Union[Suite, List[Pair], List[Choice]])

registered in `spacy.registry.pll_readers` (entry point group `spacy_pll_readers`), so that another package can add one.
Ours are `read_pairs`, `read_choices`, and the ones in `stereoset`, `syntaxgym`, `acceptability` and `crows_pairs`.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any

import catalogue
from spacy.util import registry

from ..errors import InputError, PLLError
from .choices import ChoiceSuite
from .items import Choice, Pair
from .minimal_pairs import PairSuite
from .suites import Suite

if not hasattr(registry, "pll_readers"):
    setattr(registry, "pll_readers", catalogue.create("spacy", "pll_readers", entry_points=True))  # noqa: B010
pll_readers: Any = getattr(registry, "pll_readers")  # noqa: B009


def read_suite(path: str, reader: str, **options: Any) -> Suite:
    """Read a test suite from a file or folder.

    reader (str): The name of a reader: "pairs", "choices", "stereoset", "syntaxgym", "acceptability", "crows_pairs",
        or one of another package.
    options (Any): The arguments of `read_pairs` or `read_choices`. For `acceptability` the columns `sentence` and
        `label`, a `threshold`, and how tables are written: `encoding`, `delimiter`, `quoting`, `header`, `na_as_text`.
    RAISES (ValueError): There is no such reader, or the file cannot be read.

    ``` title="pairs.csv"
    good,bad
    The cats sleep.,The cats sleeps.
    ```

    ```python
    import spacy_pll

    len(spacy_pll.read_suite("pairs.csv", "pairs").texts)  # 2
    ```
    """
    readers: dict[str, Callable[..., Any]] = pll_readers.get_all()
    if reader not in readers:
        raise PLLError(f"There is no `reader` {reader!r}.", f"These are there: {', '.join(sorted(readers))}.")
    try:
        signature(readers[reader]).bind(path, **options)
    except TypeError as error:
        raise PLLError(f"The reader {reader!r} does not take what is given: {error}.", "Leave it out.") from None
    suite = readers[reader](path, **options)
    if isinstance(suite, list) and all(isinstance(item, Pair) for item in suite):
        suite = PairSuite(suite)
    elif isinstance(suite, list) and all(isinstance(item, Choice) for item in suite):
        suite = ChoiceSuite(suite)
    if not isinstance(suite, Suite):
        what = f"The reader {reader!r} gives {suite!r:.100}"
        raise PLLError(what, "It must give a `Suite`, or a list of `Pair`s or of `Choice`s.")
    if not suite.texts:
        raise InputError(f"There is no text in {path!r}.")
    return suite
