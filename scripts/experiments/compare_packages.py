"""The built-in model in other packages and here: the largest difference per text, for docs/coming-from.md.

    python -m venv other
    other/bin/pip install . "transformers<5" minicons==0.3.39 lm-pub-quiz==0.3.3 surprisal==0.1.7
    other/bin/pip install --no-deps textdescriptives==2.8.4 ftfy pyphen wcwidth spacy-lookups-data
    other/bin/python -m scripts.experiments.compare_packages --write docs/coming-from.md

What is not installed is not run, and its row says so. The other packages need transformers 4; TextDescriptives asks for
NumPy 1 and minicons for NumPy 2, under which both run. surprisal has no masked models: it gets a left-to-right model of
random weights, and so does the left-to-right scorer of minicons.
"""

import argparse
import math
import tempfile
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import spacy
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from scripts.docs_site.markdown_tables import print_table, replace_tables
from scripts.paper.names import BUILTIN_FOLDER
from spacy_pll import make_pipeline, score, score_continuations

PAIRS = [
    ("The keys to the cabinet are on the table.", "The keys to the cabinet is on the table."),
    ("The traveler lost the souvenir.", "The traveler lost the sky."),
    ("She can't find her mother-in-law's letters.", "She can't found her mother-in-law's letters."),
    ("The committee hasn't decided yet.", "The committee haven't decided yet."),
    ("Nobody has ever seen a unicorn in Luxembourg.", "Everybody has ever seen a unicorn in Luxembourg."),
    ("Which book did the librarian recommend to you?", "Which book did the librarian recommend it to you?"),
    ("The photographs that the journalist took were published.", "The photographs that she took was published."),
    ("He put the hat on before he left.", "He put on it before he left."),
    ("Mary's brother cut himself while he was shaving.", "Mary's brother cut herself while he was shaving."),
    ("There was a spider in the bathtub this morning.", "There was each spider in the bathtub this morning."),
]
SENTENCES = [sentence for pair in PAIRS for sentence in pair]
# What stands before and after a gap, and what is put there.
GAPS = [
    ("The traveler lost the", "."),
    ("The children sat down at the", "and ate."),
    ("They have lived in", "for ten years."),
    ("Her brother wants to become a", "in the capital."),
]
FILLERS = ["souvenir", "kitchen table", "Los Angeles", "mother-in-law", "school"]
IN_ONE_PIECE = ["car", "school", "house", "money", "king"]
Rows = list[dict[str, str]]
Scores = Iterable[float]


def sums(x: torch.Tensor) -> float:
    return x.sum(0).item()


def text_of(before: str, filler: str, after: str) -> str:
    return f"{before} {filler}{after if after == '.' else f' {after}'}"


def load_builtin():
    """The built-in model and its tokenizer, of transformers."""
    model = hf.AutoModelForMaskedLM.from_pretrained(BUILTIN_FOLDER).float().eval()
    return model, hf.AutoTokenizer.from_pretrained(BUILTIN_FOLDER)


def ours(texts: list[str], metric: str, model: str | None = None, **settings) -> list[float]:
    return [doc._.pll for doc in make_pipeline(model, [metric], **settings).pipe(texts)]


def continuations(before: str, fillers: list[str], after: str, **settings) -> list[float]:
    suffix = text_of("", "", after)[1:]
    return [found.score for found in score_continuations(make_pipeline(**settings), before, fillers, suffix)]


def row(package: str, there: str, here: str, theirs: Scores, own: Scores) -> dict[str, str]:
    pairs = list(zip(theirs, own, strict=True))
    largest = max(abs(their - our) for their, our in pairs)
    shown = f"{largest:.6f}" if largest < 0.001 else f"{largest:.2f}"
    return {"package": package, "there": there, "here": here, "texts": str(len(pairs)), "largest difference": shown}


# The sum over all tokens: the loop of question-and-answer sites.


def snippet(model, tokenizer, text: str) -> list[float]:
    """The scores of all tokens, those of [CLS] and [SEP] too."""
    ids = tokenizer(text, return_tensors="pt")["input_ids"][0]
    scores = []
    for i in range(len(ids)):
        masked = ids.clone()
        masked[i] = tokenizer.mask_token_id
        with torch.no_grad():
            logits = model(masked[None]).logits[0, i]
        scores.append(logits.log_softmax(-1)[ids[i]].item())
    return scores


def snippet_tables() -> dict[str, Rows]:
    """What [CLS] and [SEP] add, and what is left without them."""
    model, tokenizer = load_builtin()
    scores = [snippet(model, tokenizer, sentence) for sentence in SENTENCES]
    whole, special, inner = (
        [sum(values) for values in scores],
        [one[0] + one[-1] for one in scores],
        [sum(values[1:-1]) for values in scores],
    )
    n = sum(map(len, scores))

    def shown(name: str, sums: list[float], n: int | None) -> dict[str, str]:
        apart = [abs(one - two) for one, two in zip(sums[::2], sums[1::2])]
        return {
            "tokens": name,
            "mean sum of a sentence": f"{sum(sums) / len(sums):.2f}",
            "pseudo-perplexity": f"{math.exp(-sum(sums) / n):.1f}" if n else "",
            "sentences of a pair are apart by": f"{min(apart):.2f} to {max(apart):.2f}",
        }

    return {
        "the loop": [
            shown("all", whole, n),
            shown("`[CLS]` and `[SEP]`", special, None),
            shown("the others, as under `original`", inner, n - 2 * len(scores)),
        ],
        "packages": [row("the loop", "without `[CLS]` and `[SEP]`", "`original`", inner, ours(SENTENCES, "original"))],
    }


# Packages: each function imports what it needs, and gives rows of the table.


def with_fill_mask() -> Rows:
    model, tokenizer = load_builtin()
    fill = hf.pipeline("fill-mask", model=model, tokenizer=tokenizer)
    theirs, own = [], []
    for before, after in GAPS:
        found = fill(text_of(before, tokenizer.mask_token, after), targets=IN_ONE_PIECE)
        by_id = {one["token"]: math.log(one["score"]) for one in found}
        theirs += [by_id[tokenizer.convert_tokens_to_ids(filler)] for filler in IN_ONE_PIECE]
        own += continuations(before, IN_ONE_PIECE, after)
    name = f"transformers {hf.__version__}"
    return [
        row(name, "log of `fill-mask`, `targets` of one piece", "`score_continuations`", theirs, own),
        row(name, "all pieces masked at once, as pangoling does", "`score_continuations`, `whole_word`", *at_once()),
    ]


def at_once() -> tuple[Scores, Scores]:
    """The masks of pangoling's `masked_targets_pred`: one for each piece of what is put into a gap, in one pass."""
    model, tokenizer = load_builtin()
    theirs, own = [], []
    for before, after in GAPS:
        for filler in FILLERS:
            ids = tokenizer(filler, add_special_tokens=False)["input_ids"]
            text = text_of(before, tokenizer.mask_token * len(ids), after)
            encoded = tokenizer(text, return_tensors="pt")
            with torch.no_grad():
                logits = model(**encoded).logits[encoded["input_ids"] == tokenizer.mask_token_id]
            theirs.append(sum(logits.log_softmax(-1)[range(len(ids)), ids].tolist()))
        own += continuations(before, FILLERS, after, metrics=["whole_word"])
    return theirs, own


def with_minicons() -> Rows:
    from minicons.scorer import IncrementalLMScorer, MaskedLMScorer

    model, tokenizer = load_builtin()
    scorer = MaskedLMScorer(model, "cpu", tokenizer=tokenizer)
    name = f"minicons {version('minicons')}"
    original, within = (
        scorer.sequence_score(SENTENCES, PLL_metric=metric, reduction=sums)
        for metric in ("original", "within_word_l2r")
    )
    found = [
        row(name, '`PLL_metric="original"`', "`original`", original, ours(SENTENCES, "original")),
        row(
            name,
            '`PLL_metric="within_word_l2r"`',
            '`word_l2r`, `words="tokenizer"`',
            within,
            ours(SENTENCES, "word_l2r", words="tokenizer"),
        ),
        row(name, "the same", "`word_l2r`", within, ours(SENTENCES, "word_l2r")),
    ]
    theirs, own = [], []
    for before, after in GAPS:
        n = len(FILLERS)
        suffixes = [after] * n if after != "." else None
        fillers = FILLERS if suffixes else [f"{filler}." for filler in FILLERS]
        theirs += scorer.conditional_score([before] * n, fillers, suffixes, reduction=sums, PLL_metric="original")
        own += continuations(before, fillers, after if suffixes else "", metrics=["original"])
    found.append(row(name, "`conditional_score`, `original`", "`score_continuations`, `original`", theirs, own))
    with tempfile.TemporaryDirectory() as folder:
        save_causal(folder)
        incremental = IncrementalLMScorer(folder, "cpu")
        own = ours(SENTENCES, "causal", model=folder, causal=True)
        # Without the token, nothing is read before the first piece, which has no score.
        without, with_token = (
            incremental.sequence_score(SENTENCES, reduction=sums, bos_token=token) for token in (False, True)
        )
    return [
        *found,
        row(name, "`IncrementalLMScorer`", "`causal`", without, own),
        row(name, "the same, `bos_token=True`", "`causal`", with_token, own),
    ]


def with_lm_pub_quiz() -> Rows:
    from lm_pub_quiz import Evaluator

    model, tokenizer = load_builtin()
    name = f"lm-pub-quiz {version('lm-pub-quiz')}"

    def evaluator(metric: str, **settings):
        return Evaluator.from_model(
            model, tokenizer=tokenizer, model_type="MLM", device="cpu", pll_metric=metric, **settings
        )

    def theirs(metric: str) -> list[float]:
        return evaluator(metric).score_answers(template="[Y]", answers=SENTENCES, reduction="sum", batch_size=32)

    def in_gaps(**settings) -> list[float]:
        quiz = evaluator("answer_l2r+word_l2r", **settings)
        templates = [text_of(before, "[Y]", after) for before, after in GAPS]
        found = (quiz.score_answers(template=one, answers=FILLERS, reduction="sum") for one in templates)
        return [value for values in found for value in values]

    words = {"words": "tokenizer"}
    nlp, units = make_pipeline(units="answer", **words), []
    for before, after in GAPS:
        for filler in FILLERS:
            doc = nlp.make_doc(text_of(before, filler, after))
            span = doc.char_span(len(before) + 1, len(before) + 1 + len(filler))
            assert span, doc.text
            doc.spans["answer"] = [span]
            units.append(nlp(doc)._.pll)
    candidates = [value for before, after in GAPS for value in continuations(before, FILLERS, after, **words)]
    return [
        row(name, '`pll_metric="original"`', "`original`", theirs("original"), ours(SENTENCES, "original")),
        row(
            name,
            '`pll_metric="within_word_l2r"`',
            '`word_l2r`, `words="tokenizer"`',
            theirs("within_word_l2r"),
            ours(SENTENCES, "word_l2r", **words),
        ),
        row(name, '`"answer_l2r+word_l2r"`', '`units`, `words="tokenizer"`', in_gaps(), units),
        row(
            name,
            "the same, `conditional_score=True`",
            "`score_continuations`",
            in_gaps(conditional_score=True),
            candidates,
        ),
        row(
            name,
            '`pll_metric="sentence_l2r"`',
            "`sentence_l2r`",
            theirs("sentence_l2r"),
            ours(SENTENCES, "sentence_l2r"),
        ),
    ]


def save_causal(folder: str):
    """A GPT-2 of random weights, with a byte-level tokenizer that has learned from the sentences."""
    end = "<|endoftext|>"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=[end], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    fast = hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=end, eos_token=end)
    torch.manual_seed(1)
    config = hf.GPT2Config(vocab_size=len(fast), n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    config.initializer_range = 0.3  # large enough that a prediction depends on what is before it
    hf.GPT2LMHeadModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)


def with_surprisal() -> Rows:
    from surprisal import CausalHuggingFaceModel

    with tempfile.TemporaryDirectory() as folder:
        save_causal(folder)
        scorer = CausalHuggingFaceModel(folder)
        theirs = [-float(scorer.surprise(sentence)[0].surprisals.sum()) for sentence in SENTENCES]
        own = ours(SENTENCES, "causal", model=folder, causal=True)
        # They set the probability of the token that ends a text to 0 everywhere, and the others share it.
        counted = [value + sum(map(math.log1p, ends_of(folder, one))) for value, one in zip(theirs, SENTENCES)]
    name = f"surprisal {version('surprisal')}"
    return [
        row(name, "`surprise`, a left-to-right model", "`causal`", theirs, own),
        row(name, "the same, and the text may end at each token", "`causal`", counted, own),
    ]


def ends_of(folder: str, text: str) -> list[float]:
    """Minus the probability that the text ends, before each of its pieces."""
    model, tokenizer = hf.AutoModelForCausalLM.from_pretrained(folder), hf.AutoTokenizer.from_pretrained(folder)
    ids = [tokenizer.bos_token_id, *tokenizer(text)["input_ids"]]
    with torch.no_grad():
        found = model.eval()(torch.tensor([ids])).logits[0, :-1].softmax(-1)
    return (-found[:, tokenizer.eos_token_id]).tolist()


# In the order of the page. The last two have no function: one needs MXNet, the other R and reticulate.
COMPARISONS: dict[str, Callable[[], Rows] | None] = {
    "minicons": with_minicons,
    "lm-pub-quiz": with_lm_pub_quiz,
    "mlm-scoring": None,
    "surprisal": with_surprisal,
    "transformers": with_fill_mask,
    "pangoling": None,
}


def is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def package_rows() -> Rows:
    found: Rows = []
    for package, compare in COMPARISONS.items():
        if compare and is_installed(package):
            found += compare()
        else:
            empty = dict.fromkeys(("there", "here", "texts"), "")
            found.append({"package": package, **empty, "largest difference": "not run"})
    return found


def descriptives_rows() -> Rows:
    """`perplexity` of TextDescriptives, which looks up how frequent words are, beside ours."""
    import textdescriptives  # noqa: F401  (registers the component)

    nlp = spacy.blank("en")
    nlp.add_pipe("textdescriptives/information_theory")
    souvenir = "The traveler lost the souvenir."
    texts = [souvenir, "Souvenir the lost traveler the.", f"{souvenir} {souvenir}"]
    return [
        {
            "text": text,
            "`doc._.perplexity`": f"{nlp(text)._.perplexity:.2f}",
            "`doc._.per_word_perplexity`": f"{nlp(text)._.per_word_perplexity:.2f}",
            "`doc._.pppl`": f"{own.pppl:.1f}",
        }
        for text, own in zip(texts, score(texts))
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the tables into this page")
    args = parser.parse_args()
    tables = snippet_tables()
    tables["packages"] += package_rows()
    if is_installed("textdescriptives"):
        tables["TextDescriptives"] = descriptives_rows()
    for title, rows in tables.items():
        print_table(title, rows)
    if args.write:
        replace_tables(args.write, tables)


if __name__ == "__main__":
    main()
