"""What is registered with spaCy, and what is found in docs of a pipeline that is not here."""

import importlib
import subprocess
import sys

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, Token

import spacy_pll
from spacy_pll.attributes.names import Names
from spacy_pll.attributes.registration import find_names, install

from .conftest import scored

pytestmark = pytest.mark.core

nlp = spacy.blank("en")


@pytest.mark.parametrize("docs", ["text", [None]])
def test_what_is_no_doc_has_no_names(docs):
    with pytest.raises(TypeError, match="Scored docs or spans are needed"):
        find_names(docs)


def test_installing_twice_is_no_conflict(attr):
    install(Names(attr, ["word_l2r", "original"]))
    install(Names(attr, ["word_l2r", "original"]))
    install(Names(attr, ["original"]))
    for cls in (Doc, Span, Token):
        assert cls.has_extension("by_hand_word_l2r")


def test_a_module_that_was_reloaded_is_no_other_package(attr, monkeypatch):
    doc = scored(attr, ["word_l2r", "original"])
    monkeypatch.setattr(spacy_pll, "attributes", spacy_pll.attributes)  # the other tests keep their modules
    for name in [name for name in sys.modules if name.startswith("spacy_pll.attributes")]:
        monkeypatch.delitem(sys.modules, name)
    reloaded = importlib.import_module("spacy_pll.attributes.registration")
    assert reloaded.install is not install
    reloaded.install(reloaded.Names(attr, ["word_l2r", "original"]))
    assert Token.get_extension("by_hand")[2].func is reloaded.token_value
    assert doc._.by_hand == -5.75


@pytest.mark.parametrize("cls", [Doc, Span, Token])
def test_an_attribute_of_another_package_is_left_alone(attr, cls):
    cls.set_extension("by_hand", method=len)
    with pytest.raises(ValueError, match=rf"{cls.__name__}._.by_hand is already registered.*\"attr\": \"my_by_hand\""):
        install(Names(attr, []))
    assert cls.get_extension("by_hand")[1] is len
    # All or nothing.
    assert not any(other.has_extension("by_hand_pieces") for other in (Doc, Span, Token))


def test_the_names_are_found_in_docs_of_a_pipeline_that_is_not_here(attr, unregistered):
    doc = scored(attr, ["original", "word_l2r"])
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    unregistered(attr)
    docs = list(DocBin().from_bytes(data).get_docs(nlp.vocab))
    assert not Doc.has_extension("by_hand")
    names = find_names(docs, attr)
    assert list(names.metrics) == ["original", "word_l2r"]
    assert docs[0]._.by_hand_original == -5.75 and docs[0][:2]._.by_hand_pieces == 3
    # A span's doc is looked at.
    assert find_names([docs[0][:1]], attr).all == names.all


def test_docs_from_a_file_are_read_where_no_pipeline_is_made(unregistered):
    data = DocBin(docs=[scored("pll", ["original"])], store_user_data=True).to_bytes()
    unregistered("pll")
    importlib.reload(spacy_pll.attributes.registration)
    [doc] = DocBin().from_bytes(data).get_docs(nlp.vocab)
    assert (doc._.pll, doc._.pll_pieces, doc[:2]._.pll) == (-5.75, 6, -1.75)


FRESH = """
import os
import sys
from spacy.tokens import Doc, DocBin, Token
from spacy.vocab import Vocab
for taken in ("", "pll_whole_word", "pll"):
    if os.fork():  # each in a process in which the package was not imported
        os.wait()
        continue
    if taken:
        Token.set_extension(taken, method=len)
    import spacy_pll
    [doc] = DocBin().from_disk(sys.argv[1]).get_docs(Vocab())
    print(*(doc._.get(name) if Doc.has_extension(name) else "-" for name in ("pll", "pll_whole_word", "pll_original")))
    print(Token.get_extension(taken)[1] is len if taken else len(Doc(Vocab())._.doc_extensions))
    print("transformers" in sys.modules)
    sys.exit()
"""


@pytest.mark.slow
def test_a_fresh_process_reads_the_scores_and_leaves_attributes_of_others_alone(tmp_path):
    DocBin(docs=[scored("pll", ["whole_word"])], store_user_data=True).to_disk(tmp_path / "scores.spacy")
    command = [sys.executable, "-c", FRESH, str(tmp_path / "scores.spacy")]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert found == "-5.75 -5.75 None\n40\nFalse\n-5.75 - None\nTrue\nFalse\n- - -\nTrue\nFalse\n"


def test_docs_that_were_not_scored():
    with pytest.raises(ValueError, match=r"_\.nonesuch.*Score them first.*none"):
        find_names([nlp("No scores here.")], "nonesuch")
    assert find_names([]).score == "pll"


def test_docs_whose_metric_is_not_known(attr):
    """Other packages may register it."""
    doc = scored(attr, ["original"])
    [record] = doc.user_data.values()
    record["scores"] = {"of_another": record["scores"]["original"]}
    with pytest.raises(ValueError, match="with scores under a metric.*registers the metric.*have: by_hand_of_another"):
        find_names([doc], attr)
