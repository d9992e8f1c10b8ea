"""A small library for retrieval tests: documents with stated facts in a real store, and vectors one can work out."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quipu.derive.derivation import embed_stale
from quipu.model.delta import ChunkFacts, Delta, DocumentFacts
from quipu.model.event import ignore_event
from quipu.model.evidence import Hit
from quipu.model.graph import AliasMention, Chunk, ClaimMention, EntityMention, RelationMention
from quipu.model.ids import chunk_id, digest
from quipu.model.query import Filter
from quipu.ports.store import ReadView
from quipu.providers.local import ByteTokenizer
from quipu.retrieve.strategy import Tools
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.text.names import entity_key
from quipu.text.words import index_terms, split_words
from quipu.topology import LocalTopologyIndex
from quipu.vectors.local import LocalVectors


class WordEmbedder:
    """Every word is an axis of its own: the cosine of two texts is that of their sets of words."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    @property
    def identity(self) -> str:
        return "words/test"

    @property
    def dimension(self) -> int:
        return 4096

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.calls.append(tuple(texts))
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for term in index_terms(split_words(text), text):
                vectors[row, int(digest(term), 16) % self.dimension] = 1.0
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return await self.embed(texts)


def page(
    title: str,
    text: str,
    *,
    names: Mapping[str, str] | None = None,
    relations: Sequence[tuple[str, str, str]] = (),
    aliases: Mapping[str, str] | None = None,
    claims: Sequence[ClaimMention] = (),
) -> DocumentFacts:
    """Return a document of one chunk: `names` to types, `relations` as (source, target, description), and so on."""
    names = names or {}
    text_hash = digest(text)
    chunk = Chunk(
        id=chunk_id(title, text_hash, 0),
        document_id=title,
        title=title,
        ordinal=0,
        text=text,
        start=0,
        end=len(text),
        n_tokens=-(-len(text.encode()) // 4),
        text_hash=text_hash,
    )
    facts = ChunkFacts(
        chunk=chunk,
        entities=tuple(_mention(name, kind, text) for name, kind in names.items()),
        relations=tuple(
            RelationMention(source=entity_key(source), target=entity_key(target), description=description)
            for source, target, description in relations
        ),
        aliases=tuple(
            AliasMention(key=entity_key(name), alias=entity_key(alias), surface=alias)
            for alias, name in (aliases or {}).items()
        ),
        claims=tuple(claims),
    )
    return DocumentFacts(id=title, title=title, content_hash=digest(title, text), chunks=(facts,), source=f"{title}.md")


class Library:
    """An index of pages, with the tools strategies get."""

    def __init__(self, folder: Path) -> None:
        self.embedder = WordEmbedder()
        self._store = RelationalStore(SqliteBackend(folder / "index.sqlite", busy_timeout_s=1), lease_s=60)
        self.tools = Tools(
            vectors=LocalVectors(folder / "vectors"),
            embedder=self.embedder,
            topology=LocalTopologyIndex(folder / "topology"),
            tokenizer=ByteTokenizer(),
        )

    async def open(self) -> None:
        await self._store.prepare()
        await self._store.set_embedder(self.embedder.identity, self.embedder.dimension)

    async def publish(self, *pages: DocumentFacts, is_embedded: bool = True) -> None:
        """Add pages, with their vectors unless told otherwise."""
        await self.commit(Delta(publish=pages), is_embedded=is_embedded)

    async def commit(self, delta: Delta, *, is_embedded: bool = True) -> None:
        """Commit a change, with the vectors it asks for unless told otherwise."""
        await self._store.commit(delta)
        if is_embedded:
            await embed_stale(self._store, self.embedder, ignore_event)
        self.embedder.calls.clear()

    @asynccontextmanager
    async def view(self, allowed: Filter | None = None) -> AsyncIterator[ReadView]:
        async with self._store.view(allowed) as view:
            yield view

    async def close(self) -> None:
        await self._store.close()


async def titles(view: ReadView, hits: Sequence[Hit]) -> list[str]:
    """Return the titles of the chunks found, in order."""
    return [chunk.title for chunk in await view.chunks([hit.id for hit in hits])]


def _mention(name: str, kind: str, text: str) -> EntityMention:
    start = max(text.find(name), 0)
    end = start + len(name) if name in text else 0
    return EntityMention(key=entity_key(name), surface=name, type=kind, start=start, end=end)
