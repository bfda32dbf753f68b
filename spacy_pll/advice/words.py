"""What is said of the words of scored docs, as they come to a table of words."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .clauses import clause_as_word
from .giving import Once, advise

FIRST_WORDS = 50  # of English, of which hardly ever more than a tenth is unknown


def other_language(n_words: int, n_unknown: int) -> str | None:
    """About words of which many are not in the list of English words."""
    if n_unknown <= n_words / 10:
        return None
    return (
        f"{n_unknown} of the first {n_words} words are not in the list of English words, which all log frequencies "
        "are from. If the texts are in another language, set `lang`. Or give `log_frequency=False`."
    )


@dataclass
class WordAdvice:
    """What has been said of the words of a table."""

    known: Counter[bool] = field(default_factory=Counter)  # whether the first words have a frequency
    clauses: Once = field(default_factory=Once)

    def of_english(self, words: Iterable[tuple[str, float | None]]) -> None:
        """Warn if the first words do not seem to be English, which is the language if none is given.

        words (Iterable[Tuple[str, Optional[float]]]): The words of a doc, each with its log frequency.
        """
        if self.known.total() < FIRST_WORDS:
            self.known.update(frequency is not None for word, frequency in words if any(map(str.isalpha, word)))
            if self.known.total() >= FIRST_WORDS:
                advise(other_language(self.known.total(), self.known[False]))

    def of_clauses(self, words: Iterable[tuple[str, int]], otherwise: str, beside: str | None) -> None:
        """Warn of the first word that is a clause. words, otherwise, beside: See `clause_as_word`."""
        self.clauses.advise(lambda: clause_as_word(words, "the table", otherwise, beside))
