"""`spacy-pll explore`: a local page to try out texts, models and metrics."""

import json
from contextlib import suppress
from dataclasses import asdict
from importlib.resources import files
from ipaddress import ip_address

from ..explorer import MAX_CHARACTERS
from ..pipelines import PipelineSettings
from ..requirements import extra
from ..user_warnings import warn_user
from .options import OF_TOKENS, described, pipeline_options

# Nothing is sent anywhere, and no question is asked when Streamlit starts for the first time. Its own files are not
# watched for changes, since nobody edits them.
STREAMLIT = {
    "browser.gatherUsageStats": "false",
    "server.showEmailPrompt": "false",
    "server.fileWatcherType": "none",
    "client.toolbarMode": "minimal",
}


@pipeline_options(without=(*OF_TOKENS, "quiet"))
@described(alternatives={"min": 0}, port={"min": 1, "max": 65535}, max_characters={"min": 1})
def explore_cli(
    settings: PipelineSettings,
    alternatives: int = 5,
    port: int | None = None,
    address: str = "localhost",
    max_characters: int = MAX_CHARACTERS,
    headless: bool = False,
) -> None:
    """Open a local page to try out texts, models and metrics.

    The page shows what the model expected in the place of each word, compares two versions of a text, and ranks
    candidates in a slot. Ctrl+C ends it.

    $ spacy-pll explore
    $ spacy-pll explore --model bert-base-cased --metrics word_l2r,original
    docs/explorer.md

    alternatives (int): For each token, show this many wordpieces that the model expected.
    port (Optional[int]): The port of the page. [default: 8501, or the next free one]
    address (str): The address at which the page listens. With this computer's address in a network, others there can
        open the page; 0.0.0.0: all its addresses. The model cannot be changed then.
    max_characters (int): How many characters the page scores at once.
    headless (bool): Do not open a browser.
    """
    with extra("explore", "The explorer needs Streamlit"):
        from streamlit.web.cli import main
    local = address == "localhost"
    options = {**STREAMLIT, "server.headless": str(headless).lower(), "server.address": address}
    with suppress(ValueError):
        local = (ip := ip_address(address)).is_loopback
        if ip.is_unspecified:  # it is no address for a browser, and Streamlit would ask a web page for a better one
            options["browser.serverAddress"] = "localhost"
    if not local:
        warn_user(
            f"Whoever reaches this computer at {address} can have it score texts. There is no password: do this in a "
            "network that you trust, and end it with Ctrl+C."
        )
    if port is not None:
        options["server.port"] = str(port)
    script = str(files("spacy_pll.explorer") / "app.py")
    arguments = [f"--{name}={value}" for name, value in options.items()]
    start = asdict(settings.changed(alternatives=alternatives))
    page = {"start": start, "max_characters": max_characters, "any_model": local}
    main(["run", script, *arguments, "--", json.dumps(page)], standalone_mode=False)
