"""Child processes of the tests of stores; run as `python -m tests.unit.stores.child WORK DATABASE …`.

hold: take the write lock and write something, say "holding", let go of it without a trace when a line comes in.
claim: claim what is queued and the derivation lease, say what, wait.
watch N: read snapshots until one has revision N; say all that was seen.
"""

import asyncio
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from quipu.ports.derivation_view import NodeKind
from tests.unit.stores.opening import open_index


def hold(database: Path) -> None:
    """Hold the write lock until a line comes in."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM document")
        _say("holding")
        sys.stdin.readline()
        connection.execute("ROLLBACK")


async def claim(database: Path) -> None:
    """Claim jobs and the derivation lease for an hour, and do nothing about them."""
    async with open_index(database, lease_s=3600.0) as store, store.derivation_lease() as is_held:
        assert is_held
        _say([job.document_id for job in await store.claim_jobs(10)])
        await asyncio.to_thread(sys.stdin.readline)


async def watch(database: Path, until: int) -> None:
    """Read snapshot after snapshot: revision, titles of documents, number of mentions of Venice."""
    seen: list[list[object]] = []
    async with open_index(database) as store:
        _say("watching")
        revision = -1
        while revision < until:
            async with store.view() as view:
                revision = view.revision
                titles = [each.title for each in await view.documents()]
                entities = await view.entities(["venice"])
                n_hits = len(await view.search_text(NodeKind.CHUNK, "venice", 100))
            seen.append([revision, titles, [each.n_mentions for each in entities], n_hits])
    _say(seen)


def _say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    work, path, *rest = sys.argv[1:]
    if work == "hold":
        hold(Path(path))
    elif work == "claim":
        asyncio.run(claim(Path(path)))
    else:
        asyncio.run(watch(Path(path), int(rest[0])))
