"""What setup.cfg cannot say. `url` there is the only place that names the repository for a release.

README.md is also the page on package indexes, where relative links lead nowhere. So its links are completed here.

A wheel is built in a temporary folder. In the usual one, `build`, files stay that are no longer in the package, and the
next wheel would have them.
"""

import re
from configparser import ConfigParser
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import setup

ROOT = Path(__file__).parent


def complete(page: str, url: str) -> str:
    """A page of the repository with full addresses in place of relative links to files."""
    page = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\g<1>{url}/raw/HEAD/", page)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!https?:|#)", rf"\g<1>{url}/blob/HEAD/", page)


if __name__ == "__main__":
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf8")
    url = config["metadata"]["url"]
    with TemporaryDirectory() as build:
        setup(
            options={"build": {"build_base": build}},
            long_description=complete((ROOT / "README.md").read_text(encoding="utf8"), url),
            project_urls={
                "Source": url,
                "Documentation": f"{url}/blob/HEAD/docs/README.md",
                "Changelog": f"{url}/blob/HEAD/CHANGELOG.md",
                "Issues": f"{url}/issues",
            },
        )
