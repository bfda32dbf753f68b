import hashlib

import pytest

from scripts.paper.assets import SUMS, gather, read_sums

from ..conftest import data_folder


@pytest.fixture
def local(tmp_path):
    """A local folder of two files, and their sums."""
    folder = tmp_path / "local"
    sums = {}
    for name, content in {"eventsadapt/a.csv": b"one", "blimp/b.jsonl": b"two"}.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(content)
        sums[name] = hashlib.sha256(content).hexdigest()
    return folder, sums


def test_files_are_taken_from_the_local_folder_and_kept(local, tmp_path):
    folder, sums = local
    gather(tmp_path / "assets", folder, sums)
    assert (tmp_path / "assets" / "eventsadapt" / "a.csv").read_bytes() == b"one"
    gather(tmp_path / "assets", None, sums)  # in place: nothing is needed any more
    (tmp_path / "assets" / "eventsadapt" / "a.csv").write_bytes(b"altered")
    gather(tmp_path / "assets", folder, sums)
    assert (tmp_path / "assets" / "eventsadapt" / "a.csv").read_bytes() == b"one"


def test_a_wrong_sum_names_the_file_and_leaves_nothing(local, tmp_path):
    folder, sums = local
    (folder / "blimp" / "b.jsonl").write_bytes(b"two, altered")
    with pytest.raises(ValueError, match=r"local/blimp/b.jsonl is not the published file: .*SHA-256 is \w+"):
        gather(tmp_path / "assets", folder, sums)
    assert not (tmp_path / "assets" / "blimp").exists()


def test_a_wrong_sum_of_what_was_downloaded(local, tmp_path):
    folder, sums = local
    gather(tmp_path / "assets", folder, sums)
    (tmp_path / "assets" / "blimp" / "b.jsonl").write_bytes(b"half")
    with pytest.raises(ValueError, match="assets/blimp/b.jsonl is not the published file"):
        gather(tmp_path / "assets", None, sums)


def test_a_missing_file(local, tmp_path):
    folder, sums = local
    (folder / "eventsadapt" / "a.csv").unlink()
    with pytest.raises(ValueError, match="assets/eventsadapt/a.csv is missing. Download it with"):
        gather(tmp_path / "assets", folder, sums)


@pytest.mark.parametrize("name", ["mine.jsonl", "mine/b.jsonl", "mine.csv"])
def test_a_stray_file_is_no_paradigm(local, tmp_path, name):
    folder, sums = local
    gather(tmp_path / "assets", folder, sums)
    stray = tmp_path / "assets" / "blimp" / name
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"{}")
    with pytest.raises(ValueError, match=f"{name} is no file of BLiMP"):
        gather(tmp_path / "assets", folder, sums)


def test_the_command_says_what_is_wrong(command, tmp_path):
    message = command.fails("assets", tmp_path / "assets", "--local", tmp_path / "nowhere")
    assert "clean_EventsAdapt_SentenceSet.csv is missing" in message


def test_the_real_ones(command, tmp_path):
    # The folder that holds all data, and the folder of the data sets themselves.
    for number, folder in enumerate((data_folder("."), data_folder("data"))):
        assert "69 files" in command("assets", tmp_path / str(number), "--local", folder)
    assert len(read_sums(SUMS)) == 69


def test_without_the_data_a_check_of_what_is_there_is_left_out(command, tmp_path):
    missing = command.fails("assets", tmp_path / "assets")
    assert "is missing. Download it" in missing
    assert "is not checked: eventsadapt/" in command("assets", tmp_path / "assets", "--if-there")
