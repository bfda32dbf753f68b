import math
import sys
import warnings

import pytest
import spacy
from hypothesis import given
from spacy.tokens import Doc, Span

from spacy_pll import ScoringSettings, WordTable, score_words, to_dataframe
from spacy_pll.attributes.names import Names
from spacy_pll.tables.words import WordRows, log_frequencies

from ..conftest import PARAGRAPH, odd_text

TEXT = ' "But,"  she said,\n\n"the keys\u00a0are gone." Where? '
BY_TOKEN = WordTable("spacy", log_frequency=False)
BY_SPACE = WordTable(log_frequency=False)


def rows(doc, table=BY_SPACE, metrics=("word_l2r",), distribution=False):
    settings = ScoringSettings(distribution=distribution)
    return WordRows("text", Names("pll", list(metrics)), settings, table=table, lang="en").of(doc)


@given(odd_text)
def test_what_white_space_separates_is_one_row_each_in_order(make_nlp, text):
    found = rows(make_nlp("bert").make_doc(text), metrics=())
    assert [row["text"] for row in found] == text.split()
    assert [text[row["start"] : row["end"]] for row in found] == text.split()
    begin = len(text) - len(text.lstrip())
    assert text[:begin] + "".join(row["text"] + row["whitespace"] for row in found) == text


def test_a_word_has_the_sums_of_its_tokens(make_nlp):
    metrics = ["word_l2r", "original"]
    doc = make_nlp("bert", metrics=metrics, distribution=True)(TEXT)
    found = rows(doc, metrics=metrics, distribution=True)
    assert [row["text"] for row in found] == TEXT.split()
    for row in found:
        span = doc.char_span(row["start"], row["end"])
        assert len(span) > 1 or row["text"] in ("she", "keys", "are")
        assert row["pll_pieces"] == span._.pll_pieces and row["length"] == len(row["text"])
        assert row["pll_word_l2r"] == -row["surprisal"] == span._.pll_word_l2r
        assert (row["pll_original"], row["entropy"]) == (span._.pll_original, span._.pll_entropy)
    assert sum(row["pll_original"] for row in found) == pytest.approx(doc._.pll_original)
    tokens = rows(doc, BY_TOKEN, metrics)
    assert [row["text"] for row in tokens] == [token.text for token in doc if not token.is_space]
    assert [row["pll_word_l2r"] for row in tokens] == [token._.pll for token in doc if not token.is_space]


def test_a_token_with_white_space_in_it_is_one_row(make_nlp):
    nlp = make_nlp("bert")
    doc = nlp(Doc(nlp.vocab, ["in", "New York", ","], [True, False, False]))
    assert [row["text"] for row in rows(doc)] == ["in", "New York,"]
    doc = Doc(nlp.vocab, ["a", " b", "c"], [False, False, False])
    assert [row["text"] for row in rows(doc, metrics=())] == ["a", " bc"]


def test_a_word_without_a_wordpiece_has_no_score(make_nlp):
    first, second = rows(make_nlp("bert")("\u200b cat"))
    assert (first["pll_word_l2r"], first["surprisal"], first["pll_pieces"]) == (None, None, 0)
    assert second["pll_word_l2r"] < 0


def test_lags_are_those_of_the_words_before_in_the_text(make_nlp):
    table = WordTable(lags=2, log_frequency=False)
    found = rows(make_nlp("bert", distribution=True)(TEXT), table, distribution=True)
    lagged = ["pll_pieces", "length", "pll_word_l2r", "surprisal", "entropy"]
    names = [f"{name}_lag{lag}" for lag in (1, 2) for name in lagged]
    settings = Names("pll", ["word_l2r"]), ScoringSettings(distribution=True)
    types = [*WordRows("text", *settings, table=table).types]
    assert list(found[0])[-10:] == names and list(found[0]) == ["word", "text", *types[2:]]
    for lag in (1, 2):
        for number, row in enumerate(found):
            before = found[number - lag] if number >= lag else dict.fromkeys(lagged)
            assert [row[f"{name}_lag{lag}"] for name in lagged] == [before[name] for name in lagged]


def test_sentences_if_there_are_boundaries(make_nlp):
    nlp = make_nlp("bert")
    assert {(row["sent"], row["word_in_sent"]) for row in rows(nlp(TEXT))} == {(None, None)}
    nlp.add_pipe("sentencizer")
    found = rows(nlp(TEXT))
    assert [row["sent"] for row in found] == [0] * 7 + [1]
    assert [row["word_in_sent"] for row in found] == [*range(7), 0]


def test_a_part_of_a_doc_counts_from_its_beginning(make_nlp):
    nlp = make_nlp("bert")
    nlp.add_pipe("sentencizer")
    doc = nlp("A cat.  A dog. It ran.")
    part = doc[4:]
    assert part.text == "A dog. It ran."
    found = rows(part)
    assert [row["text"] for row in found] == ["A", "dog.", "It", "ran."]
    assert [part.text[row["start"] : row["end"]] for row in found] == ["A", "dog.", "It", "ran."]
    assert [(row["word"], row["sent"], row["word_in_sent"]) for row in found] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 1, 0),
        (3, 1, 1),
    ]
    assert [row["pll_word_l2r"] for row in found] == [row["pll_word_l2r"] for row in rows(doc)[2:]]
    assert rows(doc[2:2]) == rows(nlp("")) == rows(nlp("  ")) == []


def test_regions_are_the_labels_of_spans(make_nlp):
    doc = make_nlp("bert")("The old man the boats.")
    doc.spans["regions"] = [Span(doc, 0, 2, "subject"), Span(doc, 1, 3, "later"), Span(doc, 5, 6, "end")]
    found = rows(doc, WordTable("spacy", regions="regions", log_frequency=False))
    assert [row["region"] for row in found] == ["subject", "subject", "later", None, None, "end"]
    # a word is in the region in which it begins
    assert rows(doc, WordTable(regions="regions", log_frequency=False))[-1]["region"] is None
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])  # which moves no span: each would be one of other tokens
    found = rows(doc, WordTable("spacy", regions="regions", log_frequency=False))
    assert [(row["text"], row["region"]) for row in found] == [
        ("The", "subject"), ("old man", "subject"), ("the", None), ("boats", None), (".", "end")
    ]  # fmt: skip
    with pytest.warns(UserWarning, match=r"no spans under `regions`, doc.spans\['others'\].*keys: \['regions'\]"):
        found = rows(doc, WordTable(regions="others", log_frequency=False))
    assert {row["region"] for row in found} == {None}


def test_log_frequency(make_nlp, monkeypatch):
    wordfreq = pytest.importorskip("wordfreq")
    found = rows(make_nlp("bert")("The cat, xqztv — the!"), WordTable(lags=1, log_frequency=True))
    the, cat = (math.log(wordfreq.word_frequency(word, "en")) for word in ("the", "cat"))
    assert [row["log_frequency"] for row in found] == [the, cat, None, None, the]
    assert [row["log_frequency_lag1"] for row in found] == [None, the, cat, None, None]
    with pytest.raises(ValueError, match="no word frequencies for the language 'xx'.*give `log_frequency=False`"):
        log_frequencies("xx")
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.raises(ImportError, match=r"pip install .*\[reading\]"):
        log_frequencies("en")


def test_frequencies_of_another_language_are_noticed(make_nlp):
    """English is the language if none is given. "die" is an English word, too."""
    pytest.importorskip("wordfreq")
    german = "Die Katze schläft abends gern, während draußen der Regen fällt.".split()
    english = "The cats, 3 of them, sleep because she can't xqztv.".split()
    for words, lang, says in ((german, "en", True), (german, "de", False), (english, "en", False)):
        table = [{"item": i, "word": word} for i in range(5) for word in words]
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")  # the tiny model does not know most of these words
            score_words(table, make_nlp("bert", nlp=spacy.blank(lang)), by="item")
        told = [str(one.message) for one in found if "log frequencies" in str(one.message)]
        assert len(told) == says and all("of the first 50 words" in one for one in told)


@pytest.mark.parametrize(("lang", "package"), [("zh", "jieba"), ("ja", "MeCab"), ("ko", "MeCab"), ("ja", "ipadic")])
def test_what_wordfreq_needs_for_a_language(monkeypatch, lang, package):
    """As it is if the package is not installed, whatever else is."""
    wordfreq = pytest.importorskip("wordfreq")

    def missing(*_):
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    monkeypatch.setattr(wordfreq, "word_frequency", missing)
    message = (
        f"package {package}, with which wordfreq divides .* '{lang}'. Install .*: pip install \"wordfreq\\[cjk\\]\""
    )
    with pytest.raises(ImportError, match=message):
        WordTable(log_frequency=True).known(lang)
    with pytest.warns(UserWarning, match=f"The table of words has no log frequencies. .* {message}"):
        assert WordTable().known(lang).log_frequency is False


@pytest.mark.parametrize(("installed", "lang"), [(True, "en"), (True, "xx"), (False, "en")])
def test_log_frequencies_that_nobody_asked_for_are_left_out_if_there_are_none(make_nlp, monkeypatch, installed, lang):
    if installed:
        pytest.importorskip("wordfreq")
    else:
        monkeypatch.setitem(sys.modules, "wordfreq", None)
    nlp = make_nlp("bert", nlp=spacy.blank(lang))
    tables = {
        "to_dataframe": lambda given: to_dataframe(nlp("A cat."), words=WordTable(log_frequency=given)).columns,
        "score_words": lambda given: score_words([{"word": "A"}, {"word": "cat"}], nlp, log_frequency=given)[0],
    }
    for make in tables.values():
        if (installed, lang) == (True, "en"):
            assert "log_frequency" in make(None) and "log_frequency" in make(True)
        else:
            with pytest.warns(UserWarning, match="The table of words has no log frequencies.*(Install it with|'xx')"):
                assert "log_frequency" not in make(None)
            with pytest.raises((ImportError, ValueError), match="give `log_frequency=False`"):
                make(True)
        assert "log_frequency" not in make(False)


def test_wrong_values_are_errors():
    with pytest.raises(ValueError, match="`unit` must be .*It is 'tokens'"):
        WordTable("tokens")
    with pytest.raises(ValueError, match="`lags` must be 0 or more. It is -1"):
        WordTable(lags=-1)
    with pytest.raises(ValueError, match="`lags` must be a whole number.*It is 1.0"):
        WordTable(lags=1.0)


def test_a_data_frame_of_words_needs_a_word_table(make_nlp):
    for words in ("whitespace", "", True):
        with pytest.raises(TypeError, match=r"`words` must be a WordTable.* It is"):
            to_dataframe(make_nlp("bert")("A cat."), words=words)


def test_a_data_frame_has_the_same_columns_and_values(make_nlp):
    nlp = make_nlp("bert", metrics=["word_l2r", "original"], distribution=True)
    docs = list(nlp.pipe([TEXT, "", PARAGRAPH]))
    for doc in docs:
        doc.spans["regions"] = []
    table = WordTable(lags=1, regions="regions", log_frequency=False)
    frame = to_dataframe(docs, words=table)
    made = [(i, row) for i in (0, 2) for row in rows(docs[i], table, ["word_l2r", "original"], True)]
    assert frame.columns.tolist() == ["doc", *made[0][1]]
    assert frame["doc"].tolist() == [number for number, _ in made]
    for name in frame.columns[1:]:
        assert frame[name].astype(object).where(frame[name].notna(), None).tolist() == [row[name] for _, row in made]
    assert [str(frame[name].dtype) for name in ("word", "sent", "surprisal")] == ["Int64", "Int64", "float64"]
    fewer = to_dataframe(docs, ["original"], words=table)
    assert [name for name in frame if name not in fewer] == ["pll_word_l2r", "pll_word_l2r_lag1"]
    assert fewer["surprisal"].tolist() == frame["surprisal"].tolist()
    empty = to_dataframe(docs[1], words=table)
    assert len(empty) == 0 and {"word", "surprisal_lag1"} < {*empty}
