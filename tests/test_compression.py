import pytest

from spacy_pll import InputError
from spacy_pll.compression import COMPRESSED
from spacy_pll.corpus.readers import list_files

from .corpus.reading import read_records


@pytest.mark.parametrize("ending", COMPRESSED)
def test_compressed_text_is_read_like_other_text(tmp_path, ending):
    def compress(text, name):
        with (tmp_path / name).open("wb") as file:
            with COMPRESSED[ending](file, "wb") as contents:
                contents.write(text.encode())
            assert not file.closed

    contents = {
        "a.txt": "One.\nTwo.\n",
        "b.JSONL": '{"text": "Three."}\n',
        "c.csv": "text,n\nFour.,1\n",
        "d.tsv": "text\nFive.\n",
    }
    for name, text in contents.items():
        compress(text, name + ending.upper())
    (tmp_path / f"e.spacy{ending}").write_bytes(b"not read")
    with pytest.warns(UserWarning, match="will not be read: 'e.spacy"):
        assert len(list_files(str(tmp_path))) == 4
        records = list(read_records(tmp_path))
    assert [record.text for record in records] == ["One.", "Two.", "Three.", "Four.", "Five."]
    assert records[3].fields == {"file": f"c.csv{ending.upper()}", "n": "1"}
    path = tmp_path / f"a.txt{ending}"
    compress("".join(f"Line {i}.\n" for i in range(9)), path.name)
    whole = path.read_bytes()
    altered = [whole[:20] + b"\0\0\0\0" + whole[24:]] * (ending != ".zst")  # which has no checksum
    for damaged in (whole[:-9], b"no compressed data", *altered):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=f"a.txt{ending}: the compressed file is damaged or incomplete"):
            list(read_records(path))
