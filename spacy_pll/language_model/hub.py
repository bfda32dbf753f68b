"""The Hugging Face hub: whether it can be reached, what its cache has of a model, and what a model card says."""

from pathlib import Path

import srsly
from huggingface_hub import constants, hf_hub_url, try_to_load_from_cache
from huggingface_hub.utils import HFValidationError, get_session
from spacy.util import find_matching_language

# In seconds. A connection that is merely slow is left to transformers, which tries again.
TIMEOUT = 10
# What requests and httpx call an error when no connection can be made. huggingface_hub has used both.
NO_CONNECTION = {"ConnectionError", "ConnectError", "ProxyError"}


def connection_error(source: str, revision: str | None) -> BaseException | None:
    """Why the hub cannot be reached; None if it can be, or if there is no need to. It is tried once.

    transformers tries again and again for each file, and waits in between, some 23 seconds in all.
    """
    if constants.HF_HUB_OFFLINE or Path(source).is_dir():
        return None
    try:
        url = hf_hub_url(source, constants.CONFIG_NAME, revision=revision)
    except HFValidationError:  # no hub name; transformers says so
        return None
    try:
        # The connection stays open for what transformers asks next.
        get_session().head(url, timeout=TIMEOUT)
    except Exception as error:
        names = [cls.__name__ for cls in type(error).__mro__]
        if NO_CONNECTION.intersection(names) and "Timeout" not in names[0]:
            first: BaseException = error
            while cause := first.__cause__ or first.__context__:
                first = cause
            return first
    return None


def cached_folder(source: str, revision: str | None, cache_dir: str | Path | None) -> Path | None:
    """The folder of a model in the hub's cache, whose name is its commit; None if it is not there, or for a folder."""
    if Path(source).is_dir():
        return None
    config = try_to_load_from_cache(source, constants.CONFIG_NAME, cache_dir=cache_dir, revision=revision)
    return Path(config).parent if isinstance(config, str) else None


def card_languages(folder: Path) -> frozenset[str]:
    """The languages that the card of a model names, as spaCy's codes. Empty where there is no card, where it names no
    language, or where it names all or others than by their codes.
    """
    card = folder / "README.md"
    return languages_of(card.read_text(encoding="utf8", errors="replace")) if card.is_file() else frozenset()


def languages_of(card: str) -> frozenset[str]:
    """The languages in the header of a card: see `card_languages`."""
    begin, _, rest = card.partition("---\n")
    header, end, _ = rest.partition("\n---")
    if begin.strip() or not end:
        return frozenset()
    try:
        named = srsly.yaml_loads(header).get("language")
    except Exception:  # whatever a header may hold that is not YAML, or not a mapping
        return frozenset()
    listed = named if isinstance(named, list) else [named]
    codes = [str(code).lower().replace("_", "-").split("-")[0] for code in listed]
    if named is None or any(len(code) > 3 or code == "mul" for code in codes):  # "multilingual", "code", "English"
        return frozenset()
    # Norwegian is `no` on the hub; spaCy has its two written forms.
    norwegian = {"nb", "nn"} if "no" in codes else set()
    return frozenset({*codes, *norwegian, *filter(None, map(find_matching_language, codes))})
