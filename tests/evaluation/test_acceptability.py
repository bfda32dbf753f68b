import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import InputError, read_suite
from spacy_pll.evaluation.acceptability import auc, best_threshold, mcc

from .given_scores import of_parts

LABELLED = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=20).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


@given(LABELLED)
def test_the_area_under_the_curve_by_all_pairs(rows):
    values, labels = np.array([v for v, _ in rows], float), np.array([label for _, label in rows])
    pairs = [(a > b) + 0.5 * (a == b) for a, good in rows if good for b, other in rows if not other]
    found = auc(values, labels)
    assert found.value == pytest.approx(sum(pairs) / len(pairs)) and 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


def by_hand(above, labels):
    r = np.corrcoef(above, labels)[0, 1] if len(set(above)) == 2 else 0.0
    return float(r)


@given(LABELLED)
def test_matthews_correlation_is_pearsons_of_two_binary_variables(rows):
    values, labels = np.array([v for v, _ in rows], float), np.array([label for _, label in rows])
    best = best_threshold(values, labels)
    every = [by_hand(values > threshold, labels) for threshold in (*(np.unique(values) + 0.5), -9)]
    found = mcc(values > best, labels)
    assert found.value == pytest.approx(by_hand(values > best, labels)) == pytest.approx(max(every))
    assert -1 <= found.low <= found.high <= 1


@pytest.mark.parametrize(
    ("name", "content", "how"),
    [
        (
            "a.tsv",
            'own\t1\t\tThe cats sleep.\nown\t0\t*\t"Go" away sleep.\n',
            {"header": ["source", "label", "mark", "sentence"]},
        ),
        (
            "a.csv",
            'id,sentence,acceptable,error_type\n0,The cats sleep.,1,0\n1,"""Go"" away sleep.",0,Syntax\n',
            {},
        ),  # RuCoLA
        ("a.tsv", 'sentence\tlabel\tidx\nThe cats sleep.\t1\t0\n"Go" away sleep.\t0\t1\n', {}),  # GLUE
        ("a.csv", 's;l\nThe cats sleep.;ok\n"""Go"" away sleep.";bad\n', {"sentence": "s", "label": "l=ok"}),
    ],
)
def test_tables_as_published(tmp_path, name, content, how):
    (tmp_path / name).write_text(content)
    suite = read_suite(str(tmp_path / name), "acceptability", threshold=-2.5, **how)
    assert [text.text for text in suite.texts] == ["The cats sleep.", '"Go" away sleep.']
    assert suite.labels.tolist() == [True, False]
    sums, means = (of_parts([[(-2.0, 1)], [(-2.4, 4)]], per_piece=per_piece) for per_piece in (False, True))
    area, best, given_ = suite.measurements({"m": sums})
    assert (area.value, best.value, given_.value, area.n) == (1.0, 1.0, 0.0, 2)
    assert next(suite.measurements({"m": means})).value == 0.0
    assert list(suite.rows({"m": sums}))[1]["acceptable"] is False


@pytest.mark.parametrize(
    ("content", "how", "message"),
    [
        ("sentence,label\nA.,1\nB.,\n", {}, "line 3: the label is ''"),
        ("sentence,label\n1,A.\n0,B.\n", {}, "line 2: the label is 'A.'"),
        ("sentence,label\nA.,ok\nB.,NA\n", {"label": "label=ok"}, "line 3: the label is 'NA'.* give `na_as_text=True`"),
        ("sentence,label\nA.,1\n,0\n", {}, "line 3: 'sentence' is empty"),
        ("sentence,label\nA.,1\nB.,1\n", {}, "All 2 sentences in .* have the same label"),
        ("sentence,x\nA.,1\n", {}, "line 2: there is no column 'label'.*`label`"),
        ("x,label\nA.,1\n", {}, "line 2: there is no column 'sentence'.*`sentence`"),
        ("sentence,label\nA.,1\n", {"sentence": "label"}, "`sentence` and `label` name the column 'label' twice"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path, content, how, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_suite(str(tmp_path / "a.csv"), "acceptability", **how)
