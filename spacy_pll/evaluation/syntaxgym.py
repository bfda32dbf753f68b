"""Suites of SyntaxGym (Gauthier et al. 2020; Hu et al. 2020): formulas over the surprisals of regions of sentences.

A formula such as `(2;%match%) < (2;%mismatch%)` says that region 2 has a lower surprisal in one condition than in
another. `(*;%match%)` is the sum over all regions of a condition. Numbers may have a sign. Brackets may be ( ) or [ ].
There are + and -, then <, > and =, then & and |, each from left to right.
"""

import operator
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..cells import label_of, name_of
from ..corpus.readers import list_files
from ..errors import InputError
from ..stream.contexts import TextInContext
from .intervals import proportion
from .measurements import Measurement
from .stereoset import read_json_object
from .suites import Suite
from .text_scores import TextScores

Surprisals = Mapping[tuple[str, int], float]  # by condition and region
Formula = Callable[[Surprisals], Any]
TOKEN = re.compile(r"\s*(?:\(\s*(\d+|\*)\s*;\s*%([\w-]+)%\s*\)|(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)|([-+<>=&|()]))")
ASKED = re.compile(r"(\d+|\*)\s*;\s*%([\w-]+)%")  # a region and a condition, in a formula
# In the order in which they bind, the tightest last.
OPERATORS: Sequence[Mapping[str, Callable[[Any, Any], Any]]] = (
    {"&": lambda a, b: a and b, "|": lambda a, b: a or b},
    {"<": operator.lt, ">": operator.gt, "=": lambda a, b: abs(a - b) <= 1e-3 + 1e-5 * abs(b)},
    {"+": operator.add, "-": operator.sub},
)


class SyntaxItem(NamedTuple):
    suite: str
    number: Any  # as the file has it
    # For each, the number of its text, and by region that of its part; an empty region has none.
    conditions: Mapping[str, tuple[int, Mapping[int, int | None]]]
    formulas: Mapping[str, Formula]


class SyntaxGym(Suite):
    """items (Sequence[SyntaxItem]): Of one or several suites. texts (Sequence[TextInContext]): Their sentences."""

    def __init__(self, items: Sequence[SyntaxItem], texts: Sequence[TextInContext]):
        self.items, self.texts = items, texts

    def _regions(self, item: SyntaxItem, scores: TextScores) -> Iterator[tuple[tuple[str, int], str, float, int]]:
        """The regions of all conditions: with the condition, the text, the score and the wordpieces of each."""
        for condition, (number, regions) in item.conditions.items():
            text, first = self.texts[number], scores.of_text.starts[number]
            for region, part_number in regions.items():
                if part_number is None:
                    yield (condition, region), "", 0.0, 0
                else:
                    own, at = text.text[slice(*(text.parts or [])[part_number])], first + part_number
                    yield (condition, region), own, float(scores.sums[at]), int(scores.pieces[at])

    def check(self, per_piece: bool) -> None:
        if per_piece:
            raise InputError("SyntaxGym's formulas are about sums of surprisals.", "Leave out `per_piece`.")

    def measurements(self, scores: Mapping[str, TextScores]) -> Iterator[Measurement]:
        for scorer, of_scorer in scores.items():
            held = defaultdict[tuple[str, str], list[bool]](list)
            for item in self.items:
                surprisals = {region: -score for region, _, score, _ in self._regions(item, of_scorer)}
                outcomes = {text: bool(formula(surprisals)) for text, formula in item.formulas.items()}
                for formula, outcome in {"all formulas": all(outcomes.values()), **outcomes}.items():
                    held[item.suite, formula].append(outcome)
            for (suite, formula), of_items in held.items():
                share = proportion(np.array(of_items, dtype=np.float64))
                yield Measurement(scorer, formula, len(of_items), *share, "suite", suite, {"suite": suite})

    def rows(self, scores: Mapping[str, TextScores]) -> Iterator[dict[str, Any]]:
        for scorer, of_scorer in scores.items():
            for item in self.items:
                for (condition, region), text, score, pieces in self._regions(item, of_scorer):
                    about = {"metric": scorer, "suite": item.suite, "item": item.number, "condition": condition}
                    yield {**about, "region": region, "text": text, "surprisal": -score, "pieces": pieces}


def parse_formula(text: str) -> Formula:
    """From surprisals to whether the formula holds. RAISES (InputError): It is no formula."""
    tokens, end, source = deque[re.Match[str]](), 0, text.replace("[", "(").replace("]", ")").rstrip()
    while end < len(source):
        if not (match := TOKEN.match(source, end)):
            raise InputError(f"The formula {text!r} cannot be read from {source[end:]!r} on.")
        tokens.append(match)
        end = match.end()
    made = _operation(tokens, 0, text)
    if tokens:
        raise InputError(f"The formula {text!r} cannot be read from {source[tokens[0].start() :].strip()!r} on.")
    if not _is_statement(made):
        raise InputError(f"The formula {text!r} is a number.", "Compare it with another: add < 0, for example.")
    return made


def _operation(tokens: deque[re.Match[str]], level: int, text: str) -> Formula:
    """Takes the tokens that it reads."""
    if level == len(OPERATORS):
        return _operand(tokens, text)
    formula = _operation(tokens, level + 1, text)
    while tokens and tokens[0][4] in OPERATORS[level]:
        mark, second = tokens.popleft()[4], _operation(tokens, level + 1, text)
        # = may also say that two comparisons both hold, or neither.
        if {_is_statement(formula), _is_statement(second)} not in ({mark in "&|"}, {mark in "&|="}):
            advice = "& and | stand between comparisons, and the others between numbers."
            raise InputError(f"The formula {text!r} cannot be read: {mark!r} stands between others.", advice)
        formula = _combined(OPERATORS[level][mark], formula, second)
    return formula


def _is_statement(formula: Formula) -> bool:
    """Whether it holds or not; otherwise it is a number."""
    return isinstance(formula(defaultdict(float)), bool)


def _combined(combine: Callable[[Any, Any], Any], first: Formula, second: Formula) -> Formula:
    return lambda values: combine(first(values), second(values))


def _operand(tokens: deque[re.Match[str]], text: str) -> Formula:
    if not tokens:
        raise InputError(f"The formula {text!r} ends too early.")
    region, condition, number, mark = tokens.popleft().groups()
    if region == "*":
        return lambda values: sum(v for (name, _), v in values.items() if name == condition)
    if region:
        return lambda values: values[condition, int(region)]
    if mark in ("+", "-") and tokens and tokens[0][3]:
        number = mark + tokens.popleft()[3]
    if number:
        value = float(number)
        return lambda values: value
    if mark == "(":
        inner = _operation(tokens, 0, text)
        if tokens and tokens.popleft()[4] == ")":
            return inner
    raise InputError(f"The formula {text!r} cannot be read.", "Check its brackets and operators.")


def read_syntaxgym(path: str) -> SyntaxGym:
    """Read a suite, or the suites of a folder.

    RAISES (InputError): A suite cannot be read, or a formula names a condition or region that an item does not have.
    """
    items, texts = list[SyntaxItem](), list[TextInContext]()
    for file in list_files(path, [".json"]):
        suite = read_json_object(str(file))
        try:
            name, metric = name_of(suite["meta"]["name"]), suite["meta"].get("metric", "sum")
            formulas = {
                str(prediction["formula"]): parse_formula(str(prediction["formula"]))
                for prediction in suite["predictions"]
            }
            numbered = [(item["item_number"], item["conditions"]) for item in suite["items"]]
        except (KeyError, TypeError) as error:
            raise InputError(f"{file}: this is not a suite of SyntaxGym ({error!r}).") from None
        if metric not in ("sum", ["sum"]) or not formulas:
            problem = f"{file}: the metric is {metric!r}, and there are {len(formulas)} formulas."
            raise InputError(problem, "Only sums are read.")
        for number, given in numbered:
            location, conditions = f"{file}, item {number}", dict[str, tuple[int, Mapping[int, int | None]]]()
            for condition in given:
                text, regions = _read_condition(condition, location)
                conditions[label_of(condition["condition_name"])] = len(texts), regions
                texts.append(text)
            for region, name_asked, formula in ((*asked, text) for text in formulas for asked in ASKED.findall(text)):
                if name_asked not in conditions or region != "*" and int(region) not in conditions[name_asked][1]:
                    raise InputError(
                        f"{location}: there is no region {region} in a condition {name_asked!r}, as {formula!r} asks."
                    )
            items.append(SyntaxItem(name, number, conditions, formulas))
    return SyntaxGym(items, texts)


def _read_condition(condition: Any, location: str) -> tuple[TextInContext, dict[int, int | None]]:
    """The sentence of a condition: its regions with a space between them; and by region, the number of its part."""
    try:
        regions = [(int(region["region_number"]), str(region["content"]).strip()) for region in condition["regions"]]
        name = condition["condition_name"]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{location}: a condition cannot be read ({error!r}).") from None
    text, parts, numbers = "", list[tuple[int, int]](), dict[int, int | None]()
    for number, content in regions:
        if number in numbers:
            raise InputError(f"{location}: region {number} is there twice in {name!r}.")
        numbers[number] = len(parts) if content else None
        if content:
            text += f" {content}" if text else content
            parts.append((len(text) - len(content), len(text)))
    if not parts:
        raise InputError(f"{location}: the sentence of {name!r} is empty.")
    return TextInContext(text, parts=tuple(parts)), numbers
