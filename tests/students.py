"""Students made by hand: any model's folder, with a card that says what it was distilled for."""

import json
import shutil
from pathlib import Path

from transformers import AutoTokenizer

from spacy_pll.language_model.checks import STUDENT_KEY
from spacy_pll.language_model.student_card import StudentCard, vocabulary_digest


def make_student(
    teacher: Path, folder: Path, metric="word_l2r", words="spacy", mask_spacing=None, normal=False
) -> Path:
    """Copy a model's folder and call it a student. It was not trained."""
    shutil.copytree(teacher, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, STUDENT_KEY: True}))
    vocabulary = vocabulary_digest(AutoTokenizer.from_pretrained(folder).get_vocab())
    StudentCard({"folder": str(teacher)}, metric, words, mask_spacing, normal, vocabulary, 0).write(folder)
    return folder
