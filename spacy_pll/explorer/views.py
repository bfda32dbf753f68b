"""The tabs of the page: fields, then the scored text, tables, and the Python that gives the same."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import streamlit as st
from spacy.tokens import Doc

from ..analysis.comparison import Comparison, compare
from ..analysis.continuations import Continuation, score_continuations
from ..analysis.visualize import render, render_comparison, render_continuations
from ..corpus.readers import READERS
from ..pipelines import PipelineSettings
from . import snippets
from .inputs import file_rows, is_scored, number_columns, read_upload, sorted_order, split_at_slot, split_lines
from .loading import Result, SharedPipeline
from .tables import alternative_rows, candidate_rows, say_difference, segment_rows, token_rows

TEXTS = "The keys to the cabinet is on the table.\nThe traveler lost the souvenir."
VERSIONS = ("The keys to the cabinet are on the table.", "The keys to the cabinet is on the table.")
SLOT, CANDIDATES = "The children sat down at the ___ and ate.", "table\ntables\nidea\nkitchen table"
PER_PAGE = 10
IN_FILE_ORDER = "as in the file"
# How columns of numbers are written; the texts of a table are not.
FORMATS: dict[str, Any] = {
    "probability": st.column_config.ProgressColumn(format="percent", min_value=0.0, max_value=1.0),
    "text": st.column_config.Column(width="large"),
}


class Chosen(NamedTuple):
    """What the fields at the side say."""

    settings: PipelineSettings  # with metrics, words and margin
    pipeline: SharedPipeline

    @property
    def for_code(self) -> dict[str, str]:
        """What the code that is shown has to name."""
        return {"component": self.pipeline.name, "attr": self.pipeline.attr}


@contextmanager
def shown_errors() -> Iterator[None]:
    """Show the errors that a user can fix as a message. All others are defects and keep their traceback."""
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        st.error(as_markdown(str(error)))


def as_markdown(text: str) -> str:
    """A text so that Streamlit, which reads Markdown, shows it as it is."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text).replace("\n", "  \n")


# The tabs


def score_view(chosen: Chosen) -> None:
    """Texts, coloured; their tokens in a table; alternatives to one of them."""
    with st.form("score", border=False):
        typed = st.text_area("Texts, one per line", TEXTS, key="texts", height=120)
        st.form_submit_button("Score", type="primary", key="score")
    texts = split_lines(typed)
    if not texts:
        st.info("Type or paste a text.")
        return
    docs = with_warnings(score(chosen.pipeline, chosen.settings, tuple(texts)))
    show_docs(docs, chosen.pipeline.attr)
    show_alternatives(docs, chosen.pipeline.attr)
    show_code(snippets.score_code(chosen.settings, texts, **chosen.for_code))


def compare_view(chosen: Chosen) -> None:
    """Two versions of a text, and where the difference comes from."""
    metrics = list(chosen.settings.metrics or ())
    with st.form("compare", border=False):
        a = st.text_input("First version", VERSIONS[0], key="a")
        b = st.text_input("Second version", VERSIONS[1], key="b")
        metric = st.selectbox("Metric", metrics, key="compared") if len(metrics) > 1 else None
        st.form_submit_button("Compare", type="primary", key="compare")
    if not (a.strip() and b.strip()):
        st.info("Type two versions of a text.")
        return
    comparison = with_warnings(compare_texts(chosen.pipeline, chosen.settings, a, b, metric))
    st.markdown(say_difference(comparison.difference))
    show_html(render_comparison(comparison, jupyter=False))
    show_table(segment_rows(comparison), "Table of the parts")
    show_code(snippets.compare_code(chosen.settings, a, b, metric, **chosen.for_code))


def rank_view(chosen: Chosen) -> None:
    """Candidates in a slot, the most probable first."""
    with st.form("rank", border=False):
        sentence = st.text_input("Sentence, with ___ for the slot", SLOT, key="slot")
        typed = st.text_area("Candidates, one per line", CANDIDATES, key="candidates", height=140)
        st.form_submit_button("Rank", type="primary", key="rank")
    candidates = split_lines(typed)
    if not candidates:
        st.info("Type some candidates.")
        return
    prefix, suffix = split_at_slot(sentence)
    found = rank_candidates(chosen.pipeline, chosen.settings, prefix, tuple(candidates), suffix)
    ranked = with_warnings(found)
    show_table(candidate_rows(ranked))
    show_html(render_continuations(ranked, attr=chosen.pipeline.attr, jupyter=False))
    show_code(snippets.candidates_code(chosen.settings, prefix, candidates, suffix, **chosen.for_code))


def file_view(chosen: Chosen) -> None:
    """The texts of a file, sorted by one of its columns."""
    endings = [ending.removeprefix(".") for ending in READERS]
    file = st.file_uploader(
        "File of texts, such as one that `pll score` wrote",
        endings,
        key="file",
        help="A .spacy file is shown with the scores that it has. The texts of other files are scored with the model "
        "at the side, one page at a time.",
    )
    column = st.text_input("Column of the texts", "text", key="column").strip()
    if file is None:
        return
    attr = chosen.pipeline.attr
    settings = chosen.settings
    with chosen.pipeline.use(settings.metrics, settings.words, settings.mask_margin) as nlp:
        records = read_upload(file.name, file.getvalue(), column, nlp.vocab)
    if not records:
        st.info("There is no text in this file.")
        return
    rows = file_rows(records, attr)
    columns = number_columns(rows)
    order = st.selectbox(
        "Order",
        [None, *((name, lowest) for name in columns for lowest in (True, False))],
        format_func=lambda choice: (
            f"{choice[0]}, {'lowest' if choice[1] else 'highest'} first" if choice else IN_FILE_ORDER
        ),
        key="order",
    )
    shown = sorted_order(rows, *(order or (None, True)))
    n_pages = -(-len(shown) // PER_PAGE)
    page = st.number_input(f"Page, from 1 to {n_pages}", 1, n_pages, key="number") if n_pages > 1 else 1
    shown = shown[(int(page) - 1) * PER_PAGE : int(page) * PER_PAGE]
    own = [records[i].text for i in shown]
    docs = [text for text in own if isinstance(text, Doc) and is_scored(text, attr)]
    if len(docs) == len(own):
        st.caption("These are the scores that the file has.")
        code = snippets.docs_code(file.name, attr)
    else:
        st.caption(f"These texts were scored with {as_markdown(chosen.pipeline.title)}.")
        texts = [text if isinstance(text, str) else text.text for text in own]
        docs = with_warnings(score(chosen.pipeline, chosen.settings, tuple(texts)))
        code = snippets.score_code(chosen.settings, texts, **chosen.for_code)
    show_html(render(docs, attr=attr, jupyter=False))
    show_table(rows, f"Table of the file ({len(rows)} texts)")
    show_code(code)


# Scores. They are kept, because the page runs again whenever one of its fields changes.


@st.cache_resource(max_entries=50, show_spinner="Scoring the texts …")
def score(_pipeline: SharedPipeline, settings: PipelineSettings, texts: tuple[str, ...]) -> tuple[list[Doc], list[str]]:
    return _pipeline.run(settings, lambda nlp: list(nlp.pipe(texts)))


@st.cache_resource(max_entries=50, show_spinner="Scoring both versions …")
def compare_texts(
    _pipeline: SharedPipeline, settings: PipelineSettings, a: str, b: str, metric: str | None
) -> tuple[Comparison, list[str]]:
    return _pipeline.run(settings, lambda nlp: compare(nlp, a, b, metric, attr=_pipeline.attr))


@st.cache_resource(max_entries=50, show_spinner="Scoring the candidates …")
def rank_candidates(
    _pipeline: SharedPipeline, settings: PipelineSettings, prefix: str, candidates: tuple[str, ...], suffix: str
) -> tuple[list[Continuation], list[str]]:
    return _pipeline.run(settings, lambda nlp: score_continuations(nlp, prefix, candidates, suffix, separator=""))


# Parts of the tabs


def with_warnings(found: tuple[Result, list[str]]) -> Result:
    """The result of `SharedPipeline.run`, whose warnings are shown."""
    result, messages = found
    for message in messages:
        st.warning(as_markdown(message))
    return result


def show_docs(docs: Sequence[Doc], attr: str) -> None:
    """The texts, coloured, and a table of their tokens."""
    show_html(render(docs, attr=attr, jupyter=False))
    show_table(token_rows(docs, attr), "Table of the tokens")


def show_alternatives(docs: Sequence[Doc], attr: str) -> None:
    """What the model expected in the place of one token."""
    tokens = [token for doc in docs for token in doc if alternative_rows(token, attr)]
    if not tokens:
        return
    st.subheader("What the model expected")
    least = min(range(len(tokens)), key=lambda i: tokens[i]._.get(attr))
    number = st.selectbox(
        "in the place of this word",
        range(len(tokens)),
        least,
        format_func=lambda i: f"{tokens[i].text} (in: {tokens[i].doc.text})",
        key="token",
        help="For a word of several wordpieces, this is the first one.",
    )
    if number is not None:
        show_table(alternative_rows(tokens[number], attr))


def show_html(html: str | None) -> None:
    if html:
        st.html(html)


def show_table(rows: Sequence[dict[str, Any]], title: str | None = None) -> None:
    """A table, in a part of the page that can be opened if it has a title."""
    with st.expander(title) if title else st.container():
        numbers = {
            name: st.column_config.NumberColumn(format="%.2f")
            for row in rows
            for name, value in row.items()
            if isinstance(value, float)
        }
        st.dataframe(list(rows), hide_index=True, column_config={**numbers, **FORMATS})


def show_code(code: str) -> None:
    with st.expander("Python that gives the same"):
        st.code(code)
