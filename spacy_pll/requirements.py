"""What to type if the packages of an extra are missing: the only place that knows where this package comes from."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from urllib.parse import urlsplit
from urllib.request import url2pathname

NAME = "spacy-pll"


def install_command(extra: str) -> str:
    """The command that installs an extra, from where this package was installed: a clone, a file, git or an index."""
    try:
        # What pip notes about a package that comes from no index (PEP 610). Nothing, if it comes from one.
        origin = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:  # the folder is on the path, and nothing is installed
        origin = {}
    url = origin.get("url", "")
    if "vcs_info" in origin:
        target = f"{NAME}[{extra}] @ {origin['vcs_info']['vcs']}+{url}"
    elif url.startswith("file:"):
        target = f"{url2pathname(urlsplit(url).path)}[{extra}]"
    else:
        target = f"{NAME}[{extra}]"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}{shlex.quote(target)}"


@contextmanager
def extra(name: str, purpose: str, otherwise: str = "") -> Iterator[None]:
    """RAISES (ImportError): What is imported in this context is not installed.

    purpose, otherwise (str): How the message begins, as in "Plots need X", and how it ends.
    """
    try:
        yield
    except ImportError:
        raise ImportError(f"{purpose}. Install it with: {install_command(name)}{otherwise}") from None
