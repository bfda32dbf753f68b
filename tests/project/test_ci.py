"""Continuous integration has one definition, `.ci/run`. The workflow runs its lanes and nothing else."""

import configparser
import re
from pathlib import Path

import srsly

ROOT = Path(__file__).parents[2]
SCRIPT = (ROOT / ".ci" / "run").read_text(encoding="utf8")


def test_the_workflow_runs_every_lane():
    lanes = set(re.search(r'^lanes="(.+)"$', SCRIPT, re.MULTILINE)[1].split())
    assert {lane for lane in lanes if f"\n{lane}() {{" in SCRIPT} == lanes
    job = srsly.read_yaml(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["lane"]
    matrix = job["strategy"]["matrix"]
    assert {*matrix["lane"], *(one["lane"] for one in matrix["include"])} == lanes
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run ${{ matrix.lane }}"]
    assert all(f"`{lane}`" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8") for lane in lanes)


def test_the_lanes_together_run_every_test():
    """But those that need a network: each of the others is run by `pytest`, or has one of the markers."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf8")
    markers = re.findall(r"^(\w+):", config["tool:pytest"]["markers"], re.MULTILINE)
    whole = re.findall(r"-m pytest -q(?: -m (\w+))?(?: --durations=10)?$", SCRIPT, re.MULTILINE)
    assert {"", *markers} - set(whole) == {"hub", "cpu"}  # tests of a CPU are run by all of them, without --gpu
