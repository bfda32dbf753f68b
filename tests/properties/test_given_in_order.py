"""What is given is read in its order, and once: a list, an iterator, a series with an index of its own, an array."""

import dataclasses
import inspect
from collections import deque
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spacy_pll
from spacy_pll import Choice, Option, Pair, Unigrams, Variant
from spacy_pll.proteins.assays import Assay

from ..conftest import write_jsonl
from ..protein_models import PROTEIN

TEXTS = ["The cats sleep.", "She left early.", "A dog can't sit.", "They are here."]
GAPS = ["The ___ left.", "A ___ sat.", "___ is here."]
WORDS = ["cat", "dog", "hooligan", "co-worker"]
METRICS = ["word_l2r", "original", "whole_word"]
COLUMNS = ["kind", "who"]
MUTANTS = ["M1A", "K2R:T3S", "Q9A"]
PAIRS = [(text, f"{text[:-1]} the.") for text in TEXTS]
FIELDS = [{"kind": kind, "n": i, "who": who} for i, (kind, who) in enumerate(["ax", "by", "ay", "bx"])]
OPTIONS = [[Option(good, "It was late."), Option(bad, "It was late.")] for good, bad in PAIRS]
CHOICES = [Choice(two, i % 2, FIELDS[i]) for i, two in enumerate(OPTIONS)]
LIKED = [one._replace(preference=float(i % 3)) for i, one in enumerate(CHOICES)]
ROWS = [{"item": item, "part": "x", "word": word} for item in "12" for word in ("The", "cats", "sleep")]
HYPOTHESES = [[{"text": a, "score": -1.0}, {"text": b, "score": -1.5}] for a, b in PAIRS]
LISTS = [{"hypotheses": two, "reference": a} for two, (a, _) in zip(HYPOTHESES, PAIRS)]
ASSAYS = [Assay(name, PROTEIN, [Variant(one)]) for name, one in zip("abc", MUTANTS)]


class Counted:
    """Something that can be read, and counts how often it is."""

    def __init__(self, items):
        self.items, self.reads = items, 0

    def __iter__(self):
        self.reads += 1
        return iter(self.items)


def series_of(items):
    """A pandas series whose index counts down to 0."""
    pd = pytest.importorskip("pandas")
    return pd.Series(list(items), index=range(len(items))[::-1])


def array_of(items):
    if all(isinstance(one, str | int | float) for one in items):
        return np.array(items)
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made


KINDS = {
    "tuple": tuple,
    "deque": deque,
    "generator": lambda items: (one for one in items),
    "series": series_of,
    "array": array_of,
    "values of a dict": lambda items: dict(enumerate(items)).values(),
    "counted": Counted,
}


class Used(dict):
    """What the functions need besides. It is not written out where a test fails."""

    __repr__ = object.__repr__


@pytest.fixture(scope="module")
def used(model_folder, protein_folder, tmp_path_factory):
    folder, model = tmp_path_factory.mktemp("given"), str(model_folder("bert"))
    write_jsonl(
        folder / "choices.jsonl", {"a": "It was.", "b": "So.", "yes": "She left.", "no": "She leave.", "label": 0}
    )
    texts = [(i, good, text) for i, two in enumerate(PAIRS) for good, text in enumerate(two)]
    write_jsonl(folder / "pairs.jsonl", *({"item": i, "set": "s", "text": text, "good": g} for i, g, text in texts))
    nlp, one = spacy_pll.make_pipeline(model, METRICS), spacy_pll.make_pipeline(model)
    pairs = [Pair(*two, fields) for two, fields in zip(PAIRS, FIELDS)]
    several = {"a": one, "b": spacy_pll.make_pipeline(one, words="whitespace")}
    return Used(
        nlp=nlp, one=one, folder=folder, docs=dict(zip(TEXTS, nlp.pipe(TEXTS))),
        pairs=spacy_pll.minimal_pairs(several, pairs), liked=spacy_pll.choices(several, LIKED),
        tokenizer=spacy_pll.get_scorer(nlp).model.load().tokenizer,
        proteins=spacy_pll.make_pipeline(str(protein_folder())),
        fillers=spacy_pll.score_continuations(one, "The", WORDS),
    )  # fmt: skip


def varied(model, metrics):
    return spacy_pll.make_pipeline(model, metrics)("The cats.")._.pll


def drawn(figure):
    axes = figure.axes[0]
    return [[text.get_text() for text in axes.get_yticklabels()], len(axes.lines), len(axes.collections)]


def assays_of(u, given):
    scored = spacy_pll.score_assays(u["proteins"], given, u["folder"] / "out", force=True)
    return [[one.assay.name, one.path.read_text()] for one in scored]


# By function and argument: what is given, and what is found from it.
CASES = {
    "score texts": (TEXTS, lambda u, given: spacy_pll.score(given, u["nlp"])),
    "score metrics": (METRICS, lambda u, given: spacy_pll.score(TEXTS, u["one"], given)),
    "make_pipeline metrics": (METRICS, lambda u, given: varied(u["one"], given)),
    "PipelineSettings metrics": (METRICS, lambda u, given: varied(spacy_pll.PipelineSettings(u["one"], given), None)),
    "ScoringSettings metrics": (METRICS, lambda u, given: spacy_pll.ScoringSettings(given).metrics),
    "score_docs texts": (TEXTS, lambda u, given: [doc._.pll for doc in spacy_pll.score_docs(u["nlp"], given, 2)]),
    "score_words table": (
        ROWS, lambda u, given: spacy_pll.score_words(given, u["nlp"], by="item", log_frequency=False),
    ),
    "score_words by": (
        ["item", "part"], lambda u, given: spacy_pll.score_words(ROWS, u["nlp"], by=given, log_frequency=False),
    ),
    "score_words metrics": (
        METRICS, lambda u, given: spacy_pll.score_words(ROWS, u["one"], given, by="item", log_frequency=False),
    ),
    "slots texts": (GAPS, lambda u, given: spacy_pll.slots(u["one"], given, WORDS, keep=2)),
    "slots candidates": (WORDS, lambda u, given: spacy_pll.slots(u["one"], GAPS, given)),
    "slots candidates of each": (
        [WORDS[:2], WORDS[1:], WORDS], lambda u, given: spacy_pll.slots(u["one"], GAPS, given),
    ),
    "slots gold": (WORDS[:3], lambda u, given: spacy_pll.slots(u["one"], GAPS, WORDS, gold=given)),
    "minimal_pairs pairs": (PAIRS, lambda u, given: spacy_pll.minimal_pairs(u["nlp"], given).rows()),
    "choices items": (CHOICES, lambda u, given: spacy_pll.choices(u["nlp"], given).rows()),
    "Choice options": (
        OPTIONS[0], lambda u, given: spacy_pll.choices(u["nlp"], [Choice(given), Choice(OPTIONS[1])]).rows(),
    ),
    "SuiteScores.measurements by": (COLUMNS, lambda u, given: u["pairs"].measurements(given)),
    "SuiteScores.measurements by, of preferences": (COLUMNS, lambda u, given: u["liked"].measurements(given)),
    "ChoiceSuite.predictions by": (
        COLUMNS, lambda u, given: u["pairs"].suite.predictions(u["pairs"].scores["a"], given),
    ),
    "SuiteScores.plot by": (COLUMNS, lambda u, given: drawn(u["pairs"].plot(given))),
    "SuiteScores.plot_curves by": (COLUMNS, lambda u, given: drawn(u["pairs"].plot_curves(given))),
    "levels items": (CHOICES, lambda u, given: spacy_pll.levels(given, ["kind"])),
    "levels by": (COLUMNS, lambda u, given: spacy_pll.levels(CHOICES, given)),
    "compare_pairs pairs": (
        PAIRS, lambda u, given: [[one.a.text, one.difference] for one in spacy_pll.compare_pairs(u["nlp"], given)],
    ),
    "agree texts": (TEXTS, lambda u, given: spacy_pll.agree(u["one"], u["nlp"], given)),
    "compare_margins texts": (TEXTS, lambda u, given: spacy_pll.compare_margins(u["one"], given, [0, 1])),
    "compare_margins margins": ([1, 0, 2], lambda u, given: spacy_pll.compare_margins(u["one"], TEXTS, given)),
    "compare_margins spacings": ([3, 2], lambda u, given: spacy_pll.compare_margins(u["one"], TEXTS, [], given)),
    "score_continuations candidates": (
        WORDS, lambda u, given: [[f.text, f.score] for f in spacy_pll.score_continuations(u["one"], "The", given)],
    ),
    "log_probability_bounds texts": (
        TEXTS, lambda u, given: spacy_pll.log_probability_bounds(u["one"], given, n_pairs=2),
    ),
    "log_probability_bounds texts in places": (
        [(text, "So. ", "") for text in TEXTS],
        lambda u, given: spacy_pll.log_probability_bounds(u["one"], given, n_pairs=2),
    ),
    "perplexity texts": (TEXTS, lambda u, given: spacy_pll.perplexity(u["nlp"], given)),
    "window_perplexities texts": (TEXTS, lambda u, given: spacy_pll.window_perplexities(u["one"], given, 2)),
    "rescore lists": (LISTS, lambda u, given: spacy_pll.rescore(u["one"], given, 0.5)),
    "rescore lists, hypotheses": (
        HYPOTHESES[0], lambda u, given: spacy_pll.rescore(u["one"], [{"hypotheses": given}], 0.5),
    ),
    "tune_rescoring lists": (LISTS, lambda u, given: spacy_pll.tune_rescoring(u["one"], given)),
    "tune_rescoring weights": ([0.5, 0.0, 1.0], lambda u, given: spacy_pll.tune_rescoring(u["one"], LISTS, given)),
    "tune_rescoring word_weights": (
        [0.5, 0.0, 1.0], lambda u, given: spacy_pll.tune_rescoring(u["one"], LISTS, [0.0, 0.1], given),
    ),
    "to_dataframe docs": (TEXTS, lambda u, given: spacy_pll.to_dataframe(given)),
    "to_dataframe metrics": (METRICS, lambda u, given: spacy_pll.to_dataframe([*u["docs"].values()], given)),
    "visualize.render docs": (TEXTS, lambda u, given: spacy_pll.visualize.render(given, jupyter=False)),
    "visualize.render metrics": (
        METRICS, lambda u, given: spacy_pll.visualize.render([*u["docs"].values()], given, jupyter=False),
    ),
    "visualize.plot metrics": (METRICS, lambda u, given: drawn(spacy_pll.visualize.plot(u["docs"][TEXTS[0]], given))),
    "visualize.render_continuations continuations": (
        WORDS, lambda u, given: spacy_pll.visualize.render_continuations(given, jupyter=False),
    ),
    "Unigrams pieces": (["a", "b", "c"], lambda u, given: Unigrams(given, [1, 2, 3]).pieces),
    "Unigrams counts": ([3, 1, 2], lambda u, given: Unigrams(["a", "b", "c"], given).log_probs),
    "Unigrams.count texts": (TEXTS, lambda u, given: Unigrams.count(u["tokenizer"], given).counts),
    "Unigrams.sum ids": ([0, 2, 1], lambda u, given: Unigrams([None] * 3, [5, 1, 2]).sum(given, [None] * 3)),
    "Unigrams.sum pieces": (["b", "b"], lambda u, given: Unigrams(["a", "b"], [5, 1]).sum([1, 1], given)),
    "variants mutants": (MUTANTS, lambda u, given: spacy_pll.variants(u["proteins"], PROTEIN, given).rows()),
    "score_assays assays": (ASSAYS, assays_of),
    "read_pairs item": (
        ["item", "set"],
        lambda u, given: spacy_pll.read_pairs(
            str(u["folder"] / "pairs.jsonl"), sentence="text", label="good", item=given
        ),
    ),
    "read_choices context": (
        ["a", "b"], lambda u, given: spacy_pll.read_choices(str(u["folder"] / "choices.jsonl"), given, ["yes", "no"]),
    ),
    "read_choices options": (
        ["yes", "no"], lambda u, given: spacy_pll.read_choices(str(u["folder"] / "choices.jsonl"), ["a"], given),
    ),
}  # fmt: skip


def of_things(u, name, items):
    """The docs and other things that texts stand for, of which hypothesis would write too much."""
    if name.endswith(" docs"):
        return [u["docs"][text] for text in items]
    if name.endswith(" continuations"):
        return [u["fillers"][WORDS.index(text)] for text in items]
    return [*items]


def plain(found):
    """What was found, as one list of numbers, texts and None."""
    if hasattr(found, "to_dict") and hasattr(found, "columns"):
        found = found.to_dict("list")
    if isinstance(found, dict):
        found = list(found.items())
    if dataclasses.is_dataclass(found):  # without the seconds that it took
        found = [getattr(found, one.name) for one in dataclasses.fields(found) if one.name != "scorers"]
    if isinstance(found, spacy_pll.Scores | np.ndarray | tuple | list) or inspect.isgenerator(found):
        return [*chain(*map(plain, found))]
    return [found if isinstance(found, str | int | float | np.number | None) else str(found)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
@settings(max_examples=2)
def test_what_is_given_is_read_in_its_order_and_once(used, name, data):
    items, find = CASES[name]
    items = of_things(used, name, data.draw(st.permutations(items)))
    expected = plain(find(used, [*items]))
    for kind, make in KINDS.items():
        one = make(items)
        found = plain(find(used, one))
        for values in zip(found, expected, strict=True):
            is_number = isinstance(values[1], float)
            assert values[0] == (pytest.approx(values[1], abs=1e-4, nan_ok=True) if is_number else values[1]), kind
        assert kind != "counted" or one.reads == 1


# What the package or a reader makes; what spaCy calls; what is a class of other packages.
MADE = {"Agreement", "Measurement", "SuiteScores", "Scores", "VariantScores", "Option", "TextInContext"}
OF_SPACY = {"PLLScorer", "Suite"}


def test_each_public_function_that_takes_several_things_is_tried():
    several = set()
    for prefix, module in (("", spacy_pll), ("visualize.", spacy_pll.visualize)):
        for name in module.__all__:
            one = getattr(module, name)
            is_class = inspect.isclass(one)
            if name in OF_SPACY or not callable(one):
                continue
            found = {} if name in MADE else {prefix + name: one}
            if is_class and name in ("SuiteScores", "Unigrams"):
                methods = inspect.getmembers(one, lambda of: inspect.isfunction(of) or inspect.ismethod(of))
                found |= {f"{name}.{own}": of for own, of in methods if not own.startswith("_")}
            for called, function in found.items():
                for argument, about in inspect.signature(function).parameters.items():
                    if any(kind in str(about.annotation) for kind in ("Sequence", "Iterable")):
                        several.add(f"{called} {argument}")
    assert several <= CASES.keys() | {"score_words table"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_several_things_of_each_thing_are_read_so_too(used, kind):
    make, nlp = KINDS[kind], used["one"]
    pairs = [[*spacy_pll.minimal_pairs(nlp, [of(two) for two in PAIRS]).rows()] for of in (tuple, make)]
    assert plain(pairs[0]) == pytest.approx(plain(pairs[1]), abs=1e-4)
    compared = [[one.difference for one in spacy_pll.compare_pairs(nlp, map(of, PAIRS))] for of in (tuple, make)]
    assert compared[0] == pytest.approx(compared[1], abs=1e-4)
    [first, second] = [plain(spacy_pll.slots(nlp, GAPS, [of(WORDS) for _ in GAPS])) for of in (list, make)]
    assert first == pytest.approx(second, abs=1e-4)


@pytest.mark.parametrize("pair", [{"a": "The cat.", "b": "A cat."}, {"The cat.", "A cat."}, "ab", ["a"], 1, None])
def test_what_has_no_order_is_no_pair(used, pair):
    with pytest.raises(spacy_pll.errors.PLLError, match="must be two texts"):
        spacy_pll.minimal_pairs(used["one"], [pair])
    with pytest.raises(spacy_pll.errors.PLLError, match="must be two texts"):
        list(spacy_pll.compare_pairs(used["one"], [pair]))
