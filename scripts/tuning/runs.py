"""From a model and texts to the folder of the tuned model."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
import torch

from scripts.paper.errors import InputError
from scripts.paper.files import files_digest
from scripts.paper.names import BUILTIN
from spacy_pll.corpus.readers import list_files, read_records
from spacy_pll.corpus.records import ReadOptions
from spacy_pll.pipelines import describe_model

from .agreement import agreement_table, draw_contexts, measure_agreement
from .examples import MaskedLanguageModel
from .settings import TuningSettings
from .texts import ContextMaker, sample_passages
from .training import Progress, Trainer


def training_folder(output: Path) -> Path:
    """Where the checkpoint of a run is until it is done."""
    return output.with_name(output.name + ".training")


def tune(
    settings: TuningSettings,
    output: Path,
    *,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> list[dict[str, Any]]:
    """Tune a model, and write a plain Hugging Face folder.

    Until the run is done, its checkpoint is in the folder OUTPUT.training. If it is there, the run continues from it;
    its number of steps may have changed.

    watch (Callable): Called after each step.
    RETURNS: The agreement with exact scores before and after, as `measure_agreement`.
    RAISES (OSError): There is already something at OUTPUT, or there is no such model.
    RAISES (ValueError): The model cannot be tuned, the texts cannot be read, the loss is not finite, or the
        unfinished run is another one.
    """
    folder = training_folder(output)
    if output.exists():
        raise FileExistsError(f"{output} exists already. Give another folder, or remove it.")
    for path in (settings.texts, settings.dev_texts):
        if path is not None and (path == "-" or not Path(path).exists()):
            raise InputError(f"There is no file or folder {path!r}. Give the texts.")
    before, tuned = (load_model(settings) for _ in range(2))
    loaded = before.load()
    nlp = spacy.blank(settings.lang)
    train, dev = sample_passages(
        read_records(settings.texts, ReadOptions(settings.column, nlp.vocab)),
        loaded.tokenizer,
        settings.seed,
        None
        if settings.dev_texts is None
        else read_records(settings.dev_texts, ReadOptions(settings.column, nlp.vocab)),
    )
    make_contexts = ContextMaker(nlp, loaded.tokenizer, settings.words, loaded.max_length)
    folder.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(
        settings, before, tuned, train, make_contexts, run_identity(settings, before), folder / "checkpoint.pt"
    )
    trainer.resume()
    trainer.train(watch)
    unfinished = folder / "model"
    write_model(tuned, unfinished)
    after = load_model(settings, str(unfinished))
    drawn = draw_contexts(dev, make_contexts, settings.seed)
    rows = measure_agreement(before, after, drawn, settings.metrics[0], settings.margins)
    readme = model_readme(output.name, settings, before, rows)
    (unfinished / "README.md").write_text(readme, encoding="utf8")
    unfinished.rename(output)  # complete, or not there
    shutil.rmtree(folder, ignore_errors=True)
    return rows


def load_model(settings: TuningSettings, name: str | None = None) -> MaskedLanguageModel:
    """The model, or another one with its settings, loaded and tried with groups."""
    model = MaskedLanguageModel(name or settings.model)
    model.load(groups=True).forward.precision = settings.precision
    return model


def run_identity(settings: TuningSettings, model: MaskedLanguageModel) -> dict[str, Any]:
    """What a run depends on, as plain JSON values."""
    digests = {
        name: path and files_digest(list_files(path))
        for name, path in (("texts", settings.texts), ("dev_texts", settings.dev_texts))
    }
    identity = {"model": describe_model(settings.model, model.describe().commit), **digests, **settings.as_dict()}
    return json.loads(json.dumps(identity))


@torch.no_grad()
def write_model(model: MaskedLanguageModel, folder: Path) -> None:
    """Write a tuned model in the data type in which its weights were on file."""
    checkpoint = model.load().checkpoint
    for parameter in checkpoint.transformer.parameters():
        parameter.copy_(parameter.to(checkpoint.dtype))
    model.to_disk(folder)


def model_readme(name: str, settings: TuningSettings, model: MaskedLanguageModel, rows: list[dict[str, Any]]) -> str:
    """The model card of a tuned model, in Markdown."""
    language = model.describe().language
    header = f"---\nlanguage: {language}\n---\n\n" if language else ""
    used = {"steps": settings.steps, **settings.as_dict(), "learning_rate": settings.highest_rate(model)}
    listed = "".join(f"- {setting}: {value}\n" for setting, value in json.loads(json.dumps(used)).items())
    return f"""{header}# {name}

The masked language model {settings.model or BUILTIN}, tuned with spacy-pll so that its scores in one forward pass
(`mask_margin`) are nearer to its exact ones. Its exact scores are nearly those before. It is an ordinary checkpoint:
transformers' `AutoModelForMaskedLM` opens it.

```bash
python -m spacy pll score texts.txt scores.csv --model {name} --mask-margin {settings.margins[0]}
```

```python
nlp.add_pipe("pll", config={{"mask_margin": {settings.margins[0]}, "model": {{"name": "{name}"}}}})
```

## Agreement with exact scores

By wordpiece, with the metric `{settings.metrics[0]}`, on texts that were held out. Passages are neighbouring texts,
joined. Differences are in nats; intervals are 95 % bootstrap intervals over texts.

{agreement_table(rows)}
## Settings

{listed}"""
