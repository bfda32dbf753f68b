"""What is read for the docs of a batch."""

from dataclasses import dataclass, replace

from ..arrays import BoolArray, Groups
from ..scoring.sample import Drawn
from ..scoring.windows import Contexts
from ..scoring.wordpieces import DocTexts, Wordpieces


@dataclass(frozen=True)
class TokenizedDocs:
    """The docs of a batch, with what is read for them."""

    read: DocTexts
    pieces_of: Groups  # the pieces of each doc
    wordpieces: Wordpieces  # of all spans
    scored: BoolArray  # bool, shape (tokens,)
    contexts: Contexts
    drawn: Drawn | None = None  # with `sample_words`; `contexts` also has what was not drawn

    @property
    def asked(self) -> Contexts:
        """The contexts, in which what was not drawn is not scored."""
        contexts = self.contexts
        if self.drawn is None:
            return contexts
        return replace(contexts, scored=contexts.scored & self.scored[self.wordpieces.token[contexts.piece]])
