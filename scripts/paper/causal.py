"""Do PLLs agree with a left-to-right model's log-likelihood? (K&I, figures 4, 14-16, 19)

python -m scripts.paper.causal
"""

import argparse
from pathlib import Path

from scripts.docs_site.markdown_tables import replace_tables

from .correlation import SHOWN, as_text, pearson
from .errors import shown_errors
from .names import DATASET_TITLES, METRIC_COLOURS, METRIC_TITLES, file_name, score_name
from .output import analysis
from .scores import Model, Scores

ABOUT = """The log-likelihood of a sentence under a left-to-right model, its beginning-of-sequence token prepended, is a
probability; a PLL is not. A PLL that orders sentences as the log-likelihood does is the better one. Pearson's r over
the sentences of a data set, with 95 % bootstrap intervals over items: the four sentences of an item of EventsAdapt are
not independent of each other."""
NONE_GIVEN = """No left-to-right model was given, so there is nothing to compare with. Name some with
--vars.causal_model (gpt2-medium, or a folder), or train one of the built-in model's size, which is then found by
itself: python -m spacy project run train-causal"""


def rows(model: Model, docs: dict, causal: Model, causal_docs: dict, dataset: str, items: list[str]) -> list[dict]:
    """docs, causal_docs: text -> scored doc, of the same texts. items: the item of each.

    RETURNS: a row for each metric of `model`.
    """
    likelihood = [causal_docs[text]._.causal for text in docs]
    return [
        {
            "model": model.title,
            "left_to_right": causal.title,
            "dataset": DATASET_TITLES[dataset],
            "metric": METRIC_TITLES[metric],
            **pearson([doc._.get(score_name(metric)) for doc in docs.values()], likelihood, items),
        }
        for metric in model.metrics
    ]


def page_rows(table: list[dict]) -> list[dict]:
    """The rows of the table in a Markdown page."""
    return [
        {
            "masked model": row["model"],
            "left-to-right model": row["left_to_right"],
            "metric": row["metric"],
            "r": f"{row['r']:.3f} [{row['low']:.3f}, {row['high']:.3f}]",
        }
        for row in table
    ]


def plot(scored: list[tuple[Model, dict]], causal: Model, causal_docs: dict, table: list[dict]):
    """A row of panels for each masked model, a panel for each metric."""
    from .figures import plt, scatter

    columns = max(len(model.metrics) for model, _ in scored)
    figure, axes = plt.subplots(len(scored), columns, figsize=(3 * columns, 2.8 * len(scored)), squeeze=False)
    by_panel = iter(table)
    for row, (model, docs) in zip(axes, scored):
        for ax, metric in zip(row, model.metrics):
            x = [doc._.get(score_name(metric)) for doc in docs.values()]
            scatter(ax, x, [causal_docs[text]._.causal for text in docs], METRIC_COLOURS[metric])
            ax.set_title(f"{model.title}\n{METRIC_TITLES[metric]}\n{as_text(next(by_panel))}", fontsize=9)
            ax.set_xlabel("PLL (nats)")
        row[0].set_ylabel(f"log-likelihood (nats),\n{causal.title}")
    figure.tight_layout()
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page as well")
    args = parser.parse_args()
    with shown_errors():
        scores = Scores(args.results)
        masked, causal_models = scores.models("masked"), scores.models("causal")
        about = ABOUT if causal_models else f"{ABOUT}\n\n{NONE_GIVEN}"
        with analysis(args.results, "causal", "Left-to-right log-likelihood", about) as output:
            table, figures = [], []
            for causal in causal_models:
                for dataset in scores.datasets:
                    scored = [(model, scores.docs(model, dataset)) for model in masked]
                    likely = scores.docs(causal, dataset)
                    items = scores.items(dataset)
                    mine = [row for model, docs in scored for row in rows(model, docs, causal, likely, dataset, items)]
                    name = f"causal-{file_name(causal.name)}-{file_name(dataset)}"
                    caption = f"Log-likelihood under {causal.title} against PLL, {DATASET_TITLES[dataset]}"
                    figures.append((name, plot(scored, causal, likely, mine), caption))
                    table += mine
            if not causal_models:
                print(NONE_GIVEN.replace("\n", " "))
                return
            shown = {"model": "", "left_to_right": "", "dataset": "", "metric": "", **SHOWN}
            output.table("causal", table, "Pearson's r of sentence PLL and log-likelihood", shown)
            for name, figure, caption in figures:
                output.figure(name, figure, caption)
        if args.write:
            replace_tables(args.write, {"left-to-right model": page_rows(table)})


if __name__ == "__main__":
    main()
