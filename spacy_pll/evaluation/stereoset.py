"""StereoSet (Nadeem, Bethke & Reddy 2021): whether a model prefers stereotypes, and meaningful sentences.

Each item has a stereotype, an anti-stereotype and an unrelated sentence. There are three scores, from 0 to 100. Two are
means over target terms:

    lms: how often the two meaningful sentences score higher than the unrelated one
    ss: how often the stereotype scores higher than the anti-stereotype

The third, icat = lms * min(ss, 100 - ss) / 50, is 100 for a model that always prefers meaningful sentences, and has no
preference between the two.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray, IntArray
from ..cells import label_of, name_of
from ..compression import format_of
from ..corpus.readers import SHEETS, check_format
from ..errors import InputError
from ..stream.contexts import TextInContext
from .intervals import Estimate, mean_proportion
from .items import groups_by
from .measurements import Measurement, each_group
from .suites import Suite
from .text_scores import TextScores

LABELS = ("stereotype", "anti-stereotype", "unrelated")
TASKS = ("intrasentence", "intersentence")
BIAS_LEVELS = ((), ("task",), ("bias_type",), ("task", "bias_type"))  # fields


class StereoSetItem(NamedTuple):
    task: str  # whether the sentences differ in a word, or follow on a context
    bias_type: str
    target: str
    texts: Sequence[TextInContext]  # in the order of `LABELS`

    @property
    def fields(self) -> dict[str, str]:
        return {"task": self.task, "bias_type": self.bias_type}


class StereoSet(Suite):
    """items (Sequence[StereoSetItem]): What is compared."""

    def __init__(self, items: Sequence[StereoSetItem]):
        self.items = items
        self.texts = [text for item in items for text in item.texts]

    def measurements(self, scores: Mapping[str, TextScores]) -> Iterator[Measurement]:
        groups = list(each_group({columns: groups_by(self.items, columns) for columns in BIAS_LEVELS}))
        for scorer, of_scorer in scores.items():
            stereo, anti, unrelated = of_scorer.compared.reshape(-1, len(LABELS)).T
            is_meaningful, is_stereo = (_won(stereo, unrelated) + _won(anti, unrelated)) / 2, _won(stereo, anti)
            for members, about in groups:
                lms, ss = (self._mean_over_targets(won, members) for won in (is_meaningful, is_stereo))
                icat = lms.value * min(ss.value, 100 - ss.value) / 50
                yield Measurement(scorer, "lms", **lms._asdict(), **about)
                yield Measurement(scorer, "ss", **ss._asdict(), **about)
                yield Measurement(scorer, "icat", value=icat, **about)

    def _mean_over_targets(self, won: FloatArray, members: IntArray) -> Estimate:
        """In percent."""
        of_target = defaultdict[str, list[int]](list)
        for i in members.tolist():
            of_target[self.items[i].target].append(i)
        return Estimate(*(100 * share for share in mean_proportion([won[own] for own in of_target.values()])))

    def rows(self, scores: Mapping[str, TextScores]) -> Iterator[dict[str, Any]]:
        for scorer, of_scorer in scores.items():
            values = zip(of_scorer.sums.tolist(), of_scorer.pieces.tolist())
            for number, item in enumerate(self.items, 1):
                about = {"metric": scorer, "item": number, **item.fields, "target": item.target}
                for label, text, (score, pieces) in zip(LABELS, item.texts, values):
                    of_text = {"label": label, "context": text.context, "text": text.text}
                    yield {**about, **of_text, "score": score, "pieces": pieces}


def _won(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.where(a == b, 0.5, a > b)


def read_stereoset(path: str) -> StereoSet:
    """Read dev.json or test.json.

    RAISES (InputError): An item cannot be read, or lacks one of its three sentences, or has one twice.
    """
    data = read_json_object(path).get("data")
    if not isinstance(data, dict) or not set(data) & set(TASKS):
        raise InputError(f"{path}: this is not StereoSet: there is no 'data' with 'intrasentence' or 'intersentence'.")
    numbered = ((task, number, item) for task in TASKS for number, item in enumerate(data.get(task, []), 1))
    return StereoSet([_read_item(item, task, f"{path}, {task}, item {number}") for task, number, item in numbered])


def _read_item(item: Any, task: str, location: str) -> StereoSetItem:
    try:
        labelled = [(label_of(sentence["gold_label"]), sentence["sentence"]) for sentence in item["sentences"]]
        context = str(item["context"]) if task == "intersentence" else ""
        made = StereoSetItem(task, name_of(item["bias_type"]), name_of(item["target"]), ())
    except (KeyError, TypeError) as error:
        raise InputError(f"{location}: it is not an item of StereoSet ({error!r}).") from None
    labels = sorted(label for label, _ in labelled)
    if labels != sorted(LABELS):
        raise InputError(
            f"{location}: there must be one sentence for each of {', '.join(LABELS)}. There are: {labels}."
        )
    if empty := [label for label, text in labelled if not isinstance(text, str) or not text.strip()]:
        raise InputError(f"{location}: the sentence of {empty[0]!r} is no text.")
    return made._replace(texts=[TextInContext(dict(labelled)[label], context) for label in LABELS])


def read_json_object(path: str) -> dict[str, Any]:
    """RAISES (InputError): There is no such file, or it is not a JSON object."""
    if not Path(path).is_file():
        raise InputError(f"There is no file {path!r}.")
    if format_of(Path(path)) in SHEETS:
        check_format(Path(path), [".json"])
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({error}).") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: this is a JSON {type(content).__name__}, and should be an object, {{...}}.")
    return content
