from spacy_pll.evaluation.plots import plot_accuracies


def test_a_marker_at_the_end_of_the_axis_is_whole():
    figure = plot_accuracies({"m": {"x": (1.0, 0.5, 1.0), "y": (0.0, 0.0, 0.3)}})
    line = next(line for line in figure.axes[0].lines if line.get_marker() == "o")
    assert list(line.get_xdata()) == [100, 0] and not line.get_clip_on()
