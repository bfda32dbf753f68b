"""The special tokens around a text: whether a tokenizer puts its own ones, and what to do if it does not."""

from collections.abc import Iterator, Sequence

from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerBase

from ...errors import PLLError
from ...user_warnings import warn_user
from .slow_tokenizers import SlowTokenizer

# What the mask token must not be. (It may be `eos_token`, as of some left-to-right models that were trained further.)
NO_MASK = ("pad_token", "unk_token", "cls_token", "sep_token", "bos_token")
BEGIN, END = ("cls_token", "bos_token"), ("sep_token", "eos_token")


def check_mask_token(tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    """RAISES (ValueError): The mask token is another special token, too, so nothing would be masked with it."""
    for name, token in tokenizer.special_tokens_map.items():
        if name in NO_MASK and tokenizer.convert_tokens_to_ids(token) == tokenizer.mask_token_id:
            raise PLLError(
                f"The mask token of the tokenizer of {source!r} is {tokenizer.mask_token!r}, which stands for "
                f"{token!r}, its {name}: a model is not trained to predict what is in that place. Give the token that "
                "was the mask in training its name: tokenizer.mask_token = '[MASK]'. Then give the tokenizer with the "
                "model, or save it in the model's folder."
            )


def with_its_own(tokenizer: PreTrainedTokenizerBase, backend: Tokenizer, source: str) -> Tokenizer:
    """The tokenizer, or a copy that puts the special tokens around a text that it names, and warns of that.

    A tokenizer without a post-processor puts none, and one that was trained anew from another may put the ids that they
    had there. Which tokens belong around a text is only known by their names:

    - before it `cls_token`, or `bos_token` if there is no such token;
    - behind it `sep_token`, or `eos_token` if there is no such token. A tokenizer that names no `cls_token`, and puts
      something before a text, has its `eos_token` for the ends of documents alone, as those of left-to-right models do.
    """
    if isinstance(backend, SlowTokenizer):  # these put what their class says
        return backend
    names = {name: token for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    before, after = special_tokens_around(backend)
    begins, ends = ([names[name] for name in kinds if name in names] for kinds in (BEGIN, END))
    # The tokens that it puts, if the vocabulary has them. (The ids with which it puts them may be of another one.)
    first, last = ([token for token, _ in put if backend.token_to_id(token) is not None] for put in (before, after))
    if begins and not {*first} & {*begins}:
        first.insert(0, begins[0])
    if ends and not {*last} & {*ends} and ("sep_token" in names or "cls_token" in names or not before):
        last.append(ends[0])
    if [(token, backend.token_to_id(token)) for token in (*first, *last)] == [*before, *after]:
        return backend
    put = [backend.id_to_token(number) or f"the id {number}, which it does not have" for _, number in (*before, *after)]
    warn_user(
        f"The tokenizer of {source!r} names the special tokens {', '.join(dict.fromkeys(first + last))}. Around a text "
        f"it puts {', '.join(put) or 'none'}. Here {' '.join([*first, '(text)', *last])} is read, as such models are "
        "trained as a rule. If this one was trained without them, the tokenizer should not name them: set "
        f"{', '.join(f'tokenizer.{name} = None' for name in names if name in (*BEGIN, *END))}. Then give it with the "
        "model, or save it in the model's folder."
    )
    return put_around(backend, first, last)


def special_tokens_around(backend: Tokenizer) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The special tokens, with their ids, that a tokenizer puts before and after a text.

    If it leaves out what it does not know, pieces of its vocabulary are tried until one stays.
    """

    def texts() -> Iterator[str]:
        yield from ("a", "A", "1")
        yield from backend.get_vocab()

    encodings = map(backend.encode, texts())
    encoding = next((encoding for encoding in encodings if 0 in encoding.special_tokens_mask), backend.encode(""))
    tokens, special = list(zip(encoding.tokens, encoding.ids)), encoding.special_tokens_mask
    first = special.index(0) if 0 in special else len(special)
    return tokens[:first], tokens[first + special.count(0) :]


def put_around(backend: Tokenizer, before: Sequence[str], after: Sequence[str]) -> Tokenizer:
    """A copy of a tokenizer that puts these tokens around a text. The one that was given is saved as it came."""
    copy = Tokenizer.from_str(backend.to_str())
    ids = {token: copy.token_to_id(token) for token in (*before, *after)}
    copy.post_processor = TemplateProcessing(single=[*before, "$A", *after], special_tokens=list(ids.items()))
    copy.encode_special_tokens = backend.encode_special_tokens
    return copy
