"""Are longer sentences less likely? Negative PLL against sentence length (K&I, figures 3A, 7-9, 18B).

python -m scripts.paper.length
"""

import argparse
from pathlib import Path

from .correlation import SHOWN, as_text, pearson
from .errors import shown_errors
from .names import DATASET_TITLES, METRIC_COLOURS, METRIC_TITLES, file_name, pieces_name, score_name
from .output import analysis
from .scores import Model, Scores

ABOUT = """A longer sentence should be less likely, so its negative PLL should grow with its length. K&I measure length
in the model's tokens (wordpieces); the correlation with the number of words (split at white space) stands beside it in
the files. r is Pearson's, with 95 % bootstrap intervals over items: the four sentences of an item of EventsAdapt
are not independent of each other."""


def lengths(docs: dict, kind: str) -> list[int]:
    """Length in wordpieces, special tokens apart."""
    return [doc._.get(pieces_name(kind)) for doc in docs.values()]


def rows(model: Model, dataset: str, docs: dict, items: list[str]) -> list[dict]:
    """docs: text -> scored doc. items: the item of each. RETURNS: a row for each metric."""
    words = [len(text.split()) for text in docs]
    out = []
    for metric in model.metrics:
        negative = [-doc._.get(score_name(metric)) for doc in docs.values()]
        by_words = pearson(words, negative, items)
        out.append(
            {
                "model": model.title,
                "dataset": DATASET_TITLES[dataset],
                "metric": METRIC_TITLES[metric],
                **pearson(lengths(docs, model.kind), negative, items),
                **{f"{key}_words": by_words[key] for key in ("r", "low", "high")},
            }
        )
    return out


def plot(models: list[tuple[Model, dict]], table: list[dict]):
    """A row of panels for each model, a panel for each metric."""
    from .figures import plt, scatter

    columns = max(len(model.metrics) for model, _ in models)
    figure, axes = plt.subplots(len(models), columns, figsize=(3 * columns, 2.8 * len(models)), squeeze=False)
    by_panel = iter(table)
    for row, (model, docs) in zip(axes, models):
        for ax, metric in zip(row, model.metrics):
            negative = [-doc._.get(score_name(metric)) for doc in docs.values()]
            scatter(ax, lengths(docs, model.kind), negative, METRIC_COLOURS[metric])
            ax.set_title(f"{model.title}\n{METRIC_TITLES[metric]}\n{as_text(next(by_panel))}", fontsize=9)
            ax.set_xlabel("sentence length (wordpieces)")
            ax.xaxis.get_major_locator().set_params(integer=True)
        for ax in row[len(model.metrics) :]:
            ax.axis("off")
        row[0].set_ylabel("negative score (nats)")
    figure.tight_layout()
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    with shown_errors():
        scores = Scores(args.results)
        models = scores.models("masked") + scores.models("causal")
        with analysis(args.results, "length", "Sentence length", ABOUT) as output:
            table, figures = [], []
            for dataset in scores.datasets:
                scored = [(model, scores.docs(model, dataset)) for model in models]
                mine = [row for model, docs in scored for row in rows(model, dataset, docs, scores.items(dataset))]
                figures.append((dataset, plot(scored, mine)))
                table += mine
            shown = {"model": "", "dataset": "", "metric": "", **SHOWN}
            output.table("length", table, "Pearson's r of negative score and sentence length in wordpieces", shown)
            for dataset, figure in figures:
                caption = f"Negative score against sentence length, {DATASET_TITLES[dataset]}; a point is a sentence"
                output.figure(f"length-{file_name(dataset)}", figure, caption)


if __name__ == "__main__":
    main()
