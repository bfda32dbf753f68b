"""From a teacher and a corpus to the folder of a student."""

import copy
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import spacy
from thinc.api import get_torch_default_device

from ..corpus.files import atomic_folder
from ..corpus.readers import STANDARD_STREAM, InputError, list_files, read_records
from ..language_model.checks import STUDENT_KEY
from ..language_model.checksums import files_digest, write_checksums
from ..language_model.masked import MaskedLanguageModel
from ..language_model.student_card import StudentCard, vocabulary_digest
from ..pipelines import describe_model
from .agreement import measure_agreement, student_readme
from .initial_weights import initial_weights
from .settings import DistillationSettings
from .texts import HELD_OUT, has_texts, read_texts, write_texts
from .training import Progress, Trainer

Watch = Callable[[Progress, float], None]
Measure = Callable[[DistillationSettings, Path, Path], dict]


def training_folder(output: Path) -> Path:
    """Where the texts and the checkpoint of a run are until it is done."""
    return output.with_name(output.name + ".training")


def distill(
    settings: DistillationSettings,
    output: Path,
    *,
    resume: bool = False,
    watch: Watch = lambda progress, share: None,
    measure: Measure = measure_agreement,
) -> StudentCard:
    """Train a student and write its folder: a plain Hugging Face folder with the card `one_pass.json`.

    Until the run is done, its texts and its checkpoint are in the folder OUTPUT.training.

    output (Path): The folder to write.
    resume (bool): Continue an interrupted run.
    watch (Callable): Called after each step; see `Trainer.train`.
    measure (Callable): Measures the agreement for the card; see `measure_agreement`.
    RAISES (FileExistsError): There is already something at OUTPUT, or an unfinished run.
    RAISES (InputError): The corpus cannot be read, or there is nothing to train on.
    RAISES (TrainingError): The loss is not finite, memory is too small, or the run to resume is another one.
    """
    folder = training_folder(output)
    if output.exists():
        raise FileExistsError(f"{output} exists already. Give another folder, or remove it.")
    if folder.exists() and not resume:
        raise FileExistsError(
            f"{folder} contains an unfinished run. Continue it with --resume, or delete it to start again."
        )
    if settings.corpus == STANDARD_STREAM or not Path(settings.corpus).exists():
        raise InputError(f"There is no file or folder {settings.corpus!r}. Give the texts to train on.")
    trainer = make_trainer(settings, load_teacher(settings), folder)
    if resume:
        trainer.resume()
    trainer.train(watch)
    with atomic_folder(output) as unfinished:
        card = write_student(trainer, unfinished)
        card = replace(card, agreement=measure(settings, unfinished, folder / HELD_OUT))
        card.write(unfinished)
        readme = student_readme(output.name, card, trainer.teacher.languages)
        (unfinished / "README.md").write_text(readme, encoding="utf8")
        write_checksums(unfinished)
    shutil.rmtree(folder, ignore_errors=True)
    return card


def load_teacher(settings: DistillationSettings) -> MaskedLanguageModel:
    """The teacher, loaded.

    RAISES (OSError): There is no such model.
    RAISES (ValueError): It is no masked language model.
    """
    # For short rows, attention that is not fused is the faster one on a CPU, forwards and backwards.
    on_cpu = get_torch_default_device().type == "cpu"
    attention = {"attn_implementation": "eager"} if on_cpu else {}
    bfloat16 = settings.precision == "bfloat16"
    teacher = MaskedLanguageModel(settings.teacher, transformer_config=attention, mixed_precision=bfloat16)
    teacher.load()
    return teacher


def make_trainer(settings: DistillationSettings, teacher: MaskedLanguageModel, folder: Path) -> Trainer:
    """Read the corpus, unless an interrupted run has done that."""
    nlp = spacy.blank(settings.lang)
    vocabulary = vocabulary_digest(teacher.hf_tokenizer.get_vocab())
    weights, init = initial_weights(settings, teacher, vocabulary)
    max_length = min(teacher.max_length, settings.batch_tokens)
    identity = {
        "corpus": files_digest(list_files(settings.corpus)),
        "column": settings.column,
        "vocabulary": vocabulary,
        "words": settings.words,
        "lang": settings.lang,
        "max_length": max_length,
    }
    if not has_texts(folder, identity):
        records = read_records(settings.corpus, settings.column, nlp.vocab)
        try:
            write_texts(folder, records, nlp, teacher.tokenizer, settings.words, max_length, identity)
        except InputError:
            shutil.rmtree(folder)
            raise
    run = {"teacher": describe_model(settings.teacher, teacher.commit), **identity, **settings.as_dict(), **init}
    trainer = Trainer(settings, teacher, read_texts(folder), run, folder)
    if weights is None:
        return trainer
    try:
        trainer.model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(
            f"The weights of the student {settings.init!r} do not have the shapes of the teacher's: {error} Give a "
            "student of a teacher with the same layers and vocabulary, or leave out --init."
        ) from error
    return trainer


def write_student(trainer: Trainer, folder: Path) -> StudentCard:
    """Write a student as a Hugging Face folder, with float16 weights. Loading makes them float32.

    RETURNS (StudentCard): Its card, which is written as well.
    """
    model = copy.deepcopy(trainer.model).half()
    setattr(model.config, STUDENT_KEY, True)
    model.save_pretrained(folder)
    trainer.teacher.hf_tokenizer.save_pretrained(folder)
    for file in folder.glob("*.safetensors"):
        shutil.copymode(folder / "config.json", file)  # safetensors makes files that only their owner can read
    card = trainer.card()
    card.write(folder)
    return card
