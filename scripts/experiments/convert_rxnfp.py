"""A BERT for chemical reactions in SMILES (Schwaller et al. 2021, MIT), as a checkpoint of Hugging Face.

    pip install --no-deps rxnfp==0.1.0
    python -m scripts.experiments.convert_rxnfp FOLDER

Its weights and its vocabulary are in the package `rxnfp`, which is not imported. The texts that it scores are SMILES,
reactants and reagents before `>>` and products after it: `Oc1ccccc1.BrCCC>>CCCOc1ccccc1`.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

from tokenizers import Regex, decoders, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from scripts.experiments.convert_antiberty import make_tokenizer, published_files

# From `rxnfp/tokenization.py`: an atom in brackets, an atom, a bond, a bracket, the number of a ring, an arrow.
SMILES = (
    r"\%\([0-9]{3}\)|\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\||\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$"
    r"|\%[0-9]{2}|[0-9]"
)


def smiles_tokenizer(vocabulary: list[str], max_length: int) -> PreTrainedTokenizerFast:
    """Each part of a SMILES is a piece. What is no part of one is a piece that is not known: rxnfp leaves it out."""
    tokenizer = make_tokenizer(vocabulary, pre_tokenizers.Split(Regex(SMILES), "isolated"), max_length)
    tokenizer.backend_tokenizer.decoder = decoders.Fuse()
    return tokenizer


def convert(output: Path) -> None:
    """Write the checkpoint."""
    published = published_files("rxnfp", "0.1.0") / "models/transformers/bert_pretrained"
    config = {"model_type": "bert", **json.loads((published / "config.json").read_text(encoding="utf8"))}
    output.mkdir(parents=True, exist_ok=True)
    (output / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf8")
    shutil.copyfile(published / "pytorch_model.bin", output / "pytorch_model.bin")
    vocabulary = (published / "vocab.txt").read_text(encoding="utf8").split()
    smiles_tokenizer(vocabulary, config["max_position_embeddings"]).save_pretrained(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="where to write the checkpoint")
    try:
        convert(parser.parse_args().output)
    except FileNotFoundError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
