"""An index with a bench to make derivations on, for the tests of this folder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from quipu.derive.derivation import DerivationContext, embed_stale
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.event import ignore_event
from quipu.providers.local import ByteTokenizer
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.topology import LocalTopologyIndex
from quipu.vectors.local import LocalVectors
from tests.unit.retrieve.fakes import WordEmbedder


@asynccontextmanager
async def open_bench(folder: Path) -> AsyncIterator[DerivationContext]:
    """Open an index whose embedder takes every word for an axis of its own."""
    embedder = WordEmbedder()
    store = RelationalStore(SqliteBackend(_made(folder) / "index.sqlite", busy_timeout_s=5), lease_s=60)
    await store.prepare()
    await store.set_embedder(embedder.identity, embedder.dimension)
    yield DerivationContext(
        store=store,
        vectors=LocalVectors(folder / "vectors"),
        embedder=embedder,
        topology=LocalTopologyIndex(folder / "topology"),
        tokenizer=ByteTokenizer(),
    )
    await store.close()


async def publish(context: DerivationContext, *documents: DocumentFacts) -> None:
    """Add documents and embed what that makes wait, as the end of an ingest does."""
    await context.store.commit(Delta(publish=documents))
    await embed_stale(context.store, context.embedder, ignore_event)


async def remove(context: DerivationContext, *names: str) -> None:
    """Take documents out."""
    await context.store.commit(Delta(remove=names))


async def dump(context: DerivationContext) -> list[str]:
    """Return the canonical state."""
    async with context.store.view() as view:
        return [line async for line in view.dump()]


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder
