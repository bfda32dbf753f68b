"""Do frequent words score higher where nothing else tells words apart? (K&I, figures 3B, 10-13, 18A)

    python -m scripts.paper.frequency [--frequencies TABLE.csv]

TABLE.csv has the columns `word` and `frequency` (a count or a share; its logarithm is taken).
Without it, frequencies come from the package wordfreq.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path

from .correlation import SHOWN, as_text, pearson
from .data import CONTEXTS
from .errors import InputError, shown_errors
from .names import METRIC_COLOURS, METRIC_TITLES, file_name, pieces_name, score_name
from .output import INSTALL, analysis
from .published_texts import read_rows
from .scores import WORDS, Model, Scores

ABOUT = """In a context that fits any word, frequent words should score higher. Each distinct word of EventsAdapt
(lower-cased, of letters alone) is put into three contexts, "My word is _." (below: my word), "I opened the dictionary
and randomly picked a word. It was _." (dictionary) and none at all, and its score, summed over its wordpieces, is
compared with the logarithm of its frequency. Words whose frequency is not known are left out. r is Pearson's, with
95 % bootstrap intervals over words; "one piece" and "several pieces" are the words that the model's tokenizer leaves
whole and those it splits: a metric that inflates split words lifts them above the line of the others."""

SHORT = {"my word": "“My word is _.”", "dictionary": "“… It was _.”", "none": "no context"}
PIECE_COLOURS = {1: "#4c78a8", 2: "#f2a541", 3: "#d1495b", 4: "#6a2c70"}


def log_frequencies(path: Path | None) -> tuple[Callable[[str], float | None], str]:
    """A function from a word to the natural logarithm of its frequency, None where not known, and its source."""
    if path:
        table = read_frequencies(path)
        return table.get, path.name
    try:
        import wordfreq
    except ImportError:
        raise ImportError(
            f"Word frequencies come from the package wordfreq: {INSTALL}. Or name a table: "
            "--vars.frequencies TABLE.csv, with the columns word and frequency."
        ) from None
    from importlib.metadata import version

    def look_up(word: str) -> float | None:
        frequency = wordfreq.word_frequency(word, "en")
        return math.log(frequency) if frequency else None

    return look_up, f"wordfreq {version('wordfreq')}, English"


def read_frequencies(path: Path) -> dict[str, float]:
    """Word -> natural logarithm of its frequency.

    RAISES (InputError): A row has no word, or no positive number; the message gives its line.
    """
    if not path.is_file():
        raise InputError(f"There is no table of frequencies {path}. Name one with --vars.frequencies.")
    table = {}
    for place, row in read_rows(path):
        if not row.get("word") or "frequency" not in row:
            raise InputError(f"{place}: the columns `word` and `frequency` are needed; the row is {row}.")
        try:
            value = float(row["frequency"])
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise InputError(f"{place}: the frequency must be a positive number; it is {row['frequency']!r}.")
        table[row["word"].lower()] = math.log(value)
    return table


def word_scores(model: Model, docs: dict) -> list[dict]:
    """The words of one context: each with its number of pieces and its score by each metric.

    docs (dict): Text -> scored doc; doc.spans["word"] is the word.
    """
    out = []
    for doc in docs.values():
        word = doc.spans["word"][0]
        row = {"word": word.text, "pieces": word._.get(pieces_name(model.kind))}
        out.append({**row, **{metric: word._.get(score_name(metric)) for metric in model.metrics}})
    return out


def rows(model: Model, context: str, words: list[dict]) -> list[dict]:
    """words: what `word_scores` gives, with "log_frequency". RETURNS: a row for each metric."""
    whole, split = ([word for word in words if (word["pieces"] > 1) == several] for several in (False, True))
    out = []
    for metric in model.metrics:
        row: dict = {"model": model.title, "context": context, "metric": METRIC_TITLES[metric]}
        row.update(pearson([w["log_frequency"] for w in words], [w[metric] for w in words]))
        for name, part in (("one_piece", whole), ("several_pieces", split)):
            found = pearson([w["log_frequency"] for w in part], [w[metric] for w in part])
            row.update({f"r_{name}": found["r"], f"n_{name}": found["n"]})
        out.append(row)
    return out


def plot(model: Model, by_context: dict[str, list[dict]], table: list[dict]):
    """A row of panels for each context, a panel for each metric; colours are numbers of wordpieces."""
    from .figures import line, plt, tidy

    n = len(model.metrics)
    figure, axes = plt.subplots(len(by_context), n, figsize=(3 * n, 2.8 * len(by_context)), squeeze=False)
    by_panel = iter(table)
    for row, (context, words) in zip(axes, by_context.items()):
        for ax, metric in zip(row, model.metrics):
            for pieces, colour in PIECE_COLOURS.items():
                mine = [w for w in words if w["pieces"] == pieces or (pieces == 4 and w["pieces"] > 4)]
                label = {1: "1 piece", 4: "4 or more"}.get(pieces, f"{pieces} pieces")
                x, y = [w["log_frequency"] for w in mine], [w[metric] for w in mine]
                ax.scatter(x, y, s=9, color=colour, alpha=0.5, linewidths=0, rasterized=True, label=label)
            line(ax, [w["log_frequency"] for w in words], [w[metric] for w in words])
            ax.set_title(
                f"{METRIC_TITLES[metric]}\n{as_text(next(by_panel))}", fontsize=9, color=METRIC_COLOURS[metric]
            )
            ax.set_xlabel("log frequency (nats)")
            tidy(ax)
        row[0].set_ylabel(f"{SHORT[context]}\nword score (nats)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.suptitle(model.title, x=0.01, ha="left", fontweight="bold")
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False, markerscale=2)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frequencies", default="", help="A table of word frequencies, .csv")
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    with shown_errors():
        scores = Scores(args.results)
        look_up, source = log_frequencies(Path(args.frequencies) if args.frequencies else None)
        unknown = set()
        with analysis(args.results, "frequency", "Word frequency", ABOUT) as output:
            table, every_word, figures = [], [], []
            for model in scores.models("masked") + scores.models("causal"):
                by_context, mine = {}, []
                for context in CONTEXTS:
                    words = word_scores(model, scores.docs(model, WORDS + context))
                    words = [{"log_frequency": look_up(word["word"]), **word} for word in words]
                    unknown |= {word["word"] for word in words if word["log_frequency"] is None}
                    words = [word for word in words if word["log_frequency"] is not None]
                    by_context[context] = words
                    mine += rows(model, context, words)
                    every_word += [{"model": model.title, "context": context, **word} for word in words]
                figures.append((model, plot(model, by_context, mine)))
                table += mine
            output.contents["about"] += f"\n\nFrequencies: {source}. Words without one: {len(unknown)}"
            output.contents["about"] += f" ({', '.join(sorted(unknown)[:20])})." if unknown else "."
            shown = {"model": "", "context": "", "metric": "", **SHOWN, "r_one_piece": ".3f", "r_several_pieces": ".3f"}
            output.table("frequency", table, "Pearson's r of word score and log frequency", shown)
            output.table("words", every_word, "Every word in every context", {})
            for model, figure in figures:
                caption = f"Word score against log frequency, {model.title}; a point is a word"
                output.figure(f"frequency-{file_name(model.name)}", figure, caption)


if __name__ == "__main__":
    main()
