"""A published checkpoint for antibody sequences, AntiBERTy: the scores of its authors' own code, and `mask_margin`."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch

from ..conftest import scores

FOLDER = Path(__file__).parents[2] / "scripts" / "experiments"
# Variable domains of published antibodies, a residue a piece.
TEXTS = (FOLDER / "antibodies.txt").read_text(encoding="utf8").splitlines()

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    script = importlib.import_module("scripts.experiments.convert_antiberty")
    folder = tmp_path_factory.mktemp("antiberty")
    try:
        script.convert(folder)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return folder


def score(folder, texts, **settings):
    nlp = spacy.blank("en")
    config = {"metrics": ["original"], "model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(folder)}}
    nlp.add_pipe("pll", config={**config, **settings})
    return [scores(doc) for doc in nlp.pipe(texts)]


def test_scores_are_those_of_the_authors(converted, monkeypatch):
    import transformers

    runner_module = pytest.importorskip("antiberty.AntiBERTyRunner", exc_type=ImportError)
    # Newer versions of transformers make neither its model nor its tokenizer; the rest of its code runs.
    monkeypatch.setattr(runner_module.AntiBERTy, "init_weights", lambda self: None)
    checkpoint = runner_module.CHECKPOINT_PATH
    runner = object.__new__(runner_module.AntiBERTyRunner)
    runner.device = torch.device("cpu")
    runner.model = runner_module.AntiBERTy(transformers.BertConfig.from_pretrained(checkpoint)).eval()
    weights = torch.load(f"{checkpoint}/pytorch_model.bin", map_location="cpu", weights_only=True)
    assert not runner.model.load_state_dict(weights, strict=False).missing_keys
    runner.tokenizer = transformers.AutoTokenizer.from_pretrained(converted)
    residues = ["".join(text.split()) for text in TEXTS[:2]]
    published = runner.pseudo_log_likelihood(residues, batch_size=32)  # the mean over the residues of each
    found = score(converted, TEXTS[:2])
    assert [len(values) for values in found] == [len(text) for text in residues]
    np.testing.assert_allclose([values.mean() for values in found], published, atol=1e-5)


def test_by_residue_they_are_those_of_plain_forward_passes(converted):
    import transformers

    model = transformers.AutoModelForMaskedLM.from_pretrained(converted).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(converted)
    ids = torch.tensor(tokenizer(TEXTS[0])["input_ids"])
    n = torch.arange(1, len(ids) - 1)
    rows = ids.repeat(len(n), 1)
    rows[torch.arange(len(n)), n] = tokenizer.mask_token_id
    with torch.no_grad():
        logits = model(rows).logits[torch.arange(len(n)), n]
    expected = logits.log_softmax(-1)[torch.arange(len(n)), ids[n]]
    np.testing.assert_allclose(score(converted, TEXTS[:1])[0], expected, atol=1e-5)


def test_one_pass_is_close_and_with_the_widest_margin_exact(converted):
    exact = np.concatenate(score(converted, TEXTS[:3]))
    one_pass = np.concatenate(score(converted, TEXTS[:3], mask_margin=0))
    assert np.corrcoef(exact, one_pass)[0, 1] >= 0.98  # of six, 0.991
    whole = score(converted, TEXTS[:1], mask_margin=1000)[0]
    np.testing.assert_allclose(whole, exact[: len(whole)], atol=1e-5)


def test_variants_are_those_of_plain_forward_passes(converted):
    """200 of all single substitutions, and pairs of them that are masked together."""
    import transformers

    from spacy_pll import make_pipeline, variants

    sequence = "".join(TEXTS[0].split())
    model = transformers.AutoModelForMaskedLM.from_pretrained(converted).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(converted)
    ids = tokenizer(TEXTS[0])["input_ids"]
    pieces = tokenizer.get_vocab()

    def expected(mutant):
        sites = [int(part[1:-1]) for part in mutant.split(":")]  # 0 is [CLS]
        row = torch.tensor([[tokenizer.mask_token_id if i in sites else one for i, one in enumerate(ids)]])
        with torch.no_grad():
            log_probs = model(row).logits[0].log_softmax(-1)
        parts = zip(sites, mutant.split(":"))
        return sum((log_probs[i, pieces[part[-1]]] - log_probs[i, pieces[part[0]]]).item() for i, part in parts)

    nlp = make_pipeline(str(converted))
    found = variants(nlp, sequence)
    assert len(found.variants) == 19 * len(sequence)
    scores = {variant.mutant: score for variant, score in zip(found.variants, found.scores.tolist())}
    some = list(scores)[:: len(scores) // 200][:200]
    np.testing.assert_allclose([scores[one] for one in some], [expected(one) for one in some], atol=1e-4)
    pairs = [f"{one}:{other}" for one, other in zip(some[:50:5], some[100:150:5])]
    np.testing.assert_allclose(variants(nlp, sequence, pairs).scores, [expected(one) for one in pairs], atol=1e-4)
