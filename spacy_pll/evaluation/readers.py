"""The files of evaluations: rows of tables, and n-best lists."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from ..cells import number_in
from ..compression import format_of, open_file
from ..corpus.columns import check_fields
from ..corpus.decoding import numbered_lines
from ..corpus.readers import SHEETS, check_format, list_files, read_json_lines, read_rows
from ..corpus.records import PARQUET, FileOptions, ReadOptions, get_text
from ..errors import InputError, NoColumnError
from ..stream.contexts import Placed, separated
from ..tables.rows import check_columns
from .items import FILE

Reader = TypeVar("Reader", bound=Callable[..., Any])
TABLE_ENDINGS = (".jsonl", ".json", ".csv", ".tsv", PARQUET)
FORMAT = '{"id": ..., "hypotheses": [{"text": ..., "score": ...}, ...], "reference": ...}'
OF_NEMO = FileOptions(delimiter="\t", quoting="none", header=("text", "score"), na_as_text=True)
# What other tools write, by a pattern that is found in it.
OTHER_FORMS = {
    r"\A\d+ \|\|\| ": "lists of Moses: number ||| text ||| features ||| score",
    '"hyp_1"': 'an object of utterances, each with "hyp_1", "hyp_2" and so on, and perhaps "ref"',
    '"rec_text"': "results of ESPnet: an object of utterances, each with a list of outputs",
}


class NBest(NamedTuple):
    """The hypotheses for one utterance or source sentence."""

    texts: Sequence[str]
    first_pass: np.ndarray  # float64, shape (hypotheses,), natural log
    references: Sequence[str]  # one, as for the word error rate, or none; translations may have several
    row: dict[str, Any]  # of the file
    pll: np.ndarray = np.zeros(0)  # the same shape, before it is weighted; NaN without a wordpiece
    context: str = ""  # what was said before: read before each text, and not scored

    @property
    def places(self) -> list[Placed]:
        """The texts, each with what stands before it. Nothing stands before a text that is not there."""
        return [(text, separated(self.context, text) if text.strip() else "", "") for text in self.texts]


def rows_of(
    path: str, what: str, files: FileOptions, endings: tuple[str, ...] = TABLE_ENDINGS
) -> Iterator[tuple[Path, str, dict[str, Any], dict[str, str]]]:
    """The rows of a file, or of the files of a folder in the order of their names.

    what (str): What the file is of, for messages.
    endings (tuple[str]): The formats that are read.
    YIELDS: The file, the location of the row, its columns, and, in a folder, the field `file`.
    """
    if not Path(path).exists():
        raise InputError(f"There is no file or folder {path!r}. Give a file of {what}, or a folder of them.")
    paths = list_files(path, endings, beside=(".txt", ".json"))
    check_format(paths[0], endings)
    for file in paths:
        name = file.relative_to(path).as_posix()
        of_file = {FILE: name[: name.lower().rindex(format_of(file))]} if Path(path).is_dir() else {}
        for location, row in read_rows(file, files):
            yield file, location, row, of_file


def of_folders(read: Reader) -> Reader:
    """A reader, which in a folder adds to an error about a column what to do: a file may need options of its own."""

    @wraps(read)
    def reading(path: str, *columns: Any, **more: Any) -> Any:
        try:
            return read(path, *columns, **more)
        except NoColumnError as error:
            if not Path(path).is_dir():
                raise
            alone = "All files of a folder are read with the same options: read one that needs others alone."
            raise InputError(error.problem, f"{error.advice} {alone}") from None

    return cast(Reader, reading)


def check_distinct(**columns: Sequence[str | None]) -> None:
    """RAISES (InputError): Settings name one column twice. columns (Sequence[Optional[str]]): By setting."""
    seen = dict[str, str]()
    for setting, names in columns.items():
        if isinstance(names, str):  # whose letters would be taken as names
            raise InputError(f"`{setting}` must be a list of columns, such as {[names]}. It is {names!r}.")
        for name in filter(None, names):
            if name in seen:
                where = f"`{seen[name]}`" if seen[name] == setting else f"`{seen[name]}` and `{setting}`"
                raise InputError(f"{where} name the column {name!r} twice. Each column is one thing.")
            seen[name] = setting


def read_nbest(
    path: str,
    added: Sequence[str] = (),
    encoding: str = "utf-8",
    beam_size: int | None = None,
    references: str | None = None,
    costs: bool | None = None,
) -> list[NBest]:
    """Read n-best lists from a file of JSON lines, or from a .tsv file as NeMo writes it, which may be compressed.

    added (Sequence[str]): If the lists will be written: what each hypothesis gets, and must not have yet.
    beam_size (Optional[int]): For .tsv files, as NeMo writes them: the number of lines for each list.
    references (Optional[str]): For a .tsv file: a file with the `text` of each reference, as NeMo's manifest.
    costs (Optional[bool]): The scores are costs: the lowest is the best. None: no, and a score above 0 is an error.
    RAISES (InputError): A list cannot be read; the message gives the line.
    """
    if not Path(path).is_file():
        raise InputError(f"There is no file {path!r}. Give a .jsonl file of n-best lists: {FORMAT}")
    is_tsv = format_of(Path(path)) == ".tsv"
    if format_of(Path(path)) in SHEETS:  # other names may be as they are
        check_format(Path(path), (".jsonl", ".json", ".tsv"))
    if not is_tsv and (beam_size is not None or references):
        raise InputError(
            f"{path!r} has a list in each line.", "Leave `beam_size` and `references` out, or give a .tsv."
        )
    lists = []
    try:
        if is_tsv and beam_size is None:
            raise InputError(f"{path!r} does not say how many of its lines are a list.", "Give it as `beam_size`.")
        for location, row in _nbest_rows(path, encoding, beam_size, references):
            lists.append(parse_nbest(row, location, costs))
            if added:
                check_fields(row, location)
            for number, hypothesis in enumerate(row["hypotheses"], 1):
                check_columns(list(hypothesis), list(added), f"{location}, hypothesis {number}")
    except InputError:
        if not lists:
            _check_form(path, encoding, is_tsv)
        raise
    if not lists:
        raise InputError(f"There is no n-best list in {path!r}. Each line is one: {FORMAT}")
    return lists


def _check_form(path: str, encoding: str, is_tsv: bool) -> None:
    """RAISES (InputError): These are n-best lists in another form."""
    head = ""
    with open_file(Path(path)) as file, suppress(InputError):  # the same, which is known
        for _, text in islice(numbered_lines(file, path, ReadOptions(files=FileOptions(encoding=encoding))), 1000):
            head += text
    head = head.strip()
    line = head.partition("\n")[0]
    with suppress(ValueError, RecursionError):
        if isinstance(first := json.loads(line), dict) and "hypotheses" in first:
            return
    if not head or is_tsv and "\t" in head:
        return
    other_form = next((form for mark, form in OTHER_FORMS.items() if re.search(mark, head)), None)
    if other_form is None and not head.startswith(("{", "[")):
        other_form = f"lines such as {line!r:.60}. Kaldi and ESPnet write texts and scores to several such files"
    if other_form:
        raise InputError(f"{path!r} has {other_form}.", f"Convert them: each line must be a list as {FORMAT}")


def _nbest_rows(
    path: str, encoding: str, beam_size: int | None, references: str | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The location of each list, and what a line of JSON has of it."""
    if beam_size is None:
        with open_file(Path(path)) as file:
            yield from read_json_lines(file, path, ReadOptions(files=FileOptions(encoding=encoding)))
        return
    lines = list(read_rows(Path(path), replace(OF_NEMO, encoding=encoding)))
    n_lists, rest = divmod(len(lines), beam_size)
    if rest:
        advice = "Give the number of hypotheses in each list."
        raise InputError(f"{path!r} has {len(lines):,} lines, no multiple of `beam_size`, {beam_size}.", advice)
    given = [get_text(row, location, "text") for location, row in read_rows(Path(references))] if references else []
    if references and len(given) != n_lists:
        raise InputError(f"{references!r} has {len(given):,} references for {n_lists:,} lists. Give one for each list.")
    for n in range(n_lists):
        of_list = lines[n * beam_size : (n + 1) * beam_size]
        hypotheses = [{"text": row["text"], "score": _number(row["score"], location)} for location, row in of_list]
        yield of_list[0][0], {"hypotheses": hypotheses, **({"reference": given[n]} if given else {})}


def _number(cell: str, where: str) -> float:
    number = number_in(cell)
    return _score(cell if number is None or number != number else number, where)


def parse_nbest(row: dict[str, Any], location: str, costs: bool | None = None) -> NBest:
    """A list from a row. RAISES (InputError): It is none; the message begins with the place."""
    hypotheses = row.get("hypotheses")
    if not isinstance(hypotheses, list | tuple) or not hypotheses:
        raise InputError(
            f"{location}: 'hypotheses' must be a list that is not empty. It is {hypotheses!r:.100}. {FORMAT}"
        )
    texts, scores = [], []
    for number, hypothesis in enumerate(hypotheses, 1):
        where = f"{location}, hypothesis {number}"
        if not isinstance(hypothesis, dict):
            raise InputError(f"{where}: it must be an object with 'text' and 'score'. It is {hypothesis!r:.100}.")
        texts.append(get_text(hypothesis, where, "text", setting=None))
        scores.append(_score(hypothesis.get("score"), where))
        if costs is None and scores[-1] > 0:
            raise InputError(
                f"{where}: 'score' is {scores[-1]:g}, and a log-probability is never above 0.",
                "If the lowest score is the best, these are costs: give `costs=True`. If the highest is, give "
                "`costs=False`.",
            )
    first_pass = -np.array(scores) if costs else np.array(scores)
    context = get_text(row, location, "context", setting=None) if row.get("context") is not None else ""
    return NBest(texts, first_pass, _references(row, location), row, context=context if context.strip() else "")


def _score(score: Any, where: str) -> float:
    # NaN, infinity and whole numbers that no float can hold are not below the limit.
    if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) <= sys.float_info.max:
        raise InputError(
            f"{where}: 'score' must be a finite number, the first pass's log-probability. It is {score!r:.100}."
        )
    return float(score)


def _references(row: dict[str, Any], location: str) -> list[str]:
    """The texts of `reference` (one text) or `references` (a list). None where both are absent or null."""
    single, several = row.get("reference"), row.get("references")
    if single is not None and several is not None:
        raise InputError(f"{location}: there is a 'reference' and a list of 'references'. Keep one of the two.")
    if several is None:
        return [] if single is None else [get_text(row, location, "reference", setting=None)]
    if not isinstance(several, list | tuple) or not all(isinstance(text, str) for text in several):
        raise InputError(f"{location}: 'references' must be a list of texts. It is {several!r:.100}.")
    return [*several]
