"""A pipeline that was saved by spacy-pll 0.2.0 under transformers 4.53.2 gives the scores that it gave there.

saved_pipeline holds that pipeline, a random one-layer BERT. Its config names a span getter from spacy-transformers.
"""

from pathlib import Path

import numpy as np
import spacy
import srsly

from ..conftest import SENTENCES

SAVED = Path(__file__).parent / "saved_pipeline"
# On the machine where it was saved, the scores were equal bit for bit under transformers 4.53.2 and 5.23.0. Another
# processor may round otherwise.
WORD_L2R = [
    -8.321599006652832,
    -4.872833251953125,
    -5.607685565948486,
    -6.619546890258789,
    -10.9943208694458,
    -6.9396162033081055,
]
ORIGINAL = [*WORD_L2R[:4], -11.023139953613281, WORD_L2R[5]]


def check(nlp):
    doc = nlp(SENTENCES[0])
    np.testing.assert_allclose([token._.pll for token in doc], WORD_L2R, atol=1e-5)
    np.testing.assert_allclose([token._.pll_original for token in doc], ORIGINAL, atol=1e-5)


def test_from_disk(tmp_path):
    assert '"spacy-transformers.doc_spans.v1"' in (SAVED / "config.cfg").read_text(encoding="utf8")
    nlp = spacy.load(SAVED)
    check(nlp)
    nlp.to_disk(tmp_path)
    check(spacy.load(tmp_path))


def test_from_bytes():
    """Of a model, `to_bytes` gives the files that `to_disk` writes."""
    nlp = spacy.load(SAVED, exclude=["pll"])
    nlp.add_pipe("pll", config={"metrics": ["word_l2r", "original"]})
    model = {path.name: path.read_bytes() for path in (SAVED / "pll" / "model").iterdir()}
    nlp.get_pipe("pll").from_bytes(srsly.msgpack_dumps({"model": srsly.msgpack_dumps(model)}))
    check(nlp)
