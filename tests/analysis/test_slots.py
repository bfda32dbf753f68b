"""`slots`, against plain transformers, against `score_continuations`, and against whole sentences."""

import math
import re
import warnings

import numpy as np
import pytest
import torch

import spacy_pll
from spacy_pll import score_continuations, slots
from spacy_pll.analysis.filling import Slots
from spacy_pll.analysis.gaps import Slot
from spacy_pll.analysis.slots import fill_slots
from spacy_pll.evaluation.slots import slot_measurements
from spacy_pll.prediction.asking import PendingLogProbs
from spacy_pll.prediction.reading import DocReading

from .. import reference

TEXTS = [
    "The traveler lost the ___.",
    "___ lost it, and left.",
    "She said: “___”!",
    "We (___) left",
    "犬も___棒に当たる",
    "The  ___\nsouvenir",
    "the ___",
    "The co-_____ left.",
]
CANDIDATES = ["cat", "Traveler", "the souvenir", "carnivore", "can't believe", "歩けば", "Smith's co-workers", "x  y"]
MODELS = [("bert", "wordpiece"), ("roberta", "byte-level"), ("modernbert", "byte-level"), ("deberta-v2", "unigram"),
          ("albert", "unigram")]  # fmt: skip
PUBLISHED = [("bert", "bert-base-cased"), ("bert", "bert-base-uncased"), ("bert", "bert-base-chinese"),
             ("roberta", "roberta-base"), ("modernbert", "roberta-base"), ("deberta-v2", "deberta-v3-base"),
             ("albert", "albert-base-v2"), ("xlm-roberta", "unigram")]  # fmt: skip


def sides(text):
    before, after = re.split("_+", text)
    return before, after


def continuations(nlp, text, candidates):
    """Of the candidates that can be scored: some have no piece of their own, or none that the tokenizer knows."""
    before, after = sides(text)
    try:
        return score_continuations(nlp, before, candidates, after, separator="", shared_pieces=True)
    except ValueError:
        half = len(candidates) // 2
        return [
            one for some in (candidates[:half], candidates[half:]) if half for one in continuations(nlp, text, some)
        ]


def brute_force(nlp, text, candidate):
    """The sum of the log-probabilities of the candidate's pieces: each is masked with those behind it."""
    model, tokenizer = reference.load_model(nlp.get_pipe("pll").model.name)
    before, after = sides(text)
    read = tokenizer(before + candidate + after, return_offsets_mapping=True)
    n_before = len(tokenizer(before.removesuffix(" ")).tokens()) - 1  # the space before a word is read with it
    last = len(before) + len(candidate)
    mine = [i for i, (start, end) in enumerate(read.offset_mapping) if i >= n_before and start < last and end <= last]
    mine = [i for i in mine if read.input_ids[i] != tokenizer.sep_token_id]
    ids, total = torch.tensor([read.input_ids]), 0.0
    for i in mine:
        masked = ids.clone()
        masked[0, i : mine[-1] + 1] = tokenizer.mask_token_id
        with torch.inference_mode():
            total += model(masked).logits[0, i].log_softmax(-1)[ids[0, i]].item()
    return total, len(mine)


@pytest.mark.parametrize("architecture, tokenizer", MODELS)
def test_scores_are_those_of_plain_transformers(make_nlp, architecture, tokenizer):
    nlp, candidates = make_nlp(architecture, tokenizer), ["cat", "Traveler", "the souvenir", "can't believe"]
    texts = [text for text in TEXTS if "犬" not in text and "  " not in text]  # there, spaces are tokens
    for text, found in zip(texts, slots(nlp, texts, candidates)):
        assert sorted(one.text for one in found) == sorted(candidates)
        for one in found:
            assert (one.score, one.pieces) == pytest.approx(brute_force(nlp, text, one.text), abs=1e-4), (text, one)
            assert one.model_probability == (math.exp(one.score) if one.pieces == 1 else None)
        assert [one.rank for one in found] == [1, 2, 3, 4]
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert sum(one.probability for one in found) == pytest.approx(1)
        ratio = math.log(found[0].probability / found[3].probability)
        assert ratio == pytest.approx(found[0].score - found[3].score)


@pytest.mark.filterwarnings("ignore:.*the tokenizer does not know")
@pytest.mark.parametrize("architecture, tokenizer", MODELS + PUBLISHED)
def test_scores_are_those_of_continuations(make_nlp, architecture, tokenizer):
    nlp = make_nlp(architecture, tokenizer)
    for text in TEXTS + ["我爱___天安门。", "他 ___ 了", " ___ ", "\t___ $", "Ünï ___ שלום"]:
        expected = continuations(nlp, text, [*CANDIDATES, "北京", "a"])
        known = [one.text for one in expected]
        (found,) = slots(nlp, [text], known, shared_pieces=True) if known else [[]]
        of = {one.text: one for one in found}
        assert of.keys() == {*known} and any(one.score for one in found) == bool(known)
        for one in expected:
            if of[one.text].score is not None:
                assert of[one.text].score == pytest.approx(one.score, abs=1e-4), (text, one.text)
                assert of[one.text].pieces == one.pieces


@pytest.mark.parametrize("architecture, tokenizer", MODELS)
def test_scores_are_those_of_words_in_whole_sentences(make_nlp, architecture, tokenizer):
    nlp, words = make_nlp(architecture, tokenizer), ["souvenir", "hooligans", "Bär"]
    (found,) = slots(nlp, ["The young ___ travels."], words)
    for one in found:
        token = nlp(f"The young {one.text} travels.")[2]
        assert (token._.pll, token._.pll_pieces) == pytest.approx((one.score, one.pieces), abs=1e-4)


def test_a_gap_reads_a_row_for_each_number_of_pieces_and_beginning(make_nlp, monkeypatch):
    """However many candidates share them; and a doc for each text."""
    nlp, rows, docs = make_nlp(), [], []
    monkeypatch.setattr("spacy_pll.prediction.asking.WorkDone.add", lambda self, one: rows.append(one.n_rows) or one)
    read = DocReading.read
    monkeypatch.setattr(DocReading, "read", lambda self, some, *more: docs.extend(some) or read(self, some, *more))
    tokenizer = reference.load_model(nlp.get_pipe("pll").model.name)[1]
    one_piece = [word for word in sorted(tokenizer.get_vocab()) if word.isalpha() and word.isascii()]
    texts = [f"The {word} lost the ___ here." for word in one_piece[:20]]
    assert len(one_piece) > 50 and all(len(tokenizer.tokenize(word)) == 1 for word in one_piece)
    slots(nlp, texts, one_piece)
    assert (sum(rows), len(docs)) == (20, 20)
    rows.clear()
    docs.clear()
    words = [*one_piece, "the souvenir", "the traveler", "hooligans", "carnivore", "carnivores"]
    pieces = [tokenizer.tokenize(word) for word in words]
    asked = {(len(own), *own[:i]) for own in pieces for i in range(len(own))}
    assert len(asked) < sum(len(own) for own in pieces) - len(one_piece)
    slots(nlp, texts, words)
    assert (sum(rows), len(docs)) == (20 * len(asked), 20)


@pytest.mark.parametrize(("name", "value"), [("MAX_TEXTS", (2, 2)), ("MAX_CANDIDATES", 7), ("MAX_ANSWERS", 7)])
def test_batches_change_nothing(make_nlp, monkeypatch, name, value):
    nlp, texts = make_nlp(), [text for text in TEXTS if "犬" not in text]
    expected = slots(nlp, texts, CANDIDATES[:5])
    monkeypatch.setattr(f"spacy_pll.analysis.filling.{name}", value)
    for some, others in zip(slots(nlp, texts, CANDIDATES[:5]), expected, strict=True):
        assert [one.text for one in some] == [one.text for one in others]
        assert [one.score for one in some] == pytest.approx([one.score for one in others], abs=1e-5)


@pytest.mark.parametrize("way", ["whole", "surprise"])
def test_a_tokenizer_that_looks_further_than_to_white_space(make_nlp, monkeypatch, way):
    """It is asked for the whole text; and if that is found too late, for each candidate in it."""
    nlp = make_nlp("roberta", "byte-level")
    expected = slots(nlp, TEXTS, CANDIDATES)
    if way == "whole":
        init = Slots.__init__
        monkeypatch.setattr(
            Slots, "__init__", lambda self, *how: init(self, *how) or vars(self).update(divides_at_spaces=False)
        )
    else:  # with other pieces than there are in the text
        spell = Slots._spell
        monkeypatch.setattr(
            Slots, "_spell", lambda self, some, *beside: spell(self, [f"{one}x" for one in some], *beside)
        )
    for some, others in zip(slots(nlp, TEXTS, CANDIDATES), expected, strict=True):
        assert [one[::2] for one in some] == [one[::2] for one in others]
        assert [one.score for one in some] == pytest.approx([one.score for one in others], abs=1e-5)


def test_a_long_text_is_read_in_the_window_of_the_longest_candidate(make_nlp):
    nlp = make_nlp()
    text = "The traveler lost it. " * 40 + "The ___ left. " + "She left, too. " * 40
    before, after = sides(text)
    (found,) = slots(nlp, [text], ["the souvenir", "cat"])
    (expected,) = score_continuations(nlp, before, ["the souvenir"], after, separator="")
    of = {one.text: one.score for one in found}
    assert of["the souvenir"] == pytest.approx(expected.score, abs=1e-4)
    (cat,) = score_continuations(nlp, before, ["cat"], after, separator="")
    assert of["cat"] == pytest.approx(cat.score, abs=0.3)  # its own window may begin a word earlier
    with pytest.raises(
        ValueError, match=r"Text 1: The candidate 'a a a.* has more wordpieces than the model reads \(126\)"
    ):
        slots(nlp, [text], ["a " * 200])


def test_the_best_and_the_right_one_are_kept(make_nlp):
    nlp, texts = make_nlp(), TEXTS[:2]
    words = ["cat", "Traveler", "the souvenir", "carnivore"]
    whole = slots(nlp, texts, words, gold=[" carnivore", "cat"])
    assert [[one.text for one in some if one.is_gold] for some in whole] == [["carnivore"], ["cat"]]
    for n in (1, 2, 4, 9):
        for some, all_of_it in zip(slots(nlp, texts, words, gold=["carnivore", "cat"], keep=n), whole):
            assert some == [one for i, one in enumerate(all_of_it) if i < n or one.is_gold]
    assert {one.is_gold for one in slots(nlp, texts, words)[0]} == {None}
    by_text = slots(nlp, texts, [words[:2], ("the souvenir", "cat")])
    assert [sorted(one.text for one in some) for some in by_text] == [["Traveler", "cat"], ["cat", "the souvenir"]]
    (alone,) = slots(nlp, texts[:1], words[:2])
    assert [(one.text, one.pieces, one.rank) for one in by_text[0]] == [
        (one.text, one.pieces, one.rank) for one in alone
    ]
    assert [one.score for one in by_text[0]] == pytest.approx([one.score for one in alone], abs=1e-4)


def test_equal_candidates_share_a_rank(make_nlp):
    if "uncased" not in (nlp := make_nlp("bert", "bert-base-uncased")).get_pipe("pll").model.name:
        pytest.skip("no tokenizer that ignores case")
    with pytest.warns(UserWarning, match="1 of the candidates are equal"):
        (found,) = slots(nlp, [TEXTS[0]], ["Cat", "cat", "dog"])
    assert sorted(one.rank for one in found) in ([1, 1, 3], [1, 2, 2])
    assert [one.text for one in found if one.text != "dog"] == ["Cat", "cat"]


def test_what_is_wrong_with_known_texts_is_said_again(make_nlp):
    """A run that goes on warns as one that was not stopped."""
    made = [Slot.of(text, "___", ("cat", "☃"), None, text) for text in TEXTS[:2]]
    for done in (0, 2):
        with pytest.warns(UserWarning, match="1 candidate .* does not know"):
            assert sum(map(len, Slots(make_nlp()).fill(made, done=done))) == 2 - done


@pytest.mark.filterwarnings("ignore:To the tokenizer")
def test_what_is_measured_does_not_depend_on_how_many_are_kept(make_nlp):
    """Of equally probable best candidates, each counts a share, those that are not written, too."""
    nlp, (text, *_) = make_nlp(), TEXTS
    words = ["the souvenir", "the  souvenir", "the   souvenir", "cat"]
    asked = Slots(nlp)
    for gold in words:
        made = [Slot.of(text, "___", tuple(words), gold, "Text 1")]
        every, *kept = (fill_slots(asked, made, keep) for keep in (None, 1, 2, 3))
        for found in kept:
            assert slot_measurements(made, found, [2]) == slot_measurements(made, every, [2])
            assert found[0] == [one for one in every[0] if one in found[0]]


def test_candidates_that_are_equal_to_the_tokenizer_are_named(make_nlp):
    with pytest.warns(UserWarning, match="1 of the candidates .*such as 'the  souvenir' to 'the so"):
        slots(make_nlp(), TEXTS[:2], ["the souvenir", "the  souvenir", "cat"])


def test_a_gold_word_that_is_found_under_another_name_does_not_compete_with_itself(make_nlp):
    nlp, text = make_nlp(), "The young ___ lost it."
    (found,) = slots(nlp, [text], top=3, max_pieces=1)
    same = f"\u200b{found[0].text}"  # the tokenizer leaves the first character out
    (with_gold,) = slots(nlp, [text], top=3, max_pieces=1, gold=[same])
    assert [one.text for one in with_gold] == [same, *(one.text for one in found[1:])]
    assert [one.probability for one in with_gold] == pytest.approx([one.probability for one in found])


def test_a_model_with_guidance_is_refused(make_nlp):
    nlp = make_nlp()
    scorer = nlp.get_pipe("pll")
    nlp = spacy_pll.make_pipeline({"name": scorer.model.name, "cfg": 1.0})
    with pytest.raises(ValueError, match="without guidance.*`cfg`.*score_continuations"):
        slots(nlp, TEXTS[:1], ["cat"])


def test_unknown_candidates_are_counted_and_last(make_nlp):
    nlp = make_nlp()
    words = ["the ☃", "cat", "☃", "the souvenir"]
    with pytest.warns(UserWarning, match=r"2 candidates have a character .* such as 'the ☃' \(Text 1, candidate 1\)"):
        found = slots(nlp, TEXTS[:2], words, gold=["☃", "cat"], keep=1)
    assert found[0][1] == ("☃", None, 0, None, None, None, True) and len(found[0]) == 2
    expected = slots(nlp, TEXTS[:2], ["cat", "the souvenir"], keep=1)
    assert [some[0][:6] for some in found] == [some[0][:6] for some in expected]
    with pytest.raises(ValueError, match="Text 2: .* no candidate, such as '☃'"):
        slots(nlp, TEXTS[:2], [["cat"], ["☃"]])


@pytest.mark.parametrize(
    "texts, candidates, more, message",
    [
        (["The cat.", "a"], ["b"], {}, r"Text 1: a text must have one gap, written '___'. It has 0: 'The cat.'"),
        (["___", "a ___ b ____"], ["b"], {}, r"Text 2: .* It has 2"),
        (["___"], ["b"], {"gap": "[MASK]"}, r"written '\[MASK\]'. It has 0.*`gap`"),
        (["a b"], ["b"], {"gap": " "}, r"written ' '. It has 0"),
        (["___"], ["a", " "], {}, "Candidate 2 is empty"),
        (["___", "___"], [["a"], ["b", "c", " b"]], {}, "Text 2, candidate 3: 'b' is there twice, first as .* 1"),
        (["___"], ["a", 3], {}, "Candidate 2 is no text, but 3"),
        (["___"], [], {}, "There are no `candidates`"),
        (["___"], ["a"], {"gold": "a"}, "`gold` must be a list of texts"),
        (["___"], ["a"], {"gold": [" "]}, "Text 1: the right candidate is empty"),
        (["___"], ["a"], {"keep": 0}, "`keep` must be 1 or more. It is 0"),
        (["___"], None, {"top": 0}, "`top` must be 1 or more"),
        (["___"], None, {"top": 1, "max_pieces": 0}, "`max_pieces` must be 1"),
        (["___"], None, {"top": 1, "keep": 1}, "Leave out `keep`"),
        (["___"], [[]], {}, "Text 1: .* no candidate"),
        (["___"], ["a"], {"gold": []}, "as many of `gold`"),
        (["___"], ["a"], {"gold": ["b"]}, "Text 1: 'b' is right, and is no candidate"),
        ("___", ["a"], {}, "`texts` must be a list of texts"),
        (["___"], "a", {}, "`candidates` must be a list of texts"),
        (["___"], ["a", "\u200b"], {}, "Text 1: The candidate '.u200b' has no wordpiece of its own"),
        (["The tr___ it"], ["aveler"], {}, "Text 1: .* 'aveler' cannot be scored apart .*`shared_pieces=True`"),
    ],
)  # fmt: skip
def test_bad_input(make_nlp, texts, candidates, more, message):
    with pytest.raises(ValueError, match=message):
        slots(make_nlp(), texts, candidates, **more)


def test_other_gaps_and_settings(make_nlp):
    nlp = make_nlp(targets="none", units="none", mask_margin=0, get_spans={"@span_getters": "spacy-pll.sent_spans.v1"})
    expected = slots(make_nlp(), ["It is a ___. She left."], ["cat", "the souvenir"])
    for gap in ("[MASK]", "<mask>", "__", "*", "… …"):
        found = slots(nlp, [f"It is a {gap}. She left."], ["cat", "the souvenir"], gap=gap)
        assert found[0][0].score == pytest.approx(expected[0][0].score, abs=1e-5)
    for metric in ("original", "whole_word"):
        with pytest.raises(
            ValueError, match=f"scored under word_l2r: {metric!r} would cost .* Set `metrics` to word_l2r"
        ):
            slots(make_nlp(metrics=[metric]), ["___"], ["cat"])


def test_what_is_not_finite_is_an_error(make_nlp, monkeypatch):
    nlp = make_nlp()
    result = PendingLogProbs.result
    monkeypatch.setattr(PendingLogProbs, "result", lambda self: result(self) * np.nan)
    with pytest.raises(ValueError, match="some log-probabilities are not finite. Give `precision='float32'`"):
        slots(nlp, ["___"], ["cat"])


@pytest.mark.parametrize("architecture, tokenizer", MODELS[:3])
def test_without_candidates_words_are_found(make_nlp, architecture, tokenizer):
    """Of one piece, all that there are; and each has the score that it has as a candidate."""
    nlp, texts = make_nlp(architecture, tokenizer), ["The young ___ lost it.", "___ lost it."]
    read = reference.load_model(nlp.get_pipe("pll").model.name)[1]
    for text, some in zip(texts, slots(nlp, texts, top=1000, max_pieces=1)):
        words = {token.removeprefix("##").removeprefix("Ġ") for token in read.get_vocab()}
        words = [word for word in sorted(words) if word.isalnum()]
        with warnings.catch_warnings():  # of words that the tokenizer does not know
            warnings.simplefilter("ignore")
            (known,) = slots(nlp, [text], words, shared_pieces=True)
        expected = {one.text: one.score for one in known if one.pieces == 1 and one.text.isascii()}
        of_one = {one.text: one.score for one in some if one.pieces == 1 and one.text.isascii()}
        assert len(expected) > 5 and of_one == pytest.approx(expected)
    for some, text in zip(slots(nlp, texts, top=5), texts):
        assert len(some) == 5 and [one.rank for one in some] == [1, 2, 3, 4, 5]
        (again,) = slots(nlp, [text], [one.text for one in some], shared_pieces=True)
        assert [one.score for one in again] == pytest.approx([one.score for one in some], abs=1e-5)


def beam_search(model, tokenizer, text, n, width):
    """The beginnings of n pieces that go on, under WordPiece: plain transformers, one row after the other."""
    before, after = sides(text)
    left = tokenizer(before).input_ids[:-1]
    right = tokenizer(after).input_ids[1:]
    names, beam = tokenizer.convert_ids_to_tokens(range(len(tokenizer))), [(0.0, ())]
    for at in range(n):
        grown = []
        for score, begun in beam:
            ids = [*left, *begun, *[tokenizer.mask_token_id] * (n - at), *right]
            log_probs = reference.predict(model, tuple(ids))[len(left) + at].tolist()
            allowed = (
                i
                for i, name in enumerate(names)
                if name.removeprefix("##").isalnum() and name.startswith("##") == bool(at)
            )
            grown += [(score + log_probs[i], (*begun, i)) for i in allowed]
        beam = sorted(grown, reverse=True)[:width]
    return {word for _, begun in beam if (word := tokenizer.decode(begun)).isalnum()}


def test_words_are_searched_by_a_beam(make_nlp):
    nlp, text, width = make_nlp(), "The young ___ lost it.", 4
    model, tokenizer = reference.load_model(nlp.get_pipe("pll").model.name)
    expected = {word for n in (1, 2, 3) for word in beam_search(model, tokenizer, text, n, width)}
    (best,) = slots(nlp, [text], sorted(expected), keep=width)
    (found,) = slots(nlp, [text], top=width, max_pieces=3)
    assert [one.text for one in found] == [one.text for one in best]
    assert [one.score for one in found] == pytest.approx([one.score for one in best], abs=1e-5)
    (with_gold,) = slots(nlp, [text], top=width, gold=["hot Traveler"])
    assert [one.text for one in with_gold if one.is_gold] == ["hot Traveler"] and len(with_gold) in (width, width + 1)
    for more in ({}, {"candidates": ["a"], "top": 1}):
        with pytest.raises(ValueError, match="Give either `candidates`, or as `top`"):
            slots(nlp, [text], **more)


def test_public_names():
    assert spacy_pll.Filler._fields[:3] == ("text", "score", "pieces")
