import hashlib
import json
import math
import os
import resource
import shutil
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.files import (
    OutputError,
    _ignores_case,
    check_apart,
    check_output,
    check_target,
    file_digest,
    files_digest,
    folder_digest,
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
    with pytest.raises(OSError, match="cannot be written: '.*' is no folder"):
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
    with pytest.raises(OutputError, match="a.txt cannot be written: File too large"):
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


FOLDERS = ["", "a", "a/b", "c", "d", "d/e"]  # in two of them, of which one is read


@st.composite
def folders_with_links(draw):
    """Files and links to folders, by their folder and name. A link may lead to a folder that it is in."""
    place = st.tuples(st.sampled_from(["read", "elsewhere"]), st.sampled_from(FOLDERS)).map("/".join)
    files = draw(st.dictionaries(st.tuples(place, st.sampled_from("xy")), st.sampled_from("123"), max_size=6))
    links = draw(st.dictionaries(st.tuples(place, st.sampled_from("lm")), place, max_size=5))
    return files, links


def write_folders(root, files, links):
    for top in ("read", "elsewhere"):
        for name in FOLDERS:
            (root / top / name).mkdir(parents=True, exist_ok=True)
    for (folder, name), content in files.items():
        (root / folder / name).write_text(content)
    for (folder, name), target in links.items():
        (root / folder / name).symlink_to(root / target, target_is_directory=True)


def seen_from(folder, depth=4):
    """The files by the paths that lead to them, through links, too."""
    if not depth:
        return {}
    found = {}
    for one in folder.iterdir():
        if one.is_dir():
            found |= {f"{one.name}/{name}": content for name, content in seen_from(one, depth - 1).items()}
        else:
            found[one.name] = one.read_text()
    return found


@given(st.lists(folders_with_links(), min_size=2, max_size=2), st.data())
def test_folders_that_show_other_files_have_other_digests(both, data):
    """Whatever their links do: they may go in circles, and to one folder twice."""
    files, links = both[0]
    if links and data.draw(st.booleans()):  # folders that differ in where one link goes
        one = data.draw(st.sampled_from(sorted(links)))
        both[1] = files, {**links, one: data.draw(st.sampled_from([f"elsewhere/{name}" for name in FOLDERS]))}
    shown, digests = [], []
    for files, links in both:
        with TemporaryDirectory() as root:
            write_folders(Path(root), files, links)
            shown.append(seen_from(Path(root, "read")))
            digests.append(folder_digest(Path(root, "read")))
    assert digests[0] != digests[1] or shown[0] == shown[1]


def test_the_digest_of_a_folder_does_not_depend_on_where_its_files_lie(tmp_path):
    """A copy with the files in it, in place of links to them and to their folders, is the same."""
    for name in ("x", "y"):
        (tmp_path / "elsewhere" / "in").mkdir(parents=True, exist_ok=True)
        (tmp_path / "elsewhere" / "in" / name).write_text(name)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "in").symlink_to(tmp_path / "elsewhere" / "in", target_is_directory=True)
    (tmp_path / "linked" / "z").symlink_to(tmp_path / "elsewhere" / "in" / "x")
    (tmp_path / "linked" / "gone").symlink_to(tmp_path / "nothing")
    shutil.copytree(tmp_path / "linked", tmp_path / "copy", ignore=shutil.ignore_patterns("gone"))
    assert not (tmp_path / "copy" / "in").is_symlink()
    assert folder_digest(tmp_path / "linked") == folder_digest(tmp_path / "copy")
    os.rename(tmp_path / "copy" / "in", tmp_path / "copy" / "at")
    assert folder_digest(tmp_path / "linked") != folder_digest(tmp_path / "copy")


def test_a_link_to_a_folder_that_is_read_already_counts(tmp_path):
    """Of two components, one may be an earlier state of the other, and then the same."""
    (tmp_path / "elsewhere" / "old").mkdir(parents=True)
    (tmp_path / "elsewhere" / "old" / "weights").write_text("old")
    (tmp_path / "elsewhere" / "weights").write_text("new")
    (tmp_path / "read").mkdir()
    (tmp_path / "read" / "first").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    digests = [folder_digest(tmp_path / "read")]
    for target in ("elsewhere", "elsewhere/old"):
        (tmp_path / "read" / "second").symlink_to(tmp_path / target, target_is_directory=True)
        digests.append(folder_digest(tmp_path / "read"))
        (tmp_path / "read" / "second").unlink()
    assert len(set(digests)) == 3


def test_files_that_do_not_count_are_in_no_digest_and_a_folder_is_read_once(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    for name in ("in/weights", "in/notes.md"):
        (tmp_path / name).write_text(name)
    before = folder_digest(tmp_path, lambda file: file.suffix != ".md")
    (tmp_path / "in" / "notes.md").write_text("others")
    assert folder_digest(tmp_path, lambda file: file.suffix != ".md") == before != folder_digest(tmp_path)
    for number in range(20):  # each in the next would be a million folders
        (tmp_path / f"{number}").mkdir()
        for name in ("a", "b"):
            (tmp_path / f"{number}" / name).symlink_to(tmp_path / f"{number + 1}", target_is_directory=True)
    read = []
    monkeypatch.setattr("spacy_pll.files.file_digest", lambda path: str(read.append(path)))
    folder_digest(tmp_path)
    assert len(read) == 2
