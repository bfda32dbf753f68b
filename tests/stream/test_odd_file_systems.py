"""File systems without locks, files that systems put into folders, and an output that another run writes meanwhile."""

import errno
import os

import pytest

from spacy_pll.errors import ResumeError
from spacy_pll.stream.parts import ResumableOutput

SYSTEMS_FILES = [".DS_Store", "._scores", "Thumbs.db", "desktop.ini", ".nfs000000001", "THUMBS.DB"]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch, number):
    fcntl = pytest.importorskip("fcntl")

    def lockf(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "lockf", lockf)
    output = ResumableOutput(tmp_path / "a.csv")
    with pytest.warns(UserWarning, match="has no locks"):
        assert output.begin({"a": 1}) == 0


def test_another_error_of_a_lock_is_one(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def lockf(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "lockf", lockf)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        ResumableOutput(tmp_path / "a.csv").begin({"a": 1})


@pytest.mark.parametrize("name", SYSTEMS_FILES)
def test_files_of_the_system_do_not_count(tmp_path, name):
    parts = tmp_path / "a.csv.parts"
    parts.mkdir()
    (parts / name).touch()
    assert ResumableOutput(tmp_path / "a.csv").begin({"a": 1}) == 0  # they alone are no run
    again = ResumableOutput(tmp_path / "a.csv", resume=True)
    assert again.begin({"a": 1}) == 0
    again.discard()
    assert [path.name for path in parts.iterdir()] == [name]
    ResumableOutput(tmp_path / "a.csv")  # what is left is no run either


def test_other_files_still_count(tmp_path):
    parts = tmp_path / "a.csv.parts"
    parts.mkdir()
    (parts / "thesis.docx").touch()
    with pytest.raises(ResumeError, match="thesis.docx"):
        ResumableOutput(tmp_path / "a.csv", resume=True)


def test_an_output_that_another_run_has_written_meanwhile_is_not_replaced(tmp_path):
    output = ResumableOutput(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("precious")
    with pytest.raises(ResumeError, match="Another run has written .*a.csv since this one began"):
        output.begin({"a": 1})
    assert (tmp_path / "a.csv").read_text() == "precious"
    assert not (tmp_path / "a.csv.parts").exists()  # which would look like an unfinished run
    replacing = ResumableOutput(tmp_path / "a.csv", force=True)
    assert replacing.begin({"a": 1}) == 0
