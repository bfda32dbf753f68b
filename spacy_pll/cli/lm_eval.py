"""`spacy-pll lm-eval`: EleutherAI's lm-evaluation-harness with the model `spacy-pll`."""

import sys
from typing import Annotated

import typer


def lm_eval_cli(
    arguments: Annotated[list[str] | None, typer.Argument(help="All arguments and options of lm-eval.")] = None,
) -> None:
    """Run lm-evaluation-harness with the model spacy-pll."""
    from .. import lm_eval  # noqa: F401  # its import registers the model

    from lm_eval.__main__ import cli_evaluate  # isort: skip

    sys.argv = ["lm-eval", *(arguments or [])]
    cli_evaluate()
