import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from spacy_pll import make_pipeline, read_variants, variants
from spacy_pll.evaluation.intervals import Estimate
from spacy_pll.language_model.running import limits
from spacy_pll.proteins import assays
from spacy_pll.stream.known import KeptScores

from ..cli.conftest import run
from ..conftest import UNCHANGED, write_jsonl
from ..protein_models import PROTEIN, save_protein_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("protein")
    save_protein_model(folder, "bert")
    UNCHANGED.add(str(folder))
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
    header, _, line = result.stdout.split("Spearman's rho with dms ")[1].splitlines()[:3]
    assert header.split() == ["(95", "%", "interval)", "variants", "wt-marginals"] and line.split()[:2] == [
        "overall",
        "3",
    ]
    header, first, *others = (tmp_path / "out.tsv").read_text().splitlines()
    assert header == "mutant\tdms\twt_marginals" and first.startswith("M1A\t1\t") and len(others) == 3
    masked = ("--others", "match", "--mask-margin", "0")
    result = run("variants", tmp_path / "variants.tsv", "--model", folder, "--sequence", PROTEIN, *masked)
    assert "masked-marginals" in result.stdout


def test_what_is_wrong_is_said_with_its_line(folder, tmp_path):
    (tmp_path / "variants.csv").write_text("mutant\nM1A\nK3R\nM1J\n")
    common = ("variants", tmp_path / "variants.csv", "--model", folder)
    message = " ".join(run(*common, "--sequence", PROTEIN, code=1).stderr.split())
    assert "variants.csv, line 3: 'K3R' does not fit" in message
    assert "give it as --offset" in message
    (tmp_path / "variants.csv").write_text("mutant\nM1A\nM1J\n")
    message = " ".join(run(*common, "--sequence", PROTEIN, code=1).stderr.split())
    assert "variants.csv, line 3, 'M1J': " in message


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
    monkeypatch.setattr("spacy_pll.proteins.residues.answer", None)
    result = run("variants", tmp_path / "variants.csv", "--model", folder, "--sequence", PROTEIN, *options, code=1)
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sequence", "MKT"], "There is no model. Give a --model of proteins"),
        (["--model", "m"], "Give the protein as --sequence or as --fasta"),
        (["--model", "m", "--sequence", "MKT", "--fasta", "x"], "Give the protein as --sequence or as --fasta"),
        (["--model", "m", "--sequence", "MKT", "--measured", "x"], "--measured, --protein and --assays are about FILE"),
        (["--model", "m", "--sequence", "MKT", "--sequence-column", "x"], "Give the protein as --sequence or as"),
        (["x.csv", "--model", "m", "--protein", "id", "--sequence", "MKT"], "Give the protein as --sequence or as"),
        (["x.csv", "--model", "m", "--assays", "f", "-o", "x.csv"], "Name a folder for the scores of many proteins"),
        (["--model", "m", "--sequence", "MKT", "-o", "x.json"], "The output must end in .csv or .tsv or .parquet"),
    ],
)
def test_options_that_do_not_go_together(arguments, message):
    assert message in " ".join(run("variants", *arguments, code=1).stderr.split())


def proteingym(folder):
    """A reference sheet and three assays, two of them of one protein."""
    (folder / "assays").mkdir()
    sheet = ["DMS_id,DMS_filename,target_seq,UniProt_ID,coarse_selection_type"]
    for name, sequence, uniprot, kind, mutants in [
        ("A_2020", PROTEIN, "A", "Activity", ["M1A", "K2R:Q22A", "T3W", "A4G"]),
        ("A_2021", PROTEIN, "A", "Activity", ["K2R", "T3W", "Y5F", "M1C"]),
        ("B_2022", "MKRQIS", "B", "Stability", ["M1A", "K2R", "R3K:Q4A", "I5V"]),
    ]:
        sheet.append(f"{name},{name}.csv,{sequence},{uniprot},{kind}")
        rows = [f"{mutant},{(7 * i) % 4}" for i, mutant in enumerate(mutants)]
        (folder / "assays" / f"{name}.csv").write_text("\n".join(["mutant,DMS_score", *rows, ""]))
    (folder / "sheet.csv").write_text("\n".join([*sheet, ""]))
    return ("variants", folder / "sheet.csv", "--assays", folder / "assays", "-o", folder / "out")


def test_a_reference_sheet_with_its_assays(folder, tmp_path):
    command = (*proteingym(tmp_path), "--model", folder)
    said = run(*command).stdout
    rho = {}
    for row in read_table(tmp_path / "sheet.csv"):
        items = read_variants(str(tmp_path / "assays" / row["DMS_filename"]))
        found = variants(make_pipeline(str(folder)), row["target_seq"], items)
        written = read_table(tmp_path / "out" / f"{row['DMS_id']}.csv")
        assert [float(one["masked_marginals"]) for one in written] == found.scores.tolist()
        measured = [float(one["DMS_score"]) for one in written]
        ranks = [np.argsort(np.argsort(values)) for values in (found.scores, measured)]  # no two are equal
        rho[row["DMS_id"]] = np.corrcoef(ranks)[0, 1]
        (line,) = (line for line in said.splitlines() if line.startswith(row["DMS_id"]))
        assert line.split()[1:3] == ["4", f"{rho[row['DMS_id']]:.3f}"] and line.endswith(")")
    a, b, c = rho.values()
    assert abs((a + b + c) / 3 - ((a + b) / 2 + c) / 2) > 0.001
    assert line_of("mean over assays", said) == ["12", f"{(a + b + c) / 3:.3f}"]
    means = line_of("mean over coarse_selection_type, each over UniProt_ID", said)
    assert means == ["12", f"{((a + b) / 2 + c) / 2:.3f}"]


def test_assays_that_are_scored_are_not_scored_again(folder, tmp_path, monkeypatch):
    command = (*proteingym(tmp_path), "--model", folder)
    said, first = run(*command).stdout, tmp_path / "out" / "A_2020.csv"
    before, scored = first.read_bytes(), []
    (tmp_path / "out" / "B_2022.csv").unlink()
    real = assays.variants
    monkeypatch.setattr(
        assays,
        "variants",
        lambda nlp, sequence, *rest, **how: scored.append(sequence) or real(nlp, sequence, *rest, **how),
    )
    assert run(*command).stdout == said and scored == ["MKRQIS"] and first.read_bytes() == before
    message = " ".join(run(*command, "--others", "wt", code=1).stderr.split())
    assert "A_2020.csv is there, with other --others." in message
    error = run(*command, "--precision", "bfloat16", code=1).unwrapped_stderr
    assert "A_2020.csv is there, with other --precision. Name" in error
    (tmp_path / "assays" / "A_2020.csv").write_text("mutant,DMS_score\nM1C,1\nM1D,2\n")
    assert "is there, with other `variants`" in " ".join(run(*command, code=1).stderr.split())
    run(*command, "--force")
    assert len(scored) == 4 and [row["mutant"] for row in read_table(first)] == ["M1C", "M1D"]


def test_no_table_that_is_read_is_an_output(folder, tmp_path):
    command = [*proteingym(tmp_path), "--model", folder, "--force"]
    (tmp_path / "out").mkdir()
    (tmp_path / "assays" / "A_2021.csv").rename(tmp_path / "out" / "A_2020.csv")
    sheet = (tmp_path / "sheet.csv").read_text().replace(",A_2021.csv", ",../out/A_2020.csv")
    (tmp_path / "sheet.csv").write_text(sheet)
    (tmp_path / "out" / "B_2022.csv").write_text(sheet)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.csv")}
    command[5] = tmp_path / "assays"
    assert "is the input" in run(*command, fails=True).unwrapped_stderr
    command[5] = tmp_path / "out"
    error = run(*command, fails=True).unwrapped_stderr
    assert "out/A_2020.csv' is the input" in error and "assays/../out/A_2020.csv'" in error
    command[1], command[3] = tmp_path / "out" / "B_2022.csv", tmp_path / "out" / ".." / "assays"
    error = run(*command, fails=True).unwrapped_stderr
    assert "out/B_2022.csv' is the input" in error
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.csv")} == before


def test_a_table_stays_until_the_new_one_is_complete(folder, tmp_path, monkeypatch):
    command = (*proteingym(tmp_path), "--model", folder)
    run(*command)
    second = tmp_path / "out" / "A_2021.csv"
    whole, add, calls = second.read_bytes(), KeptScores.add, []
    second.write_text("old")

    def stop(self, results, ends_batch):
        add(self, results, ends_batch)
        calls.extend([ends_batch] * ends_batch)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KeptScores, "add", stop)
        assert "are kept in" in run(*command, "--force", code=130).unwrapped_stderr
    assert second.read_text() == "old" and second.with_name("A_2021.csv.parts").exists()
    run(*command)  # goes on with the new one
    assert second.read_bytes() == whole and not list(tmp_path.rglob("*.parts"))


def test_what_is_wrong_with_an_assay_is_said_before_another_is_scored(folder, tmp_path, monkeypatch):
    command = (*proteingym(tmp_path), "--model", folder)
    last = tmp_path / "assays" / "B_2022.csv"
    table = last.read_text()
    monkeypatch.setattr(assays, "variants", None)
    for wrong, message in [
        (table.replace("DMS_score", "score"), "no column 'DMS_score'"),
        (table.replace("mutant", "variant"), "no column 'mutant'"),
        ("masked_marginals,mutant,DMS_score\n1,M1A,1\n", "have a column 'masked_marginals'"),
    ]:
        last.write_text(wrong)
        assert message in run(*command, fails=True).unwrapped_stderr
    last.write_text(table)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "B_2022.csv").write_text("mutant")
    assert "B_2022.csv is there, with other" in run(*command, fails=True).unwrapped_stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["B_2022.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["masked-marginals", "pseudo-ppl"])
@pytest.mark.parametrize("many", [False, True])
def test_a_run_that_is_stopped_goes_on(folder, tmp_path, monkeypatch, method, many):
    """The numbers are those of one run, to the last digit."""
    monkeypatch.setitem(limits.MAX_IDS, "cpu", 64)
    long = PROTEIN * (4 if method == "masked-marginals" else 1)  # more than a batch
    mutants = [f"{residue}{number}{'AC'[residue == 'A']}" for number, residue in enumerate(long, 1)]
    (tmp_path / "v.csv").write_text("id,mutant,protein\n" + "".join(f"p,{one},{long}\n" for one in mutants))
    protein = ("--protein", "id", "--sequence-column", "protein") if many else ("--sequence", long)
    command = ("variants", tmp_path / "v.csv", "--model", folder, "--method", method, *protein)
    once, out = (tmp_path / (name if many else f"{name}.csv") for name in ("once", "out"))
    run(*command, "-o", once)
    add, done = KeptScores.add, []

    def stop(self, results, ends_batch):
        add(self, results, ends_batch)
        done.extend(results)
        if ends_batch:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KeptScores, "add", stop)
        error = run(*command, "-o", out, code=130).unwrapped_stderr
    total, unit = (len(long), "sites") if method == "masked-marginals" else (len(long) + 1, "sequences")
    assert f"The scores of {len(done)} of {total} {unit} are kept in" in error and "--resume" in error
    written = out / "p.csv" if many else out
    assert 0 < len(done) < total and not written.exists()
    if not many:
        assert "unfinished run. Continue it with --resume" in run(*command, "-o", out, fails=True).unwrapped_stderr
    error = run(*command, "--mask-margin", "1", "-o", out, "--resume", fails=True).unwrapped_stderr
    assert "cannot be resumed, because this has changed" in error
    left = []
    monkeypatch.setattr(KeptScores, "add", lambda self, some, *end: left.extend(some) or add(self, some, *end))
    run(*command, "-o", out, *([] if many else ["--resume"]))
    assert len(left) == total - len(done)
    assert written.read_bytes() == (once / "p.csv" if many else once).read_bytes()
    assert not list(tmp_path.rglob("*.parts"))


def test_a_table_that_is_sorted_anew_has_its_own_scores_when_a_run_goes_on(folder, tmp_path, monkeypatch):
    """What is kept has a column for each residue. Their order was that in which the table has them."""
    monkeypatch.setitem(limits.MAX_IDS, "cpu", 64)
    mutants = [f"{residue}{number}{'GACD'[number % 4]}" for number, residue in enumerate(PROTEIN * 4, 1)]
    mutants = [one for one in mutants if one[0] != one[-1]]
    table, out, other = (tmp_path / name for name in ("v.csv", "out.csv", "other.csv"))
    command = ("variants", table, "--model", folder, "--sequence", PROTEIN * 4, "-o")
    table.write_text("\n".join(["mutant", *mutants]))
    run(*command, tmp_path / "once.csv")
    expected = {row["mutant"]: row["masked_marginals"] for row in read_table(tmp_path / "once.csv")}
    add = KeptScores.add

    def stop(self, results, ends_batch):
        add(self, results, ends_batch)
        if ends_batch:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KeptScores, "add", stop)
        assert "are kept in" in run(*command, out, code=130).unwrapped_stderr
    table.write_text("\n".join(["mutant", *mutants[::-1]]))
    run(*command, out, "--resume")
    assert {row["mutant"]: row["masked_marginals"] for row in read_table(out)} == expected
    # With a residue that was not asked for, there are other columns.
    with monkeypatch.context() as patch:
        patch.setattr(KeptScores, "add", stop)
        run(*command, other, code=130)
    table.write_text("\n".join(["mutant", f"{mutants[0][:-1]}W", *mutants[1:]]))
    assert (
        "residues: it was 'ACDFGHIKMQRSTVY', and is now"
        in run(*command, other, "--resume", fails=True).unwrapped_stderr
    )


def test_an_assay_of_which_a_column_was_corrected_is_another_one(folder, tmp_path):
    command = (*proteingym(tmp_path), "--model", folder)
    run(*command)
    assay = tmp_path / "assays" / "A_2021.csv"
    lines = assay.read_text().splitlines()
    assay.write_text("\n".join([lines[0], *(f"{line}5" for line in lines[1:])]))
    error = run(*command, fails=True).unwrapped_stderr
    assert "A_2021.csv is there, with other `variants`" in error
    run(*command, "--force")


def test_what_goes_on_must_be_named(folder):
    error = run("variants", "--model", folder, "--sequence", PROTEIN, "--resume", fails=True).unwrapped_stderr
    assert "--resume goes on with what is kept beside --output" in error


def test_a_table_with_many_proteins(folder, tmp_path):
    (tmp_path / "all.fasta").write_text(f">p1 one\n{PROTEIN}\n>p2\nMKRQIS\n")
    rows = [("p1", "M1A", PROTEIN), ("p2", "R3K", "MKRQIS"), ("p1", "K2R", PROTEIN)]
    (tmp_path / "v.csv").write_text("id,mutant,protein\n" + "".join(f"{','.join(row)}\n" for row in rows))
    common = ("variants", tmp_path / "v.csv", "--model", folder, "--protein", "id")
    run(*common, "--fasta", tmp_path / "all.fasta", "-o", tmp_path / "one")
    run(*common, "--sequence-column", "protein", "-o", tmp_path / "two")
    for name, sequence, mutants in [("p1", PROTEIN, ["M1A", "K2R"]), ("p2", "MKRQIS", ["R3K"])]:
        one, two = (read_table(tmp_path / place / f"{name}.csv") for place in ("one", "two"))
        expected = variants(make_pipeline(str(folder)), sequence, mutants).scores.tolist()
        assert one == two and [float(row["masked_marginals"]) for row in one] == expected
    (tmp_path / "all.fasta").write_text(f">p1\n{PROTEIN}\n")
    message = run(*common, "--fasta", tmp_path / "all.fasta", "-o", tmp_path / "three", code=1).stderr
    assert "v.csv, line 3: there is no sequence of 'p2'. There are: p1" in " ".join(message.split())
    (tmp_path / "v.csv").write_text("id,mutant,protein\np1,M1A,MKT\np1,M1C,MKTA\n")
    message = run(*common, "--sequence-column", "protein", "-o", tmp_path / "three", code=1).stderr
    assert "line 3: 'p1' has another sequence here than before" in " ".join(message.split())
    (tmp_path / "v.csv").write_text("id,mutant,protein\na/b,M1A,MKT\n")
    message = run(*common, "--sequence-column", "protein", "-o", tmp_path / "three", code=1).stderr
    assert "'a/b' cannot be the name" in " ".join(message.split())


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        ("DMS_id,target_seq,DMS_filename\nA,MKT,none.csv\n", "line 2: there is no file 'none.csv' in"),
        ("DMS_id,target_seq\nA,MKT\n", "line 2: there is no key 'DMS_filename'"),
        ("DMS_id,target_seq,DMS_filename\nA,MKT,A_2020.csv\nA,MKT,A_2020.csv\n", "line 3: 'A' occurs twice"),
    ],
)
def test_sheets_that_cannot_be_read(folder, tmp_path, sheet, message):
    command = proteingym(tmp_path)
    (tmp_path / "sheet.csv").write_text(sheet)
    assert message in " ".join(run(*command, "--model", folder, code=1).stderr.split())
    assert not (tmp_path / "out").exists()


def test_the_mean_is_that_of_types_of_means_of_proteins():
    def score(kind, protein, rho):
        fields = {"coarse_selection_type": kind, "UniProt_ID": protein}
        return assays.AssayScore(assays.Assay("", "", [], fields), "", rho and Estimate(rho, -1, 1))

    some = [
        score("x", "A", 0.2),
        score("x", "A", 0.4),
        score("x", "B", 0.7),
        score("y", "A", 0.9),
        score("z", "C", None),
    ]
    assert assays.mean_correlation(some, assays.GROUPED_BY) == pytest.approx(((0.3 + 0.7) / 2 + 0.9) / 2)
    assert assays.mean_correlation(some) == pytest.approx(0.55)


def rho_of(said):
    """Of each assay."""
    return re.findall(r"(-?\d\.\d{3}) \(", said)


def line_of(group, said):
    (line,) = (line for line in said.splitlines() if line.startswith(f"{group}  "))
    return line.removeprefix(group).split()


MUTANTS, EFFECTS = ["M1A", "K2R:Q22A", "T3W", "A4G"], ["0.5", "1.25", "-2.125", "0.75"]


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("mutant;pH;DMS_score", [f"{{}};7,{n};{one}" for n, one in enumerate(EFFECTS)]),  # points beside commas
        ("mutant;pH;DMS_score", [f"{{}};7,{n};{int(8 * float(one))}" for n, one in enumerate(EFFECTS)]),
        ("mutant;DMS_score", [f"{{}};{one.replace('.', ',')}" for one in EFFECTS]),
        ("mutant;pH, measured;DMS_score", [f"{{}};7,{n};{one.replace('.', ',')}" for n, one in enumerate(EFFECTS)]),
        ("mutant,pH,DMS_score", [f'{{}},"7,{n}",{int(8 * float(one))}' for n, one in enumerate(EFFECTS)]),
        ("mutant,DMS_score", [f"{{}}, {one} " for one in EFFECTS]),
        ("mutant,note,DMS_score", [f'{{}},"a, ""b""\n{n}",{one}' for n, one in enumerate(EFFECTS)]),
    ],
)
def test_a_table_of_scores_is_read_as_it_was_written(folder, tmp_path, header, rows):
    """Else all would be scored, and then the run would end, each time."""
    command = (*proteingym(tmp_path), "--model", folder, "--method", "wt-marginals")
    (tmp_path / "assays" / "A_2020.csv").write_text(
        "\n".join(["mutant,DMS_score", *map(",".join, zip(MUTANTS, EFFECTS)), ""])
    )
    expected = rho_of(run(*command).stdout)
    lines = [row.format(mutant) for row, mutant in zip(rows, MUTANTS)]
    (tmp_path / "assays" / "A_2020.csv").write_text("\n".join([header, *lines, ""]))
    more = ("--delimiter", ";") if "," in header and ";" in header else ()
    if more:  # all files of a run are read with the same options
        for path in [tmp_path / "sheet.csv", *(tmp_path / "assays").glob("[AB]_202[12].csv")]:
            path.write_text(path.read_text().replace(",", ";"))
    for options in (("--force",), ()):
        assert rho_of(run(*command, *more, *options).stdout) == expected


@pytest.mark.parametrize("values", [[True, False, True, None], [0.5, 10**20, -1, None], [0.5, 1.25, -2.125, 0.75]])
def test_measured_effects_of_other_formats_are_compared_each_time(folder, tmp_path, values):
    """What CSV has in their place, such as true, need not be read as a number."""
    command = (*proteingym(tmp_path), "--model", folder, "--method", "wt-marginals", "--measured", "dms")
    (tmp_path / "sheet.csv").write_text("\n".join((tmp_path / "sheet.csv").read_text().split("\n")[:2]))
    sheet = (tmp_path / "sheet.csv").read_text().replace("A_2020.csv", "A_2020.jsonl")
    (tmp_path / "sheet.csv").write_text(sheet)
    rows = [{"mutant": mutant, "dms": value} for mutant, value in zip(MUTANTS, values)]
    write_jsonl(tmp_path / "assays" / "A_2020.jsonl", *rows)
    first, second = (rho_of(run(*command).stdout) for _ in range(2))
    items = read_variants(str(tmp_path / "assays" / "A_2020.jsonl"))
    found = variants(make_pipeline(str(folder)), PROTEIN, items, method="wt-marginals").correlation("dms")
    assert first == second == [f"{found.value:.3f}"]


def test_a_table_whose_order_was_changed_is_compared_with_its_own_effects(folder, tmp_path):
    command = (*proteingym(tmp_path), "--model", folder)
    before, table = rho_of(run(*command).stdout), tmp_path / "out" / "A_2020.csv"
    header, *rows = table.read_text().splitlines()
    table.write_text("\n".join([header, *sorted(rows, reverse=True), ""]))
    assert rho_of(run(*command).stdout) == before


def test_a_row_that_does_not_fit_costs_no_other_assay(folder, tmp_path):
    command = (*proteingym(tmp_path), "--model", folder)
    last = tmp_path / "assays" / "B_2022.csv"
    last.write_text(last.read_text().replace("K2R", "K3R"))
    assert "B_2022.csv, line 3: 'K3R' does not fit the sequence" in run(*command, fails=True).unwrapped_stderr
    assert {path.name for path in (tmp_path / "out").glob("*.csv")} == {"A_2020.csv", "A_2021.csv"}


def test_the_manifest_names_what_the_page_says_and_gives_the_scores(folder, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "proteins.md").read_text(encoding="utf8")
    (tmp_path / "v.csv").write_text("change;dms\nM6A;1\nK7R:Q27A;2\nT8W;3\n")
    settings = {"method": "masked-marginals", "others": "mut", "offset": 6, "u_as_t": False}
    read = {"column": "change", "measured": "dms", "delimiter": ";"}
    flags = [f"--{name}={value}" for name, value in {**settings, **read}.items() if value is not False]
    how = ("--sequence", PROTEIN, "--mask-margin", "1", "--model", folder)
    run("variants", tmp_path / "v.csv", *how, *flags, "-o", tmp_path / "o.csv")
    manifest = json.loads((tmp_path / "o.csv.manifest.json").read_text())
    assert manifest["run"] == settings and manifest["sequence"] == PROTEIN and manifest["mask_margin"] == 1
    assert {name: manifest["outputs"][name] for name in read} == read
    for name in ("method", "others", "offset", "u-as-t", "measured", "column", "mask-margin"):
        assert f"--{name}" in page
    nlp = make_pipeline(manifest["model"], mask_margin=manifest["mask_margin"], lang=manifest["lang"])
    with open(tmp_path / "v.csv", newline="") as file:
        rows = [*csv.DictReader(file, delimiter=manifest["outputs"]["delimiter"])]
    changes = [row[manifest["outputs"]["column"]] for row in rows]
    found = variants(nlp, manifest["sequence"], changes, **manifest["run"])
    with open(tmp_path / "o.csv", newline="") as file:
        scores = [float(row["masked_marginals"]) for row in csv.DictReader(file, delimiter=",")]
    assert scores == pytest.approx(found.scores.tolist(), abs=1e-4)


def test_what_is_beside_a_table_of_an_assay_names_all_settings(folder, tmp_path):
    (tmp_path / "v.csv").write_text(f"gene,mutant,protein\na,M1A,{PROTEIN}\n")
    many = ("--protein", "gene", "--sequence-column", "protein", "--output", tmp_path / "out")
    run(
        "variants",
        tmp_path / "v.csv",
        *many,
        "--others",
        "wt",
        "--offset",
        "1",
        "--mask-margin",
        "1",
        "--model",
        folder,
    )
    said = json.loads((tmp_path / "out" / "a.json").read_text())
    assert said.keys() >= {"model", "code", "precision", "method", "variants", "u_as_t"}
    assert (said["others"], said["offset"], said["mask_margin"], said["sequence"]) == ("wt", 1, 1, PROTEIN)
