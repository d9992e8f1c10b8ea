"""Index three texts and ask a question. No key, no server, no download.

python examples/quickstart.py
"""

import asyncio
import tempfile

import quipu

TEXTS = {
    "ventris": "Michael Ventris deciphered Linear B in 1952. He built on the work of Alice Kober.",
    "kober": "Alice Kober taught classics at Brooklyn College. She showed that Linear B had grammatical endings.",
    "evans": "Arthur Evans dug up the clay tablets with Linear B at Knossos on Crete.",
}


async def main() -> None:
    """Print the answer, then the place in the documents that proves each part of it."""
    with tempfile.TemporaryDirectory() as index:
        async with quipu.open(index) as kb:
            for document_id, text in TEXTS.items():
                await kb.add_text(text, id=document_id)
            answer = await kb.query("Who deciphered Linear B, and on whose work did he build?")
    print(answer.text)
    for citation in answer.citations:
        print(f"[{citation.number}] {citation.document_id} {citation.start}-{citation.end}: {citation.quote}")


if __name__ == "__main__":
    asyncio.run(main())
