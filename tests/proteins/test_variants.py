import math
import random
from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import spacy
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from spacy_pll import InputError, PLLError, Variant, make_pipeline, read_fasta, read_variants, variants
from spacy_pll.proteins.assays import Assay, score_assays
from spacy_pll.proteins.variants import AMINO_ACIDS, measured_effects
from spacy_pll.stream.known import KeptScores

from ..conftest import UNCHANGED, build_transformer
from ..protein_models import PROTEIN, esm_tokenizer, save_protein_model, spaced_tokenizer
from ..reference import predict

MUTANTS = ["M1A", "K2R:Q22A", "T3W:A4G:Y5F", "R21K", "A7A"]
METHODS = ["masked-marginals", "wt-marginals", "pseudo-ppl"]
OTHERS = ["mask", "wt", "mut", "match"]


@pytest.fixture(scope="module")
def protein_models(tmp_path_factory):
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in ("esm", "bert")}
    UNCHANGED.update(map(str, folders.values()))
    return {kind: (folder, *save_protein_model(folder, kind)) for kind, folder in folders.items()}


class BruteForce:
    """One forward pass for each question, with the tokenizer of transformers."""

    def __init__(self, model, sequence, size=None):
        _, self.transformer, self.tokenizer = model
        self.sequence, self.size = sequence, size or len(sequence)

    def read(self, letters):
        spaced = " ".join(letters) if self.tokenizer.is_fast else letters
        return self.tokenizer(spaced)["input_ids"]

    def window(self, site, n):
        """A quarter of a window apart; the one in which the site is nearest to the middle."""
        starts = [start for start in range(0, n, max(1, self.size // 4)) if start <= n - self.size]
        starts.append(max(0, n - self.size))
        wanted = site - self.size // 2
        if wanted >= n - self.size:
            return starts[-1]
        return min(starts, key=lambda start: (abs(start - wanted), -start))

    def log_probs(self, letters, site, masked):
        """By residue, at a site, in the window around it."""
        start = self.window(site, len(letters))
        ids = self.read(letters[start : start + self.size])
        for other in masked:
            if 0 <= other - start < self.size:
                ids[1 + other - start] = self.tokenizer.mask_token_id
        row = predict(self.transformer, tuple(ids))[1 + site - start]
        return {letter: row[self.read(letter)[1]].item() for letter in AMINO_ACIDS}

    def score(self, mutant, method, others="mask"):
        parts = [(part[0], int(part[1:-1]) - 1, part[-1]) for part in mutant.split(":")]
        sites = [site for _, site, _ in parts]
        variant = list(self.sequence)
        for _, site, residue in parts:
            variant[site] = residue
        if method == "pseudo-ppl":
            return self.sum("".join(variant)) - self.sum(self.sequence)
        total = 0.0
        for wild_type, site, residue in parts:
            masked = [] if method == "wt-marginals" else sites if others == "mask" else [site]
            changed = method == "masked-marginals" and others in ("mut", "match")
            total += self.log_probs("".join(variant) if changed else self.sequence, site, masked)[residue]
            unchanged = not changed or others == "match"
            total -= self.log_probs(self.sequence if unchanged else "".join(variant), site, masked)[wild_type]
        return total

    def sum(self, letters):
        return sum(self.log_probs(letters, i, [i])[letter] for i, letter in enumerate(letters))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "others"), [*((method, "mask") for method in METHODS), *(("masked-marginals", one) for one in OTHERS)]
)
@pytest.mark.parametrize("kind", ["esm", "bert"])
def test_scores_are_those_of_a_brute_force(protein_models, kind, method, others):
    nlp = make_pipeline(str(protein_models[kind][0]))
    found = variants(nlp, PROTEIN, MUTANTS, method=method, others=others)
    slow = BruteForce(protein_models[kind], PROTEIN)
    expected = [slow.score(mutant, method, others) for mutant in MUTANTS]
    np.testing.assert_allclose(found.scores, expected, atol=1e-4)
    assert found.scores[-1] == 0 and np.abs(found.scores[:-1]).min() > 0.01


@pytest.mark.parametrize("kind", ["esm", "bert"])
def test_whole_sequences_are_compared_by_pseudo_perplexity(protein_models, kind):
    """Also with insertions and deletions, and beside substitutions."""
    nlp = make_pipeline(str(protein_models[kind][0]))
    slow, whole = BruteForce(protein_models[kind], PROTEIN, 30), [PROTEIN[:5] + "GG" + PROTEIN[5:], PROTEIN[:-3], "MKT"]
    expected = [slow.sum(one) - slow.sum(PROTEIN) for one in whole] + [slow.score("M1A", "pseudo-ppl")]
    found = variants(nlp, PROTEIN, [*whole, "M1A"], method="pseudo-ppl")
    np.testing.assert_allclose(found.scores, expected, atol=1e-4)
    for mutant, message in [("MKJT", "the model does not know 'J'"), ("MKXT", "'X' stands for any amino|not know 'X'")]:
        with pytest.raises(InputError, match=message):
            variants(nlp, PROTEIN, [mutant], method="pseudo-ppl")
    with pytest.raises(InputError, match="is no substitution. It has no number: .*`method='pseudo-ppl'`"):
        variants(nlp, PROTEIN, [whole[0]])


@pytest.mark.parametrize("method", METHODS)
def test_rna_under_a_model_of_dna(method, tmp_path):
    tokenizer = letters("ACGTN")
    nlp = make_pipeline((build_transformer("bert", tokenizer), tokenizer))
    rna, mutants = "ACGUUGCA", ["U4G", "A1U:U5C"]
    found = variants(nlp, rna, mutants, method=method, u_as_t=True)
    dna = variants(nlp, rna.replace("U", "T"), [one.replace("U", "T") for one in mutants], method=method)
    assert (found.scores == dna.scores).all() and [row["mutant"] for row in found.rows()] == mutants
    with pytest.raises(InputError, match="does not know 'U'"):
        variants(nlp, rna, mutants, method=method)
    for _ in range(2):  # what is written beside the first table is what the second run reads
        [one] = score_assays(nlp, [Assay("x", rna, found.variants)], tmp_path, method=method, u_as_t=True)
    assert one.path.read_text().startswith("mutant,")


@pytest.mark.parametrize(
    ("alphabet", "sequence", "u_as_t", "expected"),
    [
        ("ACGTN", "ACGTTGCA", False, "ACGT"),
        ("ACGTN", "ACGUUGCA", True, "ACGU"),
        ("ACGUNRY", "ACGUUGCA", False, "ACGU"),
        ("ACGTU", "ACGUUGCA", False, "ACGU"),
        (AMINO_ACIDS, "ACGTTGCA", False, AMINO_ACIDS),
        ("acgtn", "acgttgca", False, "acgt"),
        ("ACGTacgt", "acgttgca", False, "acgt"),
    ],
)
def test_all_single_substitutions_by_the_letters_of_the_model(alphabet, sequence, u_as_t, expected):
    """Under a model of nucleotides the three others, and none by a letter that stands for several."""
    tokenizer = letters(alphabet)
    model = build_transformer("bert", tokenizer)
    found = variants(make_pipeline((model, tokenizer)), sequence, u_as_t=u_as_t)
    names = [f"{own}{i}{other}" for i, own in enumerate(sequence, 1) for other in expected if other != own]
    assert [row["mutant"] for row in found.rows()] == names
    ids = tokenizer(sequence.replace("U", "T") if u_as_t else sequence)["input_ids"]
    for name, score in zip(names, found.scores):
        i, other = int(name[1:-1]), name[-1]
        masked = [tokenizer.mask_token_id if j == i else one for j, one in enumerate(ids)]
        row, piece = predict(model, tuple(masked))[i], "T" if u_as_t and other == "U" else other
        assert score == pytest.approx(float(row[tokenizer.convert_tokens_to_ids(piece)] - row[ids[i]]), abs=1e-4)
    assert found.matrix().shape == (len(expected), 8) and np.isnan(found.matrix()).sum() == 8
    [axes, _] = found.plot().axes
    assert "".join(one.get_text() for one in axes.get_yticklabels()) == expected
    assert len(axes.get_lines()[0].get_xdata()) == 8  # dots


def test_letters_that_stand_for_several_nucleotides():
    tokenizer = letters("ACGTNR")
    nlp = make_pipeline((build_transformer("bert", tokenizer), tokenizer))
    with pytest.warns(UserWarning, match="2 of 5 letters .*such as N2"):
        assert len(variants(nlp, "ANGRT").scores) == 3 * 3
    with pytest.raises(InputError, match="'A1R': 'R' stands for A or G"):
        variants(nlp, "ACGT", ["A1R"])


def test_what_is_seen_at_other_sites_matters_for_several_substitutions_alone(protein_models):
    nlp = make_pipeline(str(protein_models["esm"][0]))
    found = np.array([variants(nlp, PROTEIN, MUTANTS, others=one).scores for one in OTHERS])
    for i, mutant in enumerate(MUTANTS):
        gaps = np.abs(found[:, None, i] - found[None, :, i])[np.triu_indices(len(OTHERS), 1)]
        assert (gaps > 1e-3).all() if ":" in mutant else (gaps < 1e-5).all()


@pytest.mark.parametrize(
    ("method", "others"), [("masked-marginals", "mask"), ("masked-marginals", "match"), ("wt-marginals", "mask")]
)
def test_a_long_protein_is_read_around_each_site(tmp_path, method, others):
    """Also where the sites of a variant are further apart than the model reads, or than a metric gets at once."""
    model = (tmp_path, *save_protein_model(tmp_path, "bert", positions=14))
    draw = random.Random(1)
    sequence = "".join(draw.choices(AMINO_ACIDS, k=30))
    mutants = [f"{sequence[i]}{i + 1}{draw.choice(AMINO_ACIDS)}" for i in (0, 1, 9, 11, 15, 24, 29)]
    mutants += [":".join(mutants[:3]), ":".join((mutants[0], mutants[-1])), ":".join(mutants)]
    found = variants(make_pipeline(str(tmp_path)), sequence, mutants, method=method, others=others)
    slow = BruteForce(model, sequence, size=12)
    np.testing.assert_allclose(found.scores, [slow.score(one, method, others) for one in mutants], atol=1e-4)


def test_sites_far_apart_are_masked_together(tmp_path):
    """Metrics are given at most 256 pieces of a context."""
    model = (tmp_path, *save_protein_model(tmp_path, "bert", positions=400))
    sequence = PROTEIN * 15
    mutants = ["M1A:Q330A", "K2A:M45A:M309A"]
    found = variants(make_pipeline(str(tmp_path)), sequence, mutants)
    slow = BruteForce(model, sequence)
    np.testing.assert_allclose(found.scores, [slow.score(one, "masked-marginals") for one in mutants], atol=1e-4)


def test_all_single_substitutions(protein_models):
    """In whatever batches they are read."""
    nlp = make_pipeline(str(protein_models["bert"][0]))
    found = variants(nlp, PROTEIN, offset=-3)
    rows = list(found.rows())
    assert len(rows) == 19 * len(PROTEIN)
    assert rows[0] == {"mutant": "M-3G", "position": -3, "wild_type": "M", "residue": "G",
                       "masked_marginals": found.scores[0]}  # fmt: skip
    names = [row["mutant"] for row in rows]
    assert (variants(nlp, PROTEIN, names, offset=-3).scores == found.scores).all()
    matrix = found.matrix()
    assert matrix.shape == (20, len(PROTEIN)) and np.isnan(matrix).sum() == len(PROTEIN)
    assert matrix[AMINO_ACIDS.index("W"), 2] == found.scores[names.index("T-1W")]
    several, model = ["M1A:K2R", "T3W:A4G", *MUTANTS], nlp.get_pipe("pll").model
    together = variants(nlp, PROTEIN, several).scores
    model.loaded = replace(model.loaded, ids_at_once=1)
    np.testing.assert_allclose(variants(nlp, PROTEIN, several).scores, together, atol=1e-5)


def test_batches_do_not_depend_on_where_a_run_was_stopped(protein_models, monkeypatch):
    """Also on a GPU, where they grow."""
    nlp, ends = make_pipeline(str(protein_models["bert"][0])), []

    def each(self, find, n, **more):
        for done in (0, 4):
            ends.append([number for number, (_, is_last) in enumerate(find(done), done + 1) if is_last])
        return [0.0] * n

    model = nlp.get_pipe("pll").model
    model.loaded = replace(model.load(), on_gpu=True)
    monkeypatch.setattr("spacy_pll.prediction.batches.GPU_DOCS", (4, 32))
    monkeypatch.setattr("spacy_pll.proteins.residues.BATCH_SIZE", 4)
    monkeypatch.setattr(KeptScores, "each", each)
    variants(nlp, PROTEIN, [f"M1{residue}" for residue in "ACDEFGHIKLNPQR"], method="pseudo-ppl")
    assert ends == [[4, 12, 15], [12, 15]]


def test_a_column_of_a_data_frame(protein_models):
    pd = pytest.importorskip("pandas")
    nlp = make_pipeline(str(protein_models["bert"][0]))
    expected = variants(nlp, PROTEIN, MUTANTS).scores
    for column in (pd.Series(MUTANTS), np.array(MUTANTS), iter(MUTANTS)):
        assert (variants(nlp, PROTEIN, column).scores == expected).all()


def test_a_table_keeps_its_columns(protein_models, tmp_path):
    """Also if another one than that of the substitutions is called mutant."""
    path = tmp_path / "variants.csv"
    path.write_text("id,mutant,hgvs\n1,wild,M1A\n2,tame,K2R\n")
    found = variants(make_pipeline(str(protein_models["bert"][0])), PROTEIN, read_variants(str(path), "hgvs"))
    assert list(found.rows())[1] == {"id": "2", "mutant": "tame", "hgvs": "K2R", "masked_marginals": found.scores[1]}


@pytest.mark.parametrize("method", METHODS)
def test_scores_that_are_not_finite_are_an_error(protein_models, method):
    """Found by none of the trials, in which the piece does not occur."""
    transformer, tokenizer = (deepcopy(part) for part in protein_models["esm"][1:])
    nlp = make_pipeline((transformer, tokenizer))
    scored = nlp.get_pipe("pll").model.loaded.checkpoint.transformer
    with torch.no_grad():
        scored.lm_head.bias[tokenizer.get_vocab()["L"]] = -torch.inf
    with pytest.raises(ValueError, match="some log-probabilities are not finite"):
        variants(nlp, PROTEIN, ["M1L"], method=method)


def test_long_proteins_take_few_passes_if_nothing_is_masked(tmp_path):
    save_protein_model(tmp_path, "bert", positions=42)
    nlp = make_pipeline(str(tmp_path))
    sequence, rows = PROTEIN * 10, []
    model = nlp.get_pipe("pll").model
    submit = model.submit
    model.submit = lambda batches: submit([rows.append(len(batch.ids)) or batch for batch in batches])
    variants(nlp, sequence, method="wt-marginals")
    assert sum(rows) <= 4 * len(sequence) / 40 + 1


def test_the_settings_of_the_pipeline(protein_models):
    """A margin is taken over. What texts are scored with is not."""
    folder = str(protein_models["bert"][0])
    exact, near = (variants(make_pipeline(folder, mask_margin=one), PROTEIN, MUTANTS).scores for one in (None, 0))
    whole = variants(make_pipeline(folder, mask_margin=100), PROTEIN, MUTANTS).scores
    np.testing.assert_allclose(whole, exact, atol=1e-5)
    assert np.abs(near - exact).max() > 1e-3
    nothing = [make_pipeline(folder, mask_margin=one) for one in (None, 0)]
    without, with_margin = (variants(nlp, PROTEIN, MUTANTS, method="wt-marginals").scores for nlp in nothing)
    assert (without == with_margin).all()  # where nothing is masked, it has no effect
    others = make_pipeline(folder, ["whole_word"], words="whitespace", mask_spacing=2, targets="none")
    assert (variants(others, PROTEIN, MUTANTS).scores == exact).all()


def test_the_picture(protein_models):
    nlp = make_pipeline(str(protein_models["bert"][0]))
    figure = variants(nlp, PROTEIN, offset=10).plot()
    (image,) = figure.axes[0].images
    assert image.get_array().shape == (20, len(PROTEIN)) and image.get_extent()[:2] == [9.5, 31.5]
    (dots,) = figure.axes[0].lines
    assert [AMINO_ACIDS[int(y)] for y in dots.get_ydata()] == list(PROTEIN)
    for mutant in ("M1A:K2R", "M1U"):
        with pytest.raises(ValueError, match="single substitutions by one of the 20"):
            variants(make_pipeline(str(protein_models["esm"][0])), PROTEIN, [mutant]).plot()
    # U is selenocysteine, not T.
    axes = variants(make_pipeline(str(protein_models["esm"][0])), "UUT", ["U1A"]).plot().axes[0]
    assert "".join(one.get_text() for one in axes.get_yticklabels()) == AMINO_ACIDS
    assert axes.lines[0].get_ydata().tolist() == [AMINO_ACIDS.index("T")]


@pytest.mark.parametrize("cell", ["", " ", "NA", "N/A", "#N/A", "NaN", "<NA>", "n/a", "null", "None", " NA "])
@pytest.mark.parametrize("how", [{}, {"na_as_text": True}])
def test_a_measured_effect_that_is_missing(tmp_path, cell, how):
    """It is no text, whatever NA is in other columns."""
    (tmp_path / "v.csv").write_text(f"mutant,dms\nK2A,0.4\nT3W,{cell}\n")
    items = read_variants(str(tmp_path / "v.csv"), **how)
    assert measured_effects(items, "dms").tolist() == pytest.approx([0.4, math.nan], nan_ok=True)
    assert items[1].fields["dms"] == cell


def test_measured_effects_with_a_decimal_comma(tmp_path):
    (tmp_path / "v.csv").write_text("mutant;dms;n\nK2A;0,4;0,4\nT3W;-1,125;1.5\n")
    items = read_variants(str(tmp_path / "v.csv"))
    assert measured_effects(items, "dms").tolist() == [0.4, -1.125]
    with pytest.raises(InputError, match="line 2: 'n' .*It is '0,4'"):  # and not 1.5 and 0.4
        measured_effects(items, "n")


def test_the_correlation_with_what_was_measured(protein_models):
    nlp = make_pipeline(str(protein_models["bert"][0]))
    scores = variants(nlp, PROTEIN, MUTANTS).scores
    items = [Variant(name, {"dms": score**3}) for name, score in zip(MUTANTS, scores.tolist())]
    assert variants(nlp, PROTEIN, items).correlation("dms").value == pytest.approx(1)
    left_out = [*items, Variant("M1C", {"dms": None}), Variant("M1D", {"dms": ""}), Variant("M1E", {"dms": "NA"})]
    assert variants(nlp, PROTEIN, left_out).correlation("dms").value == pytest.approx(1)
    with pytest.raises(InputError, match="Variant 1: .* no column 'x'.*'dms'"):
        variants(nlp, PROTEIN, items).correlation("x")
    with pytest.raises(InputError, match="line 6: 'dms' .*It is 'high'"):
        variants(nlp, PROTEIN, [*items, Variant("M1C", {"dms": "high"}, "line 6")]).correlation("dms")
    for missing in (None, "NA"):
        with pytest.raises(InputError, match="No variant has a number .*'dms'"):
            variants(nlp, PROTEIN, [Variant("M1C", {"dms": missing})]).correlation("dms")
    with pytest.raises(ValueError, match="have a column 'wt_marginals'.*Rename it"):
        variants(nlp, PROTEIN, [Variant("M1C", {"wt_marginals": 1})], method="wt-marginals")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "message"),
    [
        ("M1", "Variant 2: 'M1' is no substitution. Write the residue of the sequence, its number"),
        ("M1A K2R", "is no substitution"),
        ("", "Variant 2: '' is no substitution"),
        ("A24G", "'A24G' is outside of the sequence, whose residues have the numbers 1 to 22"),
        ("M0A", "is outside of the sequence"),
        ("K1A", "'K1A' does not fit the sequence, which has 'M' as residue 1"),
        ("M1A:M1G", "'M1A:M1G' has two substitutions of residue 1"),
        ("M1J", "Variant 2, 'M1J': the model does not know 'J' as a residue. Leave it out"),
        ("M1a", "the model does not know 'a' as a residue. Write 'A'"),
        ("m1a", "'m1a' does not fit the sequence, which has 'M' as residue 1. The case of letters counts: write M1A"),
        ("M1X", "Variant 2, 'M1X': 'X' stands for any amino acid, .*Name one residue, or leave this variant out"),
        ("K2B", "'B' stands for aspartic acid or asparagine"),
    ],
)
def test_variants_that_cannot_be_scored(protein_models, mutant, message):
    with pytest.raises(InputError, match=message):
        variants(make_pipeline(str(protein_models["esm"][0])), PROTEIN, ["M1A", mutant])


@pytest.mark.parametrize("method", ["masked-marginals", "pseudo-ppl"])
def test_the_name_of_the_sequence_is_no_sequence(protein_models, method):
    """W and T are amino acids."""
    with pytest.raises(InputError, match="Variant 2: 'WT' is no substitution"):
        variants(make_pipeline(str(protein_models["esm"][0])), PROTEIN, ["M1A", "WT"], method=method)


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        ("", "must be letters alone. It is empty"),
        ("MKT AY", "must be letters alone. It has ' '"),
        ("MKTJAY", "Letter 4 of the sequence: the model does not know 'J'"),
        ("MKtAY", "Letter 3 of the sequence: the model does not know 't' as a residue. Write 'T'"),
    ],
)
@pytest.mark.parametrize("kind", ["esm", "bert"])
def test_sequences_that_cannot_be_read(protein_models, kind, sequence, message):
    with pytest.raises(InputError, match=message):
        variants(make_pipeline(str(protein_models[kind][0])), sequence)


def letters(alphabet, unknown="[UNK]", **more):
    """A tokenizer that makes a wordpiece of each letter, without white space. Unknown neighbours may be one piece."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = {piece: i for i, piece in enumerate([*special, *alphabet])}
    made = Tokenizer(models.BPE(pieces, [], unk_token=unknown, **more))
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special))
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


def one_by_one(alphabet):
    tokenizer = letters(alphabet)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    return tokenizer


@pytest.mark.parametrize(
    "make",
    [
        letters,
        one_by_one,
        partial(letters, fuse_unk=True),
        partial(letters, unknown=None),  # leaves out what it does not know
        lambda alphabet: spaced_tokenizer(),
        None,
    ],
)
def test_a_residue_that_the_model_does_not_know_under_every_tokenizer(make, tmp_path):
    tokenizer = make(AMINO_ACIDS) if make else esm_tokenizer(tmp_path)
    nlp = make_pipeline((build_transformer("bert", tokenizer), tokenizer))
    assert len(variants(nlp, PROTEIN, MUTANTS).scores) == len(MUTANTS)
    for sequence, message in [
        ("MKTJYIAK", "Letter 4 of the sequence: the model does not know 'J'"),
        ("MKTJJJYI", "Letter 4 of the sequence: the model does not know 'J'"),
        ("ggatccat", "Letter 1 of the sequence: the model does not know 'g' as a residue. Write 'G'"),
    ]:
        with pytest.raises(InputError, match=message):
            variants(nlp, sequence, ["M1A"] if sequence[0] == "M" else ["g1a"])


@pytest.mark.parametrize("method", METHODS)
def test_letters_that_stand_for_several_amino_acids_are_context(protein_models, method):
    nlp, sequence = make_pipeline(str(protein_models["esm"][0])), "MKTXYIABQR"
    with pytest.warns(UserWarning, match="2 of 10 letters of the sequence .* such as X4"):
        found = variants(nlp, sequence, ["M1A", "Y5F"], method=method)
    slow = BruteForce(protein_models["esm"], sequence)
    slow.log_probs = partial(with_all_letters, slow)
    np.testing.assert_allclose(found.scores, [slow.score(one, method) for one in ("M1A", "Y5F")], atol=1e-4)
    with pytest.warns(UserWarning, match="letters of the sequence"):
        assert len(variants(nlp, sequence).scores) == 8 * 19
    with pytest.raises(InputError, match="'X4A': 'X' stands for any amino acid"), pytest.warns(UserWarning):
        variants(nlp, sequence, ["X4A"])


def with_all_letters(slow, text, site, masked):
    ids = slow.read(text)
    for other in masked:
        ids[1 + other] = slow.tokenizer.mask_token_id
    row = predict(slow.transformer, tuple(ids))[1 + site]
    return {letter: row[slow.read(letter)[1]].item() for letter in AMINO_ACIDS + "XB"}


def test_models_that_cannot_score_variants(make_nlp, protein_models):
    with pytest.raises(PLLError, match="each residue. Give a model of proteins"):
        variants(make_nlp("roberta"), "thetraveler")
    with pytest.raises(PLLError, match="tokenizer of the built-in model does not"):
        variants(make_pipeline(), PROTEIN)
    nlp = spacy.blank("en")
    with pytest.raises(ValueError, match="pll"):
        variants(nlp, PROTEIN)
    nlp = make_pipeline(str(protein_models["esm"][0]))
    with pytest.raises(ValueError, match="`method` must be masked-marginals .*It is 'x'"):
        variants(nlp, PROTEIN, method="x")
    with pytest.raises(ValueError, match="`others` must be .*match. It is 'all'"):
        variants(nlp, PROTEIN, others="all")
    with pytest.raises(InputError, match="There is no variant"):
        variants(nlp, PROTEIN, [])
    with pytest.raises(InputError, match=r"`mutants` must be a list .*It is 'M1A'"):
        variants(nlp, PROTEIN, "M1A")


def test_files_of_sequences(tmp_path):
    path = tmp_path / "protein.fasta"

    def read(text):
        path.write_bytes(text.encode())
        return read_fasta(str(path))

    assert read(">sp|P1 a protein\r\nMKT\r\nAY \r\n\r\n") == read("\ufeff>x\nMKTAY") == "MKTAY"
    for text, message in [
        ("", "There is no sequence in"),
        (">x\nMKT\n>x a\nMK\n", "line 3: a second sequence with the name 'x'"),
        (">x\n", "There is no sequence 'x' in"),
        ("MKT\n", "line 1: a FASTA file begins with '>' and a name. It is 'MKT'"),
        (">x\nMKT\n>y\nMK\n", "has a second sequence, 'y'"),
        (">x\u2028BC\n", "There is no sequence 'x' in"),
        (">x\nMKT\nMK T\n", "line 3: ' ' is no residue"),
        (">x\nMkT\n", "line 2: 'k' is no residue. Write capital letters alone"),
        (">x\nMK-T*\n", "line 2: '-' is no residue"),
    ]:
        with pytest.raises(InputError, match=message):
            read(text)
    with pytest.raises(InputError, match="There is no file 'none.fasta'"):
        read_fasta("none.fasta")


def test_files_of_variants(tmp_path):
    path = tmp_path / "variants.csv"
    path.write_text("variant,DMS_score\nM1A,1.5\nK2R:Q22A,\n")
    found = read_variants(str(path), "variant")
    assert [one.mutant for one in found] == ["M1A", "K2R:Q22A"] and found[0].place.endswith("variants.csv, line 2")
    assert dict(found[0].fields) == {"variant": "M1A", "DMS_score": "1.5"}
    with pytest.raises(InputError, match=r"variants.csv, line 2: there is no column 'mutant'"):
        read_variants(str(path))
    path.write_text("mutant\n")
    with pytest.raises(InputError, match="There is no variant in"):
        read_variants(str(path))
