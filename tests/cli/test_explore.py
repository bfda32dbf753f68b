import json
import re
import sys
import types
from contextlib import nullcontext

import pytest

from spacy_pll import PipelineSettings

from .conftest import run


@pytest.fixture
def started(monkeypatch):
    """The arguments that Streamlit's own command line was started with."""
    calls = []

    def main(arguments, standalone_mode):
        calls.append(arguments)

    monkeypatch.setitem(sys.modules, "streamlit", types.ModuleType("streamlit"))
    monkeypatch.setitem(sys.modules, "streamlit.web", types.ModuleType("streamlit.web"))
    monkeypatch.setitem(sys.modules, "streamlit.web.cli", types.SimpleNamespace(main=main))
    return calls


def test_it_starts_without_options(started):
    run("explore")
    ((command, script, *options, separator, page),) = started
    assert command == "run" and script.endswith("app.py") and separator == "--"
    page = json.loads(page)
    assert PipelineSettings(**page.pop("start")) == PipelineSettings(alternatives=5)
    assert page == {"max_characters": 2000, "any_model": True}
    # a local page that sends nothing, and asks nothing
    assert {"--browser.gatherUsageStats=false", "--server.address=localhost", "--server.headless=false"} <= set(options)
    assert not [option for option in options if "port" in option]


def test_options(started):
    run("explore", "--model", "a/b", "--metrics", "original,word_l2r", "--port", 9000, "--headless")
    *options, page = started[0]
    expected = PipelineSettings("a/b", metrics=["original", "word_l2r"], alternatives=5)
    assert PipelineSettings(**json.loads(page)["start"]) == expected
    run("explore", "--alternatives", 0, "--max-characters", 99)
    page = json.loads(started[-1][-1])
    assert PipelineSettings(**page["start"]) == PipelineSettings(alternatives=0) and page["max_characters"] == 99
    assert "[default: 5" in " ".join(run("explore", "--help").output.split()).split("--alternatives")[1]
    assert {"--server.port=9000", "--server.headless=true"} <= set(options)
    assert "port" in run("explore", "--port", 70000, code=2).output


@pytest.mark.parametrize(
    ("address", "local"),
    [("127.0.0.1", True), ("::1", True), ("192.168.1.5", False), ("0.0.0.0", False), ("lab", False)],
)
def test_a_page_that_others_can_open(started, address, local):
    """They can have the computer score texts, but not load another model. Streamlit asks no web page for an address."""
    with nullcontext() if local else pytest.warns(UserWarning, match=f"reaches this computer at {address} can have it"):
        run("explore", "--address", address)
    assert json.loads(started[0][-1])["any_model"] == local and f"--server.address={address}" in started[0]
    assert ("--browser.serverAddress=localhost" in started[0]) == (address == "0.0.0.0")


def test_without_streamlit_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "streamlit", None)
    monkeypatch.setitem(sys.modules, "streamlit.web.cli", None)
    result = run("explore", fails=True)
    assert re.search(r"needs Streamlit.*pip install .*\[explore\]", result.unwrapped_stderr)
