"""What a student begins with: its teacher's weights, those of an earlier student, or what that student has learned."""

import warnings

import torch

from ..language_model.masked import MaskedLanguageModel
from ..language_model.one_pass import OnePassLanguageModel
from ..language_model.student_card import vocabulary_digest
from ..pipelines import describe_model
from .settings import DistillationSettings


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
