"""GPT-BERT (Charpentier & Samuel 2024): LTG-BERT (Samuel et al. 2023) with gates and weighted layers."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForMaskedLM, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import MaskedLMOutput


class GPTBertConfig(PretrainedConfig):
    model_type = "gpt-bert"

    def __init__(self, vocab_size=8192, width=384, layers=12, heads=6, inner=1280, buckets=32, longest=512, **others):
        super().__init__(**others)
        self.vocab_size, self.width, self.layers, self.heads = vocab_size, width, layers, heads
        self.inner, self.buckets, self.max_position_embeddings = inner, buckets, longest


def norm(width, affine=False):
    return nn.LayerNorm(width, eps=1e-7, elementwise_affine=affine)


class Attention(nn.Module):
    """Pieces attend to pieces and to distances, and what comes out is gated."""

    def __init__(self, config):
        super().__init__()
        width = config.width
        self.heads, self.buckets, self.longest = config.heads, config.buckets, config.max_position_embeddings
        self.before, self.after = norm(width), norm(width)
        self.query_key, self.value_gate = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, states, distances, visible):
        states = self.before(states)
        value, gate = self.value_gate(states).chunk(2, dim=-1)
        query, key = map(self.by_head, self.query_key(states).chunk(2, dim=-1))
        query_at, key_at = map(self.by_head, self.query_key(distances).chunk(2, dim=-1))
        at = self.buckets_of(states.shape[1]).to(states.device).expand(*query.shape[:2], -1, -1)
        scores = query @ key.mT + (query @ key_at.mT).gather(-1, at) + (key @ query_at.mT).gather(-1, at).mT
        scores = scores / (3 * query.shape[-1]) ** 0.5
        weights = scores.masked_fill(~visible, float("-inf")).softmax(dim=-1)
        mixed = (weights @ self.by_head(value)).transpose(1, 2).flatten(2)
        return self.out(self.after(mixed * F.gelu(gate)))

    def by_head(self, states):
        return states.unflatten(-1, (self.heads, -1)).transpose(-2, -3)

    def buckets_of(self, n):
        """A bucket for each small distance; of larger ones, the logarithm counts."""
        distance, half = torch.arange(n)[:, None] - torch.arange(n), self.buckets // 2
        size = distance.abs()
        steps = torch.log(size.clamp(min=half) / half) / torch.log(torch.tensor(self.longest / half))
        large = half + (steps * (half - 1)).long().clamp(max=half - 1)
        return self.buckets - 1 + distance.sign() * torch.where(size < half, size, large)


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.before, self.after = norm(config.width), norm(config.inner)
        self.up, self.down = nn.Linear(config.width, 2 * config.inner), nn.Linear(config.inner, config.width)

    def forward(self, states):
        value, gate = self.up(self.before(states)).chunk(2, dim=-1)
        return self.down(self.after(value * F.gelu(gate)))


class GPTBert(PreTrainedModel):
    config_class = GPTBertConfig

    def __init__(self, config):
        super().__init__(config)
        width, parts = config.width, 2 * config.layers
        self.pieces, self.pieces_norm = nn.Embedding(config.vocab_size, width), norm(width)
        self.distances, self.distances_norm = nn.Embedding(2 * config.buckets - 1, width), norm(width, True)
        self.attentions = nn.ModuleList(Attention(config) for _ in range(config.layers))
        self.feed_forwards = nn.ModuleList(FeedForward(config) for _ in range(config.layers))
        # What each part reads is a sum of all that came before it, with weights of its own.
        self.weights = nn.ParameterList(torch.ones(1 + n) for n in range(1 + parts))
        self.head = nn.Sequential(norm(width), nn.Linear(width, width), nn.GELU(), norm(width))
        self.decoder = nn.Linear(width, config.vocab_size)
        self.post_init()

    def get_input_embeddings(self):
        return self.pieces

    def forward(self, input_ids, attention_mask=None, return_dict=True):
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        distances, outputs = self.distances_norm(self.distances.weight), [self.pieces_norm(self.pieces(input_ids))]
        for attention, feed_forward in zip(self.attentions, self.feed_forwards):
            outputs.append(attention(self.sum(outputs), distances, mask.bool()[:, None, None]))
            outputs.append(feed_forward(self.sum(outputs)))
        return MaskedLMOutput(logits=self.decoder(self.head(self.sum(outputs))))

    def sum(self, outputs):
        return sum(weight * output for weight, output in zip(self.weights[len(outputs) - 1], outputs))


AutoConfig.register("gpt-bert", GPTBertConfig)
AutoModelForMaskedLM.register(GPTBertConfig, GPTBert)
