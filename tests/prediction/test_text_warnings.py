"""Warnings where a model was not trained on such text."""

import re
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

import spacy_pll
from spacy_pll import compare, make_pipeline, score_continuations, score_docs
from spacy_pll.language_model.protocol import Description

from .. import reference
from ..conftest import SENTENCES, change

ARABIC = "مرحبا بالعالم الواسع"


def warned(nlp, texts, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        docs = list(nlp.pipe(texts, **options))
    assert all(doc._.pll is not None for doc in docs)
    return [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]


@pytest.mark.parametrize("lang", ["en", "xx"])
def test_no_warning_where_the_language_fits_or_is_not_known(lang):
    nlp = spacy.blank(lang)
    nlp.add_pipe("pll")
    assert warned(nlp, ["the cat sleeps"]) == []
    assert warned(nlp, [Doc(Vocab(), words=["cat"])]) == []  # of no language


def test_the_languages_of_other_models_are_not_known(make_nlp):
    assert warned(make_nlp("roberta", nlp=spacy.blank("de")), ["die Katze"]) == []


def test_the_built_in_model_is_for_english():
    english, arabic = spacy.blank("en"), spacy.blank("ar")
    for nlp in (english, arabic):
        nlp.add_pipe("pll")
    assert warned(english, SENTENCES[:4]) == warned(english, ["Café! 😀 The naïve café sells crème brûlée."]) == []
    language, unknown = warned(arabic, [ARABIC])
    assert "language of the pipeline is 'ar'" in language and "that of the built-in model is 'en'" in language
    assert "3 of 3 wordpieces are unknown" in unknown
    assert "such as 'مرحبا'" in unknown and "Give a `model`" in unknown
    assert warned(arabic, [ARABIC]) == []


def test_warnings_are_short_and_point_at_the_line_that_scores(make_nlp):
    ways = [
        lambda nlp: nlp("x" * 9999),
        lambda nlp: list(nlp.pipe(["x" * 9999])),
        lambda nlp: compare(nlp, "字", "字"),
    ]
    for way in ways:
        with pytest.warns(UserWarning, match="wordpieces are unknown") as caught:
            way(make_nlp("bert"))
        assert [warning.filename for warning in caught] == [__file__] and len(str(caught[0].message)) < 400


@pytest.mark.parametrize(("n_known", "n_messages"), [(8, 1), (9, 0)])
def test_more_than_a_tenth_of_a_batch(make_nlp, n_known, n_messages):
    nlp = make_nlp("bert")
    texts = ["a"] * n_known + ["字"]
    messages = warned(nlp, texts)
    assert len(messages) == n_messages and all(f"1 of {n_known + 1} wordpieces" in message for message in messages)


def test_a_tokenizer_that_knows_every_byte(make_nlp):
    nlp = make_nlp("roberta")
    nlp.initialize()
    assert nlp.get_pipe("pll").model.load().unknown_id is not None
    assert warned(nlp, [ARABIC, *SENTENCES[:4]]) == []


def test_a_model_with_neither_languages_nor_an_unknown_piece(make_nlp, monkeypatch):
    nlp = make_nlp("bert")
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    monkeypatch.setattr(model, "describe", lambda: Description("a model"))
    assert len(warned(nlp, [ARABIC])) == 1
    nlp.get_pipe("pll").predictor.reading.warnings.warned.clear()
    model.loaded = replace(model.loaded, unknown_id=None)
    assert warned(nlp, [ARABIC]) == []


def test_characters_that_are_unknown_again_and_again_however_many_pieces_there_are():
    nlp = spacy.blank("en")
    nlp.add_pipe("pll")
    smile, wink = (f"We saw it on the way home, and nobody knew why it was there {one}." for one in "🙂😉")
    # Of a word, it is the letter. Its other letters are known.
    city = "The people of Łódź have known it for more than a hundred years, and say so."
    assert warned(nlp, [smile] * 9 + [wink, wink, city] * 3, batch_size=4) == []
    [message] = warned(nlp, [smile])
    assert message.startswith(
        "Characters are unknown to the tokenizer of the built-in model: '🙂' (U+1F642), '😉' (U+1F609), 'ź' (U+017A); "
        "the first of them in 10 wordpieces so far."
    )
    assert warned(nlp, [smile, wink, city] * 20) == []  # once


def test_one_warning_names_some_of_many_characters():
    nlp = spacy.blank("en")
    nlp.add_pipe("pll")
    texts = [f"We saw it on the way home, and nobody knew why it was there {chr(0x1F600 + i)}." for i in range(30)]
    [message] = warned(nlp, texts * 11)
    assert message.count("U+") == 10 and " and 20 others; the first of them in 11 " in message and len(message) < 600


def test_a_very_long_word_is_warned_of_with_its_length_where_it_is_scored_exactly():
    url = "http://www.example.org/" + "/".join(f"a{i}.b" for i in range(18))
    texts = ["We saw it.", f"We saw {url} there."]
    nlp = spacy.blank("en")
    nlp.add_pipe("pll")
    predictor = nlp.get_pipe("pll").predictor
    with pytest.warns(UserWarning, match=" begins a word of ") as caught:  # before a pass
        predictor.tokenize([nlp.make_doc(text) for text in texts])
    [message] = [str(one.message) for one in caught]
    n = len(nlp.get_pipe("pll").predictor.prepare().tokenizer.encode(url, add_special_tokens=False).ids)
    assert n > 100 and f"{url[:40]!r} begins a word of {n} wordpieces" in message
    assert f"under word_l2r up to {n - 1} others are masked" in message
    for settings in ({"mask_margin": 0}, {"words": "piece"}, {"metrics": ["original"]}):
        other = spacy.blank("en")
        predictor = other.add_pipe("pll", config=settings).predictor
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            predictor.tokenize([other.make_doc(text) for text in texts])


# A clause in each script, and the setting that divides it.
CLAUSES = {
    "Chinese": ("他把那本很有意思的书看了两遍", "`lang='zh'` (spacy.blank('zh'), by character), or "),
    "Japanese": ("私はその本を二回読みました", "`lang='ja'` (spacy.blank('ja'), after pip install \"spacy[ja]\"), or "),
    "Thai": ("ฉันอ่านหนังสือเล่มนั้นสองครั้ง", "`lang='th'` (spacy.blank('th'), after pip install \"spacy[th]\"), or "),
    "Lao": ("ຂ້ອຍອ່ານປຶ້ມສອງເທື່ອ", ""),
    "Khmer": ("ខ្ញុំអានសៀវភៅពីរដង", ""),
    "Burmese": ("ငါစာအုပ်ကိုဖတ်တယ်", ""),
    "Tibetan": ("ངས་དཔེ་ཆ་ཀློག", ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("script", CLAUSES)
def test_a_clause_of_a_language_without_spaces_is_no_word(make_nlp, model_folder, script):
    clause, advice = CLAUSES[script]
    nlp = make_nlp("roberta")
    text = f"He said {clause} and left."
    [message] = warned(nlp, [SENTENCES[0], text, clause])
    assert re.match(f"'{re.escape(clause[:10])}.*' is read as one word of .* since {script} has no spaces", message)
    assert f"Set {advice}`words='piece'`: each wordpiece is a word, and word_l2r the same as original." in message
    assert warned(nlp, [text]) == []
    # What is advised is silent, and does what is said of it.
    by_piece, original = make_nlp("roberta", words="piece"), make_nlp("roberta", metrics=["original"])
    assert warned(by_piece, [text]) == warned(original, [text]) == []
    transformer, tokenizer = reference.load_model(str(model_folder("roberta")))
    ids, kept, word, _ = reference.read(nlp.make_doc(text), tokenizer, "piece")
    right = sum(reference.log_probabilities(transformer, tokenizer, ids, {target})[target] for target in kept)
    assert by_piece(text)._.pll == pytest.approx(right, abs=1e-4) != nlp(text)._.pll
    if script == "Chinese":
        chinese = make_nlp("roberta", nlp=spacy.blank("zh"))
        assert warned(chinese, [clause]) == [] and len(chinese(clause)) == len(clause)
        assert warned(chinese, [Doc(chinese.vocab, words=["她", clause])]) == []  # whoever divided it knows words


@example("a𠀀𠀀")  # four bytes, each a piece
@given(st.lists(st.sampled_from(["字", "𠀀", "の", "ก", "a", "é", " ", "word", "."]), max_size=30).map("".join))
def test_a_word_is_a_clause_from_eight_pieces_of_its_script_on(byte_level_nlp, text):
    """By Python's own loops, over the record of the pieces."""
    nlp = byte_level_nlp
    nlp.get_pipe("pll").predictor.reading.warnings.warned.clear()
    text = f"word {text}"
    is_warned = any("is read as one word" in message for message in warned(nlp, [text]))
    data = nlp(text)._.pll_data
    first = [text[start : start + 1] for start in data["start"]]
    counts = Counter(word for word, character in zip(data["word"], first) if character in [*"字𠀀のก"])
    assert is_warned == any(n >= 8 for n in counts.values())


@pytest.fixture(scope="module")
def byte_level_nlp(model_folder):
    return make_pipeline(str(model_folder("roberta")), keep_pieces=True)


@pytest.mark.parametrize(
    ("architecture", "token", "kind"),
    [("bert", "[MASK]", "a mask"), ("bert", "[SEP]", "the special token"), ("bert", "[CLS]", "the special token"),
     ("roberta", "<mask>", "a mask"), ("roberta", "</s>", "the special token")],
)  # fmt: skip
def test_a_special_token_that_stands_in_a_text(make_nlp, architecture, token, kind):
    nlp = make_nlp(architecture)
    assert warned(nlp, SENTENCES[:4]) == []
    [message] = warned(nlp, [SENTENCES[0], f"The {token} lost it."])
    assert message.startswith(
        f"The model reads '{token}' in the text 'The {token} lost it.' as {kind}, and it is scored"
    )
    assert warned(nlp, [f"The {token} lost it."]) == []
    # In what is context alone, it takes the score of nothing, and may be meant.
    nlp = make_nlp(architecture)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        score_continuations(nlp, f"The {token} lost", ["it", "the souvenir"])
    assert not caught


def left_out(docs):
    return [[doc[:1]] for doc in docs]


# A text for each kind of warning, and the settings under which it is given.
WARNED = {
    "language": ("die Katze", {"nlp": "de"}),
    "unknown": ("字 字", {}),
    "characters": ("the cat sleeps on the souvenir and the traveler left it 字 " * 10, {}),
    "left out": ("the cat sleeps", {"get_spans": left_out}),
    "unspaced": (CLAUSES["Thai"][0], {"architecture": "roberta"}),
    "words": ("ven" * 31, {}),
    "special": ("The [MASK] lost it.", {}),
    "targets": ("the cat sleeps", {"targets": "x"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["pipe", "batches", "call", "score", "workers"])
@pytest.mark.parametrize("kind", WARNED)
def test_where_warnings_are_errors_none_is_lost(make_nlp, kind, way):
    """Whatever scores, and again and again. Without that, it is given once."""
    text, settings = WARNED[kind]
    settings, get_spans = {**settings}, settings.get("get_spans")
    settings.pop("get_spans", None)
    if kind == "language":
        nlp = spacy.blank(settings["nlp"])
        nlp.add_pipe("pll")
    else:
        nlp = make_nlp(**settings)
    if get_spans:
        change(nlp.get_pipe("pll"), get_spans=get_spans)
    ways = {
        "pipe": lambda: list(nlp.pipe([text])),
        "batches": lambda: list(nlp.pipe(["the cat sleeps", text, "the cat"] * 2, batch_size=3)),
        "call": lambda: nlp(text),
        "score": lambda: spacy_pll.score([text], nlp),
        "workers": lambda: list(score_docs(nlp, [text], 8)),
    }
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            with pytest.raises(UserWarning):
                ways[way]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        ways[way]()
    assert caught


@pytest.mark.parametrize("has_units", [False, True])
def test_a_text_that_is_one_long_word_is_warned_of_unless_its_words_are_given(make_nlp, has_units):
    nlp = make_nlp("bert", units="units")
    doc = nlp.make_doc("ven" * 31)
    doc.spans["units"] = [doc[:]] if has_units else []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(nlp.pipe(["The traveler lost it.", doc]))
    assert any("wordpieces is one word" in str(one.message) for one in caught) is not has_units


FOREIGN = {
    "German": "Die Regierung hat am Mittwoch beschlossen, die Steuern für kleine Unternehmen zu senken. Der Minister "
    "erklärte, dass dies den Arbeitsmarkt stärken werde. Viele Bürger sind jedoch skeptisch und fragen sich, woher das "
    "Geld kommen soll. Im Herbst wird das Parlament darüber abstimmen. Wir gehen morgen in den Wald und sammeln Pilze.",
    "French": "Le gouvernement a décidé mercredi de baisser les impôts des petites entreprises. Le ministre a expliqué "
    "que cette mesure renforcerait le marché du travail. Beaucoup de citoyens restent sceptiques et se demandent où "
    "trouver cet argent. En automne, le parlement votera sur cette question. Nous allons demain dans la forêt.",
}
SOUND = {
    "jargon": "The phosphodiesterase inhibitor sildenafil ameliorates pulmonary hypertension in bronchopulmonary "
    "dysplasia. Immunohistochemistry revealed hyperphosphorylated glycoproteins in hepatocytes, and echocardiography "
    "showed cardiomyopathy with ventricular fibrillation. Pharmacokinetic parameters of intravenously administered "
    "dexamethasone were determined by chromatography. Hypercholesterolemia and thrombocytopenia were contraindications "
    "to anticoagulation, and electroencephalography confirmed neurodegeneration.",
    "code": " ".join((Path(__file__).parents[2] / "spacy_pll" / "metrics.py").read_text().split()[:400]),
    "numbers": "1 2 3 4 5 " * 100,
    "capitals": "THE TRAVELER LOST THE SOUVENIR THAT SHE HAD BOUGHT IN PARIS. " * 8,
    "names": "Szczepanski Nguyen Oyelaran Papadopoulos Kowalczyk Gutierrez Bjornsson Zhuang Okonkwo Tkachenko. " * 8,
}


def of_split_words(nlp, texts, **options):
    return [message for message in warned(nlp, texts, **options) if "words are split" in message]


@pytest.mark.slow
@pytest.mark.usefixtures("real_english")
@pytest.mark.parametrize("name", [*FOREIGN, *SOUND])
def test_words_of_another_language_are_split(name):
    """However the words come in batches; the first ones tell."""
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"metrics": ["original"], "mask_margin": 0})
    texts = ({**FOREIGN, **SOUND}[name].strip().split(". ") + ["The cat sat."]) * 2
    found = of_split_words(nlp, texts, batch_size=3)
    if name in SOUND:
        assert found == []
    else:
        [message] = found
        assert "words of another language than 'en'" in message
    assert of_split_words(nlp, ["The travelers lost it in the cabin near the river."] * 30 + texts[:2]) == []
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"metrics": ["original"], "mask_margin": 0})
    assert of_split_words(nlp, texts[:2]) == []  # too few words to tell


def test_a_model_whose_language_is_not_known_does_not_warn_of_split_words(make_nlp):
    assert of_split_words(make_nlp("bert"), [FOREIGN["German"]] * 4) == []
