"""Tune a model: the command `tune` of project.yml.

python -m scripts.tuning.tune MODEL TEXTS OUTPUT [--steps 600] [--margins 0,1]
"""

from pathlib import Path
from typing import Annotated, Any, cast

import spacy
import typer
from tqdm import tqdm

from scripts.paper.errors import PLLError, explained, shown_errors
from scripts.paper.names import BUILTIN, split_list
from scripts.paper.passes import Words
from scripts.tuning.agreement import agreement_table
from scripts.tuning.runs import tune
from scripts.tuning.settings import TuningSettings
from scripts.tuning.training import Progress


def main(
    model: Annotated[
        str,
        typer.Argument(help=f"Hub name or folder of a masked language model, or {BUILTIN} for the built-in one."),
    ],
    texts: Annotated[str, typer.Argument(help="The texts to tune on: a file or folder, as for `pll score`.")],
    output: Annotated[Path, typer.Argument(help="The folder to write.")],
    metrics: Annotated[
        str,
        typer.Option(
            help="The metrics to tune for, separated by commas, such as word_l2r, original and whole_word: those that "
            "mask within words and score each wordpiece once. The first one is measured."
        ),
    ] = ",".join(TuningSettings.metrics),
    margins: Annotated[
        str,
        typer.Option(
            help="The values of `mask_margin` to tune for, separated by commas. Each is trained half as often as the "
            "one before it."
        ),
    ] = ",".join(map(str, TuningSettings.margins)),
    words: Annotated[
        str, typer.Option(help="What counts as a word: spacy, tokenizer or whitespace.")
    ] = TuningSettings.words,
    dev_texts: Annotated[
        str | None,
        typer.Option(help="Texts to measure on: a file or folder. [default: one passage in 50 of TEXTS is held out]"),
    ] = None,
    column: Annotated[str, typer.Option(help="The column, or JSON key, of the text.")] = TuningSettings.column,
    lang: Annotated[str, typer.Option(help="Language of spaCy's tokenizer.")] = TuningSettings.lang,
    steps: Annotated[int, typer.Option(help="How many steps to train.")] = TuningSettings.steps,
    learning_rate: Annotated[
        float | None,
        typer.Option(help="The highest learning rate. [default: 3e-4 for models of width 256, less for wider ones]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice of texts and wordpieces.")] = TuningSettings.seed,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID or -1 for CPU.")] = -1,
    precision: Annotated[
        str, typer.Option(help="Data type of the forward passes: float32, or bfloat16 for autocast.")
    ] = TuningSettings.precision,
) -> None:
    """Make a masked model's scores in one forward pass nearer to its exact ones.

    The model is trained on TEXTS, so that its scores with `mask_margin` are those that it has without. Its exact scores
    stay nearly the same. OUTPUT is an ordinary Hugging Face folder. Its README.md has the agreement with exact scores
    before and after, on texts that were held out.

    Until the run is complete, its checkpoint is in the folder OUTPUT.training. The same command continues an
    interrupted run.
    """
    with shown_errors():
        if gpu_id >= 0:
            with explained(f"The GPU {gpu_id} cannot be used"):
                spacy.require_gpu(gpu_id)
        try:
            numbers = [int(margin) for margin in split_list(margins)]
        except ValueError:
            raise PLLError(f"--margins must be whole numbers with commas, such as 0,1. It is {margins!r}.") from None
        settings = TuningSettings(
            model=None if model == BUILTIN else model,
            texts=texts,
            dev_texts=dev_texts or None,
            metrics=split_list(metrics),
            words=cast(Words, words),
            margins=numbers,
            steps=steps,
            learning_rate=learning_rate,
            seed=seed,
            precision=cast(Any, precision),
            column=column,
            lang=lang,
        )
        with tqdm(total=steps, unit=" steps", disable=None) as bar:

            def watch(progress: Progress) -> None:
                bar.set_postfix_str(f"loss {progress.loss:.4f}, exact {progress.exact_loss:.4f}", refresh=False)
                bar.update(progress.step - bar.n)

            rows = tune(settings, output, watch=watch)
        print(f"Wrote {output}. Agreement with exact scores on held-out texts:\n\n{agreement_table(rows)}", end="")


if __name__ == "__main__":
    typer.run(main)
