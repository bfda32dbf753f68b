"""The colour scale: equal steps of score, from likely to unlikely. The colours themselves are in `style.css`."""

import math

VMIN = -20.0

# style.css has a rule for each step: the classes s0 to s9.
N_STEPS = 10


def check_vmin(vmin: float) -> None:
    """RAISES (ValueError): No scale ends at this score."""
    if not (math.isfinite(vmin) and vmin < 0):
        raise ValueError(
            f"`vmin` must be a number below 0: scores at or below it get the darkest colour. It is {vmin}. "
            "Set it to -20, for example."
        )


def colour_step(score: float, vmin: float) -> int:
    """The number of a score's colour: 0 (likely) to N_STEPS - 1 (unlikely). Up to vmin all steps are equally wide."""
    return min(max(int(score / vmin * N_STEPS), 0), N_STEPS - 1)
