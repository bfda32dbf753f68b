import csv

import pytest

from spacy_pll import make_pipeline, variants

from ..proteins import PROTEIN, save_protein_model
from .conftest import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("protein")
    save_protein_model(folder, "bert")
    return folder


def read_table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_all_single_substitutions(folder, tmp_path):
    (tmp_path / "protein.fasta").write_text(f">x\n{PROTEIN}\n")
    files = ("-o", tmp_path / "out.csv", "--plot", tmp_path / "out.svg")
    result = run("variants", "--model", folder, "--fasta", tmp_path / "protein.fasta", "--offset", "5", *files)
    rows, found = read_table(tmp_path / "out.csv"), variants(make_pipeline(str(folder)), PROTEIN, offset=5)
    assert [float(row["masked_marginals"]) for row in rows] == found.scores.tolist()
    highest = rows[found.scores.argmax()]["mutant"]
    lines = result.stdout.split("\n")
    assert f"variants ({19 * len(PROTEIN):,})   masked-marginals" in lines[1] and lines[3].startswith(highest)
    assert len(lines) < 20 and "residue number" in (tmp_path / "out.svg").read_text()


def test_a_file_of_variants_with_measured_effects(folder, tmp_path):
    (tmp_path / "variants.tsv").write_text("mutant\tdms\nM1A\t1\nK2R:Q22A\tNA\nT3W\t3\nT3C\t4\n")
    options = ("--sequence", PROTEIN, "--method", "wt-marginals", "--measured", "dms")
    result = run("variants", tmp_path / "variants.tsv", "--model", folder, *options, "-o", tmp_path / "out.tsv")
    assert "Spearman's rho with dms (3 of 4 variants): " in result.stdout
    header, first, *others = (tmp_path / "out.tsv").read_text().splitlines()
    assert header == "mutant\tdms\twt_marginals" and first.startswith("M1A\t1\t") and len(others) == 3
    masked = ("--others", "match", "--mask-margin", "0")
    result = run("variants", tmp_path / "variants.tsv", "--model", folder, "--sequence", PROTEIN, *masked)
    assert "masked-marginals" in result.stdout


def test_what_is_wrong_is_said_with_its_line(folder, tmp_path):
    (tmp_path / "variants.csv").write_text("mutant\nM1A\nK3R\nM1J\n")
    common = ("variants", tmp_path / "variants.csv", "--model", folder)
    message = " ".join(run(*common, "--sequence", PROTEIN, code=1).stderr.split())
    assert "variants.csv, line 3: 'K3R' does not fit the sequence, which has 'T' as residue 3" in message
    assert "give it as --offset" in message
    (tmp_path / "variants.csv").write_text("mutant\nM1A\nM1J\n")
    message = " ".join(run(*common, "--sequence", PROTEIN, code=1).stderr.split())
    assert "variants.csv, line 3, 'M1J': the model does not know 'J' as a residue" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--measured", "dsm"], "there is no column 'dsm'"),
        (["--measured", "note"], "'note' must be a number. It is 'high'"),
        (["--plot", "out.png"], "The picture shows single substitutions"),
        (["--method", "wt-marginals"], "have a column 'wt_marginals', as their scores do"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_scored(folder, tmp_path, monkeypatch, options, message):
    (tmp_path / "variants.csv").write_text("mutant,note,wt_marginals\nM1A:K2R,high,1\n")
    monkeypatch.setattr("spacy_pll.evaluation.residues.at_sites", None)
    result = run("variants", tmp_path / "variants.csv", "--model", folder, "--sequence", PROTEIN, *options, code=1)
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sequence", "MKT"], "There is no model. Give a --model of proteins"),
        (["--model", "m"], "Give the protein as --sequence or as --fasta"),
        (["--model", "m", "--sequence", "MKT", "--fasta", "x"], "Give the protein as --sequence or as --fasta"),
        (["--model", "m", "--sequence", "MKT", "--measured", "x"], "--measured names a column of FILE"),
        (["--model", "m", "--sequence", "MKT", "-o", "x.json"], "The output must end in .csv or .tsv or .parquet"),
    ],
)
def test_options_that_do_not_go_together(arguments, message):
    assert message in " ".join(run("variants", *arguments, code=1).stderr.split())
