"""An index with a bench to make derivations on, for the tests of this folder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from quipu.derive.derivation import Bench
from quipu.derive.embedding import embed_stale
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.event import ignore_event
from quipu.providers.local import ByteTokenizer
from quipu.stores.relational.sqlite import SqliteBackend
from quipu.stores.relational.store import RelationalStore
from quipu.topology import LocalTopologies
from quipu.vectors.local import LocalVectors
from tests.unit.retrieve.fakes import WordEmbedder


@asynccontextmanager
async def open_bench(folder: Path) -> AsyncIterator[Bench]:
    """Open an index whose embedder takes every word for an axis of its own."""
    embedder = WordEmbedder()
    store = RelationalStore(SqliteBackend(_made(folder) / "index.sqlite", busy_timeout_s=5), lease_s=60)
    await store.prepare()
    await store.use_embedder(embedder.identity, embedder.dimension)
    yield Bench(
        store=store,
        vectors=LocalVectors(folder / "vectors"),
        embedder=embedder,
        topology=LocalTopologies(folder / "topology"),
        tokenizer=ByteTokenizer(),
    )
    await store.close()


async def publish(bench: Bench, *documents: DocumentFacts) -> None:
    """Add documents and embed what that makes wait, as the end of an ingest does."""
    await bench.store.commit(Delta(publish=documents))
    await embed_stale(bench.store, bench.embedder, ignore_event)


async def remove(bench: Bench, *names: str) -> None:
    """Take documents out."""
    await bench.store.commit(Delta(remove=names))


async def dump(bench: Bench) -> list[str]:
    """Return the canonical state."""
    async with bench.store.view() as view:
        return [line async for line in view.dump()]


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder
