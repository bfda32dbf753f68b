"""A tiny teacher and a corpus of random sentences: a student is trained in seconds."""

import random

import pytest

from spacy_pll.distillation.settings import DistillationSettings

from ..conftest import SENTENCES

WORDS = " ".join(SENTENCES[:4]).split()


def random_texts(n, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(4, 14))) for _ in range(n)]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A file of 400 random sentences."""
    path = tmp_path_factory.mktemp("corpus") / "texts.txt"
    path.write_text("".join(text + "\n" for text in random_texts(400)), encoding="utf8")
    return path


@pytest.fixture
def make_settings(model_folder, corpus):
    """make_settings(architecture, **settings): settings for a tiny teacher."""

    def make(architecture="bert", **settings):
        few = dict(corpus=str(corpus), steps=6, batch_tokens=128, eval_every=3, lr=2e-3)
        return DistillationSettings(str(model_folder(architecture)), **{**few, **settings})

    return make
