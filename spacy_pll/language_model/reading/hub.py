"""The Hugging Face hub: whether it can be reached, and what its cache has of a model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import constants, hf_hub_url, try_to_load_from_cache
from huggingface_hub.utils import HFValidationError, get_session, validate_repo_id

# Settings of transformers that say how files are got from the hub. In transformer_config, they hold for all files.
OF_HUB = ("cache_dir", "force_download", "local_files_only", "proxies", "token")
# In seconds. A connection that is merely slow is left to transformers, which tries again.
TIMEOUT = 10
# What requests and httpx call an error when no connection can be made. huggingface_hub has used both.
NO_CONNECTION = {"ConnectionError", "ConnectError", "ProxyError"}


def of_hub(transformer_config: Mapping[str, Any]) -> dict[str, Any]:
    """Its settings that say how files are got from the hub."""
    return {key: transformer_config[key] for key in OF_HUB if key in transformer_config}


def is_hub_name(source: str) -> bool:
    """Whether a model on the hub may have this name."""
    try:
        validate_repo_id(source)
    except HFValidationError:
        return False
    return True


def connection_error(source: str, revision: str | None) -> BaseException | None:
    """Why the hub cannot be reached; None if it can be, or if there is no need to. It is tried once.

    transformers tries again and again for each file, and waits in between, some 23 seconds in all.
    """
    if constants.HF_HUB_OFFLINE or Path(source).is_dir() or not is_hub_name(source):
        return None
    url = hf_hub_url(source, constants.CONFIG_NAME, revision=revision)
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


def cached_commit(source: str, revision: str | None, cache_dir: str | Path | None) -> str | None:
    """The commit of a model in the hub's cache, which is a folder's name; None if it is not there, or for a folder."""
    if Path(source).is_dir():
        return None
    config = try_to_load_from_cache(source, constants.CONFIG_NAME, cache_dir=cache_dir, revision=revision)
    return Path(config).parent.name if isinstance(config, str) else None
