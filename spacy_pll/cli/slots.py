"""`spacy-pll slots FILE OUTPUT`: words in a gap."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..analysis.filling import Slots
from ..analysis.slots import fill_slots, slots
from ..corpus.formats import write_table
from ..corpus.records import FileOptions
from ..errors import PLLError
from ..evaluation.items import levels
from ..evaluation.slots import read_slots, slot_measurements
from ..pipelines import PipelineSettings, describe_scorer, make_pipeline
from ..tables.rows import check_columns
from .comparison import Evaluation
from .options import OF_TOKENS, described, file_options, options_as_in, options_from, parse_numbers, pipeline_options
from .results import measurement_table
from .terminal import TABLES, check_outputs, check_parquet, save, say

# Settings that say what is read and masked.
NOT_OF_SLOTS = (
    *("causal", "leading_space", "metrics", "words", "spans", "targets", "units", "mask_spacing", "mask_margin"),
)
SLOT_COLUMNS = ("candidate", "score", "pieces", "model_probability", "probability", "rank")


@pipeline_options(without=(*OF_TOKENS, *NOT_OF_SLOTS))
@file_options
@options_from("reading", read_slots, "candidates", "candidate_column", "vocabulary", "word", "column", "gold", "gap")
@options_as_in(Evaluation, "by")
@options_as_in(
    *(slots, "keep", "top", "max_pieces", "shared_pieces"), keep={"min": 1}, top={"min": 1}, max_pieces={"min": 1}
)
@described(path={"metavar": "FILE"}, hits={"metavar": "NUMBER,NUMBER,..."})
def slots_cli(
    path: str,
    output: Path,
    settings: PipelineSettings,
    reading: dict[str, Any],
    files: FileOptions,
    *,
    keep: int | None,
    top: int | None,
    max_pieces: int,
    shared_pieces: bool,
    by: Sequence[str] | None,
    hits: Sequence[str] = (),
    resume: bool = False,
    force: bool = False,
) -> None:
    """Score words or phrases in a gap, for many texts.

    A text has a gap: "She poured ___ into her cup." The output has a row for each text and candidate, the most probable
    first: its score (the logarithm of the probability of all its pieces, word_l2r), its probability under the model (if
    it is one piece) and among the candidates, and its rank. Candidates of one piece share one masked text.
    With --top in their place, words are searched.

    OUTPUT.manifest.json records the model, the settings, and a checksum of the texts and candidates.

    $ spacy-pll slots gaps.csv fillers.csv --candidates tea,book,table
    $ spacy-pll slots gaps.csv fillers.csv --top 10
    docs/slots.md

    path (str): A table of texts (.jsonl, .csv, .tsv or .parquet), a .txt file, or a folder of them.
    output (Path): The table to write: FILE.csv, FILE.tsv or FILE.parquet.
    hits (Sequence[str]): With --gold: print how often the right candidate is among this many best ones. [default: 5,10]
    """
    kept = check_outputs(force, resume, output, (output, TABLES))
    by = by or None
    at = parse_numbers("--hits", hits or ("5", "10"))
    if min(at) < 1 or (hits or by) and not reading["gold"]:
        raise PLLError("--hits and --by are for --gold. Give the column of the right candidate, and hits of 1 or more.")
    if top and keep:
        raise PLLError("--top says how many words there are. Leave out --keep.")
    texts = read_slots(path, search=bool(top), **reading, **vars(files))
    levels(texts, by)
    added = [*SLOT_COLUMNS, "is_gold"] if reading["gold"] else SLOT_COLUMNS
    for slot in texts:
        check_columns(slot.fields, added, slot.place)
    check_parquet(output, [slot.fields for slot in texts])
    nlp = make_pipeline(settings)
    asked = {"keep": keep, "top": top, "max_pieces": max_pieces, "shared_pieces": shared_pieces}
    kept.about = {**describe_scorer(nlp, settings), "run": {**asked, **reading, **vars(files)}}
    kept.about_outputs = {"hits": at, "by": by}
    with kept.until_done():
        asker = Slots(nlp, shared_pieces or bool(top))
        fillers = fill_slots(asker, texts, keep, top, max_pieces, show_progress=True, kept=kept)
        if reading["gold"]:
            say(measurement_table(slot_measurements(texts, fillers, at, by), "items"))
        rows = [
            {**slot.fields, **dict(zip(added, filler))} for slot, of_slot in zip(texts, fillers) for filler in of_slot
        ]
        save(output, write_table, rows)
