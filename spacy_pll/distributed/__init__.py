"""Score corpora that are too large for one process, with a pool of workers on one machine or several, with Ray Data.

This needs the extra `[ray]`. Ray places the workers and gives them work. If a worker dies, Ray repeats its unfinished
work. `workers` defines what a worker does; `datasets` and `runs` read the texts and write the scores.
"""

try:
    import ray.data  # noqa: F401
except ImportError:
    from ..requirements import install_command

    raise ImportError(f"Scoring on several machines needs Ray. Install it with: {install_command('ray')}") from None

from .runs import cluster, score_to_parquet
from .workers import annotate

__all__ = ["annotate", "cluster", "score_to_parquet"]
