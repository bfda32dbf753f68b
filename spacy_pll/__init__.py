"""Pseudo-log-likelihood scores for spaCy, from masked language models (Kauf & Ivanova 2023)."""

from .component import PLLScorer

__all__ = ["PLLScorer"]
