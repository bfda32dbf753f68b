"""An extension of Griffe, which reads the docstrings for the site: it makes Markdown of spaCy's style.

An entry such as `name (type): text`, `RETURNS (type): text` or `RAISES (type): text` becomes an item of a list. The
comment behind a field of a class says what the field is.
"""

import re

import griffe

ENTRY = re.compile(r"([A-Z]+|\*{0,2}[a-z_]\w*(?:, [a-z_]\w*)*)(?: \((.+?)\))?: (.*)")
KEYWORDS = ("RETURNS", "YIELDS", "RAISES")
COMMENT = re.compile(r"  # (?!noqa|type:)(.+)")


class SpacyStyle(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_) -> None:
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value, [p.name for p in getattr(obj, "parameters", [])])

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_) -> None:
        if not attr.docstring and (comment := COMMENT.search(attr.source)):
            attr.docstring = griffe.Docstring(comment[1], parent=attr)


def markdown(docstring: str, parameters: list[str]) -> str:
    """A docstring whose entries are items of a list.

    parameters (list[str]): Only these can be entries without a type.
    """
    lines, is_in_item = [], False
    for line in docstring.splitlines():
        entry = ENTRY.fullmatch(line)
        if entry and (entry[1] in KEYWORDS or entry[2] or set(entry[1].split(", ")) <= set(parameters)):
            lines += [""] if lines and lines[-1] and not is_in_item else []
            lines.append(f"- {_label(entry[1], entry[2])}: {entry[3]}")
            is_in_item = True
        else:
            lines += [""] if is_in_item and not line.startswith(" ") else []
            is_in_item = is_in_item and line.startswith(" ")
            lines.append(line)
    return "\n".join(lines)


def _label(names: str, type_: str | None) -> str:
    shown = f"**{names.capitalize()}**" if names in KEYWORDS else ", ".join(f"`{name}`" for name in names.split(", "))
    return shown + (f" (`{type_}`)" if type_ else "")
