"""What scoring asks of a model, measured during training on some pieces of each held-out line.

In training, a share of the pieces is masked; in scoring, one piece or word. So the loss on masked text can fall while
scores get worse, above all in long lines. Therefore these figures are kept apart by the length of the line.
"""

import numpy as np
import torch

from scripts.builtin.batches import Batches, to_device
from scripts.builtin.one_pass import MARGINS, Rows, log_probs

# Lines with so many pieces at least, and less than the next one has, are measured together.
LENGTHS = {"1 to 14 pieces": 1, "15 to 29 pieces": 15, "30 to 59 pieces": 30, "60 pieces and more": 60}


def by_length(values: np.ndarray, lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Values of lines or pieces, by the length of the line. Lengths of no line are left out."""
    number = np.searchsorted([*LENGTHS.values()], lengths, side="right") - 1
    return {name: values[number == i] for i, name in enumerate(LENGTHS) if (number == i).any()}


@torch.no_grad()
def scoring_figures(model, batches: Batches, device: str) -> dict[str, float]:
    """Minus the mean score of a piece, in nats, by metric or margin and by length of line; and *r* by piece between the
    scores with each margin and the exact ones. Margins are of `word_l2r`, and only there if they are trained.
    """

    def scores(rows: Rows) -> torch.Tensor:
        return log_probs(model, rows).gather(1, rows.target[:, None])[:, 0].cpu()

    margins = [f"margin {margin}" for margin in MARGINS] if batches.args.one_pass else []
    found: dict[str, list[torch.Tensor]] = {name: [] for name in ("length", "original", "word_l2r", *margins)}
    for part in batches.held_out_scored():
        original, word_l2r, groups = (to_device(rows, device) for rows in (part.original, part.word_l2r, part.groups))
        of_part = [part.length, scores(original), scores(word_l2r)]
        if groups:
            of_part += scores(groups).view(-1, len(MARGINS)).T
        for name, values in zip(found, of_part, strict=True):
            found[name].append(values)
    length, *of_scorers = (torch.cat(values).numpy() for values in found.values())
    by_scorer = dict(zip([*found][1:], of_scorers))
    figures = {
        f"{scorer}, {name}": float(-some.mean())
        for scorer, values in by_scorer.items()
        for name, some in by_length(values, length).items()
    }
    agreement = {f"r, {name}": np.corrcoef(by_scorer["word_l2r"], by_scorer[name])[0, 1] for name in margins}
    return figures | {name: float(r) for name, r in agreement.items()}
