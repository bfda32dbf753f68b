"""Docs in, scores out: what is read for docs, what a model is asked about it, and what its answers add up to."""
