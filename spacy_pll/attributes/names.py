"""The names of a component's attributes."""

from collections.abc import Sequence

from spacy.tokens.underscore import Underscore

from ..errors import PLLError


class Names:
    """The names of one component's attributes, from its setting `attr` and its metrics.

    RAISES (ValueError): Two attributes would have the same name, or one the name of something of spaCy's.
    """

    def __init__(self, attr: str, metrics: Sequence[str]):
        self.score = attr
        self.pieces = f"{attr}_pieces"
        self.perplexity = "pppl" if attr == "pll" else f"{attr}_pppl"
        self.data = f"{attr}_data"
        self.rank = f"{attr}_rank"
        self.entropy = f"{attr}_entropy"
        self.first_choices = f"{attr}_first_choices"
        self.top1 = f"{attr}_top1"
        self.alternatives = f"{attr}_alternatives"
        self.all_pieces = f"{attr}_all_pieces"
        # Each metric has a name of its own, also for its column in tables. The first has the plain name as well.
        self.metrics = {metric: f"{attr}_{metric}" for metric in metrics}
        # What tokens have: a list of the record, and how the values of several pieces are combined (`values.COMBINE`).
        self.of_tokens = {attr: ("", "sum"), **{name: (metric, "sum") for metric, name in self.metrics.items()}}
        self.of_tokens |= {self.pieces: ("", "count")}
        always = [attr, *self.metrics.values(), self.pieces, self.perplexity, self.data]
        self.of_tokens |= {self.entropy: ("entropy", "sum"), self.first_choices: ("rank", "first choices")}
        self.of_tokens |= {self.rank: ("rank", "largest"), self.alternatives: ("alternatives", "first")}
        # By the attribute with the score: the estimate of the sum over a whole text, and its standard error.
        self.estimates = {name: (f"{name}_estimate", f"{name}_error") for name in (attr, *self.metrics.values())}
        self.optional = [self.entropy, self.first_choices, self.top1, self.rank, self.alternatives]
        self.optional += [self.all_pieces, *(name for both in self.estimates.values() for name in both)]
        self.all = [*always, *self.optional]
        # `doc._.get` and the like are spaCy's, and so is what begins with an underscore, such as `doc._._obj`.
        spacys = {name for name in self.all if name.startswith("_") or hasattr(Underscore, name)}
        clash = {name for name in self.all if self.all.count(name) > 1} | spacys
        if clash:
            raise PLLError(
                f"The attribute name {sorted(clash)[0]!r} would have two meanings. Choose another `attr`, or metric."
            )


def select_metrics(names: Names, metrics: Sequence[str] | None = None) -> dict[str, str]:
    """`names.metrics`, or some of them, in the order that is given.

    RAISES (ValueError): There are no scores under one of the metrics.
    """
    if metrics is None:
        return names.metrics
    metrics = [*metrics]
    missing = [metric for metric in metrics if metric not in names.metrics]
    if missing or not metrics:
        raise PLLError(
            f"There are no scores under {', '.join(map(repr, missing)) or 'an empty list of metrics'}.",
            f"Set `metrics` to some of these: {', '.join(names.metrics)}.",
        )
    return {metric: names.metrics[metric] for metric in metrics}
