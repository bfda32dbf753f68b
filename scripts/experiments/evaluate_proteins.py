"""The table of docs/proteins.md: one forward pass in the place of one per residue, in several ways.

    python -m scripts.experiments.evaluate_proteins SEQUENCES.txt --model FOLDER [--write docs/proteins.md]

Each line of SEQUENCES.txt is a protein, with or without white space between the residues. Compared with exact scores
are `mask_margin` and the pass without masks, of which the probabilities are taken as they are (`wt-marginals`), or
after the reckoning of Gordon et al. (2024): see `without_own_letter`.
"""

import argparse
from pathlib import Path

import numpy as np

from scripts.docs_site.markdown_tables import print_table, replace_tables
from scripts.experiments.evaluate_beyond import correlation
from scripts.paper.correlation import spearman
from spacy_pll import get_scorer, make_pipeline
from spacy_pll.proteins.residues import Question, Residues, answer

AMINO_ACIDS = "GAVLIMCFYWPSTNQHKRDE"
NO_MASKS = "no masks"
RECKONED = "no masks, reckoned"
# Shares of the pieces that were to be predicted in training: left as they are, and replaced by any of the vocabulary.
KEPT, REPLACED = 0.1, 0.1


def without_own_letter(log_probs: np.ndarray, own: np.ndarray, n_vocabulary: int) -> np.ndarray:
    """From what a model says of a residue that it sees, to what it would say of a mask, by Bayes' rule.

    In training, some of the residues that were to be predicted were left as they were, and some were replaced. So of a
    residue y that it sees, a perfect model says p(v) in proportion to q(v) (KEPT [v = y] + REPLACED / n), where q is
    what it says of a mask. This is solved for q.

    log_probs (float array, shape (sites, residues)): own (int array, shape (sites,)): The residue that is there.
    """
    noise, site = REPLACED / n_vocabulary, np.arange(len(own))
    p = np.exp(log_probs)
    p_own = p[site, own]
    q_own = p_own * noise / (KEPT * (1 - p_own) + noise)
    q = p * ((KEPT * q_own + noise) / noise)[:, None]
    q[site, own] = q_own
    return np.log(q)


def at_all_sites(nlp, sequence: str, masks: bool) -> tuple[np.ndarray, float]:
    """The log-probabilities of the amino acids at each site, and how many ids are read for a residue."""
    residues = Residues(nlp, sequence)
    for letter in AMINO_ACIDS:
        residues.check(letter, "Amino acids")
    questions = [Question(site, (site,) if masks else ()) for site in range(len(sequence))]
    found = np.concatenate(list(answer(residues, masks, questions)))
    columns = [list(residues.ids).index(letter) for letter in AMINO_ACIDS]
    return found[:, columns], residues.asking.counts.ids / len(sequence)


def compare(sequences: list[str], model: str) -> list[dict]:
    pipelines = {"exact": make_pipeline(model)}
    pipelines |= {f"`mask_margin = {margin}`": make_pipeline(model, mask_margin=margin) for margin in (0, 1, 2, 4)}
    pipelines[NO_MASKS] = pipelines[RECKONED] = pipelines["exact"]
    n_vocabulary = get_scorer(pipelines["exact"]).model.load().tokenizer.get_vocab_size()
    scores, effects, means, cost = {}, {}, {}, {}
    for name, nlp in pipelines.items():
        of_sequences, of_variants, ids = [], [], []
        for sequence in sequences:
            own = np.array([AMINO_ACIDS.index(letter) for letter in sequence])
            log_probs, n_ids = at_all_sites(nlp, sequence, not name.startswith(NO_MASKS))
            if name == RECKONED:
                log_probs = without_own_letter(log_probs, own, n_vocabulary)
            own_log_probs = log_probs[np.arange(len(own)), own]
            of_sequences.append(own_log_probs)
            difference = log_probs - own_log_probs[:, None]
            of_variants.append(difference[np.arange(len(AMINO_ACIDS)) != own[:, None]])
            ids.append(n_ids)
        scores[name], effects[name] = np.concatenate(of_sequences), np.concatenate(of_variants)
        means[name], cost[name] = np.array([one.mean() for one in of_sequences]), np.mean(ids)
    table = []
    for name in pipelines:
        row = {"setting": name, "*r* by residue": "1", "*r* of protein means": "1", "mean difference": "",
               "*r* by variant": "1", "Spearman's rho by variant": "1"}  # fmt: skip
        if name != "exact":
            row["*r* by residue"] = f"{correlation(scores[name], scores['exact']):.4f}"
            row["*r* of protein means"] = f"{correlation(means[name], means['exact']):.4f}"
            row["mean difference"] = f"{(scores[name] - scores['exact']).mean():+.2f}"
            row["*r* by variant"] = f"{correlation(effects[name], effects['exact']):.4f}"
            rho = spearman(effects[name], effects["exact"])
            row["Spearman's rho by variant"] = f"{rho.value:.4f}" if rho else ""
        table.append({**row, "ids per residue": f"{cost[name]:.1f}"})
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", type=Path, help="a file with one protein per line")
    parser.add_argument("--model", required=True, help="folder or hub name")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the table there")
    args = parser.parse_args()
    sequences = ["".join(line.split()) for line in args.sequences.read_text(encoding="utf8").splitlines()]
    table = compare(list(filter(None, sequences)), args.model)
    print_table("Agreement with exact scores (differences in nats)", table)
    if args.write:
        replace_tables(args.write, {"proteins": table})


if __name__ == "__main__":
    main()
