"""One model, several settings, several pages."""

import threading
import time
import warnings

import pytest

from spacy_pll import PipelineSettings, get_scorer
from spacy_pll.explorer.sharing import KEPT_ANSWERS, SharedPipeline

TEXT = "The cats sleep in a house."


@pytest.fixture
def shared(model_folder):
    return SharedPipeline(PipelineSettings(str(model_folder("bert")), mask_spacing=8))


def test_the_scores_are_those_of_a_pipeline_with_the_settings(model_folder, make_nlp):
    shared = SharedPipeline(PipelineSettings(str(model_folder("bert")), alternatives=5))
    shown = {"keep_pieces": True, "alternatives": 5, "distribution": True}
    for metrics, words in [(["original"], "spacy"), (["whole_word", "word_l2r"], "tokenizer"), (None, None)]:
        expected = make_nlp(metrics=metrics or ["word_l2r"], words=words or "spacy", **shown)(TEXT)
        with shared.use(PipelineSettings(metrics=metrics, words=words)) as nlp:
            doc = nlp(TEXT)
        assert [token._.pll for token in doc] == [token._.pll for token in expected]
        assert [token._.pll_alternatives for token in doc] == [token._.pll_alternatives for token in expected]
        assert doc._.pll_data == expected._.pll_data


def test_the_model_is_loaded_once(shared):
    with shared.use(PipelineSettings()) as nlp:
        model = get_scorer(nlp).model
    with shared.use(PipelineSettings(metrics=["original"], words="whitespace")) as nlp:
        assert get_scorer(nlp).model is model
        assert get_scorer(nlp).settings.mask_spacing == 8  # other settings stay


def test_a_wrong_setting_leaves_the_pipeline_as_it_was(shared):
    with shared.use(PipelineSettings(metrics=["original"])) as nlp:
        before = nlp(TEXT)._.pll
    with pytest.raises(ValueError, match="does not mask within words"):
        with shared.use(PipelineSettings(metrics=["sentence_l2r"])):
            pass
    with shared.use(PipelineSettings(metrics=["original"])) as nlp:
        assert nlp(TEXT)._.pll == before


def test_pages_take_turns(shared):
    """In the order in which they ask, and each is told how many come before."""
    told, order, threads = {1: [], 2: [], 3: []}, [], []

    def page(number):
        with shared.use(PipelineSettings(), told[number].append):
            order.append(number)

    with shared.use(PipelineSettings()):
        for number in told:
            threads.append(threading.Thread(target=page, args=[number]))
            threads[-1].start()
            wait_for(lambda number=number: told[number])
        assert [told[number][0] for number in told] == [1, 2, 3] and not order
    for thread in threads:
        thread.join(60)
    assert order == [1, 2, 3] and all(said == sorted(said, reverse=True) and said[-1] == 0 for said in told.values())


def test_a_page_that_goes_while_it_waits_leaves_the_queue(shared):
    def gone(before):
        raise KeyboardInterrupt  # Streamlit's own exceptions are no `Exception`, either

    with shared.use(PipelineSettings()):
        with pytest.raises(KeyboardInterrupt):
            with shared.use(PipelineSettings(), gone):
                pass
    with shared.use(PipelineSettings(), lambda before: before and pytest.fail("It waits for nobody.")):
        pass


def test_answers_are_kept(shared):
    asked = []

    def scorer(nlp, *texts):
        asked.append(texts)
        warnings.warn("Once.", UserWarning, stacklevel=1)
        warnings.warn("Once.", UserWarning, stacklevel=1)
        warnings.warn("Not for users.", DeprecationWarning, stacklevel=1)
        return [nlp(text)._.pll for text in texts]

    def ask(*texts, **settings):
        return shared.ask(scorer, PipelineSettings(**settings), *texts, wait=lambda before: None)

    first = ask(TEXT)
    assert first == ask(TEXT) and first[1] == ["Once."] and len(asked) == 1
    assert ask(TEXT, metrics=["original"])[0] != first[0] and len(asked) == 2
    for number in range(KEPT_ANSWERS):
        ask(str(number))
    assert ask(TEXT) == first and len(asked) == KEPT_ANSWERS + 3  # the oldest was given up


def test_what_others_asked_meanwhile_is_not_scored_again(shared):
    asked, answers = [], []

    def scorer(nlp, text):
        asked.append(text)
        return nlp(text)._.pll

    def page(wait):
        answers.append(shared.ask(scorer, PipelineSettings(), TEXT, wait=wait))

    with shared.use(PipelineSettings()):
        waits = [[], []]
        threads = [threading.Thread(target=page, args=[said.append]) for said in waits]
        for thread in threads:
            thread.start()
        wait_for(lambda: all(waits))
    for thread in threads:
        thread.join(60)
    assert asked == [TEXT] and len(answers) == 2 and answers[0] == answers[1]


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "It did not happen."
        time.sleep(0.01)


def test_other_components_and_names_stay(make_nlp, tmp_path):
    nlp = make_nlp(name="scores", attr="mine", metrics=["original"])
    nlp.add_pipe("sentencizer", first=True)
    nlp.add_pipe("doc_cleaner", last=True)
    nlp.to_disk(tmp_path)
    shared = SharedPipeline(PipelineSettings(str(tmp_path)))
    assert (shared.attr, shared.metrics) == ("mine", ["original"])
    with shared.use(PipelineSettings(metrics=["word_l2r"])) as changed:
        assert changed.pipe_names == ["sentencizer", "scores", "doc_cleaner"]
        assert changed(TEXT)._.mine == make_nlp(attr="mine")(TEXT)._.mine


def test_the_metrics_that_a_model_can_compute(shared):
    metrics = shared.list_metrics()
    assert metrics[0] == "word_l2r" and "causal" not in metrics
    assert set(metrics) >= {"original", "whole_word", "sentence_l2r", "word_any_order", "word_r2l"}
    assert len(set(metrics)) == len(metrics)
