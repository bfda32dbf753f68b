"""The check against published figures, without a network.

A tiny model stands in for bert-base-cased, and its figures are computed by the plainest possible scorer.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest
import spacy

from scripts.paper import published
from scripts.paper.data import read_blimp, read_dataset
from scripts.paper.names import MASKED_METRICS
from scripts.paper.names import published as published_table
from scripts.paper.published_texts import data_sets_folder

from ..conftest import data_folder, get_tokenizer
from ..reference import load_model, log_probabilities, read, score

ROOT = Path(__file__).parents[2]
MODEL = "bert-base-cased"


def reference_score(text, folder, metric):
    """The sum of a text. As in K&I, `sentence_l2r` masks what follows the target to the end, [SEP] included."""
    transformer, tokenizer = load_model(folder)
    doc = spacy.blank("en")(text)
    if metric != "sentence_l2r":
        return sum(score(doc, transformer, tokenizer, metric, "tokenizer")[0])
    ids, kept, _, _ = read(doc, tokenizer, "tokenizer")
    return sum(log_probabilities(transformer, tokenizer, ids, range(i, len(ids)))[i] for i in kept)


@pytest.fixture(scope="module")
def stand_in(model_folder, tiny_assets, tmp_path_factory):
    """A folder in which `bert-base-cased` is a tiny model, and `published` has its figures."""
    folder = tmp_path_factory.mktemp("published")
    shutil.copytree(model_folder("bert"), folder / MODEL)
    (folder / "published").mkdir()
    pairs = read_blimp(tiny_assets / "blimp", 1000)
    lines = ["# a comment, with commas", f"model,paradigm,{','.join(MASKED_METRICS)}"]
    for paradigm in sorted({pair.paradigm for pair in pairs}):
        mine = [pair for pair in pairs if pair.paradigm == paradigm]
        shares = []
        for metric in MASKED_METRICS:
            won = [
                reference_score(pair.good, folder / MODEL, metric) > reference_score(pair.bad, folder / MODEL, metric)
                for pair in mine
            ]
            shares.append(f"{sum(won) / len(won):.3f}")
        lines.append(f"{MODEL},{paradigm},{','.join(shares)}")
    (folder / "published" / published.PARADIGMS).write_text("\n".join(lines) + "\n")
    lines = ["model,row,sentence,original,pieces"]
    for row, sentence in enumerate(["The raider caught the illness.", "The hooligan wrecked the vehicle."]):
        lines.append(f"{MODEL},{row},{sentence},{reference_score(sentence, folder / MODEL, 'original'):.6f},0")
    (folder / "published" / published.SENTENCES).write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def arguments(stand_in, tiny_assets, monkeypatch):
    monkeypatch.chdir(stand_in)
    return ["--models", MODEL, "--assets", tiny_assets, "--published", stand_in / "published"]


def test_all_figures_agree(command, arguments):
    printed = command("published", *arguments)
    assert "14 of 14 figures agree" in printed and "DIFFERS" not in printed
    rows = [line.split() for line in printed.splitlines()]
    assert ["island_effects_1", "sentence_l2r"] in [row[:2] for row in rows]
    assert all(float(row[-3]) == pytest.approx(float(row[-2]), abs=1e-3) for row in rows[1:-1])


def test_paradigms_can_be_chosen(command, arguments):
    assert "6 of 6 figures agree" in command("published", *arguments, "--paradigms", "island_effects_1")
    assert "2 of 2 figures agree" in command("published", *arguments, "--paradigms", "none")
    message = command.fails("published", *arguments, "--paradigms", "island_effect")
    assert "no figures for a paradigm 'island_effect'" in message


@pytest.mark.parametrize(
    ("table", "column", "change", "agrees"),
    [
        (published.SENTENCES, -2, 9e-4, True),
        (published.SENTENCES, -2, 1.1e-3, False),
        (published.PARADIGMS, -1, 0.003, True),
        (published.PARADIGMS, -1, 0.004, False),
        (published.PARADIGMS, 2, -0.5, False),
    ],
)
def test_a_figure_that_differs(command, arguments, stand_in, tmp_path, capsys, table, column, change, agrees):
    shutil.copytree(stand_in / "published", tmp_path / "published")
    path = tmp_path / "published" / table
    *lines, last = path.read_text().splitlines()
    cells = last.split(",")
    cells[column] = f"{float(cells[column]) + change:.6f}"
    path.write_text("\n".join([*lines, ",".join(cells)]) + "\n")
    arguments = [*arguments, "--published", tmp_path / "published"]
    if agrees:
        assert "14 of 14" in command("published", *arguments)
    else:
        # The exit code is 1, and the table names the figure.
        message = command.fails("published", *arguments)
        assert f"Figures differ from the published ones: {MODEL}" in message


def test_the_row_that_differs_is_marked():
    row = str(published.Comparison("wh_island", "word_l2r", 0.5, 0.75, 0.003))
    assert row.split() == ["wh_island", "word_l2r", "0.5000", "0.7500", "-0.2500", "DIFFERS"]


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_sentence_l2r_masks_the_special_token_at_the_end(make_nlp, model_folder, architecture):
    nlp = make_nlp(architecture)
    texts = ["The traveler lost the souvenir.", "The hooligans can't travel.", "The traveler lost the souvenir.", "a"]
    expected = {text: reference_score(text, model_folder(architecture), "sentence_l2r") for text in texts}
    assert published.scores_with_end(nlp, texts, batch_size=2) == pytest.approx(expected, abs=1e-4)
    # It is another number than that of the package, which leaves the special token as it is.
    package = make_nlp(architecture, metrics=["sentence_l2r"])
    assert all(abs(package(text)._.pll - expected[text]) > 1e-3 for text in texts)


def test_a_tie_counts_as_wrong(make_nlp):
    pair = published.Pair("The cat slept.", "The cat slept.")
    nlp = make_nlp("bert", metrics=published.PACKAGE_METRICS, words="tokenizer")
    assert set(published.accuracies(nlp, [pair]).values()) == {0.0}


class TestWithoutTheHub:
    @pytest.fixture
    def absent(self, tiny_assets, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        return ["--models", "nobody/bert-base-cased", "--assets", tiny_assets, "--paradigms", "none"]

    def test_the_check_is_skipped(self, command, absent):
        assert "Skipped: nobody/bert-base-cased is not on this machine" in command("published", *absent)

    @pytest.mark.parametrize(
        ("answer", "reachable"), [(URLError("no route"), False), (HTTPError("", 403, "", {}, None), True), (None, True)]
    )
    def test_what_is_no_network(self, monkeypatch, answer, reachable):
        class Response:
            def close(self):
                pass

        def urlopen(request, timeout):
            assert request.get_method() == "HEAD" and request.full_url.startswith("https://")
            if answer:
                raise answer
            return Response()

        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr(published, "urlopen", urlopen)
        assert published.hub_is_reachable() is reachable

    def test_a_model_that_the_hub_does_not_have_is_an_error(self, command, absent, monkeypatch):
        monkeypatch.setattr(published, "hub_is_reachable", lambda: True)
        assert "The model 'nobody/bert-base-cased' was not found" in command.fails("published", *absent)

    def test_a_damaged_folder_is_an_error(self, command, arguments, stand_in, tmp_path, monkeypatch):
        shutil.copytree(stand_in / MODEL, tmp_path / MODEL)
        (tmp_path / MODEL / "model.safetensors").write_bytes(b"half")
        monkeypatch.chdir(tmp_path)
        assert "cannot be read" in command.fails("published", *arguments)


def test_nothing_to_compare_is_an_error(command, arguments, tmp_path):
    (tmp_path / published.PARADIGMS).write_text("model,paradigm\nroberta-base,wh_island\n")
    (tmp_path / published.SENTENCES).write_text("model,sentence\n")
    arguments = ["--models", "roberta-base", *arguments[2:4], "--published", tmp_path]
    assert "there is no figure for roberta-base" in command.fails("published", *arguments, "--paradigms", "none")
    assert "has no wh_island.jsonl" in command.fails("published", *arguments)
    nowhere = ["--models", "roberta-base", "--published", tmp_path, "--assets", tmp_path / "nowhere"]
    assert command("published", *nowhere).startswith("Skipped: ")
    assert "There are no published figures for 'gpt2'" in command.fails("published", "--models", "gpt2", *arguments[2:])


def test_the_figures_of_each_paradigm_have_the_means_of_table_1():
    figures = published.read_figures(published.HERE / published.PARADIGMS)
    titles = {"bert-base-cased": "BERT (base)", "bert-large-cased": "BERT (large)",
              "roberta-base": "RoBERTa (base)", "roberta-large": "RoBERTa (large)"}  # fmt: skip
    assert set(figures) == set(titles)
    table = published_table().set_index(["model", "metric"])["Overall"]
    for model, rows in figures.items():
        assert len({row["paradigm"] for row in rows}) == len(rows) == 67
        for metric in MASKED_METRICS:
            mean = 100 * sum(float(row[metric]) for row in rows) / len(rows)
            assert mean == pytest.approx(table[titles[model], metric], abs=0.06)


def test_the_paradigms_are_those_of_blimp():
    names = {path.stem for path in data_folder("data/blimp").glob("*.jsonl")}
    for rows in published.read_figures(published.HERE / published.PARADIGMS).values():
        assert {row["paradigm"] for row in rows} == names


def test_the_sentences_have_the_published_numbers_of_pieces():
    data_folder(f"tokenizers/{MODEL}")
    tokenizer = get_tokenizer(MODEL)
    rows = published.read_figures(published.HERE / published.SENTENCES)[MODEL]
    assert len(rows) == 10
    for row in rows:
        assert len(tokenizer(row["sentence"])["input_ids"]) == int(row["pieces"])


def test_the_sentences_are_those_of_eventsadapt():
    sentences = read_dataset("eventsadapt", data_folder("data"))
    for row in published.read_figures(published.HERE / published.SENTENCES)[MODEL]:
        assert sentences[int(row["row"])] == row["sentence"]


@pytest.mark.hub
def test_bert_base_cased_from_the_hub():
    """Ten sentences, and where BLiMP is there the paradigm on which the metrics differ most. Minutes on a CPU."""
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    assets = ROOT / "assets"
    if "SPACY_PLL_DATA" in os.environ:
        assets = data_sets_folder(os.environ["SPACY_PLL_DATA"])
    paradigm = "inchoative" if (assets / "blimp").is_dir() else "none"
    command = [sys.executable, "-m", "scripts.paper.published", "--models", MODEL, "--paradigms", paradigm]
    done = subprocess.run(
        [*command, "--assets", assets], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.stdout.startswith("Skipped"):
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout
