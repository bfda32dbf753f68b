"""How the metrics score words of several pieces (K&I, figures 2, 5, 6 and 17).

python -m scripts.paper.inflation
"""

import argparse
from pathlib import Path

from .correlation import mean
from .data import EXAMPLE_SENTENCES, EXAMPLES
from .errors import shown_errors
from .names import DATASET_TITLES, METRIC_COLOURS, METRIC_TITLES, file_name, score_name
from .output import analysis
from .scores import Model, Scores

ABOUT = """While `original` scores a piece of a split word, the word's other pieces are seen and give it away: the
word's score is inflated. `word_l2r` hides the pieces to the right as well; `whole_word` hides all of the word. The
first table follows K&I's example words, piece by piece in the figures. The second gives the mean, over all words of a
data set that the tokenizer splits, of the word's score under `original` minus that under each other metric, with its
95 % bootstrap interval over word types: how much `original` inflates such words, in nats a word."""


def example_rows(model: Model, docs: dict) -> list[dict]:
    """A row for each split word of the example sentences: its score, and its sentence's, by each metric."""
    out = []
    for text in EXAMPLE_SENTENCES:
        doc = docs[text]
        for token in doc:
            if token._.pll_pieces > 1:
                data = doc._.pll_data
                pieces = [piece for piece, owner in zip(data["pieces"], data["token"]) if owner == token.i]
                row = {"model": model.title, "sentence": text, "word": token.text, "pieces": " ".join(pieces)}
                row.update({metric: token._.get(score_name(metric)) for metric in model.metrics})
                out.append({**row, **{f"sentence_{metric}": doc._.get(score_name(metric)) for metric in model.metrics}})
    return out


def difference_rows(model: Model, dataset: str, docs: dict) -> list[dict]:
    """How much higher `original` scores the tokens of several pieces than each other metric does."""
    split = [token for doc in docs.values() for token in doc if (token._.pll_pieces or 0) > 1]
    out = []
    for metric in model.metrics:
        if metric == "original":
            continue
        differences = [token._.pll_original - token._.get(score_name(metric)) for token in split]
        found = mean(differences, [token.text.lower() for token in split])
        out.append(
            {
                "model": model.title,
                "dataset": DATASET_TITLES[dataset],
                "metric": METRIC_TITLES[metric],
                "split_words": found["n"],
                "mean_difference": found["mean"],
                "low": found["low"],
                "high": found["high"],
            }
        )
    return out


def plot(model: Model, docs: dict):
    """A panel for each sentence: the score of each wordpiece, a line for each metric, shaded where they differ."""
    from .figures import plt, tidy

    figure, axes = plt.subplots(len(EXAMPLE_SENTENCES), 1, figsize=(7.5, 2.9 * len(EXAMPLE_SENTENCES)), squeeze=False)
    for ax, text in zip(axes[:, 0], EXAMPLE_SENTENCES):
        data = docs[text]._.pll_data
        places = range(len(data["pieces"]))
        for metric in model.metrics:
            total = docs[text]._.get(score_name(metric))
            label = f"{METRIC_TITLES[metric]}: {total:.1f}"
            style = "--" if metric == "sentence_l2r" else "-"
            scores = data["scores"][metric]
            ax.plot(places, scores, style, marker="o", markersize=4, color=METRIC_COLOURS[metric], label=label)
        for token in set(data["token"]):
            mine = [i for i in places if data["token"][i] == token]
            if len(mine) > 1:
                ax.axvspan(mine[0] - 0.46, mine[-1] + 0.46, color="#f3efe2", zorder=0, linewidth=0)
        ax.set_xticks(places, data["pieces"])
        ax.set_xlim(-0.5, len(places) - 0.5)
        ax.set_ylabel("log-probability (nats)")
        ax.set_title(f"{text} ({model.title})", loc="left")
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), title="sentence score")
        tidy(ax)
    figure.tight_layout()
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    with shown_errors():
        scores = Scores(args.results)
        with analysis(args.results, "inflation", "Words of several pieces", ABOUT) as output:
            examples, differences, figures = [], [], []
            for model in scores.models("masked"):
                docs = scores.docs(model, EXAMPLES)
                examples += example_rows(model, docs)
                for dataset in scores.datasets:
                    differences += difference_rows(model, dataset, scores.docs(model, dataset))
                figures.append((model, plot(model, docs)))
            shown = {"model": "", "word": "", "pieces": "", **dict.fromkeys(METRIC_TITLES, ".1f")}
            del shown["causal"]
            output.table("inflation", examples, "Scores of the example words, natural logarithm", shown)
            shown = {"model": "", "dataset": "", "metric": "", "split_words": ",d"}
            shown.update({"mean_difference": ".2f", "low": ".2f", "high": ".2f"})
            output.table(
                "split-words", differences, "PLL-original minus each other metric, mean over split words", shown
            )
            for model, figure in figures:
                caption = f"Scores of the wordpieces, {model.title}; shaded: words of several pieces"
                output.figure(f"inflation-{file_name(model.name)}", figure, caption)


if __name__ == "__main__":
    main()
