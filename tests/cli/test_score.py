import csv
import gzip
import io
import json
import lzma
import math
import os
import random
import re
import resource
import signal
import sys
import time
from contextlib import nullcontext
from itertools import islice

import pyarrow.parquet as pq
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin, Span

from spacy_pll import PLLScorer, WordTable, to_dataframe
from spacy_pll.corpus import scored_texts
from spacy_pll.corpus.readers import FIELDS
from spacy_pll.settings import BATCH_SIZE

from ..columns import added
from ..conftest import SENTENCES, write_jsonl
from .conftest import run, start


@pytest.fixture
def tiny(model_folder):
    return ("--model", model_folder("bert"))


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return path


def read_rows(path):
    if path.suffix == ".csv":
        with path.open(encoding="utf8", newline="") as file:
            return list(csv.DictReader(file))
    return [json.loads(line) for line in path.read_text(encoding="utf8").split("\n")[:-1]]


WORDS = ("--table", "words", "--no-log-frequency")
TEXTS = [*SENTENCES, "", "  ", "A\u2028line separator is text.", "I can't \U0001f600 <b>"]


def test_every_line_has_its_row_with_the_scores_of_the_pipeline(make_nlp, tiny, tmp_path):
    source = write_lines(tmp_path / "in.txt", TEXTS)
    run("score", source, tmp_path / "out.jsonl", *tiny, "--metrics", "original,word_l2r", "--batch-size", 3)
    nlp = make_nlp("bert", metrics=["original", "word_l2r"])
    rows = read_rows(tmp_path / "out.jsonl")
    assert [row["text"] for row in rows] == TEXTS
    for row, doc in zip(rows, nlp.pipe(TEXTS), strict=True):
        assert (row["pll_original"] or 0) == pytest.approx(doc._.pll_original or 0, abs=1e-4)
        assert (row["pll_word_l2r"] or 0) == pytest.approx(doc._.pll_word_l2r or 0, abs=1e-4)
        assert row["pll_pieces"] == doc._.pll_pieces
        assert (row["pll_original"] is None) == (row["pppl"] is None) == (not doc._.pll_pieces)
        assert (row["pppl"] or 0) == pytest.approx(doc._.pppl or 0, rel=1e-4)
    assert not (tmp_path / "out.jsonl.parts").exists()


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
def test_a_table_of_words(make_nlp, tiny, tmp_path, ending):
    source, out = tmp_path / "in.jsonl", tmp_path / f"out{ending}"
    write_jsonl(source, *({"item": i, "sentence": text} for i, text in enumerate(TEXTS)))
    run("score", source, out, *tiny, *WORDS, "--column", "sentence", "--lags", 1, "--distribution")
    rows = (
        pytest.importorskip("pyarrow.parquet").read_table(out).to_pylist() if ending == ".parquet" else read_rows(out)
    )
    assert list(rows[0])[:8] == ["doc", "word", "sentence", "item", "start", "end", "whitespace", "sent"]
    assert [row["sentence"] for row in rows] == " ".join(TEXTS).split()
    table = WordTable(lags=1, log_frequency=False)
    frame = to_dataframe(make_nlp("bert", distribution=True).pipe(TEXTS), words=table)
    for name in ("doc", "word", "start", "end", "length", "pll_pieces"):
        assert [int(row[name]) for row in rows] == frame[name].tolist()
    for name in ("pll_word_l2r", "entropy_lag1"):
        assert [float(row[name] or "nan") for row in rows] == pytest.approx(frame[name].tolist(), abs=1e-4, nan_ok=True)
    run("score", source, tmp_path / "tokens.jsonl", *tiny, "--column", "sentence", "--tokens")
    run("score", source, tmp_path / "same.jsonl", *tiny, "--column", "sentence", "--table", "tokens")
    assert (tmp_path / "tokens.jsonl").read_bytes() == (tmp_path / "same.jsonl").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".spacy"])
@pytest.mark.parametrize("processes", [1, 2])
def test_words_are_read_after_a_context_that_has_no_rows(make_nlp, tiny, tmp_path, ending, processes):
    texts = [("He ran.", "The traveler lost it."), ("", "A souvenir."), ("Only this. ", ""), ("The\n", " dog  ran.")]
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write_jsonl(source, *({"before": before, "text": text} for before, text in texts))
    if ending != ".jsonl":
        run("score", source, source := tmp_path / f"in{ending}", *tiny)
        if ending == ".parquet":  # without its scores
            table = pytest.importorskip("pyarrow.parquet").read_table(source).select(["text", "before"])
            pytest.importorskip("pyarrow.parquet").write_table(table, source)
    run("score", source, out, *tiny, *WORDS, "--context-column", "before", "--n-process", processes)
    rows, nlp, expected = read_rows(out), make_nlp("bert"), []
    for number, (before, text) in enumerate(texts):
        separator = "" if not before or before[-1].isspace() else " "
        doc = nlp(before + separator + text)
        for word in re.finditer(r"\S+", text):
            begin = len(before + separator) + word.start()
            score = doc.char_span(begin, begin + len(word[0]))._.pll
            expected.append((number, word[0], word.start(), pytest.approx(score, abs=1e-4)))
    assert [(row["doc"], row["text"], row["start"], row["pll_word_l2r"]) for row in rows] == expected
    assert {row["before"] for row in rows} == {"He ran.", "", "The\n"} and {row["sent"] for row in rows} == {None}


@pytest.mark.parametrize("context", [(), ("--context-column", "before")])
def test_a_text_of_one_token_has_no_sentence_that_others_have_not(tiny, make_nlp, tmp_path, context):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [{"before": "He ran off.", "text": text} for text in ("cup", "A cup.")]
    write_jsonl(source, *rows)
    run("score", source, out, *tiny, *WORDS, *context)
    assert {row["sent"] for row in read_rows(out)} == {None}
    nlp = make_nlp("bert")
    frames = [to_dataframe(docs, words=WordTable(log_frequency=False)) for docs in ([nlp("cup"), nlp("A cup.")],)]
    assert frames[0]["sent"].isna().all()
    nlp.add_pipe("sentencizer", first=True)
    nlp.to_disk(tmp_path / "saved")
    run("score", source, out, "--model", tmp_path / "saved", *WORDS, "--force")
    assert {row["sent"] for row in read_rows(out)} == {0}


@pytest.mark.filterwarnings("ignore:A doc has no spans under `regions`:UserWarning")  # the second has none
def test_regions_of_spacy_input_stay_with_their_words_after_a_context(tiny, tmp_path):
    nlp = spacy.blank("en")
    docs = [nlp("The old man the boats."), nlp("A cat.")]
    docs[0].spans["roles"] = [Span(docs[0], 0, 2, "subject")]
    for doc in docs:
        doc.user_data[FIELDS] = {"before": "He ran off."}
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "in.spacy")
    for more in ((), ("--context-column", "before", "--n-process", 2)):
        run(
            "score",
            tmp_path / "in.spacy",
            tmp_path / "out.jsonl",
            *tiny,
            *WORDS,
            "--regions",
            "roles",
            *more,
            "--force",
        )
        rows = read_rows(tmp_path / "out.jsonl")
        assert [row["region"] for row in rows] == ["subject", "subject", *[None] * 5]
        assert [row["text"] for row in rows] == ["The", "old", "man", "the", "boats.", "A", "cat."]


def test_regions_may_be_spans_that_the_pipeline_makes(make_nlp, tmp_path):
    nlp = make_nlp("bert")
    nlp.add_pipe("span_ruler", config={"spans_key": "roles"}).add_patterns([{"label": "animal", "pattern": "cat"}])
    nlp.to_disk(tmp_path / "saved")
    source, out = write_lines(tmp_path / "in.txt", ["A cat ran."]), tmp_path / "out.jsonl"
    run("score", source, out, "--model", tmp_path / "saved", *WORDS, "--regions", "roles")
    assert [row["region"] for row in read_rows(out)] == [None, "animal", None]
    with pytest.warns(UserWarning, match="no spans under `regions`"):
        run("score", source, out, "--model", tmp_path / "saved", *WORDS, "--regions", "other", "--force")


@pytest.mark.filterwarnings("ignore:A doc has no spans under `targets`:UserWarning")  # one fails before
def test_a_text_that_fails_after_its_context_has_a_row(tiny, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [
        {"before": "He ran.", "text": "A cat."},
        {"before": "He.", "text": "x " * 100},
        {"before": "y " * 100, "text": "It."},
    ]
    write_jsonl(source, *rows)
    with pytest.warns(UserWarning, match="2 of 3 texts could not be scored"):
        run("score", source, out, *tiny, *WORDS, "--context-column", "before", "--max-length", 150, "--skip-errors")
    first, *_, long, other = read_rows(out)
    assert first["pll_word_l2r"] < 0 and first["error"] is None
    assert (other["text"], other["pll_word_l2r"], other["error"][:6]) == ("It.", None, "ValueE")
    assert long["pll_word_l2r"] is None and long["error"].startswith("the text has 200") and "x x" in long["text"]


@pytest.mark.parametrize("command", ["score", "words"])
def test_a_table_of_words_on_a_plain_install(tiny, tmp_path, monkeypatch, command):
    """The column `log_frequency` is left out with a note, unless it is asked for."""
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    (tmp_path / "in.csv").write_text("text\nA cat.\n" if command == "score" else "word\ncat\n")
    how = (command, tmp_path / "in.csv", tmp_path / "out.csv", *tiny, *["--table", "words"] * (command == "score"))
    with pytest.warns(UserWarning, match="has no log frequencies.*wordfreq. Install it with: pip install"):
        run(*how)
    header = (tmp_path / "out.csv").read_text().splitlines()[0]
    assert "log_frequency" not in header and "surprisal" in header
    if command == "score":
        assert json.loads((tmp_path / "out.csv.manifest.json").read_text())["run"]["words"]["log_frequency"] is False
    error = run(*how, "--force", "--log-frequency", fails=True).unwrapped_stderr
    assert "--log-frequency needs the package wordfreq" in error and "Or give --no-log-frequency" in error


@Language.component("finds_it")
def finds_it(doc):
    if found := [doc[token.i : token.i + 1] for token in doc if token.text == "it"]:
        doc.spans["hits"] = found
    return doc


def test_a_text_that_is_missing_lacks_no_spans(make_nlp, tmp_path):
    nlp = make_nlp("bert", targets="hits", units="hits")
    nlp.add_pipe("finds_it", first=True)
    nlp.to_disk(tmp_path / "saved")
    (tmp_path / "in.csv").write_text("text\nlost it\nNA\n")
    with pytest.warns(UserWarning, match="1 of 2 texts are missing") as warned:
        run("score", tmp_path / "in.csv", tmp_path / "out.jsonl", "--model", tmp_path / "saved")
    assert len(warned) == 1
    assert [bool(row["pll_pieces"]) for row in read_rows(tmp_path / "out.jsonl")] == [True, False]


@pytest.mark.parametrize(("n", "count"), [(0, "0 texts"), (1, "1 text"), (2, "2 texts")])
def test_it_says_where_it_wrote_how_many_texts_and_how_long_it_took(tiny, tmp_path, n, count):
    source, output = write_lines(tmp_path / "in.txt", SENTENCES[:n]), tmp_path / "out.jsonl"
    with nullcontext() if n else pytest.warns(UserWarning, match="in.txt' has no text: nothing was scored"):
        result = run("score", source, output, *tiny)
    pattern = rf"Wrote {re.escape(str(output))}: {count} in (\d+ min )?\d+ s\."
    assert re.search(pattern, result.unwrapped_stderr)
    assert "was complete. Nothing was scored" in run("score", source, output, *tiny, "--resume").unwrapped_stderr
    with nullcontext() if n else pytest.warns(UserWarning, match="has no text"):
        assert "Wrote" not in run("score", source, "-", *tiny).output


def test_a_run_that_goes_on_says_what_it_did_and_what_was_done_before(tiny, tmp_path, monkeypatch, parts_of):
    source, output = write_lines(tmp_path / "in.txt", SENTENCES), tmp_path / "out.jsonl"
    parts_of(1)

    def stop(scored, *_):
        yield from islice(scored, 3)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(scored_texts, "with_progress", stop)
        run("score", source, output, *tiny, "--batch-size", 1, code=130)
    for part in (tmp_path / "out.jsonl.parts").glob("*s.jsonl"):
        part.rename(part.with_name(re.sub(r"-\d+s", "-700s", part.name)))
    result = run("score", source, output, *tiny, "--batch-size", 1, "--resume")
    assert re.search(r"2 texts in \d+ s; with earlier runs, 5 in 35 min \d+ s\.", result.unwrapped_stderr)


def test_what_a_filter_needs_is_said_and_drawn(tiny, tmp_path):
    source, output = write_lines(tmp_path / "in.txt", [*SENTENCES * 5, ""]), tmp_path / "out.csv"
    said = run("score", source, output, *tiny, "--plot", tmp_path / "d" / "p.svg").unwrapped_stderr
    values = sorted(float(row["pppl"]) for row in read_rows(output) if row["pppl"])
    assert f"{values[len(values) // 2]:,.2f} (50 %)" in said and "Quantiles of pppl: " in said
    assert f"1 of {len(values) + 1} texts have no score: 1 with no wordpiece to score." in said
    assert "</svg>" in (tmp_path / "d" / "p.svg").read_text()
    again = ("score", source, output, *tiny, "--resume", "--plot")
    assert "exists already" in run(*again, tmp_path / "d" / "p.svg", fails=True).unwrapped_stderr
    assert "Nothing was scored or drawn." in run(*again, tmp_path / "q.svg").unwrapped_stderr
    docs = ((tmp_path / name, ()) for name in ("t.spacy", "t.SPACY", "t.Spacy"))  # which have no rows
    for to, more in ((tmp_path / "t.csv", ("--tokens",)), ("-", ()), *docs):
        error = run("score", source, to, *tiny, "--plot", tmp_path / "q.svg", *more, fails=True).unwrapped_stderr
        assert "--plot draws" in error
    assert "Quantiles" not in run("score", source, tmp_path / "t.csv", *tiny, "--tokens").stderr


def test_a_compressed_table_in_another_encoding(tiny, tmp_path):
    """What is written is UTF-8 with tabs, and compressed as its name says."""
    source = tmp_path / "in.csv.gz"
    source.write_bytes(gzip.compress('nr;satz\n1;Ein Bär, zwei.\n2;"Drei; vier."\n'.encode("latin-1")))
    how = (*tiny, "--column", "satz", "--encoding", "latin-1", "--delimiter", ";")
    run("score", source, tmp_path / "out.tsv.xz", *how)
    run("score", source, tmp_path / "out.jsonl", *how)
    rows = list(
        csv.DictReader(io.StringIO(lzma.decompress((tmp_path / "out.tsv.xz").read_bytes()).decode()), delimiter="\t")
    )
    assert [row["satz"] for row in rows] == ["Ein Bär, zwei.", "Drei; vier."] and rows[1]["nr"] == "2"
    assert [float(row["pll_word_l2r"]) for row in rows] == [
        row["pll_word_l2r"] for row in read_rows(tmp_path / "out.jsonl")
    ]
    # The header says what the delimiter is.
    run("score", source, tmp_path / "again.jsonl", *how[:-2])
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "out.jsonl").read_text()
    for option, message in [
        (("--delimiter", "ab"), "--delimiter must be one character"),
        (("--encoding", "nonesuch"), "--encoding must be one that Python knows"),
    ]:
        assert message in run("score", source, "-", *tiny, *option, fails=True).unwrapped_stderr


def test_a_table_without_a_header(tiny, tmp_path):
    """Its first line is a text, too, and is not read as the names of columns."""
    source, output = tmp_path / "in.tsv", tmp_path / "out.csv"
    source.write_text("cola\t1\tThe cat sat.\n", encoding="utf8")
    run("score", source, output, *tiny, "--columns", "source,label,sentence", "--column", "sentence")
    [row] = read_rows(output)
    assert list(row)[:4] == ["sentence", "source", "label", "pll_word_l2r"]
    assert (row["sentence"], row["label"]) == ("The cat sat.", "1")
    again = run("score", source, output, *tiny, "--columns", "a,b,text", "--resume", fails=True)
    assert "header" in again.unwrapped_stderr


def test_a_row_per_token(tiny, tmp_path):
    source = write_lines(tmp_path / "in.txt", TEXTS)
    for name in ("texts.jsonl", "tokens.jsonl", "tokens.csv"):
        run("score", source, tmp_path / name, *tiny, *(["--table", "tokens"] if "tokens" in name else []))
    texts, tokens, table = (read_rows(tmp_path / name) for name in ("texts.jsonl", "tokens.jsonl", "tokens.csv"))
    for number, row in enumerate(texts):
        mine = [token for token in tokens if token["doc"] == number]
        assert sum(token["pll_word_l2r"] for token in mine) == pytest.approx(row["pll_word_l2r"] or 0, abs=1e-6)
        assert sum(len(token["pieces"]) for token in mine) == (row["pll_pieces"] or 0)
        assert all(token["surprisal"] == -token["pll_word_l2r"] for token in mine)
    assert [float(row["pll_word_l2r"]) for row in table] == [token["pll_word_l2r"] for token in tokens]
    assert [row["pieces"] for row in table] == [" ".join(token["pieces"]) for token in tokens]


def test_what_stood_beside_a_text_is_kept(tiny, tmp_path):
    rows = [{"id": 1, "Sentence": "The cat."}, {"Sentence": "A dog.", "tags": ["a", "b"], "ok": True, "none": None}]
    source = write_lines(tmp_path / "in.jsonl", map(json.dumps, rows))
    for name in ("out.jsonl", "out.csv", "out.spacy"):
        run("score", source, tmp_path / name, *tiny, "--column", "Sentence")
    out = read_rows(tmp_path / "out.jsonl")
    assert [{k: row[k] for k in rows[i]} for i, row in enumerate(out)] == rows
    table = read_rows(tmp_path / "out.csv")
    assert list(table[0]) == ["Sentence", "id", "tags", "ok", "none", *added()]
    assert table[0]["id"] == "1" and table[1]["id"] == "" and table[1]["ok"] == "true"
    assert table[1]["tags"] == '["a", "b"]'
    docs = list(DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab))
    assert docs[1].user_data[FIELDS] == {"tags": ("a", "b"), "ok": True, "none": None}
    assert [doc._.pll for doc in docs] == [row["pll_word_l2r"] for row in out]
    # and a .spacy file is input again
    run("score", tmp_path / "out.spacy", tmp_path / "again.jsonl", *tiny)
    again = read_rows(tmp_path / "again.jsonl")
    assert [(row["text"], row["pll_word_l2r"]) for row in again] == [
        (row["Sentence"], row["pll_word_l2r"]) for row in out
    ]
    assert again[0]["id"] == 1


def test_a_folder_of_files(tiny, tmp_path):
    folder = tmp_path / "corpus"
    (folder / "sub").mkdir(parents=True)
    write_lines(folder / "b.txt", ["Two cats."])
    write_lines(folder / "sub" / "a.tsv", ["text\tn", "A dog.\t1"])
    (folder / "notes.md").write_text("not read")
    with pytest.warns(UserWarning, match="will not be read: 'notes.md'"):
        run("score", folder, tmp_path / "out.jsonl", *tiny)
    out = read_rows(tmp_path / "out.jsonl")
    assert [(row["file"], row["text"], row.get("n")) for row in out] == [
        ("b.txt", "Two cats.", None),
        (os.path.join("sub", "a.tsv"), "A dog.", "1"),
    ]


@pytest.mark.parametrize("output", ["-", "out.jsonl"])
def test_standard_input(tiny, tmp_path, monkeypatch, output):
    monkeypatch.chdir(tmp_path)
    result = run("score", "-", output, *tiny, "--format", ".jsonl", input='{"text": "A cat.", "n": 1}\n')
    lines = (result.stdout if output == "-" else (tmp_path / output).read_text()).splitlines()
    assert len(lines) == 1 and json.loads(lines[0])["n"] == 1


def test_a_files_ending_says_what_it_is(tiny, tmp_path):
    """--format is for standard input: a file is not counted as one format and scored as another."""
    source = write_lines(tmp_path / "in.txt", ['{"text": "A cat."}', '{"text": "A dog."}'])
    for output in ("-", tmp_path / "out.jsonl"):
        result = run("score", source, output, *tiny, "--format", ".jsonl", fails=True)
        assert "--format is for standard input" in result.unwrapped_stderr


def test_sentences_are_scored_apart(tiny, tmp_path, make_nlp):
    source = write_lines(tmp_path / "in.txt", ["The cat sat. The dog ran."])
    run("score", source, tmp_path / "out.jsonl", *tiny, "--spans", "sents")
    nlp = make_nlp("bert")
    whole = sum(nlp(text)._.pll for text in ("The cat sat.", "The dog ran."))
    assert read_rows(tmp_path / "out.jsonl")[0]["pll_word_l2r"] == pytest.approx(whole, abs=1e-4)


def test_passes_are_shared_with_mask_spacing_and_the_manifest_says_so(tiny, tmp_path, make_nlp):
    source = write_lines(tmp_path / "in.txt", SENTENCES)
    run("score", source, tmp_path / "out.jsonl", *tiny, "--mask-spacing", 3)
    own = [row["pll_word_l2r"] for row in read_rows(tmp_path / "out.jsonl")]
    spaced, exact = ([doc._.pll for doc in make_nlp("bert", mask_spacing=n).pipe(SENTENCES)] for n in (3, None))
    assert own == pytest.approx(spaced, abs=1e-4) and own != pytest.approx(exact, abs=1e-4)
    manifest = json.loads((tmp_path / "out.jsonl.manifest.json").read_text())
    assert manifest["pipeline"]["pll"]["mask_spacing"] == 3
    # a saved pipeline keeps its own, unless another is given
    make_nlp("bert", mask_spacing=3).to_disk(tmp_path / "pipeline")
    for name, options, expected in (("own", [], spaced), ("other", ["--mask-spacing", 1000], exact)):
        run("score", source, tmp_path / f"{name}.jsonl", "--model", tmp_path / "pipeline", *options)
        assert [row["pll_word_l2r"] for row in read_rows(tmp_path / f"{name}.jsonl")] == pytest.approx(
            expected, abs=1e-4
        )
    error = run("score", source, "-", *tiny, "--mask-spacing", 3, "--metrics", "sentence_l2r", fails=True)
    assert "does not mask within words" in error.unwrapped_stderr


def test_two_processes_give_the_same(tiny, tmp_path):
    source = write_lines(tmp_path / "in.txt", SENTENCES * 3)
    run("score", source, tmp_path / "one.jsonl", *tiny, "--batch-size", 2)
    run("score", source, tmp_path / "two.jsonl", *tiny, "--batch-size", 2, "--n-process", 2)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_what_changed_is_said(tiny, tmp_path, model_folder):
    source = write_lines(tmp_path / "in.txt", SENTENCES)
    output = tmp_path / "out.jsonl"
    run("score", source, output, *tiny)
    for options, message in [
        ((*tiny, "--metrics", "original"), "pipeline.pll.metrics: it was ['word_l2r'], and is now ['original']"),
        ((*tiny, "--mask-spacing", "8"), "pipeline.pll.mask_spacing: it was None, and is now 8"),
        ((*tiny, "--batch-size", "7"), f"batch_size: it was {BATCH_SIZE}, and is now 7"),
        ((*tiny, "--table", "tokens"), "table: it was 'texts', and is now 'tokens'"),
        (("--model", model_folder("roberta")), "weights.digest: it was"),
    ]:
        assert message in run("score", source, output, "--resume", *options, fails=True).unwrapped_stderr
    write_lines(source, [*SENTENCES, "One more."])
    error = run("score", source, output, *tiny, "--resume", fails=True).unwrapped_stderr
    assert f"input.texts: it was {len(SENTENCES)}, and is now {len(SENTENCES) + 1}" in error and "--force" in error


def test_nothing_is_overwritten_unasked(tiny, tmp_path):
    source = write_lines(tmp_path / "in.txt", SENTENCES)
    output = write_lines(tmp_path / "out.jsonl", ["precious"])
    assert (
        "exists already. Add --force to replace it" in run("score", source, output, *tiny, fails=True).unwrapped_stderr
    )
    assert output.read_text() == "precious\n"
    error = run("score", source, output, *tiny, "--resume", fails=True).unwrapped_stderr
    assert "out.jsonl.manifest.json does not exist" in error and output.read_text() == "precious\n"
    run("score", source, output, *tiny, "--force")
    assert len(read_rows(output)) == len(SENTENCES)
    (tmp_path / "other.csv.parts").mkdir()
    error = run("score", source, tmp_path / "other.csv", *tiny, fails=True).unwrapped_stderr
    assert "contains an unfinished run. Continue it with --resume" in error


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "x"}\n{"text": \n', "a.jsonl, line 2: not valid JSON"),
        ("a.csv", b"sentence\nx\n", "line 1: there is no column 'text'. The columns are: 'sentence'. Name the column"),
        ("a.pdf", b"", "The known formats are: .txt"),
        ("a.jsonl", b'{"text": "x", "pll_word_l2r": 1}\n', "already has a column 'pll_word_l2r'"),
    ],
)
def test_input_that_cannot_be_scored_is_a_message(tiny, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    result = run("score", tmp_path / name, tmp_path / "out.jsonl", *tiny, fails=True)
    assert message in result.unwrapped_stderr
    assert not list(tmp_path.glob("out.jsonl*"))


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
def test_a_second_model_adds_its_scores(model_folder, tmp_path, ending):
    (tmp_path / "in.txt").write_text("The traveler lost the souvenir.\nThe author laugh.\n")
    first, second = (tmp_path / f"{name}{ending}" for name in ("first", "second"))
    roberta = ("--model", model_folder("roberta"), "--metrics", "original")
    run("score", tmp_path / "in.txt", first, "--model", model_folder("bert"), "--metrics", "original")
    run("score", first, second, *roberta, "--attr", "roberta")
    run("score", tmp_path / "in.txt", tmp_path / f"alone{ending}", *roberta)
    columns = read_columns(second)
    assert list(columns) == ["text", *PLL_COLUMNS, *(f"roberta_{name}" for name in ("original", "pieces", "pppl"))]
    before, alone = read_columns(first), read_columns(tmp_path / f"alone{ending}")
    assert {name: columns[name] for name in before} == before
    assert columns["roberta_original"] == alone["pll_original"]
    message = run("score", second, tmp_path / f"b{ending}", *roberta, "--attr", "roberta", fails=True).unwrapped_stderr
    assert "already has a column 'roberta_original'" in message
    assert "give another --attr" in run("score", second, tmp_path / f"b{ending}", *roberta, fails=True).unwrapped_stderr
    assert (
        "--attr must be a name" in run("score", first, second, "--attr", "a-b", "--force", fails=True).unwrapped_stderr
    )
    message = run("score", first, second, *roberta, "--attr", "other", "--resume", fails=True).unwrapped_stderr
    assert "roberta_original" in message and "other_original" in message


PLL_COLUMNS = ["pll_original", "pll_pieces", "pppl"]


def read_columns(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pydict()
    rows = list(map(json.loads, path.open())) if path.suffix == ".jsonl" else list(csv.DictReader(path.open()))
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_scores_do_not_overwrite_the_texts(tiny, tmp_path, ending):
    """Both in the column `pll`."""
    (tmp_path / "in.jsonl").write_text('{"pll_word_l2r": "A text."}\n')
    result = run(
        "score", tmp_path / "in.jsonl", tmp_path / f"out{ending}", *tiny, "--column", "pll_word_l2r", fails=True
    )
    assert "already has a column 'pll_word_l2r'" in result.unwrapped_stderr


def test_scores_do_not_overwrite_a_column_of_a_stream(tiny):
    lines = '{"text": "x"}\n{"text": "x", "pll_pieces": 5}\n'
    result = run("score", "-", "-", *tiny, "--format", ".jsonl", input=lines, fails=True)
    assert "standard input, line 2 already has a column 'pll_pieces'" in result.unwrapped_stderr


def test_other_errors_are_messages(tiny, tmp_path):
    source = write_lines(tmp_path / "in.txt", SENTENCES)
    for arguments, message in [
        ((tmp_path / "none.txt", "out.jsonl"), "There is no file or folder"),
        ((source, "out.xlsx"), "The output must end in .jsonl, .csv, .tsv, .spacy, .parquet, or be -"),
        ((source, "out.spacy", "--table", "tokens"), "Write the table of texts to it"),
        ((source, "out.spacy", "--table", "words", "--no-log-frequency"), "Write the table of texts to it"),
        ((source, "out.csv", "--table", "words", "--tokens"), "write different rows. Leave out one of the two"),
        ((source, "out.csv", "--word-unit", "spacy"), "are for rows of words. Add --table words"),
        ((source, "out.csv", "--lags", 2), "are for rows of words. Add --table words"),
        (
            (source, "out.csv", "--table", "words", "--log-frequency", "--lang", "xx"),
            "language, or give --no-log-frequency",
        ),
        (
            (source, "out.csv", "--table", "tokens", "--context-column", "c"),
            "--marked and --separator are for rows of words",
        ),
        ((source, "out.csv", *WORDS, "--context-column", "c"), "there is no column 'c'. The columns are: 'text'."),
        ((source, "out.csv", *WORDS, "--context-column", "text"), "names the column of the texts. Name another"),
        (
            (source, "out.csv", *WORDS, "--context-column", "c", "--spans", "sents"),
            "Leave out --spans",
        ),
        ((source, "out.csv", *WORDS, "--regions", "r"), "in.txt, line 1: --regions names a group of spans. It is"),
        (
            (source, "out.csv", "--targets", "souvenir"),
            "line 1: --targets names a group of spans. It is for",
        ),
        ((source, "out.csv", "--units", "names"), "choose their rows in a table of words, --table words. If one text"),
        (
            (source, "out.csv", *WORDS, "--marked", "--targets", "t"),
            "--targets has no effect where each text is",
        ),
        (("-", "out.jsonl", "--resume"), "--resume needs an INPUT that can be read again"),
        ((source, "-", "--metrics", "nonesuch"), "Unknown PLL metric 'nonesuch'"),
    ]:
        assert message in run("score", *arguments, *tiny, fails=True).unwrapped_stderr
    (tmp_path / "empty").mkdir()
    assert "contains no file" in run("score", tmp_path / "empty", "-", *tiny, fails=True).unwrapped_stderr


@pytest.mark.slow
@pytest.mark.parametrize(("size", "parts_done"), [(3000, 3), (6000, 12)])
def test_a_full_disk_leaves_nothing_half_written(tiny, tmp_path, parts_of, size, parts_done):
    """No disk is filled: this process may not write a file beyond a size, which the system refuses in the same way.

    A part of 32 texts has about 4,000 bytes. The first of that size is refused, or the joined file.
    """
    parts_of(32)
    texts = (SENTENCES * 320)[:320]
    source = write_lines(tmp_path / "in.txt", texts)
    arguments = (source, tmp_path / "out.jsonl", *tiny, "--batch-size", 8)

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        stopped = run("score", *arguments, fails=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in stopped.stderr and "--resume" in stopped.stderr
    assert not (tmp_path / "out.jsonl").exists()
    parts = sorted(part.name[:19] for part in (tmp_path / "out.jsonl.parts").glob("*.jsonl"))
    ends = [0, 8, 16, *range(32, 321, 32)]  # parts grow
    assert parts == [f"{start:09}-{end:09}" for start, end in zip(ends, ends[1:])][:parts_done]
    run("score", *arguments, "--resume")
    assert [row["text"] for row in read_rows(tmp_path / "out.jsonl")] == texts


@pytest.mark.slow
def test_killed_twice_and_resumed_it_gives_the_same_bytes(tiny, tmp_path, parts_of):
    parts_of(64)
    rng = random.Random(0)
    texts = [" ".join(rng.sample(" ".join(SENTENCES).split(), 6)) for _ in range(650)]
    source = write_lines(tmp_path / "in.txt", texts)
    options = (*tiny, "--batch-size", 16)
    run("score", source, tmp_path / "whole.jsonl", *options)
    parts = tmp_path / "out.jsonl.parts"
    for at_least in sorted(rng.sample(range(1, 10), 2)):  # of 11 parts
        process = start("score", source, tmp_path / "out.jsonl", *options, "--resume")
        while len(list(parts.glob("0*.jsonl"))) < at_least or not parts.exists():
            assert process.is_alive()
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.05))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert not (tmp_path / "out.jsonl").exists()
    run("score", source, tmp_path / "out.jsonl", *options, "--resume")
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_columns_of_what_the_model_expected(make_nlp, tiny, tmp_path):
    source = write_lines(tmp_path / "in.txt", TEXTS)
    options = (*tiny, "--distribution")
    for name in ("tokens.jsonl", "tokens.csv"):
        run("score", source, tmp_path / name, *options, "--table", "tokens", "--alternatives", 2)
    run("score", source, tmp_path / "texts.csv", *options)
    run("score", source, tmp_path / "docs.spacy", *options, "--alternatives", 2)
    docs = list(make_nlp("bert", alternatives=2, distribution=True).pipe(TEXTS))
    tokens, table, texts = (read_rows(tmp_path / name) for name in ("tokens.jsonl", "tokens.csv", "texts.csv"))
    for row, line, token in zip(tokens, table, [t for doc in docs for t in doc if not t.is_space], strict=True):
        assert row["rank"] == token._.pll_rank and row["entropy"] == pytest.approx(token._.pll_entropy, abs=1e-4)
        assert row["alternative_log_probs"] == pytest.approx([p for _, p, _ in token._.pll_alternatives], abs=1e-4)
        assert line["rank"] == str(token._.pll_rank or "") and line["alternatives"] == " ".join(row["alternatives"])
    for row, doc in zip(texts, docs, strict=True):
        assert float(row["pll_entropy"] or 0) == pytest.approx(doc._.pll_entropy or 0, abs=1e-3)
        assert float(row["pll_top1"] or 0) == pytest.approx(doc._.pll_top1 or 0)
    saved = DocBin().from_disk(tmp_path / "docs.spacy").get_docs(spacy.blank("en").vocab)
    assert [t._.pll_rank for doc in saved for t in doc] == [t._.pll_rank for doc in docs for t in doc]
    for output in (tmp_path / "out.jsonl", "-"):
        result = run("score", source, output, *tiny, "--alternatives", 2, fails=True)
        assert "--alternatives writes columns of tokens. Add --table tokens" in result.unwrapped_stderr


@pytest.mark.parametrize("command", ["pairs", "ppl", "rescore"])
def test_commands_that_show_no_tokens_have_no_such_options(command):
    assert "--alternatives" not in run(command, "--help").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "more"),
    [
        (".jsonl", ()),
        (".jsonl", ("--table", "tokens", "--n-process", 2)),
        (".csv", ()),
        (".parquet", ()),
        (".spacy", ()),
    ],
)
def test_a_text_that_is_too_long_is_named_or_skipped_or_allowed(tiny, tmp_path, ending, more):
    source, out = tmp_path / "in.jsonl", tmp_path / f"out{ending}"
    texts = ["A cat.", "x " * 100, "A dog."]
    write_jsonl(source, *({"text": text, "n": 1} for text in texts))
    options = (*tiny, *more, "--batch-size", 2)
    error = run("score", source, out, *options, "--max-length", 150, fails=True).unwrapped_stderr
    assert "line 2: the text has 200 characters, and at most 150" in error
    assert "Give --max-length 200, or --skip-errors" in error and not out.exists()
    run("score", source, out, *options, "--max-length", 200)
    with pytest.warns(UserWarning, match="1 of 3 texts could not be scored"):
        run("score", source, out, *options, "--max-length", 150, "--skip-errors", "--force")
    if ending == ".spacy":
        docs = list(DocBin().from_disk(out).get_docs(spacy.blank("en").vocab))
        errors = [(doc.text, doc.user_data[FIELDS]["error"], doc._.pll) for doc in docs]
    else:
        table = pytest.importorskip("pyarrow.parquet").read_table(out).to_pylist() if ending == ".parquet" else None
        errors = [(row["text"], row["error"], row["pll_word_l2r"]) for row in table or read_rows(out)]
    message = "the text has 200 characters, and at most 150 are read"
    failed = [(text, pll) for text, error, pll in errors if error == message]
    assert failed == [(texts[1], "" if ending == ".csv" else None)]
    assert len(errors) > 2 and sum(not error for _, error, _ in errors) == len(errors) - 1


def test_an_error_of_one_text_names_its_line(tiny, tmp_path, monkeypatch):
    def fail_on_bad(scorer, docs):
        if any(doc.text == "bad" for doc in docs):
            raise RuntimeError("too bad")
        return collect(scorer, docs)

    collect = PLLScorer.predict
    monkeypatch.setattr(PLLScorer, "predict", fail_on_bad)
    monkeypatch.setattr(PLLScorer, "pipe", lambda self, docs, **more: map(self, docs))
    (tmp_path / "in.txt").write_text("A cat.\nbad\nA dog.\n")
    error = run("score", tmp_path / "in.txt", "-", *tiny, fails=True).unwrapped_stderr
    assert "in.txt, line 2: this text cannot be scored. RuntimeError: too bad. Add --skip-errors" in error
    with pytest.warns(UserWarning, match="1 of 3 texts could not be scored"):
        rows = run("score", tmp_path / "in.txt", "-", *tiny, "--skip-errors").stdout.splitlines()
    assert [json.loads(row)["error"] for row in rows] == [None, "RuntimeError: too bad", None]


def test_normalised_scores(tmp_path):
    """Of the built-in model, which has a table of unigrams."""
    texts, out = tmp_path / "texts.txt", tmp_path / "out.jsonl"
    texts.write_text("The cats sleep.\n \nThe cat sat on the mat.\n")
    run("score", texts, out, "--metrics", "word_l2r,original", "--normalise", "slor, mean_lp")
    first, empty, _ = map(json.loads, out.read_text().splitlines())
    assert first["pll_word_l2r_mean_lp"] == pytest.approx(first["pll_word_l2r"] / 4)
    # ln of the counts of the pieces in builtin_unigrams.json, and of all pieces, one added to each
    log_p_u = sum(math.log(count + 1) for count in (135013, 446, 3628, 1391918)) - 4 * math.log(31033464 + 10000)
    assert first["pll_original_slor"] == pytest.approx((first["pll_original"] - log_p_u) / 4)
    normalised = [f"pll_{metric}_{method}" for metric in ("word_l2r", "original") for method in ("slor", "mean_lp")]
    assert [name for name in first if name in normalised] == normalised
    assert {empty[name] for name in normalised} == {None}
    # Another order is another run; so is another table.
    result = run(
        "score", texts, out, "--metrics", "word_l2r,original", "--normalise", "mean_lp", "--resume", fails=True
    )
    assert "normalise" in result.unwrapped_stderr


def test_normalised_scores_of_another_model(tmp_path, model_folder):
    texts, out, table = tmp_path / "texts.txt", tmp_path / "out.csv", tmp_path / "unigrams.json"
    texts.write_text("The cats sleep.\nThe cat sat on the mat.\n")
    model = ("--model", model_folder("bert"))
    assert (
        "for another vocabulary" in run("score", texts, out, "--normalise", "slor", *model, fails=True).unwrapped_stderr
    )
    run("unigrams", texts, table, *model)
    run("score", texts, out, "--normalise", "slor", "--unigrams", table, *model)
    assert "pll_word_l2r_slor" in out.read_text().splitlines()[0].split(",")
    wrong = run("score", texts, out, "--force", "--normalise", "lpp", fails=True)
    assert "no way to normalise called 'lpp'" in wrong.unwrapped_stderr
    wrong = run("score", texts, out, "--force", "--normalise", "slor", "--table", "tokens", fails=True)
    assert "--normalise writes columns of texts" in wrong.unwrapped_stderr


def test_a_part_of_the_words(tiny, tmp_path, make_nlp):
    source, how = write_lines(tmp_path / "in.txt", [*SENTENCES, ""]), ("--sample-words", "0.4", "--seed", "1")
    run("score", source, tmp_path / "o.jsonl", *tiny, *how)
    docs = list(make_nlp(sample_words=0.4, seed=1).pipe([*SENTENCES, ""]))
    rows = read_rows(tmp_path / "o.jsonl")
    assert [*rows[0]][1:] == [
        *("pll_word_l2r", "pll_word_l2r_estimate", "pll_word_l2r_error", "pll_pieces", "pll_all_pieces")
    ]
    for row, doc in zip(rows, docs, strict=True):
        values = [doc._.get(name) for name in [*row][1:]]
        assert [*row.values()][1:] == [value if value is None else pytest.approx(value, abs=1e-4) for value in values]
    manifest = json.loads((tmp_path / "o.jsonl.manifest.json").read_text())
    assert (manifest["pipeline"]["pll"]["sample_words"], manifest["pipeline"]["pll"]["seed"]) == (0.4, 1)
    run("score", source, tmp_path / "tokens.csv", *tiny, *how, "--table", "tokens")
    tokens = [token for doc in docs for token in doc if not token.is_space]
    for row, token in zip(read_rows(tmp_path / "tokens.csv"), tokens, strict=True):
        assert bool(row["pll_word_l2r"]) == (token._.pll is not None) and row["pieces"]
    for more in (("--table", "words"), ("--normalise", "mean_lp")):
        refused = run("score", source, tmp_path / "no.csv", *tiny, *how, *more, fails=True)
        assert "--sample-words scores a part of the words" in refused.unwrapped_stderr
    with pytest.raises(ValueError, match="a table of words has all of them"):
        to_dataframe(docs, words=WordTable(log_frequency=False))
    assert len(to_dataframe(docs)) == len([token for doc in docs for token in doc])
    for command in ("show", "pairs", "choices", "words", "slots"):
        assert "No such option" in run(command, "x", "--sample-words", "0.4", code=2).stderr
