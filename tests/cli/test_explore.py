import json
import sys
import types

import pytest

from spacy_pll.pipelines import PipelineSettings
from spacy_pll.requirements import install_command

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
    ((command, script, *options, separator, settings),) = started
    assert command == "run" and script.endswith("app.py") and separator == "--"
    assert PipelineSettings(**json.loads(settings)) == PipelineSettings(alternatives=5)
    # a local page that sends nothing, and asks nothing
    assert {"--browser.gatherUsageStats=false", "--server.address=localhost", "--server.headless=false"} <= set(options)
    assert not [option for option in options if "port" in option]


def test_options(started):
    run("explore", "--model", "a/b", "--metrics", "original,word_l2r", "--port", 9000, "--headless")
    *options, settings = started[0]
    expected = PipelineSettings("a/b", metrics=["original", "word_l2r"], alternatives=5)
    assert PipelineSettings(**json.loads(settings)) == expected
    run("explore", "--alternatives", 0)
    assert PipelineSettings(**json.loads(started[-1][-1])) == PipelineSettings(alternatives=0)
    assert "[default: 5" in " ".join(run("explore", "--help").output.split()).split("--alternatives")[1]
    assert {"--server.port=9000", "--server.headless=true"} <= set(options)
    assert "port" in run("explore", "--port", 70000, code=2).output


def test_without_streamlit_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "streamlit", None)
    monkeypatch.setitem(sys.modules, "streamlit.web.cli", None)
    result = run("explore", fails=True)
    assert f"needs Streamlit. Install it with: {install_command('explore')}" in result.unwrapped_stderr
