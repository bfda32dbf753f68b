"""Score the files of a corpus on a Ray cluster, and write a folder of Parquet files."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import ray.data
from ray.data.exceptions import ExecutionTimeoutError

from ..corpus.files import check_target, write_json
from ..corpus.readers import PARQUET, InputError
from ..corpus.resumable import MANIFEST
from ..corpus.rows import check_columns
from ..corpus.runs import make_manifest
from ..pipelines import PipelineSettings, make_pipeline
from .datasets import summarize_files
from .workers import added_columns, annotate

# About 100 MB in memory for sentences, and a tenth of that on the disk.
ROWS_PER_FILE = 100_000


def score_to_parquet(
    input_path: str,
    output_path: str,
    settings: PipelineSettings,
    *,
    column: str = "text",
    id_column: str = "id",
    workers: int = 1,
    gpus_per_worker: float = 0,
    batch_size: int = 256,
    force: bool = False,
) -> None:
    """Score a corpus with a pool of workers, and write a folder of Parquet files with its manifest.

    input_path (str): See `summarize_files`.
    output_path (str): A folder that ends in .parquet, where all machines can write.
    settings (PipelineSettings): Makes the pipeline of each worker. `gpu_id` is set by `gpus_per_worker`.
    column, id_column, workers, gpus_per_worker, batch_size: As for `annotate`.
    force (bool): Replace an existing folder.
    RAISES (InputError): The input cannot be read, or the output exists or has another ending.
    RAISES (ChildProcessError): The job failed.
    """
    output = Path(output_path)
    if output.suffix.lower() != PARQUET or output.is_file():
        raise InputError(f"With --engine ray OUTPUT must be a folder that ends in .parquet. It is {output_path!r}.")
    check_target(output, input_path, folder=True)
    if output.exists() and not force:
        raise InputError(f"{output} exists. Replace it with --force, or choose another name.")
    if settings.model and Path(settings.model).exists():  # workers may have another working directory
        settings = replace(settings, model=str(Path(settings.model).absolute()))
    nlp = make_pipeline(settings)
    corpus = summarize_files(input_path, column, id_column)
    check_columns(corpus.schema.names, added_columns(nlp, column), input_path)
    make_nlp = partial(make_pipeline, replace(settings, gpu_id=0 if gpus_per_worker else -1))
    with cluster(workers):
        scored = annotate(
            corpus.read(),
            make_nlp,
            column=column,
            id_column=id_column,
            workers=workers,
            gpus_per_worker=gpus_per_worker,
            batch_size=batch_size,
            ordered=corpus.numbered,
        )
        write_parquet(scored, output)
    input_ = {"column": column, "texts": corpus.texts, "fields": corpus.schema.names, "digest": corpus.digest()}
    run = {"rows": "texts", "batch_size": batch_size, "engine": "ray", "workers": workers}
    manifest = make_manifest(input_, run, settings.model, nlp, f"{gpus_per_worker:g} GPUs per worker")
    write_json(output.with_name(f"{output.name}.{MANIFEST}"), manifest)


@contextmanager
def cluster(workers: int) -> Iterator[None]:
    """Use a Ray cluster: the one that is already connected, or the one in RAY_ADDRESS, or a new one on this machine.

    workers (int): How many workers a new cluster must have room for.
    """
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # otherwise Ray sends usage reports to its developers
    if os.environ.get("RAY_ADDRESS"):
        ray.init()
    else:  # one more CPU than the workers take, for reading and writing
        ray.init(address="local", num_cpus=workers + 1, include_dashboard=False)
    try:
        yield
    finally:
        ray.shutdown()


def write_parquet(dataset: ray.data.Dataset, folder: Path) -> None:
    """Write a dataset as a folder of Parquet files. The order of their names is the order of the rows.

    folder (Path): A folder in which all machines can write. It appears when it is complete. An existing folder is
        replaced.
    RAISES (ChildProcessError): The job failed.
    """
    unfinished = folder.absolute().with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        dataset.write_parquet(str(unfinished), min_rows_per_file=ROWS_PER_FILE)
    except (ray.exceptions.RayError, ExecutionTimeoutError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise ChildProcessError(f"The job failed, and nothing was written. {error}") from error
    if folder.is_dir():
        shutil.rmtree(folder)
    os.replace(unfinished, folder)
