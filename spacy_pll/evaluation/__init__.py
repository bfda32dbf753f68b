"""Evaluation with scores: minimal pairs, rescoring of n-best lists, perplexity of a corpus; the data sets."""
