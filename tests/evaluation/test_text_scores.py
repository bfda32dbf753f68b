from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import Choice, Option, choices, minimal_pairs
from spacy_pll.evaluation.text_scores import asked_of, scores_of_texts
from spacy_pll.stream.contexts import TextInContext
from spacy_pll.stream.known import TextSums

PARTS = [None, (), [(0, 1)], [(1, 2), (0, 1)], [[0, 1], [0, 1], (1, 2)], [(0, 0)]]
TEXTS = st.builds(
    lambda text, context, parts: TextInContext(text, context, parts=parts),
    *map(st.sampled_from, (["ab", "cd"], ["", "x"], PARTS)),
)


def sums_of(place, part):
    """Scores that no other text or part has, under two metrics."""
    text, before, _ = place
    number = 100 * len(before) + 10 * "abcd".index(text[0]) + (3 * part[0] + part[1] + 1 if part else 0)
    return TextSums((-float(number), -0.5 * number), number + 1)


@given(st.lists(TEXTS, max_size=12))
def test_each_text_has_the_scores_of_its_parts(texts):
    """Each distinct text and part is asked for once, in whatever order texts share them."""
    places = [one.place for one in texts]
    asked = asked_of(texts, places, False)
    assert [*asked] == [*dict.fromkeys(places)]
    assert all([*parts.values()] == [*range(len(parts))] for parts in asked.values())
    found = [[sums_of(place, part) for part in parts] for place, parts in asked.items()]
    first, second = scores_of_texts(texts, places, asked, found, 2)
    for text, place, own in zip(texts, places, first.of_text, strict=True):
        expected = [sums_of(place, part and tuple(part)) for part in text.parts or [None]]
        assert first.sums[own].tolist() == [one.scores[0] for one in expected]
        assert second.sums[own].tolist() == [one.scores[1] for one in expected]
        assert first.pieces[own].tolist() == [one.pieces for one in expected]


@given(st.lists(TEXTS, min_size=1, max_size=12), st.lists(st.integers(1, 4), min_size=4, max_size=4))
def test_each_text_has_the_scores_of_its_wordpieces(texts, lengths):
    places = [one.place for one in texts]
    asked = asked_of(texts, places, True)
    n_of = dict(zip(asked, lengths))
    found = [
        [TextSums((-1.0 - i - k / 10,), 1, 10 * i + k) for k in range(n_of[place])] for i, place in enumerate(asked)
    ]
    (scores,) = scores_of_texts(texts, places, asked, found, 1)
    numbers = {place: i for i, place in enumerate(asked)}
    for place, own in zip(places, scores.of_text, strict=True):
        assert scores.ids[own].tolist() == [one.id for one in found[numbers[place]]]
        assert scores.sums[own].tolist() == [one.scores[0] for one in found[numbers[place]]]


def test_sums_or_means_are_compared():
    text, found = TextInContext("ab"), [[TextSums((-6.0,), 3)]]
    (scores,) = scores_of_texts([text], [text.place], asked_of([text], [text.place], False), found, 1)
    assert scores.compared == [-6.0] and replace(scores, per_piece=True).compared == [-2.0]


@pytest.mark.parametrize("several", [1, 2])
def test_the_place_of_a_text_in_its_context_is_computed_once(make_nlp, monkeypatch, several):
    """It was computed 24 times for 6 texts."""
    computed, place = [], TextInContext.place.fget
    monkeypatch.setattr(TextInContext, "place", property(lambda one: computed.append(one) or place(one)))
    nlp = {f"{n}": make_nlp("bert") for n in range(several)}
    pairs = [("The souvenir.", "The traveler."), ("She is young.", "He is young."), ("It left.", "The hooligans left.")]
    minimal_pairs(nlp, pairs).measurements()
    assert len(computed) == 6
    list(choices(nlp, [Choice([Option("the souvenir.", "It is"), Option("young.", "It is")])]).rows())
    assert len(computed) == 8
