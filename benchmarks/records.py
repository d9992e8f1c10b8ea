"""Questions to a table of 1,500 questions and answers: as they are written there, and in other words.

    python benchmarks/records.py

The table is made from 20 verbs, 25 nouns and 10 circumstances, so many of its questions differ in one word. In other
words, a question has another verb ("call off" instead of "cancel") and begins with "What is the way to". It counts how
often the answer of its record is shown, without a language model.
"""

import csv
import random
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from quipu import sync

VERBS = (
    *("reset", "cancel", "export", "import", "update", "delete", "share", "archive", "restore", "rename"),
    *("merge", "split", "print", "sign", "approve", "reject", "schedule", "assign", "upload", "download"),
)
NOUNS = (
    *("password", "invoice", "contract", "calendar", "folder", "report", "ticket", "account", "profile"),
    *("device", "printer", "badge", "licence", "route", "parcel", "voucher", "backup", "template"),
    *("survey", "payroll", "mailbox", "keyboard", "monitor", "projector", "locker"),
)
CIRCUMSTANCES = (
    *("quickly", "on a phone", "without a mouse", "as an administrator", "for a whole team"),
    *("from abroad", "at night", "with two people", "in the old version", "over a slow line"),
)
OTHER_VERBS = {
    "reset": "recover",
    "cancel": "call off",
    "export": "extract",
    "delete": "get rid of",
    "share": "give others",
    "print": "put on paper",
    "download": "fetch",
    "upload": "send in",
    "rename": "give another name to",
    "schedule": "plan",
}
N_RECORDS, N_AS_WRITTEN, N_IN_OTHER_WORDS = 1_500, 40, 60


def make_records() -> list[tuple[str, str]]:
    """Return questions with their answers, in a fixed random order."""
    records = [
        (f"How do I {verb} a {noun} {circumstance}?", f"Open {noun}s, choose {verb} and enter the code {number}.")
        for number, (verb, noun, circumstance) in enumerate(product(VERBS, NOUNS, CIRCUMSTANCES))
    ]
    random.Random(3).shuffle(records)
    return records[:N_RECORDS]


def in_other_words(question: str) -> str:
    """Return the question with another verb; "" if there is none for it."""
    verb = question.split()[3]
    if verb not in OTHER_VERBS:
        return ""
    return question.replace(f"How do I {verb}", f"What is the way to {OTHER_VERBS[verb]}")


def n_shown(index: sync.BlockingQuipu, pairs: Sequence[tuple[str, str]]) -> int:
    """Return for how many questions the answer shows that of the record."""
    return sum(answer in index.query(question).text for question, answer in pairs)


def main() -> None:
    """Make an index of the table, ask, and print the counts."""
    records = make_records()
    changed = [(text, answer) for question, answer in records if (text := in_other_words(question))]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "records.csv"
        with table.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("Question", "Answer"), *records])
        with sync.open(Path(folder) / "index") as index:
            index.add(table)
            print(f"as written: {n_shown(index, records[:N_AS_WRITTEN])} of {N_AS_WRITTEN}")
            print(f"in other words: {n_shown(index, changed[:N_IN_OTHER_WORDS])} of {N_IN_OTHER_WORDS}")


if __name__ == "__main__":
    main()
