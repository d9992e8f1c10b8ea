"""Restrict a question to some documents. Text of the others is never read, also not through the graph.

python examples/filter_documents.py
"""

import tempfile

from quipu import Condition, Filter, sync

LETTERS = [
    ("letters/1", "The council met in Lisbon. Maria Duarte became the head of the council.", "1998-04-02"),
    ("letters/2", "The council met in Vienna. Karl Huber became the head of the council.", "2007-09-14"),
]
FILTERS = {
    "all letters": Filter(),
    "letters since 2000": Filter(after="2000-01-01"),
    "letters of the archive in Lisbon": Filter(where=(Condition(field="archive", operator="=", value="Lisbon"),)),
}


def main() -> None:
    """Print which documents each filter leaves for the same question."""
    with tempfile.TemporaryDirectory() as index, sync.open(index) as kb:
        for document_id, text, date in LETTERS:
            archive = "Lisbon" if "Lisbon" in text else "Vienna"
            kb.add_text(text, id=document_id, metadata={"date": date, "archive": archive})
        for name, documents in FILTERS.items():
            evidence = kb.retrieve("Who became the head of the council?", filter=documents)
            passages = [kb.chunk(hit.id) for hit in evidence.chunks]
            print(f"{name}: {', '.join(sorted(passage.chunk.document_id for passage in passages))}")


if __name__ == "__main__":
    main()
