"""`pll distill TEACHER CORPUS OUTPUT`: train a model that gives a teacher's scores in one pass."""

from pathlib import Path
from typing import Annotated, cast

import typer
from tqdm import tqdm

from ..distillation.runs import distill
from ..distillation.settings import DEFAULT_STEPS, DistillationSettings
from ..distillation.training import Progress
from ..language_model import BUILTIN, BUILTIN_ONE_PASS
from ..pipelines import BUILTIN_NAME, PRECISIONS, setup_gpu
from ..scoring.wordpieces import WORDS, Words
from .errors import shown_errors
from .options import ColumnOption, one_of

DEFAULTS = DistillationSettings(None, "")


def distill_cli(
    teacher: Annotated[
        str,
        typer.Argument(
            help=f"Hub name or folder of a masked language model, or {BUILTIN_NAME} for the built-in one.",
            show_default=False,
        ),
    ],
    corpus: Annotated[
        str, typer.Argument(help="The texts to train on: a file or folder, as for `pll score`.", show_default=False)
    ],
    output: Annotated[Path, typer.Argument(help="The folder to write.", show_default=False)],
    metric: Annotated[str, typer.Option(help="The metric that the student learns.")] = DEFAULTS.metric,
    words: Annotated[str, typer.Option(**one_of(*WORDS), help="What counts as a word.")] = DEFAULTS.words,
    mask_spacing: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Train a few-pass model, whose input is masked as with --mask-spacing in `pll score`. "
            "[default: a one-pass model]",
            show_default=False,
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            help="Folder or hub name of a student of the same teacher, whose training goes on. "
            f"{BUILTIN_NAME} stands for the built-in one. [default: begin with the teacher's weights]",
            show_default=False,
        ),
    ] = None,
    init_teacher: Annotated[
        str | None,
        typer.Option(
            help="The teacher of the --init student, if it is not TEACHER but an earlier version of it. What the "
            "student has learned (its difference from this teacher) is added to the weights of TEACHER. "
            f"{BUILTIN_NAME} stands for the built-in model.",
            show_default=False,
        ),
    ] = None,
    column: ColumnOption = DEFAULTS.column,
    lang: Annotated[str, typer.Option(help="Language of spaCy's tokenizer.")] = DEFAULTS.lang,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"How many steps to train. [default: {DEFAULT_STEPS}, or --minutes]", show_default=False
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="How long to train. With --steps as well, the first limit that is reached ends the run.",
            show_default=False,
        ),
    ] = None,
    batch_tokens: Annotated[
        int, typer.Option(min=8, help="Wordpieces of text in one step. Longer texts are read in windows.")
    ] = DEFAULTS.batch_tokens,
    lr: Annotated[
        float | None,
        typer.Option(
            help="The highest learning rate. [default: 5e-4 for models of width 256, less for wider ones]",
            show_default=False,
        ),
    ] = None,
    distance: Annotated[
        int,
        typer.Option(min=1, help="Minimum distance, in wordpieces, of words that are masked together for the teacher."),
    ] = DEFAULTS.distance,
    teacher_passes: Annotated[
        int,
        typer.Option(
            min=1, help="How often the teacher reads each text in a step, each time with different words masked."
        ),
    ] = DEFAULTS.teacher_passes,
    normalisation: Annotated[
        float,
        typer.Option(
            min=0,
            help="Weight of a loss term with which the student learns to need no sum over the vocabulary, such as 0.1. "
            "This makes it faster and less accurate. 0 leaves the term out.",
        ),
    ] = DEFAULTS.normalisation,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order of the texts and of what is masked.")] = 0,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID or -1 for CPU.")] = -1,
    precision: Annotated[
        str, typer.Option(**one_of(*PRECISIONS), help="Data type of the forward passes. bfloat16 uses autocast.")
    ] = DEFAULTS.precision,
    eval_every: Annotated[
        int, typer.Option(min=1, help="Number of steps between two measurements of the agreement on held-out texts.")
    ] = DEFAULTS.eval_every,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
):
    """Train a model that gives a masked language model's scores in one pass.

    The model (the student) starts as a copy of TEACHER, unless --init is given, and learns to give the teacher's scores
    without masks. One text in 50 is held out to measure how well the two agree. To score with the student, use
    --one-pass and --model OUTPUT.

    Until the run is complete, its checkpoint is in the folder OUTPUT.training. To continue an interrupted run, run the
    same command with --resume.
    """
    with shown_errors():
        setup_gpu(gpu_id)
        settings = DistillationSettings(
            teacher=None if teacher == BUILTIN_NAME else teacher,
            corpus=corpus,
            metric=metric,
            words=cast(Words, words),
            mask_spacing=mask_spacing,
            init=str(BUILTIN_ONE_PASS) if init == BUILTIN_NAME else init,
            init_teacher=str(BUILTIN) if init_teacher == BUILTIN_NAME else init_teacher,
            column=column,
            lang=lang,
            steps=steps,
            minutes=minutes,
            batch_tokens=batch_tokens,
            lr=lr,
            distance=distance,
            teacher_passes=teacher_passes,
            normalisation=normalisation,
            seed=seed,
            precision=precision,
            eval_every=eval_every,
        )
        with tqdm(
            total=1.0, disable=None, bar_format="{percentage:3.0f}%|{bar}| {postfix} [{elapsed}<{remaining}]"
        ) as bar:

            def watch(progress: Progress, share: float) -> None:
                bar.set_postfix_str(shown_progress(progress), refresh=False)
                bar.update(share - bar.n)

            card = distill(settings, output, resume=resume, watch=watch)
        print(f"Wrote {output}: {card.steps:,} steps, {card.training['pieces']:,} wordpieces.")
        r = card.agreement["levels"]["piece"]["r"]
        print(f"Agreement with exact scores on held-out texts: r = {r:.4f} by wordpiece.")
        print(f"Use it: python -m spacy pll score INPUT OUTPUT --one-pass --model {output}")


def shown_progress(progress: Progress) -> str:
    """The end of the progress bar: step, loss, and the agreement at the last measurement."""
    last = progress.curve[-1]
    loss = progress.loss if progress.loss_count else last["loss"]
    return f"step {progress.step:,}, loss {loss:.3f}, held-out r {last['r']:.4f}"
