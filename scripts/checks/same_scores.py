"""Are the scores of two versions of this package equal, to the last bit, and does every command write the same?

    python -m scripts.checks.same_scores texts.txt before.npz                       # in a checkout of the one version
    python -m scripts.checks.same_scores texts.txt after.npz --against before.npz   # and of the other

Scores each line of a text file in all ways that the component has, with the built-in model, and writes the scores of
all tokens and digests of the wordpiece records. Then it runs every command on some small files, and writes what it
prints and what its files contain (`command_outputs.py`). With `--against`, prints what differs and exits with 1 if
anything does. `--tolerance 1e-5` lets numbers differ by so much, for versions whose batches end at other texts. What
only one of the versions records is not compared. It uses only what all versions have. Run both on the same machine:
other processors, numbers of threads and versions of PyTorch round in another way.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import spacy
import torch

from scripts.checks.command_outputs import outputs

METRICS = ["word_l2r", "original", "whole_word", "word_r2l", "word_any_order", "sentence_l2r"]
WORDS = ["spacy", "tokenizer", "whitespace"]
WITHIN_WORDS = METRICS[:5]
STRIDED = {"@span_getters": "spacy-pll.strided_spans.v1", "window": 12, "stride": 8}
# All metrics and units of words, and each setting that plans its passes in a way of its own. "part" is a key of spans.
SETTINGS: dict[str, dict] = {
    **{words: {"metrics": METRICS, "words": words} for words in WORDS},
    **{f"mask_spacing {n}": {"metrics": ["word_l2r"], "mask_spacing": n} for n in (1, 16)},
    **{f"mask_margin {n}": {"metrics": WITHIN_WORDS, "mask_margin": n} for n in (0, 3)},
    "units": {"metrics": METRICS, "units": "part"},
    "units, margin": {"metrics": WITHIN_WORDS, "units": "part", "mask_margin": 1},
    "targets": {"metrics": METRICS, "targets": "part"},
    "targets, margin": {"metrics": WITHIN_WORDS, "targets": "part", "mask_margin": 1},
    "sample": {"metrics": METRICS, "sample_words": 0.3},
    "strided spans": {"metrics": METRICS, "get_spans": STRIDED},
    "strided spans, margin": {"metrics": ["word_l2r"], "get_spans": STRIDED, "mask_margin": 0},
    "left_context": {"metrics": ["left_context"]},
    "sentence_any_order": {"metrics": ["sentence_any_order"]},
    "unmasked": {"metrics": ["unmasked"]},
    "windows": {"metrics": ["word_l2r", "sentence_l2r"]},  # of a text that is longer than the model takes
    "windows, margin": {"metrics": WITHIN_WORDS, "mask_margin": 0},
    "expected": {"alternatives": 3, "distribution": True},
}
EXPECTED = ("pll_rank", "pll_entropy", "pll_alternatives")
RECORDED = "wordpieces'"  # begins the names of what wordpiece records have
LONG = 2000  # characters
FRACTION = r"(?<![\w.])-?\d+\.\d+(?:e-?\d+)?"
BATCH_SIZE = 128  # part of what is compared: the rows of a forward pass round together


def score(texts: list[str], config: dict) -> tuple[np.ndarray, dict[str, str]]:
    """Scores of all tokens (float64, shape (metrics, tokens)), and digests of the wordpiece records by their keys."""
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"keep_pieces": True, **config})
    columns, digests = [], defaultdict(hashlib.sha256)
    names = [f"pll_{metric}" for metric in config.get("metrics", ["word_l2r"])]
    docs = [nlp.make_doc(text) for text in texts]
    for doc in docs:
        doc.spans["part"] = [doc[i : i + 3] for i in range(1, len(doc), 7)]
    for doc in nlp.pipe(docs, batch_size=BATCH_SIZE):
        columns.append(np.array([[token._.get(name) for token in doc] for name in names], dtype=np.float64))
        recorded = dict(doc._.pll_data)
        if "distribution" in config:
            recorded |= {name: [token._.get(name) for token in doc] for name in EXPECTED}
        for key, values in recorded.items():
            digests[key].update(json.dumps(values, sort_keys=True).encode())
    return np.concatenate(columns, axis=1), {key: digest.hexdigest() for key, digest in digests.items()}


def snapshot(texts: list[str]) -> dict[str, np.ndarray]:
    found = {}
    long = " ".join(texts * (1 + LONG // len(" ".join(texts))))[:LONG]
    for name, config in SETTINGS.items():
        scores, digests = score([long] if name.startswith("windows") else texts, config)
        found[f"{name}: scores"] = scores
        found |= {f"{name}: {RECORDED} {key}": np.array(digest) for key, digest in digests.items()}
        print(f"{name}: {scores.shape[1]} tokens, sums {np.nansum(scores, axis=1)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        return found | {f"command: {name}": np.array(text) for name, text in outputs(Path(folder)).items()}


def differences(before: dict[str, np.ndarray], after: dict[str, np.ndarray], tolerance: float = 0.0) -> list[str]:
    """What differs, one line each."""
    lines = []
    for name in sorted({*before, *after}):
        a, b = before.get(name), after.get(name)
        if a is None or b is None:
            if f": {RECORDED} " not in name:
                lines.append(f"{name}: only {'before' if b is None else 'after'}")
            continue
        if name.startswith("command: "):
            (text_a, a), (text_b, b) = map(apart, (str(a), str(b)))
            if text_a != text_b:
                near = max(0, len(os.path.commonprefix([text_a, text_b])) - 60)
                lines.append(f"{name}: {text_a[near : near + 120]!r}, then {text_b[near : near + 120]!r}")
                continue
        if a.shape != b.shape:
            lines.append(f"{name}: shape {a.shape}, then {b.shape}")
        elif a.dtype.kind != "f":
            lines += [f"{name}: {np.count_nonzero(a != b)} of {a.size} differ"] * (not np.array_equal(a, b))
        elif not np.allclose(a, b, rtol=0, atol=tolerance, equal_nan=True):
            by = f", by up to {np.nanmax(np.abs(a - b)):.2g}"
            lines.append(f"{name}: {np.count_nonzero(~np.isclose(a, b, 0, tolerance, True))} of {a.size} differ{by}")
    return lines


def apart(text: str) -> tuple[str, np.ndarray]:
    """A text with each decimal fraction left out, and these numbers."""
    return re.sub(FRACTION, "#", text), np.array(re.findall(FRACTION, text), dtype=np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path, help="A file with one text per line")
    parser.add_argument("output", type=Path, help="The .npz file to write")
    parser.add_argument("--against", type=Path, help="The .npz file of the other version")
    parser.add_argument("--tolerance", type=float, default=0.0, help="By how much numbers may differ")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = snapshot([line for line in options.texts.read_text(encoding="utf8").splitlines() if line.strip()])
    np.savez(options.output, **found)  # type: ignore[arg-type]  # numpy takes none of these for an option
    if options.against:
        with np.load(options.against) as before:
            lines = differences(dict(before), found, options.tolerance)
        print("\n".join(lines) or "All scores, wordpieces and outputs of commands are equal.")
        sys.exit(bool(lines))


if __name__ == "__main__":
    main()
