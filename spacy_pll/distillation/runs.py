"""From a teacher and a corpus to the folder of a student."""

import copy
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import spacy
import torch
from thinc.api import get_torch_default_device

from ..corpus.files import atomic_folder
from ..corpus.readers import STANDARD_STREAM, InputError, list_files, read_records
from ..language_model.checks import STUDENT_KEY
from ..language_model.checksums import files_digest, write_checksums
from ..language_model.masked import MaskedLanguageModel
from ..language_model.one_pass import OnePassLanguageModel
from ..language_model.student_card import StudentCard, vocabulary_digest
from ..pipelines import describe_model
from .agreement import measure_agreement, student_readme
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


def initial_weights(
    settings: DistillationSettings, teacher: MaskedLanguageModel, vocabulary: str
) -> tuple[dict[str, torch.Tensor] | None, dict[str, dict]]:
    """What the student begins with, and what identifies the models that this is from.

    vocabulary (str): Digest of the teacher's vocabulary.
    RETURNS (Tuple[Optional[Dict[str, Tensor]], Dict[str, dict]]): None and {} if it begins with the teacher's weights.
    RAISES (OSError): There is no such student, or no such teacher of it.
    RAISES (ValueError): The student was trained for something else, or from another teacher.
    """
    if settings.init is None:
        return None, {}
    student = load_student(settings, vocabulary)
    weights, models = student.transformer.state_dict(), {"init": describe_model(settings.init, student.commit)}
    if settings.init_teacher is None:
        if difference := other_teacher(student, describe_model(settings.teacher, teacher.commit)):
            warnings.warn(
                f"The student {settings.init!r} was trained from another teacher than this one: {difference}. If this "
                "teacher was trained from the weights of that one, name that one with --init-teacher: what the student "
                "has learned is then moved to this teacher, which takes less training.",
                UserWarning,
                stacklevel=2,
            )
    else:
        before = load_teacher_of(student, settings)
        models["init_teacher"] = describe_model(settings.init_teacher, before.commit)
        weights = moved_weights(student.transformer, before.transformer, teacher.transformer)
    return weights, models


def load_teacher_of(student: OnePassLanguageModel, settings: DistillationSettings) -> MaskedLanguageModel:
    """The teacher of the student whose training goes on, loaded.

    RAISES (ValueError): The student's card names another teacher.
    """
    card, name = student.card, settings.init_teacher
    assert card is not None and name is not None
    # On the hub, the version that the student was trained from.
    commit = card.teacher.get("commit") if card.teacher.get("hub") == name else None
    teacher = MaskedLanguageModel(name, commit or "main")
    teacher.load()
    vocabulary = vocabulary_digest(teacher.hf_tokenizer.get_vocab())
    if difference := other_teacher(student, {**describe_model(name, teacher.commit), "vocabulary": vocabulary}):
        raise ValueError(
            f"The student {settings.init!r} was trained from another teacher than {name!r}: {difference}. Give that "
            "teacher."
        )
    return teacher


def other_teacher(student: OnePassLanguageModel, model: dict[str, str | None]) -> str | None:
    """How a model differs from the teacher on a student's card. None if nothing shows that it is another one.

    model (Dict[str, Optional[str]]): `describe_model`'s description, with "vocabulary" if that is to be compared, too.
    """
    assert student.card is not None
    wanted = {**student.card.teacher, "vocabulary": student.card.vocabulary}
    for key in ("vocabulary", "digest", "commit"):
        if wanted.get(key) and wanted[key] != model.get(key, wanted[key]):
            return f"its card has the {key} {wanted[key]}, and this model has {model[key]}"
    return None


def moved_weights(
    student: torch.nn.Module, before: torch.nn.Module, teacher: torch.nn.Module
) -> dict[str, torch.Tensor]:
    """What a student has learned, put on another teacher: `teacher` + (`student` - `before`).

    This is a sum of models as in Ilharco et al. (2023), "Editing models with task arithmetic". It works if one teacher
    was trained from the weights of the other. docs/one-pass.md has figures.

    student, before, teacher (torch.nn.Module): The student, its teacher, and the new teacher.
    RETURNS (Dict[str, Tensor]): The sum for each parameter. Buffers are those of `teacher`.
    RAISES (ValueError): The three models do not have the same names and shapes.
    """
    learned, old, new = (model.state_dict() for model in (student, before, teacher))
    shapes = [{name: weight.shape for name, weight in weights.items()} for weights in (learned, old, new)]
    if not shapes[0] == shapes[1] == shapes[2]:
        raise ValueError(
            "A student can only be moved to a teacher with the same layers, widths and vocabulary as its own teacher. "
            "Give another student and its teacher, or leave out --init and --init-teacher."
        )
    # The names of tied weights count too: the state has all of them.
    parameters = {name for name, _ in teacher.named_parameters(remove_duplicate=False)}
    return {
        name: weight + (learned[name] - old[name]) if name in parameters else weight for name, weight in new.items()
    }


def load_student(settings: DistillationSettings, vocabulary: str) -> OnePassLanguageModel:
    """The student whose training goes on, loaded.

    vocabulary (str): Digest of the teacher's vocabulary.
    RAISES (OSError): There is no such student.
    RAISES (ValueError): It was trained for something else.
    """
    student = OnePassLanguageModel(settings.init)
    student.load()
    card = student.card
    assert card is not None
    wanted = {name: getattr(settings, name) for name in ("metric", "words", "mask_spacing")}
    for name, value in {**wanted, "vocabulary": vocabulary}.items():
        if getattr(card, name) != value:
            raise ValueError(
                f"The training of {settings.init!r} cannot go on: its {name} is {getattr(card, name)!r}, and that of "
                f"this run is {value!r}. Give another student, or leave out --init."
            )
    return student


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
