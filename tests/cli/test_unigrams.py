import pytest

from spacy_pll import load_unigrams

from .conftest import run


def test_the_table_of_a_command(tmp_path, make_nlp, model_folder):
    texts, table = tmp_path / "texts.jsonl", tmp_path / "unigrams.json"
    texts.write_text('{"line": "The cats sleep."}\n{"line": ""}\n{"line": "The cats [MASK]"}\n')
    options = ("--column", "line", "--model", model_folder("bert"))
    result = run("unigrams", texts, table, *options)
    nlp = make_nlp(keep_pieces=True)
    unigrams = load_unigrams(nlp, table)
    ids = [i for text in ("The cats sleep.", "The cats [MASK]") for i in nlp(text)._.pll_data["ids"]]
    assert [(i, count) for i, count in enumerate(unigrams.counts) if count] == sorted(
        (i, ids.count(i)) for i in set(ids)
    )
    assert f"Counted {len(ids)} wordpieces" in result.stderr
    assert "exists already" in run("unigrams", texts, table, *options, fails=True).unwrapped_stderr
    # Of another model, or no table.
    roberta = make_nlp("roberta")
    with pytest.raises(ValueError, match="unigrams.json' is for another vocabulary than that of .*roberta"):
        load_unigrams(roberta, table)
    for content in (
        "",
        "[]",
        '{"pieces": ["a"]}',
        '{"pieces": ["a"], "counts": []}',
        '{"pieces": ["a"], "counts": ["b"]}',
    ):
        table.write_text(content)
        with pytest.raises(ValueError, match="is no table of unigrams"):
            load_unigrams(nlp, table)
    texts.write_text('{"line": ""}\n')
    assert "nothing to count" in run("unigrams", texts, table, *options, "--force", fails=True).unwrapped_stderr


def test_its_bar_counts_texts(tmp_path, model_folder):
    (tmp_path / "texts.txt").write_text("The cats sleep.\nThe cats.\n")
    arguments = ("unigrams", tmp_path / "texts.txt", tmp_path / "out.json", "--model", model_folder("bert"), "--force")
    assert "2 texts [" in (shown := run(*arguments).stderr) and "texts/s" in shown
