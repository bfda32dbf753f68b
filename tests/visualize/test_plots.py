import math
import pickle
import sys

import pytest

from spacy_pll import visualize

from .conftest import METRICS, shown


def test_a_line_a_metric_over_the_pieces(doc):
    record = doc._.pll_data
    axes = visualize.plot(doc).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == record["pieces"]
    assert [list(line.get_ydata()) for line in axes.lines] == [record["scores"][metric] for metric in METRICS]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    n = len(record["pieces"])
    expected = [
        f"{metric}: {shown(score)} (mean {shown(score / n)})"
        for metric, score in ((metric, doc._.get(f"pll_{metric}")) for metric in METRICS)
    ]
    assert labels == [*expected, "the metrics differ"]


def test_the_region_where_metrics_differ_is_shaded(doc):
    record = doc._.pll_data
    rows = list(zip(*(record["scores"][metric] for metric in ("word_l2r", "original"))))
    apart = {i for i, (a, b) in enumerate(rows) if abs(a - b) > 0.01}
    axes = visualize.plot(doc, METRICS[:2]).axes[0]
    boxes = [patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches]
    bands = [(box.x0, box.x1) for box in boxes]
    assert apart and {i for i in range(len(rows)) for low, high in bands if low < i < high} == apart
    assert all(high < later for (_, high), (later, _) in zip(bands, bands[1:]))
    axes = visualize.plot(doc, ["original"]).axes[0]
    assert not axes.patches and len(axes.get_legend().get_texts()) == 1


def test_a_long_text_has_rows(nlp):
    doc = nlp(" ".join(["The traveler lost the souvenir."] * 9))
    record, figure = doc._.pll_data, visualize.plot(doc)
    axes, pieces = figure.axes, record["pieces"]
    assert len(pieces) > 50 and len(axes) == math.ceil(len(pieces) / 25) and figure.get_size_inches()[0] <= 14
    assert [label.get_text() for row in axes for label in row.get_xticklabels()] == pieces
    for i, metric in enumerate(METRICS):
        assert [y for row in axes for y in row.lines[i].get_ydata()] == record["scores"][metric]
    assert [row.get_legend() is not None for row in axes] == [True] + [False] * (len(axes) - 1)
    assert "the metrics differ" in [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert len({row.get_ylim() for row in axes}) == 1
    apart = {i for i, values in enumerate(zip(*record["scores"].values())) if max(values) - min(values) > 0.01}
    shaded, first = set(), 0
    for row in axes:
        boxes = [patch.get_extents().transformed(row.transData.inverted()) for patch in row.patches]
        n = len(row.get_xticklabels())
        shaded |= {first + i for i in range(n) if any(box.x0 < i < box.x1 for box in boxes)}
        first += n
    assert apart and shaded == apart


def test_over_the_tokens_where_there_is_no_record(make_nlp):
    doc = make_nlp("bert", targets="critical").make_doc("It cost $3.50  and $4.")
    nlp = make_nlp("bert", targets="critical")
    doc.spans["critical"] = [doc[1:6]]
    doc = nlp(doc)
    figure = visualize.plot(doc)
    axes = figure.axes[0]
    tokens = [token for token in doc if not token.is_space]
    assert [label.get_text() for label in axes.get_xticklabels()] == [token.text for token in tokens]
    drawn = axes.lines[0].get_ydata()
    assert [None if math.isnan(value) else value for value in drawn] == [token._.pll for token in tokens]
    assert f"word_l2r: {shown(doc._.pll)} " in axes.get_legend().get_texts()[0].get_text()
    assert "token" in axes.get_ylabel()
    figure.canvas.draw()  # a pair of dollar signs would be an unfinished formula


def test_the_figure_leaves_pyplot_alone_and_a_notebook_shows_it(doc, monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    figure = visualize.plot(doc)
    for same in (figure, pickle.loads(pickle.dumps(figure))):
        assert same._repr_png_().startswith(b"\x89PNG")
    assert "matplotlib.pyplot" not in sys.modules


def test_errors_of_plots(nlp, doc, monkeypatch):
    with pytest.raises(ValueError, match="No token of the text '' is scored"):
        visualize.plot(nlp(""))
    with pytest.raises(ValueError, match="no scores under 'causal'"):
        visualize.plot(doc, ["causal"])
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install .*\[plot\]"):
        visualize.plot(doc)
