"""The tests' tiny tokenizers: the files in tests/tokenizers are what the script beside them makes."""

import json
from pathlib import Path

import pytest

from ..conftest import SENTENCES, get_tokenizer
from ..tokenizers.make import make_all

pytestmark = pytest.mark.core


def parts(tokenizer):
    """All but the vocabulary, which is another one each time that it is made."""
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    kind = backend.pop("model")["type"]
    return backend, kind, tokenizer.special_tokens_map, tokenizer.model_max_length


def test_the_files_are_what_the_script_makes():
    made = make_all(SENTENCES)
    assert set(made) == {path.parent.name for path in Path(__file__).parents[1].glob("tokenizers/*/tokenizer.json")}
    for name, tokenizer in made.items():
        frozen = get_tokenizer(name)
        assert parts(frozen) == parts(tokenizer)
        assert abs(len(frozen) - len(tokenizer)) <= 10
