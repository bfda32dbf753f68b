"""The Python that gives what the page shows, to be copied."""

import json
from collections.abc import Sequence
from typing import Any

from ..pipelines import PipelineSettings, architecture, component_config, is_spacy_pipeline

INDENT = "    "
WIDTH = 88


def score_code(settings: PipelineSettings, texts: Sequence[str], component: str = "pll", attr: str = "pll") -> str:
    """Score some texts, show them, and make a table of their tokens.

    settings (PipelineSettings): What the pipeline is made from.
    component, attr (str): The name and the setting `attr` of the pipeline's component.
    """
    return (
        "from spacy_pll import to_dataframe, visualize\n\n"
        + pipeline_code(settings, component)
        + f"texts = {literal(list(texts), len('texts = '))}\n"
        + "docs = list(nlp.pipe(texts))\n"
        + f"visualize.render(docs{_attr(attr)})  # in a notebook\n"
        + f"table = to_dataframe(docs{_attr(attr)})\n"
    )


def compare_code(
    settings: PipelineSettings, a: str, b: str, metric: str | None = None, component: str = "pll", attr: str = "pll"
) -> str:
    """Compare two versions of a text. metric (Optional[str]): One of several metrics; None is the primary one."""
    chosen = "" if metric is None else f", metric={literal(metric)}"
    return (
        "from spacy_pll import compare, visualize\n\n"
        + pipeline_code(settings, component)
        + f"a = {literal(a)}\nb = {literal(b)}\n"
        + f"comparison = compare(nlp, a, b{chosen}{_attr(attr)})\n"
        + "visualize.render_comparison(comparison)  # in a notebook\n"
        + "comparison.difference\n"
    )


def candidates_code(
    settings: PipelineSettings,
    prefix: str,
    candidates: Sequence[str],
    suffix: str,
    component: str = "pll",
    attr: str = "pll",
) -> str:
    """Score candidates in a slot."""
    # Of several components, the function would take the first.
    chosen = f", component={literal(component)}" if settings.component else ""
    return (
        "from spacy_pll import score_continuations, visualize\n\n"
        + pipeline_code(settings, component)
        + f"candidates = {literal(list(candidates), len('candidates = '))}\n"
        + f"prefix = {literal(prefix)}\nsuffix = {literal(suffix)}\n"
        + f'ranked = score_continuations(nlp, prefix, candidates, suffix, separator=""{chosen})\n'
        + f"visualize.render_continuations(ranked{_attr(attr)})  # in a notebook\n"
    )


def docs_code(file: str, attr: str = "pll") -> str:
    """Read the scored docs of a .spacy file."""
    return (
        "import spacy\nfrom spacy.tokens import DocBin\nfrom spacy_pll import visualize\n\n"
        + f"saved = DocBin().from_disk({literal(file)})\n"
        + 'docs = list(saved.get_docs(spacy.blank("en").vocab))\n'
        + f"visualize.render(docs{_attr(attr)})  # in a notebook\n"
    )


def pipeline_code(settings: PipelineSettings, component: str = "pll") -> str:
    """Make the pipeline."""
    changes = component_config(settings)
    lines = ["import spacy", ""]
    if settings.gpu_id >= 0:
        lines.append(f"spacy.require_gpu({settings.gpu_id})")
    if settings.model and is_spacy_pipeline(settings.model):
        if settings.precision:
            changes["model.mixed_precision"] = settings.precision == "bfloat16"
        config = {f"components.{component}.{name}": value for name, value in changes.items()}
        lines.append(f"nlp = spacy.load({literal(settings.model)}, config={literal(config, WIDTH)})")
    else:
        if settings.model or settings.precision == "bfloat16":
            changes["model"] = {name: value for name, value in architecture(settings).items() if value is not False}
        lines.append(f"nlp = spacy.blank({literal(settings.lang)})")
        if settings.spans == "sents":
            lines.append('nlp.add_pipe("sentencizer")')
        lines.append(f'nlp.add_pipe("pll", config={literal(changes, WIDTH)})')
    return "\n".join(lines) + "\n\n"


def literal(value: Any, used: int = 0, indent: str = "") -> str:
    """A value as Python writes it, with double quotes; lists and dictionaries on several lines if they are long.

    used (int): How much of the first line is taken.
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # its escapes are Python's as well
    if not isinstance(value, list | dict):
        return repr(value)
    opening, closing = "[]" if isinstance(value, list) else "{}"
    deeper = indent + INDENT
    if isinstance(value, dict):
        items = [f"{literal(key)}: {literal(entry, len(key) + 8, deeper)}" for key, entry in value.items()]
    else:
        items = [literal(entry, 8, deeper) for entry in value]
    line = opening + ", ".join(items) + closing
    if used + len(indent) + len(line) <= WIDTH and "\n" not in line:
        return line
    return opening + "\n" + "".join(f"{deeper}{item},\n" for item in items) + indent + closing


def _attr(attr: str) -> str:
    return "" if attr == "pll" else f", attr={literal(attr)}"
