"""Ask several retrieval strategies the same question on one index, and see what each retrieves.

python examples/compare_strategies.py
"""

import tempfile

from quipu import sync

TEXTS = {
    "linear-b": "Michael Ventris deciphered Linear B. He built on the work of Alice Kober.",
    "kober": "Alice Kober taught classics at Brooklyn College.",
    "college": "Brooklyn College was founded in New York in 1930.",
    "hieroglyphs": "Jean-François Champollion deciphered Egyptian hieroglyphs with the Rosetta Stone.",
}
QUESTION = "In which city was the college of Alice Kober founded?"


def main() -> None:
    """Print the first three passages of each strategy, and how much the strategies agree."""
    with tempfile.TemporaryDirectory() as index, sync.open(index) as kb:
        for document_id, text in TEXTS.items():
            kb.add_text(text, id=document_id)
        comparison = kb.compare(QUESTION, ["lexical", "naive", "mix", "ppr"])
    for result in comparison.results:
        passages = ", ".join(chunk.document_id for chunk in result.chunks[:3])
        print(f"{result.strategy:<8} {passages}")
    for overlap in comparison.overlaps:
        print(f"{overlap.first} and {overlap.second} share {overlap.n_both} passages (Jaccard {overlap.jaccard:.2f})")


if __name__ == "__main__":
    main()
