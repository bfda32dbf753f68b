import csv
import json
import math
import statistics

import pytest
import spacy
from spacy.tokens import DocBin

from ..conftest import PARAGRAPH, SENTENCES, write_jsonl
from .conftest import run

TEXTS = [*SENTENCES[:3], "", " ", "The traveler 鯨."]


@pytest.fixture
def model(model_folder):
    return ("--model", model_folder("bert"))


def write_texts(path, texts=TEXTS):
    path.write_text("".join(text + "\n" for text in texts), encoding="utf8")
    return path


def summary(tmp_path, *arguments, **more):
    """The settings, the counts, and by scorer and measure the results."""
    run("ppl", *arguments, "-o", tmp_path / "out.json", "--force", **more)
    written = json.loads((tmp_path / "out.json").read_text())
    results = {(one["scorer"], one["measure"]): one for one in written["results"]}
    return {**written["counts"], "settings": written["settings"], "results": results}


def test_against_the_attributes(tmp_path, model, make_nlp):
    path = write_texts(tmp_path / "corpus.txt")
    result = summary(tmp_path, path, *model, "--metrics", "word_l2r,original", "--batch-size", "2")
    docs = list(make_nlp("bert", metrics=["word_l2r", "original"], keep_pieces=True).pipe(TEXTS))
    tokens = [token for doc in docs for token in doc if not token.is_space]
    pieces = [piece for doc in docs for piece in doc._.pll_data["pieces"]]
    assert (result["texts"], result["empty_texts"], result["windowed_texts"]) == (6, 2, 0)
    assert result["words"] == len(tokens)
    assert result["split_words"] == sum(token._.pll_pieces > 1 for token in tokens)
    assert result["split_share"] == result["split_words"] / result["words"]
    assert result["pieces"] == len(pieces)
    assert result["unknown_pieces"] == pieces.count("[UNK]") > 0
    for metric in ("word_l2r", "original"):
        total = sum(doc._.get(f"pll_{metric}") or 0.0 for doc in docs)
        assert result["results"][metric, "log-likelihood"]["value"] == pytest.approx(total)
        for unit, n in (("piece", len(pieces)), ("word", len(tokens))):
            found = result["results"][metric, f"pseudo-perplexity per {unit}"]
            assert (found["n"], found["value"]) == (n, pytest.approx(math.exp(-total / n))) and "low" not in found


def test_a_text_without_a_wordpiece_is_not_counted(tmp_path, model):
    path = write_texts(tmp_path / "corpus.txt")
    before = summary(tmp_path, path, *model)
    after = summary(tmp_path, write_texts(path, [*TEXTS, "\u200b \u200b"]), *model)
    before["results"]["word_l2r", "log-likelihood"]["n"] += 1
    assert after == {**before, "texts": before["texts"] + 1, "empty_texts": before["empty_texts"] + 1}


def test_what_the_terminal_shows(tmp_path, model):
    result = run("ppl", write_texts(tmp_path / "corpus.txt"), *model)
    assert "words (spaCy's tokens)" in result.stdout and "per piece" in result.stdout and "word_l2r" in result.stdout
    assert all(" texts [" in line for line in result.stderr.split("\n") if line)  # no bar where there is no terminal
    output = tmp_path / "o.json"
    assert run("ppl", tmp_path / "corpus.txt", *model, "-o", output).unwrapped_stderr.endswith(f" Wrote {output}.")


def test_every_format_gives_the_same(tmp_path, model):
    write_texts(tmp_path / "a.txt")
    write_jsonl(tmp_path / "a.jsonl", *({"line": text} for text in TEXTS))
    docs = list(spacy.blank("en").pipe(TEXTS))
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    expected = summary(tmp_path, tmp_path / "a.txt", *model)
    stdin = {"input": (tmp_path / "a.txt").read_bytes()}
    for result in (
        summary(tmp_path, tmp_path / "a.jsonl", "--column", "line", *model),
        summary(tmp_path, tmp_path / "a.spacy", *model),
        summary(tmp_path, "-", *model, **stdin),
    ):
        assert {**result, "settings": None} == {**expected, "settings": None}


def test_the_unit_of_words(tmp_path, model):
    path = write_texts(tmp_path / "a.txt", ["I can't travel ."])
    words = {unit: summary(tmp_path, path, *model, "--words", unit) for unit in ("spacy", "whitespace", "tokenizer")}
    assert {unit: result["words"] for unit, result in words.items()} == {"spacy": 5, "whitespace": 4, "tokenizer": 6}
    assert all(result["settings"]["words"] == unit for unit, result in words.items())


def test_texts_longer_than_the_model_reads(tmp_path, model):
    long = " ".join([PARAGRAPH] * 3)
    path = write_texts(tmp_path / "a.txt", [SENTENCES[0], "", long, " ", SENTENCES[1]])
    whole = summary(tmp_path, path, *model)
    assert whole["windowed_texts"] == 1
    # Sentence by sentence each fits.
    by_sentence = summary(tmp_path, path, *model, "--spans", "sents")
    assert by_sentence["windowed_texts"] == 0 and by_sentence["empty_texts"] == 2
    assert by_sentence["pieces"] == whole["pieces"] and by_sentence["words"] == whole["words"]
    # Windows of 128 tokens overlap, and each piece is counted once.
    strided = summary(tmp_path, path, *model, "--spans", "strided")
    assert strided["pieces"] == whole["pieces"] and strided["words"] == whole["words"]


def test_a_text_that_just_fits_is_not_read_in_windows(tmp_path, model_folder, language_model):
    folder = model_folder("bert")
    room = language_model("bert").load().max_length - 2  # [CLS] and [SEP]
    path = write_texts(tmp_path / "a.txt", [" ".join(["."] * room), " ".join(["."] * (room + 1))])
    result = summary(tmp_path, path, "--model", folder)
    assert result["pieces"] == 2 * room + 1 and result["windowed_texts"] == 1


def test_nothing_to_score(tmp_path, model):
    path = write_texts(tmp_path / "a.txt", ["", " "])
    assert "None of the 2 texts in" in run("ppl", path, *model, fails=True).unwrapped_stderr


def test_a_pipeline_that_scores_parts_of_texts(tmp_path, make_nlp):
    make_nlp("bert", targets="critical").to_disk(tmp_path / "pipeline")
    path = write_texts(tmp_path / "a.txt")
    result = run("ppl", path, "--model", tmp_path / "pipeline", fails=True)
    assert "its setting --targets is 'critical'" in result.unwrapped_stderr


def test_errors_are_messages(tmp_path, model):
    assert "There is no file or folder" in run("ppl", tmp_path / "nowhere", *model, fails=True).unwrapped_stderr
    (tmp_path / "a.csv").write_text("text,n\nfine,1\nshort\n")
    assert "line 3: the row has 1 fields" in run("ppl", tmp_path / "a.csv", *model, fails=True).unwrapped_stderr
    result = run("ppl", tmp_path / "a.csv", "--column", "nope", *model, fails=True)
    assert "no column 'nope'. The columns are: 'text', 'n'" in result.unwrapped_stderr
    (tmp_path / "a.txt").write_bytes(b"fine\n\xff\n")
    (tmp_path / "out.json").write_text("precious")
    result = run("ppl", tmp_path / "a.txt", *model, "-o", tmp_path / "out.json", fails=True)
    assert "exists already" in result.unwrapped_stderr
    result = run("ppl", tmp_path / "a.txt", *model, "-o", tmp_path / "out.json", "--force", fails=True)
    assert "line 2: not valid UTF-8" in result.unwrapped_stderr
    assert (tmp_path / "out.json").read_text() == "precious"


def test_without_arguments_it_says_how_it_is_used():
    assert "Usage: " in run("ppl", code=2).output


def test_windows_of_transcripts(model_folder, make_nlp, tmp_path):
    texts = [("ann", "The traveler lost  the souvenir."), ("bob", "It."), ("ann", "She paid for it.")]
    write_jsonl(tmp_path / "t.jsonl", *({"who": who, "text": text} for who, text in texts))
    command = ("ppl", tmp_path / "t.jsonl", "--model", model_folder("bert"), "--windows", 3)
    said = run(*command, "--by", "who", "-o", tmp_path / "o.csv").stdout
    with open(tmp_path / "o.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    nlp, windows = make_nlp("bert"), ["The traveler lost", "traveler lost  the", "lost  the souvenir.", "It."]
    windows += ["She paid for", "paid for it."]
    assert [row["window_text"] for row in rows] == windows
    assert [(row["doc"], row["window"]) for row in rows] == [*zip("000122", "012001")]
    expected = [nlp(text)._.pppl for text in windows]
    assert [float(row["pppl"]) for row in rows] == pytest.approx(expected, rel=1e-4)
    ann = [*expected[:3], *expected[4:]]
    figures = [f"{one:,.3f}" for one in (statistics.fmean(ann), max(ann), statistics.variance(ann))]
    lines = [(line.split()[:2], line.split()[-2:]) for line in said.splitlines() if line[:3] in ("ann", "bob")]
    kinds = ("mean", "maximum", "variance")
    assert lines[:3] == [(["ann", kind], ["5", figure]) for kind, figure in zip(kinds, figures)]
    assert lines[5] == (["bob", "variance"], ["1", "-"]) and "(95 % interval)" not in said
    assert sum(line[:1].isdigit() for line in run(*command).stdout.splitlines()) == 3 * 3
    inside = write_jsonl(tmp_path / "in" / "t.jsonl", *({"of": {"who": who}, "text": text} for who, text in texts))
    for source in (inside, inside.parent):
        groups = run("ppl", source, *command[2:], "--by", "of.who").stdout.split()
        assert groups[groups.index("ann") :] == said.split()[said.split().index("ann") :]
    for more, message in [
        (("--by", "none"), "there is no column 'none'. The columns are: 'who'"),
        (("-o", "o.json"), "The output must end in .csv"),
    ]:
        assert message in run(*command, *more, fails=True).unwrapped_stderr
    assert "Give both" in run(*command[:-2], "--by", "who", fails=True).unwrapped_stderr
    (tmp_path / "t.jsonl").write_text('{"text": "It.", "pppl": 1}\n')
    assert "line 1" in run(*command, fails=True).unwrapped_stderr


def test_a_bound_and_its_error(tmp_path, model):
    path = write_texts(tmp_path / "a.txt")
    how = ("--metrics", "sentence_any_order", "--n-passes", "16", "--seed", "1")
    result = summary(tmp_path, path, *model, *how)
    error = result["results"]["sentence_any_order", "standard error of the log-likelihood"]["value"]
    assert error > 0 and result["settings"]["n_passes"] == 16
    share = result["results"]["sentence_any_order", "standard error per word in %"]
    assert share["n"] == result["words"] and share["value"] == 100 * error / result["words"]
    assert "error per byte in %" in run("ppl", path, *model, *how).stdout
    assert "error" not in run("ppl", path, *model).stdout
    refused = run("ppl", path, *model, "--n-passes", "16", fails=True).unwrapped_stderr
    assert "--n-passes and --seed are for a bound" in refused


def test_docs_of_windows_have_the_numbers_of_a_table_of_words(tmp_path, model):
    """What is missing is counted, and left out with a warning, as without windows."""
    (tmp_path / "t.csv").write_text("who,text\nann,It sat.\nann,NA\nbob,She paid for it.\nbob,NaN\nbob,It.\n")
    for command in (("ppl", tmp_path / "t.csv", "--windows", 2, "-o", tmp_path / "o.csv"),
                    ("score", tmp_path / "t.csv", tmp_path / "words.csv", "--table", "words"),
                    ("ppl", tmp_path / "t.csv")):  # fmt: skip
        with pytest.warns(UserWarning, match="2 of 5 texts are missing: there is NA"):
            run(*command, *model)
    numbers = []
    for name in ("o.csv", "words.csv"):
        with open(tmp_path / name, newline="") as file:
            read = [row for row in csv.DictReader(file) if row.get("pppl", row.get("pll_word_l2r"))]
            numbers.append([*dict.fromkeys(row["doc"] for row in read)])
    assert numbers == [["0", "2", "4"], ["0", "2", "4"]]


@pytest.mark.parametrize("options", [["-o", "o.json"], ["--windows", "2", "-o", "o.csv"]])
def test_a_run_without_a_score_leaves_nothing(tmp_path, model, monkeypatch, options):
    """It said that scores were kept, and the next run was refused."""
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "in.txt", [" ", ""])
    for _ in range(2):
        error = run("ppl", "in.txt", *model, *options, fails=True).unwrapped_stderr
        assert "Nothing was scored" in error and "kept" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_a_part_of_the_words(tmp_path, model, make_nlp):
    """The counts are of whole texts; the perplexities are intervals, from the errors of the texts."""
    metrics = ["word_l2r", "original"]
    path = write_texts(tmp_path / "a.txt", [*TEXTS, " ".join([PARAGRAPH] * 3)])
    how = (*model, "--metrics", ",".join(metrics), "--words", "tokenizer")
    whole = summary(tmp_path, path, *how)
    part = summary(tmp_path, path, *how, "--sample-words", "0.3", "--seed", "2")
    counts = [name for name, value in whole.items() if isinstance(value, int | float) and name != "scored_pieces"]
    assert {name: part[name] for name in counts} == {name: whole[name] for name in counts} and len(counts) > 7
    assert whole["scored_pieces"] == whole["pieces"] > 2 * part["scored_pieces"] and part["settings"]["seed"] == 2
    docs = list(
        make_nlp(metrics=metrics, words="tokenizer", sample_words=0.3, seed=2).pipe(path.read_text().split("\n"))
    )
    for metric in metrics:
        total = sum(doc._.get(f"pll_{metric}_estimate") or 0.0 for doc in docs)
        error = math.hypot(*(doc._.get(f"pll_{metric}_error") or 0.0 for doc in docs))
        of_part = {measure: one for (scorer, measure), one in part["results"].items() if scorer == metric}
        assert of_part["log-likelihood"]["value"] == pytest.approx(total)
        assert of_part["standard error of the log-likelihood"]["value"] == pytest.approx(error)
        ends = [math.exp(-(total - side * 1.959964 * error) / whole["pieces"]) for side in (-1, 1)]
        per_piece, per_word = (of_part[f"pseudo-perplexity per {unit}"] for unit in ("piece", "word"))
        assert sorted((per_piece["low"], per_piece["high"])) == pytest.approx(sorted(ends))
        assert per_word["low"] < per_word["value"] < per_word["high"]
    assert all("low" not in one for one in whole["results"].values())
    shown = run("ppl", path, *how, "--sample-words", "0.3").stdout
    assert "pseudo-perplexity per byte (95 % interval)" in shown and "  scored " in shown and "in %" not in shown


def test_equal_texts_have_equal_draws_so_their_errors_add_up(tmp_path, model):
    how = (*model, "--metrics", "word_l2r,original", "--sample-words", "0.3")
    apart = [summary(tmp_path, write_texts(tmp_path / "a.txt", [text]), *how) for text in TEXTS[:2]]
    both = summary(tmp_path, write_texts(tmp_path / "a.txt", [*[TEXTS[0]] * 5, "", TEXTS[1], TEXTS[0]]), *how)
    for metric in ("word_l2r", "original"):
        error, of_one, of_other = (
            one["results"][metric, "standard error of the log-likelihood"]["value"] for one in (both, *apart)
        )
        assert of_one > 0 and error == pytest.approx(math.hypot(6 * of_one, of_other), rel=1e-4)


def test_a_part_of_the_words_goes_on_and_is_refused_elsewhere(tmp_path, model, monkeypatch):
    path, how = write_texts(tmp_path / "a.txt", TEXTS * 3), ("--sample-words", "0.4", "--batch-size", "4")
    expected = summary(tmp_path, path, *model, *how)
    output = tmp_path / "b.json"
    with monkeypatch.context() as patch:
        patch.setattr("spacy_pll.evaluation.perplexity.pieces_per_word", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run("ppl", path, *model, *how, "-o", output)
    assert "seed" in run("ppl", path, *model, *how, "--seed", "9", "-o", output, "--resume", fails=True).stderr
    run("ppl", path, *model, *how, "-o", output, "--resume")
    assert json.loads(output.read_text())["results"] == [*expected["results"].values()]
    for more, message in (
        (("--seed", "3"), "--n-passes and --seed are for a bound"),
        (("--sample-words", "2"), "--sample-words must be a number above 0, and at most 1"),
        (("--sample-words", "0.2", "--windows", "2"), "scores a part of the words, and here, whole texts are compared"),
        (("--sample-words", "0.2", "--metrics", "sentence_any_order"), "and a bound needs whole texts"),
    ):
        assert message in run("ppl", path, *model, *more, fails=True).unwrapped_stderr
