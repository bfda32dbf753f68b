"""The files of this folder from which pages are made."""

from functools import cache
from importlib.resources import files

from jinja2 import Environment, Template


@cache
def read_file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf8")


@cache
def page_template(name: str) -> Template:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return environment.from_string(read_file(name))
