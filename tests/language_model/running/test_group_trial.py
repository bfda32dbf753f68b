"""Trials of groups: a mask by place, positions by place, members that the content sees."""

import pytest
import torch

from spacy_pll.language_model.running import group_attention, true_positions

from ...conftest import build_transformer, get_tokenizer
from .test_capabilities import WORDPIECE, share_passes


@pytest.fixture
def bert():
    return build_transformer("bert", WORDPIECE)


def test_a_local_mask_that_is_read_by_place(monkeypatch):
    """The same group in the same slot twice is wrong twice in the same way."""
    tokenizer = get_tokenizer("byte-level")
    model = build_transformer("modernbert-local", tokenizer, attn_implementation="eager")
    assert share_passes(model, tokenizer) is True
    monkeypatch.setattr(group_attention.GroupAttention, "_to_add", lambda self, given: given)
    assert share_passes(model, tokenizer) is None
    assert share_passes(model, tokenizer, max_length=16) is None


@pytest.mark.parametrize("max_length", [128, 16])
def test_positions_that_are_wrong_in_the_last_slots(bert, monkeypatch, max_length):
    """The group that was tried alone and beside others stood in the first one both times."""
    right = true_positions._absolute

    def wrong(first, module, args):
        positions = right(first, module, args)
        if positions is None:
            return None
        return (torch.cat([positions[0][:, :-2], (positions[0][:, -2:] + 1) % max_length], dim=1),)

    assert share_passes(bert, max_length=max_length) is True
    monkeypatch.setattr(true_positions, "_absolute", wrong)
    assert share_passes(bert, max_length=max_length) is None


@pytest.mark.parametrize("max_length", [128, 16])
def test_a_content_that_sees_the_groups(bert, monkeypatch, max_length):
    sees = group_attention.GroupAttention.__dict__["_sees"].func
    monkeypatch.setattr(group_attention, "SHORT", {"cpu": 10**6})

    def leaky(self):
        found = sees(self)
        return found | (torch.arange(self.width) < self.lengths[:, None])[:, :, None]

    monkeypatch.setattr(group_attention.GroupAttention, "_sees", property(leaky))
    assert share_passes(bert, max_length=max_length) is None


@pytest.mark.parametrize("architecture", ["deberta-v2", "roformer"])
@pytest.mark.parametrize("max_length", [128, 12, 5])
def test_rows_that_cannot_share_a_pass_in_short_windows_either(architecture, max_length):
    """They take one list of positions for all rows. Texts of the same ids and length hid it."""
    tokenizer = get_tokenizer("wordpiece")
    model = build_transformer(architecture, tokenizer)
    assert share_passes(model, tokenizer, max_length) is False


def test_a_model_whose_layers_are_not_found(bert):
    """Then there is no reference for small groups, and the model is refused."""
    bert.bert.encoder.others = torch.nn.ModuleList([torch.nn.Identity()] * 9)
    assert share_passes(bert) is None


def test_a_layer_without_hooks_leaves_none_on_the_others(bert, monkeypatch):
    """Where the hooks of a trial cannot all be set, as when it is stopped."""
    monkeypatch.setattr(bert.bert.encoder.layer[1], "register_forward_pre_hook", None)
    assert share_passes(bert) is None
    assert not bert.bert.encoder.layer[0]._forward_pre_hooks
