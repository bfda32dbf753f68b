"""What scores are good for, as numbers: minimal pairs, rescoring of n-best lists, corpus perplexity."""
