"""A Python file of the user, which registers what a pipeline needs."""

import os
import sys
from functools import cache
from pathlib import Path

import catalogue
from spacy.util import import_file

from .errors import PLLError
from .user_warnings import warn_user


def import_code(path: str) -> None:
    """Import a Python file, once for each state of it.

    RAISES (ValueError): There is none, or it fails; the message says why.
    """
    if not Path(path).is_file():
        raise PLLError(f"There is no file {path!r}.", "Set `code` to a Python file.")
    try:
        _import_once(str(Path(path).resolve()), os.stat(path).st_mtime_ns)
    except (Exception, SystemExit) as error:  # a script may end with `sys.exit`
        raise PLLError(f"{path} cannot be imported: {type(error).__name__}: {error}.", "Correct it.") from error


@cache
def _import_once(path: str, changed: int) -> None:
    before = _registered()
    import_file("python_code", path)
    if _registered() == before:
        warn_user(
            f"{path} was imported, and it registers nothing: no class of a model (AutoConfig.register and "
            "AutoModelForMaskedLM.register), no metric (register_metric), nothing of spaCy's. docs/models.md has "
            "an example."
        )


def _registered() -> set[tuple[object, ...]]:
    """What is registered in spaCy and, if it is imported, in transformers."""
    found: set[tuple[object, ...]] = {(*key, id(value)) for key, value in catalogue.REGISTRY.items()}
    auto = sys.modules.get("transformers.models.auto")
    for name in ("CONFIG_MAPPING", "TOKENIZER_MAPPING", "MODEL_FOR_MASKED_LM_MAPPING", "MODEL_FOR_CAUSAL_LM_MAPPING"):
        found |= {(name, key) for key in getattr(getattr(auto, name, None), "_extra_content", ())}
    return found
