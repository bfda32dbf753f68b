"""Accuracy on BLiMP, laid out as K&I's Tables 1 and 3.

python -m scripts.paper.blimp
"""

import argparse
from pathlib import Path

from spacy_pll import Pair

from .data import BLIMP, PHENOMENA, pair_outcomes, read_blimp
from .errors import shown_errors
from .names import METRIC_COLOURS, METRIC_TITLES, published, score_name
from .output import analysis
from .published_texts import BLIMP_PATH
from .scores import Scores

ABOUT = """BLiMP (Warstadt et al. 2020) has 67 paradigms of 1,000 pairs, each a grammatical sentence and one that
differs in a word or two and is not. A pair is right when the grammatical one has the higher score, half right when
both have the same. Accuracy in percent; "Overall" is the mean over all pairs, in which each paradigm has the same
weight. For the models that the paper used its own figures stand below ours; people's are those of Warstadt et al."""

OVERALL = "Overall"
COLUMNS = [OVERALL, *dict.fromkeys(PHENOMENA.values())]


def percentages(pairs: list[Pair], scores: dict[str, float]) -> dict[str, float]:
    """Accuracy in percent for each column of Table 3.

    scores (dict[str, float]): The score of each sentence.
    """
    won = pair_outcomes([scores[sentence] for pair in pairs for sentence in (pair.good, pair.bad)])
    groups = {OVERALL: won, **{name: won[[pair.phenomenon == name for pair in pairs]] for name in COLUMNS[1:]}}
    return {name: 100 * float(of_group.mean()) for name, of_group in groups.items() if len(of_group)}


def published_rows(title: str, metric: str = "") -> list[dict]:
    """What K&I print for a model and metric; no row where they have none."""
    table = published()
    found = table[(table["model"] == title) & (table["metric"] == metric)]
    return found[COLUMNS].to_dict("records")


def rows(scored: list[tuple[str, str, dict[str, float]]], pairs: list[Pair]) -> list[dict]:
    """A row for each model and metric, the published ones below.

    scored (list): (model's title, metric, sentence -> score).
    """
    out = []
    for title, metric, scores in scored:
        first = {"model": title, "metric": METRIC_TITLES[metric]}
        out.append({**first, "source": "here", **percentages(pairs, scores)})
        out += [{**first, "source": "published", **row} for row in published_rows(title, metric)]
    out += [{"model": "Human", "metric": "", "source": "published", **row} for row in published_rows("Human")]
    return out


def plot(table: list[dict]):
    """A panel for each model, a group of bars for each phenomenon."""
    from .figures import plt, tidy

    models = list(dict.fromkeys(row["model"] for row in table if row["source"] == "here"))
    human = next(row for row in table if row["model"] == "Human")
    figure, axes = plt.subplots(len(models), 1, figsize=(10, 3.1 * len(models)), squeeze=False)
    for ax, model in zip(axes[:, 0], models):
        mine = [row for row in table if row["model"] == model and row["source"] == "here"]
        width = 0.8 / len(mine)
        for i, (row, metric) in enumerate(
            (row, m) for row in mine for m in METRIC_TITLES if METRIC_TITLES[m] == row["metric"]
        ):
            places = [place - 0.4 + (i + 0.5) * width for place in range(len(COLUMNS))]
            ax.bar(places, [row.get(c, 0) for c in COLUMNS], width, color=METRIC_COLOURS[metric], label=row["metric"])
        ax.plot(range(len(COLUMNS)), [human[c] for c in COLUMNS], "k_", markersize=26, label="people")
        ax.axhline(50, color="#888888", linewidth=0.8, linestyle=":")
        ax.set_xticks(range(len(COLUMNS)), COLUMNS, rotation=25, ha="right")
        ax.set_xlim(-0.6, len(COLUMNS) - 0.4)
        ax.set_ylim(0, 100)
        ax.set_ylabel("accuracy (%)")
        ax.set_title(model, loc="left")
        tidy(ax)
        ax.legend(frameon=False, ncol=len(mine) + 1, loc="lower right", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assets", type=Path, default=Path("assets"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    with shown_errors():
        all_scores = Scores(args.results)
        per_paradigm = all_scores.index["blimp_pairs"]
        with analysis(args.results, "blimp", "BLiMP", ABOUT) as output:
            if not per_paradigm:
                output.contents["about"] += "\n\nBLiMP was not scored: the number of pairs a paradigm is set to 0."
                return
            pairs = read_blimp(args.assets / BLIMP_PATH, per_paradigm)
            output.contents["about"] += (
                f"\n\n{len(pairs):,} pairs: {min(per_paradigm, 1000):,} of each paradigm's 1,000, drawn with a seed "
                "that is the paradigm's name."
            )
            scored = []
            for model in all_scores.models("masked"):
                docs = all_scores.docs(model, BLIMP)
                for metric in model.metrics:
                    name = score_name(metric)
                    scored.append((model.title, metric, {text: doc._.get(name) for text, doc in docs.items()}))
            table = rows(scored, pairs)
            overall = [{key: row[key] for key in ("model", "metric", "source", OVERALL)} for row in table]
            shown = {"model": "", "metric": "", "source": "", OVERALL: ".1f"}
            output.table("table-1", overall, "As the paper's Table 1: overall accuracy in percent", shown)
            shown.update(dict.fromkeys(COLUMNS, ".1f"))
            output.table("table-3", table, "As the paper's Table 3: accuracy in percent by phenomenon", shown)
            output.figure("blimp", plot(table), "Accuracy by phenomenon; dotted: chance")


if __name__ == "__main__":
    main()
