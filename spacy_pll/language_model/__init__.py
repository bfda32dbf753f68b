"""What answers: language models of Hugging Face transformers, loaded, checked and run."""

from pathlib import Path

# The folder of the English model that comes with this package.
BUILTIN = Path(__file__).parent / "builtin"
# The folder of the one-pass model that was distilled from it.
BUILTIN_ONE_PASS = Path(__file__).parent / "builtin_one_pass"
