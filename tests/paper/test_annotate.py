import pytest
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_pll.attributes.names import Names
from spacy_pll.attributes.registration import install


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus" / "part").mkdir(parents=True)
    (tmp_path / "corpus" / "a.txt").write_text("The traveler lost it.\n\nThe hooligan.\n")
    (tmp_path / "corpus" / "part" / "b.txt").write_text("The souvenir.\n")
    return tmp_path / "corpus"


def test_a_folder_of_texts_becomes_one_of_docs(command, corpus, tmp_path, make_nlp, model_folder):
    arguments = [corpus, tmp_path / "out", "--model", model_folder("bert"), "--metrics", "word_l2r, original"]
    printed = command("annotate", *arguments)
    assert "a.spacy: 2 texts" in printed and "part/b.spacy: 1 texts" in printed
    install(Names("pll", ["word_l2r", "original"]))
    docs = list(DocBin().from_disk(tmp_path / "out" / "a.spacy").get_docs(Vocab()))
    expected = make_nlp("bert")("The traveler lost it.")._.pll
    assert [doc.text for doc in docs] == ["The traveler lost it.", "The hooligan."]
    assert docs[0]._.pll == docs[0]._.pll_word_l2r == pytest.approx(expected, abs=1e-4) and docs[0]._.pll_original < 0

    # Only what has changed is made again.
    (corpus / "part" / "b.txt").write_text("The carnivore.\n")
    printed = command("annotate", *arguments)
    assert "a.spacy: skipped, it is up to date" in printed and "part/b.spacy: 1 texts" in printed
    assert "skipped" not in command("annotate", *arguments[:-1], "original")


def test_no_text(command, tmp_path):
    assert "There is no .txt file in" in command.fails("annotate", tmp_path, tmp_path / "out")
