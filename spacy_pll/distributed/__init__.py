"""Corpora that are too large for one process: a pool of workers scores them, on one machine or several, with Ray Data.

Needs the extra `[ray]`. Ray places the workers, gives them work, and repeats what a worker that died had not finished.
This package says what a worker does (`workers`), and what is read and written (`datasets`, `runs`).
"""

try:
    import ray.data  # noqa: F401
except ImportError:
    raise ImportError('Scoring on several machines needs Ray. Install it: pip install "spacy-pll[ray]"') from None

from .runs import cluster, score_to_parquet
from .workers import annotate

__all__ = ["annotate", "cluster", "score_to_parquet"]
