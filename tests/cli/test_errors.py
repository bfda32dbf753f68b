"""Messages in the words of a command: its options and arguments in the place of settings."""

import signal
from pathlib import Path

import pytest

from spacy_pll.cli.errors import WITHOUT_SCORES, options_of
from spacy_pll.errors import spell

from .conftest import COMMANDS, run


@pytest.mark.parametrize(
    ("command", "python", "shown"),
    [
        ("score", "`resume=True`", "--resume"),
        ("score", "`log_frequency=False`", "--no-log-frequency"),
        ("score", "`max_length=1234`", "--max-length 1234"),
        ("score", "`metrics`", "--metrics"),
        ("score", "`metrics=['original', 'word_l2r']`", "--metrics original,word_l2r"),
        ("score", "`spans='strided'`", "--spans strided"),
        ("score", "`encoding='utf-16'`", "--encoding utf-16"),
        ("score", "`column='a b'`", "--column 'a b'"),
        ("score", "`header`", "--columns"),
        ("score", "`file_format`", "--format"),
        ("score", "`gpu_id=0`", "--gpu-id 0"),
        # an argument
        ("ppl", "`path`", "INPUT"),
        # what is no option of the command, or cannot be given with it
        ("show", "`encoding='utf-16'`", "`encoding='utf-16'`"),
        ("agree", "`mask_margin`", "`mask_margin`"),
        ("score", "`resume=False`", "`resume=False`"),
        ("score", "`targets=None`", "`targets=None`"),
    ],
)
def test_each_kind_of_setting(command, python, shown):
    assert spell(f"Give {python}.", options_of(COMMANDS[command])) == f"Give {shown}."


def test_an_error_has_the_words_of_the_command_that_is_called(tmp_path):
    (tmp_path / "in.csv").write_text("a;text,n\n1;Two words.,1\n")
    for command in (["score", tmp_path / "in.csv", tmp_path / "out.csv"], ["ppl", tmp_path / "in.csv"]):
        error = run(*command, fails=True).unwrapped_stderr
        assert "If ';' stands between columns, give it as --delimiter, or" in error


def test_the_page_has_all_exit_statuses():
    page = (Path(__file__).parents[2] / "docs/command-line.md").read_text("utf8")
    table = page.split("### Exit statuses")[1].split("\n\n")[1]
    found = [int(row.split("|")[1]) for row in table.splitlines()[2:]]
    assert found == [0, 1, 2, WITHOUT_SCORES, 128 + signal.SIGINT, 128 + signal.SIGTERM]
