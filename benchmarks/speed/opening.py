"""Opening: an engine on an index in a folder, as wiring opens one, with what a benchmark gives in place of settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from quipu.engine import Components, Quipu
from quipu.ingest.documents import IngestConfig
from quipu.model.query import Query
from quipu.ports.providers import Embedder
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.topology import LocalTopologyIndex
from quipu.vectors.local import LocalVectors


@asynccontextmanager
async def opened(
    folder: Path, ingest_config: IngestConfig, embedder: Embedder
) -> AsyncIterator[tuple[Quipu, Components]]:
    """Open an engine that reads by `ingest_config` and embeds with `embedder`; its parts are given beside it."""
    store = RelationalStore(SqliteBackend(folder / "index.sqlite", busy_timeout_s=30), lease_s=600)
    await store.prepare()
    await store.set_embedder(embedder.identity, embedder.dimension)
    parts = Components(
        path=folder,
        store=store,
        vectors=LocalVectors(folder / "vectors"),
        topology=LocalTopologyIndex(folder / "topology"),
        embedder=embedder,
        ingest_config=ingest_config,
        make_query=lambda text: Query(text=text),
        archives=store.archives,
    )
    async with Quipu(parts) as kb:
        yield kb, parts
