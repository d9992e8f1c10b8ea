"""Update and remove documents. The index is always what a new index of the same documents would be.

python examples/change_documents.py
"""

import asyncio
import hashlib
import tempfile
from pathlib import Path

import quipu


async def digest(kb: quipu.Quipu) -> str:
    """Return a hash of the canonical state of an index."""
    return hashlib.sha256("\n".join([line async for line in kb.dump()]).encode()).hexdigest()


async def main() -> None:
    """Reach the same documents in two ways, and compare the two indexes byte for byte."""
    with tempfile.TemporaryDirectory() as folder:
        async with quipu.open(Path(folder) / "direct") as kb:
            await kb.add_text("The head office is in Lyon.", id="office")
            direct = await digest(kb)
        async with quipu.open(Path(folder) / "changed") as kb:
            await kb.add_text("The head office is in Paris.", id="office")
            await kb.add_text("A note that nobody needs.", id="note")
            await kb.add_text("The head office is in Lyon.", id="office")  # the same id: an update
            await kb.remove(["note"])
            changed = await digest(kb)
            problems = await kb.verify()
    print("The two indexes are equal." if direct == changed else "The two indexes differ.")
    print("; ".join(problems) or "verify found no problem.")


if __name__ == "__main__":
    asyncio.run(main())
