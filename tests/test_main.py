import pytest

from spacy_pll.__main__ import main


def test_prints_a_table_for_each_text(model_folder, capsys):
    folder = str(model_folder("bert"))
    main(["The traveler lost  it.", "", "Bad \udcff byte", "--model", folder])
    out = capsys.readouterr().out
    lines = out.splitlines()
    rows = {line.split()[0]: line for line in lines if line.strip()}
    assert float(rows["traveler"].split()[-1]) < 0
    assert sum("pieces" in line and "wordpieces" not in line for line in lines) == 3
    assert "Bad" in out and "PPPL" in out


def test_metrics_are_columns(model_folder, capsys):
    main(["--metrics", "word_l2r,original", "The traveler", "--model", str(model_folder("bert"))])
    assert "word_l2r   original" in capsys.readouterr().out


def test_without_text_it_says_how_it_is_used(capsys):
    with pytest.raises(SystemExit):
        main([])
    assert "usage: python -m spacy_pll" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "message"),
    [(("--metrics", "nonesuch"), "Unknown PLL metric"), (("--model", "no-such/model"), "was not found")],
)
def test_errors_are_one_line(capsys, option, message):
    with pytest.raises(SystemExit):
        main(["A text", *option])
    assert message in capsys.readouterr().err
