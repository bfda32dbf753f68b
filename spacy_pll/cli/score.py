"""`pll score INPUT OUTPUT`: a corpus in, its scores out."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import get_torch_default_device
from tqdm import tqdm

from ..corpus.files import atomic_write, digest
from ..corpus.outputs import json_text
from ..corpus.readers import READERS, STANDARD_STREAM, InputError, Record, list_files, read_records
from ..corpus.rows import FORMATS, Docs, JsonLines, ProdigyRows, Tasks, TextRows, TokenRows, check_fields
from ..corpus.shards import MANIFEST, Shards
from ..corpus.workers import watch_workers
from ..pipelines import (
    BatchSizeOption,
    GpuOption,
    LangOption,
    MaskSpacingOption,
    MetricsOption,
    ModelOption,
    PrecisionOption,
    ProcessesOption,
    SpansOption,
    WordsOption,
    describe_model,
    get_scorer,
    make_pipeline,
    one_of,
    split_names,
)
from . import app
from .errors import shown_errors

# A part is long enough that opening and closing it costs nothing, and short enough that little is done twice.
BATCHES_PER_PART = 4
PACKAGES = ["spacy-pll", "spacy", "spacy-transformers", "transformers", "tokenizers", "torch"]
LOCAL, RAY = "local", "ray"


class Survey(NamedTuple):
    """What a first reading finds: that all of the input can be read, and how much there is."""

    texts: int
    fields: list[str]
    digest: str


@app.command("score", no_args_is_help=True)
def score_cli(
    input_path: Annotated[
        str, typer.Argument(metavar="INPUT", help=f"A file ({', '.join(READERS)}), a folder of them, or -")
    ],
    output_path: Annotated[str, typer.Argument(metavar="OUTPUT", help=f"A file ({', '.join(FORMATS)}), or -")],
    model: ModelOption = None,
    metrics: MetricsOption = None,
    words: WordsOption = None,
    spans: SpansOption = None,
    mask_spacing: MaskSpacingOption = None,
    lang: LangOption = "en",
    column: Annotated[str, typer.Option(help="The column or key that holds the text.")] = "text",
    form: Annotated[
        str | None, typer.Option("--format", help="The format of standard input. [default: .txt]", show_default=False)
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="A row per token instead of a row per text.")] = False,
    prodigy: Annotated[
        bool,
        typer.Option(
            "--prodigy",
            help="Tasks for Prodigy, in .jsonl. meta.score is the text's rank, from 0 for the lowest mean score of a "
            "wordpiece to 1 for the highest.",
        ),
    ] = False,
    gpu_id: GpuOption = -1,
    batch_size: BatchSizeOption = 256,
    n_process: ProcessesOption = 1,
    precision: PrecisionOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an earlier run was stopped.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    engine: Annotated[
        str, typer.Option(**one_of(LOCAL, RAY), help="ray: on several processes or machines, by Ray Data.")
    ] = LOCAL,
    workers: Annotated[
        int | None, typer.Option(min=1, help="With --engine ray: processes, each with a model. [default: 1]")
    ] = None,
    gpus_per_worker: Annotated[
        float | None, typer.Option(min=0, max=1, help="With --engine ray: 1, or a part of one. [default: 0]")
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(help="With --engine ray: what to order by; numbers if it is not there. [default: id]"),
    ] = None,
):
    """Score every text of INPUT and write the scores (natural logarithm) to OUTPUT.

    In .txt each line is a text; what stands beside a text in .jsonl, .csv and .tsv is kept.
    The results of a long run are kept in OUTPUT.parts until all are there: if it is stopped,
    the same command with --resume goes on.
    With --engine ray INPUT may be Parquet as well, and OUTPUT is a folder of Parquet files.
    """
    with shown_errors():
        options = (model, split_names(metrics), words, spans, lang, precision, mask_spacing)
        if engine == RAY:
            local = {
                "--format": form,
                "--tokens": tokens,
                "--prodigy": prodigy,
                "--resume": resume,
                "--n-process": n_process != 1,
            }
            _check_unset(RAY, {**local, "--gpu-id": gpu_id != -1})
            pool = (workers or 1, gpus_per_worker or 0)
            score_on_ray(input_path, output_path, options, column, id_column or "id", *pool, batch_size, force)
            return
        _check_unset(LOCAL, {"--workers": workers, "--gpus-per-worker": gpus_per_worker, "--id-column": id_column})
        if tokens and prodigy:
            raise InputError("--prodigy gives a task per text: leave out --tokens.")
        rows_class = TokenRows if tokens else ProdigyRows if prodigy else TextRows
        output_class = _output_class(output_path, tokens, prodigy)
        live = output_path == STANDARD_STREAM
        if resume and STANDARD_STREAM in (input_path, output_path):
            raise InputError("--resume needs an INPUT that can be read again and an OUTPUT that is a file, not -.")
        shards = None if live else Shards(Path(output_path), resume, force)
        nlp = make_pipeline(*options, rows_class.keep_pieces, gpu_id)
        with _as_file(input_path, form, live) as source:
            survey = None if source == STANDARD_STREAM else survey_input(source, column, nlp)
            rows = rows_class(column, get_scorer(nlp).names)
            fields = survey.fields if survey else []
            check_fields(fields, rows.columns, input_path)
            output = output_class(rows, fields)
            # A file's ending says what it is: it must not be surveyed as one thing and scored as another.
            records = read_records(source, column, nlp.vocab, form if source == STANDARD_STREAM else None)
            if live:
                scored = score_records(nlp, records, 0, survey and survey.texts, batch_size, n_process)
                _print(output.encode(scored))
            else:
                settings = {
                    "rows": "tokens" if tokens else "prodigy" if prodigy else "texts",
                    "batch_size": batch_size,
                }
                read = {"column": column, **survey._asdict()}
                manifest = make_manifest(read, settings, model, nlp, str(get_torch_default_device()))
                done = shards.begin(manifest)
                if done >= 0:
                    score_to_shards(nlp, records, survey.texts, shards, done, output, batch_size, n_process)


def score_on_ray(
    input_path: str,
    output_path: str,
    options: tuple,
    column: str,
    id_column: str,
    workers: int,
    gpus_per_worker: float,
    batch_size: int,
    force: bool,
):
    """Score texts by a pool of workers, and write a folder of Parquet files.

    options (tuple): The first arguments of `make_pipeline`.
    """
    from .. import distributed  # needs the extra `[ray]`

    output = Path(output_path)
    if output.suffix.lower() != distributed.PARQUET or output.is_file():
        raise InputError(f"With --engine ray OUTPUT must be a folder that ends in .parquet. It is {output_path!r}.")
    if output.exists() and not force:
        raise InputError(f"{output} exists. Replace it with --force, or choose another name.")
    model, *others = options
    # Workers may run elsewhere.
    options = (str(Path(model).absolute()) if model and Path(model).exists() else model, *others)
    nlp = make_pipeline(*options)
    corpus = distributed.survey(input_path, column, id_column)
    check_fields(corpus.schema.names, distributed.added_columns(nlp, column), input_path)
    make_nlp = partial(make_pipeline, *options, gpu_id=0 if gpus_per_worker else -1)
    with distributed.cluster(workers):
        scored = distributed.annotate(
            corpus.read(),
            make_nlp,
            column=column,
            id_column=id_column,
            workers=workers,
            gpus_per_worker=gpus_per_worker,
            batch_size=batch_size,
            ordered=corpus.numbered,
        )
        distributed.write(scored, output)
    read = {"column": column, "texts": corpus.texts, "fields": corpus.schema.names, "digest": corpus.digest()}
    settings = {"rows": "texts", "batch_size": batch_size, "engine": RAY, "workers": workers}
    manifest = make_manifest(read, settings, model, nlp, f"{gpus_per_worker:g} GPUs a worker")
    with atomic_write(output.with_name(f"{output.name}.{MANIFEST}")) as file:
        file.write(json_text(manifest).encode("utf8"))


def make_manifest(read: dict, settings: dict, model: str | None, nlp: Language, device: str) -> dict:
    """What decides the results.

    read (dict): The input.
    settings (dict): Those of the run.
    """
    return {
        "input": read,
        **settings,
        "model": describe_model(model, nlp),
        "pipeline": nlp.config["components"],
        "device": device,
        "versions": {package: version(package) for package in PACKAGES},
    }


def _check_unset(engine: str, options: dict[str, object]):
    """RAISES (InputError): An option was given that the engine does not have."""
    given = [name for name, value in options.items() if value]
    if given:
        others = {RAY: "Leave it out, or leave out --engine ray", LOCAL: "Add --engine ray, or leave it out"}
        raise InputError(f"{given[0]} does not go with --engine {engine}. {others[engine]}.")


def score_to_shards(
    nlp: Language,
    records: Iterable[Record],
    n_texts: int,
    shards: Shards,
    done: int,
    output: JsonLines | Docs,
    batch_size: int,
    n_process: int = 1,
):
    """Score records part by part, those that are not done, and join the parts.

    A part begins where a batch does, so the numbers do not depend on where a run was stopped.
    """
    size = BATCHES_PER_PART * batch_size
    n_parts = -(-n_texts // size)
    rest = islice(records, done * size, None)
    scored = score_records(nlp, rest, min(done * size, n_texts), n_texts, batch_size, n_process)
    for number in range(done, n_parts):
        shards.write(number, output.encode(islice(scored, size)))
    shards.merge(output.merge, n_parts)


def score_records(
    nlp: Language,
    records: Iterable[Record],
    done: int,
    n_texts: int | None,
    batch_size: int,
    n_process: int,
) -> Iterator[tuple[int, Doc, Record]]:
    """Score records, with a progress bar on a terminal.

    done (int): How many texts stand before them.
    n_texts (Optional[int]): How many there are in all, if known.
    YIELDS (tuple[int, Doc, Record]): Each with its number, from 0, in order.
    """
    pieces_name, pieces, began = get_scorer(nlp).names.pieces, 0, time.monotonic()
    texts = ((record.text, record._replace(text="")) for record in records)
    scored = nlp.pipe(texts, as_tuples=True, batch_size=batch_size, n_process=n_process)
    with watch_workers(), tqdm(total=n_texts, initial=done, unit=" texts", disable=None) as bar:
        for number, (doc, record) in enumerate(scored, done):
            pieces += doc._.get(pieces_name) or 0
            bar.set_postfix_str(f"{pieces / (time.monotonic() - began):.0f} pieces/s", refresh=False)
            bar.update()
            yield number, doc, record


def survey_input(source: str, column: str, nlp: Language) -> Survey:
    """Read all of the input once: what cannot be read is found before hours of scoring, not after."""
    n, fields = 0, {}
    for record in read_records(source, column, nlp.vocab):
        n += 1
        fields.update(dict.fromkeys(record.fields))
    return Survey(n, list(fields), digest(list_files(source)))


@contextmanager
def _as_file(path: str, form: str | None, live: bool) -> Iterator[str]:
    """The path of the input. Standard input is first written to a file, so that it can be read twice, unless
    the results are wanted live."""
    if path != STANDARD_STREAM or live:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"standard input{form or '.txt'}"
        with open(file, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield str(file)


def _output_class(path: str, tokens: bool, prodigy: bool):
    if prodigy and Path(path).suffix.lower() != ".jsonl":
        raise InputError(f"With --prodigy, OUTPUT must be a file that ends in .jsonl. It is {path!r}.")
    if prodigy:
        return Tasks
    if path == STANDARD_STREAM:
        return JsonLines
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise InputError(f"OUTPUT must end in {', '.join(FORMATS)}, or be - for JSON lines. It is {path!r}.")
    if tokens and FORMATS[ending] is Docs:
        raise InputError(
            "A .spacy file holds docs, with all their tokens: leave out --tokens, or write .jsonl or .csv."
        )
    return FORMATS[ending]


def _print(blocks: Iterable[bytes]):
    try:
        for block in blocks:
            sys.stdout.buffer.write(block)
            sys.stdout.buffer.flush()
    except BrokenPipeError:  # whoever read has enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
