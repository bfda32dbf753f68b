"""`pll choices` against the scorer of the BabyLM evaluation pipeline of 2025: predictions, sums, and the results that
the pipeline collates from our predictions (docs/test-sets.md).

    git clone https://github.com/babylm/evaluation-pipeline-2025
    python -m scripts.experiments.compare_babylm evaluation-pipeline-2025 BLIMP_FOLDER

BLIMP_FOLDER holds BLiMP's data files: the first 100 pairs of three of them are taken. The others, for EWoK, COMPS,
entity tracking and WUG, are items of our own in the form that the pipeline reads. Needs the group `test-all`. The
pipeline computes in the precision of the weights' file, so it gets the built-in model in float32.
"""

import argparse
import json
import random
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from scripts.paper.names import BUILTIN_FOLDER
from spacy_pll import choices, make_pipeline, read_choices

PARADIGMS = ["anaphor_gender_agreement", "adjunct_island", "irregular_past_participle_adjectives"]
PEOPLE = ["Ann", "Bob", "Chao", "Dina", "Emeka", "Farah", "Gus", "Hana"]
DOMAINS = ["social-relations", "material-properties"]
THINGS = ["the ball", "a wooden box", "an umbrella", "the carnivorous plant", "some souvenirs"]
ANIMALS = ["robin", "penguin", "dax", "hedgehog", "rhinoceros", "souvenir"]
PROPERTIES = ["can fly.", "has a beak.", "is a carnivore.", "lives in trees.", "is made of porcelain."]
VERBS = ["spling", "bize", "fro", "rife", "drize", "flidge", "gare", "skell", "tark", "murn"]
IN_BOXES = ["book", "hat", "key", "clock", "medicine"]


def make_items(draw: random.Random) -> dict[str, list[dict]]:
    """Items by file."""
    ewok, base, wugs, boxes, past = [], [], [], [], []
    for _ in range(60):
        (one, two), thing = draw.sample(PEOPLE, 2), draw.choice(THINGS)
        ewok.append(
            {
                "Domain": draw.choice(DOMAINS),
                **{"ContextType": "direct", "ContextDiff": "variable swap", "TargetDiff": "concept swap"},
                **{"Context1": f"{one} is older than {two}.", "Context2": f"{two} is older than {one}."},
                **{"Target1": f"{two} borrowed {thing} from {one}.", "Target2": f"{one} borrowed {thing} from {two}."},
            }
        )
        for rows, rest in ((base, ""), (wugs, " is a wug. Therefore, a wug")):
            good, bad = draw.sample(ANIMALS, 2)
            prefixes = {"prefix_acceptable": f"A {good}{rest}", "prefix_unacceptable": f"A {bad}{rest}"}
            rows.append({**prefixes, "property_phrase": draw.choice(PROPERTIES)})
        verb, person = draw.choice(VERBS), draw.choice(PEOPLE)
        forms = (f"{person} likes to {verb}. Yesterday {person} {form}." for form in (f"{verb}ed", f"{verb[:-1]}t"))
        past.append({"sentences": "\t".join(forms), "ratio": draw.randint(0, 20) / 20})
        a, b, c, d = draw.sample(IN_BOXES, 4)
        told = f"Box 0 contains the {a}, Box 1 contains the {b}, Box 2 contains nothing. Move the {a} to Box 2."
        options = [f" the {a}.", f" the {b}.", f" the {c} and the {d}.", " nothing."]
        boxes.append({"input_prefix": f"{told} Box 2 contains", "options": options, "numops": draw.randint(0, 2)})
    return {
        **{f"ewok/{domain}": [row for row in ewok if row["Domain"] == domain] for domain in DOMAINS},
        "comps/comps_base": base,
        "comps/comps_wugs": wugs,
        "entity_tracking/regular": sorted(boxes, key=lambda row: row["numops"]),
        "wug_past/wug_past_tense": past,
    }


def run_theirs(module: ModuleType, results: Any, model: Path, task: str, data: Path, out: Path):
    """Run their scorer. RETURNS: What it writes as predictions, and the sums of the options of each item."""
    sums: list[list[float]] = []
    names = ("rank_and_evaluate", "rank_and_evaluate_wug")
    functions = {name: getattr(results, name) for name in names}

    def keep_sums(function, args, stats, log_probs, *others):
        sums.extend(torch.stack(log_probs[1.0], dim=1).tolist())
        function(args, stats, log_probs, *others)

    for name, function in functions.items():
        setattr(results, name, partial(keep_sums, function))
    command = f"run --model_path_or_name {model} --backend mlm --task {task} --data_path {data} --output_dir {out}"
    sys.argv = [*command.split(), "--save_predictions"]
    module.main()
    vars(results).update(functions)
    (file,) = out.glob(f"**/{task}/predictions.json")
    return json.loads(file.read_text(encoding="utf8")), sums


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", type=Path, help="a clone of evaluation-pipeline-2025")
    parser.add_argument("blimp", type=Path, help="folder of BLiMP's data files")
    args = parser.parse_args()
    sys.path.insert(0, str(args.pipeline))
    from evaluation_pipeline import collate_preds
    from evaluation_pipeline.sentence_zero_shot import compute_results, run

    collate = {
        "blimp": lambda found, data: collate_preds._calculate_target_results(found, "blimp", data),
        "ewok": lambda found, data: collate_preds._calculate_target_results(found, "ewok", data),
        "entity_tracking": collate_preds._calculate_target_et_results,
        "wug_past": lambda found, data: collate_preds._calculate_wugs_results(found, "wug_past_tense", data),
    }

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        AutoModelForMaskedLM.from_pretrained(BUILTIN_FOLDER).float().save_pretrained(root / "model")
        AutoTokenizer.from_pretrained(BUILTIN_FOLDER).save_pretrained(root / "model")
        items = make_items(random.Random(1)).items()
        files = {f"data/{name}": "".join(f"{json.dumps(row)}\n" for row in rows) for name, rows in items}
        for paradigm in PARADIGMS:
            lines = (args.blimp / f"{paradigm}.jsonl").read_text(encoding="utf8").splitlines(keepends=True)
            files[f"data/blimp/{paradigm}"] = "".join(lines[:100])
        for name, text in files.items():
            (root / f"{name}.jsonl").parent.mkdir(parents=True, exist_ok=True)
            (root / f"{name}.jsonl").write_text(text, encoding="utf8")
        nlp = make_pipeline(str(root / "model"), ["original"])
        for task in ("blimp", "ewok", "comps", "entity_tracking", "wug_past"):
            data = root / "data" / task
            theirs, sums = run_theirs(run, compute_results, root / "model", task, data, root / "out")
            scored = choices(nlp, read_choices(str(data)), ties="first")
            ours = scored.suite.predictions(scored.scores["original"])
            pairs = [
                both
                for name, of_group in theirs.items()
                for both in zip(of_group["predictions"], ours[name]["predictions"], strict=True)
            ]
            same = sum(their["id"] == our["id"] and their["pred"] == our["pred"] for their, our in pairs)
            # Their items are in the order in which the file system lists the files.
            found = (choices(nlp, read_choices(str(file))).scores["original"] for file in data.iterdir())
            options = zip((x for one in sums for x in one), (x for one in found for x in one.sums), strict=True)
            largest = max(abs(their - our) for their, our in options)
            print(f"{task}: {same} of {len(pairs)} predictions are equal, and sums differ by {largest:.1e} at most")
            if task in collate:
                own = {one.name: one.value for one in scored.measurements() if one.group}
                their_results = collate[task](ours, data)
                furthest = max(abs(value - own[name]) for name, value in their_results.items())
                print(f"{task}: {len(their_results)} results from our predictions differ from ours by {furthest:.1e}")


if __name__ == "__main__":
    main()
