import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import Choice, InputError, Option, read_choices

from ..conftest import write_jsonl


def write(path, *rows):
    return str(write_jsonl(path, *rows))


TEXTS = [Option("are here.", "The keys"), Option("is here.", "The keys")]


@pytest.mark.parametrize("label", ["are here.", 0, "0"])
def test_lines_with_lists(tmp_path, label):
    row = {"context": "The keys", "options": ["are here.", "is here."], "label": label, "id": 7}
    assert read_choices(write(tmp_path / "a.jsonl", row)) == [Choice(TEXTS, 0, {"id": 7})]


@pytest.mark.parametrize("label", ["one", "are here.", "0"])
def test_a_table_with_a_column_for_each_option(tmp_path, label):
    (tmp_path / "a.csv").write_text(f"before,one,two,right,kind\nThe keys,are here.,is here.,{label},x\n")
    found = read_choices(str(tmp_path / "a.csv"), ["before"], ["one", "two"], "right")
    assert found == [Choice(TEXTS, 0, {"kind": "x"})]
    (tmp_path / "b.csv").write_text(f"The keys,are here.,is here.,{label},x\n")
    columns = ["before", "one", "two", "right", "kind"]
    assert read_choices(str(tmp_path / "b.csv"), ["before"], ["one", "two"], "right", header=columns) == found


def test_one_text_in_several_contexts(tmp_path):
    options = [Option("flies.", "A robin"), Option("flies.", "A dog")]
    row = {"context": ["A robin", "A dog"], "options": "flies.", "label": "A dog"}
    assert read_choices(write(tmp_path / "a.jsonl", row)) == [Choice(options, 1)]
    row = {"bird": "A robin", "mammal": "A dog", "text": "flies.", "label": "mammal"}
    assert read_choices(write(tmp_path / "b.jsonl", row), ["bird", "mammal"], ["text"]) == [Choice(options, 1)]


def test_without_a_context(tmp_path):
    row = {"options": ["A cat sleeps.", "A cat sleep."], "label": 0}
    assert read_choices(write(tmp_path / "a.jsonl", row)) == [Choice([Option(text) for text in row["options"]], 0)]


def test_published_files_are_known_by_their_columns(tmp_path):
    blimp = {"sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps.", "UID": "agreement"}
    write(tmp_path / "blimp" / "x.jsonl", blimp)
    write(tmp_path / "blimp" / "hypernym.jsonl", {k: v for k, v in blimp.items() if k != "UID"})
    options = [Option("Cats sleep."), Option("Cats sleeps.")]
    assert read_choices(str(tmp_path / "blimp")) == [
        Choice(options, 0, {"file": "hypernym"}),
        Choice(options, 0, {"file": "x", "UID": "agreement"}),
    ]
    comps = {"prefix_acceptable": "A robin", "prefix_unacceptable": "A dog", "property_phrase": "flies.", "id": 3}
    path = write(tmp_path / "comps" / "comps_wugs_dist-before.jsonl", comps)
    options = [Option("flies.", "A robin"), Option("flies.", "A dog")]
    assert read_choices(path) == [Choice(options, 0, {"UID": "wugs_dist_before", "id": 3})]
    entities = {"input_prefix": "Box 0 has a key. Box 0 has", "options": [" a key.", " nothing."], "numops": 2}
    path = write(tmp_path / "boxes" / "regular.jsonl", entities)
    options = [Option(text, entities["input_prefix"]) for text in entities["options"]]
    assert read_choices(path) == [Choice(options, 0, {"UID": "regular_2_ops", "numops": 2})]


@pytest.mark.parametrize("name, uid", [("wug_adj_nominalization", "wug_adj"), ("wug_past_tense", "wug_past")])
def test_preferences_of_people(tmp_path, name, uid):
    options = [Option("the wuggity"), Option("the wugginess")]
    for sentences in ("the wuggity\tthe wugginess", ["the wuggity", "the wugginess"]):
        path = write(tmp_path / f"{name}.jsonl", {"sentences": sentences, "ratio": "0.25"})
        assert read_choices(path) == [Choice(options, 0, {"UID": uid, "ratio": "0.25"}, 0.25)]


def test_both_readings_of_ewok(tmp_path):
    row = {"Domain": "social", "Context1": "A.", "Context2": "B.", "Target1": "a.", "Target2": "b.", "ContextDiff": "x"}
    path, fields = write(tmp_path / "ewok.jsonl", row), {"UID": "social", "Domain": "social", "ContextDiff": "x"}
    assert read_choices(path) == [Choice([Option("a.", "A."), Option("b.", "A.")], 0, fields)]
    assert read_choices(path, reading="contexts") == [
        Choice([Option("a.", "A."), Option("a.", "B.")], 0, fields),
        Choice([Option("b.", "A."), Option("b.", "B.")], 1, fields),
    ]


def test_named_columns_take_the_place_of_published_ones(tmp_path):
    row = {"sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps.", "label": "B"}
    (found,) = read_choices(write(tmp_path / "a.jsonl", row), (), ["sentence_bad", "sentence_good"])
    assert found.right == 1 and found.options[1].text == "Cats sleep."


ROW = {"context": "The", "options": ["a", "b"], "label": 0}


@pytest.mark.parametrize(
    "row, message",
    [
        ({**ROW, "options": ["a"]}, "line 1: a choice needs two options or more. It has 1"),
        ({**ROW, "options": []}, "a choice needs two options or more. It has 0"),
        ({**ROW, "options": ["a", " "]}, "line 1: an option is empty"),
        ({**ROW, "options": ["a", 3]}, "line 1: 'options' must be text. It is 3"),
        ({**ROW, "label": "c"}, "line 1: 'label' is 'c', which is none of the options: 'a', 'b'. Give the text"),
        ({"sentences": "a\tb", "ratio": "often"}, "line 1: 'ratio' must be a number. It is 'often'"),
        ({"sentences": "a b", "ratio": 1}, "line 1: a choice needs two options or more. It has 1"),
        ({"sentences": "a\tb\tc", "ratio": 1}, "line 1: the preference for the first of two .* there are 3 options"),
        ({**ROW, "label": 2}, "'label' is 2, which is none of the options"),
        ({**ROW, "label": -1}, "'label' is -1"),
        ({**ROW, "label": True}, "'label' is True"),
        ({**ROW, "label": None}, "'label' is None"),
        ({"context": "The", "options": ["a", "b"]}, "line 1: there is no column 'label'.*`label`"),
        ({"context": "The", "label": 0}, "line 1: there is no column 'options'.*`options`"),
        (
            {**ROW, "context": ["A", "B"]},
            "line 1: 2 contexts and 2 options. One of the two must be .* join them to one",
        ),
        ({**ROW, "label": [1, 1]}, r"line 1: 'label' is \[1, 1\] for 2 options. A list has a number for each option"),
        ({**ROW, "label": [1]}, r"line 1: 'label' is \[1\] for 2 options"),
        ({**ROW, "label": [None, "1"]}, r"line 1: 'label' is \[None, '1'\] for 2 options"),
    ],
)
def test_rows_that_are_no_choice(tmp_path, row, message):
    with pytest.raises(InputError, match=message):
        read_choices(write(tmp_path / "a.jsonl", row))


SCIENCE = {"question": "The keys", "choices": {"text": ["are here.", "is here."], "label": ["A", "B"]}, "key": "B"}


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".parquet"])
def test_options_inside_another_field(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist([SCIENCE]), path)
    else:
        path.write_text(json.dumps(SCIENCE))
    (found,) = read_choices(str(path), ["question"], ["choices.text"], "key")
    assert [one.text for one in found.options] == SCIENCE["choices"]["text"] and found.right == 1
    assert found.options[0].context == "The keys" and found.fields == {"choices": SCIENCE["choices"]}


def test_options_in_objects_of_a_list(tmp_path):
    row = {
        "q": {"stem": "The keys", "choices": [{"text": "are", "label": "A"}, {"text": "is", "label": "B"}]},
        "key": "A",
    }
    (found,) = read_choices(write(tmp_path / "a.jsonl", row), ["q.stem"], ["q.choices.text"], "key")
    assert [tuple(one)[:2] for one in found.options] == [("are", "The keys"), ("is", "The keys")] and found.right == 0


@pytest.mark.parametrize("right", [0, 1, 2])
@pytest.mark.parametrize("kind", [int, float, bool])
def test_a_label_for_each_option(tmp_path, right, kind):
    targets = {"choices": ["a", "b", "c"], "labels": [kind(i == right) for i in range(3)]}
    path = write(tmp_path / "a.jsonl", {"question": "Q", "mc1_targets": targets})
    (found,) = read_choices(path, ["question"], ["mc1_targets.choices"], "mc1_targets.labels")
    assert found.right == right
    # As TruthfulQA has it.
    about = {"question": "Q", "mc1_targets": dict(zip(*targets.values())), "in": {"n": 1}}
    for row, label in ((about, None), ({**about, "key": "abc"[right]}, "key")):
        (same,) = read_choices(write(tmp_path / "b.json", row), ["question"], ["mc1_targets"], label)
        assert same == found._replace(fields={"in": {"n": 1}})
    path = write(tmp_path / "a.jsonl", {"question": "Q", "mc2_targets": {"a": 1, "b": 1}})
    with pytest.raises(InputError, match=r"is \[1, 1\] for 2 options.*1 for the right one, and 0 for the others"):
        read_choices(path, ["question"], ["mc2_targets"])


@given(
    st.lists(st.sampled_from(["Ann left.", "It rained. ", " So what?", ""]), min_size=2, max_size=4),
    st.integers(2, 3),
    st.sampled_from([" ", "", " | "]),
)
def test_a_context_in_several_columns(tmp_path_factory, contexts, n, separator):
    path = tmp_path_factory.mktemp("contexts") / "a.jsonl"
    columns, options = [f"s{i}" for i in range(len(contexts))], [f"o{i}" for i in range(n)]
    joined = ""
    for text in contexts:
        needs_none = not joined or joined[-1].isspace() or text[:1].isspace()
        joined += text if needs_none else separator + text
    row = {**dict(zip(columns, contexts)), **dict.fromkeys(options, "x"), "label": 0, "joined": joined}
    (found,) = read_choices(write(path, row), columns, options, separator=separator)
    (other,) = read_choices(str(path), ["joined"], options, separator=separator)
    assert found.options == other.options and found.options[0].context == joined
    # One text in several contexts stays what it is.
    (found,) = read_choices(str(path), columns, ["o0"])
    assert [one.context for one in found.options] == contexts


def test_files_that_are_not_there_or_empty(tmp_path):
    with pytest.raises(InputError, match="There is no file or folder .* Give a file of choices"):
        read_choices(str(tmp_path / "none"))
    with pytest.raises(InputError, match="There is no choice in"):
        read_choices(write(tmp_path / "a.jsonl"))


@pytest.mark.parametrize(
    "columns, message",
    [
        (([], ["one", "one"], "label"), "`options` name the column 'one' twice"),
        (([], ["one", "two"], "two"), "`options` and `label` name the column 'two' twice"),
        ((["one"], ["one", "two"], None), "`context` and `options` name the column 'one' twice"),
        (([], "choices"), r"`options` must be a list of columns, such as \['choices'\]. It is 'choices'."),
        (("one", ["two"]), r"`context` must be a list of columns, such as \['one'\]"),
    ],
)
def test_a_column_is_one_thing(tmp_path, columns, message):
    with pytest.raises(InputError, match=message):
        read_choices(write(tmp_path / "a.jsonl", {"one": "x", "two": "y", "label": 0}), *columns)


def test_what_stands_between_context_and_text(tmp_path):
    own = write(tmp_path / "a.jsonl", {"context": "\u6211\u4eec", "options": ["\u82f9\u679c", " x"], "label": 0})
    ewok = {"Context1": "A", "Context2": "B", "Target1": "a", "Target2": "b"}
    for path, expected in ((own, "\u6211\u4eec\u82f9\u679c"), (write(tmp_path / "b.jsonl", ewok), "Aa")):
        (choice,) = read_choices(path, separator="")
        assert "".join(choice.options[0].place[1::-1]) == expected
    (choice,) = read_choices(own, separator="-")
    found = ["".join(option.place[1::-1]) for option in choice.options]
    assert found == [
        "\u6211\u4eec-\u82f9\u679c",
        "\u6211\u4eec x",
    ]


def test_what_stands_after_a_text(tmp_path):
    """With the separator, and in languages without spaces none; not among the other columns."""
    own = write(tmp_path / "a.jsonl", {"context": "A", "options": ["b", "c "], "label": 0, "rest": "d.", "id": 1})
    (choice,) = read_choices(own, after="rest")
    assert [option.place for option in choice.options] == [("b", "A ", " d."), ("c ", "A ", "d.")]
    assert choice.fields == {"id": 1}
    (choice,) = read_choices(own, after="rest", separator="")
    assert choice.options[0].place == ("b", "A", "d.")
    with pytest.raises(InputError, match="line 1: there is no column 'none'"):
        read_choices(own, after="none")
    with pytest.raises(InputError, match="`label` and `after` name the column 'label' twice"):
        read_choices(own, label="label", after="label")
