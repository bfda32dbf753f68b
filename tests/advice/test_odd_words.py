import pkgutil
import runpy
from pathlib import Path

import pytest
import spacy.lang
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_pll import make_pipeline, score_words
from spacy_pll.advice.odd_words import escapes, needless_spaces, pieces_as_words

from ..conftest import PARAGRAPH, get_tokenizer

BYTE_LEVEL = get_tokenizer("byte-level").backend_tokenizer
WORDPIECE = get_tokenizer("wordpiece").backend_tokenizer


def said_of(*texts, tokenizer=BYTE_LEVEL):
    """What is said of texts, whose rows are the words between spaces."""
    numbers = iter(range(10**6))
    rows = [[(next(numbers), word) for word in text.split()] for text in texts]
    return [*filter(None, (pieces_as_words(rows), escapes(rows), needless_spaces(rows, tokenizer)))]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("She play ##ed the souveni ##r .", "Row 3, '##ed'"),
        ("She Ġplayed Ġthe Ġsou venir .", "Row 2, 'Ġplayed'"),
        ("▁She ▁play ed ▁the ▁ sou venir .", "Row 1, '▁She'"),
        ("She play@@ ed the sou@@ venir .", "Row 2, 'play@@'"),
        ("She</w> play ed</w>", "Row 1, 'She</w>'"),
    ],
)
def test_wordpieces_as_rows(text, place):
    """Of whatever tokenizer; once, with the first place."""
    [message] = said_of(text)
    assert message.startswith(f"{place}, is written as a wordpiece of a tokenizer. ")
    [message] = said_of("She slept .", text)
    assert f"'{place.split(chr(39))[1]}'" in message and "Row 1," not in message


def test_a_piece_that_goes_on_stands_behind_a_word():
    assert said_of("She left . ##tag it", "##tag it") == [] and said_of("She left ##tag it")


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("said%2C", "%2C"), ("100%25", "%25"), ("caf%C3%A9", "%C3%A9"), ("%E2%80%9CNo", "%E2%80%9C"), ("a%20b", "%20"),
        ("Tom&amp;Jerry", "&amp;"), ("&quot;No", "&quot;"), ("it&#39;s", "&#39;"), ("it&#x27;s", "&#x27;"),
        ("end.<br>", "<br>"), ("end.<br/>", "<br/>"), ("<b>not</b>", "<b>"),
        ('<span class="x">a</span>', '<span class="x">'),
    ],
)  # fmt: skip
def test_escapes_of_what_showed_the_words(word, found):
    rows = [[(0, "She"), (1, "slept.")], [(2, "She"), (3, word), (4, "and%2C")]]
    message = escapes(rows)
    assert message.startswith(f"Row 4, {word!r}, has {found!r}, ") and "in place of what people read" in message


@pytest.mark.parametrize(
    "text", ["我们 今天 去 学校 。", "私 は その 本 を 読みました", "ฉัน อ่าน หนังสือ", "He said : 我们 今天 去 学校"]
)
def test_rows_of_a_script_without_spaces(text):
    """Where the tokenizer reads the space between them."""
    language = "Japanese" if "は" in text else "Thai" if "ฉัน" in text else "Chinese"
    first = 4 if "He" in text else 1
    [message] = said_of("She slept .", text)
    assert message.startswith(f"Rows {first + 3} and {first + 4}, ")
    assert f" are joined with a space, and {language} has no spaces between words." in message
    # A tokenizer that divides Han characters everywhere does not read it. Other letters are pieces that go on.
    assert (said_of(text, tokenizer=WORDPIECE) == []) is (language == "Chinese")
    assert said_of("The words 我 and 你 are common , and so are 他 们 , and all of them are short .") == []


# What looks a little like a piece or an escape, and is none.
NEAR = (
    "# ## ### #1 #ok @ @home a@b.c % 5% 5%-10% & R&D AT&T; <3 <unk> a<b Ġ Ġanni ▁▁▂▃ 100%. @@ C## il- kbir tal- "
    "https://a.b/c%20d www.a.b/%2C"
).split()


@example([word for near in NEAR for word in ("She", near)])
@given(st.lists(st.sampled_from([*NEAR, *PARAGRAPH.split()]), max_size=30))
def test_ordinary_rows_have_no_warning(words):
    maltese = sum(word[0] == "Ġ" for word in words)
    assert said_of(" ".join([*words, *["kbir"] * 4 * maltese])) == []


@pytest.mark.parametrize("lang", sorted(one.name for one in pkgutil.iter_modules(spacy.lang.__path__) if one.ispkg))
def test_the_words_of_sentences_in_many_languages(lang):
    examples = Path(*spacy.lang.__path__, lang, "examples.py")
    if not examples.exists():
        pytest.skip("spaCy has no sentences of it.")
    sentences = runpy.run_path(str(examples))["sentences"]  # the language itself, which takes long, is not imported
    for tokenizer in (BYTE_LEVEL, WORDPIECE):
        assert said_of(*sentences, tokenizer=tokenizer) == []


def test_where_rows_are_scored(model_folder):
    """Each once; and none of spaces where a column says which there are."""
    nlp = make_pipeline(str(model_folder("roberta")), metrics=["original"])
    words = ["我们", "今天", "play", "##ed", "end.<br>", "end%2C"]
    rows = [{"word": word, "space": word not in ("我们", "今天"), "item": i // 2} for i, word in enumerate(words)]
    for how, n in (({}, 3), ({"space_after": "space"}, 2)):
        with pytest.warns(UserWarning) as caught:
            found = score_words(rows, nlp, by="item", log_frequency=False, **how)
        assert len(caught) == n and all(row["surprisal"] is not None for row in found)
