import hashlib
import json
import math
import resource
from contextlib import nullcontext
from pathlib import Path

import pytest

from spacy_pll.files import (
    OutputError,
    _ignores_case,
    check_apart,
    check_output,
    check_target,
    file_digest,
    files_digest,
    write_json,
    write_text,
)


def test_the_ending_says_what_to_write(tmp_path):
    endings = (".json", ".csv")
    check_output(None, endings, False)
    check_output(tmp_path / "a.csv", endings, False)
    for name in ("a.txt", "a"):
        with pytest.raises(ValueError, match=f"must end in .json or .csv. It is '.*{name}'"):
            check_output(tmp_path / name, endings, False)


def test_existing_output_is_kept_unless_forced(tmp_path):
    (tmp_path / "a.csv").touch()
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileExistsError, match="a.csv exists already. Add `force=True` to replace it"):
        check_output(tmp_path / "a.csv", (".csv",), False)
    check_output(tmp_path / "a.csv", (".csv",), True)
    with pytest.raises(IsADirectoryError, match="is a folder. Name a file"):
        check_output(tmp_path / "folder.csv", (".csv",), True)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where one works: a corpus and other files, and links to them."""
    for name in ("corpus/a.csv", "folder/b.csv", "in.csv", "old.csv", "x.csv.parts/c.csv", "x.csv.manifest.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text\nprecious\n")
    (tmp_path / "link.csv").symlink_to("other.csv")
    (tmp_path / "twin.csv").hardlink_to(tmp_path / "in.csv")
    (tmp_path / "linked").symlink_to(tmp_path)
    (tmp_path / "corpus" / "old.csv").symlink_to(tmp_path / "old.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("link.csv", "is a link, a device or a pipe"),
        ("/dev/null", "is a link, a device or a pipe"),
        ("folder", "is a folder. Name a file"),
        ("in.csv/out.csv", "no folder that you may write to"),
    ],
)
def test_what_is_no_place_for_a_file_is_refused(place, output, message):
    with pytest.raises(OSError, match=message):
        check_target(Path(output))
    check_target(Path("new/out.csv"))


@pytest.mark.parametrize(
    ("output", "read", "message"),
    [
        ("in.csv", "in.csv", "'in.csv' is the input 'in.csv', or lies in it"),
        ("folder/../in.csv", "in.csv", "is the input"),
        ("in.csv", "./in.csv", "is the input './in.csv'"),
        ("twin.csv", "in.csv", "is the input"),
        ("linked/in.csv", "in.csv", "is the input"),
        ("corpus/new/out.csv", "linked/corpus", "'corpus/new/out.csv' is the input 'linked/corpus', or lies in it"),
        ("corpus", "corpus", "is the input"),
        ("old.csv", "corpus", "'old.csv' is the input 'corpus', or lies in it"),
        ("x.csv", "x.csv.manifest.json", "'x.csv.manifest.json' is the input"),
        ("x.csv", "x.csv.parts", "'x.csv.parts' is the input"),
        ("x.csv", "x.csv.parts/c.csv", "input 'x.csv.parts/c.csv' lies in the output 'x.csv.parts', and would be lost"),
    ],
)
def test_an_output_that_is_an_input_is_refused(place, output, read, message):
    with pytest.raises(ValueError, match=message):
        check_apart([Path("new.json"), Path(output)], ["none.csv", "link.csv", read])


def test_what_is_no_input_may_be_written(place):
    inputs = ["corpus", "folder/b.csv", "in.csv", "none.csv", "new.csv"]
    check_apart([Path(name) for name in ("out.csv", "new/out.csv", "in.jsonl", "folder", "x.csv", "new.csv")], inputs)
    check_apart([], [str(place)])


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (["new.csv", "./new.csv"], "The outputs 'new.csv' and 'new.csv' would both write 'new.csv'"),
        (["new.csv", "linked/new.csv"], "The outputs 'new.csv' and 'linked/new.csv' would both write"),
        (["in.csv", "twin.csv"], "would both write"),
        (["new.json.manifest.json", "a.csv", "new.json"], "'new.json' would both write 'new.json.manifest.json'"),
        (["new", "new/a.csv"], "The output 'new/a.csv' lies in the output 'new'"),
        (["linked/new.csv.parts/a.csv", "new.csv"], "'linked/new.csv.parts/a.csv' lies in the output 'new.csv.parts'"),
    ],
)
def test_two_outputs_are_two_files(place, outputs, message):
    with pytest.raises(ValueError, match=message):
        check_apart(map(Path, outputs), [])


def test_names_are_compared_as_the_folder_compares_them(place):
    """On most Macs, a file is found under its name in other letters; elsewhere it is another file."""
    outputs, ignores_case = [Path("new/a.csv"), Path("new/A.csv")], Path("IN.csv").exists()
    with pytest.raises(ValueError, match="would both write") if ignores_case else nullcontext():
        check_apart(outputs, [])
    assert _ignores_case(place) == ignores_case


def test_a_folder_in_which_one_may_not_write(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(OSError, match="cannot be written: '.*' is no folder that you may write to"):
        check_target(tmp_path / "new" / "out.csv")


def test_a_file_appears_complete_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "a.txt"

    def parts():
        yield "first\n"
        assert not path.exists()
        yield "second\n"

    write_text(path, parts())
    assert path.read_text() == "first\nsecond\n"

    def broken():
        yield "half"
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_text(path, broken())
    assert path.read_text() == "first\nsecond\n" and [file.name for file in path.parent.iterdir()] == ["a.txt"]


@pytest.fixture
def full_disk():
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_named(tmp_path, full_disk):
    with pytest.raises(OutputError, match="a.txt cannot be written: File too large. Free some space, or name another"):
        write_text(tmp_path / "a.txt", ["x" * 1000] * 50)
    assert not list(tmp_path.iterdir())
    # Errors of what is being written are not taken for it.
    with pytest.raises(OSError, match="^a worker was killed$"):
        write_text(tmp_path / "a.txt", (_ for _ in ()).throw(OSError("a worker was killed")))


def test_others_may_read_it(tmp_path):
    (tmp_path / "usual").touch()
    write_text(tmp_path / "ours", ["text"])
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_json_has_no_infinity(tmp_path):
    write_json(tmp_path / "a.json", {"a": [math.inf, 1.5], "b": {"c": math.nan}, "d": "é"})
    text = (tmp_path / "a.json").read_text(encoding="utf8")
    assert json.loads(text) == {"a": [None, 1.5], "b": {"c": None}, "d": "é"} and text.endswith("\n")


@pytest.mark.parametrize("size", [0, 1, 2**20 - 1, 2**20, 2**20 + 1])
def test_the_digest_of_a_file_of_any_size(tmp_path, size):
    content = bytes(i % 251 for i in range(size))
    (tmp_path / "file").write_bytes(content)
    assert file_digest(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_the_digest_of_several_files_depends_on_their_names(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("the same")
    a, b = ([tmp_path / name] for name in ("a", "b"))
    assert len({files_digest([]), files_digest(a), files_digest(b), files_digest(a + b)}) == 4
    assert files_digest(a) == hashlib.sha256(f"{file_digest(tmp_path / 'a')}  a\n".encode()).hexdigest()
