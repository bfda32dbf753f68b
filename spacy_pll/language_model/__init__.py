"""What answers: language models of Hugging Face transformers, loaded, checked and run."""

from pathlib import Path

# The folder of the English model that comes with this package.
BUILTIN = Path(__file__).parent / "builtin"
# Files of a model's folder that people read. They are saved with the model, and its scores do not depend on them.
DOCUMENTS = ("README.md", "LICENSE", "LICENSE.md", "LICENSE.txt", "NOTICE")
