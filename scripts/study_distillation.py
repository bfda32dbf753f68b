"""The table of docs/one-pass.md: how well students agree with their teacher that were trained in other ways.

    python scripts/study_distillation.py CORPUS FOLDER [--steps 200] [--precision bfloat16] [--only NAME ...]
        [--table] [--write FILE.md]
    python scripts/study_distillation.py CORPUS FOLDER --labels

Trains one student of the built-in model for each variant, from the same texts, and measures r by wordpiece on the same
held-out pieces. Each result is a line of FOLDER/results.jsonl as soon as it is there; variants that have one are not
trained again. Prints a Markdown table of the results. --labels measures how exact the labels
are that students learn: several words are masked at once for the teacher.
"""

import argparse
import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from markdown_tables import print_table, replace_tables
from tqdm import tqdm
from transformers import ModernBertForMaskedLM

from spacy_pll.distillation.labels import MaskedSets
from spacy_pll.distillation.runs import load_teacher, make_trainer
from spacy_pll.distillation.settings import DistillationSettings
from spacy_pll.distillation.training import Progress, make_optimizer


@dataclass(frozen=True)
class Variant:
    """One way to train a student."""

    changes: dict[str, Any] = field(default_factory=dict)  # of the settings
    is_frozen: Callable[[str], bool] = lambda name: False  # whether a parameter of that name keeps the teacher's value
    work: float = 1.0  # how many times the steps
    more_layers: int = 0  # how many layers the student has more than the teacher


def layer_of(name: str) -> int:
    """The number of the layer that a parameter is in; -1 for embeddings, 99 for the head."""
    numbers = [int(part) for part in name.split(".") if part.isdigit()]
    return numbers[0] if numbers else -1 if "embed" in name else 99


def add_layers(model: ModernBertForMaskedLM, n: int) -> None:
    """Insert layers, evenly spread, that change nothing before they are trained: copies whose outputs are 0."""
    layers = list(model.model.layers)
    for i in reversed(np.linspace(1, len(layers) - 1, n).round().astype(int).tolist()):
        layer = copy.deepcopy(layers[i])
        for matrix in (layer.attn.Wo, layer.mlp.Wo):
            torch.nn.init.zeros_(matrix.weight)
        layers.insert(i, layer)
    model.model.layers = torch.nn.ModuleList(layers)
    model.config.num_hidden_layers = len(layers)


VARIANTS = {
    "with the defaults": Variant(),
    "twice the steps": Variant(work=2),
    "half the batch, twice the steps": Variant({"batch_tokens": 2048}, work=2),
    "1 pass of the teacher": Variant({"teacher_passes": 1}),
    "4 passes of the teacher": Variant({"teacher_passes": 4}),
    "distance 4": Variant({"distance": 4}),
    "distance 16": Variant({"distance": 16}),
    "distance 16, 4 passes of the teacher": Variant({"distance": 16, "teacher_passes": 4}),
    "learning rate 2.5e-4": Variant({"lr": 2.5e-4}),
    "learning rate 1e-3": Variant({"lr": 1e-3}),
    "learning rate 2e-3": Variant({"lr": 2e-3}),
    "KL alone": Variant({"huber": 0.0}),
    "KL + Huber": Variant({"huber": 1.0}),
    "KL + 4 Huber": Variant({"huber": 4.0}),
    "embeddings and head as in the teacher": Variant(is_frozen=lambda name: layer_of(name) in (-1, 99)),
    "only the upper half of the layers": Variant(is_frozen=lambda name: layer_of(name) < 4),
    "4 layers more than the teacher": Variant(more_layers=4),
    "self-normalised, 0.01": Variant({"normalisation": 0.01}),
    "self-normalised, 0.1": Variant({"normalisation": 0.1}),
    "few passes, mask_spacing 2": Variant({"mask_spacing": 2}),
    "few passes, mask_spacing 4": Variant({"mask_spacing": 4}),
    "few passes, mask_spacing 4, distance 24, 4 passes of the teacher": Variant(
        {"mask_spacing": 4, "distance": 24, "teacher_passes": 4}
    ),
    "few passes, distance 24, 4 passes of the teacher, learning rate 1e-4": Variant(
        {"mask_spacing": 4, "distance": 24, "teacher_passes": 4, "lr": 1e-4}
    ),
    "few passes, mask_spacing 8": Variant({"mask_spacing": 8}),
}


def study(name: str, settings: DistillationSettings, folder: Path) -> dict[str, Any]:
    """Train one student. RETURNS: The last measurement, with the name of the variant."""
    variant = VARIANTS[name]
    steps = round((settings.steps or 1) * variant.work)
    changed = replace(settings, **variant.changes, steps=steps, eval_every=steps)
    trainer = make_trainer(changed, load_teacher(changed), folder)
    for parameter, value in trainer.model.named_parameters():
        value.requires_grad_(not variant.is_frozen(parameter))
    if variant.more_layers:
        add_layers(trainer.model, variant.more_layers)
        trainer.optimizer = make_optimizer(trainer.model, trainer.lr)
    with tqdm(total=steps, desc=name) as bar:

        def watch(progress: Progress, share: float) -> None:
            bar.set_postfix(loss=f"{progress.loss:.3f}", refresh=False)
            bar.update(progress.step - bar.n)

        trainer.train(watch)
    first, last = trainer.progress.curve
    return {"variant": name, "r_before": first["r"], **last}


def print_labels(settings: DistillationSettings, folder: Path, distances: Sequence[int], n_texts: int = 400) -> None:
    """Compare the log-probabilities that students learn with exact ones, for several values of `distance`."""
    teacher = load_teacher(replace(settings, precision="float32"))
    texts = make_trainer(settings, teacher, folder).texts
    loaded = teacher.load()
    print("| distance | words per row | *r* | mean difference | mean absolute difference |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for distance in distances:
        rng = np.random.default_rng(0)
        together, alone, rows = [], [], 0
        for i in texts.held_out[:n_texts].tolist():
            context = texts[i]
            sets = MaskedSets(settings.metric, context.word)
            drawn = sets.draw(range(len(context.word)), distance, rng)
            ids = np.repeat(context.ids[None], len(drawn) + 1, axis=0)
            sets.mask(ids[0], context.first, drawn, teacher.mask_id)
            for row, target in enumerate(drawn, start=1):
                sets.mask(ids[row], context.first, [target], teacher.mask_id)
            n = len(drawn)
            row = np.concatenate([np.zeros(n, dtype=np.int64), np.arange(1, n + 1)])
            position = context.first + np.array(drawn * 2)
            with torch.inference_mode():
                lengths = np.full(len(ids), len(context))
                logits, target = loaded.forward.logits(ids, lengths, row, position, context.ids[position])
            found = logits.log_softmax(dim=1).gather(1, target[:, None])[:, 0].numpy()
            together.append(found[:n])
            alone.append(found[n:])
            rows += 1
        first, second = np.concatenate(together), np.concatenate(alone)
        difference = first - second
        r = np.corrcoef(first, second)[0, 1]
        print(
            f"| {distance} | {len(first) / rows:.1f} | {r:.4f} | {difference.mean():+.3f} | "
            f"{np.abs(difference).mean():.3f} |",
            flush=True,
        )


def study_table(results: list[dict[str, Any]]) -> list[dict[str, str]]:
    """One row per variant, in the order of `VARIANTS`."""
    return [
        {
            "variant": result["variant"],
            "million pieces": f"{result['pieces'] / 1e6:.2f}",
            "r before": f"{result['r_before']:.4f}",
            "r": f"{result['r']:.4f}",
            "mean difference": f"{result['mean_difference']:+.3f}",
            "mean absolute difference": f"{result['mean_absolute_difference']:.3f}",
        }
        for result in sorted(results, key=lambda result: list(VARIANTS).index(result["variant"]))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="a file or folder, as for `pll distill`")
    parser.add_argument("folder", type=Path, help="gets the tokenized texts and the results")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--only", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), metavar="NAME")
    parser.add_argument("--labels", action="store_true", help="only measure how exact the labels are")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the table there (see `replace_tables`)")
    parser.add_argument("--table", action="store_true", help="only print the table of the results so far")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    path = args.folder / "results.jsonl"
    args.folder.mkdir(parents=True, exist_ok=True)

    def read_results() -> list[dict[str, Any]]:
        lines = path.read_text(encoding="utf8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    settings = DistillationSettings(None, args.corpus, steps=args.steps, precision=args.precision)
    if args.labels:
        print_labels(settings, args.folder, [2, 4, 8, 16, 32])
        return
    for name in [] if args.table else args.only:
        if name not in {result["variant"] for result in read_results()}:
            result = study(name, settings, args.folder)
            with path.open("a", encoding="utf8") as file:
                file.write(json.dumps(result) + "\n")
    table = study_table(read_results())
    print_table("Students", table)
    if args.write:
        replace_tables(args.write, {"study": table})


if __name__ == "__main__":
    main()
