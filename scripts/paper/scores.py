"""Score every text that the analyses need, once, and keep the docs.

    python -m scripts.paper.scores --models builtin --datasets eventsadapt --blimp-pairs 100

Writes RESULTS/scores/MODEL/COLLECTION.spacy, a DocBin whose tokens carry the scores of all metrics, and next to it a
.json file with the texts' checksum, the model, its revision and the versions of packages. A collection for which all of
these are the same is not scored again. The file index.json lists what the last run asked for; the analyses read it.

Words are the model tokenizer's own pre-tokens (`words = "tokenizer"`), as K&I count them.
"""

import argparse
import hashlib
import json
import platform
import time
from collections.abc import Iterator
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_pll.pipelines import describe_model

from .data import BLIMP, CONTEXTS, EXAMPLE_SENTENCES, EXAMPLES, lower_case_words, read_blimp, read_dataset, read_items
from .errors import PLLError, shown_errors
from .files import read_json, sha256, write_json, write_whole
from .names import BUILTIN, METRICS, file_name, model_title, split_list
from .published_texts import BLIMP_PATH

INDEX = "index.json"
# To be raised when what is stored with the docs changes.
FORMAT = 1
# The packages whose versions can change a score.
PACKAGES = ["spacy-pll", "spacy", "transformers", "tokenizers", "torch"]
# The data set from whose words the frequency analysis is made.
WORDS_FROM = "eventsadapt"
# What the collections of words in a context are called, with the context's name after it.
WORDS = "words-"


class Model(NamedTuple):
    """A language model as the command line names it, "NAME" or "NAME@REVISION"."""

    name: str
    kind: str  # "masked" or "causal"

    @property
    def title(self) -> str:
        return model_title(self.name)

    @property
    def metrics(self) -> list[str]:
        return METRICS[self.kind]

    @property
    def attr(self) -> str:
        return "pll" if self.kind == "masked" else "causal"

    def config(self, leading_space: str = "word") -> dict:
        """The `model` block of the component's settings."""
        name, _, revision = self.name.partition("@")
        if self.kind == "causal":
            config: dict = {"@architectures": "spacy-pll.CausalLM.v1", "name": name, "leading_space": leading_space}
        else:
            config = {"@architectures": "spacy-pll.MaskedLM.v1", "name": None if name == BUILTIN else name}
        return {**config, "revision": revision or "main"}


def identify(model: Model) -> dict:
    """What tells this model from all others: a checksum of a folder's files, or the commit on the hub.

    It is known before the model is loaded, so a run in which all is scored already loads none.
    """
    name, _, revision = model.name.partition("@")
    location = None if name == BUILTIN else name
    on_hub = location is not None and not Path(location).is_dir()
    return {"name": model.name, **describe_model(location, _hub_commit(name, revision or "main") if on_hub else None)}


def _hub_commit(name: str, revision: str) -> str | None:
    """The commit that a revision of a model on the hub stands for.

    RAISES (OSError): There is no such model.
    """
    from huggingface_hub import try_to_load_from_cache
    from transformers import AutoConfig

    try:
        AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=False)
    except OSError as error:
        raise OSError(
            f"The model {name!r} was not found: there is no such folder, and the Hugging Face hub has no such model "
            "or cannot be reached. Download it while online, or name a folder."
        ) from error
    config = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(config).parent.name if isinstance(config, str) else None


def collections(model: Model, datasets: dict[str, list[str]], blimp: list[str]) -> dict[str, list[str]]:
    """All texts that are scored under a model, by the name of their collection."""
    words = distinct_words(datasets)
    out = {EXAMPLES: EXAMPLE_SENTENCES, **datasets}
    out.update({WORDS + name: [context.format(word) for word in words] for name, context in CONTEXTS.items()})
    if model.kind == "masked" and blimp:
        out[BLIMP] = blimp
    return out


def distinct_words(datasets: dict[str, list[str]]) -> list[str]:
    """The distinct words of EventsAdapt (or of the first data set, if EventsAdapt is not scored), sorted."""
    sentences = datasets.get(WORDS_FROM) or next(iter(datasets.values()))
    return sorted({word for sentence in sentences for word in lower_case_words(sentence)})


def make_nlp(model: Model, leading_space: str = "word"):
    """A pipeline that scores with a model, which is not loaded yet."""
    import spacy

    nlp = spacy.blank("en")
    settings = {"metrics": model.metrics, "words": "tokenizer", "attr": model.attr}
    nlp.add_pipe("pll", config={"model": model.config(leading_space), **settings})
    return nlp


class Scorer:
    """The pipeline of a model, made when a collection needs it."""

    def __init__(self, model: Model, leading_space: str):
        self.model = model
        self.leading_space = leading_space

    @cached_property
    def nlp(self):
        nlp = make_nlp(self.model, self.leading_space)
        nlp.initialize()
        return nlp

    def score(self, texts: list[str], keep_pieces: bool = False, context: str | None = None) -> bytes:
        """Score texts. RETURNS: The docs in the order of the texts, as the bytes of a DocBin.

        keep_pieces (bool): Also keep the wordpieces and their scores.
        context (Optional[str]): The texts are this, with a word in place of "{}". Only that word is scored; it is
            doc.spans["word"].
        """
        from tqdm import tqdm

        from spacy_pll import make_pipeline

        nlp = make_pipeline(self.nlp, keep_pieces=keep_pieces, targets="word" if context else None)
        make_doc = partial(_doc_of_word, self.nlp.vocab, context) if context else self.nlp.make_doc
        docs = [make_doc(text) for text in texts]
        kept = DocBin(attrs=["ORTH"], store_user_data=True)
        for doc in tqdm(nlp.pipe(docs, batch_size=512), total=len(docs), disable=None, unit=" texts"):
            kept.add(doc)
        return kept.to_bytes()

    @property
    def facts(self) -> dict:
        """What the report says about the model."""
        loaded = self.nlp.get_pipe("pll").model.load()
        transformer = loaded.checkpoint.transformer
        return {
            "class": type(transformer).__name__,
            "weights": sum(p.numel() for p in transformer.parameters()),
            "vocabulary": loaded.tokenizer.get_vocab_size(),
            "device": str(transformer.device),
        }


def _doc_of_word(vocab: Vocab, context: str, text: str) -> Doc:
    """A context with a word in it, as a doc. doc.spans["word"] is that word.

    The doc is not made by spaCy's tokenizer, which does not always give the word a token: "wed." is an abbreviation.
    """
    before, after = context.split("{}")
    words = [*before.split(), text[len(before) : len(text) - len(after)], *after.split()]
    place = len(before.split())
    doc = Doc(vocab, words, spaces=[i < place for i in range(len(words))])
    doc.spans["word"] = [doc[place : place + 1]]
    return doc


def request(name: str, texts: list[str], model: Model, identity: dict, leading_space: str) -> dict:
    """What the scores of a collection depend on. When any of it changes, the collection is scored again."""
    texts_sha256 = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
    settings = {"metrics": model.metrics, "words": "tokenizer"}
    if model.kind == "causal":
        settings["leading_space"] = leading_space
    versions = {package: version(package) for package in PACKAGES}
    return {
        "format": FORMAT,
        "collection": name,
        "texts": len(texts),
        "texts_sha256": texts_sha256,
        "kind": model.kind,
        "model": identity,
        "settings": settings,
        "versions": versions,
    }


def is_done(path: Path, wanted: dict) -> bool:
    """Whether there is a file of scores that was made for this request and has not changed since."""
    beside = path.with_suffix(".json")
    if not (path.is_file() and beside.is_file()):
        return False
    record = read_json(beside)
    return record["request"] == wanted and record["file_sha256"] == sha256(path)


def score_all(model: Model, texts_by_name: dict[str, list[str]], folder: Path, leading_space: str) -> Iterator[str]:
    """Score the collections that are not scored yet. YIELDS: One line per collection, for the user."""
    identity = identify(model)
    scorer = Scorer(model, leading_space)
    for name, texts in texts_by_name.items():
        path = folder / f"{name}.spacy"
        wanted = request(name, texts, model, identity, leading_space)
        if is_done(path, wanted):
            yield f"{model.title}, {name}: {len(texts)} texts, scored before"
            continue
        scorer.nlp  # noqa: B018  (load before the time is taken)
        begin = time.perf_counter()
        distinct = list(dict.fromkeys(texts))
        content = scorer.score(distinct, name == EXAMPLES, CONTEXTS.get(name.removeprefix(WORDS)))
        seconds = time.perf_counter() - begin
        write_whole(path, content)
        # The record is written last: a file that has one is complete.
        record = {
            "request": wanted,
            "model": scorer.facts,
            "distinct_texts": len(distinct),
            "seconds": round(seconds, 1),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "file_sha256": sha256(path),
        }
        write_json(path.with_suffix(".json"), record)
        yield f"{model.title}, {name}: {len(texts)} texts in {seconds:.0f} s"


class Scores:
    """The scores in RESULTS/scores, for the analyses."""

    def __init__(self, results: Path):
        self.folder = results / "scores"
        if not (self.folder / INDEX).is_file():
            raise PLLError(f"There are no scores in {self.folder}. Make them: python -m spacy project run score")
        self.index = read_json(self.folder / INDEX)
        for model in self.index["models"]:
            make_nlp(Model(**model))  # registers the attributes of its docs

    @property
    def datasets(self) -> list[str]:
        return self.index["datasets"]

    def items(self, dataset: str) -> list[str]:
        """The item of each of `docs`: intervals are about other items."""
        return self.index["items"][dataset]

    def models(self, kind: str) -> list[Model]:
        return [Model(**model) for model in self.index["models"] if model["kind"] == kind]

    def paths(self, model: Model) -> list[Path]:
        """The records of a model's collections."""
        return [self.folder / file_name(model.name) / f"{name}.json" for name in self.index["collections"][model.name]]

    def docs(self, model: Model, collection: str) -> dict[str, Doc]:
        """Text -> scored doc, in the order in which the texts first came."""
        path = self.folder / file_name(model.name) / f"{collection}.spacy"
        return {doc.text: doc for doc in DocBin().from_disk(path).get_docs(Vocab())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=split_list, required=True, help="Masked language models, comma-separated")
    parser.add_argument("--causal-models", type=split_list, default=[], help="Left-to-right ones")
    parser.add_argument("--causal-default", default="", help="A folder to use as one if it exists and none is named")
    parser.add_argument("--leading-space", default="word", choices=["word", "previous"])
    parser.add_argument("--datasets", type=split_list, default=["eventsadapt"])
    parser.add_argument(
        "--blimp-pairs", type=int, default=100, help="How many of each paradigm's 1,000 pairs; 0 for none"
    )
    parser.add_argument("--gpu-id", type=int, default=-1, help="GPU ID or -1 for CPU")
    parser.add_argument("--assets", type=Path, default=Path("assets"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    causal = args.causal_models
    if not causal and args.causal_default and Path(args.causal_default).is_dir():
        causal = [args.causal_default]
    models = [Model(name, "masked") for name in args.models] + [Model(name, "causal") for name in causal]
    with shown_errors():
        if not args.datasets:
            raise PLLError("No data set is named. Set the var `datasets` to some: eventsadapt, brown, librispeech.")
        if args.gpu_id >= 0:
            import spacy

            spacy.require_gpu(args.gpu_id)
        folders = [file_name(model.name) for model in models]
        if len(set(folders)) < len(folders):
            raise PLLError(f"Two of these models would have the same folder of scores: {', '.join(folders)}.")
        datasets = {name: read_dataset(name, args.assets) for name in args.datasets}
        pairs = read_blimp(args.assets / BLIMP_PATH, args.blimp_pairs) if args.blimp_pairs else []
        blimp = [sentence for pair in pairs for sentence in (pair.good, pair.bad)]
        folder = args.results / "scores"
        index = {
            "models": [model._asdict() for model in models],
            "datasets": args.datasets,
            "items": {name: read_items(name, args.assets, texts) for name, texts in datasets.items()},
            "blimp_pairs": args.blimp_pairs,
            "collections": {},
        }
        for model in models:
            texts = collections(model, datasets, blimp)
            index["collections"][model.name] = list(texts)
            for line in score_all(model, texts, folder / file_name(model.name), args.leading_space):
                print(line, flush=True)
        if not (folder / INDEX).is_file() or read_json(folder / INDEX) != index:
            write_json(folder / INDEX, index)


if __name__ == "__main__":
    main()
