"""What a model cannot do makes it slower. What is wrong with a trial itself shows a traceback."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import get_scorer, make_pipeline
from spacy_pll.errors import PLLError
from spacy_pll.language_model.running import capabilities, forward, group_trial
from spacy_pll.language_model.running.unable import RAISED_BY_MODELS

from ...conftest import SENTENCES, build_transformer, get_tokenizer

TOKENIZER = get_tokenizer("wordpiece")
TEXTS = [SENTENCES[0], "It lost.", SENTENCES[3]]
# What is asked for, in what the model is given: what a trial asks for and a short text by itself does not.
WHEN = {
    "told of padding": lambda given: given.get("attention_mask") is not None,
    "at positions of its own": lambda given: "position_ids" in given,
    "without keeping what it computed": lambda given: "use_cache" in given,
    "a long text": lambda given: given["input_ids"].shape[1] > 60,
}


def changed(when, change):
    """A model that gives `change(output)` when it is asked for something."""
    model = build_transformer("bert", TOKENIZER)

    def hook(module, args, given, output):
        return change(output) if when(given) else output

    model.register_forward_hook(hook, with_kwargs=True)
    return model


def raising(error):
    def change(*args, **kwargs):
        raise error

    return change


def of_logits(change):
    def changed(output):
        output.logits = change(output.logits)
        return output

    return changed


CHANGES = {
    **{error.__name__: raising(error("no")) for error in RAISED_BY_MODELS},
    "NotImplementedError": raising(NotImplementedError("no")),
    "out of memory": raising(torch.OutOfMemoryError("out of memory")),
    "shorter": of_logits(lambda logits: logits[:, :-1]),
    "longer": of_logits(lambda logits: torch.cat([logits, logits[:, :2]], dim=1)),
    "one position": of_logits(lambda logits: logits[:, :1]),
    "none": of_logits(lambda logits: logits[:, :0]),
    "fewer ids": of_logits(lambda logits: logits[..., :20]),
    "fewer rows": of_logits(lambda logits: logits[1:]),
    "more rows": of_logits(lambda logits: torch.cat([logits, logits])),
    "two axes": of_logits(lambda logits: logits[0]),
    "four axes": of_logits(lambda logits: logits[None]),
    "nothing": of_logits(lambda logits: None),
    "an array": of_logits(lambda logits: logits.numpy()),
    "NaN": of_logits(lambda logits: logits * torch.nan),
    "a tuple": lambda output: output.to_tuple(),
    "a tensor": lambda output: output.logits,
    "no logits": lambda output: SimpleNamespace(),
}


def scores(nlp):
    return [doc._.pll for doc in nlp.pipe(TEXTS)]


def check_scores(nlp, expected):
    """They are right, also once it was tried whether the model reads all masks in one pass."""
    assert scores(nlp) == pytest.approx(expected, abs=1e-4)
    try:
        get_scorer(nlp).model.load(groups=True)
    except PLLError as error:
        assert "cannot read all masks in one pass" in str(error)
    assert scores(nlp) == pytest.approx(expected, abs=1e-4)


@pytest.fixture(scope="module")
def expected():
    return scores(make_pipeline((build_transformer("bert", TOKENIZER), TOKENIZER)))


@given(when=st.sampled_from(sorted(WHEN)), change=st.sampled_from(sorted(CHANGES)))
def test_a_model_that_is_asked_for_too_much_is_used_in_another_way(expected, when, change):
    nlp = make_pipeline((changed(WHEN[when], CHANGES[change]), TOKENIZER))
    check_scores(nlp, expected)


@given(change=st.sampled_from(sorted(CHANGES)))
def test_a_model_that_cannot_read_a_short_text_is_refused(expected, change):
    model = changed(lambda given: True, CHANGES[change])
    if change in ("longer", "more rows"):  # what is not read is no fault
        assert scores(make_pipeline((model, TOKENIZER))) == pytest.approx(expected, abs=1e-4)
    else:
        with pytest.raises(PLLError, match="cannot read a short text by itself|not finite"):
            make_pipeline((model, TOKENIZER))


@pytest.mark.parametrize("error", RAISED_BY_MODELS)
@pytest.mark.parametrize(
    ("module", "name", "groups"),
    [
        (capabilities, "_agree", False),
        (capabilities, "are_close", False),
        (capabilities, "log_prob_of", False),
        (forward.Batch, "read", False),
        (forward, "check_narrowed", False),
        (group_trial, "group_passes", True),
        (group_trial, "masked_rows", True),
        (group_trial, "are_close", True),
        (forward.GroupBatch, "read", True),
        (forward, "set_hooks", True),
    ],
)
def test_a_defect_of_a_trial_is_no_fault_of_the_model(module, name, groups, error, monkeypatch):
    def defect(*args, **kwargs):
        raise error("a defect")

    model = build_transformer("bert", TOKENIZER), TOKENIZER
    language_model = get_scorer(make_pipeline(model)).model if groups else None
    monkeypatch.setattr(module, name, defect)
    with pytest.raises(error, match="a defect") as raised:
        language_model.load(groups=True) if groups else make_pipeline(model)
    assert not isinstance(raised.value, PLLError)


@pytest.mark.parametrize("architecture", ["bert", "esm"])
def test_a_model_with_a_name_that_means_something_else_elsewhere(architecture):
    """`token_dropout` is of ESM's embeddings. A part that has no ids of masks does not divide by them."""
    model = build_transformer(architecture, TOKENIZER)
    model.base_model.encoder.token_dropout = True
    nlp = make_pipeline((model, TOKENIZER))
    before = scores(nlp)
    get_scorer(nlp).model.load(groups=True)
    assert scores(nlp) == pytest.approx(before, abs=1e-4)


@given(data=st.data())
def test_a_part_that_takes_no_hooks_is_no_defect(expected, data):
    """As those that torch.jit has compiled. Of several hooks that are set together, none stays."""
    model = build_transformer("bert", TOKENIZER)
    named = dict(model.named_modules())
    last_layer = [name for name in named if name.startswith("bert.encoder.layer.1")]
    for name in data.draw(st.sets(st.sampled_from(["bert", *last_layer]), max_size=4)):
        for kind in data.draw(st.sets(st.sampled_from(["register_forward_hook", "register_forward_pre_hook"]))):
            setattr(named[name], kind, raising(RuntimeError(f"{kind} is not supported on ScriptModules")))
    nlp = make_pipeline((model, TOKENIZER))
    check_scores(nlp, expected)
    hooks = sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.bert.encoder.modules())
    narrowing = get_scorer(nlp).model.load().forward.capabilities.narrowing
    assert hooks <= {"after_last_attention": 1, "around_last_feed_forward": 2}.get(narrowing, 0)
