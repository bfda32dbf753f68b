"""How many words a tokenizer splits into several pieces (K&I, Table 2).

python -m scripts.paper.oov --tokenizers bert-base-cased,roberta-base --datasets eventsadapt,brown
"""

import argparse
from collections import Counter
from pathlib import Path

from .data import lower_case_words, read_dataset
from .errors import PLLError, shown_errors
from .names import BUILTIN, BUILTIN_FOLDER, DATASET_TITLES, model_title, split_list
from .output import analysis

ABOUT = """Words are counted as in the paper: sentences are lower-cased, their final full stop is taken off, they are
split at white space, and what consists of letters alone is a word; every occurrence counts.

"Alone" is the paper's count: each word is tokenised by itself, with no space before it. For a tokenizer that writes
the space into a word's first piece (RoBERTa, GPT-2) this is not how the word looks inside a sentence, and splits it
more often. "In text" tokenises the same words with a space before them, as inside a sentence: this is the share of
words whose scores the choice of a metric can change. For WordPiece tokenizers (BERT) both are the same.

Brown's sentences are not quite those of the paper, which does not say how it chose them: 26,997, all but 21 of its
26,954 among them."""

# Table 2, percent; EventsAdapt is printed with one decimal place, Brown without.
PUBLISHED = {
    ("bert-base-cased", "eventsadapt"): 19.6,
    ("roberta-base", "eventsadapt"): 40.3,
    ("bert-base-cased", "brown"): 8,
    ("roberta-base", "brown"): 25,
}


def load_tokenizer(name: str, folder: Path | None = None):
    """The backend of a fast tokenizer: the built-in model's, one below `folder`, a local one, or the hub's.

    RAISES (OSError): There is none of that name.
    """
    from transformers import AutoTokenizer

    if name == BUILTIN:
        source = str(BUILTIN_FOLDER)
    elif folder and (folder / name).is_dir():
        source = str(folder / name)
    else:
        source = name
    name, _, revision = source.partition("@")
    return AutoTokenizer.from_pretrained(name, revision=revision or None, trust_remote_code=False).backend_tokenizer


def split_share(words: Counter, tokenizer, before: str = "") -> float:
    """The share of words, in percent of their occurrences, that become several pieces.

    words (Counter): Word -> occurrences.
    before (str): What stands before each word, "" or " ".
    """
    encodings = tokenizer.encode_batch([before + word for word in words], add_special_tokens=False)
    split = sum(n for n, encoding in zip(words.values(), encodings) if len(encoding.ids) > 1)
    return 100 * split / words.total()


def rows(tokenizers: dict, datasets: dict[str, list[str]]) -> list[dict]:
    """tokenizers: name -> backend; datasets: name -> sentences. RETURNS: a row for each pair of them."""
    out = []
    for dataset, sentences in datasets.items():
        words = Counter(word for sentence in sentences for word in lower_case_words(sentence))
        for name, tokenizer in tokenizers.items():
            out.append(
                {
                    "dataset": DATASET_TITLES[dataset],
                    "tokenizer": name,
                    "words": words.total(),
                    "distinct_words": len(words),
                    "split_alone_percent": split_share(words, tokenizer),
                    "split_in_text_percent": split_share(words, tokenizer, " "),
                    "published_percent": PUBLISHED.get((name, dataset)),
                }
            )
    return out


def plot(rows: list[dict]):
    from .figures import plt, tidy

    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    figure, axes = plt.subplots(1, len(datasets), figsize=(4.2 * len(datasets), 3.2), sharey=True, squeeze=False)
    for ax, dataset in zip(axes[0], datasets):
        mine = [row for row in rows if row["dataset"] == dataset]
        for offset, key, colour, label in (
            (-0.2, "split_alone_percent", "#0072b2", "alone (K&I, Table 2)"),
            (0.2, "split_in_text_percent", "#9ac7e3", "in text, after a space"),
        ):
            bars = ax.bar([i + offset for i in range(len(mine))], [row[key] for row in mine], 0.38, color=colour)
            ax.bar_label(bars, fmt="%.1f", fontsize=8, padding=2)
            bars.set_label(label)
        ax.set_xticks(range(len(mine)), [model_title(row["tokenizer"]).replace(" (", "\n(") for row in mine])
        ax.margins(y=0.15)
        ax.set_title(dataset)
        tidy(ax)
    axes[0][0].set_ylabel("words split (%)")
    axes[0][-1].legend(frameon=False, loc="upper left")
    figure.tight_layout()
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tokenizers", type=split_list, action="extend", required=True, help="Comma-separated; may be given again"
    )
    parser.add_argument("--tokenizer-folder", default="", help="Where folders of these names may lie")
    parser.add_argument("--datasets", type=split_list, default=["eventsadapt", "brown"])
    parser.add_argument("--assets", type=Path, default=Path("assets"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    with shown_errors():
        datasets = {name: read_dataset(name, args.assets) for name in args.datasets}
        tokenizers, missing = {}, []
        for name in dict.fromkeys(args.tokenizers):
            try:
                tokenizers[name] = load_tokenizer(name, args.tokenizer_folder and Path(args.tokenizer_folder))
            except OSError:
                missing.append(name)
        about = ABOUT
        if missing:
            where = f"neither in {args.tokenizer_folder or 'a local folder'} nor on the hub (is there a network?)"
            about += f"\n\nNot counted, because found {where}: {', '.join(missing)}."
            print(f"Not counted: {', '.join(missing)}, {where}.")
        if not tokenizers:
            raise PLLError(f"None of these tokenizers was found: {', '.join(missing)}.")
        with analysis(args.results, "oov", "Words split into several pieces", about) as output:
            table = rows(tokenizers, datasets)
            output.table("oov", table, "Share of words that the tokenizer splits, in percent, next to K&I's Table 2", {
                "dataset": "", "tokenizer": "", "words": ",d", "split_alone_percent": ".1f",
                "published_percent": "g", "split_in_text_percent": ".1f",
            })  # fmt: skip
            output.figure("oov", plot(table), "Share of words that the tokenizer splits")


if __name__ == "__main__":
    main()
