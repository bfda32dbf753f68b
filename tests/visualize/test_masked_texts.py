"""The lines are what the model reads: transformers alone gives the probabilities, from the lines alone."""

from dataclasses import replace

import numpy as np
import pytest
import spacy
import torch
import transformers as hf

from spacy_pll import get_scorer, visualize
from spacy_pll.visualize.masked_texts import masked_table

from ..conftest import PARAGRAPH, get_tokenizer, scores
from ..reference import load_model

TEXT = "The traveler lost the souvenir, didn't he?"
METRICS = [
    "original", "word_l2r", "whole_word", "sentence_l2r", "left_context", "word_any_order", "unmasked"
]  # fmt: skip


def parse(one):
    """The pieces of a line, and the place that is asked: the marks are taken out, if there are some."""
    pieces = one.text.split(" ")
    marked = [i for i, piece in enumerate(pieces) if len(piece) > 2 and piece[0] == ">" and piece[-1] == "<"]
    if not marked:
        return pieces, pieces.index("<mask>" if "<mask>" in pieces else "[MASK]")
    (place,) = marked
    pieces[place] = pieces[place][1:-1]
    return pieces, place


def id_of(piece, vocabulary, known):
    """The id of a piece as it is shown, among those of the text and the special ones."""
    names = [piece, piece.removeprefix("##"), "Ġ" + piece, "▁" + piece, piece.replace("␣", "Ġ")]
    names.append(piece.replace("␣", "▁"))
    if not piece.startswith("##"):  # a word's beginning, if the text has both
        names = names[2:] + names[:2]
    return next(vocabulary[name] for name in names if vocabulary.get(name) in known)


def probability(one, folder, causal=False):
    """By transformers, from the line."""
    model, tokenizer = load_model(folder)
    known, vocabulary = {*tokenizer(TEXT)["input_ids"], *tokenizer.all_special_ids}, tokenizer.get_vocab()
    pieces, place = parse(one)
    asked = id_of(one.piece, vocabulary, known)
    ids = torch.tensor([[id_of(piece, vocabulary, known) for piece in pieces]])
    with torch.inference_mode():
        return model(input_ids=ids).logits[0, place].double().softmax(-1)[asked].item()


@pytest.mark.parametrize("architecture", ["bert", "roberta", "deberta-v2", "modernbert"])
@pytest.mark.parametrize("metric", METRICS)
def test_a_model_that_reads_the_lines_gives_the_probabilities(make_nlp, model_folder, architecture, metric):
    # The first metric is another one, and with it some rows are the same.
    nlp = make_nlp(architecture, metrics=["original", metric] if metric != "original" else [metric], words="tokenizer")
    doc = nlp(TEXT)
    lines = visualize.masked_texts(nlp, doc, metric)
    found = [one.probability for one in lines]
    np.testing.assert_allclose(found, [probability(one, model_folder(architecture)) for one in lines], atol=1e-4)
    assert len(lines) >= len(get_tokenizer("wordpiece").tokenize(TEXT)) // 2 and len({*found}) > len(found) / 2


@pytest.mark.parametrize("more", [{}, {"mask_spacing": 2}, {"targets": "some"}, {"words": "tokenizer"}])
@pytest.mark.parametrize("window", [None, 12])
def test_the_lines_sum_to_the_scores(make_nlp, more, window):
    metrics = [name for name in METRICS if "mask_spacing" not in more or "word" in name or name == "original"]
    nlp = make_nlp("roberta", metrics=metrics, **more)
    if window:
        nlp.initialize()
        model = get_scorer(nlp).model
        model.loaded = replace(model.loaded, max_length=window)
    doc = nlp.make_doc(PARAGRAPH)
    doc.spans["some"] = [doc[2:9], doc[12:13]]
    (doc,) = nlp.pipe([doc])
    for metric in metrics:
        sums = np.zeros(len(doc))
        lines = visualize.masked_texts(nlp, doc, metric)
        for one in lines:
            sums[one.token] += one.weight * one.log_prob
            assert not window or len(one.read) <= window
        expected = scores(doc, f"pll_{metric}")
        assert np.isnan(expected).any() == ("targets" in more)
        np.testing.assert_allclose(sums, np.nan_to_num(expected), atol=1e-4)
        assert [one.token for one in lines] == sorted(one.token for one in lines)


def test_the_lines_of_a_word_in_pieces(make_nlp):
    nlp = make_nlp("bert", metrics=["whole_word", "original", "sentence_l2r"])
    doc = nlp("The souvenir.")
    assert [(one.piece, one.text, one.token) for one in visualize.masked_texts(nlp, doc)] == [
        ("The", "[CLS] [MASK] souveni ##r . [SEP]", 0),
        ("souveni", "[CLS] The >[MASK]< [MASK] . [SEP]", 1),
        ("##r", "[CLS] The [MASK] >[MASK]< . [SEP]", 1),
        (".", "[CLS] The souveni ##r [MASK] [SEP]", 2),
    ]
    assert visualize.masked_texts(nlp, doc, "original")[1].text == "[CLS] The [MASK] ##r . [SEP]"
    assert visualize.masked_texts(nlp, doc, "sentence_l2r")[2].text == "[CLS] The souveni >[MASK]< [MASK] [SEP]"


def test_pieces_of_bytes_are_written_as_people_read_them(make_nlp):
    nlp = make_nlp("roberta", metrics=["original"])
    lines = visualize.masked_texts(nlp, nlp("A traveler\n— can't."))
    read = [one.piece for one in lines]
    assert not any("Ġ" in piece or "Ċ" in piece for piece in read) and {"##er", "↵", "'t"} <= {*read}
    # a piece is written alike in all lines
    for line in lines:
        shown = list(line.read)
        shown[line.position] = line.piece
        assert shown[1:-1] == read


def test_a_mask_in_the_text_is_not_taken_for_what_is_asked(make_nlp):
    nlp = make_nlp("roberta", metrics=["original"])
    with pytest.warns(UserWarning, match="<mask>"):
        first = visualize.masked_texts(nlp, nlp("The<mask> lost"))[0]
    assert first.text.startswith("<s> ><mask>< <mask>")


def test_what_a_left_to_right_model_does_not_read_is_not_shown(tmp_path):
    tokenizer = get_tokenizer("causal-gpt2")
    torch.manual_seed(0)
    ids = dict(bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id)
    config = hf.GPT2Config(n_embd=32, n_layer=2, n_head=2, n_positions=140, vocab_size=len(tokenizer), **ids)
    model = hf.GPT2LMHeadModel(config).eval()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)

    def make(leading_space):
        nlp = spacy.blank("en")
        block = {"@architectures": "spacy-pll.CausalLM.v1", "name": str(tmp_path), "leading_space": leading_space}
        nlp.add_pipe("pll", config={"model": block, "metrics": ["causal"]})
        return nlp

    nlp = make("word")
    lines = visualize.masked_texts(nlp, nlp(TEXT))
    own = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    assert [one.read[0] for one in lines] == [tokenizer.bos_token] * len(own) and lines[0].text.endswith(" ___")
    for i, (one, target) in enumerate(zip(lines, own, strict=True)):
        assert len(one.read) == i + 2 and one.read[-1] == "___"
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([[tokenizer.bos_token_id, *own[:i]]])).logits[0, -1]
        assert one.probability == pytest.approx(logits.double().softmax(-1)[target].item(), abs=1e-4)
    nlp = make("previous")
    with pytest.raises(ValueError, match="With .*`leading_space='previous'`, no text"):
        visualize.masked_texts(nlp, nlp(TEXT))


def test_what_no_single_text_says_is_refused(make_nlp, model_folder):
    nlp = make_nlp("bert", mask_margin=1)
    with pytest.raises(ValueError, match="With `mask_margin`, .*no text.*Leave it out"):
        visualize.masked_texts(nlp, nlp(TEXT))
    nlp = make_nlp("bert", metrics=["original"])
    with pytest.raises(ValueError, match="no scores under 'word_l2r'. Set `metrics`"):
        visualize.masked_texts(nlp, nlp(TEXT), "word_l2r")
    nlp = spacy.blank("en")
    block = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(model_folder("bert")), "cfg": 0.5}
    nlp.add_pipe("pll", config={"model": block, "metrics": ["original"]})
    with pytest.raises(ValueError, match="With .*`cfg`"):
        visualize.masked_texts(nlp, nlp(TEXT))


def test_the_table_has_weights_where_a_piece_has_several_texts(make_nlp):
    nlp = make_nlp("bert", metrics=["original", "word_any_order"])
    doc = nlp("The souvenir.")
    header, *rows = masked_table(visualize.masked_texts(nlp, doc), "score")
    assert header == ("wordpiece", "probability", "score", "what the model reads") and len(rows) == 5
    header, *rows = masked_table(visualize.masked_texts(nlp, doc, "word_any_order"), "score")
    assert header[3] == "weight" and [row[3] for row in rows] == ["1.00", "0.50", "0.50", "0.50", "0.50", "1.00", ""]
    assert rows[-1] == ("", "", f"{doc._.pll_word_any_order:.2f}", "", "")
    assert masked_table(visualize.masked_texts(nlp, ""), "score")[1:] == [("", "", "", "")]


def test_a_part_of_the_words(make_nlp):
    nlp = make_nlp(sample_words=0.3, seed=1)
    doc, found = nlp(TEXT), visualize.masked_texts(nlp, TEXT)
    assert {one.token for one in found} == {token.i for token in doc if token._.pll_pieces}
    assert len({one.token for one in found}) < len(doc) / 2
    assert sum(one.log_prob for one in found) == pytest.approx(doc._.pll, abs=1e-4)
