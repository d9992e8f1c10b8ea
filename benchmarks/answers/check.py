"""Check a file of questions against its documents: `python benchmarks/answers/check.py QUESTIONS PLAIN`.

For each question: do its gold documents exist and hold the gold, and is the gold strict enough that few windows of 500
characters of the whole collection hold it (`window_rate`, at most 0.005)? `--write` stores the rates.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # so that it runs as a file, too

from benchmarks.answers.plain import PlainDocument, read_plain  # noqa: E402
from benchmarks.answers.questions import KINDS, Question, read_questions, write_questions  # noqa: E402

WINDOW, STEP = 500, 250
MAX_WINDOW_RATE = 0.005


def main() -> int:
    """Print the faults of each question; return 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", type=Path)
    parser.add_argument("plain", type=Path, help="plain.jsonl of the documents")
    parser.add_argument("--write", action="store_true", help="write the rates into the file of questions")
    options = parser.parse_args()
    questions = read_questions(options.questions)
    documents = read_plain(options.plain)
    rates = window_rates(questions, documents)
    faults = [*repeated_ids(questions)]
    for question, rate in zip(questions, rates, strict=True):
        faults += [f"{question.id}: {fault}" for fault in faults_of(question, rate, documents)]
    if options.write:
        rated = [replace(question, window_rate=rate) for question, rate in zip(questions, rates, strict=True)]
        write_questions(rated, options.questions)
    print(json.dumps(composition(questions), ensure_ascii=False))
    print("\n".join(faults) or f"{len(questions)} questions, no fault")
    return 1 if faults else 0


def window_rates(questions: Sequence[Question], documents: Sequence[PlainDocument]) -> list[float | None]:
    """Return for each question the share of windows that hold its gold; None for an unanswerable one."""
    windows = [window for document in documents for window in text_windows(document.text)]
    return [
        round(sum(question.is_held_by(window) for window in windows) / len(windows), 4) if question.gold else None
        for question in questions
    ]


def text_windows(text: str) -> Iterator[str]:
    """Yield overlapping windows of `text`, those of blanks left out."""
    for start in range(0, max(len(text) - STEP, 1), STEP):
        window = text[start : start + WINDOW]
        if window.strip():
            yield window


def faults_of(question: Question, rate: float | None, documents: Sequence[PlainDocument]) -> Iterator[str]:
    """Yield what is wrong with one question."""
    if question.kind not in KINDS:
        yield f"unknown kind {question.kind!r}"
    if question.kind == "unanswerable":
        if question.gold or question.gold_documents:
            yield "an unanswerable question has no gold"
        return
    text_by_id = {document.id: document.text for document in documents}
    for name in question.gold_documents:
        if name not in text_by_id:
            yield f"no document {name}"
    gold_text = "\n".join(text_by_id.get(name, "") for name in question.gold_documents)
    if not question.is_held_by(gold_text):
        yield "its gold documents do not hold the gold"
    if rate is not None and rate > MAX_WINDOW_RATE:
        yield f"too loose: {rate:.4f} of all windows hold the gold (at most {MAX_WINDOW_RATE})"


def repeated_ids(questions: Sequence[Question]) -> list[str]:
    """Return a fault for each id that occurs more than once."""
    counts = Counter(question.id for question in questions)
    return [f"{name}: this id occurs {count} times" for name, count in counts.items() if count > 1]


def composition(questions: Sequence[Question]) -> dict[str, dict[str, int]]:
    """Count the questions by kind and by language."""
    return {
        "kind": dict(Counter(question.kind for question in questions)),
        "lang": dict(Counter(question.lang + "*" * question.cross_language for question in questions)),
    }


if __name__ == "__main__":
    sys.exit(main())
