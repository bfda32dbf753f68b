"""What is saved can be read back without this package's help, without a network, and scores the same bit for bit."""

import json
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
import spacy
import transformers as hf
from spacy.tokens import Doc, DocBin

from spacy_pll.language_model.masked import MaskedLanguageModel

from .conftest import PARAGRAPH, SENTENCES, build_transformer, get_tokenizer, scores


@pytest.fixture
def gone(tmp_path):
    """A pipeline whose model folder is deleted once it was loaded."""
    folder = tmp_path / "source"
    build_transformer("roberta", get_tokenizer("byte-level")).save_pretrained(folder)
    get_tokenizer("byte-level").save_pretrained(folder)
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(folder)}})
    nlp.initialize()
    shutil.rmtree(folder)
    return nlp


def test_disk_round_trip_bit_for_bit(gone, tmp_path):
    expected = scores(gone(PARAGRAPH))
    gone.to_disk(tmp_path / "pipeline")
    reloaded = spacy.load(tmp_path / "pipeline")
    assert (scores(reloaded(PARAGRAPH)) == expected).all()
    reloaded.to_disk(tmp_path / "again")
    assert (scores(spacy.load(tmp_path / "again")(PARAGRAPH)) == expected).all()


def test_the_folder_is_a_plain_hugging_face_one(gone, tmp_path):
    expected = scores(gone(SENTENCES[0]))
    gone.to_disk(tmp_path / "pipeline")
    folder = tmp_path / "pipeline" / "pll" / "model"
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {path.name for path in folder.iterdir()}
    assert len(hf.AutoTokenizer.from_pretrained(folder)) == len(get_tokenizer("byte-level"))
    assert isinstance(hf.AutoModelForMaskedLM.from_pretrained(folder), hf.RobertaForMaskedLM)
    by_name = spacy.blank("en")
    by_name.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(folder)}})
    assert (scores(by_name(SENTENCES[0])) == expected).all()


def test_bytes_round_trip_bit_for_bit(gone):
    expected = scores(gone(PARAGRAPH))
    other = spacy.blank("en")
    other.add_pipe("pll")
    other.from_bytes(gone.to_bytes())
    assert (scores(other(PARAGRAPH)) == expected).all()
    assert not other.get_pipe("pll").model.transformer.training


def test_exclude(gone, tmp_path, model_folder):
    assert len(gone.get_pipe("pll").to_bytes(exclude=["model"])) < 100 < len(gone.get_pipe("pll").to_bytes())
    gone.to_disk(tmp_path / "without", exclude=["pll"])
    assert not (tmp_path / "without" / "pll").exists()
    gone.get_pipe("pll").to_disk(tmp_path / "component", exclude=["model"])
    assert not (tmp_path / "component" / "model").exists()
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(model_folder())}})
    before = nlp(SENTENCES[0])._.pll
    nlp.get_pipe("pll").from_bytes(gone.get_pipe("pll").to_bytes(), exclude=["model"])
    assert nlp(SENTENCES[0])._.pll == before


def test_a_pipeline_saved_without_its_model_loads_the_one_it_names(make_nlp, tmp_path):
    nlp = make_nlp("bert")
    nlp.to_disk(tmp_path / "without", exclude=["pll"])
    assert spacy.load(tmp_path / "without")(PARAGRAPH)._.pll == nlp(PARAGRAPH)._.pll


def test_settings_that_transformers_does_not_write_are_kept(model_folder, tmp_path):
    nlp = spacy.blank("en")
    settings = {"name": str(model_folder("bert")), "transformer_config": {"attn_implementation": "eager"}}
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", **settings}})
    expected = scores(nlp(PARAGRAPH))
    nlp.to_disk(tmp_path / "pipeline")
    other = spacy.load(tmp_path / "pipeline")
    assert other.get_pipe("pll").model.transformer.config._attn_implementation == "eager"
    assert (scores(other(PARAGRAPH)) == expected).all()
    mode = (tmp_path / "pipeline" / "pll" / "model" / "config.json").stat().st_mode
    assert (tmp_path / "pipeline" / "pll" / "model" / "model.safetensors").stat().st_mode == mode


def test_saving_before_the_first_doc_saves_the_weights(model_folder, tmp_path, make_nlp):
    nlp = make_nlp("bert")
    assert not nlp.get_pipe("pll").model.loaded
    nlp.to_disk(tmp_path / "pipeline")
    assert spacy.load(tmp_path / "pipeline")(PARAGRAPH)._.pll == make_nlp("bert")(PARAGRAPH)._.pll


def test_bytes_cannot_write_outside_their_folder(gone):
    import srsly

    with pytest.raises(ValueError, match="file named '../evil'"):
        MaskedLanguageModel("x").from_bytes(srsly.msgpack_dumps({"../evil": b"x"}))


READ_BACK = """
import json, sys
import spacy
from spacy.tokens import DocBin, Token
Token.set_extension("pll", default=None)
Token.set_extension("pll_pieces", default=None)
docs = DocBin().from_disk(sys.argv[1]).get_docs(spacy.blank("en").vocab)
print(json.dumps([[[token._.pll, token._.pll_pieces] for token in doc] for doc in docs]))
assert "spacy_pll" not in sys.modules
"""


def test_docbin_is_read_by_a_process_that_does_not_know_this_package(make_nlp, tmp_path):
    docs = list(make_nlp()(text) for text in SENTENCES)
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "docs.spacy")
    # Without the entry points: a process in which this package is not even installed.
    code = "import importlib.metadata as m; m.entry_points = lambda **k: m.EntryPoints()\n" + READ_BACK
    out = subprocess.run([sys.executable, "-c", code, tmp_path / "docs.spacy"], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout) == [[[token._.pll, token._.pll_pieces] for token in doc] for doc in docs]


def test_scores_stay_with_their_tokens(make_nlp):
    first, second = make_nlp().pipe(SENTENCES[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # spaCy warns where it has to leave out a doc's own attribute
        joined = Doc.from_docs([first, second])
    assert scores(joined).tolist() == [*scores(first), *scores(second)]
    assert joined._.pll == pytest.approx(first._.pll + second._.pll)
    part = second[3:7].as_doc(copy_user_data=True)
    assert scores(part).tolist() == scores(second)[3:7].tolist() and part._.pll == pytest.approx(second[3:7]._.pll)
    again = Doc(first.vocab).from_bytes(first.to_bytes())
    assert scores(again).tolist() == scores(first).tolist() and again._.pppl == first._.pppl
    as_json = json.loads(json.dumps(first.to_json(underscore=["pll", "pll_pieces", "pppl"])))
    assert as_json["_"]["pll"] == first._.pll
    assert [entry["value"] for entry in as_json["underscore_token"]["pll"]] == scores(first).tolist()


def test_numpy_types_stay_out(make_nlp):
    doc = make_nlp(keep_pieces=True)(SENTENCES[0])
    for value in doc.user_data.values():
        assert not isinstance(value, (np.generic, np.ndarray))
    json.dumps(doc._.pll_data)
