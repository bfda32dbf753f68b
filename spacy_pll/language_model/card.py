"""What a model card says: README.md with a YAML header, as on the Hugging Face hub."""

from pathlib import Path

import srsly
from spacy.util import find_matching_language

from .hub import cached_file

CARD = "README.md"


def card_languages(source: str, revision: str | None, cache_dir: str | Path | None = None) -> frozenset[str]:
    """The languages that the card of a model names, as spaCy's codes.

    source (str): A folder, or a name on the hub. Nothing is downloaded.
    RETURNS (frozenset[str]): Empty where there is no card, where it names no language, or where it names all or others
        than by their codes.
    """
    path = cached_file(source, CARD, revision, cache_dir) or Path(source, CARD)
    return languages_of(path.read_text(encoding="utf8", errors="replace")) if path.is_file() else frozenset()


def languages_of(card: str) -> frozenset[str]:
    """The languages in the header of a card: see `card_languages`."""
    begin, _, rest = card.partition("---\n")
    header, end, _ = rest.partition("\n---")
    if begin.strip() or not end:
        return frozenset()
    try:
        named = srsly.yaml_loads(header).get("language")
    except Exception:  # whatever a header may hold that is not YAML, or not a mapping
        return frozenset()
    codes = [
        str(code).lower().replace("_", "-").split("-")[0] for code in (named if isinstance(named, list) else [named])
    ]
    if named is None or any(len(code) > 3 or code == "mul" for code in codes):  # "multilingual", "code", "English"
        return frozenset()
    # Norwegian is `no` on the hub; spaCy has its two written forms.
    norwegian = {"nb", "nn"} if "no" in codes else set()
    return frozenset({*codes, *norwegian, *(found for code in codes if (found := find_matching_language(code)))})
