"""What the metrics, models and data sets are called, in files and for people."""

import re
from pathlib import Path

from spacy_pll.language_model import BUILTIN as BUILTIN_FOLDER

__all__ = ["BUILTIN_FOLDER"]

MASKED_METRICS = ["original", "word_l2r", "whole_word", "sentence_l2r"]
METRICS = {"masked": MASKED_METRICS, "causal": ["causal"]}
METRIC_TITLES = {
    "original": "PLL-original",
    "word_l2r": "PLL-word-l2r",
    "whole_word": "PLL-whole-word",
    "sentence_l2r": "PLL-sentence-l2r",
    "causal": "log-likelihood",
}
METRIC_COLOURS = {
    "original": "#d55e00",
    "word_l2r": "#0072b2",
    "whole_word": "#009e73",
    "sentence_l2r": "#b0619a",
    "causal": "#444444",
}

BUILTIN = "builtin"
MODEL_TITLES = {
    BUILTIN: "built-in",
    "bert-base-cased": "BERT (base)",
    "bert-large-cased": "BERT (large)",
    "roberta-base": "RoBERTa (base)",
    "roberta-large": "RoBERTa (large)",
    "gpt2": "GPT-2",
    "gpt2-medium": "GPT-2 (medium)",
    "gpt2-xl": "GPT-2 (XL)",
    "training/causal/model": "left-to-right twin",
}
DATASET_TITLES = {"eventsadapt": "EventsAdapt", "brown": "Brown", "librispeech": "LibriSpeech"}


def model_title(name: str) -> str:
    """For tables and figures: "BERT (base)" for bert-base-cased; a name that K&I do not use as it is."""
    return MODEL_TITLES.get(name.split("@")[0], name)


def file_name(name: str) -> str:
    """A model's name as a folder's: what cannot stand in one becomes a hyphen."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.") or "model"


def split_list(value: str) -> list[str]:
    """A var of project.yml that names several things: "a, b", or a YAML list, which arrives as "[a, b]"."""
    names = (name.strip(" \t\"'") for name in value.strip().strip("[]").split(","))
    return list(dict.fromkeys(name for name in names if name))


def score_name(metric: str) -> str:
    """The attribute, `token._.NAME`, in which the scores of a metric are stored."""
    return "causal" if metric == "causal" else f"pll_{metric}"


def pieces_name(kind: str) -> str:
    """The attribute that counts wordpieces; `kind` is the model's, "masked" or "causal"."""
    return "causal_pieces" if kind == "causal" else "pll_pieces"


def published(path: Path = Path(__file__).parent / "blimp_published.csv"):
    """The accuracies of K&I's Tables 1 and 3, with people's (Warstadt et al. 2020) in the last row."""
    import pandas as pd

    return pd.read_csv(path, comment="#", keep_default_na=False)
