import json
import sys

import pytest

from ..conftest import write_jsonl
from ..corruption import n_best_lists
from .conftest import run

RIGHT, WRONG, OTHER = "the traveler lost it", "the traveler lost", "the the traveler"


def row(i="u1", reference=RIGHT, scores=(-2.0, -1.0, -1.5), **more):
    hypotheses = [{"text": text, "score": score} for text, score in zip((RIGHT, WRONG, OTHER), scores)]
    return {"id": i, "hypotheses": hypotheses, **({"reference": reference} if reference else {}), **more}


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def model(model_folder):
    return ("--model", model_folder("bert"))


@pytest.fixture
def plls(make_nlp):
    texts = [RIGHT, WRONG, OTHER]
    return {doc.text: (doc._.pll, doc._.pll_pieces) for doc in make_nlp("bert").pipe(texts)}


def figures(stdout, name):
    """The numbers of a row of the table: of words, and of errors before and after."""
    return next(line.split()[-3:] for line in stdout.splitlines() if line.startswith(name))


def test_weight_zero_keeps_the_first_passes_order(tmp_path, model):
    path = write_jsonl(tmp_path / "n.jsonl", row(lang="en"))
    result = run("rescore", path, "--weight", "0", "-o", tmp_path / "o.jsonl", *model)
    (out,) = read(tmp_path / "o.jsonl")
    assert [h["text"] for h in out["hypotheses"]] == [WRONG, OTHER, RIGHT]
    assert all(h["rescored"] == h["score"] for h in out["hypotheses"])
    assert out["id"] == "u1" and out["lang"] == "en" and out["reference"] == RIGHT
    # "it" is missing from the first pass's choice: one word of four.
    assert figures(result.stdout, "WER in %") == ["4", "25.000", "25.000"]
    assert figures(result.stdout, "deletions") == ["4", "1", "1"]


def test_the_two_scores_are_added_and_both_are_kept(tmp_path, model, plls):
    path = write_jsonl(tmp_path / "n.jsonl", row())
    for weight, options in ((0.7, ()), (4.0, ("--per-piece",))):
        run("rescore", path, "--weight", weight, "-o", tmp_path / "o.jsonl", "--force", *options, *model)
        (out,) = read(tmp_path / "o.jsonl")
        assert sorted(h["score"] for h in out["hypotheses"]) == [-2.0, -1.5, -1.0]
        for hypothesis in out["hypotheses"]:
            pll, pieces = plls[hypothesis["text"]]
            assert hypothesis["pll"] == pytest.approx(pll) and hypothesis["pieces"] == pieces
            second = pll / pieces if options else pll
            assert hypothesis["rescored"] == pytest.approx(hypothesis["score"] + weight * second)
        totals = [h["rescored"] for h in out["hypotheses"]]
        assert totals == sorted(totals, reverse=True)


def test_the_weight_is_tuned_on_the_other_file(tmp_path, model, plls):
    # The first pass prefers the worse one by just less than the PLL's preference, taken once, can turn over.
    better, worse = sorted((RIGHT, WRONG), key=lambda text: -plls[text][0])
    margin = 0.55 * (plls[better][0] - plls[worse][0])
    hypotheses = [{"text": worse, "score": 0.0}, {"text": better, "score": -margin}]
    dev = write_jsonl(tmp_path / "dev.jsonl", {"id": 1, "hypotheses": hypotheses, "reference": better})
    path = write_jsonl(tmp_path / "n.jsonl", row(reference=None))
    result = run("rescore", path, "--dev", dev, "--grid", "0:1:0.1", *model)
    assert "WER 0.00 with weight 0.6" in result.stdout and "without the PLL" in result.stdout
    assert "weight 0.6." in result.stdout and "has one reference" in result.stdout
    assert "The grid ends" not in result.stdout
    result = run("rescore", path, "--dev", dev, "--grid", "0:0.6:0.1", *model)
    assert "The grid ends at 0.6" in result.stdout


def test_several_references_are_kept_and_not_measured(tmp_path, model):
    """One list has two references, as translations may have; one has one, one has none."""
    several = row(references=[RIGHT, "a traveler lost it"], reference=None)
    path = write_jsonl(tmp_path / "n.jsonl", several, row("u2"), row("u3", reference=None))
    result = run("rescore", path, "--weight", "0", "-o", tmp_path / "o.jsonl", *model)
    assert "1 list has a reference." in result.stdout and "words" in result.stdout
    assert read(tmp_path / "o.jsonl")[0]["references"] == several["references"]
    path = write_jsonl(tmp_path / "several.jsonl", several)
    assert "several.jsonl' has one reference." in run("rescore", path, "--weight", "0", *model).stdout


def test_equal_hypotheses_are_scored_once(tmp_path, model, monkeypatch):
    import spacy_pll.evaluation.rescoring as command

    seen = {}
    score_hypotheses = command.score_hypotheses

    def recording(*args, **more):
        seen.update(score_hypotheses(*args, **more))
        return seen

    monkeypatch.setattr(command, "score_hypotheses", recording)
    path = write_jsonl(tmp_path / "n.jsonl", row(), row("u2"))
    with pytest.warns(UserWarning, match="2 of 2 lists of .* are also in .*Give other lists as `dev`"):
        run("rescore", path, "--dev", path, *model)
    assert list(seen) == [(text, "", "") for text in (RIGHT, WRONG, OTHER)]


def test_an_empty_hypothesis(tmp_path, model):
    """Silence: nothing to score. It comes last, whatever the weight, or, if it is first without the PLL, stays so."""
    silence, other = {"text": "", "score": -1}, {"text": " \u200b", "score": -2.5}
    path = write_jsonl(
        tmp_path / "n.jsonl", {"hypotheses": [silence], "reference": RIGHT}, *[row(scores=(-2.0, -3.0, -9.0))] * 2
    )
    lists = read(path)
    lists[1]["hypotheses"].insert(1, other)
    lists[2]["hypotheses"].insert(2, {**silence, "score": -1.5})
    write_jsonl(path, *lists)
    unscored = {"pll": None, "pieces": 0, "rescored": None}
    for weight in ("1", "-1"):
        result = run("rescore", path, f"--weight={weight}", "-o", tmp_path / "o.jsonl", "--force", *model)
        alone, last, first = (entry["hypotheses"] for entry in read(tmp_path / "o.jsonl"))
        assert alone == [{**silence, **unscored}] and last[-1] == {**other, **unscored}
        assert all(hypothesis["pll"] < 0 for hypothesis in last[:-1])
        assert first[0] == {**silence, "score": -1.5, **unscored}
        assert [one["score"] for one in first] == [-1.5, -2.0, -3.0, -9.0]
        assert "2 in the order of the first pass, whose best hypothesis has no wordpiece" in result.stdout
        assert "too." not in result.stdout
    silent = [{**lists[1], "hypotheses": [*lists[1]["hypotheses"], {**silence, "score": -99}], "reference": ""}] * 2
    result = run("rescore", write_jsonl(tmp_path / "s.jsonl", *silent, *lists), "--weight", "1", *model)
    assert "2 with an empty hypothesis last, since it has no PLL, though the reference is empty, too." in result.stdout
    run("rescore", path, "--weight", "0", "-o", tmp_path / "o.jsonl", "--force", *model)
    assert [entry["hypotheses"][0]["rescored"] for entry in read(tmp_path / "o.jsonl")] == [-1, -2.0, -1.5]
    result = run("rescore", write_jsonl(path, lists[0]), "--weight", "1", *model)
    assert "100.000" in result.stdout and "1 list, " in result.stdout and "1 list has a reference" in result.stdout


def test_costs_are_no_log_probabilities(tmp_path, model):
    """In both forms, and in the development set. The lowest cost is the best; what is written stays as it was."""
    path = write_jsonl(tmp_path / "n.jsonl", row(scores=(12.0, 0.0, 14.5)))
    (tmp_path / "n.tsv").write_text(f"{RIGHT}\t12.0\n{WRONG}\t0.0\n{OTHER}\t14.5\n")
    good = write_jsonl(tmp_path / "good.jsonl", row("u2"))
    tsv = (tmp_path / "n.tsv", "--beam-size", "3")
    for files in ((path, "--weight", "0"), (*tsv, "--weight", "0"), (good, "--dev", path)):
        error = run("rescore", *files, *model, fails=True).unwrapped_stderr
        assert "hypothesis 1: 'score' is 12, and a log-probability is never above 0" in error
        assert "these are costs: give --costs. If the highest is, give --no-costs." in error
    for option, order in (("--costs", [WRONG, RIGHT, OTHER]), ("--no-costs", [OTHER, RIGHT, WRONG])):
        for files in ((path,), tsv):
            run("rescore", *files, "--weight", "0", option, "-o", tmp_path / "o.jsonl", "--force", *model)
            [out] = read(tmp_path / "o.jsonl")
            assert [one["text"] for one in out["hypotheses"]] == order
            assert {one["text"]: one["score"] for one in out["hypotheses"]} == {RIGHT: 12.0, WRONG: 0.0, OTHER: 14.5}
            sign = -1 if option == "--costs" else 1
            assert all(one["rescored"] == sign * one["score"] for one in out["hypotheses"])


def test_what_was_said_before_is_read(tmp_path, model, make_nlp):
    """As a context of `pll choices`; white space, or null, is none."""
    contexts = ["She saw a souvenir.", "", " ", None]
    path = write_jsonl(tmp_path / "n.jsonl", *(row(f"u{i}", context=one) for i, one in enumerate(contexts)), row())
    run("rescore", path, "--weight", "1", "-o", tmp_path / "o.jsonl", *model)
    nlp, plls = make_nlp("bert"), []
    for entry in read(tmp_path / "o.jsonl"):
        plls.append({one["text"]: (one["pll"], one["pieces"]) for one in entry["hypotheses"]})
    assert plls[1] == plls[2] == plls[3] == plls[4] != plls[0]
    for text, (pll, pieces) in plls[0].items():
        doc = nlp(f"{contexts[0]} {text}")
        said = doc[len(nlp.make_doc(contexts[0])) :]
        assert (pll, pieces) == (pytest.approx(said._.pll, abs=1e-4), said._.pll_pieces)
    path.write_text(json.dumps(row(context=["She saw it."])))
    assert (
        "line 1: 'context' must be text" in run("rescore", path, "--weight", "1", *model, fails=True).unwrapped_stderr
    )
    path.write_text(json.dumps(row(context="She saw it.")))
    error = run("rescore", path, "--weight", "1", *model, "--spans", "sents", fails=True).unwrapped_stderr
    assert "reads each sentence alone" in error


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (
            "0 ||| the cat sat ||| LM0= -13.4 ||| -4.1\n0 ||| the cat ||| LM0= -9 ||| -5\n",
            "lists of Moses: number",
        ),
        ('{"u1": {"hyp_1": {"score": -2.9, "text": "a"}, "ref": "a"}}', 'an object of utterances, each with "hyp_1"'),
        ('{\n  "u1": {\n    "hyp_1": {"score": -2.9, "text": "a"}}}', 'an object of utterances, each with "hyp_1"'),
        ('{"utts": {"u1": {"output": [{"name": "target1[1]", "rec_text": "a", "score": -1.0}]}}}', "results of ESPnet"),
        ("u1-1 the cat sat\nu1-2 the cats at\n", "lines such as 'u1-1 the cat sat'. Kaldi and ESPnet write"),
    ],
)
def test_lists_of_other_tools(tmp_path, content, form):
    path = tmp_path / "n.json"
    path.write_text(content)
    (tmp_path / "n.tsv").write_text(content)
    for given in ((path,), (tmp_path / "n.tsv",), (tmp_path / "n.tsv", "--beam-size", "2")):
        error = run("rescore", *given, "--weight", "1", fails=True).unwrapped_stderr
        assert f"has {form}" in error and 'each line must be a list as {"id": ..., "hypotheses": [{"text"' in error


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", ["a", "a ||| b"])
def test_a_fault_of_the_first_list_is_named_whatever_the_texts(tmp_path, encoding, text):
    content = json.dumps({"hypotheses": [{"text": text, "score": 1, "rec_text": text}]})
    (tmp_path / "n.jsonl").write_text(content, encoding=encoding)
    error = run("rescore", tmp_path / "n.jsonl", "--weight", "1", fails=True).unwrapped_stderr
    assert "hypothesis 1: 'score' is 1, and a log-probability is never above 0" in error and "--costs" in error
    (tmp_path / "n.jsonl").write_text(f'{{"text": "{text}"', encoding=encoding)
    assert "line 1: not valid JSON" in run("rescore", tmp_path / "n.jsonl", "--weight=1", fails=True).unwrapped_stderr
    (tmp_path / "n.tsv").write_text(f"0 ||| {text}\tb\n", encoding=encoding)
    error = run("rescore", tmp_path / "n.tsv", "--weight", "1", "--beam-size", "1", fails=True).unwrapped_stderr
    assert "line 1: 'score' must be a finite number" in error


def test_without_the_extra_lists_are_ranked_and_what_is_missing_is_said(tmp_path, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "jiwer", None)
    path = write_jsonl(tmp_path / "n.jsonl", row())
    result = run("rescore", path, "--weight", "1", "-o", tmp_path / "o.jsonl", *model)
    assert "needs jiwer. Install it with: " in " ".join(result.stdout.split())
    assert len(read(tmp_path / "o.jsonl")[0]["hypotheses"]) == 3
    dev = write_jsonl(tmp_path / "dev.jsonl", row("u2"))
    assert "needs jiwer" in run("rescore", path, "--dev", dev, *model, fails=True).unwrapped_stderr


GOOD_ROW = json.dumps(row())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": 1}', "line 2: 'hypotheses' must be a list that is not empty. It is None"),
        ('{"hypotheses": []}', "line 2: 'hypotheses' must be a list that is not empty"),
        ('{"hypotheses": {"text": "a", "score": 1}}', "line 2: 'hypotheses' must be a list"),
        ('{"hypotheses": ["a"]}', "line 2, hypothesis 1: it must be an object with 'text' and 'score'. It is 'a'"),
        ('{"hypotheses": [{"score": 1}]}', "line 2, hypothesis 1: there is no key 'text'"),
        ('{"hypotheses": [{"text": 1, "score": 1}]}', "line 2, hypothesis 1: 'text' must be text. It is 1"),
        ('{"hypotheses": [{"text": "a"}]}', "line 2, hypothesis 1: 'score' must be a finite number"),
        ('{"hypotheses": [{"text": "a", "score": "1"}]}', "It is '1'"),
        ('{"hypotheses": [{"text": "a", "score": true}]}', "It is True"),
        ('{"hypotheses": [{"text": "a", "score": NaN}]}', "It is nan"),
        ('{"hypotheses": [{"text": "a", "score": ' + "9" * 400 + "}]}", "must be a finite number"),
        ('{"hypotheses": [{"text": "a", "score": -1}], "reference": 1}', "line 2: 'reference' must be text. It is 1"),
        ('{"hypotheses": [{"text": "a", "score": -1}], "references": "a"}', "line 2: 'references' must be a list"),
        ('{"hypotheses": [{"text": "a", "score": -1}], "references": ["a"], "reference": "a"}', "Keep one of the two"),
        ("{", "line 2: not valid JSON"),
        ("[]", "line 2: this is a JSON list. Each line must be one JSON object"),
    ],
)
def test_a_bad_row_is_named(tmp_path, line, message):
    path = tmp_path / "n.jsonl"
    path.write_text(f"{GOOD_ROW}\n{line}\n")
    assert message in run("rescore", path, "--weight", "1", fails=True).unwrapped_stderr


def test_files_that_do_not_serve(tmp_path):
    path = write_jsonl(tmp_path / "n.jsonl", row(reference=None))
    assert "There is no file" in run("rescore", tmp_path / "x", "--weight", "1", fails=True).unwrapped_stderr
    result = run("rescore", path, "--dev", path, fails=True)
    assert "has one reference" in result.unwrapped_stderr
    (tmp_path / "empty.jsonl").write_text("\n")
    result = run("rescore", tmp_path / "empty.jsonl", "--weight", "1", fails=True)
    assert "There is no n-best list" in result.unwrapped_stderr
    result = run("rescore", path, "--weight", "1", "-o", tmp_path / "empty.jsonl", fails=True)
    assert "exists already" in result.unwrapped_stderr
    result = run("rescore", path, "--weight", "1", "-o", tmp_path / "o.csv", fails=True)
    assert "must end in .jsonl. It is" in result.unwrapped_stderr


@pytest.mark.parametrize(
    "options",
    [(), ("--weight", "1", "--dev", "x"), ("--weight", "nan"), ("--dev", "x", "--grid", "0:1"),
     ("--dev", "x", "--grid", "a:b:c"), ("--dev", "x", "--grid", "1:0:0.1"), ("--weight", "1", "--grid", "0:inf:1"),
     ("--weight", "1", "--word-weight", "inf"), ("--dev", "x", "--word-weight", "1"), ("--dev", "x", "--word-grid", ""),
     ("--weight", "1", "--dev-references", "x"), ("--dev", "x", "--grid", "0:1:0.001", "--word-grid", "0:1:0.001"),
     ("--weight", "1", "--grid", "0:1e9:1e-9"), ("--dev", "x", "--grid", "0:1:1e-6")],
)  # fmt: skip
def test_options_that_do_not_serve(tmp_path, options):
    path = write_jsonl(tmp_path / "n.jsonl", row())
    assert "Usage: " in run("rescore", path, *options, code=2).output


def test_without_arguments_it_says_how_it_is_used():
    assert "Usage: " in run("rescore", code=2).output


def test_the_corrupted_lists_are_always_the_same():
    sentences = ["one two three four five", "six seven eight nine ten"]
    lists = n_best_lists(sentences)
    assert lists == n_best_lists(sentences) and lists != n_best_lists(sentences, seed=1)
    assert [len(entry["hypotheses"]) for entry in lists] == [6, 6]
    assert all(len({h["text"] for h in entry["hypotheses"]}) == 6 for entry in lists)


def test_lists_in_another_encoding(tmp_path, model):
    content = json.dumps(row(), ensure_ascii=False).replace(RIGHT, f"{RIGHT} é") + "\n"
    (tmp_path / "n.jsonl").write_bytes(content.encode("latin-1"))
    error = run("rescore", tmp_path / "n.jsonl", "--weight", "1", *model, fails=True).unwrapped_stderr
    assert "line 1: not valid UTF-8" in error and "--encoding cp1252" in error
    given = ("--weight", "1", "--encoding", "cp1252", "-o", tmp_path / "o.jsonl")
    run("rescore", tmp_path / "n.jsonl", *given, *model)
    assert f"{RIGHT} é" in {hypothesis["text"] for hypothesis in read(tmp_path / "o.jsonl")[0]["hypotheses"]}


def test_the_lists_of_nemo(tmp_path, model, plls):
    """Lines of a text, a tab and a score, and a manifest of references: with the length term, tuned on another part."""
    hypotheses = [(RIGHT, -2.0), (WRONG, -1.0), ('"NA', -9.0), ("", -8.5), (OTHER, -1.5), (WRONG, -3.0)]
    (path := tmp_path / "n.tsv").write_text("".join(f"{text}\t{score}\n" for text, score in hypotheses))
    (manifest := tmp_path / "m.json").write_text(f'{{"text": "{RIGHT}"}}\n{{"text": "{OTHER}", "duration": 1.5}}\n')
    how = ("--beam-size", "3", "--references", manifest, "-o", tmp_path / "o.jsonl", *model)
    result = run("rescore", path, "--weight", "0.1", "--word-weight", "2", *how)
    assert "2 lists, 6 hypotheses, weight 0.1, word weight 2." in result.stdout
    assert figures(result.stdout, "WER in %")[0] == "7"
    rows = read(tmp_path / "o.jsonl")
    assert [row["reference"] for row in rows] == [RIGHT, OTHER]
    totals = {h["text"]: h["rescored"] for h in rows[0]["hypotheses"]}
    assert totals.keys() == {RIGHT, WRONG, '"NA'}
    for text, score in hypotheses[:2]:
        assert totals[text] == pytest.approx(score + 0.1 * plls[text][0] + 2 * len(text.split()))
    # The longest hypothesis is right in one list, and the first pass prefers a shorter one by 1.
    (dev := tmp_path / "dev.tsv").write_text("".join(f"{text}\t{score}\n" for text, score in hypotheses[:2]))
    (tmp_path / "dev.txt").write_text(RIGHT + "\n")
    tuned = ("--dev", dev, "--beam-size", "2", "--dev-references", tmp_path / "dev.txt", "--grid", "0:0:1")
    result = run("rescore", path, *tuned, "--word-grid", "0:2:0.75", *model)
    assert "WER 0.00 with weight 0, word weight 1.5, 25.00 without the PLL" in result.stdout
    result = run("rescore", path, *tuned, "--word-grid", "0:1.5:0.75", *model)
    assert "give a wider --word-grid" in result.stdout


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a\t-1\nb\t-2\n", (), "n.tsv' does not say how many of its lines are a list. Give it as --beam-size."),
        ("a\t-1\nb\t-2\nc\t-3\n", ("--beam-size", "2"), "has 3 lines, no multiple of --beam-size, 2"),
        ("-1\ta\n", ("--beam-size", "1"), "line 1: 'score' must be a finite number"),
        ("a\t-1\nb\tnan\n", ("--beam-size", "2"), "line 2: 'score' must be a finite number"),
        ("a\nb\t-1\n", ("--beam-size", "2"), "line 1: the row has 1 fields, but"),
        ("a\t-1\nb\n", ("--beam-size", "2"), "line 2: the row has 1 fields, but"),
        ("a\t-1\nb\t-1\n", ("--beam-size", "1", "--references", "one"), "has 1 references for 2 lists"),
        ("", ("--beam-size", "1"), "There is no n-best list in"),
    ],
)
def test_lines_that_are_no_lists_of_nemo(tmp_path, content, options, message):
    (path := tmp_path / "n.tsv").write_text(content)
    (tmp_path / "one.txt").write_text("a\n")
    options = [tmp_path / "one.txt" if one == "one" else one for one in options]
    assert message in run("rescore", path, "--weight", "1", *options, fails=True).unwrapped_stderr
    (other := tmp_path / "n.jsonl").write_text(GOOD_ROW)
    assert (
        "Leave --beam-size and --references out"
        in run("rescore", other, "--weight=1", "--references=x", fails=True).unwrapped_stderr
    )
