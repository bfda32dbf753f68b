import pytest
import spacy

METRICS = ["word_l2r", "original", "whole_word"]


def shown(number):
    return f"{number:.2f}".replace("-", "−")


@pytest.fixture(scope="module")
def nlp(model_folder):
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(model_folder("bert"))}
    nlp.add_pipe("pll", config={"model": model, "metrics": METRICS, "keep_pieces": True})
    return nlp


@pytest.fixture(scope="module")
def doc(nlp):
    return nlp("The hooligans lost a souvenir, zyx!")
