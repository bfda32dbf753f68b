"""Data sets of a few rows, in the formats of the real ones."""

import json
import sys
import zipfile

import pytest
import torch
import transformers as hf

from scripts.paper import annotate, blimp, causal, frequency, inflation, length, oov, published, report, scores
from scripts.paper import assets as assets_command

from ..conftest import get_tokenizer

EVENTS = [
    "The traveler lost the souvenir.",
    "The souvenir lost the traveler.",
    "The hooligan wrecked the vehicle.",
    "The vehicle was wrecked by the hooligan.",
    "The carnivore ate the steak.",
    "The steak was eaten by the unemployed carnivore.",
    "The cat slept.",
    "The king, who was old, praised the exhausted cook.",
]
ITEMS = [1, 1, 2, 2, 3, 3, 4, 5]
PAIRS = [
    ("The cats sleep.", "The cats sleeps.", "subject_verb_agreement"),
    ("The hooligan wrecks it.", "The hooligan wreck it.", "subject_verb_agreement"),
    ("Who can you see?", "Who can you see him?", "island_effects"),
    ("A woman hurt herself.", "A woman hurt himself.", "anaphor_agreement"),
]
BROWN = (
    "\n\n\tThe/at jury/nn said/vbd ``/`` it/pps is/bez so/rb ''/'' ,/, did/dod n't/* ?/. ?/.\n\n\n\t(/( No/at )/) ./.\n"
)


@pytest.fixture(scope="session")
def tiny_assets(tmp_path_factory):
    """A folder of assets laid out as the real one."""
    folder = tmp_path_factory.mktemp("assets")
    for name in ("eventsadapt", "brown", "blimp"):
        (folder / name).mkdir()
    lines = ['"ItemNum","Sentence"', *(f'"{item}","{sentence}"' for item, sentence in zip(ITEMS, EVENTS))]
    (folder / "eventsadapt" / "clean_EventsAdapt_SentenceSet.csv").write_text("\n".join(lines) + "\n")
    with zipfile.ZipFile(folder / "brown" / "brown.zip", "w") as archive:
        archive.writestr("brown/ca01", BROWN)
        archive.writestr("brown/README", "no text of the corpus")
    for good, bad, term in PAIRS:
        with (folder / "blimp" / f"{term}_1.jsonl").open("a") as file:
            file.write(json.dumps({"sentence_good": good, "sentence_bad": bad, "linguistics_term": term}) + "\n")
    return folder


MODULES = {
    "assets": assets_command, "scores": scores, "oov": oov, "inflation": inflation, "length": length,
    "frequency": frequency, "causal": causal, "blimp": blimp, "report": report, "annotate": annotate,
    "published": published,
}  # fmt: skip


@pytest.fixture
def command(monkeypatch, capsys):
    """command(module, *arguments): `python -m scripts.paper.MODULE ARGUMENTS`, and what it printed."""

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        MODULES[name].main()
        return capsys.readouterr().out

    def fails(name, *arguments):
        with pytest.raises(SystemExit) as error:
            run(name, *arguments)
        assert error.value.code == 1
        # wasabi breaks lines to the terminal's width
        return " ".join(capsys.readouterr().err.split())

    run.fails = fails
    return run


@pytest.fixture(scope="session")
def causal_folder(tmp_path_factory):
    """A tiny random GPT-2."""
    folder = tmp_path_factory.mktemp("gpt2")
    tokenizer = get_tokenizer("causal-gpt2")
    config = hf.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=140)
    torch.manual_seed(0)
    hf.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def results(tiny_assets, tmp_path_factory, model_folder, causal_folder):
    """All commands, run on the tiny data sets with a tiny model."""
    return run_all(tiny_assets, tmp_path_factory.mktemp("results"), model_folder("bert"), causal_folder)


def run_all(assets, folder, model, causal):
    table = folder / "frequencies.csv"
    words = sorted({word for event in EVENTS for word in event.lower().rstrip(".").split() if word.isalpha()})
    table.write_text("word,frequency\n" + "".join(f"{word},{len(word)}\n" for word in words[1:]))
    where = ["--assets", assets, "--results", folder]
    with pytest.MonkeyPatch.context() as patch:
        for name, *arguments in (
            ("oov", "--tokenizers", model, *where),
            ("scores", "--models", model, "--causal-models", causal, "--blimp-pairs", 2, *where),
            ("inflation", "--results", folder),
            ("length", "--results", folder),
            ("frequency", "--results", folder, "--frequencies", table),
            ("causal", "--results", folder),
            ("blimp", *where),
            ("report", "--results", folder),
        ):
            patch.setattr(sys, "argv", [name, *map(str, arguments)])
            MODULES[name].main()
    return folder
