"""Are the scores of two versions of this package equal, to the last bit?

    python scripts/same_scores.py texts.txt before.npz                     # with the one version installed
    python scripts/same_scores.py texts.txt after.npz --against before.npz   # with the other

Scores each line of a text file under all metrics of masked models and all units of words, with the built-in model, and
writes the scores of all tokens and digests of the wordpiece records. With `--against`, prints what differs and exits
with 1 if anything does. What only one of the versions records is not compared. It uses only what all versions have. Run
both on the same machine: other processors, numbers of threads and versions of PyTorch round in another way.
"""

import argparse
import hashlib
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import spacy
import torch

METRICS = ["word_l2r", "original", "whole_word", "word_r2l", "word_any_order", "sentence_l2r"]
WORDS = ["spacy", "tokenizer", "whitespace"]
RECORDED = "wordpieces'"  # begins the names of what wordpiece records have
BATCH_SIZE = 128  # part of what is compared: the rows of a forward pass round together


def score(texts: list[str], config: dict) -> tuple[np.ndarray, dict[str, str]]:
    """Scores of all tokens (float64, shape (metrics, tokens)), and digests of the wordpiece records by their keys."""
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"keep_pieces": True, **config})
    columns, digests = [], defaultdict(hashlib.sha256)
    names = [f"pll_{metric}" for metric in config["metrics"]] if len(config["metrics"]) > 1 else ["pll"]
    for doc in nlp.pipe(texts, batch_size=BATCH_SIZE):
        columns.append(np.array([[token._.get(name) for token in doc] for name in names], dtype=np.float64))
        for key, values in doc._.pll_data.items():
            digests[key].update(json.dumps(values, sort_keys=True).encode())
    return np.concatenate(columns, axis=1), {key: digest.hexdigest() for key, digest in digests.items()}


def snapshot(texts: list[str]) -> dict[str, np.ndarray]:
    settings: dict[str, dict] = {words: {"metrics": METRICS, "words": words} for words in WORDS}
    settings["mask_spacing 16"] = {"metrics": ["word_l2r"], "mask_spacing": 16}
    found = {}
    for name, config in settings.items():
        scores, digests = score(texts, config)
        found[f"{name}: scores"] = scores
        found |= {f"{name}: {RECORDED} {key}": np.array(digest) for key, digest in digests.items()}
        print(f"{name}: {scores.shape[1]} tokens, sums {scores.sum(axis=1)}", flush=True)
    return found


def differences(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> list[str]:
    """What differs, one line each."""
    lines = []
    for name in sorted({*before, *after}):
        a, b = before.get(name), after.get(name)
        if a is None or b is None:
            if f": {RECORDED} " not in name:
                lines.append(f"{name}: only {'before' if b is None else 'after'}")
        elif a.shape != b.shape:
            lines.append(f"{name}: shape {a.shape}, then {b.shape}")
        elif not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            by = f", by up to {np.nanmax(np.abs(a - b)):.2g}" if a.dtype.kind == "f" else ""
            lines.append(f"{name}: {np.count_nonzero(a != b)} of {a.size} differ{by}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path, help="A file with one text per line")
    parser.add_argument("output", type=Path, help="The .npz file to write")
    parser.add_argument("--against", type=Path, help="The .npz file of the other version")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = snapshot([line for line in options.texts.read_text(encoding="utf8").splitlines() if line.strip()])
    np.savez(options.output, **found)  # type: ignore[arg-type]  # numpy takes none of these for an option
    if options.against:
        with np.load(options.against) as before:
            lines = differences(dict(before), found)
        print("\n".join(lines) or "All scores and wordpieces are equal.")
        sys.exit(bool(lines))


if __name__ == "__main__":
    main()
