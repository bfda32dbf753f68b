"""Read files of texts as a Ray Dataset: find the files, check that they can be read, and find their columns."""

import json
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import ray.data

from ..corpus.files import to_json
from ..corpus.parquet.columns import SCALARS, ColumnType, is_text
from ..corpus.parquet.reader import open_parquet, read_batches, read_schema
from ..corpus.readers import PARQUET, READERS, STANDARD_STREAM, InputError, Record, format_of, list_files, read_records
from ..language_model.checksums import files_digest

FORMATS = [ending for ending in READERS if ending != ".spacy"]
ROWS_PER_READ = 1_000


class TextFile(NamedTuple):
    """One file of texts."""

    path: str
    first: int  # the number of its first text
    fields: dict[str, str]  # columns that all of its texts get


class CorpusFiles(NamedTuple):
    """The files of a corpus. All of them were read once, to check that they can be read."""

    files: list[TextFile]
    texts: int
    schema: pa.Schema  # of the dataset
    column: str
    id_column: str
    numbered: bool  # whether the ids are the texts' numbers, from 0

    def digest(self) -> str:
        """SHA-256 over the names and contents of the files."""
        return files_digest(Path(file.path) for file in self.files)

    def read(self) -> ray.data.Dataset:
        """The texts with their ids and other columns. Files are read in parallel, on any machine."""
        items = [{"path": path, "first": first, "fields": json.dumps(fields)} for path, first, fields in self.files]
        read = partial(read_text_files, corpus=self._replace(files=[]))
        return ray.data.from_items(items).map_batches(read, batch_size=1, batch_format="pyarrow")


def summarize_files(path: str, column: str = "text", id_column: str = "id") -> CorpusFiles:
    """Read all of the input once before scoring, to find unreadable lines early.

    path (str): A file, or a folder, whose files are read in the order of their names. Either Parquet, or .txt (one text
        per line), .jsonl, .csv and .tsv; then the texts of a folder get a column `file`.
    column (str): The column, or key, of texts.
    id_column (str): The column of ids. If there is none, the texts are numbered from 0.
    RAISES (InputError): The input cannot be read. The message gives the file and line.
    """
    paths = _list_files(path)
    is_parquet = [path.suffix.lower() == PARQUET for path in paths]
    if any(is_parquet) and not all(is_parquet):
        raise InputError(f"{path!r} contains Parquet files and other files. Score them in two runs.")
    if any(is_parquet):
        files, n, schema = _summarize_parquet(paths, column)
    else:
        files, n, schema = _summarize_records(paths, Path(path), column, id_column)
    if not n:
        raise InputError(f"There is no text in {path!r}.")
    numbered = id_column not in schema.names
    if numbered:
        schema = schema.insert(0, pa.field(id_column, pa.int64()))
    elif not (pa.types.is_integer(type_ := schema.field(id_column).type) or is_text(type_)):
        raise InputError(
            f"The column of ids, {id_column!r}, must hold whole numbers or strings. It holds {type_}. Name another one "
            "with --id-column. If there is no column of that name, the texts are numbered."
        )
    return CorpusFiles(files, n, schema, column, id_column, numbered)


def _list_files(path: str) -> list[Path]:
    if path == STANDARD_STREAM or not Path(path).exists():
        raise InputError(f"There is no file or folder {path!r}. Give one that all machines can read.")
    paths = [file.absolute() for file in list_files(path)]
    for file in paths:
        if format_of(file) not in FORMATS:
            raise InputError(
                f"{file}: Ray cannot read this file. It reads files that end in {', '.join(FORMATS)}. Move it to "
                "another folder, and score it without Ray."
            )
    return paths


def _summarize_parquet(paths: list[Path], column: str) -> tuple[list[TextFile], int, pa.Schema]:
    files, n, schema = [], 0, None
    for path in paths:
        own = read_schema(path, str(path), column).remove_metadata()
        with open_parquet(path, str(path)) as table:
            rows = table.metadata.num_rows
        schema = schema or own
        if own != schema:
            raise InputError(f"{path}: its columns differ from those of {paths[0]}. Score the files in two runs.")
        files.append(TextFile(str(path), n, {}))
        n += rows
    return files, n, schema


def _summarize_records(
    paths: list[Path], root: Path, column: str, id_column: str
) -> tuple[list[TextFile], int, pa.Schema]:
    files, n, n_ids = [], 0, 0
    types: dict[str, ColumnType | None] = {}  # None if the column is written as text
    for path in paths:
        fields = {"file": str(path.relative_to(root.absolute()))} if root.is_dir() else {}
        files.append(TextFile(str(path), n, fields))
        for record in _read_records(files[-1], column):
            n += 1
            n_ids += id_column in record.fields
            for name, value in record.fields.items():
                _add(types, name, value, record.location)
    if 0 < n_ids < n:
        raise InputError(
            f"Only {n_ids} of the {n} texts in {str(root)!r} have {id_column!r}. Give all of them one, or name another "
            "column of ids with --id-column. If there is no column of that name, the texts are numbered."
        )
    return files, n, pa.schema({column: pa.string(), **{name: _type(own) for name, own in types.items()}}.items())


def _add(types: dict[str, ColumnType | None], name: str, value: object, location: str) -> None:
    try:
        if own := types.setdefault(name, ColumnType(name)):
            own.add(value, location)
    except InputError:
        types[name] = None


def _type(column: ColumnType | None) -> pa.DataType:
    """The Arrow type of a column. In columns without a simple type, values that are not text become JSON."""
    try:
        type_ = column.resolve() if column else None
    except InputError:
        type_ = None
    return type_ if type_ in SCALARS.values() else pa.string()


def _read_records(file: TextFile, column: str) -> Iterator[Record]:
    for record in read_records(file.path, column):
        # A field `file` that the record already has is kept.
        yield record._replace(fields={**file.fields, **record.fields})


def read_text_files(items: pa.Table, corpus: CorpusFiles) -> Iterator[pa.Table]:
    """Read some files. This runs in Ray's tasks.

    items (pa.Table): The files as `CorpusFiles.read` sends them, one per row.
    corpus (CorpusFiles): The columns to read.
    YIELDS (pa.Table): One row per text, with the columns of the corpus.
    """
    for item in items.to_pylist():
        file = TextFile(item["path"], item["first"], json.loads(item["fields"]))
        first = file.first
        for table in _tables(file, corpus):
            if corpus.numbered:
                ids = pa.array(range(first, first + len(table)), pa.int64())
                table = table.add_column(0, corpus.schema.field(0), ids)
            first += len(table)
            yield table


def _tables(file: TextFile, corpus: CorpusFiles) -> Iterator[pa.Table]:
    """The texts of a file. If the corpus is numbered, the ids are added later."""
    schema = corpus.schema.remove(0) if corpus.numbered else corpus.schema
    if file.path.lower().endswith(PARQUET):
        with open_parquet(file.path, file.path) as parquet:
            for _, rows in read_batches(parquet):
                yield pa.Table.from_batches([rows]).cast(schema)
        return
    texts = {field.name for field in schema if is_text(field.type)}
    records = _read_records(file, corpus.column)
    while chunk := list(islice(records, ROWS_PER_READ)):
        rows = [{corpus.column: record.text, **record.fields} for record in chunk]
        rows = [{name: _as_text(value) if name in texts else value for name, value in row.items()} for row in rows]
        yield pa.Table.from_pylist(rows, schema)


def _as_text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else to_json(value)
