"""A child process of the laws of paid embedders: it brings an index up to date and never comes to the end of it.

Run as `python -m tests.laws.embedding_child FOLDER`: it says "embedding" when it has the turn and asks for vectors, and
waits there until it is ended.
"""

import asyncio
import sys
from pathlib import Path

from tests.laws.paying import Meeting, PaidEmbedder, paying_engine

LEASE_S = 3600.0  # longer than any test: the turn is not renewed meanwhile, and nothing is written


async def embed_for_ever(folder: Path) -> None:
    """Bring an index up to date, held at the first call."""
    meeting = Meeting()
    async with paying_engine(folder, PaidEmbedder(meeting, is_first=True)) as kb:
        kb._store._lease_s = LEASE_S  # type: ignore[attr-defined]
        work = asyncio.create_task(kb.refresh())
        await meeting.begun.wait()
        sys.stdout.write("embedding\n")
        sys.stdout.flush()
        await work


if __name__ == "__main__":
    asyncio.run(embed_for_ever(Path(sys.argv[1])))
