"""The analyses' numbers, against a second implementation: plain loops over full distributions, textbook formulas."""

import csv
import math
import random

import numpy as np
import pytest
import transformers as hf
from spacy.tokens import Doc
from spacy.vocab import Vocab

from scripts.paper.correlation import mean, pearson, pearson_difference
from scripts.paper.data import CONTEXTS, read_blimp
from scripts.paper.files import read_json

from .. import reference
from ..conftest import BUILTIN
from ..language_model.test_causal import brute_force
from .conftest import EVENTS, ITEMS, run_all

METRICS = {"original": "PLL-original", "word_l2r": "PLL-word-l2r", "whole_word": "PLL-whole-word",
           "sentence_l2r": "PLL-sentence-l2r"}  # fmt: skip


def plain_pearson(x, y):
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    cross = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    return cross / math.sqrt(sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y))


def resampled(x, y, items):
    """Bootstrap samples of r over items, sorted, by drawing the items one by one."""
    draw, found = random.Random(0), []
    members = {item: [i for i, own in enumerate(items) if own == item] for item in items}
    while len(found) < 5000:
        sample = [i for item in draw.choices(list(members), k=len(members)) for i in members[item]]
        if len({x[i] for i in sample}) > 1 and len({y[i] for i in sample}) > 1:
            found.append(plain_pearson([x[i] for i in sample], [y[i] for i in sample]))
    return sorted(found)


def test_variants_of_an_item_say_no_more_than_the_item():
    """Four equal variants of each item: the interval of the items, twice as wide as that of so many items."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=100)
    y = x + rng.normal(size=100)
    alone, four = pearson(x, y), [np.repeat(values, 4) for values in (x, y, np.arange(100))]
    assert pearson(*four) == {**alone, "r": pytest.approx(alone["r"]), "low": pytest.approx(alone["low"]),
                              "high": pytest.approx(alone["high"]), "n": 400}  # fmt: skip
    narrow = pearson(*four[:2])
    assert alone["high"] - alone["low"] == pytest.approx(2 * (narrow["high"] - narrow["low"]), rel=0.15)
    assert mean(four[0], four[2])["high"] == pytest.approx(mean(x)["high"])
    assert mean(four[0])["high"] < mean(x)["high"]
    # Fisher's interval, for things that are independent.
    half = 1.96 / math.sqrt(97)
    low, high = math.tanh(math.atanh(alone["r"]) - half), math.tanh(math.atanh(alone["r"]) + half)
    assert (alone["low"], alone["high"]) == pytest.approx((low, high), abs=0.03)
    change = pearson_difference(x, y, -y)
    assert change["r"] == pytest.approx(2 * alone["r"]) and change["low"] == pytest.approx(2 * alone["low"])


class Plain:
    """Scores of texts, one forward pass a wordpiece."""

    def __init__(self, folder):
        self.transformer = hf.AutoModelForMaskedLM.from_pretrained(folder).float().eval()
        self.tokenizer = hf.AutoTokenizer.from_pretrained(folder)

    def pieces(self, text, metric):
        """The score of each wordpiece, and where each begins."""
        doc = Doc(Vocab(), text.split(" "), spaces=[True] * text.count(" ") + [False])
        scores, _ = reference.score(doc, self.transformer, self.tokenizer, metric, "tokenizer")
        encoding = self.tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
        return scores, [start for start, _ in encoding["offset_mapping"]]

    def sentence(self, text, metric):
        return sum(self.pieces(text, metric)[0])

    def word(self, text, context, metric):
        before, after = context.split("{}")
        scores, starts = self.pieces(text, metric)
        mine = [s for s, start in zip(scores, starts) if len(before) - 1 <= start < len(text) - len(after)]
        return sum(mine), len(mine)


def rows(results, analysis, table, **equal):
    found = read_json(results / analysis / f"{table}.json")
    return [row for row in found if all(row[key] == value for key, value in equal.items())]


def check_numbers(results, assets, plain):
    """Every number of the tables on sentences, words and pairs, made again."""
    for metric, title in METRICS.items():
        lengths = [len(plain.tokenizer.tokenize(event)) for event in EVENTS]
        negative = [-plain.sentence(event, metric) for event in EVENTS]
        (row,) = rows(results, "length", "length", metric=title)
        r = plain_pearson(lengths, negative)
        assert row["r"] == pytest.approx(r, abs=1e-4) and row["n"] == len(EVENTS)
        # Outside an end of 2,000 samples are 2.5 % of them, and by chance 1.5 to 3.5 % of others. Of five items there
        # are few different samples, so the ends may be far apart all the same.
        samples = resampled(lengths, negative, ITEMS)
        assert samples[75] - 1e-6 <= row["low"] <= samples[175] + 1e-6
        assert samples[-176] - 1e-6 <= row["high"] <= samples[-76] + 1e-6
        assert row["r_words"] == pytest.approx(plain_pearson([len(e.split()) for e in EVENTS], negative), abs=1e-4)

        points = []
        for pair in read_blimp(assets / "blimp", 2):
            good, bad = plain.sentence(pair.good, metric), plain.sentence(pair.bad, metric)
            # To the tiny tokenizer most words are unknown, so some pairs are the same text: a tie.
            points.append(0.5 if abs(good - bad) < 1e-9 else float(good > bad))
        (row,) = rows(results, "blimp", "table-3", metric=title, source="here")
        assert row["Overall"] == pytest.approx(100 * sum(points) / len(points))

    every = rows(results, "frequency", "words")
    for context in CONTEXTS:
        mine = [row for row in every if row["context"] == context and "original" in row and row["original"] is not None]
        assert len(mine) > 15
        for row in mine[::3]:
            for metric in METRICS:
                score, pieces = plain.word(CONTEXTS[context].format(row["word"]), CONTEXTS[context], metric)
                assert row[metric] == pytest.approx(score, abs=1e-3) and row["pieces"] == pieces
        for metric, title in METRICS.items():
            (row,) = rows(results, "frequency", "frequency", context=context, metric=title)
            r = plain_pearson([w["log_frequency"] for w in mine], [w[metric] for w in mine])
            assert row["r"] == pytest.approx(r, abs=1e-6) and row["n"] == len(mine)


def test_numbers_agree_with_a_plain_implementation(results, tiny_assets, model_folder):
    check_numbers(results, tiny_assets, Plain(model_folder("bert")))


def test_frequencies_of_the_table(results):
    (first, *_) = rows(results, "frequency", "words", word="souvenir")
    assert first["log_frequency"] == pytest.approx(math.log(8))
    # The first word, in the order of the alphabet, is not in the table: left out, and said so.
    assert not rows(results, "frequency", "words", word="ate")
    assert "Words without one: 1 (ate)" in read_json(results / "frequency" / "contents.json")["about"]


def test_left_to_right(results, model_folder, causal_folder):
    plain = Plain(model_folder("bert"))
    likelihood = [sum(brute_force(event, causal_folder)) for event in EVENTS]
    for metric, title in METRICS.items():
        (row,) = rows(results, "causal", "causal", metric=title)
        expected = plain_pearson([plain.sentence(event, metric) for event in EVENTS], likelihood)
        assert row["r"] == pytest.approx(expected, abs=1e-4)


def test_the_left_to_right_table_is_put_into_a_page(results, command, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- table: left-to-right model -->\n<!-- end -->\n", encoding="utf8")
    command("causal", "--results", results, "--write", page)
    written = page.read_text(encoding="utf8").replace("−", "-")
    assert "| masked model | left-to-right model | metric | r |" in written
    for row in rows(results, "causal", "causal"):
        cells = [row["model"], row["left_to_right"], row["metric"]]
        assert f"| {' | '.join(cells)} | {row['r']:.3f} [{row['low']:.3f}, {row['high']:.3f}] |" in written


def test_inflation(results, model_folder):
    plain = Plain(model_folder("bert"))
    sentence = EVENTS[0]
    scores, starts = plain.pieces(sentence, "word_l2r")
    (row,) = rows(results, "inflation", "inflation", word="souvenir")
    place = sentence.index("souvenir")
    inside = [s for s, start in zip(scores, starts) if place <= start < place + 8]
    assert row["word_l2r"] == pytest.approx(sum(inside), abs=1e-4) and len(row["pieces"].split()) == len(inside)
    assert row["sentence_word_l2r"] == pytest.approx(sum(scores), abs=1e-4)
    differences = rows(results, "inflation", "split-words", metric="PLL-word-l2r")[0]
    assert differences["split_words"] > 5 and differences["low"] < differences["mean_difference"] < differences["high"]


def test_every_item_has_its_files(results):
    for folder in ("oov", "inflation", "length", "frequency", "causal", "blimp"):
        items = read_json(results / folder / "contents.json")["items"]
        assert {item["kind"] for item in items} == {"table", "figure"}
        for item in items:
            if item["kind"] == "table":
                found = read_json(results / folder / f"{item['name']}.json")
                with (results / folder / f"{item['name']}.csv").open(newline="") as file:
                    assert len(list(csv.reader(file))) == len(found) + 1
            else:
                assert (results / folder / f"{item['name']}.svg").read_text().endswith("</svg>\n")
                assert (results / folder / f"{item['name']}.png").read_bytes().startswith(b"\x89PNG")


def test_no_left_to_right_model(command, tiny_assets, tmp_path, model_folder):
    command("scores", "--models", model_folder("bert"), "--assets", tiny_assets, "--results", tmp_path)
    assert "No left-to-right model was given" in command("causal", "--results", tmp_path)
    contents = read_json(tmp_path / "causal" / "contents.json")
    assert "No left-to-right model was given" in contents["about"] and contents["items"] == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("word,frequency\na,1\nb,0\n", "line 3: the frequency must be a positive number; it is '0'"),
        ("word,frequency\na,many\n", "line 2: the frequency must be a positive number; it is 'many'"),
        ("word,count\na,1\n", "line 2: the columns `word` and `frequency` are needed"),
        ("word,frequency\na\n", "line 2: the row has 1 fields, but the header has 2"),
    ],
)
def test_malformed_frequencies(command, results, tmp_path, content, message):
    table = tmp_path / "table.csv"
    table.write_text(content)
    before = (results / "frequency" / "frequency.json").read_bytes()
    assert message in command.fails("frequency", "--results", results, "--frequencies", table)
    assert (results / "frequency" / "frequency.json").read_bytes() == before


@pytest.mark.slow
def test_numbers_of_the_built_in_model(tiny_assets, tmp_path, causal_folder):
    """As the report gives them, on the tiny data sets."""
    results = run_all(tiny_assets, tmp_path, "builtin", causal_folder)
    check_numbers(results, tiny_assets, Plain(BUILTIN))
    report = (results / "report.md").read_text()
    for row in rows(results, "length", "length", model="built-in"):
        assert f"| built-in | EventsAdapt | {row['metric']} | 8 | {row['r']:.3f} |" in report
