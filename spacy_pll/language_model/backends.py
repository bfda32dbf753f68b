"""From a tokenizer of transformers to one that gives the place of each piece in the text."""

import re

from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Sequence, Split, WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import EsmTokenizer, PreTrainedTokenizerBase


def backend_of(tokenizer: PreTrainedTokenizerBase, source: str) -> Tokenizer:
    """What turns text into ids with their places, special tokens included.

    RAISES (ValueError): The tokenizer does not give the place of a piece.
    """
    if isinstance(tokenizer, EsmTokenizer):
        return esm_backend(tokenizer)
    if not tokenizer.is_fast:
        raise ValueError(
            f"The tokenizer of {source!r} ({type(tokenizer).__name__}) has no fast version, so it does not give the "
            "position of a piece in the text. Choose a model with a tokenizer.json."
        )
    backend: Tokenizer = tokenizer.backend_tokenizer
    return backend


def esm_backend(tokenizer: EsmTokenizer) -> Tokenizer:
    """The same ids as `EsmTokenizer`, which has no places: that of ESM-1, ESM-2 and the first Nucleotide Transformer.

    It takes the longest entry of the vocabulary at each place of the text. What is between two of them, and no white
    space, is one unknown piece.
    """
    vocabulary, unknown = tokenizer.get_vocab(), str(tokenizer.unk_token)
    longest_first = "|".join(map(re.escape, sorted(vocabulary, key=len, reverse=True)))
    backend = Tokenizer(WordLevel(vocabulary, unknown))
    backend.pre_tokenizer = Sequence([WhitespaceSplit(), Split(Regex(longest_first), "isolated")])
    around = [token for token in (tokenizer.cls_token, tokenizer.eos_token) if token is not None]
    backend.post_processor = TemplateProcessing(
        single=" $A ".join(around) if len(around) == 2 else f"{around[0]} $A",
        special_tokens=[(token, vocabulary[token]) for token in around],
    )
    return backend
