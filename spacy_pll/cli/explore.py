"""`pll explore`: a local page to try out texts, models and metrics."""

import json
from dataclasses import asdict
from importlib.resources import files
from typing import Annotated

import typer

from ..pipelines import PipelineSettings
from ..requirements import extra
from .options import OF_TOKENS, pipeline_options

# Nothing is sent anywhere, no other computer can open the page, and no question is asked when Streamlit starts for the
# first time. Its own files are not watched for changes, since nobody edits them.
STREAMLIT = {
    "browser.gatherUsageStats": "false",
    "server.address": "localhost",
    "server.showEmailPrompt": "false",
    "server.fileWatcherType": "none",
    "client.toolbarMode": "minimal",
}


@pipeline_options(without=OF_TOKENS)
def explore_cli(
    settings: PipelineSettings,
    alternatives: Annotated[
        int, typer.Option(min=0, help="How many alternatives to show for each token: what the model expected.")
    ] = 5,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port of the page. [default: 8501, or the next free one]")
    ] = None,
    headless: Annotated[bool, typer.Option("--headless", help="Do not open a browser.")] = False,
) -> None:
    """Open a local page to try out texts, models and metrics.

    The page shows what the model expected in the place of each word, compares two versions of a text, and ranks
    candidates in a slot. Ctrl+C ends it.
    """
    with extra("explore", "The explorer needs Streamlit"):
        from streamlit.web.cli import main
    options = {**STREAMLIT, "server.headless": str(headless).lower()}
    if port is not None:
        options["server.port"] = str(port)
    script = str(files("spacy_pll.explorer") / "app.py")
    arguments = [f"--{name}={value}" for name, value in options.items()]
    start = json.dumps(asdict(settings.changed(alternatives=alternatives)))
    main(["run", script, *arguments, "--", start], standalone_mode=False)
