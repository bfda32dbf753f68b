"""The English model that comes with the package, through the three lines that a new user types."""

import os
import subprocess
import sys

import pytest
import spacy
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertConfig, BertForMaskedLM

from ..conftest import BUILTIN


@pytest.fixture(scope="module")
def nlp():
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"metrics": ["word_l2r", "original"]})
    return nlp


def test_three_lines():
    nlp = spacy.blank("en")
    nlp.add_pipe("pll")
    doc = nlp("The traveler lost the souvenir.")
    assert doc._.pll == pytest.approx(sum(token._.pll for token in doc)) and doc._.pll < 0
    assert doc[4].text == "souvenir" and doc[4]._.pll < doc[3]._.pll
    assert doc._.pppl > 1


def test_size_and_precision():
    assert (BUILTIN / "model.safetensors").stat().st_size <= 24_000_000
    weights = load_file(BUILTIN / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    model = AutoModelForMaskedLM.from_pretrained(BUILTIN)
    assert model.dtype == torch.float32  # in transformers alone, too
    assert sum(parameter.numel() for parameter in model.parameters()) <= 12_000_000
    assert AutoTokenizer.from_pretrained(BUILTIN).model_max_length == model.config.max_position_embeddings
    assert (BUILTIN / "README.md").exists()


def test_word_l2r_does_not_let_a_words_pieces_give_each_other_away(nlp):
    doc = nlp("The traveler lost the souvenir.")
    souvenir = doc[4]
    assert souvenir._.pll_pieces > 1
    assert souvenir._.pll_word_l2r <= souvenir._.pll_original
    assert doc[0]._.pll_pieces == 1 and doc[0]._.pll_word_l2r == doc[0]._.pll_original


# Plain forms, and how print has them.
IN_PRINT = {
    "'": "‘’‚‛′‹›´", '"': "“”„‟″«»", "...": "…", "..": "‥", "-": "‐‑‒−", "—": "―", "fi": "ﬁ", "ffl": "ﬄ",
    " ": "\u00a0\u2009\u202f\u3000", "é": ["e\u0301"], "ñ": ["n\u0303"],
}  # fmt: skip


@pytest.mark.parametrize(("plain", "printed"), [(plain, one) for plain, many in IN_PRINT.items() for one in many])
def test_what_print_has_is_read_as_its_plain_form(plain, printed):
    text = f"They said no{plain}then he left."
    tokenizer = AutoTokenizer.from_pretrained(BUILTIN)
    expected, read = (tokenizer(one)["input_ids"] for one in (text, text.replace(plain, printed)))
    assert read == expected and tokenizer.unk_token_id not in read


def test_places_stay_those_of_the_text():
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"metrics": ["original"], "keep_pieces": True})
    doc, plain = nlp("“Wait…” she said; it’s ﬁne – go."), nlp('"Wait..." she said; it\'s fine – go.')
    record = doc._.pll_data
    assert [doc.text[a:b] for a, b in zip(record["start"], record["end"])][:6] == ["“", "Wait", "…", "…", "…", "”"]
    assert [token._.pll_pieces for token in doc if token.text in ("“", "…", "’s", "ﬁne")] == [1, 3, 2, 1]
    assert [token.text for token in doc][record["token"][-1]] == "."
    assert doc._.pll == pytest.approx(plain._.pll, abs=1e-4)
    assert sum(token._.pll for token in doc) == pytest.approx(doc._.pll)


def test_it_has_learned_english(nlp):
    better = ["She gave him the book.", "I do not know what to say.", "These men work here."]
    worse = ["She gave he the book.", "I do not know say to what.", "These man work here."]
    for good, bad in zip(nlp.pipe(better), nlp.pipe(worse)):
        assert good._.pll > bad._.pll


MEASURE = """
import sys
import spacy
from pathlib import Path
words = "The traveler lost the souvenir and went home to look for it again , he said .".split()

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])

def score(nlp, n):
    doc = nlp(" ".join(words[i % len(words)] for i in range(n)))
    assert len(doc) == n
    tokenizer = nlp.get_pipe("pll").model.load().tokenizer
    assert doc._.pll_data["pieces"] == tokenizer.encode(doc.text).tokens[1:-1]
    assert all(token._.pll < 0 for token in doc)

builtin, small = spacy.blank("en"), spacy.blank("en")
builtin.add_pipe("pll", config={"keep_pieces": True})
small.add_pipe("pll", config={"keep_pieces": True, "model": sys.argv[1]})
score(small, 300)
before = peak()
score(small, 5000)
grown = peak() - before
score(builtin, 100)
print(grown, peak())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_a_doc_of_5000_words_is_scored_whole_in_bounded_memory(tmp_path):
    """It takes no more than one of 300, which fills passes. A small model with the same pieces and windows shows it."""
    tokenizer = AutoTokenizer.from_pretrained(BUILTIN)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    # With weights of the usual size, it would hardly see what follows a piece.
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=256, initializer_range=0.5, **sizes)
    BertForMaskedLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    # Not `ru_maxrss`: a process inherits that of the one which starts it, and this one may have had a peak of its own.
    out = subprocess.run([sys.executable, "-c", MEASURE, tmp_path], capture_output=True, text=True, env={**os.environ})
    assert out.returncode == 0, out.stderr
    grown, peak = map(int, out.stdout.split())
    # In kB. What the C library keeps for later differs from run to run, by up to 150 MB.
    assert grown < 250_000 and peak < 1_500_000
