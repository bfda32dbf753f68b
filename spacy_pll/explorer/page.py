"""The page: the model and its settings at the side, and a tab for each task."""

import streamlit as st

from ..errors import shown_errors
from ..pipelines import PipelineSettings
from ..scoring.wordpieces import WORDS
from .loading import SharedPipeline
from .views import compare_view, keep_fields, rank_view, score_view, show_error

TABS = {"Score": score_view, "Compare": compare_view, "Rank": rank_view}
ABOUT = (
    "Pseudo-log-likelihood (PLL): how well a language model predicts each word from the others. Scores are natural "
    "logarithms. The closer to 0, the more likely. All texts stay on this computer."
)


def show_page(start: PipelineSettings) -> None:
    """Show the page. Streamlit calls this again whenever something on the page changes.

    start (PipelineSettings): What the page begins with.
    """
    st.set_page_config("spacy-pll explorer", layout="wide")
    st.header("spacy-pll explorer")
    st.caption(ABOUT)
    with st.sidebar:
        settings = choose_model(start)
    complete = False
    with shown_errors(show_error):
        pipeline = load(settings)
        with st.sidebar:
            chosen = choose_scores(settings, pipeline)
        complete = True
        for tab, view in zip(st.tabs(list(TABS)), TABS.values()):
            with tab, shown_errors(show_error):
                view(pipeline, chosen)
    if not complete:
        keep_fields()


def choose_model(start: PipelineSettings) -> PipelineSettings:
    """The fields for the model and the language."""
    model = st.text_input(
        "Model",
        start.model or "",
        key="model",
        placeholder="built-in English model",
        help="Hub name or folder of a masked language model, or a spaCy pipeline with a `pll` component. Leave it "
        "empty for the built-in English model.",
    )
    lang = st.text_input(
        "Language",
        start.lang,
        key="lang",
        help="Language of spaCy's tokenizer. Not used if the model is a spaCy pipeline.",
    )
    return start.changed(model=model.strip() or None, lang=lang.strip() or start.lang)


@st.cache_resource(max_entries=2, show_spinner="Loading the model …")
def load(settings: PipelineSettings) -> SharedPipeline:
    """A pipeline, which is loaded once and then used by all open pages."""
    return SharedPipeline(settings)


def choose_scores(settings: PipelineSettings, pipeline: SharedPipeline) -> PipelineSettings:
    """The fields for the metrics and the unit of words."""
    metrics = st.multiselect(
        "Metrics",
        pipeline.list_metrics(),
        pipeline.metrics,
        key=f"metrics of {settings.model}",
        help="The first one is the primary metric: what the model expected is shown for it. Except under sentence_l2r, "
        "left_context and causal, the model sees the text on both sides of a word.",
    )
    words = st.selectbox(
        "Words",
        WORDS,
        WORDS.index(pipeline.words),
        key=f"words of {settings.model}",
        help="What counts as a word: spaCy's tokens, the words of the model's tokenizer, or what white space "
        "separates. The wordpieces of a word are masked together.",
    )
    return settings.changed(metrics=tuple(metrics or pipeline.metrics), words=words)
