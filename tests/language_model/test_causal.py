"""Left-to-right models: log-likelihood with the beginning-of-sequence token prepended (K&I appendix B)."""

from dataclasses import replace

import numpy as np
import pytest
import spacy
import torch
import transformers as hf

from spacy_pll import PLLError, get_scorer
from spacy_pll.language_model.architectures import CausalLM
from spacy_pll.pipelines import PipelineSettings, make_pipeline, parse_settings
from spacy_pll.scoring.wordpieces import get_wordpieces

from ..cli.conftest import run
from ..conftest import PARAGRAPH, SENTENCES, get_tokenizer, scores
from ..models.test_minicons import sentences
from ..reference import window_of

SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=140)
CAUSAL = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", dict(n_embd=32, n_layer=2, n_head=2, n_positions=140)),
    "gpt-neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", {**SMALL, "intermediate_size": 48}),
    "opt": ("OPTForCausalLM", "OPTConfig", {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", {**SMALL, "intermediate_size": 48}),
    "modernbert-decoder": ("ModernBertDecoderForCausalLM", "ModernBertDecoderConfig",
                           {**SMALL, "intermediate_size": 48, "global_attn_every_n_layers": 2, "local_attention": 16,
                            "pad_token_id": 0}),
}  # fmt: skip


@pytest.fixture(scope="module")
def causal_folder(tmp_path_factory):
    def make(name, tokenizer=None):
        folder = tmp_path_factory.mktemp(name)
        # Without special tokens of its own, as GPT-2's, or with one at the beginning, as Llama's.
        tokenizer = tokenizer or get_tokenizer("causal-llama" if name == "llama" else "causal-gpt2")
        model_cls, config_cls, options = CAUSAL[name]
        if not hasattr(hf, model_cls):
            pytest.skip(f"transformers {hf.__version__} has no {model_cls}")
        torch.manual_seed(0)
        ids = dict(bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=None)
        config = getattr(hf, config_cls)(**{"vocab_size": len(tokenizer), **ids, **options})
        model = getattr(hf, model_cls)(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 2:
                    parameter.add_(torch.randn(parameter.shape) * 0.1)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return make


def make_nlp(folder, leading_space="word", **settings):
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-pll.CausalLM.v1", "name": str(folder), "leading_space": leading_space}
    nlp.add_pipe("pll", config={"model": model, "metrics": ["causal"], "keep_pieces": True, **settings})
    return nlp


@torch.inference_mode()
def brute_force(text, folder):
    tokenizer, model = hf.AutoTokenizer.from_pretrained(folder), hf.AutoModelForCausalLM.from_pretrained(folder).eval()
    own = tokenizer(text, add_special_tokens=False)["input_ids"]
    out = []
    for i, target in enumerate(own):
        logits = model(input_ids=torch.tensor([[tokenizer.bos_token_id, *own[:i]]])).logits[0, -1]
        out.append(logits.double().log_softmax(-1)[target].item())
    return out


@pytest.mark.parametrize("name", CAUSAL)
def test_scores_equal_the_brute_force_reference(causal_folder, name):
    folder = causal_folder(name)
    for doc in make_nlp(folder).pipe(["The hooligans can't travel.", "a", SENTENCES[0]]):
        expected = brute_force(doc.text, folder)
        np.testing.assert_allclose(doc._.pll_data["scores"]["causal"], expected, atol=1e-5)
        assert doc._.pll == pytest.approx(sum(expected), abs=1e-4)


@pytest.mark.parametrize("name", CAUSAL)
def test_one_forward_row_a_text_and_padding_changes_nothing(causal_folder, name):
    nlp = make_nlp(causal_folder(name))
    together = [scores(doc) for doc in nlp.pipe(SENTENCES)]
    scorer = nlp.get_pipe("pll")
    # OPT's head is fed by an inner module, past the hook: it runs at every position, and is right all the same.
    assert scorer.model.load().rows.pads and bool(scorer.model.loaded.forward.capabilities.narrowing) == (name != "opt")
    assert scorer.predictor.counts.rows == len(SENTENCES)
    for text, values in zip(SENTENCES, together):
        np.testing.assert_allclose(scores(nlp(text)), values, atol=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_tokenizer_that_pads_each_text(causal_folder, side, tmp_path):
    """As the last call of a training has left it, in memory and in its folder. Padding before a text was taken for the
    beginning of the sequence, which was missing then.
    """
    folder = causal_folder("gpt2")
    model, tokenizer = hf.AutoModelForCausalLM.from_pretrained(folder), hf.AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token, tokenizer.padding_side = tokenizer.eos_token, side
    tokenizer(SENTENCES, padding="max_length", max_length=30, truncation=True)
    for one in (model, tokenizer):
        one.save_pretrained(tmp_path)
    expected = brute_force(SENTENCES[1], folder)
    assert len(expected) > 30
    for given in (model, tokenizer), tmp_path:
        doc = make_pipeline(given, causal=True, keep_pieces=True)(SENTENCES[1])
        np.testing.assert_allclose(doc._.pll_data["scores"]["causal"], expected, atol=1e-5)


def test_long_texts_that_are_read_with_other_angles_change_no_short_ones(causal_folder, monkeypatch):
    """LongRoPE, as in Phi-3."""
    angles = {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [4.0 + i for i in range(8)]}
    options = {**SMALL, "intermediate_size": 48, "rope_scaling": angles, "original_max_position_embeddings": 32}
    monkeypatch.setitem(CAUSAL, "phi3", ("Phi3ForCausalLM", "Phi3Config", options))
    nlp = make_nlp(causal_folder("phi3"))
    words, counts = PARAGRAPH.split(), nlp.get_pipe("pll").predictor.counts
    texts = [" ".join(words[:n]) for n in range(1, 16)]
    alone = [nlp(text)._.pll for text in texts]
    before = counts.passes
    assert [doc._.pll for doc in nlp.pipe(texts)] == pytest.approx(alone, abs=1e-4)
    assert before == 15 and counts.passes - before < 6


def test_a_long_text_is_scored_whole(causal_folder):
    nlp = make_nlp(causal_folder("gpt2"))
    doc = nlp(PARAGRAPH * 5)
    tokenizer = nlp.get_pipe("pll").model.load().tokenizer
    assert doc._.pll_data["pieces"] == tokenizer.encode(doc.text).tokens[1:] and doc._.pll_pieces > 256


@pytest.mark.parametrize("leading_space", ["word", "previous"])
def test_a_long_text_is_scored_in_the_windows_with_the_most_before_each_piece(causal_folder, leading_space):
    folder = causal_folder("gpt2")
    nlp = make_nlp(folder, leading_space)
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    model.loaded = replace(model.loaded, max_length=20)
    doc = nlp(PARAGRAPH)
    data, transformer = doc._.pll_data, hf.AutoModelForCausalLM.from_pretrained(folder).eval()
    ids, bos = data["ids"], get_tokenizer("causal-gpt2").bos_token_id
    word = get_wordpieces([doc[:]], model.load().tokenizer, "spacy").word.tolist()
    marked = [*(piece.startswith("Ġ") for piece in data["pieces"]), True]
    begins = [i for piece, i in get_tokenizer("causal-gpt2").get_vocab().items() if piece.startswith("Ġ")]
    begins.append(get_tokenizer("causal-gpt2").eos_token_id)
    expected = []
    for i, target in enumerate(ids):
        start, end = window_of(i, word, 19, lookahead=1 if leading_space == "previous" else 0)
        with torch.inference_mode():
            logits = transformer(input_ids=torch.tensor([[bos, *ids[start : i + 1]]])).logits[0, -2:].double()
        before, after = logits.log_softmax(-1)
        expected.append(before[target].item())
        if leading_space == "previous":
            given = before[begins].logsumexp(-1).item() if marked[i] and i > start else 0
            received = after[begins].logsumexp(-1).item() if marked[i + 1] else 0
            expected[-1] += received - given
    np.testing.assert_allclose(data["scores"]["causal"], expected, atol=1e-5)


def test_round_trip(causal_folder, tmp_path):
    nlp = make_nlp(causal_folder("gpt2"))
    expected = scores(nlp(PARAGRAPH))
    nlp.to_disk(tmp_path)
    assert (scores(spacy.load(tmp_path)(PARAGRAPH)) == expected).all()
    # saved as it came: the prepended token is no part of the tokenizer
    saved = hf.AutoTokenizer.from_pretrained(tmp_path / "pll" / "model")
    assert saved("a").input_ids == get_tokenizer("causal-gpt2")("a").input_ids


def test_masked_models_and_metrics_are_refused(causal_folder, model_folder):
    with pytest.raises(ValueError, match="'word_l2r' needs a masked language model.*causal one.*of these: causal"):
        make_nlp(causal_folder("gpt2"), metrics=["word_l2r"])
    with pytest.raises(ValueError, match="sees what follows a piece.*leave out `causal`.*spacy-pll.MaskedLM.v1"):
        make_nlp(model_folder("bert")).initialize()


def test_a_left_to_right_model_is_recognised_by_its_config(causal_folder, model_folder):
    folder = causal_folder("gpt2")
    expected = scores(make_nlp(folder)(SENTENCES[0]))
    for settings in (PipelineSettings(str(folder)), parse_settings(f"{folder},causal")):
        nlp = make_pipeline(settings)
        assert get_scorer(nlp).settings.metrics == ("causal",) and (scores(nlp(SENTENCES[0])) == expected).all()
    for settings in (PipelineSettings(), PipelineSettings(str(model_folder("bert")))):
        assert get_scorer(make_pipeline(settings)).settings.metrics == ("word_l2r",)


def test_a_model_of_which_there_are_both_kinds(model_folder, tmp_path):
    """Such as BERT: it is a left-to-right one if the settings say so."""
    model = hf.BertLMHeadModel(hf.AutoConfig.from_pretrained(model_folder("bert"), is_decoder=True))
    model.save_pretrained(tmp_path)
    tokenizer = hf.AutoTokenizer.from_pretrained(model_folder("bert"), bos_token="[CLS]")
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="left-to-right model"):
        make_pipeline(str(tmp_path))
    doc = make_pipeline(str(tmp_path), causal=True)(SENTENCES[0])
    assert doc._.pll < 0


def test_settings_that_do_not_go_with_causal(saved_pipeline, model_folder):
    with pytest.raises(ValueError, match="the built-in one is a masked one"):
        make_pipeline(causal=True)
    with pytest.raises(ValueError, match="sees what follows a piece"):
        make_pipeline(PipelineSettings(str(model_folder("bert")), causal=True))
    with pytest.raises(ValueError, match="is a spaCy pipeline"):
        make_pipeline(str(saved_pipeline), causal=True)


@pytest.fixture
def saved_pipeline(causal_folder, tmp_path):
    make_nlp(causal_folder("gpt2")).to_disk(tmp_path / "saved")
    return tmp_path / "saved"


def test_no_beginning_of_sequence_token(causal_folder, tmp_path):
    folder = causal_folder("gpt2")
    nameless = hf.PreTrainedTokenizerFast(tokenizer_object=get_tokenizer("causal-gpt2").backend_tokenizer)
    nameless.save_pretrained(folder)
    with pytest.raises(ValueError, match="no beginning-of-sequence token.*bos_token"):
        make_nlp(folder).initialize()


@torch.inference_mode()
def brute_force_words(text, folder, marker):
    """Pimentel & Meister's equation, word by word: a full distribution at every place, Python sums over it."""
    tokenizer, model = hf.AutoTokenizer.from_pretrained(folder), hf.AutoModelForCausalLM.from_pretrained(folder).eval()
    vocabulary = tokenizer.get_vocab()
    beginners = [i for piece, i in vocabulary.items() if piece[0] == marker] + [tokenizer.eos_token_id]

    def distribution(before):
        logits = model(input_ids=torch.tensor([[tokenizer.bos_token_id, *before]])).logits[0, -1]
        return logits.double().softmax(-1).tolist()

    def boundary(before):
        probabilities = distribution(before)
        return np.log(sum(probabilities[i] for i in beginners))

    words = []  # lists of pieces; a new one where a piece begins with the marker
    for piece in tokenizer.tokenize(text):
        if not words or piece[0] == marker:
            words.append([])
        words[-1].append(vocabulary[piece])
    out, before = [], []
    for word in words:
        score = -boundary(before) if before else 0.0
        for piece in word:
            score += np.log(distribution(before)[piece])
            before = [*before, piece]
        out.append(score + boundary(before))
    return out


SPACED = "The hooligans travel and lost the souvenir."


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tokenizer", "marker"), [
    ("gpt2", None, "Ġ"), ("gpt-neox", None, "Ġ"), ("opt", None, "Ġ"), ("llama", None, "Ġ"),
    ("llama", "causal-llama2", "▁"),  # it marks the first word of a text, too
])  # fmt: skip
def test_the_leading_space_as_the_previous_words(causal_folder, name, tokenizer, marker):
    folder = causal_folder(name, tokenizer and get_tokenizer(tokenizer))
    texts = [SPACED, "a", "lost it"]
    plain = list(make_nlp(folder, words="whitespace").pipe(texts))
    nlp = make_nlp(folder, "previous")
    for doc, uncorrected in zip(list(nlp.pipe(texts)), plain):
        expected = brute_force_words(doc.text, folder, marker)
        found, start = [], 0
        for word in doc.text.split(" "):
            span = doc.char_span(start, start + len(word))
            found.append(span._.pll)
            start += len(word) + 1
        np.testing.assert_allclose(found, expected, atol=1e-4)
        # What moves between words cancels: only the end of the last one is new.
        assert doc._.pll < uncorrected._.pll
        np.testing.assert_allclose(scores(nlp(doc.text)), scores(doc), atol=1e-5)


def test_the_leading_space_with_a_special_token_behind_the_text(causal_folder):
    tokenizer = get_tokenizer("byte-level")
    ends = dict(bos_token=tokenizer.cls_token, eos_token=tokenizer.sep_token)
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, **ends)
    assert tokenizer(SPACED).input_ids[-1] == tokenizer.eos_token_id
    folder = causal_folder("gpt2", tokenizer)
    doc = make_nlp(folder, "previous", words="whitespace")(SPACED)
    assert doc._.pll == pytest.approx(sum(brute_force_words(SPACED, folder, "Ġ")), abs=1e-4)


@pytest.mark.cpu
def test_the_leading_space_is_moved_in_long_texts_and_survives_saving(causal_folder, tmp_path):
    folder = causal_folder("gpt2")
    nlp = make_nlp(folder, "previous")
    doc, plain = nlp(PARAGRAPH * 5), make_nlp(folder)(PARAGRAPH * 5)
    difference = np.array(doc._.pll_data["scores"]["causal"]) - plain._.pll_data["scores"]["causal"]
    marked = np.array([piece.startswith("Ġ") for piece in doc._.pll_data["pieces"]])
    following = np.append(marked[1:], True)
    assert (difference[marked & ~following] > 0).all() and (difference[~marked & following] < 0).all()
    # The last word of a window is scored in the next one, so that its next piece is known.
    assert (np.abs(difference[~marked & ~following]) < 1e-4).mean() > 0.95
    nlp.to_disk(tmp_path)
    assert (scores(spacy.load(tmp_path)(PARAGRAPH * 5)) == scores(doc)).all()


def test_leading_spaces_that_are_not_marked(causal_folder):
    tokenizer = get_tokenizer("wordpiece")
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, bos_token="[CLS]")
    folder = causal_folder("gpt2", tokenizer)
    with pytest.raises(ValueError, match="marks no leading spaces.*leave it at 'word'"):
        make_nlp(folder, "previous").initialize()
    with pytest.raises(ValueError, match="leading_space.*(is not|permitted).*'word', 'previous'"):
        make_nlp(folder, "next")
    with pytest.raises(ValueError, match="word, previous. It is 'next'"):
        CausalLM(str(folder), leading_space="next")


@pytest.mark.slow
@pytest.mark.parametrize("corrected", [False, True])
def test_sums_equal_those_of_minicons(causal_folder, corrected):
    scorer = pytest.importorskip(
        "minicons.scorer", reason="minicons is missing: pip install . --group test-transformers4"
    )
    tokenizer = get_tokenizer("gpt2")
    if corrected:  # minicons does not count the end of the text among what may follow a word
        roles = dict.fromkeys(["bos_token", "pad_token"], "<|endoftext|>")
        tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, **roles)
    folder = causal_folder("gpt2", tokenizer)
    theirs = scorer.IncrementalLMScorer(str(folder), "cpu")
    texts = sentences(500)
    expected = []
    for start in range(0, len(texts), 50):
        batch = texts[start : start + 50]
        settings = dict(bos_token=True, bow_correction=corrected)
        expected += theirs.sequence_score(batch, reduction=lambda x: x.sum(0).item(), **settings)
    nlp = make_nlp(folder, "previous" if corrected else "word")
    found = [doc._.pll for doc in nlp.pipe(texts)]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("leading_space", ["word", "previous"])
def test_what_was_expected(causal_folder, leading_space):
    """The plain distribution after the pieces before, wherever the probability of a leading space goes."""
    folder = causal_folder("gpt2")
    settings = {"alternatives": 3, "distribution": True}
    record = make_nlp(folder, leading_space, **settings)("The traveler lost.")._.pll_data
    model, bos = hf.AutoModelForCausalLM.from_pretrained(folder).eval(), get_tokenizer("causal-gpt2").bos_token_id
    for i, target in enumerate(record["ids"]):
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([[bos, *record["ids"][:i]]])).logits[0, -1]
        expected = logits.double().log_softmax(-1)
        assert record["rank"][i] == 1 + (expected > expected[target] + 1e-6).sum()
        assert record["entropy"][i] == pytest.approx(-(expected.exp() * expected).sum().item(), abs=1e-5)
        found = [log_prob for _, log_prob, _ in record["alternatives"][i]]
        np.testing.assert_allclose(found, expected.topk(3).values, atol=1e-5)


def test_the_leading_space_as_a_setting(causal_folder, model_folder, tmp_path):
    """In each way to give settings; and where there is no such space, or it is set already, it is refused."""
    folder = str(causal_folder("gpt2"))
    text = "The traveler lost it."
    for given in ("word", "previous"):
        expected = scores(make_nlp(folder, given)(text))
        ways = [
            make_pipeline(folder, leading_space=given),
            make_pipeline(parse_settings(f"{folder},leading_space={given}")),
            make_pipeline(PipelineSettings(folder, leading_space=given)),
        ]
        for nlp in ways:
            assert scores(nlp(text)) == pytest.approx(expected, abs=1e-5)
        shown = run("show", text, "--model", folder, "--leading-space", given, "--metrics", "causal").stdout
        assert f"{sum(expected):.2f}" in shown
    words, previous = (scores(make_nlp(folder, given)(text)) for given in ("word", "previous"))
    assert words != pytest.approx(previous, abs=1e-3)
    make_nlp(folder).to_disk(tmp_path / "saved")
    masked = str(model_folder("bert"))
    for model in (masked, None, str(tmp_path / "saved"), make_nlp(folder)):
        with pytest.raises(PLLError, match="`leading_space`"):
            make_pipeline(model, leading_space="previous")
    error = run("show", text, "--model", masked, "--leading-space", "previous", fails=True).unwrapped_stderr
    assert "--leading-space is for left-to-right models, not " in error
    assert "is not one of word, previous" in run("show", text, "--leading-space", "x", code=2).unwrapped_stderr
