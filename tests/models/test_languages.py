"""Alignment in many languages and scripts.

The texts are the example sentences that spaCy itself ships (`spacy.lang.*.examples`, MIT licence), read from there, so
that nothing is copied; for scripts that it has no example of, a greeting each. A tokenizer that needs a package of its
own (Japanese, Korean, Vietnamese) is replaced by the multi-language one, "xx".
"""

import importlib
import logging
import pkgutil
import unicodedata
import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import spacy
import spacy.lang
import torch

from spacy_pll import PLLScorer, ScoringSettings
from spacy_pll.language_model.protocol import Description, LanguageModel, Loaded, PassLimits
from spacy_pll.language_model.running.log_probs import DevicePredictions
from spacy_pll.prediction.predictor import Predictor
from spacy_pll.span_getters import get_doc_spans

from ..conftest import REAL_TOKENIZERS, TINY_TOKENIZERS, UNITS, get_tokenizer
from ..reference import encode
from ..scoring.test_wordpieces import check_alignment

# "Hello, world" or the like.
GREETINGS = [
    "สวัสดีชาวโลก ฉันอ่านหนังสือ",  # Thai
    "ສະບາຍດີຊາວໂລກ",  # Lao
    "សួស្តីពិភពលោក",  # Khmer
    "မင်္ဂလာပါ ကမ္ဘာလောက",  # Burmese
    "გამარჯობა, მსოფლიო!",  # Georgian
    "ਸਤ ਸ੍ਰੀ ਅਕਾਲ ਦੁਨਿਆ।",  # Punjabi, Gurmukhi
    "ନମସ୍କାର ଦୁନିଆ",  # Odia
    "ᎣᏏᏲ ᎡᎶᎯ",  # Cherokee
    "ᐊᐃ ᓄᓇᕐᔪᐊᖅ",  # Inuktitut
    "ᠰᠠᠶᠢᠨ ᠪᠠᠶᠢᠨ᠎ᠠ ᠤᠤ",  # Mongolian, with a vowel separator
    "އައްސަލާމް ޢަލައިކުމް",  # Dhivehi
    "ܫܠܡܐ ܥܠܡܐ",  # Syriac
    "ⴰⵣⵓⵍ ⴰⵎⴰⴹⴰⵍ",  # Tamazight
    "ߌ ߣߌ ߛߐ߲߬ߜߐ߫",  # N'Ko
    "𐐐𐐯𐑊𐐬, 𐐶𐐲𐑉𐑊𐐼!",  # Deseret: letters that are surrogate pairs in UTF-16
    "𐌷𐌰𐌹𐌻𐍃 𐍆𐌰𐌹𐍂𐍈𐌿𐍃",  # Gothic, likewise
    "𒁲 𒈬 𒀀",  # Cuneiform, likewise
]
# The first words of letters' names that are no scripts.
NO_SCRIPTS = {"KATAKANA-HIRAGANA", "FULLWIDTH", "HALFWIDTH", "MODIFIER", "FEMININE", "MASCULINE", "MICRO"}


@cache
def examples() -> dict[str, list[str]]:
    found = {}
    for module in pkgutil.iter_modules(spacy.lang.__path__):
        if module.ispkg:
            try:
                found[module.name] = importlib.import_module(f"spacy.lang.{module.name}.examples").sentences
            except ModuleNotFoundError:
                continue
    return {**found, "xx": [*found.get("xx", []), *GREETINGS]}


def _blank(language: str):
    try:
        return spacy.blank(language)
    except ImportError:  # spaCy's tokenizer for it needs a package that is not there
        return spacy.blank("xx")


TOKENIZERS = [*TINY_TOKENIZERS, *REAL_TOKENIZERS, "gpt2"]


@pytest.fixture(scope="module")
def docs(real_english):
    return [doc for language, texts in examples().items() for doc in _blank(language).tokenizer.pipe(texts)]


@pytest.mark.slow
def test_there_are_many_languages_and_scripts():
    texts_of = examples()
    letters = {c for texts in texts_of.values() for text in texts for c in text if c.isalpha()}
    scripts = {unicodedata.name(c, "?").split()[0] for c in letters} - NO_SCRIPTS
    assert len(texts_of) >= 65 and sum(map(len, texts_of.values())) >= 560
    assert len(scripts) >= 35
    bidirectional = {unicodedata.bidirectional(c) for c in letters}
    assert {"R", "AL"} <= bidirectional and any(ord(c) > 0xFFFF for c in letters)
    marks = {c for texts in texts_of.values() for text in texts for c in text if unicodedata.combining(c)}
    assert len(marks) >= 25


@pytest.mark.slow
@pytest.mark.parametrize("name", TOKENIZERS)
def test_alignment_is_that_of_the_plain_reference(name, docs):
    tokenizer = get_tokenizer(name)
    for number, doc in enumerate(docs):
        check_alignment(doc, tokenizer, UNITS[number % len(UNITS)])


class Recorder(LanguageModel):
    """Stands for a language model: each piece's log-probability is known by its id, so each can be accounted for."""

    def __init__(self, tokenizer, max_length):
        rows = PassLimits(max_tokens=100_000, max_targets=100_000, pad_id=0, pads=True)
        self.loaded = Loaded(
            tokenizer=tokenizer.backend_tokenizer,
            max_length=max_length,
            mask_id=-1,
            unknown_id=None,
            rows=rows,
            n_ids=0,
        )

    def load(self, groups=False):
        return self.loaded

    def describe(self):
        return Description("the recorder")

    def check_metrics(self, metrics):
        return None

    @staticmethod
    def value(ids):
        return -(np.asarray(ids, dtype=np.float64) + 1) * 2.0**-18  # exact in float32 and in every sum below

    def submit(self, batches):
        return DevicePredictions([(torch.from_numpy(self.log_probabilities(batch)),) for batch in batches])

    def log_probabilities(self, batch):
        assert (batch.ids[batch.row, batch.position] == self.loaded.mask_id).all()
        assert batch.lengths.max() <= self.loaded.max_length
        return self.value(batch.target).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("max_length", [512, 24])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_every_piece_is_scored_once_and_nothing_is_said_of_length(name, max_length, docs):
    tokenizer = get_tokenizer(name)
    settings = ScoringSettings(["original"], keep_pieces=True)
    scorer = PLLScorer(Predictor(Recorder(tokenizer, max_length), get_doc_spans, settings), attr="heard")
    said = []
    handler = SimpleNamespace(level=0, handle=said.append)
    logging.getLogger("transformers").addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # A script without spaces gives tokens of many pieces: what is split is named, and that is all.
            warnings.filterwarnings("ignore", "The word or unit at token .* has more pieces than the model reads")
            scored = list(scorer.pipe(doc.copy() for doc in docs))
    finally:
        logging.getLogger("transformers").removeHandler(handler)
    assert not said and len(scored) == len(docs)
    for doc in scored:
        encoding = encode(tokenizer, doc.text)
        own = [i for i, special in zip(encoding.ids, encoding.special_tokens_mask) if not special]
        assert doc._.heard_data["ids"] == own and doc._.heard_pieces == len(own)
        assert doc._.heard == sum(token._.heard for token in doc) == Recorder.value(own).sum()
