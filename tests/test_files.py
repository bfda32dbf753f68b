import json
import math
import resource

import pytest

from spacy_pll.files import (
    OutputError,
    atomic_folder,
    check_output,
    check_target,
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


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("in.csv", "is the input '.*in.csv', or lies in it"),
        ("folder/../in.csv", "is the input '.*in.csv', or lies in it"),
        ("twin.csv", "is the input '.*in.csv', or lies in it"),
        ("linked/in.csv", "is the input '.*in.csv', or lies in it"),
        ("link.csv", "is a link, a device or a pipe"),
        ("/dev/null", "is a link, a device or a pipe"),
        ("corpus/new/out.csv", "is the input '.*corpus', or lies in it"),
        ("folder", "The input '.*b.csv' lies in the output '.*folder'"),
        ("in.csv/out.csv", "no folder that you may write to"),
    ],
)
def test_an_output_that_would_destroy_something_is_refused(tmp_path, output, message):
    for name in ("corpus/a.csv", "folder/b.csv", "in.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text\nprecious\n")
    (tmp_path / "link.csv").symlink_to("other.csv")
    (tmp_path / "twin.csv").hardlink_to(tmp_path / "in.csv")
    (tmp_path / "linked").symlink_to(tmp_path)
    inputs = [str(tmp_path / name) for name in ("corpus", "folder/b.csv", "in.csv")]
    with pytest.raises((OSError, ValueError), match=message):
        check_target(tmp_path / output, None, "-", *inputs, folder=output == "folder")
    for name in ("out.csv", "new/out.csv", "in.jsonl"):
        check_target(tmp_path / name, *inputs)


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
    with pytest.raises(OutputError, match="tuned cannot be written"), atomic_folder(tmp_path / "tuned") as folder:
        (folder / "weights").write_bytes(b"x" * 50_000)
    assert not list(tmp_path.iterdir())
    # Errors of what is being written are not taken for it.
    with pytest.raises(OSError, match="^a worker was killed$"):
        write_text(tmp_path / "a.txt", (_ for _ in ()).throw(OSError("a worker was killed")))


def test_a_folder_appears_complete_or_not_at_all(tmp_path):
    with atomic_folder(tmp_path / "new" / "a") as folder:
        (folder / "old").touch()
    with pytest.raises(OSError, match="No space left"), atomic_folder(tmp_path / "new" / "a") as folder:
        (folder / "half").touch()
        raise OSError("No space left on device")
    assert [str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*")] == ["a", "a/old"]
    with atomic_folder(tmp_path / "new" / "a") as folder:
        (folder / "more").touch()
    assert [path.name for path in (tmp_path / "new").rglob("*")] == ["a", "more"]


def test_others_may_read_it(tmp_path):
    (tmp_path / "usual").touch()
    write_text(tmp_path / "ours", ["text"])
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_json_has_no_infinity(tmp_path):
    write_json(tmp_path / "a.json", {"a": [math.inf, 1.5], "b": {"c": math.nan}, "d": "é"})
    text = (tmp_path / "a.json").read_text(encoding="utf8")
    assert json.loads(text) == {"a": [None, 1.5], "b": {"c": None}, "d": "é"} and text.endswith("\n")
