"""Tiny models made from configuration, with tiny tokenizers made here: no test needs a network."""

import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import spacy  # noqa: E402
import torch  # noqa: E402
import transformers as hf  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from spacy.tokens import Doc, Span, Token  # noqa: E402
from spacy.tokens.underscore import Underscore  # noqa: E402
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

from spacy_pll.language_model.masked import MaskedLanguageModel  # noqa: E402

# The models are tiny: a second thread would cost more than it brings.
torch.set_num_threads(1)
settings.register_profile("spacy-pll", deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
settings.load_profile("spacy-pll")

SHARED = Path(__file__).parents[2] / "shared"

SENTENCES = [
    "The traveler lost the souvenir.",
    "I can't believe that the hooligans, who are young, didn't travel.",
    "Dr. Smith's co-workers paid $3.50 for a well-known carnivore!",
    'She said: "It\'s over" and left (at 10:30 p.m.).',
    "Ein Bär läuft über die Straße, 犬も歩けば棒に当たる, שלום עולם, мир.",
]
PARAGRAPH = " ".join(SENTENCES[:4])

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


def _finish(tokenizer, special, **roles):
    for piece in special:
        assert tokenizer.token_to_id(piece) is not None
    bos, eos = roles["cls_token"], roles["sep_token"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}", special_tokens=[(p, tokenizer.token_to_id(p)) for p in (bos, eos)]
    )
    return hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=128, **roles)


BERT_ROLES = dict(cls_token="[CLS]", pad_token="[PAD]", sep_token="[SEP]", unk_token="[UNK]", mask_token="[MASK]")
ROBERTA_ROLES = dict(cls_token="<s>", pad_token="<pad>", sep_token="</s>", unk_token="<unk>", mask_token="<mask>")


def wordpiece_tokenizer():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = list(BERT_ROLES.values())
    tokenizer.train_from_iterator(SENTENCES, trainers.WordPieceTrainer(vocab_size=190, special_tokens=special))
    return _finish(tokenizer, special, **BERT_ROLES)


def byte_level_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = list(ROBERTA_ROLES.values())
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return _finish(tokenizer, special, **ROBERTA_ROLES)


def unigram_tokenizer():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.NFKC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = list(BERT_ROLES.values())
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="[UNK]")
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return _finish(tokenizer, special, **BERT_ROLES)


TINY_TOKENIZERS = {"wordpiece": wordpiece_tokenizer, "byte-level": byte_level_tokenizer, "unigram": unigram_tokenizer}
REAL_TOKENIZERS = ["bert-base-cased", "bert-base-uncased", "bert-base-chinese", "bert-base-multilingual-cased",
                   "roberta-base", "albert-base-v2", "deberta-v3-base"]  # fmt: skip
_tokenizers = {}


def get_tokenizer(name):
    """A tiny tokenizer by kind, or a real one by name (skips where its files are not there)."""
    if name not in _tokenizers:
        if name in TINY_TOKENIZERS:
            _tokenizers[name] = TINY_TOKENIZERS[name]()
        elif (SHARED / "tokenizers" / name).is_dir():
            _tokenizers[name] = hf.AutoTokenizer.from_pretrained(SHARED / "tokenizers" / name)
        else:
            pytest.skip(f"the real tokenizer {name} is not at hand")
    return _tokenizers[name]


SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48)

# name: (model class, config class, settings, tokenizer)
ARCHITECTURES = {
    "bert": (hf.BertForMaskedLM, hf.BertConfig, SMALL, "wordpiece"),
    "roberta": (hf.RobertaForMaskedLM, hf.RobertaConfig, SMALL, "byte-level"),
    "xlm-roberta": (hf.XLMRobertaForMaskedLM, hf.XLMRobertaConfig, SMALL, "unigram"),
    "camembert": (hf.CamembertForMaskedLM, hf.CamembertConfig, SMALL, "unigram"),
    "albert": (hf.AlbertForMaskedLM, hf.AlbertConfig, {**SMALL, "embedding_size": 16}, "unigram"),
    "distilbert": (
        hf.DistilBertForMaskedLM, hf.DistilBertConfig, dict(dim=32, n_layers=2, n_heads=2, hidden_dim=48), "wordpiece"
    ),
    "electra": (hf.ElectraForMaskedLM, hf.ElectraConfig, {**SMALL, "embedding_size": 16}, "wordpiece"),
    "deberta": (hf.DebertaForMaskedLM, hf.DebertaConfig, {**SMALL, "relative_attention": True,
                "pos_att_type": ["c2p", "p2c"]}, "byte-level"),
    "deberta-v2": (hf.DebertaV2ForMaskedLM, hf.DebertaV2Config, {**SMALL, "relative_attention": True,
                   "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}, "unigram"),
    "mpnet": (hf.MPNetForMaskedLM, hf.MPNetConfig, SMALL, "wordpiece"),
    "modernbert": (hf.ModernBertForMaskedLM, hf.ModernBertConfig,
                   {**SMALL, "global_attn_every_n_layers": 1, "reference_compile": False}, "byte-level"),
    "esm": (hf.EsmForMaskedLM, hf.EsmConfig, {**SMALL, "position_embedding_type": "rotary"}, "wordpiece"),
    "convbert": (hf.ConvBertForMaskedLM, hf.ConvBertConfig, {**SMALL, "embedding_size": 32}, "wordpiece"),
    "roformer": (hf.RoFormerForMaskedLM, hf.RoFormerConfig, {**SMALL, "embedding_size": 32}, "wordpiece"),
    "xlm": (hf.XLMWithLMHeadModel, hf.XLMConfig, dict(emb_dim=32, n_layers=2, n_heads=2), "wordpiece"),
    "fnet": (hf.FNetForMaskedLM, hf.FNetConfig,
             dict(hidden_size=32, num_hidden_layers=2, intermediate_size=48), "unigram"),
}  # fmt: skip


def build_transformer(architecture, tokenizer, positions=140, **more):
    """A random model whose scores differ enough to tell right from wrong."""
    model_cls, config_cls, options, _ = ARCHITECTURES[architecture]
    ids = {f"{n}_token_id": getattr(tokenizer, f"{n}_token_id") for n in ("pad", "mask")}
    ids.update(bos_token_id=tokenizer.cls_token_id, eos_token_id=tokenizer.sep_token_id)
    if architecture == "modernbert":
        ids.update(cls_token_id=tokenizer.cls_token_id, sep_token_id=tokenizer.sep_token_id)
    if architecture == "xlm":
        ids.update(pad_index=tokenizer.pad_token_id, mask_index=tokenizer.mask_token_id)
    options = {"max_position_embeddings": positions, "vocab_size": len(tokenizer), **ids, **options, **more}
    torch.manual_seed(0)
    model = model_cls(config_cls(**options)).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """model_folder(architecture, tokenizer name): a folder with a tiny random model, made once a session."""
    made = {}

    def make(architecture="bert", tokenizer_name=None, **more):
        tokenizer_name = tokenizer_name or ARCHITECTURES[architecture][3]
        key = (architecture, tokenizer_name, *sorted(more.items()))
        if key not in made:
            folder = tmp_path_factory.mktemp(f"{architecture}-{tokenizer_name}")
            tokenizer = get_tokenizer(tokenizer_name)
            build_transformer(architecture, tokenizer, **more).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            made[key] = folder
        return made[key]

    return make


@pytest.fixture(scope="session")
def language_model(model_folder):
    """language_model(architecture, tokenizer name): the same, loaded once a session."""
    loaded = {}

    def get(*args, **more):
        folder = model_folder(*args, **more)
        if folder not in loaded:
            loaded[folder] = MaskedLanguageModel(str(folder))
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


def scores(doc, name="pll"):
    return np.array([token._.get(name) for token in doc], dtype=float)


@pytest.fixture(scope="session")
def data_folder():
    """The folder of data sets, tokenizers and training text, which are not in the repository."""
    folder = os.environ.get("SPACY_PLL_DATA")
    if not folder:
        pytest.skip("the environment variable SPACY_PLL_DATA names no folder of data sets")
    return Path(folder)


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
