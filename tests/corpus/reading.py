"""What is read of files and written to them, with all options by their names."""

from pathlib import Path

from spacy.vocab import Vocab

from spacy_pll.corpus import formats, inputs, readers
from spacy_pll.corpus.records import FileOptions, ReadOptions


def files_of(options):
    """Those of them that say how files are written; they are taken out."""
    return FileOptions(**{name: options.pop(name) for name in vars(FileOptions()) if name in options})


def read_records(path, column="text", file_format=None, **options):
    """The texts of a file or folder. options: Of `ReadOptions` and `FileOptions`."""
    return readers.read_records(str(path), ReadOptions(column, files=files_of(options), **options), file_format)


def read_texts(path, column="text", **options):
    return readers.read_texts(str(path), ReadOptions(column, files=files_of(options), **options))


def read_rows(path, **options):
    """The rows of a table, each with its place. options: Of `FileOptions`."""
    return readers.read_rows(path, FileOptions(**options))


def read_input(path, column="text", *, context_column=None, vocab=None, **options):
    """The texts that a run reads. options: Of `ReadOptions`."""
    return inputs.Input(str(path), column, context_column=context_column).records(vocab or Vocab(), **options)


def write_table(path, rows):
    """A table in the format that its ending names, as commands write one."""
    formats.write_table(Path(path), rows)
