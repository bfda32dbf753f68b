import pytest

from spacy_pll.scoring.piece_texts import PieceTexts

from ..conftest import get_tokenizer


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("bert-base-cased", "souvenirs.", [("so", True), ("uve", False), ("nir", False), ("s", False), (".", True)]),
        ("roberta-base", "The irs é.", [("The", False), ("ir", True), ("s", False), ("é", True), (".", False)]),
        ("albert-base-v2", "The souvenirs.", [("the", True), ("souvenir", True), ("s", False), (".", False)]),
        ("deberta-v3-base", "The 犬.", [("The", True), (" ", True), ("犬", False), (".", False)]),
        ("gpt2", "The 犬", [("The", False), ("�", True), ("�", False), ("�", False)]),
        ("causal-llama2", "are", [("a", True), ("re", False)]),
        ("byte-level", "are s", [("ar", False), ("e", False), ("s", True)]),
    ],
)  # fmt: skip
def test_the_texts_of_pieces(name, text, expected):
    tokenizer = get_tokenizer(name).backend_tokenizer
    texts = PieceTexts(tokenizer)
    encoding = tokenizer.encode(text, add_special_tokens=False)
    assert [tuple(texts[i]) for i in encoding.ids] == expected


def test_the_texts_of_what_is_no_piece_of_text():
    texts = PieceTexts(get_tokenizer("wordpiece").backend_tokenizer)
    assert texts[10**6] == ("[id 1000000]", None)
    assert texts[texts.tokenizer.token_to_id("[MASK]")] == ("[MASK]", None)
