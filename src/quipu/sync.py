"""The blocking twin of the engine: the same names, one background event loop, no logic."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar, Unpack

from quipu.engine import Quipu as AsyncQuipu
from quipu.engine.estimating import HowRead
from quipu.errors import Unavailable
from quipu.model.answer import Answer, AnswerPiece, Comparison
from quipu.model.chunking import Chunking
from quipu.model.delta import ChunkFacts
from quipu.model.derivation import DerivationState
from quipu.model.document import Document, Metadata, SourceDocument
from quipu.model.event import EventSink, ignore_event
from quipu.model.evidence import Evidence, Explanation
from quipu.model.query import Query
from quipu.model.results import (
    AddResult,
    DocumentDetails,
    EntityDetails,
    ImportResult,
    IndexStatus,
    RefreshResult,
    RelationDetails,
    RemoveResult,
    ReportDetails,
    SearchResult,
)
from quipu.model.tuning import TuningResult
from quipu.model.usage import Estimate, UsageRow
from quipu.settings import Settings, SettingValue
from quipu.wiring import open_engine

T = TypeVar("T")


@contextmanager
def open(index: str | Path | None = None, **settings: SettingValue) -> Iterator["Quipu"]:  # noqa: A001 - as quipu.open
    """Open the index in the directory `index` and close it at the end of the block; see `quipu.open`."""
    loop = _Loop()
    try:
        engine = loop.run(open_engine(Settings(index=index, **settings)))
        twin = Quipu(engine, loop)
        try:
            yield twin
        finally:
            loop.run(_all_closed(twin._streams))
            loop.run(engine.close())
    finally:
        loop.stop()


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="quipu.sync", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do `work` in the loop and return its result; an interrupt of the caller stops it and waits until it has.

        Raises Unavailable where the loop has been stopped.
        """
        if self._loop.is_closed():
            work.close()
            raise Unavailable("The index has been closed.", remedy="Open it again: `with quipu.sync.open(PATH) as kb`.")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                asyncio.run_coroutine_threadsafe(_settled(), self._loop).result()
            raise

    def stop(self) -> None:
        """Stop the loop and its threads."""
        self.run(self._loop.shutdown_asyncgens())
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _settled() -> None:
    """Wait until every other task has ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)


class Quipu:
    """One knowledge base, with blocking methods; see `quipu.engine.Quipu` for what each promises."""

    def __init__(self, engine: AsyncQuipu, loop: _Loop) -> None:
        self._engine = engine
        self._run = loop.run
        self._streams: set[AsyncGenerator[AnswerPiece, None]] = set()  # that are not at their end

    # ---- documents in

    def add(
        self,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        metadata: Metadata | None = None,
        chunking: Chunking | None = None,
        reread: bool = False,
        on_event: EventSink = ignore_event,
    ) -> AddResult:
        """Add files, folders or documents."""
        return self._run(
            self._engine.add(
                *sources, root=root, metadata=metadata, chunking=chunking, reread=reread, on_event=on_event
            )
        )

    def estimate(
        self,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        metadata: Metadata | None = None,
        n_sample: int = 0,
        on_event: EventSink = ignore_event,
        **how: Unpack[HowRead],
    ) -> Estimate:
        """Return what `add` would take with a language model."""
        return self._run(
            self._engine.estimate(*sources, root=root, metadata=metadata, n_sample=n_sample, on_event=on_event, **how)
        )

    def tune(
        self,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        on_event: EventSink = ignore_event,
        **sizes: Any,
    ) -> TuningResult:
        """Return how documents like these, or like those of the index, should be read."""
        return self._run(self._engine.tune(*sources, root=root, on_event=on_event, **sizes))

    def add_text(
        self,
        text: str,
        *,
        id: str | None = None,  # noqa: A002 - as in the engine
        title: str = "",
        metadata: Metadata | None = None,
        media_type: str = "text/markdown",
        on_event: EventSink = ignore_event,
    ) -> AddResult:
        """Add a text."""
        return self._run(
            self._engine.add_text(text, id=id, title=title, metadata=metadata, media_type=media_type, on_event=on_event)
        )

    def resume(self, on_event: EventSink = ignore_event) -> AddResult:
        """Work through what is queued."""
        return self._run(self._engine.resume(on_event))

    def import_graph(self, *paths: str | Path, on_event: EventSink = ignore_event) -> ImportResult:
        """Add documents with what another system has read out of them."""
        return self._run(self._engine.import_graph(*paths, on_event=on_event))

    def remove(self, ids: Sequence[str], on_event: EventSink = ignore_event) -> RemoveResult:
        """Remove documents with everything only they said."""
        return self._run(self._engine.remove(ids, on_event))

    def cancel(self, ids: Sequence[str]) -> int:
        """Drop the queued or failed work on these documents."""
        return self._run(self._engine.cancel(ids))

    def retry(self, ids: Sequence[str] | None = None) -> int:
        """Queue failed documents again."""
        return self._run(self._engine.retry(ids))

    def refresh(
        self, names: Sequence[str] = (), *, rebuild: bool = False, on_event: EventSink = ignore_event
    ) -> RefreshResult:
        """Bring up to date what is derived, kept or named."""
        return self._run(self._engine.refresh(names, rebuild=rebuild, on_event=on_event))

    def plan(self, names: Sequence[str] = (), *, rebuild: bool = False) -> tuple[DerivationState, ...]:
        """Return what `refresh` would bring up to date, or make anew, and what it would cost."""
        return self._run(self._engine.plan(names, rebuild=rebuild))

    def drop(self, names: Sequence[str]) -> tuple[str, ...]:
        """Keep these derivations no longer."""
        return self._run(self._engine.drop(names))

    def reembed(self, on_event: EventSink = ignore_event) -> int:
        """Compute every vector again and swap."""
        return self._run(self._engine.reembed(on_event))

    def purge(self) -> int:
        """Drop what no live document needs."""
        return self._run(self._engine.purge())

    # ---- answers out

    def query(self, query: str | Query, **options: Any) -> Answer:
        """Answer a question; `options` are fields of Query."""
        return self._run(self._engine.query(query, **options))

    def stream(self, query: str | Query, **options: Any) -> Iterator[AnswerPiece]:
        """Yield an answer in pieces while it is written, the whole of it last."""
        pieces = self._engine.stream(query, **options)
        self._streams.add(pieces)
        try:
            while (piece := self._run(_next(pieces))) is not None:
                yield piece
        finally:
            if pieces in self._streams:  # else the index has been closed, and they with it
                self._streams.remove(pieces)
                self._run(_all_closed({pieces}))

    def retrieve(self, query: str | Query, **options: Any) -> Evidence:
        """Return the evidence for a question."""
        return self._run(self._engine.retrieve(query, **options))

    def compare(self, query: str | Query, strategies: Sequence[str] = (), **options: Any) -> Comparison:
        """Ask the same of several strategies."""
        return self._run(self._engine.compare(query, strategies, **options))

    def explain(self, query: str | Query, *, chunk: str = "", rank: int | None = None, **options: Any) -> Explanation:
        """Return why chunks are among the evidence for a question."""
        return self._run(self._engine.explain(query, chunk=chunk, rank=rank, **options))

    def prepare(self, query: str | Query, on_event: EventSink = ignore_event, **options: Any) -> RefreshResult | None:
        """Make what the strategy of a query needs and lacks."""
        return self._run(self._engine.prepare(query, on_event, **options))

    def usage(self, since: str = "", until: str = "") -> list[UsageRow]:
        """Return what models were asked and what it cost."""
        return self._run(self._engine.usage(since, until))

    # ---- looking around

    def search(self, text: str, k: int = 10) -> SearchResult:
        """Return passages and entities that match words."""
        return self._run(self._engine.search(text, k))

    def documents(self) -> list[Document]:
        """Return every document."""
        return self._run(self._engine.documents())

    def document(self, document_id: str) -> DocumentDetails:
        """Return one document with its chunks."""
        return self._run(self._engine.document(document_id))

    def chunk(self, chunk_id: str) -> ChunkFacts:
        """Return one chunk with everything it says."""
        return self._run(self._engine.chunk(chunk_id))

    def entity(self, name: str) -> EntityDetails:
        """Return what the index says about a name."""
        return self._run(self._engine.entity(name))

    def relation(self, first: str, second: str) -> RelationDetails:
        """Return what the index says about two names together."""
        return self._run(self._engine.relation(first, second))

    def report(self, report_id: str) -> ReportDetails:
        """Return a report on a community or aggregate."""
        return self._run(self._engine.report(report_id))

    def status(self) -> IndexStatus:
        """Return how much the index holds and what waits."""
        return self._run(self._engine.status())

    def verify(self) -> list[str]:
        """Recompute every derivation; return what differs."""
        return self._run(self._engine.verify())

    def damage(self) -> list[str]:
        """Return what the database finds wrong with its files."""
        return self._run(self._engine.damage())

    def dump(self) -> Iterator[str]:
        """Yield the canonical state as JSON lines."""
        lines = self._engine.dump()
        while (line := self._run(_next(lines))) is not None:
            yield line


async def _next(items: AsyncIterator[T]) -> T | None:
    return await anext(items, None)


async def _all_closed(streams: set[AsyncGenerator[AnswerPiece, None]]) -> None:
    while streams:
        await streams.pop().aclose()
