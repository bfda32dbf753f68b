"""What answers: language models of Hugging Face transformers, loaded, checked and run."""

from pathlib import Path

# The folder of the English model that comes with this package.
BUILTIN = Path(__file__).parent / "builtin"
# How it is called where a name is needed.
BUILTIN_NAME = "builtin"
BUILTIN_NAMES = (BUILTIN_NAME, "built-in")
# Its language, as spaCy's code.
BUILTIN_LANGUAGE = "en"
# How often each of its wordpieces occurs in its training text. It is beside the folder, whose checksum identifies the
# model, because no score of the model depends on it.
BUILTIN_UNIGRAMS = Path(__file__).parent / "builtin_unigrams.json"
# Files of a model's folder that people read. They are saved with the model, and its scores do not depend on them.
DOCUMENTS = ("README.md", "LICENSE", "LICENSE.md", "LICENSE.txt", "NOTICE")
