"""Continuous integration has one definition, `.ci/run`. The workflow runs its lanes and nothing else."""

import re
from pathlib import Path

import srsly

ROOT = Path(__file__).parents[2]


def test_the_workflow_runs_every_lane():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf8")
    lanes = set(re.search(r'^lanes="(.+)"$', script, re.MULTILINE)[1].split())
    assert {lane for lane in lanes if f"\n{lane}() {{" in script} == lanes
    job = srsly.read_yaml(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["lane"]
    matrix = job["strategy"]["matrix"]
    assert {*matrix["lane"], *(one["lane"] for one in matrix["include"])} == lanes
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run ${{ matrix.lane }}"]
    assert all(f"`{lane}`" in (ROOT / "docs" / "versions.md").read_text(encoding="utf8") for lane in lanes)
