"""Compare scores under published checkpoints with the figures that K&I computed with the same checkpoints.

    python -m scripts.paper.published --models bert-base-cased --paradigms all

Two things are compared: the PLL-original of ten sentences of EventsAdapt (bert-base-cased only), and the accuracy on
each paradigm of BLiMP under four metrics. The figures are in eventsadapt_published.csv and in
blimp_paradigms_published.csv. A table shows ours, theirs and the difference. The command ends with exit code 1 if a
difference is larger than it should be.

The checkpoints come from the Hugging Face hub. Where the hub cannot be reached, or BLiMP is not there, the check is
skipped, with exit code 0.
On a CPU, one paradigm takes minutes and all 67 take hours: name some of them with --paradigms.
"""

import argparse
import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from spacy_pll import Pair, PipelineSettings, get_scorer, make_pipeline

from .data import read_blimp
from .errors import InputError, PLLError, fail, shown_errors
from .names import MASKED_METRICS, score_name, split_list
from .passes import Context, plan, read
from .published_texts import BLIMP_PATH, by_paradigm

HERE = Path(__file__).parent
SENTENCES = "eventsadapt_published.csv"
PARADIGMS = "blimp_paradigms_published.csv"
# K&I mask the special tokens at the end of the text in this metric; the package does not.
WITH_END = "sentence_l2r"
PACKAGE_METRICS = [metric for metric in MASKED_METRICS if metric != WITH_END]
# Natural-log units for a sentence. Accuracies may differ by 3 pairs of 1,000.
SENTENCE_TOLERANCE = 1e-3
ACCURACY_TOLERANCE = 0.003
ROW = "{:<58} {:<12} {:>10} {:>10} {:>10}  {}"


class Comparison(NamedTuple):
    """One figure, and what it was computed to be here."""

    name: str  # the sentence or the paradigm
    metric: str
    ours: float
    theirs: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        # The published accuracies have three decimals: a rounding error of a float must not decide.
        return abs(self.ours - self.theirs) <= self.tolerance + 1e-9

    def __str__(self) -> str:
        numbers = (f"{number:.4f}" for number in (self.ours, self.theirs, self.ours - self.theirs))
        return ROW.format(self.name, self.metric, *numbers, "" if self.agrees else "DIFFERS")


def read_figures(path: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of a table of published figures, by the model."""
    lines = [line for line in path.read_text(encoding="utf8").splitlines() if not line.startswith("#")]
    figures: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(lines):
        figures.setdefault(row["model"], []).append(row)
    return figures


def hub_is_reachable() -> bool:
    """Whether the Hugging Face hub answers from here."""
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE

    if HF_HUB_OFFLINE:
        return False
    try:
        urlopen(Request(ENDPOINT, method="HEAD"), timeout=10).close()
    except HTTPError:
        return True  # an answer all the same
    except OSError:
        return False
    return True


def scores_with_end(nlp: Language, texts: Sequence[str], batch_size: int = 512) -> dict[str, float]:
    """The sum of each text under K&I's `sentence_l2r`, which also masks the special tokens at the end, such as [SEP].

    The package never masks special tokens. Here they are given to it as pieces that are masked and not scored.
    """
    model = get_scorer(nlp).model
    loaded, sums = model.load(), {}
    distinct = list(dict.fromkeys(texts))
    for start in range(0, len(distinct), batch_size):
        batch = distinct[start : start + batch_size]
        contexts = []
        for text in batch:
            [text_alone] = read(nlp.make_doc(text), loaded.tokenizer, "tokenizer", loaded.max_length)
            position = np.arange(len(text_alone) - text_alone.first)
            contexts.append(Context(text_alone.ids, text_alone.first, position, position < len(text_alone.word)))
        totals, owner = np.zeros(len(batch)), np.repeat(np.arange(len(batch)), [len(c.word) for c in contexts])
        for batches, into in plan(contexts, WITH_END, loaded):
            totals += np.bincount(owner, into.scores(model.submit(batches).result().log_probs)[0])
        sums.update(zip(batch, totals.tolist()))
    return sums


def scored(nlp: Language, texts: Sequence[str]) -> dict[str, Doc]:
    """The scored doc of each text."""
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, nlp.pipe(distinct)))


def accuracies(nlp: Language, pairs: Sequence[Pair]) -> dict[str, float]:
    """The share of pairs whose better sentence has the higher score, by metric. As in K&I, a tie counts as wrong."""
    sentences = [sentence for pair in pairs for sentence in (pair.good, pair.bad)]
    docs = scored(nlp, sentences)
    of_metric = {metric: {text: docs[text]._.get(score_name(metric)) for text in docs} for metric in PACKAGE_METRICS}
    of_metric[WITH_END] = scores_with_end(nlp, sentences)
    return {
        metric: float(np.mean([of_metric[metric][pair.good] > of_metric[metric][pair.bad] for pair in pairs]))
        for metric in MASKED_METRICS
    }


def compare(
    nlp: Language, sentences: list[dict[str, str]], paradigms: list[dict[str, str]], pairs: dict[str, list[Pair]]
) -> Iterator[Comparison]:
    """Compute each figure and compare it.

    nlp (Language): A pipeline that scores with `PACKAGE_METRICS`, where words are those of the tokenizer.
    sentences, paradigms (list[dict[str, str]]): The published figures of the model.
    pairs (dict[str, list[Pair]]): The pairs of each paradigm.
    """
    docs = scored(nlp, [row["sentence"] for row in sentences])
    for row in sentences:
        ours = docs[row["sentence"]]._.get(score_name("original"))
        yield Comparison(row["sentence"], "original", ours, float(row["original"]), SENTENCE_TOLERANCE)
    for row in paradigms:
        found = accuracies(nlp, pairs[row["paradigm"]])
        for metric in MASKED_METRICS:
            yield Comparison(row["paradigm"], metric, found[metric], float(row[metric]), ACCURACY_TOLERANCE)


def choose(paradigms: list[dict[str, str]], names: list[str]) -> list[dict[str, str]]:
    """The figures of the paradigms that are named: "all", "none", or some of them.

    RAISES (ValueError): There is no such paradigm.
    """
    if names == ["all"]:
        return paradigms
    if names == ["none"]:
        return []
    known = [row["paradigm"] for row in paradigms]
    for name in names:
        if name not in known:
            raise PLLError(
                f"There are no figures for a paradigm {name!r}. Use all, none or some of these: {', '.join(known)}."
            )
    return [row for row in paradigms if row["paradigm"] in names]


def read_pairs(folder: Path, paradigms: list[dict[str, str]]) -> dict[str, list[Pair]]:
    """All pairs of the paradigms.

    RAISES (InputError): Data is missing or cannot be read.
    """
    pairs = by_paradigm(read_blimp(folder, per_paradigm=10**6)) if paradigms else {}
    missing = [row["paradigm"] for row in paradigms if row["paradigm"] not in pairs]
    if missing:
        raise InputError(f"{folder} has no {missing[0]}.jsonl. Get all of BLiMP with: python -m spacy project run data")
    return pairs


def check(model: str, args: argparse.Namespace) -> bool | None:
    """Compare all figures of one model, and print them.

    RETURNS (Optional[bool]): Whether all agree; None if BLiMP or the model cannot be had here.
    """
    key = Path(model).name  # bert-base-cased, google-bert/bert-base-cased, or a folder of that name
    all_paradigms = read_figures(args.published / PARADIGMS)
    if key not in all_paradigms:
        raise PLLError(f"There are no published figures for {model!r}. Name some of these: {', '.join(all_paradigms)}.")
    sentences = read_figures(args.published / SENTENCES).get(key, [])
    paradigms = choose(all_paradigms[key], args.paradigms)
    if not sentences and not paradigms:
        raise PLLError(f"Without paradigms there is no figure for {model}. Name some of them, or use all.")
    if paradigms and not any((args.assets / BLIMP_PATH).glob("*.jsonl")):
        print(
            f"Skipped: {args.assets} has no BLiMP. Download it with `python -m spacy project assets`, or name a folder "
            "that has it: --vars.data FOLDER."
        )
        return None
    pairs = read_pairs(args.assets / BLIMP_PATH, paradigms)  # before the model, so that missing data is found at once
    settings = PipelineSettings(model=model, metrics=PACKAGE_METRICS, words="tokenizer", gpu_id=args.gpu_id)
    try:
        nlp = make_pipeline(settings)
    except OSError:
        if os.path.isdir(model) or hub_is_reachable():
            raise
        print(f"Skipped: {model} is not on this machine, and the Hugging Face hub cannot be reached from here.")
        return None
    print(ROW.format(model, "metric", "ours", "theirs", "difference", ""))
    agree = []
    for comparison in compare(nlp, sentences, paradigms, pairs):
        print(comparison, flush=True)
        agree.append(comparison.agrees)
    bounds = f"sentences to {SENTENCE_TOLERANCE}, accuracies to {ACCURACY_TOLERANCE}"
    print(f"{model}: {sum(agree)} of {len(agree)} figures agree ({bounds}).")
    return all(agree)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=split_list, required=True, help="Hub names or folders, comma-separated")
    parser.add_argument("--paradigms", type=split_list, default=["all"], help="all, none, or names, comma-separated")
    parser.add_argument("--gpu-id", type=int, default=-1, help="GPU ID or -1 for CPU")
    parser.add_argument("--assets", type=Path, default=Path("assets"))
    parser.add_argument("--published", type=Path, default=HERE, help="The folder of the two tables of figures")
    args = parser.parse_args()
    with shown_errors():
        results = {model: check(model, args) for model in args.models}
        differ = [model for model, agrees in results.items() if agrees is False]
        if differ:
            fail(f"Figures differ from the published ones: {', '.join(differ)}. The rows are marked DIFFERS.")


if __name__ == "__main__":
    main()
