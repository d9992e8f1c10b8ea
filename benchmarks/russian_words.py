"""Russian words in other forms than the text has: how often a passage is found by four of its words.

    pip install pymorphy3
    python benchmarks/russian_words.py [--data FOLDER]

From each Russian document of `realdocs`, twelve sentences are drawn, and from each sentence four words: as they stand,
and each in another form that pymorphy3 gives. No language model, no embedder but the default one.
"""

import argparse
import os
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pymorphy3

from quipu import sync

SENTENCES = 12
WORDS = 4
CONTENT = ("NOUN", "VERB", "INFN", "ADJF", "PRTF")
N_SHOWN = 5


@dataclass(frozen=True)
class Question:
    """Words of a sentence, as they stand and in other forms, and the beginning of the sentence."""

    exact: str
    inflected: str
    beginning: str


def questions(kb: sync.BlockingQuipu) -> Iterator[Question]:
    """Yield the questions to all Russian documents of an index, the same ones in each run."""
    analyzer, drawn = pymorphy3.MorphAnalyzer(), random.Random(5)
    for document in kb.documents():
        text = kb.text(document.id)
        if len(re.findall("[а-яё]", text)) < 1_000:
            continue
        sentences = [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n\s*\n", text)]
        plain = [
            s for s in sentences if 50 < len(s) < 220 and re.match("[А-ЯЁ]", s) and not re.search(r"[{}<>|`\[\]#=*]", s)
        ]
        for sentence in drawn.sample(plain, min(SENTENCES, len(plain))):
            parses = [analyzer.parse(word)[0] for word in re.findall(r"(?<!\w)[а-яё]{5,}", sentence)]
            content = [parse for parse in parses if parse.tag.POS in CONTENT]
            if len(content) < WORDS:
                continue
            chosen = drawn.sample(content, WORDS)
            others = [
                [form.word for form in parse.lexeme if form.word != parse.word and len(form.word) > 3] or [parse.word]
                for parse in chosen
            ]
            yield Question(
                exact=" ".join(parse.word for parse in chosen),
                inflected=" ".join(map(drawn.choice, others)),
                beginning=" ".join(sentence.split())[:40],
            )


def shares_found(kb: sync.BlockingQuipu, texts: Sequence[str], beginnings: Sequence[str], strategy: str) -> str:
    """Return how many percent of the sentences the first passage holds, and the first five."""
    places = []
    for text, beginning in zip(texts, beginnings, strict=True):
        evidence = kb.retrieve(text, strategy=strategy)
        passages = [" ".join(kb.chunk(hit.id).chunk.text.split()) for hit in evidence.chunks[:N_SHOWN]]
        places.append(next((n for n, passage in enumerate(passages) if beginning in passage), N_SHOWN))
    first, shown = sum(n == 0 for n in places), sum(n < N_SHOWN for n in places)
    return f"{100 * first / len(places):5.1f} {100 * shown / len(places):5.1f}"


def main() -> int:
    """Print a line for each strategy and form."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("QUIPU_DATA", ""), help="default: QUIPU_DATA")
    folder = parser.parse_args().data / "realdocs" / "documents"
    if not folder.is_dir():
        print(f"There is no folder {folder}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as index, sync.open(index) as kb:
        kb.add(folder, root=folder)
        asked = list(questions(kb))
        beginnings = [question.beginning for question in asked]
        print(f"{len(asked)} questions: percent in the first passage, and in the first five")
        for strategy in ("lexical", "weave"):
            for form in ("exact", "inflected"):
                texts = [getattr(question, form) for question in asked]
                print(f"{strategy:8} {form:10} {shares_found(kb, texts, beginnings, strategy)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
