"""Words in a gap, beside one forward pass of each sentence by transformers.

    python benchmarks/slots.py [--data FOLDER] [--sentences 1000] [--words 5000] [--bert-base [TOKENIZER]] [--gpu]

Sentences of BLiMP with a gap in the place of a word, and words of one piece of the vocabulary as candidates. The ten
best of each gap are written. `pass` is the time in which transformers reads all sentences once, with a mask in the gap,
in batches by length; `one` is that of `slots` with one candidate. The model is the built-in one, unless another is
named. The best of three.
"""

import csv
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from models import add_size_option, save_random
from texts import find_tokenizer, make_parser

from spacy_pll import get_scorer, make_pipeline, read_pairs, slots

IDS = {"cpu": 2048, "cuda": 65_536}  # in a batch of transformers


def seconds(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def with_gap(sentence: str) -> str:
    """A sentence whose middle word is a gap."""
    words = sentence.split()
    words[len(words) // 2] = "___"
    return " ".join(words)


def read_once(nlp: Any, texts: list[str]) -> None:
    """Read each text in transformers' way."""
    loaded: Any = get_scorer(nlp).model.load()
    model, mask = loaded.checkpoint.transformer, loaded.checkpoint.tokenizer.mask_token
    device = model.device
    rows = sorted(loaded.checkpoint.tokenizer([text.replace("___", mask) for text in texts]).input_ids, key=len)
    while rows:
        n = max(1, IDS[device.type] // len(rows[-1]))
        batch, rows = rows[-n:], rows[:-n]
        ids = torch.zeros(len(batch), len(batch[-1]), dtype=torch.long)
        seen = torch.zeros_like(ids)
        for i, row in enumerate(batch):
            ids[i, : len(row)], seen[i, : len(row)] = torch.tensor(row), 1
        with torch.inference_mode():
            at = (ids == loaded.mask_id).nonzero()
            logits = model(ids.to(device), attention_mask=seen.to(device)).logits
            logits[at[:, 0], at[:, 1]].log_softmax(-1).cpu()


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--words", type=int, default=5000)
    add_size_option(parser, "bert-base")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if args.bert_base:
            save_random("bert-base", find_tokenizer(args.data, args.bert_base), folder)
        nlp = make_pipeline(str(folder) if args.bert_base else None)
        pairs = read_pairs(str(args.data / "data" / "blimp"))[:: 67_000 // args.sentences]
        texts = [*dict.fromkeys(with_gap(pair.good) for pair in pairs)][: args.sentences]
        tokenizer = get_scorer(nlp).model.load().tokenizer
        words = sorted(word.lstrip("Ġ▁") for word in tokenizer.get_vocab())
        words = [*dict.fromkeys(word for word in words if word.isalpha())]
        words = [word for word in words if len(tokenizer.encode(f"a {word} a", add_special_tokens=False).ids) == 3]
        words = words[: args.words]

        def write() -> None:
            found = slots(nlp, texts, words, keep=10)
            rows = [{"text": text, **one._asdict()} for text, some in zip(texts, found) for one in some]
            with open(folder / "slots.csv", "w", newline="", encoding="utf8") as file:
                table = csv.DictWriter(file, rows[0])
                table.writeheader()
                table.writerows(rows)

        once, one, all_ = (
            seconds(work) for work in (lambda: read_once(nlp, texts), lambda: slots(nlp, texts, words[:1]), write)
        )
        print(f"{len(texts):,} sentences, {len(words):,} words: pass {once:.2f} s, one {one:.2f} s, all {all_:.2f} s, "
              f"{all_ / once:.2f} passes")  # fmt: skip


if __name__ == "__main__":
    main()
