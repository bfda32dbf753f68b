"""The numbers of docs/reading.md: how much of reading times scores explain beside length and frequency.

    python -m scripts.experiments.evaluate_reading assets/naturalstories [--stories 10] [--spans sents] [--model FOLDER]
        [--causal FOLDER] [--seed 0] [--output FILE.csv] [--write docs/reading.md]

The folder has processed_wordinfo.tsv of Natural Stories (Futrell et al. 2021), as `python -m spacy project assets
--extra` downloads it. Prints a Markdown table of linear regressions of the mean reading times; --write also puts it
into a page (see `replace_tables`). Needs the extra `[reading]`.
"""

import argparse
import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import spacy

from scripts.docs_site.markdown_tables import print_table, replace_tables
from spacy_pll import PipelineSettings, WordTable, make_pipeline, to_dataframe

METRICS = ["word_l2r", "sentence_l2r"]
LAGS = ("", "_lag1", "_lag2")
# The score of a word is a sum over its wordpieces, so it may only stand for their number.
BASELINES = {"length, frequency": ["length", "log_frequency"]}
BASELINES["and wordpieces"] = [*BASELINES["length, frequency"], "pll_pieces"]
FOLDS = 10


def read_times(path: Path) -> pd.DataFrame:
    """The words of the stories in their order (`item`, `zone`), and their mean reading times in milliseconds."""
    times = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
    return times.sort_values(["item", "zone"], ignore_index=True)[["item", "zone", "word", "meanItemRT"]]


def add_scores(times: pd.DataFrame, settings: PipelineSettings) -> pd.DataFrame:
    """The reading times with a table of words of the same stories."""
    stories = [" ".join(words) for _, words in times.groupby("item")["word"]]
    docs = make_pipeline(settings).pipe(stories, batch_size=1)
    words = to_dataframe(docs, words=WordTable("whitespace", lags=2))
    if words["text"].tolist() != times["word"].tolist():
        raise ValueError("The rows of the table of words are not the words of the stories.")
    return words.join(times.drop(columns="word"))


def statsmodels() -> Any:
    """Imported here, so that `--help` needs no extra."""
    import statsmodels.api

    return statsmodels.api


def regression(words: pd.DataFrame, columns: list[str]) -> Any:
    sm = statsmodels()
    return sm.OLS(words["meanItemRT"], sm.add_constant(words[columns].astype(float))).fit()


def gains(words: pd.DataFrame, baseline: list[str], more: list[str], fold: np.ndarray) -> np.ndarray:
    """For each fold: how much more likely its reading times are under a regression with more columns than under the
    baseline, both fitted to the other folds. In nats per 1,000 words.
    """
    values = []
    for number in np.unique(fold):
        fitted, rest = words[fold != number], words[fold == number]
        values.append(1000 * (held_out(fitted, rest, baseline + more) - held_out(fitted, rest, baseline)))
    return np.array(values)


def held_out(fitted: pd.DataFrame, rest: pd.DataFrame, columns: list[str]) -> float:
    """The mean log-likelihood of the words of `rest` under a regression of those of `fitted`."""
    model = regression(fitted, columns)
    sigma = math.sqrt(model.ssr / model.nobs)
    table = statsmodels().add_constant(rest[columns].astype(float), has_constant="add")
    errors = rest["meanItemRT"] - model.predict(table)
    return float((-0.5 * (errors / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))).mean())


def with_lags(names: list[str]) -> list[str]:
    return [f"{name}{lag}" for name in names for lag in LAGS]


def compare(words: pd.DataFrame, metric: str, baseline: str, seed: int) -> dict[str, str]:
    """A row of the table: what surprisal under a metric adds to the baseline.

    Intervals are over stories, since the times of neighbouring words are alike: standard errors are clustered by story.
    """
    columns, surprisal = with_lags(BASELINES[baseline]), with_lags([f"surprisal_{metric}"])
    words = words.assign(**{own: -words[f"pll_{metric}{lag}"] for own, lag in zip(surprisal, LAGS, strict=True)})
    base, full = regression(words, columns), regression(words, columns + surprisal)
    ratio, p, _ = full.compare_lr_test(base)
    by_story = full.get_robustcov_results("cluster", groups=words["item"].to_numpy())
    intervals = dict(zip(full.params.index, by_story.conf_int(), strict=True))
    fold = np.random.default_rng(seed).permutation(len(words)) % FOLDS
    of_stories = gains(words, columns, surprisal, words["item"].to_numpy())
    of_mean = interval(*statsmodels().stats.DescrStatsW(of_stories).tconfint_mean())
    effects = {
        f"ms per nat{lag.replace('_lag', ', word −')}": f"{full.params[name]:.2f} {interval(*intervals[name])}"
        for name, lag in zip(surprisal, LAGS, strict=True)
    }
    return {
        "baseline": baseline,
        "metric": metric,
        **effects,
        "R², baseline": f"{base.rsquared:.4f}",
        "R²": f"{full.rsquared:.4f}",
        "likelihood ratio, χ²(3)": f"{ratio:.1f}",
        "p": f"{p:.2g}" if p > 1e-10 else "< 1e-10",
        "gain, words held out": f"{gains(words, columns, surprisal, fold).mean():.1f}",
        "gain, stories held out": f"{of_stories.mean():.1f} {of_mean}",
        "stories with a gain": f"{(of_stories > 0).sum()} of {len(of_stories)}",
    }


def interval(low: float, high: float) -> str:
    return f"[{low:.1f}, {high:.1f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the reading times")
    parser.add_argument("--stories", type=int, default=10, help="how many stories, from the first (default: 10)")
    parser.add_argument("--spans", default="sents", help="what the model reads as one context (default: sents)")
    parser.add_argument("--model", help="folder or hub name of a masked model (default: the built-in model)")
    parser.add_argument("--causal", help="folder or hub name of a left-to-right model, to compare with")
    parser.add_argument("--seed", type=int, default=0, help="seed of the folds (default: 0)")
    parser.add_argument("--output", type=Path, help="write the words with scores and times to this .csv file")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the tables there")
    args = parser.parse_args()
    if args.stories < 2:
        parser.error("--stories must be 2 or more: each story is held out in turn")
    spacy.prefer_gpu()
    times = read_times(args.folder / "processed_wordinfo.tsv")
    times = times[times["item"] <= args.stories].reset_index(drop=True)
    words, metrics = add_scores(times, PipelineSettings(args.model, METRICS, spans=args.spans)), list(METRICS)
    if args.causal:
        causal = add_scores(times, PipelineSettings(args.causal, ["causal"], spans=args.spans, causal=True))
        words = words.join(causal.filter(like="pll_causal"))
        metrics.append("causal")
    if args.output:
        words.to_csv(args.output, index=False)
    complete = words.dropna(subset=with_lags([*BASELINES["and wordpieces"], *(f"pll_{metric}" for metric in metrics)]))
    rows = [compare(complete, metric, baseline, args.seed) for baseline in BASELINES for metric in metrics]
    print_table("reading times", rows)
    print(f"\nWords: {len(complete):,} of {len(words):,}, in {times['item'].nunique()} stories")
    if args.write:
        replace_tables(args.write, {"reading times": rows})


if __name__ == "__main__":
    main()
