"""A tiny model and a corpus of random sentences: a model is tuned in seconds."""

import random

import pytest

from scripts.tuning.settings import TuningSettings

from ..conftest import SENTENCES

WORDS = " ".join(SENTENCES[:4]).split()


def random_texts(n, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(4, 14))) for _ in range(n)]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A folder of two files of random sentences. In the second there are blank lines."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text("".join(text + "\n" for text in random_texts(600, 1)), encoding="utf8")
    (folder / "b.txt").write_text("".join(text + "\n\n" for text in random_texts(300, 2)), encoding="utf8")
    return folder


@pytest.fixture
def make_settings(model_folder, corpus):
    """make_settings(architecture, **settings): settings for a tiny model."""

    def make(architecture="bert", **settings):
        # Weights so large that a prediction depends on its context.
        model = str(model_folder(architecture, initializer_range=0.4))
        few = dict(model=model, texts=str(corpus), steps=4, targets=40, learning_rate=1e-3)
        return TuningSettings(**{**few, **settings})

    return make
