"""Scripts that are written without spaces between words."""

import re

# How many pieces a word of such a script must have until it is taken for more than a word.
UNSPACED_PIECES = 8
# The scripts (Han comes last, since Japanese has it, too), and the language of spaCy whose tokenizer divides them, and
# how.
UNSPACED = {
    "Japanese": ("\u3041-\u30ff", "ja", 'after pip install "spacy[ja]"'),
    "Thai": ("\u0e01-\u0e7f", "th", 'after pip install "spacy[th]"'),
    "Lao": ("\u0e81-\u0eff", "", ""),
    "Tibetan": ("\u0f00-\u0fff", "", ""),
    "Burmese": ("\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f", "", ""),
    "Khmer": ("\u1780-\u17ff", "", ""),
    "Chinese": ("\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff", "zh", "by character"),
}
DIVIDED = {lang for _, lang, _ in UNSPACED.values()} - {""}
UNSPACED_CHARACTER = re.compile(f"[{''.join(letters for letters, _, _ in UNSPACED.values())}]")


def script_of(text: str) -> str:
    """The first script of `UNSPACED` that a text has a letter of, which it must have."""
    return next(name for name, (letters, *_) in UNSPACED.items() if re.search(f"[{letters}]", text))


def language_that_divides(text: str) -> str:
    """The setting with which spaCy divides text of such a script in words, and how; "" if it cannot."""
    _, lang, note = UNSPACED[script_of(text)]
    return f"`lang={lang!r}` (spacy.blank({lang!r}), {note})" if lang else ""
