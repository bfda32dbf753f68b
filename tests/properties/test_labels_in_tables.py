"""White space at the ends of labels, ids and groups changes no group, wherever they are used."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import read_choices, read_pairs, read_suite, read_variants
from spacy_pll.evaluation.intervals import Estimate
from spacy_pll.evaluation.items import levels, sample_items
from spacy_pll.evaluation.measurements import accuracies
from spacy_pll.evaluation.perplexity import Window, window_measurements
from spacy_pll.evaluation.slots import read_slots
from spacy_pll.evaluation.word_means import WordGroups
from spacy_pll.proteins.assays import AssayScore, divide_by_protein, mean_correlation, read_assays
from spacy_pll.tables.word_rows import texts_of_rows

from ..conftest import write_jsonl
from ..corpus.reading import write_table
from ..protein_models import PROTEIN

GROUPS = ("a", "b", "a", "1", "b", "1", "NA", "", "a", "-1")
GOOD, BAD = "The cats sleep.", "The cats sleeps."


def shown(by_columns):
    return {columns: [(one.name, one.values, one.members) for one in groups] for columns, groups in by_columns.items()}


def written(folder, rows, ending=".csv"):
    path = folder / f"table{ending}"
    write_jsonl(path, *rows) if ending == ".jsonl" else write_table(path, rows)
    return str(path)


def groups_of_pairs(pad, folder):
    rows = [{"good": GOOD, "bad": BAD, "kind": pad(kind), "part": pad("x")} for kind in GROUPS]
    pairs = read_pairs(written(folder, rows))
    found = accuracies(pairs, {"m": np.linspace(0, 1, len(pairs))}, ["kind", "part"])
    return shown(levels(pairs, ["kind", "part"])), found, len(sample_items(pairs, 1, ["kind"]))


def known_columns_of_pairs(pad, folder):
    rows = [{"good": GOOD, "bad": BAD, "linguistics_term": pad(kind[:1]), "UID": pad(kind)} for kind in GROUPS]
    pairs = read_pairs(written(folder, rows))
    return [(pair.phenomenon, pair.paradigm) for pair in pairs], shown(levels(pairs))


def pairs_of_rows(pad, folder):
    """Good and bad sentences of the same item, in rows of their own."""
    rows = [
        {"s": f"{item} {is_good}", "l": pad(is_good), "item": pad(item), "kind": pad(item[-1:])}
        for is_good in ("ok", "no")
        for item in ("1", "2", "11")
    ]
    pairs = read_pairs(written(folder, rows), sentence="s", label="l=ok", item=["item"])
    return [pair[:2] for pair in pairs], shown(levels(pairs, ["item", "kind"]))


def labels_of_choices(pad, folder):
    rows = [{"one": f"{n} left", "two": f"{n} right", "label": pad(one)} for n, one in enumerate(("one", "two", "one"))]
    letters = [{**row, "label": pad(one)} for row, one in zip(rows, "ABB")]
    texts = [{**row, "label": pad(f"{n} right")} for n, row in enumerate(rows)]
    return [
        [choice.right for choice in read_choices(written(folder, some), options=["one", "two"])]
        for some in (rows, letters, texts)
    ]


def labels_of_sentences(pad, folder):
    for name, labels in (("", ("1", "0", "1")), ("label=ok", ("ok", "*", "ok")), ("label= ok", ("ok", "no", "ok"))):
        rows = [{"sentence": f"{n}.", "label": pad(one)} for n, one in enumerate(labels)]
        yield read_suite(written(folder, rows), "acceptability", label=name or None).labels.tolist()


def texts_of_words(pad, folder):
    rows = [{"word": f"w{n}", "item": pad(kind), "part": pad(str(n // 5))} for n, kind in enumerate("aabbaababb")]
    return texts_of_rows(rows, "word", ["item", "part"])


def means_of_words(pad, folder):
    rows = [
        {"word": f"w{n}", "item": pad(str(n)), "region": pad(region), "kind": pad(kind)}
        for n in range(3)
        for region, kind in zip(("10", "2", "NA", ""), "abab")
    ]
    groups = WordGroups(rows, texts_of_rows(rows, "word", ["item"]), ["region", "kind"], ["item"])
    return groups.places, groups.means([float(n) for n in range(12)], "word_l2r", "surprisal")


def windows_of_speakers(pad, folder):
    windows = [Window(float(n), {"speaker": pad(kind)}) for n, kind in enumerate(GROUPS)]
    return window_measurements(windows, "speaker", "word_l2r")


def groups_of_gaps(pad, folder):
    rows = [{"text": "The ___ sleeps.", "gold": pad("cat"), "kind": pad(kind)} for kind in GROUPS]
    slots = read_slots(written(folder, rows), ["cat", "dog"], gold="gold")
    return [slot.gold for slot in slots], shown(levels(slots, ["kind"]))


def assays_of_a_sheet(pad, folder):
    for name in "ab":
        rows = [{"mutant": pad(one), "DMS_score": pad(str(n))} for n, one in enumerate(("M1A", "K2R:T3W"))]
        write_table(folder / f"{name}.csv", rows)
    sheet = [
        {"DMS_id": pad(name), "DMS_filename": pad(f"{name}.csv"), "target_seq": pad(PROTEIN), "UniProt_ID": pad("P")}
        for name in "ab"
    ]
    found = list(read_assays(written(folder, sheet), str(folder)))
    scores = [AssayScore(one, folder, Estimate(n, n, n)) for n, one in enumerate([found[0], *found])]
    names = [(one.name, one.sequence, [variant.mutant for variant in one.variants]) for one in found]
    return names, mean_correlation(scores, ["UniProt_ID"])


def variants_of_proteins(pad, folder):
    rows = [{"mutant": pad("M1A"), "gene": pad(gene), "seq": pad(PROTEIN)} for gene in "pqp"]
    some = read_variants(written(folder, rows))
    for sequences in ("seq", {"p": PROTEIN, "q": PROTEIN}):
        yield [(one.name, one.sequence, len(one.variants)) for one in divide_by_protein(some, "gene", sequences)]


def stereotypes(pad, folder):
    sentences = [
        {"gold_label": pad(label), "sentence": label} for label in ("stereotype", "anti-stereotype", "unrelated")
    ]
    items = [{"bias_type": pad("race"), "target": pad(target), "sentences": sentences} for target in "xyx"]
    (folder / "a.json").write_text(json.dumps({"data": {"intrasentence": items}}))
    return [(one.bias_type, one.target, one.texts) for one in read_suite(str(folder / "a.json"), "stereoset").items]


def conditions(pad, folder):
    regions = [{"region_number": 1, "content": "A"}]
    given = [{"condition_name": pad(name), "regions": regions} for name in ("one", "two")]
    suite = {"meta": {"name": pad("s")}, "predictions": [{"formula": "(1;%one%) < (1;%two%)"}]}
    (folder / "a.json").write_text(json.dumps({**suite, "items": [{"item_number": 1, "conditions": given}]}))
    return [(one.suite, [*one.conditions]) for one in read_suite(str(folder / "a.json"), "syntaxgym").items]


WAYS = (
    *(groups_of_pairs, known_columns_of_pairs, pairs_of_rows, labels_of_choices, labels_of_sentences, texts_of_words),
    *(means_of_words, windows_of_speakers, groups_of_gaps, assays_of_a_sheet, variants_of_proteins, stereotypes),
    conditions,
)


@pytest.mark.parametrize("way", WAYS)
@given(spaces=st.lists(st.tuples(*[st.text(" \t\u00a0\u3000", max_size=2)] * 2), min_size=1, max_size=7))
def test_white_space_around_labels_changes_no_group(tmp_path_factory, way, spaces):
    folder, number = tmp_path_factory.mktemp("tables"), [0]

    def pad(label):
        before, after = spaces[number[0] % len(spaces)]
        number[0] += 1
        return f"{before}{label}{after}"

    def result(pad):
        found = way(pad, folder)
        return found if isinstance(found, tuple | str) or not hasattr(found, "__next__") else list(found)

    assert result(pad) == result(str)
