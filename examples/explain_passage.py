"""Find out why a passage is among the evidence for a question: where the search started, and which relations led to it.

python examples/explain_passage.py
"""

import tempfile

from quipu import sync

TEXTS = {
    "linear-b": "The architect Michael Ventris deciphered Linear B. He built on the work of Alice Kober.",
    "kober": "Alice Kober taught classics at Brooklyn College.",
}
QUESTION = "Who deciphered Linear B, and on whose work did he build?"


def main() -> None:
    """Print the seeds of the search, and what leads to the first passage."""
    with tempfile.TemporaryDirectory() as index, sync.open(index) as kb:
        for document_id, text in TEXTS.items():
            kb.add_text(text, id=document_id)
        explanation = kb.explain(QUESTION, strategy="ppr", rank=1)
    for passage in explanation.chunks:
        print(f"{passage.document_id}: {passage.reason}")
        for ground in passage.supporting_hits:
            print(f"  {ground.kind} {ground.name}: {ground.connection}")


if __name__ == "__main__":
    main()
