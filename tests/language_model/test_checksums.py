"""SHA256SUMS beside what is saved: altered and missing files are named, and `sha256sum` reads the same file."""

import hashlib
import shutil
import subprocess

import pytest

from spacy_pll.language_model.checksums import NAME, check_checksums, file_digest, write_checksums

pytestmark = pytest.mark.core

FILES = {"model.safetensors": b"\x00weights\xff" * 1000, "config.json": b"{}", "empty": b"", "two words.txt": b"a\r\nb"}


@pytest.fixture
def folder(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "subfolder").mkdir()
    (tmp_path / "subfolder" / "notes").write_text("of no model")
    write_checksums(tmp_path)
    return tmp_path


def test_the_file_lists_each_file_once_and_sorted(folder):
    lines = (folder / NAME).read_text(encoding="utf8").splitlines()
    assert lines == [f"{hashlib.sha256(FILES[name]).hexdigest()}  {name}" for name in sorted(FILES)]
    write_checksums(folder)  # its own earlier file is not listed
    assert (folder / NAME).read_text(encoding="utf8").splitlines() == lines


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="there is no command sha256sum")
def test_sha256sum_checks_it_too(folder):
    command = ["sha256sum", "--check", "--quiet", NAME]
    assert subprocess.run(command, cwd=folder, capture_output=True).returncode == 0
    (folder / "config.json").write_bytes(b"[]")
    assert b"config.json" in subprocess.run(command, cwd=folder, capture_output=True).stdout


def test_an_untouched_folder_passes(folder):
    check_checksums(folder)
    (folder / "README.md").write_text("not listed")
    (folder / "subfolder" / "notes").write_text("changed")
    check_checksums(folder)


@pytest.mark.parametrize("name", FILES)
def test_an_altered_file_is_named(folder, name):
    content = FILES[name]
    (folder / name).write_bytes(content[:-1] + b"!" if content else b"!")
    with pytest.raises(OSError, match=f"{name}.*SHA-256.*{NAME}"):
        check_checksums(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(OSError, match=f"{name} is missing"):
        check_checksums(folder)


def test_a_listed_path_cannot_lead_out_of_the_folder(folder):
    """The list may come from a stranger: only files of the folder itself are read."""
    (folder / "subfolder" / NAME).write_text(f"{file_digest(folder / 'config.json')}  ../config.json\n")
    with pytest.raises(OSError, match="subfolder.config.json is missing"):
        check_checksums(folder / "subfolder")


def test_a_folder_without_checksums_is_not_checked(folder):
    (folder / NAME).unlink()
    (folder / "config.json").unlink()
    check_checksums(folder)


@pytest.mark.parametrize("size", [0, 1, 2**20 - 1, 2**20, 2**20 + 1])
def test_the_digest_of_a_file_of_any_size(tmp_path, size):
    content = bytes(i % 251 for i in range(size))
    (tmp_path / "file").write_bytes(content)
    assert file_digest(tmp_path / "file") == hashlib.sha256(content).hexdigest()
