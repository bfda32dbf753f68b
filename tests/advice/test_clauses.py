from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.advice.clauses import clause_as_word, is_clause

words = st.text(st.sampled_from("字のกກaé ."), max_size=12)


@given(st.lists(st.tuples(words, st.integers(0, 12)), max_size=5))
def test_the_first_word_that_is_a_clause(words):
    clauses = [word for word, n in words if n >= 8 and sum(letter in "字のกກ" for letter in word) >= 8]
    assert [word for word, n in words if is_clause(word, n)] == clauses
    message = clause_as_word(iter(words), "the table", "leave it out")
    assert bool(message) == bool(clauses)
    if clauses:
        assert message.startswith(f"{clauses[0][:40]!r} counts as one word in the table, since ")
        has_language = any(letter in "字のก" for letter in clauses[0])
        assert message.endswith("words. Leave it out.") or has_language and message.endswith(", or leave it out.")


def test_what_can_be_set():
    clause = [("a", 1), ("字" * 8, 8)]
    message = clause_as_word(clause, "figures", "leave it out", " and `unit='spacy'`", is_named=False)
    assert message == (
        "A clause counts as one word in figures, since Chinese has no spaces between words. Set `lang='zh'` "
        "(spacy.blank('zh'), by character) and `unit='spacy'`, or leave it out."
    )
    assert "lang=" not in clause_as_word(clause, "figures", "leave it out", None)
