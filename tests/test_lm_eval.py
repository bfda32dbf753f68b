"""lm-evaluation-harness is there with the extra `[lm-eval]` only."""

import json
import math
import shutil
import sqlite3
import subprocess
import sys
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
import spacy
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

pytest.importorskip("lm_eval")

from lm_eval import simple_evaluate  # noqa: E402
from lm_eval import tasks as harness_tasks  # noqa: E402
from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.api.model import CachingLM  # noqa: E402
from lm_eval.api.registry import get_model  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from spacy_pll import PLLError, make_pipeline, minimal_pairs, read_pairs
from spacy_pll.cli import app  # noqa: E402
from spacy_pll.language_model.base import TransformerLanguageModel  # noqa: E402
from spacy_pll.lm_eval import PLL  # noqa: E402
from spacy_pll.settings import BATCH_SIZE  # noqa: E402
from spacy_pll.stream.contexts import doc_in_context  # noqa: E402
from spacy_pll.stream.known import score_distinct, text_sums  # noqa: E402

from . import reference  # noqa: E402
from .analysis.test_bounds_in_context import bound_of, own_pieces  # noqa: E402
from .conftest import PARAGRAPH, SENTENCES, write_jsonl  # noqa: E402

# The harness builds upon packages that warn, each version of something else.
pytestmark = pytest.mark.filterwarnings("default")

ITEMS = [
    {"context": "The traveler lost", "choices": ["the souvenir.", "the carnivore, who is young.", "it."], "right": 0},
    {"context": "Dr. Smith's co-workers paid", "choices": ["$3.50", "souvenirs"], "right": 1},
    {"context": "", "choices": ["The hooligans travel.", "The hooligans travels."], "right": 0},
]


def request(*args, kind="loglikelihood"):
    return Instance(kind, {}, args, 0, ("task", 0, 1))


@pytest.fixture
def make_lm(model_folder):
    def make(architecture="bert", **settings):
        return PLL(str(model_folder(architecture)), show_progress=False, **settings)

    return make


@pytest.fixture
def asked(monkeypatch):
    """The models that were asked for predictions."""
    found, submit = [], TransformerLanguageModel.submit
    monkeypatch.setattr(
        TransformerLanguageModel, "submit", lambda self, batches: found.append(self) or submit(self, batches)
    )
    return found


def by_brute_force(folder, metric, context, text):
    """The sum over the pieces that begin after the context, each masked in a pass of its own."""
    transformer, tokenizer = reference.load_model(folder)
    whole = context + text if context else text.lstrip()
    ids, kept, word, _ = reference.read(spacy.blank("en")(whole), tokenizer, "spacy")
    offsets = tokenizer.backend_tokenizer.encode(whole).offsets
    total = 0.0
    for target in range(len(kept)):
        if offsets[kept[target]][0] >= len(context):
            masked = {kept[i] for i in range(len(kept)) if reference.is_masked(metric, i, target, word)}
            total += reference.log_probabilities(transformer, tokenizer, ids, masked)[kept[target]]
    return total


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["word_l2r", "original", "sentence_l2r"])
@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
def test_a_continuation_is_scored_given_its_context(make_lm, model_folder, architecture, metric):
    requests = [(item["context"], f" {choice}") for item in ITEMS for choice in item["choices"]]
    found = make_lm(architecture, metric=metric).loglikelihood([request(*one) for one in [*requests, *requests[:2]]])
    expected = [by_brute_force(model_folder(architecture), metric, *one) for one in requests]
    assert [score for score, _ in found] == pytest.approx([*expected, *expected[:2]], abs=1e-4)
    assert not any(greedy for _, greedy in found)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
def test_the_bound_of_a_continuation_given_its_context(make_lm, model_folder, architecture):
    """Of all orders in which the pieces of the continuation can be revealed. The context is never masked."""
    requests = [("The young traveler lost", " the cup."), ("They did", " it.")]
    found = make_lm(architecture, metric="sentence_any_order").loglikelihood([request(*one) for one in requests])
    folder = str(model_folder(architecture))
    expected = [bound_of(folder, *own_pieces(folder, text, context, "")) for context, text in requests]
    assert [score for score, _ in found] == pytest.approx(expected, abs=1e-4)


def write_task(folder, name, items, **task):
    """A task of the harness in a folder: its items, and the file that describes it."""
    data = folder / f"{name}.jsonl"
    write_jsonl(data, *items)
    source = {"dataset_path": "json", "dataset_kwargs": {"data_files": str(data)}, "test_split": "train"}
    (folder / f"{name}.yaml").write_text(json.dumps({"task": name, **source, **task}))


def write_choices(folder, items):
    write_task(
        folder,
        "choices",
        items,
        output_type="multiple_choice",
        doc_to_text="{{context}}",
        doc_to_choice="{{choices}}",
        doc_to_target="{{right}}",
        metric_list=[{"metric": "acc"}, {"metric": "acc_norm"}],
    )


def evaluate(lm, folder, name, **more):
    tasks = TaskManager(include_path=str(folder), include_defaults=False)
    return simple_evaluate(lm, tasks=[name], task_manager=tasks, bootstrap_iters=0, **more)


def test_a_task_with_choices_has_the_accuracy_of_a_brute_force(make_lm, model_folder, tmp_path):
    write_choices(tmp_path, ITEMS)
    results = evaluate(make_lm(), tmp_path, "choices")
    right, right_by_length = 0, 0
    for item in ITEMS:
        scores = [by_brute_force(model_folder(), "word_l2r", item["context"], f" {one}") for one in item["choices"]]
        means = [score / len(choice) for score, choice in zip(scores, item["choices"])]
        right += scores.index(max(scores)) == item["right"]
        right_by_length += means.index(max(means)) == item["right"]
    assert results["results"]["choices"]["acc,none"] == pytest.approx(right / 3)
    assert results["results"]["choices"]["acc_norm,none"] == pytest.approx(right_by_length / 3)
    assert {item["doc_id"]: item["acc"] for item in results["samples"]["choices"]}.keys() == {0, 1, 2}


def test_pairs_of_sentences_are_decided_as_by_minimal_pairs(make_lm, tmp_path):
    """Item for item. Of a tie, the harness takes the first, which is right here, and `minimal_pairs` half."""
    pairs = [(one, two) for one in SENTENCES for two in SENTENCES if one < two] + [(SENTENCES[0], SENTENCES[0])]
    items = [{"context": "", "choices": list(pair), "right": 0} for pair in pairs]
    write_choices(tmp_path, items)
    lm = make_lm(metric="whole_word")
    samples = evaluate(lm, tmp_path, "choices")["samples"]["choices"]
    scores = minimal_pairs(lm.nlp, pairs).scores["whole_word"].sums.reshape(-1, 2)
    found = {item["doc_id"]: item["acc"] for item in samples}
    assert found == {i: float(good >= bad) for i, (good, bad) in enumerate(scores)}
    assert 0 < sum(found.values()) < len(pairs)


# Four lines of files as they are published, with the task that reads them and how.
TURKISH = ["sentence_good", "sentence_bad", "good_cue", "bad_cue", "critical_region", "phenomenon"]
CHINESE = [
    ("我把门关了。", "我关了门把。"),
    ("他把书扔了。", "他扔了书把。"),
    ("你把茶喝了。", "你喝了茶把。"),
    ("我把饭吃了。", "我吃了饭把。"),
]
PUBLISHED = {
    "multiblimp_eng": (
        "eng.tsv",
        "\tsen\twrong_sen\tphenomenon\tnum_attractors\n0\tThe cats sleep.\tThe cats sleeps.\tSV-#\t0\n"
        '1\t"""It is over"", she said."\t"""It are over"", she said."\tSV-#\t0\n'
        "2\tHe lost it.\tHe lose it.\tSV-P\t0\n3\tThey cannot.\tThey cannots.\tSV-P\t0\n",
        {"dataset_path": "csv", "dataset_kwargs": {"delimiter": "\t"}},
    ),
    "turblimp_binding": (
        "binding.csv",
        "good_sentence;bad_sentence;good_cue;bad_cue;critical_region;phenomenon\n"
        "Kendime kızdım.;Bana kızdım.;kendime;bana;kızdım;binding\n"
        "Kendine kızdı.;Kendime kızdı.;kendine;kendime;kızdı;binding\n"
        "Kendimi gördüm.;Beni gördüm.;kendimi;beni;gördüm;binding\n"
        "Kendini gördü.;Kendimi gördü.;kendini;kendimi;gördü;binding\n",
        {"dataset_path": "csv", "dataset_kwargs": {"delimiter": ";", "skiprows": 1, "column_names": TURKISH}},
    ),
    "blimp_nl__verb_second__order_main": (
        "pairs.csv",
        "sentence_good,sentence_bad\nWij horen haar.,Wij haar horen.\nMorgen komt hij.,Morgen hij komt.\n"
        "Dan gaan we.,Dan we gaan.\nZij ziet hem.,Zij hem ziet.\n",
        {"dataset_path": "csv"},
    ),
    "zhoblimp_BA_deletion": (
        "BA_deletion.jsonl",
        "".join(
            json.dumps(
                {"UID": "BA_deletion", "phenomenon": "BA", "sentence_good": good, "sentence_bad": bad, "pairID": n}
            )
            + "\n"
            for n, (good, bad) in enumerate(CHINESE)
        ),
        {"dataset_path": "json"},
    ),
}


def test_published_pairs_by_their_own_templates(make_lm, tmp_path):
    """A group of ours names their tasks, and where the data are. The scores are those of the sentences of the same
    file, read as `pll pairs` does.
    """
    lm, tasks = make_lm("roberta"), []
    for name, (file, content, how) in PUBLISHED.items():
        (tmp_path / file).write_text(content, encoding="utf8")
        files = {"test" if "_nl_" in name else "train": str(tmp_path / file)}
        kwargs = {"data_files": files, **how.get("dataset_kwargs", {})}
        tasks.append({"task": name, "dataset_name": None, **how, "dataset_kwargs": kwargs})
    (tmp_path / "local.yaml").write_text(json.dumps({"group": "local", "task": tasks}))
    # Their folders alone: all that the harness has takes five seconds to read.
    theirs = [str(folder) for folder in Path(harness_tasks.__file__).parent.glob("*blimp*")]
    manager = TaskManager(include_path=[*theirs, str(tmp_path)], include_defaults=False)
    if missing := PUBLISHED.keys() - set(manager.all_tasks):
        pytest.skip(f"This version of lm-eval has no {missing}.")
    samples = simple_evaluate(lm, tasks=["local"], task_manager=manager, bootstrap_iters=0)["samples"]
    for name, (file, *_) in PUBLISHED.items():
        found = [[score for score, _ in item["filtered_resps"]] for item in samples[name]]
        expected = minimal_pairs(lm.nlp, read_pairs(str(tmp_path / file))).scores["word_l2r"].sums.reshape(-1, 2)
        assert found == [pytest.approx(two) for two in expected] and len(found) == 4


def test_a_text_of_a_rolling_task_is_scored_whole(make_lm, tmp_path):
    lm = make_lm(mask_margin=0)
    texts = [*SENTENCES, PARAGRAPH * 8]  # the last is longer than the model
    expected = [doc._.pll for doc in lm.nlp.pipe(texts)]
    found = lm.loglikelihood_rolling([request(text, kind="loglikelihood_rolling") for text in texts])
    assert found == pytest.approx(expected)
    write_task(
        tmp_path,
        "corpus",
        [{"text": text} for text in texts],
        output_type="loglikelihood_rolling",
        doc_to_text="",
        doc_to_target="{{text}}",
        metric_list=[{"metric": "word_perplexity"}],
    )
    results = evaluate(lm, tmp_path, "corpus")
    words = sum(len(text.split()) for text in texts)
    assert results["results"]["corpus"]["word_perplexity,none"] == pytest.approx(math.exp(-sum(expected) / words))


def test_a_context_may_be_longer_than_the_model(make_lm):
    lm = make_lm()
    ((score, _),) = lm.loglikelihood([request(PARAGRAPH * 6, f" {SENTENCES[0]}")])
    ((near, _),) = lm.loglikelihood([request(PARAGRAPH, f" {SENTENCES[0]}")])
    ((alone, _),) = lm.loglikelihood([request(" ", f" {SENTENCES[0]}")])
    assert alone == pytest.approx(lm.nlp(SENTENCES[0])._.pll)
    assert math.isfinite(score) and score == pytest.approx(near, abs=5) and score != pytest.approx(alone)


@pytest.mark.parametrize(
    "context, text, message",
    [
        ("The traveler", "", "The text '' after 'The traveler' has no wordpiece of its own"),
        ("", " ", "The text '' has no wordpiece of its own"),
        ("The trav", "eler.", "'eler.' after 'The trav' cannot be scored apart.*shared_pieces=True"),
    ],
)
def test_a_continuation_without_a_piece_is_an_error(make_lm, context, text, message):
    with pytest.raises(ValueError, match=message):
        make_lm().loglikelihood([request(context, text)])


def test_tasks_that_need_text_are_refused(make_lm):
    with pytest.raises(PLLError, match="text that the model writes: task"):
        make_lm().generate_until([request("The", {}, kind="generate_until")])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cached"), [("a", False), ("z", False), ("a", True), ("z", True)])
@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"output_type": "generate_until"}, "These tasks need text that the model writes: "),
        ({"output_type": "loglikelihood_rolling"}, "The text '' has no wordpiece of its own"),
    ],
)
def test_of_several_tasks_one_that_cannot_be_scored_is_refused_before_the_others_are(
    make_lm, tmp_path, asked, name, cached, task, message
):
    """Whichever the harness takes first."""
    write_choices(tmp_path, ITEMS)
    write_task(tmp_path, name, [{"text": " "}], doc_to_text="", doc_to_target="{{text}}", **task)
    (tmp_path / "both.yaml").write_text(json.dumps({"group": "both", "task": ["choices", name]}))
    lm = make_lm()
    with pytest.raises(PLLError, match=message):
        evaluate(lm, tmp_path, "both", use_cache=str(tmp_path / "cache") if cached else None)
    assert not asked
    evaluate(lm, tmp_path, "choices")
    assert asked


def test_a_chat_template_is_refused(make_lm, tmp_path):
    write_choices(tmp_path, ITEMS)
    with pytest.raises(PLLError, match="has no chat template.*Leave out"):
        evaluate(make_lm(), tmp_path, "choices", apply_chat_template=True)


@pytest.mark.slow
@pytest.mark.parametrize("given", ["pipeline", "pair", "block"])
def test_a_model_in_memory(make_lm, model_folder, tmp_path, given):
    """Scored as it is at the time, as in a loop that trains it, with a record for the file of results."""
    write_choices(tmp_path, ITEMS)
    folder = str(model_folder())
    pair = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    model = {"pipeline": make_pipeline(folder, ["original", "word_l2r"]), "pair": pair, "block": {"name": folder}}[
        given
    ]
    lm = PLL(model, metrics="original", show_progress=False)
    found, named = (evaluate(one, tmp_path, "choices") for one in (lm, make_lm(metrics="original")))
    scores = [[item["filtered_resps"] for item in one["samples"]["choices"]] for one in (found, named)]
    assert scores[0] == scores[1]
    about = json.loads(json.dumps(found["config"]["spacy_pll"]))
    assert about["metrics"] == ["original"] and about["model"].endswith(Path(folder).name if given == "block" else "'")
    if given == "pair":
        with torch.no_grad():
            pair[0].get_input_embeddings().weight += torch.randn(pair[0].get_input_embeddings().weight.shape)
        now = evaluate(lm, tmp_path, "choices")["samples"]["choices"]
        pair[0].save_pretrained(tmp_path / "trained")
        pair[1].save_pretrained(tmp_path / "trained")
        text = f"{ITEMS[0]['context']} {ITEMS[0]['choices'][0]}"
        expected = by_brute_force(
            tmp_path / "trained", "original", ITEMS[0]["context"], text[len(ITEMS[0]["context"]) :]
        )
        assert next(one for one in now if one["doc_id"] == 0)["filtered_resps"][0][0] == pytest.approx(
            expected, abs=1e-4
        )


def test_the_model_as_make_pipeline_calls_it(model_folder):
    lm = PLL(model=str(model_folder("bert")), show_progress=False)
    assert lm.get_model_info()["spacy_pll"]["weights"]["folder"] == str(model_folder("bert"))


@pytest.mark.parametrize(
    "settings, error, message",
    [
        ({"margin": 0}, PLLError, "no model argument 'margin'. Similar: mask_margin. It has pretrained, metrics, "),
        ({"model": "bert"}, PLLError, "Both `pretrained` and `model` are given"),
        ({"mask_margin": "wide"}, PLLError, "The model argument 'mask_margin' is 'wide'. It must be a whole number."),
        ({"words": "spacey"}, PLLError, "argument 'words' is 'spacey'. It must be spacy or "),
        (
            {"sample_words": "0.3"},
            PLLError,
            "scores a part of the words, and the answers of a task are compared. Use a",
        ),
        ({"sample_words": "few"}, PLLError, "The model argument 'sample_words' is 'few'. It must be a number."),
        ({"shared_pieces": "no"}, PLLError, "The model argument 'shared_pieces' is 'no'. It must be true or false."),
        ({"metrics": "original+word_l2r"}, PLLError, "and a task has one score for each text. Give one metric."),
        ({"metrics": "original", "metric": "original"}, PLLError, "are the same model argument. Give one of the two."),
        ({"metric": "word"}, ValueError, "word_l2r"),
        ({"device": "tpu"}, PLLError, "`device` is 'tpu'"),
        ({"batch_size": "many"}, PLLError, "`batch_size` is 'many'"),
    ],
)
def test_what_is_not_a_setting(make_lm, settings, error, message):
    with pytest.raises(error, match=message):
        make_lm(**settings)


def test_settings_come_as_text(model_folder):
    """As the command line of the harness hands them on, which always names a GPU and a batch of 1."""
    arguments = f"pretrained={model_folder()},metric=original,mask_margin=0,words=whitespace,keep_pieces=true"
    more = {"batch_size": 1, "max_batch_size": None, "device": "cuda:0"}
    lm = get_model("spacy-pll").create_from_arg_string(arguments, more)
    info = lm.get_model_info()["spacy_pll"]
    assert info["metrics"] == ["original"] and info["mask_margin"] == 0 and info["words"] == "whitespace"
    assert info["weights"]["folder"] == str(model_folder()) and lm.work.batch_size == BATCH_SIZE
    assert PLL(str(model_folder()), batch_size="auto:4", max_batch_size=8).work.batch_size == 8
    assert PLL(str(model_folder()), batch_size="16").work.batch_size == 16


@pytest.mark.parametrize("name", ["metric", "metrics"])
def test_the_metric_has_two_names(make_lm, name):
    assert make_lm(**{name: "original"}).get_model_info()["spacy_pll"]["metrics"] == ["original"]


def test_a_shared_piece_belongs_to_the_context_where_that_is_wanted(make_lm):
    ((found, _),) = make_lm(metric="original", shared_pieces="true").loglikelihood(
        [request("The trav", "eler lost it.")]
    )
    doc = make_lm(metric="original").nlp("The traveler lost it.")
    assert found == pytest.approx(sum(token._.pll for token in doc[2:]), abs=1e-4)
    with pytest.raises(ValueError, match="has no wordpiece of its own"):
        make_lm(shared_pieces=True).loglikelihood([request("The trav", "el")])


def read_cache(path):
    """The responses in a cache of the harness."""
    with sqlite3.connect(path) as database:
        return [value for key, value in database.execute("SELECT key, value FROM unnamed") if key != "spacy-pll"]


@pytest.mark.parametrize("kind", ["loglikelihood", "loglikelihood_rolling"])
def test_responses_are_in_the_cache_as_soon_as_they_are_known(make_lm, tmp_path, monkeypatch, kind):
    texts = [f"The traveler lost it {n} times." for n in range(12)]
    requests = [request(*((text,) if kind == "loglikelihood_rolling" else ("", text)), kind=kind) for text in texts]
    lm = CachingLM(make_lm(batch_size=4), str(tmp_path / "cache.db"))

    def stop(*args):
        yield from islice(score_distinct(*args), 8)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("spacy_pll.lm_eval.score_distinct", stop)
        getattr(lm, kind)(requests)
    assert len(read_cache(tmp_path / "cache.db")) == 8
    asked = []
    again = CachingLM(make_lm(batch_size=4), str(tmp_path / "cache.db"))
    original = getattr(again.lm, kind)
    monkeypatch.setattr(again.lm, kind, lambda requests: asked.extend(requests) or original(requests))
    assert getattr(again, kind)(requests) == getattr(make_lm(batch_size=4), kind)(requests)
    assert [one.args for one in asked] == [one.args for one in requests[8:]]


def test_a_request_without_a_piece_is_said_before_the_work(make_lm, asked):
    lm = make_lm()
    requests = [*(request("The traveler", f" lost {n}.") for n in range(5)), request("The traveler", "\u200b")]
    with pytest.raises(ValueError, match="has no wordpiece of its own"):
        lm.loglikelihood(requests)
    assert not asked
    lm.loglikelihood(requests[:1])
    assert asked


def test_docs_are_made_as_they_are_scored(make_lm, monkeypatch):
    lm, made, scored = make_lm(batch_size=4), [], []
    monkeypatch.setattr(
        "spacy_pll.stream.contexts.doc_in_context", lambda *args: made.append(1) or doc_in_context(*args)
    )
    monkeypatch.setattr("spacy_pll.stream.known.text_sums", lambda *args: scored.append(len(made)) or text_sums(*args))
    lm.loglikelihood([request("The traveler", f" lost {n}.") for n in range(40)])
    assert scored[0] <= 8 and len(made) == 40


def test_a_cache_knows_the_weights_and_the_code(make_lm, model_folder, tmp_path):
    """Not the folder alone: a pipeline's config may name another folder that has the weights."""
    shutil.copytree(model_folder("bert"), weights := tmp_path / "weights")
    spacy.blank("en").to_disk(tmp_path / "unused")
    nlp = make_pipeline(str(weights))
    nlp.to_disk(tmp_path / "saved", exclude=["pll"])
    shutil.rmtree(tmp_path / "saved" / "pll", ignore_errors=True)
    lm = PLL(str(tmp_path / "saved"), show_progress=False)
    CachingLM(lm, cache := str(tmp_path / "cache.db"))
    CachingLM(PLL(str(tmp_path / "saved"), show_progress=False), cache)
    state = load_file(weights / "model.safetensors")
    name = next(iter(state))
    save_file({**state, name: state[name] + 1}, weights / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="The cache has the scores of other settings.*'weights': "):
        CachingLM(PLL(str(tmp_path / "saved"), show_progress=False), cache)
    (code := tmp_path / "code.py").write_text("x = 1")
    about = [PLL(str(model_folder("bert")), show_progress=False, **more).get_model_info()["spacy_pll"]
             for more in ({}, {"code": str(code)}, {"lang": "de"})]  # fmt: skip
    assert about[0] != about[1] != about[2] != about[0]


@pytest.mark.slow
def test_their_own_models_are_there_too(tmp_path):
    code = "import spacy_pll.lm_eval; from lm_eval.api.registry import get_model; print(get_model('dummy').__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "DummyLM", done.stderr


def test_a_cache_of_other_settings_is_refused(make_lm, tmp_path):
    cache, requests = str(tmp_path / "cache.db"), [request("", SENTENCES[0])]
    first = CachingLM(make_lm(), cache).loglikelihood(requests)
    assert CachingLM(make_lm(), cache).loglikelihood(requests) == first
    with pytest.raises(ValueError, match="The cache has the scores of other settings.*word_l2r.*original"):
        CachingLM(make_lm(metric="original"), cache)


def test_a_cache_of_another_class_of_model_is_refused(make_lm, tmp_path):
    """Its responses to the same requests would be taken for ours."""
    cache, requests = str(tmp_path / "cache.db"), [request("", SENTENCES[0])]
    theirs = CachingLM(get_model("dummy")(), cache).loglikelihood(requests)
    with pytest.raises(ValueError, match="The cache has responses of another model"):
        CachingLM(make_lm(), cache)
    assert theirs != make_lm().loglikelihood(requests)


def test_the_command_hands_on_all_that_follows(model_folder, tmp_path, monkeypatch):
    write_choices(tmp_path, ITEMS)
    monkeypatch.setattr(sys, "argv", ["pll"])
    monkeypatch.setattr("lm_eval.tasks.TaskManager", partial(TaskManager, include_defaults=False))
    command = f"lm-eval --model spacy-pll --model_args pretrained={model_folder()},mask_margin=0 --include_path"
    found = CliRunner().invoke(app, [*command.split(), str(tmp_path), "--tasks", "choices", "--limit", "2"])
    assert found.exit_code == 0, found.output
    assert "|choices|" in found.output.replace(" ", "") and "acc_norm" in found.output
    assert "--model_args" in CliRunner().invoke(app, ["lm-eval", "run", "--help"]).output
