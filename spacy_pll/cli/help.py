"""What the help of a command shows: what it does, examples, its page, and its options under headings.

The docstring of a command has the examples as lines that begin with `$`, and the page as a line such as docs/slots.md.
"""

import re
from collections.abc import Iterator
from typing import Any

from ..documentation import with_addresses

# In this order. The rest of the options of a command stand under the headings below.
MOST_USED = (
    "model metrics metric table column sequence good bad context options by candidates top alternatives masks scorers "
    "normalise means windows weight output items plot resume"
).split()
HEADINGS = {
    "Input": (
        "column encoding delimiter quoting header na_as_text file_format context_column after_column marked separator "
        "sentence label labels first item after reading candidate_column vocabulary unigrams gold gap word space_after "
        "sample limit references fasta protein sequence_column assays measured offset u_as_t reader max_length"
    ).split(),
    "Model": (
        "component revision revisions causal leading_space code lang precision gpu_id threads max_batch_tokens "
        "batch_size n_process"
    ).split(),
    "What is scored": (
        "words units targets spans sample_words seed mask_margin mask_spacing per_piece shared_pieces distribution "
        "keep_pieces"
    ).split(),
    "Output": "attr tokens unit lags regions log_frequency base skip_errors force quiet help".split(),
}
# What people type, and what they find it under.
OTHER_NAMES = {
    "surprisal": "Type: spacy-pll score texts.txt words.csv --table words.",
    "perplexity": "Type: spacy-pll ppl.",
    "blimp": "Type: spacy-pll pairs.",
    "compare": "Type: spacy-pll pairs for sentences, spacy-pll agree for two models, or spacy-pll render for a page.",
    "cite": "What to cite: docs/citing.md.",
}
EXAMPLE_LINE = re.compile(r"^\$ (.+)$", re.MULTILINE)
PAGE_LINE = re.compile(r"^docs/\S+\.md\S*$", re.MULTILINE)


def advice_for(name: str) -> str | None:
    """What to type in the place of a command that there is not; None if that is not known."""
    return f"There is no command {name!r}. {with_addresses(OTHER_NAMES[name])}" if name in OTHER_NAMES else None


def parts(text: str) -> tuple[str, list[str], list[str]]:
    """What a docstring says, its examples, and the addresses of its pages."""
    pages = list(map(with_addresses, PAGE_LINE.findall(text)))
    return PAGE_LINE.sub("", EXAMPLE_LINE.sub("", text)).strip(), EXAMPLE_LINE.findall(text), pages


def under_headings(names: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The options of a command under headings, each once. What has no heading is what this command alone has."""
    used = [name for name in MOST_USED if name in names]
    rest = [name for name in names if name not in used]
    listed = {name: heading for heading, of_heading in HEADINGS.items() for name in of_heading}
    yield "Most used", used
    yield "More", [name for name in rest if name not in listed]
    for heading, of_heading in HEADINGS.items():
        yield heading, [name for name in of_heading if name in rest]


def write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Write the arguments and the options of a command, with addresses in place of the paths of pages."""
    records = {parameter.name: parameter.get_help_record(ctx) for parameter in command.get_params(ctx)}
    arguments = [parameter.name for parameter in command.params if parameter.param_type_name == "argument"]
    options = [name for name in records if name not in arguments]
    for heading, names in [("Arguments", arguments), *under_headings(options)]:
        if shown := [(record[0], with_addresses(record[1])) for name in names if (record := records[name])]:
            with formatter.section(heading):
                formatter.write_dl(shown)


def write_about(text: str, formatter: Any) -> None:
    """Write what a command does, its examples, and the addresses of its pages."""
    about, *lists = parts(text)
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(with_addresses(about))
    for heading, lines in zip(("Examples", "Read more"), lists):
        if lines:
            with formatter.section(heading):
                for line in lines:  # each on one line, however long, to be copied
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
