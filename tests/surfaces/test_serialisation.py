"""What is saved can be read back without this package's help, without a network, and scores the same bit for bit."""

import json
import shutil
import subprocess
import sys
import warnings
from itertools import permutations

import pytest
import spacy
import srsly
import torch
import transformers as hf
from safetensors.torch import load_file
from spacy.tokens import Doc, DocBin

from spacy_pll import PLLError

from ..conftest import BUILTIN, PARAGRAPH, SENTENCES, build_transformer, get_tokenizer, masked_model, scores


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
    assert not other.get_pipe("pll").model.load().checkpoint.transformer.training


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
    assert other.get_pipe("pll").model.load().checkpoint.transformer.config._attn_implementation == "eager"
    assert (scores(other(PARAGRAPH)) == expected).all()
    mode = (tmp_path / "pipeline" / "pll" / "model" / "config.json").stat().st_mode
    assert (tmp_path / "pipeline" / "pll" / "model" / "model.safetensors").stat().st_mode == mode


def test_saving_before_the_first_doc_saves_the_weights(model_folder, tmp_path, make_nlp):
    nlp = make_nlp("bert")
    assert not nlp.get_pipe("pll").model.loaded
    nlp.to_disk(tmp_path / "pipeline")
    assert spacy.load(tmp_path / "pipeline")(PARAGRAPH)._.pll == make_nlp("bert")(PARAGRAPH)._.pll


def in_folder(folder, transformer, **documents):
    """A folder of Hugging Face with this model, and a pipeline that uses it."""
    transformer.save_pretrained(folder)
    get_tokenizer("wordpiece").save_pretrained(folder)
    for name, text in documents.items():
        (folder / name).write_text(text)
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(folder)}})
    return nlp


def declared_dtype(folder):
    """What config.json says: transformers 5 calls `dtype` what 4 calls `torch_dtype`."""
    config = json.loads((folder / "config.json").read_text())
    return config.get("dtype") or config["torch_dtype"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "dtype"),
    [("bert", torch.float32), ("bert", torch.float16), ("modernbert", torch.bfloat16)],
    ids=str,
)
def test_the_weights_keep_the_dtype_of_their_file(tmp_path, architecture, dtype):
    """Tied weights are written once, as in the file that was read."""
    transformer = build_transformer(architecture, get_tokenizer("wordpiece")).to(dtype)
    nlp = in_folder(tmp_path / "source", transformer)
    original = load_file(tmp_path / "source" / "model.safetensors")
    expected = scores(nlp(PARAGRAPH))
    for generation in ("first", "second"):
        nlp.to_disk(tmp_path / generation)
        model = tmp_path / generation / "pll" / "model"
        saved = load_file(model / "model.safetensors")
        assert {name: tensor.dtype for name, tensor in saved.items()} == {name: dtype for name in original}
        assert all(torch.equal(saved[name], tensor) for name, tensor in original.items())
        assert declared_dtype(model) == declared_dtype(tmp_path / "source") == str(dtype).split(".")[1]
        nlp = spacy.load(tmp_path / generation)
        assert (scores(nlp(PARAGRAPH)) == expected).all()
    other = spacy.blank("en")
    other.add_pipe("pll")
    other.from_bytes(nlp.to_bytes())
    assert (scores(other(PARAGRAPH)) == expected).all()
    files = srsly.msgpack_loads(other.get_pipe("pll").model.to_bytes())
    assert files["model.safetensors"] == (model / "model.safetensors").read_bytes()


def test_weights_that_do_not_fit_the_dtype_stay_float32(tmp_path):
    """config.json says float16, and some weights are not numbers of float16: those would be rounded."""
    transformer = build_transformer("bert", get_tokenizer("wordpiece"))
    names = {name for name, tensor in transformer.named_parameters() if torch.equal(tensor.half().float(), tensor)}
    nlp = in_folder(tmp_path / "source", transformer)
    config = tmp_path / "source" / "config.json"
    config.write_text(config.read_text().replace('"float32"', '"float16"'))
    expected = scores(nlp(PARAGRAPH))
    nlp.to_disk(tmp_path / "saved")
    saved = load_file(tmp_path / "saved" / "pll" / "model" / "model.safetensors")
    assert {name for name, tensor in saved.items() if tensor.dtype == torch.float16} == names & saved.keys()
    assert {tensor.dtype for tensor in saved.values()} == {torch.float16, torch.float32}
    reloaded = spacy.load(tmp_path / "saved")
    assert (scores(reloaded(PARAGRAPH)) == expected).all()
    assert {
        parameter.dtype for parameter in reloaded.get_pipe("pll").model.load().checkpoint.transformer.parameters()
    } == {torch.float32}


def test_the_card_of_a_model_that_was_saved_in_the_folder_before_is_gone(make_nlp, tmp_path):
    card = "---\nlanguage: de\n---\n"
    transformer = build_transformer("bert", get_tokenizer("wordpiece"))
    in_folder(tmp_path / "german", transformer, **{"README.md": card}).to_disk(tmp_path / "saved")
    assert (tmp_path / "saved/pll/model/README.md").read_text() == card
    make_nlp().to_disk(tmp_path / "saved")
    assert not list(tmp_path.glob("saved/pll/model/README.md"))


def test_model_card_and_licence_are_saved_with_the_model(tmp_path):
    transformer = build_transformer("bert", get_tokenizer("wordpiece"))
    nlp = in_folder(tmp_path / "source", transformer, **{"README.md": "the card", "LICENSE": "the licence"})
    nlp.initialize()
    shutil.rmtree(tmp_path / "source")
    nlp.to_disk(tmp_path / "first")
    other = spacy.blank("en")
    other.add_pipe("pll")
    other.from_bytes(spacy.load(tmp_path / "first").to_bytes())
    other.to_disk(tmp_path / "second")
    for pipeline in ("first", "second"):
        model = tmp_path / pipeline / "pll" / "model"
        assert (model / "README.md").read_text() == "the card" and (model / "LICENSE").read_text() == "the licence"


def test_the_built_in_model_is_saved_as_it_is(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("pll")
    expected = scores(nlp(SENTENCES[0]))
    nlp.to_disk(tmp_path)
    saved = tmp_path / "pll" / "model"
    for name in ("README.md", "LICENSE"):
        assert (saved / name).read_bytes() == (BUILTIN / name).read_bytes()
    original, weights = (load_file(folder / "model.safetensors") for folder in (BUILTIN, saved))
    assert original.keys() == weights.keys()
    assert all(
        tensor.dtype == torch.float16 and torch.equal(tensor, weights[name]) for name, tensor in original.items()
    )
    assert (saved / "model.safetensors").stat().st_size < 15_000_000
    assert (scores(spacy.load(tmp_path)(SENTENCES[0])) == expected).all()


def test_bytes_cannot_write_outside_their_folder(gone):
    with pytest.raises(ValueError, match="file named '../evil'"):
        masked_model("x").from_bytes(srsly.msgpack_dumps({"../evil": b"x"}))


READ_BACK = """
import json, sys
from itertools import accumulate
import spacy
from spacy.tokens import Doc, DocBin
Doc.set_extension("pll_data", default=None)
docs = DocBin().from_disk(sys.argv[1]).get_docs(spacy.blank("en").vocab)
records = [next(iter(doc.user_data.values())) for doc in docs]
print(json.dumps([[list(accumulate(record["gaps"])), record["scores"]] for record in records]))
assert "spacy_pll" not in sys.modules
"""


@pytest.mark.slow
def test_docbin_is_read_by_a_process_that_does_not_know_this_package(make_nlp, tmp_path):
    """Without the attributes, but with the numbers from which they are computed."""
    docs = list(make_nlp().pipe(SENTENCES))
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "docs.spacy")
    # Without the entry points: a process in which this package is not even installed.
    code = "import importlib.metadata as m; m.entry_points = lambda **k: m.EntryPoints()\n" + READ_BACK
    out = subprocess.run([sys.executable, "-c", code, tmp_path / "docs.spacy"], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout) == [[doc._.pll_data["offset"], doc._.pll_data["scores"]] for doc in docs]


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
    assert as_json["_"] == {"pll": first._.pll, "pll_pieces": first._.pll_pieces, "pppl": first._.pppl}
    with pytest.raises(PLLError, match=r"_\.pll cannot be set: .*to_json\(underscore=\[\"pll_data\"\]\)"):
        Doc(first.vocab).from_json(as_json)  # sums alone
    for doc in (first, joined):
        as_json = json.loads(json.dumps(doc.to_json(underscore=["pll_data"])))
        again = Doc(first.vocab).from_json(as_json)
        assert scores(again).tolist() == scores(doc).tolist() and again._.pppl == doc._.pppl
        assert again._.pll_data == doc._.pll_data


def test_numpy_types_stay_out(make_nlp):
    """Nor are there lists, through which Python's garbage collector would look again and again."""
    doc = make_nlp(keep_pieces=True, alternatives=2, distribution=True, sample_words=0.5)(SENTENCES[0])
    [record] = doc.user_data.values()
    assert set(map(type, flat(record))) == {int, float, str, bool, type(None)}
    json.dumps(doc._.pll_data)


def flat(value):
    """What is in dicts and tuples."""
    if type(value) is dict:
        value = (*value.values(),)
    return [one for own in value for one in flat(own)] if type(value) is tuple else [value]


def test_a_joined_doc_has_what_each_of_its_docs_had(make_nlp):
    """Also if they were scored under other metrics, or with other settings: what one lacks is None, and not 0."""
    more = [{"metrics": ["word_l2r", "original"]}, {"distribution": True}, {"alternatives": 2, "metrics": ["original"]}]
    more += [{"sample_words": 0.3, "distribution": True}, {"keep_pieces": True}]
    nlp, texts = make_nlp(), ["The hooligans lost a souvenir.", "I can't travel."]
    docs = [make_nlp(**own).get_pipe("pll")(nlp.make_doc(text)) for own in more for text in texts]
    names = ["pll", "pll_word_l2r", "pll_original", "pll_pieces"]
    names += ["pll_rank", "pll_entropy", "pll_first_choices", "pll_alternatives"]

    def values(tokens):
        return [[token._.get(name) for name in names] for token in tokens]

    for joined in permutations(docs, 2):
        again = Doc.from_docs(joined)
        assert values(again) == [own for doc in joined for own in values(doc)]
    assert values(Doc.from_docs(docs)) == [own for doc in docs for own in values(doc)]
