"""`pll tune MODEL TEXTS OUTPUT`: make a model's scores in one forward pass nearer to its exact ones."""

from pathlib import Path
from typing import Annotated, cast

import typer
from tqdm import tqdm

from ..pipelines import BUILTIN_NAME, PRECISIONS, setup_gpu
from ..scoring.wordpieces import WORDS, Words
from ..tuning.agreement import agreement_table
from ..tuning.runs import tune
from ..tuning.settings import TuningSettings
from ..tuning.training import Progress
from .errors import shown_errors
from .options import Column as ColumnOption
from .options import Gpu as GpuOption
from .options import one_of, parse_numbers, several

METRICS, MARGINS = ",".join(TuningSettings.metrics), ",".join(map(str, TuningSettings.margins))


def tune_cli(
    model: Annotated[
        str,
        typer.Argument(help=f"Hub name or folder of a masked language model, or {BUILTIN_NAME} for the built-in one."),
    ],
    texts: Annotated[str, typer.Argument(help="The texts to tune on: a file or folder, as for `pll score`.")],
    output: Annotated[Path, typer.Argument(help="The folder to write.")],
    metrics: Annotated[
        list[str],
        several(
            "The metrics to tune for, separated by commas, such as word_l2r, original and whole_word: those that mask "
            f"within words and score each wordpiece once. The first one is measured. [default: {METRICS}]"
        ),
    ] = [METRICS],  # noqa: B006
    margins: Annotated[
        list[str],
        several(
            "The values of --mask-margin to tune for, separated by commas. Each is trained half as often as the one "
            f"before it. [default: {MARGINS}]",
            metavar="0,1,2",
        ),
    ] = [MARGINS],  # noqa: B006
    words: Annotated[str, typer.Option(**one_of(*WORDS), help="What counts as a word.")] = TuningSettings.words,
    dev_texts: Annotated[
        str | None,
        typer.Option(help="Texts to measure on: a file or folder. [default: one passage in 50 of TEXTS is held out]"),
    ] = None,
    column: ColumnOption = TuningSettings.column,
    lang: Annotated[str, typer.Option(help="Language of spaCy's tokenizer.")] = TuningSettings.lang,
    steps: Annotated[int, typer.Option(min=1, help="How many steps to train.")] = TuningSettings.steps,
    learning_rate: Annotated[
        float | None,
        typer.Option(help="The highest learning rate. [default: 3e-4 for models of width 256, less for wider ones]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice of texts and wordpieces.")] = 0,
    gpu_id: GpuOption = -1,
    precision: Annotated[
        str, typer.Option(**one_of(*PRECISIONS), help="Data type of the forward passes. bfloat16 uses autocast.")
    ] = TuningSettings.precision,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
) -> None:
    """Make a masked model's scores in one forward pass nearer to its exact ones.

    The model is trained on TEXTS, so that its scores with --mask-margin are those that it has without. Its exact scores
    stay nearly the same. OUTPUT is an ordinary Hugging Face folder. Its README.md has the agreement with exact scores
    before and after, on texts that were held out.

    Until the run is complete, its checkpoint is in the folder OUTPUT.training. To continue an interrupted run, run the
    same command with --resume.
    """
    with shown_errors():
        setup_gpu(gpu_id)
        settings = TuningSettings(
            model=None if model == BUILTIN_NAME else model,
            texts=texts,
            dev_texts=dev_texts,
            metrics=metrics,
            words=cast(Words, words),
            margins=parse_numbers("--margins", margins),
            steps=steps,
            learning_rate=learning_rate,
            seed=seed,
            precision=precision,
            column=column,
            lang=lang,
        )
        with tqdm(total=steps, unit=" steps", disable=None) as bar:

            def watch(progress: Progress) -> None:
                bar.set_postfix_str(f"loss {progress.loss:.4f}, exact {progress.exact_loss:.4f}", refresh=False)
                bar.update(progress.step - bar.n)

            rows = tune(settings, output, resume=resume, watch=watch)
        print(f"Wrote {output}. Agreement with exact scores on held-out texts:\n\n{agreement_table(rows)}", end="")
