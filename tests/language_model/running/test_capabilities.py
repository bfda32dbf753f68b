"""Each trial of a model, on models with a fault made for it: hooks in a tiny BERT, GPT-2 or ModernBERT."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest
import torch
import transformers as hf
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.language_model.running.capabilities import find_capabilities, find_direction, find_shift
from spacy_pll.language_model.running.forward import Capabilities, Forward
from spacy_pll.language_model.running.group_trial import N_LONG, N_SHORT, find_group_passes
from spacy_pll.language_model.running.log_probs import TargetLogProbs
from spacy_pll.language_model.running.narrowing import Narrowing
from spacy_pll.language_model.running.trials import make_texts
from spacy_pll.language_model.running.unable import Unable

from ...conftest import build_transformer, get_tokenizer, masked_model
from ...scoring.planned import make_batch

WORDPIECE = get_tokenizer("wordpiece")
PAD, MASK = WORDPIECE.pad_token_id, WORDPIECE.mask_token_id


@pytest.fixture
def bert():
    return build_transformer("bert", WORDPIECE)


def after(module, change):
    """Let a module return `change(states)`, whatever else it returns."""

    def hook(module, args, output):
        if isinstance(output, tuple):
            return change(output[0]), *output[1:]
        if isinstance(output, torch.Tensor):
            return change(output)
        output.last_hidden_state = change(output.last_hidden_state)
        return output

    module.register_forward_hook(hook)


def capabilities(transformer, max_length=128):
    """Whether rows of different lengths may share a pass; what is narrowed; and the direction."""
    forward, texts = Forward(transformer), make_texts(WORDPIECE.backend_tokenizer, max_length)
    n_hooks = count_hooks(transformer)
    with torch.inference_mode():
        try:
            found = find_capabilities(forward, texts, MASK, PAD, "m")
        finally:  # a trial leaves nothing behind
            assert forward.capabilities == Capabilities() and count_hooks(transformer) == n_hooks
        with forward.trying(found):
            return found.pads, found.narrowing, find_direction(forward, texts, MASK)


def count_hooks(transformer):
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in transformer.modules())


def share_passes(transformer, tokenizer=WORDPIECE, max_length=128):
    forward, texts = Forward(transformer), make_texts(tokenizer.backend_tokenizer, max_length, N_LONG, N_SHORT)
    with torch.inference_mode():
        log_probs = TargetLogProbs(forward, 0)
        found = find_group_passes(log_probs, texts, tokenizer.mask_token_id, tokenizer.pad_token_id)
        return found and found.several_texts


@pytest.mark.parametrize("max_length", [128, 7, 4, 3])
def test_a_model_without_a_fault(bert, max_length):
    assert capabilities(bert, max_length) == (True, "after_last_attention", (True, True))
    assert share_passes(bert, max_length=max_length) is True


@given(st.lists(st.tuples(st.sampled_from([None, *Narrowing.names, "no_such_name"]), st.booleans()), max_size=6))
def test_what_is_tried_within_a_trial_is_undone(steps):
    """Whether it fails or not: passes give what they gave before, with as many hooks."""
    transformer = build_transformer("bert", WORDPIECE)
    forward = Forward(transformer)
    forward.use(Capabilities(narrowing="before_head"))
    batch = make_batch([[2, 7, 8, 3]], [(0, 2, 8), (0, 1, 7)])

    def state():
        with torch.inference_mode():
            return forward.capabilities, count_hooks(transformer), forward.logits(batch)[0]

    def attempt(steps):
        before = state()
        if steps:
            (narrowing, fails), *others = steps
            with suppress(AttributeError, Unable, ZeroDivisionError):
                with forward.trying(replace(forward.capabilities, narrowing=narrowing, opens_autocast=fails)):
                    attempt(others)
                    assert state()[2].shape == before[2].shape
                    if fails:
                        raise ZeroDivisionError
        after = state()
        assert after[:2] == before[:2]
        torch.testing.assert_close(after[2], before[2])

    attempt(steps)
    whole = Forward(build_transformer("bert", WORDPIECE))
    with torch.inference_mode():
        torch.testing.assert_close(forward.logits(batch)[0], whole.logits(batch)[0])


# Padding and shared rows


def test_padding_that_changes_the_longer_of_two_texts(bert):
    """Only the shorter one was looked at."""

    def change(states):
        new = states.clone()
        new[:1] += states[1:].sum(dim=(0, 1)) * 0.01  # of the rows below the first, if there are any
        return new

    after(bert.bert, change)
    with pytest.raises(ValueError, match="together with another one of the same length.*depend on chance, or on other"):
        capabilities(bert)


def test_padding_that_counts_only_beside_masks(bert):
    """As a model that scales by the part of the row that is masked: without a mask, the text showed nothing."""
    parts = []
    bert.bert.embeddings.register_forward_pre_hook(
        lambda module, args, kwargs: parts.append((kwargs["input_ids"] == MASK).float().mean(1)), with_kwargs=True
    )
    after(bert.bert.embeddings, lambda states: states * (1 + parts[-1][:, None, None]))
    assert capabilities(bert)[0] is False


def test_rows_of_one_length_that_change_each_other():
    """A model whose rows are not padded: they shared passes without a trial."""
    fnet = build_transformer("fnet", WORDPIECE)
    assert capabilities(fnet)[:2] == (False, "before_head")
    after(fnet.fnet, lambda states: states + 0.1 * states.flip(0))
    with pytest.raises(ValueError, match="together with another one of the same length"):
        capabilities(fnet)


def test_scores_by_chance(bert):
    after(bert.bert.encoder.layer[0], lambda states: states + 0.1 * torch.randn_like(states))
    with pytest.raises(ValueError, match="if it reads it again.*depend on chance"):
        capabilities(bert)


# Narrowing


def test_a_head_that_needs_the_row_of_a_state(bert):
    """At the targets of a single row it is right; at those of two rows, as if they were one, it is not."""
    after(bert.bert, lambda states: states + torch.linspace(0, 1, len(states))[:, None, None])
    with pytest.raises(ValueError, match="together with another one"):
        capabilities(bert)


def test_a_head_that_looks_at_its_neighbours(bert):
    bert.cls.register_forward_pre_hook(lambda module, args: (args[0] + args[0].roll(1, dims=1),))
    assert capabilities(bert)[1] is None


# Direction


def test_a_masked_model_that_sees_nothing(bert):
    """As MRA without its kernel, which was said to be left-to-right."""
    for layer in bert.bert.encoder.layer:
        after(layer.attention.self, torch.zeros_like)
    assert capabilities(bert)[2] == (False, False)


def test_mra_without_its_kernel(tmp_path):
    config = hf.MraConfig(
        vocab_size=len(WORDPIECE), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48
    )
    hf.MraForMaskedLM(config).save_pretrained(tmp_path)
    WORDPIECE.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="does not see what comes before a piece.*MRA.*CUDA"):
        masked_model(str(tmp_path)).load()


def test_a_model_that_is_sure_of_what_is_not_masked(bert):
    """It sees both sides. Where a piece is not masked, nothing shows it: its probability is 1."""
    seen = []
    bert.register_forward_pre_hook(lambda module, args, kwargs: seen.append(kwargs["input_ids"]), with_kwargs=True)
    narrowed = Forward(bert)  # not narrowed: logits for all positions

    def hook(module, args, output):
        ids = seen[-1]
        sure = torch.nn.functional.one_hot(ids, output.logits.shape[-1]) * 1e4 * (ids != MASK)[..., None]
        output.logits = output.logits + sure
        return output

    bert.register_forward_hook(hook)
    texts = make_texts(WORDPIECE.backend_tokenizer, 128)
    with torch.inference_mode():
        assert find_direction(narrowed, texts, MASK) == (True, True)


def gpt2():
    torch.manual_seed(0)
    config = hf.GPT2Config(vocab_size=len(WORDPIECE), n_embd=32, n_layer=2, n_head=2, initializer_range=0.2)
    return hf.GPT2LMHeadModel(config).eval()


def direction(transformer, mask_id=None):
    with torch.inference_mode():
        return find_direction(Forward(transformer), make_texts(WORDPIECE.backend_tokenizer, 128), mask_id)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("is_decoder", "expected"), [(False, (True, True)), (True, (True, False))])
def test_the_direction_of_small_models_that_are_not_trained(seed, is_decoder, expected):
    """Their log-probabilities hardly depend on the text: of seed 7, those of a masked piece differ by 2e-6."""
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    config = hf.BertConfig(vocab_size=len(WORDPIECE), is_decoder=is_decoder, **sizes)
    transformer = (hf.BertLMHeadModel if is_decoder else hf.BertForMaskedLM)(config).eval()
    assert direction(transformer, None if is_decoder else MASK) == expected


def fill_the_last(value, module, args, output):
    output.logits[..., -3:] = value


def test_the_direction_of_a_model_whose_vocabulary_is_padded_with_huge_logits(bert):
    """Nothing is more probable by them, and they are the largest: -1e9, or minus infinity."""
    for value in (-1e9, -torch.inf):
        handle = bert.register_forward_hook(partial(fill_the_last, value))
        assert direction(bert, MASK) == (True, True)
        handle.remove()


def test_a_left_to_right_model():
    assert direction(gpt2()) == (True, False)


@pytest.mark.parametrize("block", [1, 4, 5])
def test_a_left_to_right_model_that_sees_the_next_piece(block):
    """The piece itself, which it predicts: only those after it were changed. Or the pieces of a block."""
    model = gpt2()

    def change(states):
        if block == 1:
            return states + states.roll(-1, dims=1)
        padded = states.clone()
        for begin in range(1, states.shape[1], block):
            padded[:, begin : begin + block] += states[:, begin : begin + block].mean(dim=1, keepdim=True)
        return padded

    after(model.transformer.h[-1], change)
    assert direction(model) == (True, True)


def test_a_model_of_a_masked_class_that_sees_what_follows_alone():
    model = build_transformer("bert", WORDPIECE)
    for layer in model.bert.encoder.layer:
        after(layer.attention.self, lambda states: states.flip(1).cumsum(1).flip(1))
    assert capabilities(model)[2][1]


@pytest.mark.parametrize("seed", [2, 10, 58])
def test_a_piece_is_not_thought_to_be_predicted_one_position_before_by_chance(seed):
    """Of what is not masked, a model that was trained with masks alone is sure of anything. With these seeds, the
    following pieces were more probable than the own ones by 3 to 5 nats.
    """
    model = build_transformer("bert", WORDPIECE, tie_word_embeddings=False)
    torch.manual_seed(seed)
    torch.nn.init.normal_(model.cls.predictions.decoder.weight, std=2.0)
    with torch.inference_mode():
        assert find_shift(Forward(model), make_texts(WORDPIECE.backend_tokenizer, 128)) == 0
