"""Score texts with a pool of workers, on one machine or several, with Ray Data. This needs the extra `[ray]`.

Ray reads and writes the texts, and gives the workers their work. If a worker dies, Ray repeats its unfinished work.
"""

from collections.abc import Callable, Collection
from functools import partial
from types import GenericAlias
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_model_from_config
from thinc.api import Config

from .component import PLLScorer, get_scorer
from .errors import PLLError, explained, no_column
from .pipelines import make_pipeline
from .requirements import extra
from .settings import BATCH_SIZE
from .stream.outcomes import CANARY_TEXT, ERROR, TextError, score_each
from .tables.rows import ScoredText, TextRows, TokenRows, check_columns

with extra("ray", "Scoring on several machines needs Ray"):
    import pyarrow as pa
    import ray.data

    from .corpus.parquet import arrow_type


def annotate(
    dataset: ray.data.Dataset,
    nlp: Language | Callable[[], Language],
    *,
    column: str = "text",
    workers: int = 1,
    gpus_per_worker: float = 0,
    batch_size: int = BATCH_SIZE,
) -> ray.data.Dataset:
    """Score the texts of a Ray Dataset. Scoring starts when the result is used (`write_parquet`, `iter_rows`...).

    dataset (ray.data.Dataset): One row per text. All its columns are kept.
    nlp (Union[Language, Callable[[], Language]]): A pipeline with a `pll` component, which is sent to the workers, or
        a function that makes one there (`functools.partial(spacy.load, "/shared/folder")`).
    column (str): The column of texts.
    workers (int): Processes, each with a pipeline. A worker takes one CPU of the cluster and, without a GPU, uses one
        thread. Leave one CPU for reading and writing.
    gpus_per_worker (float): 1, or a fraction such as 0.5 if several workers share a GPU; 0 for CPUs.
    batch_size (int): Texts per batch. Equal masked texts in a batch are computed once. If a worker dies, its batch is
        scored again. With short texts, a GPU needs batches of about 8,000 texts.
    RETURNS (ray.data.Dataset): The rows, in any order, with these columns added: one per metric, such as
        `pll_word_l2r` (natural log), `pll_pieces` and `pppl`, named as the attributes are; `tokens`, `token_pieces` and
        one such as `token_pll_word_l2r` per metric, lists with one entry per token that is not white space; and
        `error`, null or the reason why the row has no scores. With `distribution` also `pll_top1`, `pll_entropy`,
        `token_rank` and `token_entropy`, and with `alternatives` `token_alternatives` and
        `token_alternative_log_probs`, lists of lists.
    RAISES (ValueError): A column is missing or would be overwritten, or a setting is not valid.
    """
    if workers < 1:
        raise PLLError(f"`workers` must be 1 or more. It is {workers}.")
    if not 0 <= gpus_per_worker <= 1:
        raise PLLError(f"`gpus_per_worker` must be 0 to 1, since a worker uses one GPU. It is {gpus_per_worker}.")
    if isinstance(nlp, Language):
        _check_columns(dataset.columns() or [], column, get_scorer(nlp))
        nlp = serialize_pipeline(nlp)
    # A worker may run out of memory while it loads its model. Later, Ray Data itself restarts a worker that died
    # (max_restarts=-1) and repeats what it had not finished (max_task_retries=-1).
    context = dataset.context
    context.max_consecutive_actor_init_deaths = max(3, context.max_consecutive_actor_init_deaths)
    # A small corpus is read as one block, and one worker would get all of it.
    return dataset.repartition(target_num_rows_per_block=batch_size, strict=True).map_batches(
        Worker,
        fn_constructor_args=(nlp, column, gpus_per_worker > 0),
        batch_size=batch_size,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_gpus=gpus_per_worker or None,
    )


def _check_columns(names: Collection[str], column: str, scorer: PLLScorer) -> None:
    """RAISES (ValueError): The column of texts is missing, or another one would be there twice."""
    if column not in names:
        raise no_column("The dataset", column, names, "Name the column of texts with `column`.")
    check_columns(names, added_columns(scorer), "The dataset")


def added_columns(scorer: PLLScorer) -> dict[str, Any]:
    """The columns that `annotate` adds, with the Python types of their values."""
    lists = {name: GenericAlias(list, (type_,)) for name, (_, type_) in _lists(scorer).items()}
    return {**TextRows("text", scorer.names, scorer.settings).types, **lists, ERROR: str}


def _lists(scorer: PLLScorer) -> dict[str, tuple[str, Any]]:
    """The columns of lists, each with the column of tokens that it is made of, and the type of that."""
    types = TokenRows("text", scorer.names, scorer.settings).types
    used = {name: type_ for name, type_ in types.items() if name not in ("doc", "token", "surprisal")}
    return {"tokens": ("text", str), **{f"token_{name}": (name, type_) for name, type_ in used.items()}}


def serialize_pipeline(nlp: Language) -> Callable[[], Language]:
    """A function that can be sent to another process and makes the pipeline there, with its weights."""
    return partial(_deserialize_pipeline, nlp.config.copy(), nlp.to_bytes())


def _deserialize_pipeline(config: Config, data: bytes) -> Language:
    return load_model_from_config(config, auto_fill=True).from_bytes(data)


class Worker:
    """A worker process with one loaded pipeline. It gets tables of rows, and returns the rows with their scores.

    gpu (bool): Whether to use the GPU that Ray gave this process.
    RAISES (Exception): The worker cannot score any text. Calls of the worker raise this, too.
    """

    def __init__(self, make_nlp: Callable[[], Language], column: str, gpu: bool = False):
        if gpu:
            with explained("The GPU that Ray gave this worker cannot be used"):
                spacy.require_gpu()
        self.nlp, self.column = make_pipeline(make_nlp(), keep_pieces=True), column
        self.scorer = get_scorer(self.nlp)
        self.nlp(CANARY_TEXT)  # fails before Ray has given it a text

    def __call__(self, batch: pa.Table) -> pa.Table:
        _check_columns(batch.column_names, self.column, self.scorer)
        texts = batch[self.column].to_pylist()
        rows = [self._row(outcome) for outcome, _ in score_each(self.nlp, texts, BATCH_SIZE)]
        for name, type_ in added_columns(self.scorer).items():
            values = pa.array([row.get(name) for row in rows], arrow_type(type_))
            batch = batch.append_column(pa.field(name, values.type), values)
        return batch

    def _row(self, outcome: Doc | TextError) -> dict[str, Any]:
        if isinstance(outcome, TextError):
            return {ERROR: str(outcome)}
        names, settings = self.scorer.names, self.scorer.settings
        text = ScoredText.of(outcome, names)
        [row], tokens = (list(rows("text", names, settings)(text)) for rows in (TextRows, TokenRows))
        return row | {name: [token[own] for token in tokens] for name, (own, _) in _lists(self.scorer).items()}
