import json
from contextlib import nullcontext

import pytest

from spacy_pll import read_choices, read_suite, read_variants
from spacy_pll.errors import InputError, settings_in
from spacy_pll.evaluation.items import Pair, default_columns, levels
from spacy_pll.evaluation.pair_readers import KNOWN, read_pairs


def test_columns_that_may_be_missing(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "own.csv").write_text("good,bad,id\nA cat.,A cats.,7\n")
    (tmp_path / "theirs.jsonl").write_text('{"sentence_good": "A.", "sentence_bad": "B.", "UID": "u"}\n')
    pairs = read_pairs(str(tmp_path))
    assert pairs == [
        Pair("A cat.", "A cats.", {"file": "part/own", "id": "7"}),
        Pair("A.", "B.", {"file": "theirs", "UID": "u"}),
    ]
    assert list(levels(pairs)) == [(), ("file",)]
    with pytest.raises(InputError, match="Pair 1: .* no column 'UID'.*: 'file', 'id'"):
        levels(pairs, ["UID"])


def test_files_with_the_same_pairs(tmp_path):
    """As in JBLiMP, which is published in two formats in one folder."""
    (tmp_path / "a.csv").write_text("good,bad\nA cat.,A cats.\nA dog.,A dogs.\n")
    (tmp_path / "b.csv").write_text("good,bad\nA cat.,A cats.\nA cow.,A cows.\n")
    assert len(read_pairs(str(tmp_path))) == 4  # that some are the same is not said
    (tmp_path / "a.jsonl").write_text('{"good": "A dog.", "bad": "A dogs."}\n')
    with pytest.warns(UserWarning, match=r"All that is in .*a.jsonl is also in .*a.csv, so it counts twice"):
        read_pairs(str(tmp_path))
    for phrase, warned in (("can fly.", True), ("can fly", False)):
        (tmp_path / phrase).mkdir()
        row = {"prefix_acceptable": "A robin", "prefix_unacceptable": "A hammer", "property_phrase": "can fly."}
        (tmp_path / phrase / "a.jsonl").write_text(json.dumps(row))
        (tmp_path / phrase / "b.csv").write_text(",".join(row) + f"\nA robin,A hammer,{phrase}\n")
        with pytest.warns(UserWarning, match="so it counts twice") if warned else nullcontext():
            assert len(read_choices(str(tmp_path / phrase))) == 2


def test_files_without_a_header(tmp_path):
    (tmp_path / "pairs.tsv").write_text("1\tA cat.\tA cats.\tshort\n2\tA dog.\tA dogs.\tshort\n")
    pairs = read_pairs(str(tmp_path / "pairs.tsv"), header=["id", "good", "bad", "kind"])
    assert pairs[0] == Pair("A cat.", "A cats.", {"id": "1", "kind": "short"}) and len(pairs) == 2
    with pytest.raises(InputError, match="line 1: the row has 4 fields, but `header` names 2"):
        read_pairs(str(tmp_path / "pairs.tsv"), header=["good", "bad"])
    with pytest.raises(InputError, match="no header, name its columns with `header`"):
        read_pairs(str(tmp_path / "pairs.tsv"))


def test_a_header_is_no_pair(tmp_path):
    (tmp_path / "pairs.tsv").write_text("good\tbad\tkind\nA cat.\tA cats.\tshort\n")
    with pytest.raises(InputError, match="line 1: .* the names in `header`. Leave it out"):
        read_pairs(str(tmp_path / "pairs.tsv"), header=["good", "bad", "kind"])


GOOD, BAD = "The cats sleep.", "The cats sleeps."
PAIR = Pair(GOOD, BAD)


@pytest.mark.parametrize(
    "columns",
    [
        ("sentence_good", "sentence_bad"),  # BLiMP, and others
        ("good_sentence", "bad_sentence"),  # JBLiMP, TurBLiMP
        ("sen", "wrong_sen"),  # MultiBLiMP
        ("source_sentence", "target_sentence"),  # RuBLiMP
        ("sent_more", "sent_less"),  # CrowS-Pairs
    ],
)
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_names_of_published_columns(tmp_path, columns, mark):
    good, bad = columns
    for names, sentences in (((good, bad), (GOOD, BAD)), ((bad, "n", good), (BAD, "1", GOOD))):
        (tmp_path / "a.csv").write_text(f"{mark.join(names)}\n{mark.join(sentences)}\n")
        (pair,) = read_pairs(str(tmp_path / "a.csv"))
        assert pair[:2] == (GOOD, BAD)
        # One name is enough where the other goes with it.
        assert read_pairs(str(tmp_path / "a.csv"), good) == read_pairs(str(tmp_path / "a.csv"), bad=bad) == [pair]


@pytest.mark.parametrize(
    ("columns", "groups"),
    [
        (["linguistics_term", "UID", "field"], ["linguistics_term", "UID"]),
        (["phenomenon", "paradigm"], ["phenomenon", "paradigm"]),
        (["PID", "phenomenon"], ["phenomenon", "PID"]),
        (["Phenomenon", "Paradigm"], ["Phenomenon", "Paradigm"]),
        (["field"], ["field"]),
        (["topic"], []),
    ],
)
def test_groups_as_published(columns, groups):
    pairs = [Pair(GOOD, BAD, dict.fromkeys(columns, "x") | {"own": 1}), Pair(GOOD, BAD, dict.fromkeys(columns, "x"))]
    assert default_columns(pairs) == groups
    assert pairs[0].phenomenon == "x" * (len(groups) > 0) and pairs[0].paradigm == "x" * (len(groups) > 1)


# The columns of files as they are published, in their order, and the groups of their accuracies.
PUBLISHED = {
    "blimp.jsonl": (
        "sentence_good sentence_bad field linguistics_term UID simple_LM_method one_prefix_method two_prefix_method "
        "lexically_identical pairID",
        ["linguistics_term", "UID"],
    ),
    "zhoblimp.jsonl": ("UID phenomenon sentence_good sentence_bad pairID", ["phenomenon", "UID"]),
    "jblimp.jsonl": (
        "ID good_sentence bad_sentence type phenomenon phenomenon-2 paradigm",
        ["phenomenon", "paradigm"],
    ),
    "turblimp_core.csv;": ("good_sentence bad_sentence good_cue bad_cue critical_region phenomenon", ["phenomenon"]),
    "turblimp.csv": (
        "good_sentence bad_sentence good_cue bad_cue critical_region phenomenon subtype",
        ["phenomenon"],
    ),
    "multiblimp.tsv": (" sen wrong_sen phenomenon num_attractors", ["phenomenon"]),
    "rublimp.csv": (
        "id source_sentence target_sentence source_word target_word level phenomenon PID subtype domain tree_depth",
        ["phenomenon", "PID"],
    ),
    "crows.csv": (
        " sent_more sent_less stereo_antistereo bias_type annotations anon_writer anon_annotators",
        ["bias_type"],
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_files_as_published(tmp_path, name):
    header, groups = PUBLISHED[name]
    columns = header.split(" ")
    good, bad = next(two for two in KNOWN if set(two) <= set(columns))
    rows = [[GOOD[:-1] + str(n) if c == good else BAD if c == bad else f"{c}{n}" for c in columns] for n in range(4)]
    path, mark = tmp_path / name.rstrip(";"), {";": ";", "v": "\t" if "tsv" in name else ","}.get(name[-1])
    if mark:
        path.write_text("".join(mark.join(row) + "\n" for row in [columns, *rows]))
    else:
        path.write_text("".join(json.dumps(dict(zip(columns, row))) + "\n" for row in rows))
    pairs = read_pairs(str(path))
    others = [c for c in columns if c not in (good, bad)]
    assert [(one.good, one.bad) for one in pairs] == [(GOOD[:-1] + str(n), BAD) for n in range(4)]
    assert [one.fields for one in pairs] == [{c: f"{c}{n}" for c in others} for n in range(4)]
    assert default_columns(pairs) == groups


NL = "Phenomenon,Paradigm,Item,Grammaticality,Sentence,Cue\n"
LONG = {
    "BLiMP-NL": ("a.csv", f"{NL}p,q,1,Ungrammatical,{BAD},y\np,q,1,Grammatical,{GOOD},x\n", {}),
    "BLiMP-NL, rows apart": (
        "a.csv",
        f"{NL}p,q,1,Ungrammatical,{BAD},y\np,q,2,Grammatical,{GOOD},x\np,q,2,Ungrammatical,{BAD},y\n"
        f"p,q,1,Grammatical,{GOOD},x\n",
        {},
    ),
    "CLiMP": ("a.csv", f",0,1,2,3\n0,p,q,{GOOD},1\n1,p,q,{BAD},0\n", {}),
    "CLiMP's ba_construction": (
        "a.csv",
        f"{GOOD}\n{BAD}\n",
        {"header": ["sentence"], "sentence": "sentence", "first": "good"},
    ),
    "EventsAdapt": (
        "a.csv",
        f"SentenceType,Voice,ItemNum,TrialType,Sentence,Plausibility\nx,active,1,AAN,{BAD},Implausible\n"
        f"x,active,1,AAN,{GOOD},Plausible\n",
        {"sentence": "Sentence", "label": "Plausibility=Plausible", "item": ["ItemNum", "Voice", "TrialType"]},
    ),
    "CLAMS": ("a.txt", f"True\t{GOOD}\nFalse\t{BAD}\n", {}),
    "Zorro": ("a.txt", f"{BAD}\n{GOOD}\n", {"first": "bad"}),
    "lines, the good one first": ("a.txt", f"{GOOD}\n\n{BAD}\n", {"first": "good"}),
    "own names": ("a.csv", f"s,p\n{BAD},Implausible\n{GOOD},Plausible\n", {"sentence": "s", "label": "p"}),
    "own labels": ("a.csv", f"s,p,n\n{BAD},-,1\n{GOOD},+,1\n", {"sentence": "s", "label": "p=+", "item": ["n"]}),
    "CLAMS as a table": (
        "a.tsv",
        f"True\t{GOOD}\nFalse\t{BAD}\n",
        {"header": ["l", "s"], "sentence": "s", "label": "l"},
    ),
    "labels of JSON": (
        "a.json",
        json.dumps([{"s": GOOD, "l": 1.0}, {"s": BAD, "l": False}]),
        {"sentence": "s", "label": "l"},
    ),
    "no label": ("a.csv", f"s\n{GOOD}\n{BAD}\n", {"sentence": "s", "first": "good"}),
}


@pytest.mark.parametrize(("name", "content", "options"), LONG.values(), ids=LONG)
def test_one_sentence_in_a_row(tmp_path, name, content, options):
    (tmp_path / name).write_text(content)
    pairs = read_pairs(str(tmp_path / name), **options)
    assert {pair[:2] for pair in pairs} == {(GOOD, BAD)} and len(pairs) == (2 if "2,Gram" in content else 1)
    folder = read_pairs(str(tmp_path), **options)
    assert [pair[:2] for pair in folder] == [pair[:2] for pair in pairs] and folder[0].fields["file"] == "a"


def test_columns_of_both_rows(tmp_path):
    (tmp_path / "a.csv").write_text(LONG["BLiMP-NL"][1])
    fields = {"Phenomenon": "p", "Paradigm": "q", "Item": "1", "Cue_good": "x", "Cue_bad": "y"}
    assert read_pairs(str(tmp_path / "a.csv")) == [Pair(GOOD, BAD, fields)]
    (tmp_path / "b.csv").write_text(LONG["CLiMP"][1])
    assert read_pairs(str(tmp_path / "b.csv")) == [Pair(GOOD, BAD, {"phenomenon": "p", "paradigm": "q"})]


def test_lines_without_labels_are_said_to_be_read_so(tmp_path):
    (tmp_path / "a.txt").write_text(f"{BAD}\n{GOOD}\n")
    with pytest.warns(UserWarning, match="a.txt: .* second is read as the good .*`first='good'`"):
        assert read_pairs(str(tmp_path / "a.txt")) == [PAIR]


S_L = {"sentence": "s", "label": "l"}


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("good,bad\nA.,\n", {}, "line 2: 'bad' is empty. Each pair needs two sentences"),
        ("good,bad\nA.,NA\n", {}, "line 2: 'bad' is NA, which stands for a missing value.*`na_as_text=True`"),
        (
            "a,b\nA.,B.\n",
            {},
            "line 2: there is no column 'sentence_good'. The columns are: 'a', 'b'. Name .*`good`.*`sentence`",
        ),
        ("good,b\nA.,B.\n", {"good": "good"}, "line 2: there is no column 'bad'"),
        ("good,bad\nA.,B.\n", {"good": "x"}, "line 2: there is no column 'x'"),
        ("good,bad\nA.,B.\n", {"good": "bad", "bad": "bad"}, "`good` and `bad` name the column 'bad' twice"),
        ("s,l\nA.,1\nB.,0\nC.,1\n", S_L, "line 4: the sentence has no partner"),
        ("s,l\nA.,1\nB.,1\n", S_L, "line 2 and line 3: 2 good and 0 bad sentences of these neighbours"),
        ("s,l\nA.,1\nB.,0\nC.,0\nD.,1\n", S_L, "line 4 and line 5: the bad sentence comes first, and not in the pair"),
        ("s,l\nA.,1\nB.,\n", S_L, "line 3: the label is '', which does not say whether the sentence is good. Add it"),
        ("s,l\nA.,ok\nB.,NA\n", {**S_L, "label": "l=ok"}, "line 3: the label is 'NA'.* Or, if NA is a value, give"),
        ("s,l\n1,A.\n0,B.\n", S_L, "line 2: the label is 'A.', which .* Give the value .*`label='l=VALUE'`"),
        ("s,l\n,1\nB.,0\n", S_L, "line 2: 's' is empty"),
        ("s,m\nA.,1\n", S_L, "line 2: there is no column 'l'. The columns are: 's', 'm'. Give another `label`"),
        ("s,l\nA.,1\n", {**S_L, "item": ["n"]}, "line 2: there is no column 'n'.*`item`"),
        (
            "s,l,n\nA.,1,x\nB.,1,y\nC.,1,x\n",
            {**S_L, "item": ["n"]},
            "line 2 and line 4: 2 good and 0 bad .* of the item x",
        ),
        ("s,l,n\nA.,1,x\nB.,0,y\n", {**S_L, "item": ["n"]}, "line 2: 1 good and 0 bad sentences of the item x"),
        (
            "s,l,n,m\nA.,1,,NA\nB.,0,,NA\n",
            {**S_L, "item": ["n", "m"]},
            "line 2: there is no value in 'n', 'm'. Add it",
        ),
        ("s,l\nA.,1\n", {"sentence": "s"}, "Nothing says which sentences are good"),
        ("s,l\nA.,1\n", {"sentence": "s", "label": "s=1"}, "`sentence` and `label` name the column 's' twice"),
        ("s,l\nA.,1\n", {"sentence": "s", "good": "l"}, "`sentence` is for tables with one sentence in a row"),
        ("s,l\nA.,1\n", {**S_L, "item": "nr"}, r"`item` must be a list of columns, such as \['nr'\]. It is 'nr'"),
        ("s,l\nA.,1\n", {"label": "l"}, "`label` and `item` are for tables .*`sentence`, too"),
        ("good,bad\nA.,B.\n", {"first": "good"}, "`first` is for files in which good and bad"),
    ],
)
def test_tables_that_are_no_pairs(tmp_path, content, options, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_pairs(str(tmp_path / "a.csv"), **options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"{BAD}\n{GOOD}\n{BAD}\n", "line 3: the sentence has no partner"),
        (f"True\t{GOOD}\n{BAD}\n", "line 2: there must be True or False, a tab and a sentence"),
        (f"True\t{GOOD}\nTrue\t{BAD}\n", "line 1 and line 2: 2 good and 0 bad"),
        (f"True\t{GOOD}\nfalsch\t{BAD}\n", "line 2: the label is 'falsch'"),
        ("\n", "There is no pair in"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*of each two lines")
def test_lines_that_are_no_pairs(tmp_path, content, message):
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(InputError, match=message):
        read_pairs(str(tmp_path / "a.txt"))


TABLES_IN_TXT = {
    "pairs": f"good\tbad\n{GOOD}\t{BAD}\n",
    "pairs without a header": f"{GOOD}\t{BAD}\n{GOOD}\t{BAD}\n",
    "labels behind tabs": f"{GOOD}\t1\n{BAD}\t0\n",
    "one tab": f"{BAD}\n{GOOD}\n{BAD}\n{GOOD[:8]}\t{GOOD[8:]}\n",
    "semicolons": f"good;bad\n{GOOD};{BAD}\n",
    "scores": f"{BAD} -31.5\n{GOOD} -20.25\n" * 2,
    "scores in two lines": f"{BAD} -31.5\n{GOOD} -20.25\n",
    "labels behind commas": f"{GOOD},1\n{BAD},0\n",
    "labels behind bars": f"{GOOD} | 1\n{BAD} | 0\n" * 2,
    "labels before": f"0 {BAD}\n1 {GOOD}\n",
    "labels before semicolons": f"1;{GOOD}\n0;{BAD}\n" * 2,
    "sections": f"Grammatical:\n{GOOD}\nUngrammatical:\n{BAD}\n",
    "a section in brackets": f"[ungrammatical sentences]\n{BAD}\n{BAD}\n{BAD}\n",
    "a table of R": f'"good" "bad"\n"1" "{GOOD}" "{BAD}"\n',
    "stars": f"*{BAD}\n{GOOD}\n",
}


@pytest.mark.parametrize("content", TABLES_IN_TXT.values(), ids=TABLES_IN_TXT)
@pytest.mark.parametrize("first", ["good", "bad"])
def test_lines_that_are_rows_of_a_table(tmp_path, content, first):
    (tmp_path / "a.txt").write_text(content)
    if len([line for line in content.splitlines() if line.strip()]) % 2:
        content += "One more.\n"
        (tmp_path / "a.txt").write_text(content)
    with pytest.warns(UserWarning, match="a.txt: .*In a .txt file, each line is a sentence.* make it a .tsv") as warned:
        pairs = read_pairs(str(tmp_path / "a.txt"), first=first)
    assert pairs and set(settings_in(str(warned[0].message))) >= {"good", "bad", "sentence", "label", "header"}


SENTENCES_LIKE_TABLES = {
    "Chinese": ["我来了,他走了", "他来了,我走了"],
    "chess": ["Kf7,Rh1", "Kf8,Rh2", "Kd1,Ra3", "Ke1,Ra4"],
    "years": ["He came in the year 1. 1", "He come in the year 1. 1"],
    "stars": ["The cats sleep.", "*The cats sleeps."],
    "tabs": ["The cats\tsleep.", "The cats\tsleeps."],
}


@pytest.mark.parametrize("lines", SENTENCES_LIKE_TABLES.values(), ids=SENTENCES_LIKE_TABLES)
def test_a_guess_about_lines_refuses_nothing(tmp_path, lines):
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
    with pytest.warns(UserWarning, match="a.txt"):
        pairs = read_pairs(str(tmp_path / "a.txt"), first="bad")
    assert [sentence for pair in pairs for sentence in (pair.bad, pair.good)] == lines


def test_what_the_advice_about_tables_in_txt_files_leads_to(tmp_path):
    (tmp_path / "a.tsv").write_text(TABLES_IN_TXT["pairs without a header"])
    assert read_pairs(str(tmp_path / "a.tsv"), header=["good", "bad"]) == [PAIR, PAIR]
    (tmp_path / "b.tsv").write_text(TABLES_IN_TXT["labels behind tabs"])
    assert read_pairs(str(tmp_path / "b.tsv"), header=["s", "l"], sentence="s", label="l") == [PAIR]


@pytest.mark.parametrize("line", ["What is good?", "Good cats sleep.", "he said : yes", "Correct!", "2 and 2 are 4"])
def test_sentences_are_no_titles(tmp_path, line):
    (tmp_path / "a.txt").write_text(f"{line}\n{GOOD}\n")
    assert read_pairs(str(tmp_path / "a.txt"), first="bad") == [Pair(GOOD, line)]


def test_a_file_of_another_form_in_a_folder_is_named(tmp_path):
    """CLiMP's folder."""
    (tmp_path / "ba.csv").write_text(f"{GOOD}\n{BAD}\n")
    (tmp_path / "other.csv").write_text(LONG["CLiMP"][1])
    with pytest.raises(InputError, match="ba.csv, line 2: there is no column.* a folder .* read one that needs others"):
        read_pairs(str(tmp_path))
    with pytest.raises(InputError) as raised:
        read_pairs(str(tmp_path / "ba.csv"))
    assert "folder" not in str(raised.value)


def test_lines_beside_tables_describe_them(tmp_path):
    (tmp_path / "README.txt").write_text("About the pairs.")
    (tmp_path / "a.json").write_text(json.dumps([{"good": GOOD, "bad": BAD}]))
    with pytest.warns(UserWarning, match="will not be read: 'README.txt'"):
        assert read_pairs(str(tmp_path)) == [Pair(GOOD, BAD, {"file": "a"})]


@pytest.mark.parametrize(
    ("read", "how", "sound", "other"),
    [
        (read_pairs, {}, ",0,1,2,3\n0,a,b,It is.,1\n1,a,b,It are.,0\n", "It is.\nIt are.\n"),  # as CLiMP
        (read_pairs, {"sentence": "s", "label": "l"}, "s,l\nIt is.,1\nIt are.,0\n", "s,k\nIt is.,1\nIt are.,0\n"),
        (read_choices, {"options": ["a", "b"]}, "a,b,label\nx,y,0\n", "a,c,label\nx,y,0\n"),
        (read_choices, {}, "sentence_good,sentence_bad\nx,y\n", "good,bad\nx,y\n"),
        (
            lambda path: read_suite(path, "acceptability"),
            {},
            "sentence,label\nIt is.,1\nIt are.,0\n",
            "sentence,k\nIt is.,1\n",
        ),
        (read_variants, {}, "mutant\nA1G\n", "variant\nA1G\n"),
    ],
)
def test_a_file_of_a_folder_that_needs_options_of_its_own(tmp_path, read, how, sound, other):
    (tmp_path / "a.csv").write_text(sound)
    read(str(tmp_path), **how)
    (tmp_path / "b.csv").write_text(other)
    alone = "read one that needs others alone"
    with pytest.raises(InputError, match=rf"b\.csv, line 2: there is no column .*{alone}"):
        read(str(tmp_path), **how)
    with pytest.raises(InputError, match=r"b\.csv, line 2: there is no column") as error:
        read(str(tmp_path / "b.csv"), **how)
    assert alone not in str(error.value)
