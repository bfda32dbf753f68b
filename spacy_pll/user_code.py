"""A Python file of the user, which registers what a pipeline needs."""

import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import catalogue

from .documentation import page
from .errors import PLLError
from .user_warnings import no_warnings, warn_user

_names = dict[str, str]()  # of the modules, by the paths of their files, in the order in which they were imported


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
    # As spaCy calls it. What cannot be found under its module's name cannot be sent to another process.
    name = _names.setdefault(path, "_".join(["python_code", *([str(len(_names) + 1)] if _names else [])]))
    spec: Any = spec_from_file_location(name, path)
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    if _registered() == before:
        warn_user(
            f"{path} was imported, and it registers nothing: no class of a model (AutoConfig.register and "
            "AutoModelForMaskedLM.register), no metric (register_metric), nothing of spaCy's. An example: "
            f"{page('models.md#models-with-code-of-their-own')}"
        )


class ImportedCode:
    """All files that were imported here. A process that is started anew imports them when it receives this: what it
    receives next may need what they register.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return import_again, (list(_names),)


def import_again(paths: Iterable[str]) -> ImportedCode:
    """Import files that another process has imported, and has warned of."""
    with no_warnings():
        for path in paths:
            import_code(path)
    return ImportedCode()


def _registered() -> set[tuple[object, ...]]:
    """What is registered in spaCy and, if it is imported, in transformers."""
    registered: set[tuple[object, ...]] = {(*key, id(value)) for key, value in catalogue.REGISTRY.items()}
    auto = sys.modules.get("transformers.models.auto")
    for name in ("CONFIG_MAPPING", "TOKENIZER_MAPPING", "MODEL_FOR_MASKED_LM_MAPPING", "MODEL_FOR_CAUSAL_LM_MAPPING"):
        registered |= {(name, key) for key in getattr(getattr(auto, name, None), "_extra_content", ())}
    return registered
