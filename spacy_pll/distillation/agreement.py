"""How well a student agrees with its teacher on texts that neither the training nor its measurements have used up."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..corpus.readers import read_records
from ..evaluation.agreement import compare_scorers
from ..evaluation.agreement_page import level_rows
from ..language_model.student_card import StudentCard
from ..pipelines import PipelineSettings, make_pipeline
from .settings import DistillationSettings

# The most held-out texts that are scored exactly.
TEXTS = 300


def measure_agreement(settings: DistillationSettings, student: Path, held_out: Path) -> dict[str, Any]:
    """Compare a student with the exact scores of its teacher.

    student (Path): Its folder.
    held_out (Path): A .jsonl file of texts.
    RETURNS (dict[str, Any]): What `compare_scorers` returns, without single tokens.
    """
    exact = make_pipeline(
        PipelineSettings(settings.teacher, [settings.metric], settings.words, lang=settings.lang, keep_pieces=True)
    )
    fast = make_pipeline(PipelineSettings(str(student), one_pass=True, lang=settings.lang, keep_pieces=True))
    texts = [record.text for record in read_records(str(held_out))]
    step = max(1, len(texts) // TEXTS)
    result = compare_scorers(exact, fast, texts[::step][:TEXTS], labels=("exact", "student"))
    return {key: result[key] for key in ("texts", "levels", "calibration")}


def student_readme(name: str, card: StudentCard, languages: Iterable[str] = ()) -> str:
    """The model card of a student, in Markdown.

    languages (Iterable[str]): Codes of the languages that the teacher's card names.
    """
    header = "".join(f"- {code}\n" for code in sorted(languages))
    header = f"---\nlanguage:\n{header}---\n\n" if header else ""
    teacher = card.teacher.get("hub") or card.teacher.get("folder") or "the built-in model of spacy-pll"
    rows = level_rows(card.agreement) if card.agreement else []
    lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    needs = "Nothing is masked" if card.mask_spacing is None else f"mask_spacing is {card.mask_spacing}"
    return f"""{header}# {name}

A {card.title} of spacy-pll, distilled from {teacher}. It gives approximate scores of the metric `{card.metric}` with
words = `{card.words}`. {needs} while it scores.

```ini
[components.pll.model]
@architectures = "spacy-pll.OnePass.v1"
name = "FOLDER"
```

It was trained for {card.steps:,} steps on {card.training.get("pieces", 0):,} wordpieces. `one_pass.json` has its
settings.

## Agreement with the teacher's exact scores

On {card.agreement.get("texts", 0):,} texts of the same corpus that were held out. Differences are in nats.

| by | number | r | 95 % interval | mean difference | 95 % interval | mean absolute difference |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{lines}
Do not use it to compare single minimal pairs, or for research that reports PLL: use exact scores there.
"""
