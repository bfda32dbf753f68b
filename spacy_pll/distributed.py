"""Corpora that outgrow one process: texts scored by a pool of workers, on one machine or many, by Ray Data.

Needs the extra `[ray]`. Ray does what is hard about it: it places the workers, keeps them fed and no more than that,
and does again what a worker that died had not finished. Here is what a worker does, and what goes in and out.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import ray
    import ray.data
    from ray.data.exceptions import ExecutionTimeoutError
except ImportError:
    raise ImportError('Scoring on several machines needs Ray. Install it: pip install "spacy-pll[ray]"') from None
from spacy.cli._util import setup_gpu
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import ignore_error, load_model_from_config, raise_error

from .component import PLLScorer
from .corpus.files import digest
from .corpus.readers import READERS, STANDARD_STREAM, InputError, Record, read_records
from .corpus.rows import ListRows, check_fields
from .pipelines import get_scorer

ERROR = "error"  # the column that says why a row has no scores
PARQUET = ".parquet"
FORMATS = [PARQUET, *(ending for ending in READERS if ending != ".spacy")]
ROWS_PER_READ = 1_000
# Some 100 MB in memory for sentences, and ten times less on the disk.
ROWS_PER_FILE = 100_000
# Scored by each worker before anything else, and when a text has failed: so a fault of the worker is no text's fault.
WITNESS = "A word."


def annotate(
    dataset: ray.data.Dataset,
    nlp: Language | Callable[[], Language],
    *,
    column: str = "text",
    id_column: str = "id",
    workers: int = 1,
    gpus_per_worker: float = 0,
    batch_size: int = 256,
    ordered: bool = False,
) -> ray.data.Dataset:
    """Score the texts of a Ray Dataset. Nothing is scored before the result is used (`write_parquet`, `iter_rows`...).

    dataset (ray.data.Dataset): A row a text. Its columns are all kept.
    nlp (Union[Language, Callable[[], Language]]): A pipeline with a `pll` component, which is sent to the workers, or
        a function that makes one there (`functools.partial(spacy.load, "/shared/folder")`).
    column (str): The column of texts.
    id_column (str): The column that the rows are ordered by.
    workers (int): Processes, with a pipeline each. A worker takes one CPU of the cluster, and without a GPU uses one
        thread; leave one CPU for reading and writing.
    gpus_per_worker (float): 1, or a part such as 0.5, where several workers are to share a GPU; 0 is for CPUs.
    batch_size (int): How many texts a worker is given at a time: equal masked contexts among them are computed once.
        This is also what is done again when a worker dies.
    ordered (bool): The dataset is in the order of its ids, as `Corpus.read` gives it: do not sort it first.
    RETURNS (ray.data.Dataset): The rows in the order of their ids, with `pll` (natural log), `pll_pieces` and `pppl` as
        the attributes are called; `tokens`, `token_pll` and `token_pieces`, lists with one entry a token that is not
        white space; and `error`, null, or why the row has no scores.
    RAISES (ValueError): A column is missing or in the way, or a setting is not legal.
    """
    if workers < 1:
        raise ValueError(f"`workers` must be 1 or more. It is {workers}.")
    if not 0 <= gpus_per_worker <= 1:
        raise ValueError(f"`gpus_per_worker` must be 0 to 1, since a worker uses one GPU. It is {gpus_per_worker}.")
    if isinstance(nlp, Language):
        _check_dataset(dataset, nlp, column, id_column)
        nlp = packed(nlp)
    if not ordered:
        dataset = dataset.sort(id_column)  # texts only: cheaper than to sort the scores
    context = dataset.context
    context.execution_options.preserve_order = True
    # Memory may be short just while a model is loaded. After that Ray Data itself starts a worker that died anew
    # (max_restarts=-1) and gives it what the first had not finished (max_task_retries=-1).
    context.max_consecutive_actor_init_deaths = max(3, context.max_consecutive_actor_init_deaths)
    # A small corpus is one block as it is read, and one worker would get all of it.
    return dataset.repartition(target_num_rows_per_block=batch_size, strict=True).map_batches(
        Worker,
        fn_constructor_args=(nlp, column, gpus_per_worker > 0),
        batch_size=batch_size,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_gpus=gpus_per_worker or None,
    )


def _check_dataset(dataset: ray.data.Dataset, nlp: Language, column: str, id_column: str):
    names = dataset.columns() or []
    for name in (column, id_column):
        if name not in names:
            raise ValueError(
                f"The dataset has no column {name!r}; it has {', '.join(map(repr, names)) or 'none'}. Name the column "
                "of texts with `column`, and the one to order the rows by with `id_column`."
            )
    check_fields(names, added_columns(nlp, column), "The dataset")


def added_columns(nlp: Language, column: str) -> list[str]:
    """The columns that `annotate` adds.

    RAISES (ValueError): The pipeline has no `pll` component.
    """
    if not any(isinstance(component, PLLScorer) for _, component in nlp.components):
        raise ValueError(f'The pipeline has no `pll` component, only {nlp.pipe_names}. Add one: nlp.add_pipe("pll").')
    return [*ListRows(column, get_scorer(nlp).names).columns, ERROR]


def packed(nlp: Language) -> Callable[[], Language]:
    """A pipeline, weights included, in a form that travels to other processes: a function that makes it there."""
    return partial(_unpacked, nlp.config.copy(), nlp.to_bytes())


def _unpacked(config, data: bytes) -> Language:
    return load_model_from_config(config, auto_fill=True).from_bytes(data)


class Worker:
    """What each worker process holds: one loaded pipeline. A table of rows in, the same rows with their scores out.

    make_nlp (Callable[[], Language]): Makes the pipeline.
    column (str): The column of texts.
    gpu (bool): Whether to use the GPU that Ray gave this process.
    RAISES (Exception): Here, or from a call: nothing at all can be scored.
    """

    def __init__(self, make_nlp: Callable[[], Language], column: str, gpu: bool = False):
        setup_gpu(0 if gpu else -1, silent=True)
        self.nlp = make_nlp()
        scorer = get_scorer(self.nlp)
        scorer.keep_pieces = ListRows.keep_pieces
        self.column, self.rows = column, ListRows(column, scorer.names)
        self.types = _types(self.rows)
        self.nlp.set_error_handler(raise_error)
        self.nlp(WITNESS)

    def __call__(self, batch: pa.Table) -> pa.Table:
        rows = [self._row(outcome) for outcome in self.score(batch[self.column].to_pylist())]
        for name, type_ in self.types.items():
            batch = batch.append_column(pa.field(name, type_), pa.array([row.get(name) for row in rows], type_))
        return batch

    def score(self, texts: list[str]) -> list[Doc | Exception]:
        """The scored doc of each text, or the error that it is to be left out for."""
        self.nlp.set_error_handler(ignore_error)
        made = ((doc, n) for n, text in enumerate(texts) if isinstance(doc := self._try(self.nlp.make_doc, text), Doc))
        docs = {}
        # Some components leave out, or fail with, a whole batch for one text of it: what is missing is tried alone.
        with suppress(Exception):
            docs.update((n, doc) for doc, n in self.nlp.pipe(made, as_tuples=True, batch_size=len(texts) or 1))
        self.nlp.set_error_handler(raise_error)
        if len(docs) == len(texts):
            return list(docs.values())
        outcomes = [docs[n] if n in docs else self._try(self.nlp, text) for n, text in enumerate(texts)]
        self.nlp(WITNESS)
        return outcomes

    def _try(self, make: Callable[[str], Doc], text: str) -> Doc | Exception:
        try:
            return make(text)
        except Exception as error:
            return error

    def _row(self, outcome: Doc | Exception) -> dict:
        if isinstance(outcome, Exception):
            return {ERROR: f"{type(outcome).__name__}: {outcome}"}
        return next(self.rows(0, outcome, Record("", "", {})))


def _types(rows: ListRows) -> dict[str, pa.DataType]:
    """The columns that a worker adds."""
    types = dict.fromkeys(rows.columns, pa.float64())
    types[rows.names.pieces] = pa.int64()
    types.update(dict.fromkeys(rows.token_columns, pa.list_(pa.float64())))
    return {
        **types,
        "tokens": pa.list_(pa.string()),
        "token_pieces": pa.list_(pa.list_(pa.string())),
        ERROR: pa.string(),
    }


class Source(NamedTuple):
    """A file of texts."""

    path: str
    first: int  # the number of its first text
    fields: dict[str, str]  # what each of its texts has beside it


class Corpus(NamedTuple):
    """Files of texts after a first reading, which found that all of them can be read."""

    sources: list[Source]
    texts: int
    schema: pa.Schema  # of the dataset
    column: str
    id_column: str
    numbered: bool  # whether the ids are the texts' numbers, from 0

    def digest(self) -> str:
        """What tells one input from another."""
        return digest([Path(source.path) for source in self.sources])

    def read(self) -> ray.data.Dataset:
        """The texts, with their ids and what stood beside them. Files are read side by side, on any machine."""
        items = [{"path": path, "first": first, "fields": json.dumps(fields)} for path, first, fields in self.sources]
        read = partial(_read_sources, corpus=self._replace(sources=[]))
        return ray.data.from_items(items).map_batches(read, batch_size=1, batch_format="pyarrow")


def survey(path: str, column: str = "text", id_column: str = "id") -> Corpus:
    """Read all of the input once: what cannot be read is found before hours of scoring, not after.

    path (str): A file, or a folder: its files in the order of their names. Either Parquet, or .txt (a text a line),
        .jsonl, .csv and .tsv; then each text of a folder has its `file` beside it.
    column (str): The column, or key, of texts.
    id_column (str): The column of ids. Where there is none, the texts are numbered from 0.
    RAISES (InputError): It cannot be read; the message gives file and line.
    """
    files = _list_files(path)
    tables = [file.suffix.lower() == PARQUET for file in files]
    if any(tables) and not all(tables):
        raise InputError(f"{path!r} holds Parquet files and others. Give them in two runs.")
    if any(tables):
        sources, n, schema = _survey_tables(files, column)
    else:
        sources, n, schema = _survey_records(files, Path(path), column, id_column)
    if not n:
        raise InputError(f"There is no text in {path!r}.")
    numbered = id_column not in schema.names
    if numbered:
        schema = schema.insert(0, pa.field(id_column, pa.int64()))
    elif not (pa.types.is_integer(type_ := schema.field(id_column).type) or _is_text(type_)):
        raise InputError(
            f"The column of ids, {id_column!r}, must hold whole numbers or strings, and holds {type_}. Name another "
            "with --id-column: one that is not there, and the texts are numbered."
        )
    return Corpus(sources, n, schema, column, id_column, numbered)


def _list_files(path: str) -> list[Path]:
    if path == STANDARD_STREAM or not Path(path).exists():
        raise InputError(f"There is no file or folder {path!r}. Give one that all machines can read.")
    place = Path(path).absolute()
    files = sorted(file for file in place.rglob("*") if file.is_file()) if place.is_dir() else [place]
    files = [file for file in files if file.suffix.lower() in FORMATS]
    if not files:
        raise InputError(f"{path!r} is no file that ends in {', '.join(FORMATS)}, and no folder that holds one.")
    return files


def _is_text(type_: pa.DataType) -> bool:
    return pa.types.is_string(type_) or pa.types.is_large_string(type_)


def _survey_tables(files: list[Path], column: str) -> tuple[list[Source], int, pa.Schema]:
    sources, n, schema = [], 0, None
    for file in files:
        try:
            with pq.ParquetFile(file) as table:
                own, rows = table.schema_arrow.remove_metadata(), table.metadata.num_rows
        except pa.ArrowException as error:
            raise InputError(f"{file}: not a Parquet file, or a damaged one ({error}).") from None
        if column not in own.names:
            raise InputError(
                f"{file}: there is no {column!r}; there is {', '.join(map(repr, own.names))}. "
                "Name the one that holds the text with --column."
            )
        if not _is_text(own.field(column).type):
            raise InputError(f"{file}: {column!r} holds no texts but {own.field(column).type}.")
        schema = schema or own
        if own != schema:
            raise InputError(f"{file}: its columns differ from those of {files[0]}. Give the files in two runs.")
        sources.append(Source(str(file), n, {}))
        n += rows
    return sources, n, schema


def _survey_records(files: list[Path], path: Path, column: str, id_column: str) -> tuple[list[Source], int, pa.Schema]:
    sources, n, n_ids, kinds = [], 0, 0, {}
    for file in files:
        sources.append(Source(str(file), n, {"file": str(file.relative_to(path.absolute()))} if path.is_dir() else {}))
        for record in _records(sources[-1], column):
            n += 1
            n_ids += id_column in record.fields
            for name, value in record.fields.items():
                kinds.setdefault(name, set()).add(_kind(value))
    if 0 < n_ids < n:
        raise InputError(
            f"Of the {n} texts in {str(path)!r} {n_ids} have {id_column!r} beside them. Give all of them one, or name "
            "another column of ids with --id-column: one that is not there, and the texts are numbered."
        )
    return sources, n, pa.schema({column: pa.string(), **{name: _type(own) for name, own in kinds.items()}}.items())


def _kind(value) -> type:
    """A value's type, as far as Arrow knows it: it has no integers of more than 64 bits."""
    is_big = isinstance(value, int) and not -(2**63) <= value < 2**63
    return object if is_big else type(value)


def _type(kinds: set[type]) -> pa.DataType:
    """The Arrow type for values of some types. Where only text suits all, what is no text is written as JSON."""
    kinds = kinds - {type(None)}
    fitting = (({bool}, pa.bool_()), ({int}, pa.int64()), ({int, float}, pa.float64()))
    return next((arrow for types, arrow in fitting if kinds and kinds <= types), pa.string())


def _records(source: Source, column: str) -> Iterator[Record]:
    for record in read_records(source.path, column):
        # Where a record has a field of that name already, its own is kept.
        yield record._replace(fields={**source.fields, **record.fields})


def _read_sources(items: pa.Table, corpus: Corpus) -> Iterator[pa.Table]:
    """The tables of some sources, a row a text, with the columns of the corpus."""
    for item in items.to_pylist():
        source = Source(item["path"], item["first"], json.loads(item["fields"]))
        first = source.first
        for table in _tables(source, corpus):
            if corpus.numbered:
                ids = pa.array(range(first, first + len(table)), pa.int64())
                table = table.add_column(0, corpus.schema.field(0), ids)
            first += len(table)
            yield table


def _tables(source: Source, corpus: Corpus) -> Iterator[pa.Table]:
    """The texts of a file, without the ids that they have not got."""
    schema = corpus.schema.remove(0) if corpus.numbered else corpus.schema
    if source.path.lower().endswith(PARQUET):
        with pq.ParquetFile(source.path) as file:
            for rows in file.iter_batches(ROWS_PER_READ):
                yield pa.Table.from_batches([rows]).cast(schema)
        return
    texts = {field.name for field in schema if _is_text(field.type)}
    records = _records(source, corpus.column)
    while chunk := list(islice(records, ROWS_PER_READ)):
        rows = [{corpus.column: record.text, **record.fields} for record in chunk]
        rows = [{name: _as_text(value) if name in texts else value for name, value in row.items()} for row in rows]
        yield pa.Table.from_pylist(rows, schema)


def _as_text(value) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@contextmanager
def cluster(workers: int) -> Iterator[None]:
    """A Ray cluster: the one that is connected or that RAY_ADDRESS names, else one of this machine's processes."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
    if os.environ.get("RAY_ADDRESS"):
        ray.init()
    else:  # one CPU more than the workers take, for what reads and writes
        ray.init(address="local", num_cpus=workers + 1, include_dashboard=False)
    try:
        yield
    finally:
        ray.shutdown()


def write(dataset: ray.data.Dataset, folder: Path):
    """Write a dataset as a folder of Parquet files, whose names sort in the order of the rows.

    folder (Path): Where all machines can write. It appears when all is there; what stood there before is replaced.
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
