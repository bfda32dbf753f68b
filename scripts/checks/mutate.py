"""Mutation testing: one small change of the source at a time, and do the tests see it?

    pip install cosmic-ray
    python -m scripts.checks.mutate metrics scoring.wordpieces scoring.masks scoring.passes

The changes are those that cosmic-ray's operators make of `spacy_pll/NAME.py`. Its own runner starts a Python for each,
which then imports torch and spaCy for seconds; here these are imported once, and each change has a fork of that process
(so Linux and macOS only). Left out are changes of annotations alone (the programs are equal once annotations are taken
out), changes that give the same program as an earlier one, and most of the eleven that cosmic-ray has for each binary
operator: an arithmetic one becomes +, -, * or //, a bitwise one &, | or ^. Tests are seeded, so that a run repeats.
Prints each survivor as a diff, and how many were killed. `--every N` tries every Nth change only, and `--quick` asks
the core tests alone.
"""

import argparse
import ast
import difflib
import importlib.abc
import importlib.util
import os
import resource
import signal
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Those that hold the arithmetic against plain references.
TESTS = {
    "metrics": ["test_metrics.py", "scoring/test_plan.py", "scoring/test_masks.py"],
    "scoring.wordpieces": [
        "scoring/test_wordpieces.py",
        "scoring/test_windows.py",
        "properties/test_fuzz.py",
        "properties/test_units.py",
    ],
    "scoring.windows": ["scoring/test_windows.py", "properties/test_fuzz.py", "properties/test_units.py"],
    "scoring.masks": [
        "scoring/test_masks.py",
        "scoring/test_groups.py",
        "scoring/test_plan.py",
        "properties/test_fuzz.py",
    ],
    "scoring.passes": ["scoring/test_plan.py", "scoring/test_masks.py", "properties/test_fuzz.py"],
    "scoring.plan": ["scoring/test_plan.py", "scoring/test_groups.py"],
    "scoring.groups": ["scoring/test_groups.py", "scoring/test_plan.py"],
    "scoring.digests": ["scoring/test_digests.py", "scoring/test_plan.py"],
    "scoring.scores": ["scoring/test_scores.py", "scoring/test_plan.py", "scoring/test_groups.py"],
    "scoring.piece_texts": ["scoring/test_piece_texts.py"],
}
QUICK = ["test_metrics.py", "scoring"]  # of these, the core tests
ARITHMETIC = {"Add", "Sub", "Mul", "FloorDiv", "Div", "Mod", "Pow"}
KEPT = {True: {"Add", "Sub", "Mul", "FloorDiv"}, False: {"BitAnd", "BitOr", "BitXor"}}
CPU_SECONDS = 90  # more than the tests take; a change can make a loop endless
MEMORY = 8 * 2**30


def _path(module: str) -> Path:
    return ROOT.joinpath("spacy_pll", *module.split(".")).with_suffix(".py")


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is None:
            return ast.Expr(node.target)
        return ast.Assign([node.target], node.value, lineno=node.lineno)

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.returns = None
        return node


def program(source: str) -> str:
    """What a source does when it runs, as far as its syntax tells: no layout, no comments, no annotations."""
    return ast.dump(_WithoutAnnotations().visit(ast.parse(source)))


def mutants(source: str) -> list[str]:
    """Every program that differs from the source by one change of cosmic-ray's operators, once each."""
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    found = {}
    for name in sorted(plugins.operator_names()):
        operator = name.split("/")[1].split("_")
        if "Variable" in name:  # these want to be told which variables to confuse
            continue
        if operator[0] == "ReplaceBinaryOperator" and operator[2] not in KEPT[operator[1] in ARITHMETIC]:
            continue
        occurrence = 0
        while (changed := mutate_code(source, plugins.get_operator(name)(), occurrence)) is not None:
            occurrence += 1
            try:
                found.setdefault(program(changed), changed)
            except SyntaxError:
                pass  # no program
    found.pop(program(source), None)
    return list(found.values())


class _Instead(importlib.abc.Loader):
    """Imports one module from the source given."""

    def __init__(self, module: str, path: Path, source: str):
        self.module, self.path, self.source = module, path, source

    def find_spec(self, name, path=None, target=None):
        if name == self.module:
            return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(self.source, self.path, "exec"), module.__dict__)


class _Seeded:
    """A pytest plugin: hypothesis repeats itself and does not shrink what it finds."""

    @staticmethod
    def pytest_configure(config):
        from hypothesis import HealthCheck, Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutation", settings.get_profile("short"), max_examples=60, derandomize=True, database=None, phases=phases,
            deadline=None, suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        settings.load_profile("mutation")


def survives(module: str, source: str, quick: bool = False, verbose: bool = False) -> bool:
    """Do the tests pass with a module made from this source?"""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        if not verbose:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
        code = 1
        try:
            import pytest

            sys.meta_path.insert(0, _Instead(f"spacy_pll.{module}", _path(module), source))
            tests = [f"tests/{test}" for test in (QUICK if quick else TESTS[module])]
            # Tests with large tokenizers, where these are at hand, say little more than those with tiny ones.
            options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore", "-k", "not -base"]
            options += ["-o", "addopts=", "-m", "core" if quick else "not slow and not hub"]  # without xdist
            code = pytest.main([*options, *tests], plugins=[_Seeded])
        finally:
            os._exit(int(code))
    return os.waitpid(child, 0)[1] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="+", choices=TESTS, help="modules of spacy_pll")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="try every Nth change only")
    parser.add_argument("--quick", action="store_true", help="with the tests of `pytest -m core` alone")
    parser.add_argument("--lines", type=int, nargs=2, metavar=("FIRST", "LAST"), help="changes of these lines only")
    args = parser.parse_args()
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # All that is slow to import stays in memory; the package and its tests are imported again by each fork.
    import catalogue
    import spacy

    import spacy_pll.metrics  # noqa: F401
    import tests.conftest  # noqa: F401

    for name in [name for name in sys.modules if name.split(".")[0] in ("spacy_pll", "tests")]:
        del sys.modules[name]
    delattr(spacy.util.registry, "pll_metrics")
    for key in [key for key in catalogue.REGISTRY if key[:2] == ("spacy", "pll_metrics")]:
        del catalogue.REGISTRY[key]
    total, n_survivors = 0, 0
    for module in args.modules:
        source = _path(module).read_text(encoding="utf8")
        if not survives(module, source, args.quick, verbose=True):
            sys.exit("The tests do not pass as it is.")
        lines = source.splitlines()
        tried, survivors, begin = 0, 0, time.time()
        for changed in mutants(source)[:: args.every]:
            diff = list(difflib.unified_diff(lines, changed.splitlines(), n=0, lineterm=""))[2:]
            at = int(diff[0].split("-")[1].split()[0].split(",")[0])
            if args.lines and not args.lines[0] <= at <= args.lines[1]:
                continue
            tried += 1
            if survives(module, changed, args.quick):
                survivors += 1
                print(f"{module}.py:{at}", *diff[1:], sep="\n", flush=True)
        minutes = (time.time() - begin) / 60
        print(f"{module}.py: {tried - survivors} of {tried} changes seen by the tests, {minutes:.0f} min", flush=True)
        total, n_survivors = total + tried, n_survivors + survivors
    print(f"{total - n_survivors} of {total}: {(total - n_survivors) / max(total, 1):.1%}")


if __name__ == "__main__":
    main()
