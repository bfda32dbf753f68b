"""What the package takes from transformers, read from its source: so that the step to transformers 5 stays small."""

import ast
from pathlib import Path

import pytest
import transformers

ROOT = Path(__file__).parents[2]

# Public names that both transformers 4.48 and 5 have: each was looked up in the sources of the wheel of 5.23.0, where
# `PreTrainedTokenizerFast` is an alias of `TokenizersBackend`. The others below are no longer in its common modules
# (those outside `models/`), or only to be refused or translated for old configurations, or not for fast tokenizers.
IN_BOTH = {
    "MODEL_FOR_CAUSAL_LM_MAPPING",
    "MODEL_FOR_MASKED_LM_MAPPING",
    "AutoConfig",
    "AutoModelForCausalLM",
    "AutoModelForMaskedLM",
    "AutoTokenizer",
    "BertConfig",
    "BertForMaskedLM",
    "BertTokenizerFast",
    "LlamaConfig",
    "LlamaForCausalLM",
    "ModernBertConfig",
    "ModernBertForMaskedLM",
    "PreTrainedModel",
    "PreTrainedTokenizerBase",
    "PreTrainedTokenizerFast",
    "utils.cached_file",
    "utils.logging",
}
# Arguments and methods that transformers 5 took away or renamed.
GONE_ARGUMENTS = {"safe_serialization", "use_auth_token", "torch_dtype", "load_in_8bit", "load_in_4bit", "from_tf"}
GONE_ARGUMENTS |= {"from_flax", "resume_download"}
GONE_METHODS = {"encode_plus", "batch_encode_plus", "prepare_for_model", "build_inputs_with_special_tokens"}
GONE_METHODS |= {"special_tokens_map_extended", "additional_special_tokens", "prune_heads", "get_head_mask"}
GONE_METHODS |= {"as_target_tokenizer", "truncate_sequences"}


def read(source: str):
    """What a module imports from transformers, and every keyword argument and attribute that it uses."""
    names, arguments, attributes = set(), set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "transformers":
            inner = node.module.removeprefix("transformers").lstrip(".")
            names |= {f"{inner}.{alias.name}".lstrip(".") for alias in node.names}
        elif isinstance(node, ast.Import):
            # `import transformers as hf` would hide which names are used.
            names |= {alias.name for alias in node.names if alias.name.split(".")[0] == "transformers"}
        elif isinstance(node, ast.keyword) and node.arg:
            arguments.add(node.arg)
        elif isinstance(node, ast.Attribute):
            attributes.add(node.attr)
    return names, arguments, attributes


FILES = [*sorted((ROOT / "spacy_pll").rglob("*.py")), *sorted((ROOT / "scripts").rglob("*.py"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_that_transformers_5_took_away_is_used(path):
    names, arguments, attributes = read(path.read_text(encoding="utf8"))
    assert names <= IN_BOTH, "look these up in the sources of transformers 5, then add them to IN_BOTH"
    if names:  # elsewhere such names belong to others
        assert not arguments & GONE_ARGUMENTS
        assert not attributes & GONE_METHODS


def test_the_reader_sees_what_it_looks_for():
    source = "from transformers.file_utils import x\nimport transformers.tf\nt.encode_plus(a, use_auth_token=1)"
    names, arguments, attributes = read(source)
    assert names == {"file_utils.x", "transformers.tf"}
    assert "use_auth_token" in arguments & GONE_ARGUMENTS and "encode_plus" in attributes & GONE_METHODS
    assert any(read(path.read_text(encoding="utf8"))[0] for path in FILES)


def test_the_names_are_there_in_the_installed_version():
    for name in IN_BOTH:
        value = transformers
        for part in name.split("."):
            value = getattr(value, part)
