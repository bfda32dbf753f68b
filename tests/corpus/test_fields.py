import pytest

from spacy_pll.corpus.fields import MAX_DEPTH, check_fields
from spacy_pll.corpus.readers import InputError


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": "a\ud800"}, "in, line 1: 'x' has a lone surrogate, '.ud800'"),
        ({"x": [{"y": "a\ud800"}]}, "'x' has a lone surrogate"),
        ({"x": {"a\ud800": 1}}, "'x' has a lone surrogate"),
        ({"a\ud800": 1}, "'a.ud800' has a lone surrogate"),
        ({"x": nested(MAX_DEPTH + 1)}, "'x' has more than 100 lists or objects in each other. Flatten it"),
    ],
)
@pytest.mark.parametrize("for_spacy", [False, True])
def test_what_cannot_be_written_is_named(fields, message, for_spacy):
    with pytest.raises(InputError, match=message):
        check_fields(fields, "in, line 1", for_spacy)


def test_formats_hold_different_values():
    check_fields({"x": [None, True, 1.5, 2**70, {"y": nested(90)}]}, "in, line 1")
    check_fields({"x": [b"bytes", 2**64 - 1, -(2**63)]}, "in, line 1", for_spacy=True)
    for value in (2**64, -(2**63) - 1):
        with pytest.raises(InputError, match="'x' is -?[0-9]+. A .spacy file holds whole numbers of up to 64 bits"):
            check_fields({"x": [value]}, "in, line 1", for_spacy=True)
    with pytest.raises(InputError, match="in, line 1: 'x' is b'bytes', which JSON does not have"):
        check_fields({"x": b"bytes"}, "in, line 1")
