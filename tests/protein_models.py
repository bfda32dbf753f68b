"""Tiny models of proteins, with ESM-2's vocabulary, or with residues that white space separates, as in ProtBERT."""

import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from .conftest import build_transformer

ESM_2 = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"]
PROTEIN = "MKTAYIAKQRQISFVKSHFSRQ"


def esm_tokenizer(folder, vocabulary=ESM_2, **settings):
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    return hf.EsmTokenizer(str(folder / "vocab.txt"), **settings)


def spaced_tokenizer():
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    special["mask_token"] = "[MASK]"
    vocabulary = {piece: i for i, piece in enumerate([*special.values(), *"LAGVSERTIDPKQNFYMHWC"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    return hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def save_protein_model(folder, kind, positions=140):
    """kind: "esm" or "bert". RETURNS: The transformer and its tokenizer."""
    tokenizer = esm_tokenizer(folder) if kind == "esm" else spaced_tokenizer()
    transformer = build_transformer(kind, tokenizer, positions, **({"token_dropout": True} if kind == "esm" else {}))
    transformer.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return transformer, tokenizer
