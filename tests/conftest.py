"""Tiny models made from configuration, with the tiny tokenizers in tests/tokenizers: no test needs a network."""

import gc
import json
import os
import shutil
import sys
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import EntryPoints
from pathlib import Path
from typing import get_args, get_type_hints

os.environ["HF_HUB_OFFLINE"] = "1"
# The models are tiny, and each core has a process of tests: a second thread would cost more than it brings.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import catalogue  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import spacy  # noqa: E402
import torch  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from spacy.lang.en import English  # noqa: E402
from spacy.tokens import Doc, Span, Token  # noqa: E402
from spacy.tokens.underscore import Underscore  # noqa: E402

import spacy_pll  # noqa: E402

torch.set_num_threads(1)
# Nobody reads the files of tests after a power cut, and to wait for the disk took longer than to write them.
os.fsync = lambda file: None
# Examples for each property. Those of `pytest` are the same in each run, so that no change fails by what it did not
# touch; `pytest --hypothesis-profile thorough` looks further, with new ones each time.
for name, examples in (("short", 20), ("thorough", 300)):
    how = {"max_examples": examples, "derandomize": name == "short"}
    settings.register_profile(name, deadline=None, suppress_health_check=list(HealthCheck), **how)
settings.load_profile("short")

# The folder with data that is not in the repository: data/blimp, data/brown, data/eventsadapt, data/published, corpus,
# and real tokenizers as tokenizers/NAME.
DATA = Path(os.environ["SPACY_PLL_DATA"]) if os.environ.get("SPACY_PLL_DATA") else None
# The folder of the built-in model.
BUILTIN = Path(spacy_pll.__file__).parent / "language_model" / "builtin"

# The folders of what stands on the package: scripts, pages, the release.
PROJECT = [Path(__file__).parent / name for name in ("paper", "project", "tuning")]


# Those of spaCy's 1,347 exceptions for English that the texts of the tests have. Each blank pipeline takes all of them
# into its vocabulary, which was a fifth of the time of all tests.
EVERY_EXCEPTION = English.Defaults.tokenizer_exceptions
EXCEPTIONS = ["It's", "can't", "cannot", "couldn't", "didn't", "'s", "’s", "Dr.", "p.m.", "a.", "'em", "'", "''", "—"]


class OfSpacy(dict):
    def select(self, group):
        return self.get(group)  # as older versions of catalogue look for them

    def get(self, group, default=()):
        return super().get(group, EntryPoints())


# Each pipeline looks for spaCy's entry points many times, among those of all packages.
installed = catalogue.AVAILABLE_ENTRY_POINTS
groups = [group for group in installed.groups if group.startswith(("spacy", "thinc"))]
catalogue.AVAILABLE_ENTRY_POINTS = OfSpacy((group, installed.select(group=group)) for group in groups)
# Each manifest has the versions of some packages, which are read from their files.
spacy_pll.pipelines.get_package_version = cache(spacy_pll.pipelines.get_package_version)


make_blank = spacy.blank


@cache
def filled_config(lang):
    return make_blank(lang).config


def blank(name, **more):
    """A blank pipeline, whose config spaCy fills in and checks once, and not each time."""
    if more:
        return make_blank(name, **more)
    return spacy.util.get_lang_class(name).from_config(filled_config(name), auto_fill=False, validate=False)


spacy.blank = blank


def is_default(config):
    """Whether `pytest` runs without `-m`."""
    return config.option.markexpr in config.getini("addopts")


def pytest_addoption(parser):
    parser.addoption("--gpu", action="store_true", help="load models on the GPU")


def pytest_configure(config):
    if config.getoption("gpu"):
        spacy.require_gpu()
    if is_default(config) or config.option.markexpr == "slow":
        English.Defaults.tokenizer_exceptions = {
            text: tokens for text, tokens in English.Defaults.tokenizer_exceptions.items() if text in EXCEPTIONS
        }


count_frozen = gc.get_freeze_count


def pytest_collection_finish():
    """What is there now stays: the search for garbage need not look at it again and again. Nor need each run count it,
    which was a sixth of the time of the tests of commands.
    """
    gc.freeze()
    count = count_frozen()
    gc.get_freeze_count = lambda: count


# The default tests take these architectures and the tiny tokenizers. The others are slow.
MAIN_ARCHITECTURES = ["bert", "roberta", "deberta-v2", "modernbert"]


def pytest_itemcollected(item):
    """What is not slow in the folders of the project is run by `pytest -m project`."""
    named = {
        value for value in getattr(item, "callspec", item).__dict__.get("params", {}).values() if type(value) is str
    }
    others = {*ALL_ARCHITECTURES}.difference(MAIN_ARCHITECTURES)
    if named.intersection(REAL_TOKENIZERS) or named & others and not named.intersection(MAIN_ARCHITECTURES):
        item.add_marker("slow")
    if item.config.getoption("gpu") and item.get_closest_marker("cpu"):
        item.add_marker(pytest.mark.skip(reason="of a CPU"))
    if any(map(item.path.is_relative_to, PROJECT)) and not any(map(item.get_closest_marker, ("slow", "hub"))):
        item.add_marker("project")


def pytest_ignore_collect(collection_path, config):
    """`pytest` without `-m` leaves out the folders of the project, unless they are named.

    `pytest -m core` imports only modules that have such tests: others import what takes longer than the tests do.
    """
    if collection_path in PROJECT and is_default(config):
        return True
    if config.option.markexpr == "core" and not collection_path.name.startswith("__"):
        paths = collection_path.rglob("test_*.py") if collection_path.is_dir() else [collection_path]
        if not any("mark.core" in path.read_text(encoding="utf8") for path in paths):
            return True
    return None


def data_folder(name: str) -> Path:
    """A folder of data such as "data/blimp". The test that asks is skipped where the data is not there."""
    if DATA is None or not (DATA / name).is_dir():
        pytest.skip(f"SPACY_PLL_DATA is not set or has no {name}")
    return DATA / name


def score_placed(nlp, places, work=()):
    """The docs of texts in their places, scored: what evaluations read scores from."""
    from spacy_pll.stream.contexts import placed
    from spacy_pll.stream.workers import Work, score_docs

    nlp, docs = placed(nlp, places)
    return score_docs(nlp, docs, *Work(*work))


def write_jsonl(path: Path, *rows) -> Path:
    """Write JSON lines, into a folder that may not be there yet. RETURNS: The path."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf8")
    return path


SENTENCES = [
    "The traveler lost the souvenir.",
    "I can't believe that the hooligans, who are young, didn't travel.",
    "Dr. Smith's co-workers paid $3.50 for a well-known carnivore!",
    'She said: "It\'s over" and left (at 10:30 p.m.).',
    "Ein Bär läuft über die Straße, 犬も歩けば棒に当たる, שלום עולם, мир.",
]
PARAGRAPH = " ".join(SENTENCES[:4])

# What can count as a word.
UNITS = get_args(get_type_hints(spacy_pll.ScoringSettings)["words"])

# Text that has broken aligners: joiners, combining marks, right-to-left, no spaces, invisible and special pieces.
ODD_PIECES = [
    "a", "the", "souvenir", "can't", "Ünï", "e\u0301", "👩‍👩‍👧", "🏳️‍🌈", "שלום", "مرحبا", "犬も", "歩けば", "ไทย",
    "한국", "\u200b", "\u200d", "\ufeff", "\u00ad", "\x00", "\x1f", "\t", "\n", "\r\n", " ", "  ", "\u00a0", "\u3000",
    "\u2028",
    "[MASK]", "[SEP]", "[CLS]", "[PAD]", "<mask>", "</s>", "<s>", "<pad>", "▁", "Ġ",
    "##x", "ﬁ", "ǅ", "İ", "ß", "𝒳",
    "...", "'", "-",
]  # fmt: skip
odd_text = st.lists(
    st.one_of(st.sampled_from(ODD_PIECES), st.text(st.characters(exclude_categories=["Cs"]), max_size=6)), max_size=14
).map("".join)


# Their files are in tests/tokenizers, where make.py says how they were made.
TINY_TOKENIZERS = ["wordpiece", "byte-level", "unigram"]
REAL_TOKENIZERS = ["bert-base-cased", "bert-base-uncased", "bert-base-chinese", "bert-base-multilingual-cased",
                   "roberta-base", "albert-base-v2", "deberta-v3-base"]  # fmt: skip


@pytest.fixture(scope="module")
def real_english():
    """English with all exceptions of its tokenizer, also in the default and the slow tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(English.Defaults, "tokenizer_exceptions", EVERY_EXCEPTION)
        yield


@cache
def get_tokenizer(name):
    """A tiny tokenizer from tests/tokenizers, or a real one (skips where its files are not there)."""
    from transformers import AutoTokenizer

    tiny = Path(__file__).parent / "tokenizers" / name
    return AutoTokenizer.from_pretrained(tiny if tiny.is_dir() else data_folder(f"tokenizers/{name}"))


SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48)

# name: (model class and config class of transformers, settings, tokenizer)
ARCHITECTURES = {
    "bert": ("BertForMaskedLM", "BertConfig", SMALL, "wordpiece"),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", SMALL, "byte-level"),
    "xlm-roberta": ("XLMRobertaForMaskedLM", "XLMRobertaConfig", SMALL, "unigram"),
    "camembert": ("CamembertForMaskedLM", "CamembertConfig", SMALL, "unigram"),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", {**SMALL, "embedding_size": 16}, "unigram"),
    "distilbert": (
        "DistilBertForMaskedLM", "DistilBertConfig", dict(dim=32, n_layers=2, n_heads=2, hidden_dim=48), "wordpiece"
    ),
    "electra": ("ElectraForMaskedLM", "ElectraConfig", {**SMALL, "embedding_size": 16}, "wordpiece"),
    "deberta": ("DebertaForMaskedLM", "DebertaConfig", {**SMALL, "relative_attention": True,
                "pos_att_type": ["c2p", "p2c"]}, "byte-level"),
    "deberta-v2": ("DebertaV2ForMaskedLM", "DebertaV2Config", {**SMALL, "relative_attention": True,
                   "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}, "unigram"),
    "mpnet": ("MPNetForMaskedLM", "MPNetConfig", SMALL, "wordpiece"),
    "modernbert": ("ModernBertForMaskedLM", "ModernBertConfig",
                   {**SMALL, "global_attn_every_n_layers": 1, "reference_compile": False}, "byte-level"),
    "esm": ("EsmForMaskedLM", "EsmConfig", {**SMALL, "position_embedding_type": "rotary"}, "wordpiece"),
    "convbert": ("ConvBertForMaskedLM", "ConvBertConfig", {**SMALL, "embedding_size": 32}, "wordpiece"),
    "roformer": ("RoFormerForMaskedLM", "RoFormerConfig", {**SMALL, "embedding_size": 32}, "wordpiece"),
    "xlm": ("XLMWithLMHeadModel", "XLMConfig", dict(emb_dim=32, n_layers=2, n_heads=2), "wordpiece"),
    "flaubert": ("FlaubertWithLMHeadModel", "FlaubertConfig", dict(emb_dim=32, n_layers=2, n_heads=2), "wordpiece"),
    "fnet": ("FNetForMaskedLM", "FNetConfig",
             dict(hidden_size=32, num_hidden_layers=2, intermediate_size=48), "unigram"),
    "ibert": ("IBertForMaskedLM", "IBertConfig", SMALL, "byte-level"),
    "eurobert": ("EuroBertForMaskedLM", "EuroBertConfig",
                 {**SMALL, "num_attention_heads": 4, "num_key_value_heads": 2}, "byte-level"),
    "gte": ("GteForMaskedLM", "GteConfig", SMALL, "unigram"),
    "nomic": ("NomicBertForMaskedLM", "NomicBertConfig", SMALL, "wordpiece"),
    "esmc": ("EsmcForMaskedLM", "EsmcConfig", SMALL, "wordpiece"),
    "jina": ("JinaEmbeddingsV3ForMaskedLM", "JinaEmbeddingsV3Config", SMALL, "unigram"),
    "data2vec": ("Data2VecTextForMaskedLM", "Data2VecTextConfig", SMALL, "byte-level"),
    "big-bird": ("BigBirdForMaskedLM", "BigBirdConfig", SMALL, "unigram"),
    "rembert": ("RemBertForMaskedLM", "RemBertConfig", {**SMALL, "input_embedding_size": 16,
                "output_embedding_size": 24}, "unigram"),
    "ernie": ("ErnieForMaskedLM", "ErnieConfig", SMALL, "wordpiece"),
    "xmod": ("XmodForMaskedLM", "XmodConfig", {**SMALL, "default_language": "en_XX"}, "unigram"),
    "roberta-prelayernorm": ("RobertaPreLayerNormForMaskedLM", "RobertaPreLayerNormConfig", SMALL, "byte-level"),
    "megatron-bert": ("MegatronBertForMaskedLM", "MegatronBertConfig", SMALL, "wordpiece"),
    "longformer": ("LongformerForMaskedLM", "LongformerConfig", {**SMALL, "attention_window": 16}, "byte-level"),
    "mobilebert": ("MobileBertForMaskedLM", "MobileBertConfig", {**SMALL, "embedding_size": 16, "true_hidden_size": 32,
                   "intra_bottleneck_size": 32}, "wordpiece"),
    "bart": ("BartForConditionalGeneration", "BartConfig", dict(d_model=32, encoder_layers=2, decoder_layers=2,
             encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=48, decoder_ffn_dim=48),
             "byte-level"),
    "luke": ("LukeForMaskedLM", "LukeConfig", {**SMALL, "entity_vocab_size": 4, "entity_emb_size": 8}, "byte-level"),
}  # fmt: skip
# Others, for `mask_margin`: local attention.
MORE_ARCHITECTURES = {
    "modernbert-local": ("ModernBertForMaskedLM", "ModernBertConfig", {**SMALL, "num_hidden_layers": 4,
                         "global_attn_every_n_layers": 3, "local_attention": 8, "reference_compile": False},
                         "byte-level"),
    "ultrabert": ("UltrabertForMaskedLM", "UltrabertConfig",
                  {**SMALL, "num_hidden_layers": 4, "num_key_value_heads": 1, "sliding_window": 4}, "byte-level"),
}  # fmt: skip
ALL_ARCHITECTURES = {**ARCHITECTURES, **MORE_ARCHITECTURES}


def build_transformer(architecture, tokenizer, positions=140, **more):
    """A random model whose scores differ enough to tell right from wrong. The test is skipped where transformers is too
    old to have it.
    """
    import transformers

    model_cls, config_cls, options, _ = ALL_ARCHITECTURES[architecture]
    if not hasattr(transformers, model_cls):
        pytest.skip(f"transformers {transformers.__version__} has no {model_cls}")
    ids = {f"{n}_token_id": getattr(tokenizer, f"{n}_token_id") for n in ("pad", "mask")}
    ids.update(bos_token_id=tokenizer.cls_token_id, eos_token_id=tokenizer.sep_token_id)
    if architecture.startswith("modernbert"):
        ids.update(cls_token_id=tokenizer.cls_token_id, sep_token_id=tokenizer.sep_token_id)
    if architecture in ("xlm", "flaubert"):
        ids.update(pad_index=tokenizer.pad_token_id, mask_index=tokenizer.mask_token_id)
    options = {"max_position_embeddings": positions, "vocab_size": len(tokenizer), **ids, **options, **more}
    torch.manual_seed(0)
    model = getattr(transformers, model_cls)(getattr(transformers, config_cls)(**options)).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return model


def masked_model(*arguments, **settings):
    """The language model that a config names, not loaded yet."""
    return spacy.registry.architectures.get("spacy-pll.MaskedLM.v1")(*arguments, **settings)


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """model_folder(architecture, tokenizer name): a folder with a tiny random model, made once a session."""
    made = {}

    def make(architecture="bert", tokenizer_name=None, **more):
        tokenizer_name = tokenizer_name or ALL_ARCHITECTURES[architecture][3]
        key = (architecture, tokenizer_name, *sorted(more.items()))
        if key not in made:
            folder = tmp_path_factory.mktemp(f"{architecture}-{tokenizer_name}")
            tokenizer = get_tokenizer(tokenizer_name)
            build_transformer(architecture, tokenizer, **more).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            made[key] = folder
            UNCHANGED.add(str(folder))
        return made[key]

    return make


# Folders and modules of tests in which each model is read and tried anew.
ANEW = {"language_model", "models", "test_faults", "test_model_of_the_user", "test_program"}
# Folders of models that no test changes; what was read there, and what was found of them.
UNCHANGED = {str(BUILTIN)}
READ, FOUND = {}, {}


@pytest.fixture(autouse=True)
def models_are_read_and_tried_once(request):
    """In tests of models each time, where they do not ask for `tried_once`."""
    folders_and_module = request.path.relative_to(Path(__file__).parent).with_suffix("").parts
    if ANEW.isdisjoint(folders_and_module):
        request.getfixturevalue("tried_once")


@pytest.fixture
def tried_once(monkeypatch):
    """A model is read, and what it allows is found out, when it is first loaded: this was a third of the time of the
    tests of commands.
    """
    if base := sys.modules.get("spacy_pll.language_model.base"):
        monkeypatch.setattr(base, "read_checkpoint", partial(read_once, base.read_checkpoint))
        for name in ("find_capabilities", "find_direction", "find_shift"):
            monkeypatch.setattr(base, name, partial(find_once, getattr(base, name)))


def read_once(read, source, auto_class, check, *settings):
    if source not in UNCHANGED:
        return read(source, auto_class, check, *settings)
    key = source, auto_class, repr(settings)
    if key not in READ:
        READ[key] = deepcopy(read(source, auto_class, check, *settings))
    found = deepcopy(READ[key])
    check(found.transformer.config, found.tokenizer, source)
    return found


def find_once(find, forward, texts, *more):
    config = forward.model.config
    if config.name_or_path not in UNCHANGED:
        return find(forward, texts, *more)
    key = (find.__name__, *more, len(texts.long), config._attn_implementation, repr(config.to_dict()))
    if key not in FOUND:
        FOUND[key] = find(forward, texts, *more)
    return FOUND[key]


@pytest.fixture(scope="session")
def protein_folder(tmp_path_factory):
    """protein_folder(kind): a folder with a tiny model of proteins, "esm" or "bert", made once a session."""
    from .protein_models import save_protein_model

    @cache
    def make(kind="bert"):
        folder = tmp_path_factory.mktemp(f"protein-{kind}")
        save_protein_model(folder, kind)
        UNCHANGED.add(str(folder))
        return folder

    return make


@pytest.fixture(scope="session")
def language_model(model_folder):
    """language_model(architecture, tokenizer name): the same, loaded once a session."""
    loaded = {}

    def get(*args, **more):
        folder = model_folder(*args, **more)
        if folder not in loaded:
            loaded[folder] = masked_model(str(folder))
            loaded[folder].load()
        return loaded[folder]

    return get


@pytest.fixture
def make_nlp(model_folder):
    """make_nlp(architecture, tokenizer name, **settings): a blank English pipeline with `pll`."""

    def make(architecture="bert", tokenizer_name=None, nlp=None, name="pll", **config):
        nlp = nlp or spacy.blank("en")
        model = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(model_folder(architecture, tokenizer_name))}
        nlp.add_pipe("pll", name=name, config={"model": model, **config})
        return nlp

    return make


@pytest.fixture
def parts_of(monkeypatch):
    """parts_of(number): a run writes a part after so many texts, and not after thousands."""
    return lambda number: monkeypatch.setattr("spacy_pll.corpus.runs.TEXTS_PER_PART", number)


@pytest.fixture
def hub_cache(model_folder, tmp_path, monkeypatch):
    """Two states of the model team/baby are in the cache, as the checkpoints of a training are published: main is a
    BERT, chck_1M an ELECTRA. RETURNS: The environment of a process with this cache.
    """
    folder = tmp_path / "hub" / "models--team--baby"
    (folder / "refs").mkdir(parents=True)
    for name, commit, architecture in (("main", "a" * 40, "bert"), ("chck_1M", "b" * 40, "electra")):
        shutil.copytree(model_folder(architecture), folder / "snapshots" / commit)
        (folder / "refs" / name).write_text(commit)
    cache = str(tmp_path / "hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", cache)
    monkeypatch.setattr("transformers.utils.hub.TRANSFORMERS_CACHE", cache, raising=False)  # of transformers 4
    return {**os.environ, "HF_HUB_CACHE": cache, "HF_HUB_OFFLINE": "1"}


def change(scorer, settings=None, **parts):
    """Give a component another predictor: with other settings (a dict), or another `model` or `get_spans`."""
    if settings:
        parts["settings"] = replace(scorer.settings, **settings)
    scorer._predictor = replace(scorer.predictor, **parts)


def scores(doc, name="pll"):
    """The attribute `name` of each token; NaN where it is None."""
    return np.array([token._.get(name) for token in doc], dtype=float)


@pytest.fixture
def add_metric(monkeypatch):
    """add_metric(name, function): register a metric for one test. Others list all there is."""
    return lambda name, function: monkeypatch.setitem(catalogue.REGISTRY, ("spacy", "pll_metrics", name), function)


@pytest.fixture
def unregistered():
    """unregistered(attr): take the attributes away, as in a process that made no pipeline."""

    def forget(attr):
        for cls in (Doc, Span, Token):
            for name in [name for name in _extensions(cls) if name == attr or name.startswith(f"{attr}_")]:
                cls.remove_extension(name)

    return forget


def _extensions(cls):
    return list(getattr(Underscore, f"{cls.__name__.lower()}_extensions"))
