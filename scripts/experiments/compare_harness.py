"""lm-evaluation-harness with the model spacy-pll against `pll pairs`, on BLiMP, pair by pair (docs/lm-eval.md).

    python -m scripts.experiments.compare_harness BLIMP_FOLDER [--first 100] [--margin 0]

BLIMP_FOLDER holds BLiMP's 67 data files. Needs the group `test-all`.
"""

import argparse
import json
import tempfile
from pathlib import Path

from spacy_pll import minimal_pairs, read_pairs


def task(name: str, file: Path) -> dict:
    """A task as the harness describes it, in the form of its own tasks of BLiMP."""
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": str(file)},
        "output_type": "multiple_choice",
        "test_split": "train",
        "doc_to_text": "",
        "doc_to_choice": "{{[sentence_good, sentence_bad]}}",
        "doc_to_target": 0,
        "metric_list": [{"metric": "acc"}],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blimp", type=Path, help="folder of BLiMP's data files")
    parser.add_argument("--first", type=int, help="take so many pairs of each file (default: all)")
    parser.add_argument("--margin", type=int, help="the setting `mask_margin` (default: exact scores)")
    args = parser.parse_args()
    from lm_eval import simple_evaluate  # slow to import
    from lm_eval.tasks import TaskManager

    from spacy_pll.lm_eval import PLL

    model = PLL(mask_margin=args.margin)
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for file in sorted(args.blimp.glob("*.jsonl")):
            lines = file.read_text(encoding="utf8").splitlines(keepends=True)
            (Path(folder) / file.name).write_text("".join(lines[: args.first]), encoding="utf8")
            names.append(f"own_{file.stem}")
            described = task(names[-1], Path(folder) / file.name)
            (Path(folder) / f"{file.stem}.yaml").write_text(json.dumps(described), encoding="utf8")
        tasks = TaskManager(include_path=folder, include_defaults=False)
        samples = simple_evaluate(model, tasks=names, task_manager=tasks, bootstrap_iters=0)["samples"]
        n = ties = other = 0
        largest = 0.0
        for name in names:
            file = Path(folder) / f"{name.removeprefix('own_')}.jsonl"
            found = minimal_pairs(model.nlp, read_pairs(str(file)), show_progress=True)
            sums, outcomes = found.scores["word_l2r"].sums, found.suite.outcomes(found.scores["word_l2r"])
            for sample in samples[name]:
                i = sample["doc_id"]
                theirs = [float(answer[0][0]) for answer in sample["resps"]]
                largest = max(largest, *(abs(one - other) for one, other in zip(theirs, sums[2 * i : 2 * i + 2])))
                n, ties = n + 1, ties + (outcomes[i] == 0.5)
                other += outcomes[i] != 0.5 and outcomes[i] != sample["acc"]
    print(f"{n:,} pairs of {len(names)} files: {other} decided otherwise, {ties} ties, scores differ by {largest:.1e}")


if __name__ == "__main__":
    main()
