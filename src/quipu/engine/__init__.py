"""Quipu, the engine: documents in, cited answers out.

add      parse → chunk → extract → Delta(facts) → store.commit → refresh(derivations)
query    strategy(query, view, tools) → Evidence → pack → render → generate → cite → Answer
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from quipu.answer import stream
from quipu.derive.embedding import embed_stale
from quipu.engine import lookups
from quipu.engine.answering import Asker
from quipu.engine.estimating import estimate_adding
from quipu.engine.parts import Parts
from quipu.engine.readiness import Readiness
from quipu.engine.refreshing import bring_up_to_date
from quipu.engine.reporting import Run
from quipu.errors import InvalidInput
from quipu.ingest.intake import Taken, take_in
from quipu.ingest.pipeline import Work, work_queue
from quipu.ingest.reading import Recipe
from quipu.ingest.sources import FoundSource, find_sources, text_source
from quipu.model.answer import Answer, AnswerPiece
from quipu.model.chat import Role
from quipu.model.chunking import Chunking
from quipu.model.delta import ChunkFacts, Delta
from quipu.model.document import Document, Metadata, SourceDocument, Status
from quipu.model.estimate import Estimate
from quipu.model.event import Progress
from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.model.report import (
    AddReport,
    DocumentReport,
    EntityReport,
    RefreshReport,
    RelationReport,
    SearchReport,
    StatusReport,
)
from quipu.model.usage import UsageRow
from quipu.ports.sink import Sink, no_sink
from quipu.ports.store import Counts
from quipu.retrieve.asking import check

__all__ = ["Parts", "Quipu"]

REMOVED_AT_ONCE = 64
UNFINISHED = (Status.QUEUED, Status.PARSING, Status.EXTRACTING, Status.REMOVING)
POLL_S = 0.2  # how often to look whether another process has finished what was handed in here


class Quipu:
    """One knowledge base. Use it as an async context manager; every method may be called from many tasks at once."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.store
        self._working, self._deriving = asyncio.Lock(), asyncio.Lock()
        self._readiness = Readiness()
        self._asker = Asker(
            store=parts.store,
            vectors=parts.vectors,
            embedder=parts.embedder,
            tokenizer=parts.recipe.tokenizer,
            models=parts.models,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Release store and models. Work under way is given back by the call that does it, when that ends."""
        await self._parts.models.close()
        await self._store.close()

    # ---- documents in

    async def add(
        self,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        metadata: Metadata | None = None,
        chunking: Chunking | None = None,
        on_event: Sink = no_sink,
    ) -> AddReport:
        """Add files, folders or documents, and whatever was queued before; return when all of it can be queried.

        A document keeps its id (its path below `root`, by default the folder that holds the index), so that a changed
        file is an update and the same again costs nothing. A file that cannot be read is reported, not raised.
        `chunking` says how to cut them, over rules and settings. Raises NotFound for a path that does not exist.
        """
        run = Run(self._parts)
        found = self._found(sources, root, metadata)
        ready = partial(self._readiness.make_sure, run.parts.models, run.parts.recipe.extractor)
        taken = await take_in(found, self._store, run.parts.recipe.with_chunking(chunking), on_event, ready)
        return await self._finish(taken, on_event, run)

    async def estimate(
        self,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        metadata: Metadata | None = None,
        chunking: Chunking | None = None,
        n_sample: int = 0,
        on_event: Sink = no_sink,
    ) -> Estimate:
        """Return what `add` would take with a language model: calls, tokens, money and time, each with a range.

        Documents are read and cut for real, nothing is added. With `n_sample` so many chunks are read by the model
        first, and paid for; their replies are kept.
        """
        parts = self._parts.counted_by(self._parts.models.meter.child())
        return await estimate_adding(
            self._found(sources, root, metadata),
            n_sample,
            parts=parts,
            recipe=parts.recipe.with_chunking(chunking),
            on_event=on_event,
        )

    async def add_text(
        self,
        text: str,
        *,
        id: str | None = None,  # noqa: A002 - the word every caller expects
        title: str = "",
        metadata: Metadata | None = None,
        media_type: str = "text/markdown",
        on_event: Sink = no_sink,
    ) -> AddReport:
        """Add a text. Without an id it is known by its content: another text is then another document."""
        source = text_source(text, id=id, title=title, metadata=metadata or {}, media_type=media_type)
        return await self.add(source, on_event=on_event)

    async def resume(self, on_event: Sink = no_sink) -> AddReport:
        """Work through what is queued, also what a process that died left behind."""
        return await self._finish(Taken(), on_event, Run(self._parts))

    async def remove(self, ids: Sequence[str], on_event: Sink = no_sink) -> tuple[str, ...]:
        """Remove documents with everything only they said. Raises NotFound naming ids that are not known."""
        wanted = tuple(dict.fromkeys(ids))
        await self._check_known(wanted)
        if wanted:
            await self._store.commit(Delta(enqueue_removal=wanted))  # a removal that is cut short is resumed
        for start in range(0, len(wanted), REMOVED_AT_ONCE):
            await self._store.commit(Delta(remove=wanted[start : start + REMOVED_AT_ONCE]))
            done = min(start + REMOVED_AT_ONCE, len(wanted))
            on_event(Progress(stage="remove", done=done, total=len(wanted)))
        await self.refresh(on_event)
        return wanted

    async def cancel(self, ids: Sequence[str]) -> int:
        """Drop the queued or failed work on these documents; live versions stay. Return how many were dropped.

        Raises NotFound naming an id that is not known.
        """
        await self._check_known(ids)
        return len(await self._store.cancel(ids))

    async def retry(self, ids: Sequence[str] | None = None) -> int:
        """Queue failed documents, and the failed chunks of partial ones, again (all, or these); return how many."""
        await self._check_known(ids or ())
        return await self._store.retry(ids)

    async def refresh(self, on_event: Sink = no_sink) -> RefreshReport:
        """Bring every derivation up to date: summaries where there is a language model, then vectors.

        Where the budget is spent or a model is gone, the report says so, and the rest is left for the next time.
        """
        return await self._refreshed(self._parts, on_event)

    async def rebuild(self, on_event: Sink = no_sink) -> RefreshReport:
        """Build full text and links again from the chunks, then refresh."""
        await self._store.rebuild_text_index()
        return await self.refresh(on_event)

    async def reembed(self, on_event: Sink = no_sink) -> int:
        """Compute every vector with the embedder now set, beside the old ones, and swap; return how many."""
        embedder = self._parts.embedder
        await self._store.begin_reembedding(embedder.identity, embedder.dimension)
        computed = await embed_stale(self._store, embedder, on_event)
        await self._store.finish_reembedding(embedder.identity)
        async with self._store.view() as view:
            await self._parts.vectors.catch_up(view)
        return computed

    async def purge(self) -> int:
        """Drop replies no live document needs and other leftovers; return rows dropped."""
        return await self._store.purge()

    # ---- answers out

    async def query(self, query: str | Query, **options: Any) -> Answer:
        """Answer a question; `options` are fields of Query. The trace says how the answer came about."""
        return await self._asker.answer(self._asked(query, options))

    async def stream(self, query: str | Query, **options: Any) -> AsyncGenerator[AnswerPiece, None]:
        """Yield an answer in pieces while it is written; the last piece has no text and holds the whole answer."""
        asked = self._asked(query, options)
        async with aclosing(stream(partial(self._asker.answer, asked))) as pieces:
            async for piece in pieces:
                yield piece

    async def retrieve(self, query: str | Query, **options: Any) -> Evidence:
        """Return the evidence for a question: ids, scores and reasons, without an answer."""
        return await self._asker.evidence(self._asked(query, options))

    async def usage(self, since: str = "", until: str = "") -> list[UsageRow]:
        """Return what models were asked and what it cost on the days from `since` to `until` (ISO dates, UTC)."""
        return await self._store.usage(since, until)

    def _asked(self, query: str | Query, options: Mapping[str, Any]) -> Query:
        asked = self._parts.ask(query) if isinstance(query, str) else query
        try:
            asked = replace(asked, **options)
        except TypeError as error:
            raise InvalidInput(f"Unknown query option ({error}).", remedy="See quipu.Query for the options.") from None
        check(asked)
        return asked

    # ---- looking around

    async def search(self, text: str, k: int = 10) -> SearchReport:
        """Return passages that match words, by BM25, and entities by name; for people."""
        if not text.strip():
            raise InvalidInput("There is nothing to search for.", remedy="Give some words.")
        async with self._store.view() as view:
            return await lookups.search(view, text, k)

    async def documents(self) -> list[Document]:
        """Return every document, live, waiting or failed, ordered by id."""
        async with self._store.view() as view:
            return await view.documents()

    async def document(self, document_id: str) -> DocumentReport:
        """Return one document with its chunks. Raises NotFound with near matches."""
        async with self._store.view() as view:
            return await lookups.document(view, document_id)

    async def chunk(self, chunk_id: str) -> ChunkFacts:
        """Return one chunk with everything it says. Raises NotFound."""
        async with self._store.view() as view:
            return await lookups.chunk(view, chunk_id)

    async def entity(self, name: str) -> EntityReport:
        """Return what the index says about a name (or alias, or key). Raises NotFound with near matches."""
        async with self._store.view() as view:
            return await lookups.entity(view, name)

    async def relation(self, first: str, second: str) -> RelationReport:
        """Return what the index says about two names together. Raises NotFound, naming what they do relate to."""
        async with self._store.view() as view:
            return await lookups.relation(view, first, second)

    async def status(self) -> StatusReport:
        """Return how much the index holds, what waits and what is stale."""
        embedder, recipe = self._parts.embedder, self._parts.recipe
        async with self._store.view() as view:
            counts = await view.counts()
            return StatusReport(
                path=str(self._parts.path),
                revision=view.revision,
                n_documents=counts.documents,
                n_chunks=counts.chunks,
                n_entities=counts.entities,
                n_relations=counts.relations,
                n_mentions=counts.mentions,
                n_links=counts.links,
                n_vectors=counts.vectors,
                n_replies=counts.replies,
                jobs=tuple(counts.jobs.items()),
                stale=(*await view.stale(), *self._unsummarised(counts)),
                extractor=f"{recipe.extractor.identity} ({recipe.extractor.description})",
                embedder=embedder.identity,
                dimension=embedder.dimension,
                n_bytes=await asyncio.to_thread(_n_bytes, self._parts.path),
                schema=self._store.schema,
                models=self._parts.models.names(),
            )

    async def verify(self) -> list[str]:
        """Recompute every fold, link and index from the facts; return what differs, in words. Empty means sound."""
        return await self._store.verify()

    async def damage(self) -> list[str]:
        """Return what the database finds wrong with its files, in words: quicker than `verify`, which includes it."""
        return await self._store.damage()

    async def dump(self) -> AsyncIterator[str]:
        """Yield the canonical state as JSON lines: equal documents give equal bytes, whatever their history."""
        async with self._store.view() as view:
            async for line in view.dump():
                yield line

    async def _check_known(self, ids: Sequence[str]) -> None:
        async with self._store.view() as view:
            await lookups.check_known(view, ids)

    async def _work(self, handed_in: Collection[str], recipe: Recipe, on_event: Sink) -> Work:
        """Work until nothing is queued, and nothing of what was handed in is left with another worker."""
        work = Work()
        while True:
            async with self._working:  # one pipeline an engine: it takes whatever is queued, for all who wait
                await work_queue(self._store, recipe, work, on_event)
            if work.stopped is not None:
                return work
            async with self._store.view() as view:
                if not any(document.status in UNFINISHED for document in await view.documents(sorted(handed_in))):
                    return work
            await asyncio.sleep(POLL_S)

    async def _finish(self, taken: Taken, on_event: Sink, run: Run) -> AddReport:
        """Work through the queue, refresh, and report."""
        parts, handed_in = run.parts, {*taken.added, *taken.updated}
        await self._readiness.make_sure_of_waiting(self._store, parts.models, parts.recipe.extractor)
        work = await self._work(handed_in, parts.recipe, on_event)
        refreshed = await self._refreshed(parts, on_event, with_summaries=work.stopped is None)
        async with self._store.view() as view:
            finished = await view.documents(sorted(handed_in | work.status_by_document.keys()))
            counts = await view.counts()
        return run.report(taken, work, refreshed, finished=finished, counts=counts, notes=self._readiness.notes)

    async def _refreshed(self, parts: Parts, on_event: Sink, *, with_summaries: bool = True) -> RefreshReport:
        """Bring derivations up to date; summaries not of what is still to change, as they would be paid for twice."""
        async with self._deriving:  # so that no two callers compute the same
            report = await bring_up_to_date(parts, on_event, with_summaries=with_summaries)
            async with self._store.view() as view:
                await self._parts.vectors.catch_up(view)
        return report

    def _found(
        self, sources: Sequence[str | Path | SourceDocument], root: Path | None, metadata: Metadata | None
    ) -> Iterator[FoundSource]:
        """Return what is handed in: documents as they are, then files."""
        files = find_sources(
            [Path(source) for source in sources if not isinstance(source, SourceDocument)],
            root=Path(root) if root else self._parts.path.parent,
            media_types=self._parts.recipe.media_types,
            metadata=metadata,
        )
        given = (_with_metadata(source, metadata) for source in sources if isinstance(source, SourceDocument))
        return chain(given, files)

    def _unsummarised(self, counts: Counts) -> tuple[str, ...]:
        """Say what waits for a summary, where there is a model to write it."""
        n = counts.n_unsummarised
        if not n or self._parts.models.llm(Role.SUMMARISE) is None:
            return ()
        return (f"{n:,} descriptions wait for a summary",)


def _n_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder; one that is replaced meanwhile is left out."""
    total = 0
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def _with_metadata(source: SourceDocument, metadata: Metadata | None) -> SourceDocument:
    return replace(source, metadata={**source.metadata, **metadata}) if metadata else source
