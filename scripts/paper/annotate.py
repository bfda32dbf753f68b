"""Score a corpus: one .spacy file for each .txt file of a folder and its subfolders, in which each line is a text.

    python -m scripts.paper.annotate CORPUS OUTPUT [--model builtin] [--metrics word_l2r]

Each OUTPUT/NAME.spacy is a DocBin whose tokens carry their scores. Each is written atomically, and only if its text or
a setting has changed. `pll score FOLDER OUTPUT.spacy` writes one file for the whole folder, and scores all of it again
when a text has changed.
"""

import argparse
from pathlib import Path

from spacy.tokens import DocBin

from spacy_pll import make_pipeline
from spacy_pll.corpus.readers import read_records

from .errors import PLLError, shown_errors
from .files import read_json, sha256, write_json, write_whole
from .names import BUILTIN, split_list
from .scores import Model, identify


def annotate(path: Path, target: Path, nlp) -> int:
    """Score the texts of a file. RETURNS: How many there are, without empty lines."""
    kept = DocBin(attrs=["ORTH"], store_user_data=True)
    texts = (str(record.text) for record in read_records(str(path)))
    n = 0
    for doc in nlp.pipe((text for text in texts if text.strip()), batch_size=128):
        kept.add(doc)
        n += 1
    write_whole(target, kept.to_bytes())
    return n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="Folder of .txt files")
    parser.add_argument("output", type=Path, help="Folder for .spacy files")
    parser.add_argument("--model", default=BUILTIN, help="Folder or hub name. Default: the built-in model")
    parser.add_argument("--metrics", type=split_list, default=["word_l2r"], help="Comma-separated. Default: word_l2r")
    args = parser.parse_args()
    with shown_errors():
        files = sorted(args.corpus.rglob("*.txt"))
        if not files:
            raise PLLError(f"There is no .txt file in {args.corpus}. Name the folder with --vars.annotate_corpus.")
        nlp, identity = None, identify(Model(args.model, "masked"))
        for path in files:
            target = args.output / path.relative_to(args.corpus).with_suffix(".spacy")
            wanted = {"text_sha256": sha256(path), "model": identity, "metrics": args.metrics}
            record = target.with_suffix(".json")
            if target.is_file() and record.is_file() and read_json(record)["request"] == wanted:
                print(f"{target}: skipped, it is up to date")
                continue
            nlp = nlp or make_pipeline(None if args.model == BUILTIN else args.model, args.metrics)
            n = annotate(path, target, nlp)
            write_json(record, {"request": wanted, "texts": n})
            print(f"{target}: {n} texts", flush=True)


if __name__ == "__main__":
    main()
