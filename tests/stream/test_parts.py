import gc
import json
import shutil
from contextlib import suppress

import pytest

from spacy_pll.compression import COMPRESSED, open_file
from spacy_pll.errors import ResumeError
from spacy_pll.stream.known import KeptScores
from spacy_pll.stream.parts import ResumableOutput

from ..conftest import count_frozen

TEXTS = {1: "aaaa", 2: "bbbb", 3: "cccc"}  # the fingerprints of the input after so many
MANIFEST = {"input": {"texts": 3, "digest": "abc"}, "batch_size": 2, "model": {"folder": None}}


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out.jsonl"


def join(parts):
    return parts


def interrupted(output, n_parts=2):
    """A run that has written some parts."""
    parts = ResumableOutput(output)
    assert parts.begin(MANIFEST) == 0
    for number in range(n_parts):
        parts.write(f"part {number}\n".encode(), 1, TEXTS[number + 1])
    parts.lock.close()  # as when a process ends
    return parts.folder


def test_parts_are_joined_and_deleted(output):
    parts = ResumableOutput(output)
    assert parts.begin(MANIFEST) == 0
    for number in range(2):
        parts.write(b"part %d\n" % number, 1, TEXTS[number + 1])
    assert not output.exists()
    parts.merge(join)
    assert output.read_bytes() == b"part 0\npart 1\n"
    assert json.loads((output.parent / "out.jsonl.manifest.json").read_text()) == MANIFEST
    assert sorted(path.name for path in output.parent.iterdir()) == ["out.jsonl", "out.jsonl.manifest.json"]
    # The same run again, resumed: nothing is to be done.
    assert ResumableOutput(output, resume=True).begin(MANIFEST) is None


@pytest.mark.parametrize("ending", COMPRESSED)
def test_compressed_output_depends_on_the_contents_alone(tmp_path, monkeypatch, ending):
    """Not on its name, on the time, or on how many parts there were."""
    rows = [b"%d %x\n" % (i, i**9) for i in range(6_000)]
    written = []
    for n_parts, now in ((1, 1.0), (3, 1e9), (60, 2e9)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        output = tmp_path / f"{n_parts}.jsonl{ending}"
        parts = ResumableOutput(output)
        parts.begin(MANIFEST)
        for number in range(n_parts):
            size = len(rows) // n_parts
            parts.write(b"".join(rows[number * size : (number + 1) * size]), size, "abc")
        assert (parts.folder / f"000000000-{size:09}-abc-0s.jsonl").read_bytes().startswith(b"0 0\n")
        parts.merge(join)
        with open_file(output) as file:
            assert file.read() == b"".join(rows)
        written.append(output.read_bytes())
    assert written[0] == written[1] == written[2] and len(written[0]) < len(b"".join(rows))


def test_a_run_resumes_after_its_last_part(output):
    folder = interrupted(output)
    (folder / "next.unfinished").write_text("half a par")
    parts = ResumableOutput(output, resume=True)
    assert parts.ends() == {1, 2} and parts.begin(MANIFEST, TEXTS) == 2
    parts.write(b"part 2\n", 1, TEXTS[3])
    parts.merge(join)
    assert output.read_bytes() == b"part 0\npart 1\npart 2\n" and not folder.exists()


@pytest.mark.parametrize(
    ("texts", "done"),
    [({**TEXTS, 3: "dddd"}, 2), ({**TEXTS, 2: "dddd"}, 1), ({1: "dddd"}, 0), ({1: TEXTS[1]}, 1), ({}, 0)],
)
def test_parts_of_other_texts_are_scored_again(output, texts, done):
    """As when the input was changed while they were scored, and changed back."""
    folder = interrupted(output, n_parts=3)
    parts = ResumableOutput(output, resume=True)
    assert parts.begin(MANIFEST, texts) == done == len(list(folder.glob("0*")))
    assert (parts.done, parts.fingerprint) == (done, TEXTS.get(done, ""))


def test_parts_behind_a_gap_are_scored_again(output):
    folder = interrupted(output, n_parts=3)
    (folder / "000000001-000000002-bbbb-0s.jsonl").unlink()
    assert ResumableOutput(output, resume=True).begin(MANIFEST, TEXTS) == 1
    assert [path.name for path in folder.glob("0*")] == ["000000000-000000001-aaaa-0s.jsonl"]


@pytest.mark.parametrize("deleted", [0, 1, 2])
def test_a_part_that_is_deleted_during_the_run_is_not_left_out(output, deleted):
    """The output had no rows of its texts."""
    parts = ResumableOutput(output)
    parts.begin(MANIFEST)
    for number in range(3):
        parts.write(f"part {number}\n".encode(), 1, TEXTS[number + 1])
    next(parts.folder.glob(f"{deleted:09}-*")).unlink()
    for use in (parts.read, lambda: parts.merge(join)):
        with pytest.raises(ResumeError, match="Parts of the run are missing .*`resume=True`"):
            use()
    assert not output.exists()
    parts.lock.close()
    again = ResumableOutput(output, resume=True)
    assert again.begin(MANIFEST, TEXTS) == deleted
    for number in range(deleted, 3):
        again.write(f"part {number}\n".encode(), 1, TEXTS[number + 1])
    again.merge(join)
    assert output.read_text() == "part 0\npart 1\npart 2\n"


def test_a_folder_that_is_deleted_during_the_run_is_an_error(output):
    parts = ResumableOutput(output)
    parts.begin(MANIFEST)
    parts.write(b"part 0\n", 1, TEXTS[1])
    shutil.rmtree(parts.folder)
    with pytest.raises(OSError, match="No such file or directory"):
        parts.write(b"part 1\n", 1, TEXTS[2])
    with pytest.raises(ResumeError, match="Parts of the run are missing"):
        parts.merge(join)
    assert not output.exists()


def test_a_run_that_was_stopped_before_its_manifest_was_written_starts_from_the_beginning(output):
    folder = interrupted(output, n_parts=0)
    (folder / "manifest.json").unlink()
    assert ResumableOutput(output, resume=True).begin(MANIFEST) == 0
    assert json.loads((folder / "manifest.json").read_text()) == MANIFEST


@pytest.mark.parametrize("kind", [KeptScores, ResumableOutput])
def test_the_garbage_collector_leaves_alone_what_is_there_before_a_run(output, kind, monkeypatch):
    """And what the program had frozen stays so, as the tests do it."""
    monkeypatch.setattr(gc, "get_freeze_count", count_frozen)
    for is_frozen in (False, True):
        (gc.freeze if is_frozen else gc.unfreeze)()
        for error in (None, KeyboardInterrupt):
            run = kind(output)
            with suppress(KeyboardInterrupt), run.kept(1) if isinstance(run, ResumableOutput) else run.until_done():
                assert gc.get_freeze_count() > 1000
                if error:
                    raise error
            assert (gc.get_freeze_count() > 1000) == is_frozen


def test_existing_results_are_kept_unless_forced(output):
    interrupted(output)
    with pytest.raises(ResumeError, match="unfinished run.*`resume=True`"):
        ResumableOutput(output)
    parts = ResumableOutput(output, force=True)
    assert parts.begin(MANIFEST) == 0 and not list(parts.folder.glob("0*"))
    parts.merge(join)
    with pytest.raises(ResumeError, match="out.jsonl exists already. Add `force=True` to replace it"):
        ResumableOutput(output)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 4}, "batch_size: it was 2, and is now 4"),
        (
            {"input": {"texts": 4, "digest": "def"}},
            "input.texts: it was 3, and is now 4; texts of the input or their columns, first between its texts 1 and 1",
        ),
        ({"model": {"hub": "x"}}, "model.hub: it was None, and is now 'x'"),
        ({"device": "cpu"}, "device: it was None, and is now 'cpu'"),
    ],
)
def test_a_run_that_differs_is_refused(output, change, message):
    interrupted(output)
    with pytest.raises(ResumeError, match=message):
        ResumableOutput(output, resume=True).begin({**MANIFEST, **change})


@pytest.mark.parametrize(
    ("texts", "where"),
    [
        ({**TEXTS, 2: "dddd"}, "texts of the input or their columns, first between its texts 2 and 2"),
        ({1: TEXTS[1]}, "texts of the input or their columns, first between its texts 2 and 2"),  # it is shorter
        (TEXTS, r"texts of the input or their columns \(the 2 that are scored are the same\)"),
    ],
)
def test_a_text_that_has_changed_is_said_in_words_with_its_place(output, texts, where):
    interrupted(output)
    now = {**MANIFEST, "input": {"texts": 3, "digest": "def"}}
    with pytest.raises(ResumeError, match=f"the results depend on it: {where}. Change it back"):
        ResumableOutput(output, resume=True).begin(now, texts)


def test_a_text_that_has_changed_after_the_run_was_complete(output):
    parts = ResumableOutput(output)
    parts.begin(MANIFEST)
    parts.merge(join)
    with pytest.raises(ResumeError, match="texts of the input or their columns"):
        ResumableOutput(output, resume=True).begin({**MANIFEST, "input": {"texts": 3, "digest": "def"}}, {})


def test_a_manifest_that_is_damaged_or_missing(output):
    folder = interrupted(output)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(ResumeError, match="manifest.json is damaged .* Start again with `force=True`"):
        ResumableOutput(output, resume=True).begin(MANIFEST)
    folder.joinpath("lock").unlink()
    output.write_text("precious")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    with pytest.raises(ResumeError, match="out.jsonl.manifest.json does not exist"):
        ResumableOutput(output, resume=True).begin(MANIFEST)
    assert output.read_text() == "precious"


def test_a_folder_that_is_not_of_a_run_is_left_alone(output):
    """With our manifest and our names it is ours. A folder that the user made is not, nor is what a link points to."""
    folder = output.with_name("out.jsonl.parts")
    folder.mkdir()
    (folder / "notes.txt").write_text("precious")
    for options in ({}, {"resume": True}, {"force": True}):
        with pytest.raises(ResumeError, match="out.jsonl.parts contains 'notes.txt'"):
            ResumableOutput(output, **options)
    (folder / "notes.txt").rename(folder / "000000000-000000001-abc-0s.jsonl")  # our name, and no manifest
    with pytest.raises(ResumeError, match="contains '000000000-000000001-abc-0s.jsonl', which is not of a run"):
        ResumableOutput(output, force=True)
    (folder / "000000000-000000001-abc-0s.jsonl").rename(output.with_name("elsewhere"))
    folder.rmdir()
    elsewhere = output.with_name("theirs.jsonl")
    folder.symlink_to(interrupted(elsewhere), target_is_directory=True)
    with pytest.raises(ResumeError, match="out.jsonl.parts is a link"):
        ResumableOutput(output, force=True)
    assert ResumableOutput(elsewhere, resume=True).begin(MANIFEST, TEXTS) == 2


def test_what_others_put_into_the_folder_stays(output):
    parts = ResumableOutput(output)
    parts.begin(MANIFEST)
    (parts.folder / "notes.txt").write_text("precious")
    parts.merge(join)
    assert [path.name for path in parts.folder.iterdir()] == ["notes.txt"] and output.exists()


def test_a_difference_at_the_end_of_a_long_value_is_shown(output):
    fields = [f"column{n}" for n in range(30)]
    parts = ResumableOutput(output)
    parts.begin({"fields": [*fields, "old"]})
    parts.write(b"x", 1, "abc")
    parts.lock.close()
    with pytest.raises(ResumeError, match=r"'column29', 'old'\], and is now .*'column29', 'new'\]\. Change it back"):
        ResumableOutput(output, resume=True).begin({"fields": [*fields, "new"]})


def test_only_what_differs_is_named_and_not_all_of_it(output):
    interrupted(output)
    changed = {**MANIFEST, "model": {"hub": "x" * 500, "card": {"a": 1, "b": 2}}, **{f"n{n}": n for n in range(6)}}
    with pytest.raises(ResumeError) as error:
        ResumableOutput(output, resume=True).begin(changed)
    assert "model.card: it was None, and is now {'a': 1, 'b': 2}; " in str(error.value)
    assert f"model.hub: it was None, and is now '{'x' * 99}...; " in str(error.value)
    assert "; and 3 more. Change it back" in str(error.value) and len(str(error.value)) < 500
