"""Where the documentation is: what messages and the help of commands name is an address that a browser opens."""

import re
from importlib.metadata import PackageNotFoundError, metadata

from .requirements import NAME

NAMED = re.compile(r"\bdocs/([\w-]+\.md(?:#[\w-]+)?)")


def page(name: str) -> str:
    """The address of a page, such as "speed.md#gpu", in the repository that setup.cfg names. If the package is not
    installed, this is its path.
    """
    try:
        home = metadata(NAME)["Home-page"]
    except PackageNotFoundError:
        return f"docs/{name}"
    return f"{home}/blob/HEAD/docs/{name}"


def with_addresses(text: str) -> str:
    """A text in which pages have their addresses in place of paths, such as docs/speed.md."""
    return NAMED.sub(lambda named: page(named[1]), text)
