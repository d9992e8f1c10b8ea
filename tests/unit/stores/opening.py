"""Opening SQLite indexes for the tests of this folder, and an example of one with everything in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from quipu.model.delta import Delta
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.steps import DIMENSION, MODEL, embed
from quipu.testing.facts import alias, document, entity, passage, relation

WHO = "World Health Organization"
_EXAMPLE = (
    document(
        "a.md",
        passage(
            f"The {WHO} (WHO) met in Geneva.",
            entity(WHO, "Organization", "An agency.", is_definition=True),
            entity("Geneva", "Location", "A town."),
            relation(WHO, "Geneva", "They met.", keywords=("meeting", "town"), weight=1.5),
            alias(WHO, "WHO"),
        ),
        passage("Geneva is old.", entity("Geneva", "Location", "It is old."), headings=("Towns",)),
        title="Geneva",
        metadata={"year": 1948, "tags": ("health", "towns")},
    ),
    document(
        "b.md",
        passage("WHO said 长城? Geneva did.", entity("长城", "Artifact"), entity("geneva", "Other")),
        title="长城",
        metadata={"region": "Asia"},
    ),
)
# Old indexes keep no texts.
EXAMPLE = tuple(replace(facts, text=None, original=None) for facts in _EXAMPLE)


@asynccontextmanager
async def open_index(
    path: Path, *, busy_timeout_s: float = 30.0, lease_s: float = 60.0, any_tokenizer: bool = False
) -> AsyncIterator[RelationalStore]:
    """Open the index in the file `path`, ready for use."""
    store = RelationalStore(SqliteBackend(path, busy_timeout_s=busy_timeout_s), lease_s=lease_s)
    try:
        await store.prepare(any_tokenizer=any_tokenizer)
        yield store
    finally:
        await store.close()


async def fill(store: RelationalStore) -> None:
    """Give an empty index the example documents and all their vectors."""
    await store.set_embedder(MODEL, DIMENSION)
    await store.commit(Delta(publish=EXAMPLE))
    await embed(store)
