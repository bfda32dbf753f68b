"""The page of the explorer, a script for Streamlit: the model and its settings at the side, and a tab for each task.

Its argument is a JSON object with the arguments of `show_page`.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pandas as pd
import streamlit as st
from spacy.language import Language
from spacy.tokens import Doc

# A script has no package to import from relatively.
from spacy_pll.analysis.comparison import compare
from spacy_pll.analysis.continuations import Continuation, score_continuations
from spacy_pll.errors import PLLError, shown_errors, spell
from spacy_pll.explorer import MAX_CHARACTERS
from spacy_pll.explorer.sharing import SharedPipeline
from spacy_pll.pipelines import SETTINGS, PipelineSettings
from spacy_pll.scoring.wordpieces import WORDS
from spacy_pll.settings import ScoringSettings, describe_settings
from spacy_pll.tables.dataframe import to_dataframe
from spacy_pll.visualize import masked_texts, render, render_comparison, render_continuations
from spacy_pll.visualize.masked_texts import masked_table
from spacy_pll.visualize.text import count_pieces

ABOUT = (
    "Pseudo-log-likelihood (PLL): how well a language model predicts each word from the others. Scores are natural "
    "logarithms. The closer to 0, the more likely. Texts go no further than the computer that runs this page."
)
SETTING_HELP = describe_settings(PipelineSettings) | describe_settings(ScoringSettings)
TEXTS = "The keys to the cabinet is on the table.\nThe traveler lost the souvenir."
VERSIONS = ("The keys to the cabinet are on the table.", "The keys to the cabinet is on the table.")
SLOT, CANDIDATES = "The children sat down at the ___ and ate.", "table\ntables\nidea\nkitchen table"
SLOT_PATTERN = re.compile(r"_{2,}")  # two or more underscores
# How the keys begin of fields that are there only with a model.
CHOICES = ("metrics of ", "words of ", "compared", "masked under")
SHARED_LABEL, BUILTIN_LABEL = "Shared wordpieces", "built-in English model"
# The fields of the settings that messages name.
INPUT_LABELS = {
    "model": "Model",
    "lang": "Language",
    "metrics": "Metrics",
    "words": "Words",
    "shared_pieces": SHARED_LABEL,
}
# How columns of numbers are written; the texts of a table are not.
COLUMN_CONFIG: dict[str, Any] = {
    "probability": st.column_config.ProgressColumn(
        "probability among these", help="Together, they have 100 %.", format="percent", min_value=0.0, max_value=1.0
    ),
    "text": st.column_config.Column(width="large"),
}
Chosen = tuple[SharedPipeline, PipelineSettings]

# The page


def show_page(start: Mapping[str, Any] = {}, max_characters: int = MAX_CHARACTERS, any_model: bool = True) -> None:
    """Show the page. Streamlit calls this whenever something on the page changes.

    start: The `PipelineSettings` with which it begins.
    max_characters (int): How much it scores at once.
    any_model (bool): Another model can be chosen. Otherwise strangers may see the page.
    """
    st.set_page_config("spacy-pll explorer", layout="wide")
    st.header("spacy-pll explorer")
    st.markdown(f":small[{ABOUT}]")
    with st.sidebar:
        settings = choose_model(PipelineSettings(**start), any_model)
    chosen: Chosen | None = None
    with shown_errors(show_error):
        pipeline = load_pipeline(settings, max_characters)
        with st.sidebar:
            chosen = pipeline, choose_scores(settings, pipeline)
    # The fields are there in any case: a browser loses what was typed, and not sent, in one that goes.
    for tab, view in zip(st.tabs(list(TABS)), TABS.values()):
        with tab, shown_errors(show_error):
            view(chosen)
    if chosen is None:
        keep_choices()


def choose_model(start: PipelineSettings, any_model: bool) -> PipelineSettings:
    """The fields for the model and the language, if they can be changed."""
    if not any_model:
        st.text(f"Model: {start.model or BUILTIN_LABEL}\nLanguage: {start.lang}")
        return start
    about = SETTING_HELP["model"].replace("None:", "Empty:")
    model = st.text_input("Model", start.model or "", key="model", placeholder=BUILTIN_LABEL, help=about)
    lang = st.text_input("Language", start.lang, key="lang", help=SETTING_HELP["lang"])
    return start.changed(model=model.strip() or None, lang=lang.strip() or start.lang)


@st.cache_resource(max_entries=2, show_spinner="Loading the model …")
def load_pipeline(settings: PipelineSettings, max_characters: int) -> SharedPipeline:
    """A pipeline, which is loaded once and then used by all open pages."""
    return SharedPipeline(settings, max_characters)


def choose_scores(settings: PipelineSettings, pipeline: SharedPipeline) -> PipelineSettings:
    """The fields for the metrics and the unit of words. RAISES (ValueError): No metric is chosen."""
    metrics = st.multiselect(
        "Metrics",
        pipeline.list_metrics(),
        pipeline.metrics,
        key=f"metrics of {settings.model}",
        help="The first one is the primary metric: what the model expected is shown for it. Except under sentence_l2r, "
        "left_context and causal, the model sees the text on both sides of a word.",
    )
    unit, key = WORDS.index(pipeline.words), f"words of {settings.model}"
    words = st.selectbox("Words", WORDS, unit, key=key, help=SETTING_HELP["words"])
    if not metrics:
        raise PLLError("No metric is chosen. Choose one or more under “Metrics”.")
    return settings.changed(metrics=tuple(metrics), words=words)


# The tabs


def score_view(chosen: Chosen | None) -> None:
    """Texts, coloured; their tokens in a table."""
    with st.form("score", border=False):
        typed = st.text_area("Texts, one per line", TEXTS, key="texts", height=120)
        st.form_submit_button("Score", type="primary", key="score")
    if chosen is None:
        return
    (pipeline, settings), texts = chosen, split_lines(typed)
    if not texts:
        st.info("Type or paste a text.")
        return
    pipeline.check_length(texts)
    docs = scored(pipeline, settings, score_all, *texts)
    st.html(str(render(docs, attr=pipeline.attr, jupyter=False)))
    table = to_dataframe(docs, attr=pipeline.attr)
    show_table(table.drop(columns=["surprisal", "alternative_log_probs"], errors="ignore"), "Table of the tokens")


def compare_view(chosen: Chosen | None) -> None:
    """Two versions of a text, and where the difference comes from."""
    with st.form("compare", border=False):
        a = st.text_input("Version a", VERSIONS[0], key="a")
        b = st.text_input("Version b", VERSIONS[1], key="b")
        metric = choose_metric(chosen, "compared")
        st.form_submit_button("Compare", type="primary", key="compare")
    if chosen is None:
        return
    if not (a.strip() and b.strip()):
        st.info("Type two versions of a text.")
        return
    chosen[0].check_length([a, b])
    comparison = scored(*chosen, compare, a, b, metric)
    st.markdown(say_difference(comparison.difference))
    pieces = [doc._.get(f"{comparison.attr}_pieces") or 0 for doc in (comparison.a, comparison.b)]
    st.markdown(say_metric(*chosen, metric) + say_lengths(*pieces))
    st.html(str(render_comparison(comparison, jupyter=False)))


def rank_view(chosen: Chosen | None) -> None:
    """Candidates in a slot, the most probable first."""
    with st.form("rank", border=False):
        sentence = st.text_input("Sentence, with ___ for the slot", SLOT, key="slot")
        typed = st.text_area("Candidates, one per line", CANDIDATES, key="candidates", height=140)
        help_ = (
            "Take candidates that share a wordpiece with the text beside them: it belongs to the side where it begins."
        )
        shared = st.checkbox(SHARED_LABEL, key="shared", help=help_)
        st.form_submit_button("Rank", type="primary", key="rank")
    if chosen is None:
        return
    (pipeline, settings), candidates = chosen, split_lines(typed)
    if not candidates:
        st.info("Type some candidates.")
        return
    before, after = split_at_slot(sentence)
    pipeline.check_length([f"{before}{candidate}{after}" for candidate in candidates])
    ranked = scored(pipeline, settings, rank, shared, before, after, *candidates)
    st.markdown(say_metric(*chosen))
    rows = [(filler.text, filler.probability, filler.score, filler.mean, filler.pieces) for filler in ranked]
    table = pd.DataFrame(rows, columns=["candidate", "probability", "score", "per piece", "pieces"])
    show_table(table.sort_values("probability", ascending=False, kind="stable"))
    st.html(str(render_continuations(ranked, attr=pipeline.attr, jupyter=False)))


def masks_view(chosen: Chosen | None) -> None:
    """What the model reads for each wordpiece of a text."""
    with st.form("masks", border=False):
        text = st.text_input("Text", VERSIONS[0], key="masked")
        metric = choose_metric(chosen, "masked under")
        st.form_submit_button("Show", type="primary", key="show")
    if chosen is None:
        return
    if not text.strip():
        st.info("Type a text.")
        return
    chosen[0].check_length([text])
    header, *rows = masked_table(scored(*chosen, masked_texts, text, metric), "score")
    st.markdown(say_metric(*chosen, metric))
    # Unlike other tables, its lines are broken on a narrow screen.
    st.table(pd.DataFrame([map(as_markdown, row) for row in rows], columns=header).set_index(header[0]))


def score_all(nlp: Language, *texts: str) -> list[Doc]:
    return list(nlp.pipe(texts))


def rank(nlp: Language, shared: bool, before: str, after: str, *candidates: str) -> list[Continuation]:
    return score_continuations(nlp, before, candidates, after, separator="", shared_pieces=shared)


def scored(
    pipeline: SharedPipeline, settings: PipelineSettings, scorer: Callable[..., Any], *texts: str | bool | None
) -> Any:
    """What a scorer makes of texts. Its warnings are shown, and how many requests come before while there are some."""
    queue = st.empty()

    def wait(before: int) -> None:
        if before:
            queue.info(f"Others use the model at the moment: {before} request{'s' * (before > 1)} before yours.")
        else:
            queue.empty()

    with st.spinner("Scoring …"):
        result, messages = pipeline.ask(scorer, settings, *texts, wait=wait)
    for message in messages:
        st.warning(as_markdown(on_page(message)))
    return result


# Parts of the tabs


def choose_metric(chosen: Chosen | None, key: str) -> str | None:
    """The field for one of the metrics, if there are several. RETURNS: None for the first."""
    metrics = chosen[1].scoring["metrics"] if chosen else ()
    return st.selectbox("Metric", metrics, key=key) if len(metrics) > 1 else None


def say_metric(pipeline: SharedPipeline, settings: PipelineSettings, metric: str | None = None) -> str:
    """Which score is compared, as Markdown. metric (Optional[str]): None: the first."""
    metric = metric or settings.scoring["metrics"][0]
    return f"Metric: `{metric}`{pipeline.approximate and f'; approximate ({pipeline.approximate})'}."


def say_lengths(a: int, b: int) -> str:
    """That two versions have other numbers of wordpieces, if they have: a score is a sum over these."""
    if a == b:
        return ""
    return f" Version a has {count_pieces(a)}, and b {count_pieces(b)}: the longer one tends to have the lower score."


def say_difference(difference: float) -> str:
    """Which of two versions has the higher score, as Markdown. difference (float): That of b minus that of a."""
    if math.isinf(difference):
        return f"Version **{'a' if difference > 0 else 'b'}** has no wordpiece, so it has no score."
    if round(difference, 2) == 0:
        return "Both versions have the same score."
    higher = "b" if difference > 0 else "a"
    return f"Version **{higher}** has the higher score. Difference: **{abs(difference):.2f}** nats."


def show_table(table: pd.DataFrame, title: str | None = None) -> None:
    """A table, in a part of the page that can be opened if it has a title."""
    with st.expander(title) if title else st.container():
        numbers = {name: st.column_config.NumberColumn(format="%.2f") for name in table.select_dtypes("float")}
        st.dataframe(table, hide_index=True, column_config={**numbers, **COLUMN_CONFIG})


# What is shown, and what was typed


def show_error(error: Exception) -> None:
    st.error(as_markdown(on_page(str(error))))


def on_page(message: str) -> str:
    """A message with the names of the fields in place of the settings that have one. The others were set before."""

    def written(name: str, value: object) -> str | None:
        if name not in {*SETTINGS, *INPUT_LABELS, "max_characters"}:
            return None
        shown = f"“{INPUT_LABELS[name]}”" if name in INPUT_LABELS else f"{name} (set when the page is started)"
        return shown if value is ... or value is True else f"{shown}: {value}"

    return spell(message, written)


def as_markdown(text: str) -> str:
    """A text so that Streamlit, which reads Markdown, shows it as it is, but for names in backticks: these are code."""
    parts = re.split(r"(`[^`\n]+`)", text)
    parts[::2] = [re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", written) for written in parts[::2]]
    return "".join(parts).replace("\n", "  \n")


def keep_choices() -> None:
    """Keep what was chosen in fields that are not shown. Streamlit would forget it."""
    for key in map(str, list(st.session_state)):
        if key.startswith(CHOICES):
            with suppress(st.errors.StreamlitAPIException):  # it is shown
                st.session_state[key] = st.session_state[key]


def split_lines(text: str) -> list[str]:
    """The lines that are not blank, without the white space around them."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def split_at_slot(sentence: str) -> tuple[str, str]:
    """The text before and after the slot. RAISES (ValueError): There is no slot, or more than one."""
    parts = SLOT_PATTERN.split(sentence)
    if len(parts) != 2:
        raise PLLError(
            f"The sentence must have one slot, written ___. It has {len(parts) - 1}: {sentence!r}. "
            'Write it like this: "The keys to the cabinet ___ on the table."'
        )
    return parts[0], parts[1]


TABS = {"Score": score_view, "Compare": compare_view, "Rank": rank_view, "Masks": masks_view}

if __name__ == "__main__":
    with shown_errors(show_error):
        show_page(**json.loads(sys.argv[1]) if sys.argv[1:] else {})
