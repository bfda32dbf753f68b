"""What every command prints and writes on some small files, for `same_scores.py`."""

import json
import os
import re
import shlex
import warnings
from pathlib import Path
from unittest import mock

TIMES = ("seconds", "times as fast")  # measures
PROTEIN = "MKTAYIAKQRQISFVKSHFSRQ"


def lines(*rows: object) -> str:
    """JSON lines."""
    return "".join(f"{json.dumps(row)}\n" for row in rows)


FILES = {
    "texts.txt": "The traveler lost the souvenir.\nShe can't believe it.\n\nIt costs $3.50 (or 3,50 €).\nYes.\n",
    "texts.csv": "id,text,before,after\n1,The cats sleep.,See:,Quietly.\n2,NA,,\n3,They are on the table.,The keys?,\n",
    "texts.jsonl": lines({"text": "One text.", "n": 1}, {"text": "Another one, which is longer.", "n": 2}),
    "marked.txt": "The keys to the cabinet *are* here.\n",
    "rows.csv": 'item,word,rt\n1,The,301\n1,keys,350\n1,"cabinet,",410\n2,She,310\n2,can\'t,\n2,sleep.,402\n',
    "pairs.csv": "good,bad,topic\nThe cats sleep.,The cats sleeps.,a\nShe saw herself.,She saw himself.,b\n"
    "The keys are here.,The keys is here.,a\n",
    "blimp.jsonl": lines(
        {"sentence_good": "The cats sleep.", "sentence_bad": "The cats sleeps.", "UID": "one"},
        {"sentence_good": "She saw herself.", "sentence_bad": "She saw himself.", "UID": "two"},
    ),
    "clams.txt": "True\tthe author laughs\nFalse\tthe author laugh\n",
    "rows.tsv": "Sentence\tPlausible\tItem\nThe dog barked.\t1\t1\nThe dog sang.\t0\t1\nWe ate.\t1\t2\nIt sat.\t0\t2\n",
    "choices.jsonl": lines(
        {"context": "The keys to the cabinet", "options": ["are on the table.", "is on the table."], "label": 0},
        {"context": "She drank the coffee because", "options": ["the table was heavy.", "she was tired."], "label": 1},
        {"context": ["A robin", "A hammer"], "options": "can fly.", "label": 0},
    ),
    "gaps.jsonl": lines(
        {"text": "She poured the ___ into her cup.", "words": "tea|hot milk|cup", "answer": "tea"},
        {"text": "____ are on the table.", "words": ["Keys", "The keys"], "answer": "The keys"},
    ),
    "ewok.jsonl": lines(
        {"Context1": "He is at home.", "Context2": "He is out.", "Target1": "He sleeps.", "Target2": "He walks."}
        | {"Domain": "space"}
    ),
    "wug.jsonl": lines(
        {"sentences": "the rapidness\tthe rapidity", "ratio": 0.4},
        {"sentences": "the ableness\tthe ability", "ratio": 0.1},
        {"sentences": "a badness\ta badity", "ratio": 0.9},
    ),
    "stereoset.json": json.dumps(
        {
            "data": {
                kind: [
                    {"id": "i", "target": "t", "bias_type": "race", "context": context}
                    | {
                        "sentences": [
                            {"sentence": sentence, "gold_label": label}
                            for sentence, label in zip(
                                sentences, ("stereotype", "anti-stereotype", "unrelated"), strict=True
                            )
                        ]
                    }
                ]
                for kind, context, sentences in (
                    ("intrasentence", "They are BLANK.", ("They are late.", "They are early.", "They are tables.")),
                    ("intersentence", "She came.", ("She was late.", "She was early.", "Tables are red.")),
                )
            }
        }
    ),
    "syntaxgym.json": json.dumps(
        {
            "meta": {"name": "number", "metric": "sum"},
            "predictions": [{"type": "formula", "formula": "(2;%match%) < (2;%mismatch%)"}],
            "region_meta": {"1": "Subject", "2": "Verb"},
            "items": [
                {
                    "item_number": 1,
                    "conditions": [
                        {
                            "condition_name": name,
                            "regions": [
                                {"region_number": 1, "content": "The keys"},
                                {"region_number": 2, "content": verb},
                            ],
                        }
                        for name, verb in (("match", "are here."), ("mismatch", "is here."))
                    ],
                }
            ],
        }
    ),
    "judgments.csv": "sentence,label\nThe cats sleep.,1\nThe cats sleeps.,0\nShe saw herself.,1\nShe saw himself.,0\n",
    "crows_pairs.csv": (
        ",sent_more,sent_less,stereo_antistereo,bias_type\n0,The cat slept all day.,The horse slept all day.,stereo,a\n"
        "1,The dog was never clever.,The fox was never clever.,antistereo,b\n"
    ),
    "nbest.jsonl": lines(
        {
            "id": "u1",
            "hypotheses": [{"text": "the cats at", "score": -2.9}, {"text": "the cat sat", "score": -3.1}],
            "reference": "the cat sat",
        },
        {"id": "u2", "hypotheses": [{"text": "dogs", "score": -1.0}, {"text": "", "score": -2.0}], "reference": "dogs"},
    ),
    "beams.tsv": "the cats at\t-2.9\nthe cat sat\t-3.1\n",
    "variants.csv": "mutant,DMS_score\nK2A,0.4\nT3W:A4C,-1.0\nM1L,0.1\nY5F,0.7\n",
}

# A command for each way through the package.
COMMANDS = f"""
show "The traveler lost the souvenir." "Yes." --metrics word_l2r,original --alternatives 2 --distribution
show "The traveler lost the souvenir." --mask-margin 1
score texts.txt - --metrics word_l2r,original,whole_word,sentence_l2r
score texts.txt o.jsonl --mask-margin 1 --batch-size 2
score texts.csv o.csv --metrics left_context
score texts.csv o.csv --spans sents --words tokenizer
score texts.jsonl o.tsv --tokens --alternatives 1 --distribution
score texts.csv o.csv --table words --context-column before --after-column after --lags 1 --no-log-frequency
score marked.txt o.csv --marked --table words --no-log-frequency
score texts.txt o.jsonl --n-process 2
score texts.csv o.csv --normalise slor,mean_lp --unigrams unigrams.json
score texts.jsonl o.parquet
words rows.csv o.csv --by item --lags 1 --metrics sentence_l2r
words rows.csv o.csv --by item --means item --metrics sentence_l2r
slots gaps.jsonl o.csv --candidate-column words --gold answer --hits 1
pairs pairs.csv --by topic --items items.csv --output o.json --metrics word_l2r,original
pairs blimp.jsonl --scorer builtin --scorer m=builtin,mask_margin=0 --output o.csv
pairs clams.txt --per-piece --items items.tsv
pairs rows.tsv --sentence Sentence --label Plausible --item Item --ties first
choices choices.jsonl --items items.csv --output o.json
choices choices.jsonl --metrics sentence_any_order --items items.csv
choices ewok.jsonl --reading contexts --metrics original,word_l2r --ties first --predictions o.json
choices wug.jsonl --items items.csv
suite stereoset.json --reader stereoset --items items.csv --output o.json
suite syntaxgym.json --reader syntaxgym --items items.csv
suite judgments.csv --reader acceptability --per-piece --items items.csv
suite crows_pairs.csv --reader crows_pairs --metrics original,unmasked --items items.csv
ppl texts.txt --metrics word_l2r,original --output o.json
ppl texts.csv --windows 8 --by id --mask-margin 0
ppl texts.txt --windows 8
ppl texts.txt --metrics sentence_any_order --n-passes 3 --seed 1
rescore nbest.jsonl --weight 0.4 --word-weight 0.1 --output o.jsonl
rescore nbest.jsonl --dev nbest.jsonl --grid 0:1:0.5
rescore beams.tsv --beam-size 2 --weight 1 --per-piece --output o.jsonl
agree builtin builtin,mask_margin=0 texts.txt --output o.json
margins builtin texts.txt --margins 0,1 --spacings 8 --at-least 0.5
variants variants.csv --sequence {PROTEIN} --measured DMS_score --output o.csv --model protein
variants --sequence {PROTEIN} --method wt-marginals --output o.csv --model protein
variants variants.csv --sequence {PROTEIN} --others mut --mask-margin 1 --output o.csv --model protein
variants variants.csv --sequence {PROTEIN} --method pseudo-ppl --output o.csv --model protein
render texts.txt o.html --metrics word_l2r,original
"""


def outputs(folder: Path) -> dict[str, str]:
    """What each command prints, with its warnings and how it ends, and each file that it writes, by the command.

    folder (Path): An empty folder, in which the commands run.
    """
    import torch
    from typer.testing import CliRunner

    from spacy_pll.cli import app
    from tests.protein_models import save_protein_model

    def run(command: str) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            result = CliRunner().invoke(app, shlex.split(command))
        error = "" if isinstance(result.exception, SystemExit | None) else repr(result.exception)
        return f"exit {result.exit_code}\n{result.output}{error}"

    here, found = Path.cwd(), dict[str, str]()
    os.chdir(folder)
    try:
        idle = mock.patch("os.getloadavg", return_value=(0.0, 0.0, 0.0), create=True)  # a busy machine has a hint
        with idle, mock.patch.dict(os.environ, COLUMNS="200"):
            for name, text in FILES.items():
                Path(name).write_text(text, encoding="utf8")
            torch.manual_seed(0)
            Path("protein").mkdir()
            save_protein_model(Path("protein"), "bert")
            run("unigrams texts.txt unigrams.json")
            before = set(os.listdir())
            for command in COMMANDS.strip().splitlines():
                found[command] = run(command)
                for name in sorted(set(os.listdir()) - before):
                    found[f"{command} > {name}"] = _read(Path(name))
                    Path(name).unlink()
    finally:
        os.chdir(here)
    return {name: _settled(text) for name, text in found.items()}


def _read(path: Path) -> str:
    """A file as text; a table of Parquet as JSON."""
    if path.suffix != ".parquet":
        return path.read_text(encoding="utf8")
    import pyarrow.parquet

    return json.dumps(pyarrow.parquet.read_table(path).to_pylist())


def _settled(text: str) -> str:
    """Without what differs from run to run: bars of progress, and how long something took."""
    kept = list[str]()
    for line in text.splitlines():
        if measure := next((one for one in TIMES if line.startswith(f"{one}  ")), None):
            line = measure  # a row of a table
        if not re.search(r"\[\d+:\d\d[<,]", line):  # of tqdm
            kept.append(line)
    of_results = rf'(?<="measure": )("(?:{"|".join(TIMES)})",\s+"n": \d+,\s+"value": )[^,]+'
    took = r"\bin \d+(\.\d+)? (seconds|s)\b"
    return re.sub(of_results, r"\1TIME", re.sub(took, "TIME", "\n".join(kept)))
