"""The blocking twin of the engine: the same methods with the same parameters, run in a background event loop.

Each method below is made from the engine's method by `_blocking` or `_iterating`. These keep its parameters and its
docstring, and turn the awaited result into a plain one, so type checkers and `help()` know the twin as well as the
engine. Each method takes one line, and a test fails where one is missing: nothing is generated or written twice.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Sequence
from functools import wraps
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from quipu.engine import Quipu
from quipu.engine.conversations import Conversations
from quipu.engine.edits import Edits
from quipu.errors import Unavailable
from quipu.ports.history import ArchiveSummary
from quipu.settings import Settings, SettingValue
from quipu.wiring import open_engine
from quipu.wiring.restoring import restore_index

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E")


def open(index: str | Path | None = None, **settings: SettingValue) -> "BlockingQuipu":  # noqa: A001 - as quipu.open
    """Open the index in the directory `index`; see `quipu.open`.

    Use the result in a `with` block, or call its `close()`. A program or notebook that does neither loses nothing.
    """
    loop = _BackgroundLoop()
    try:
        return BlockingQuipu(loop.run(open_engine(Settings(index=index, **settings))), loop)
    except BaseException:
        loop.stop()
        raise


def restore(
    file: str | Path, index: str | Path | None = None, *, replace: bool = False, **settings: SettingValue
) -> ArchiveSummary:
    """Restore an archive into the index in the directory `index`; see `quipu.restore`."""
    return asyncio.run(restore_index(Path(file), Settings(index=index, **settings), replace=replace))


class _BackgroundLoop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run_until_stopped, name="quipu.sync", daemon=True)
        self._thread.start()

    @property
    def is_stopped(self) -> bool:
        """Whether the loop has been stopped for good."""
        return self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop and return its result; an interrupt of the caller cancels it and waits for its end.

        Raises Unavailable where the loop has been stopped.
        """
        if self.is_stopped:
            work.close()
            raise Unavailable("The index has been closed.", remedy="Open it again: `kb = quipu.sync.open(PATH)`.")
        tasks: list[asyncio.Task[Any]] = []

        async def recorded() -> T:
            tasks.extend(filter(None, [asyncio.current_task()]))
            return await work

        future = asyncio.run_coroutine_threadsafe(recorded(), self._loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                asyncio.run_coroutine_threadsafe(_wait_for(tasks), self._loop).result()
                work.close()  # it has ended, unless it never began
            raise

    def stop(self) -> None:
        """Stop the loop and its threads; a stopped loop stays as it is."""
        if self.is_stopped:
            return
        self.run(self._loop.shutdown_asyncgens())
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def stop_after(self, work: Coroutine[Any, Any, None]) -> None:
        """Have the loop run `work` and then stop, without waiting for either."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        future.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._loop.stop))

    def _run_until_stopped(self) -> None:
        self._loop.run_forever()
        self._loop.close()


async def _wait_for(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait until these tasks have ended."""
    if tasks:
        await asyncio.wait(tasks)


def _blocking(method: Callable[Concatenate[E, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """Return the blocking twin of a method of the engine, of its conversations or of its edits."""

    @wraps(method)
    def twin(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        result: T = self._run(method(self._engine, *args, **options))
        return result

    return twin


def _iterating(
    method: Callable[Concatenate[Quipu, P], AsyncIterator[T]],
) -> Callable[Concatenate["BlockingQuipu", P], Iterator[T]]:
    """Return the blocking twin of a method of the engine that yields; closing the index ends it."""

    @wraps(method)
    def twin(self: "BlockingQuipu", /, *args: P.args, **options: P.kwargs) -> Iterator[T]:
        iterator = method(self._engine, *args, **options)
        assert isinstance(iterator, AsyncGenerator), "the engine yields from async generators only"
        self._iterators.add(iterator)
        try:
            while (element := self._run(_next(iterator))) is not None:
                yield element
        finally:
            if iterator in self._iterators:  # else the index has been closed, and the iterator with it
                self._iterators.remove(iterator)
                self._run(_close_all({iterator}))

    return twin


async def _next(iterator: AsyncIterator[T]) -> T | None:
    return await anext(iterator, None)


async def _close_all(iterators: set[AsyncGenerator[Any, None]]) -> None:
    while iterators:
        await iterators.pop().aclose()


class BlockingConversations:
    """Saved conversations, with blocking methods; see `quipu.engine.conversations.Conversations`."""

    def __init__(self, engine: Conversations, loop: _BackgroundLoop) -> None:
        self._engine = engine
        self._run = loop.run

    ask = _blocking(Conversations.ask)
    page = _blocking(Conversations.page)
    read = _blocking(Conversations.read)
    rename = _blocking(Conversations.rename)
    delete = _blocking(Conversations.delete)


class BlockingEdits:
    """Corrections of the graph, with blocking methods; see `quipu.engine.edits.Edits`."""

    def __init__(self, engine: Edits, loop: _BackgroundLoop) -> None:
        self._engine = engine
        self._run = loop.run

    make = _blocking(Edits.make)
    preview = _blocking(Edits.preview)
    undo = _blocking(Edits.undo)
    history = _blocking(Edits.history)
    edit = _blocking(Edits.edit)
    duplicates = _blocking(Edits.duplicates)
    decide = _blocking(Edits.decide)
    merge_duplicates = _blocking(Edits.merge_duplicates)


class BlockingQuipu:
    """One knowledge base, with blocking methods; see `quipu.engine.Quipu`, which promises the same."""

    def __init__(self, engine: Quipu, loop: _BackgroundLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._run = loop.run
        self.conversations = BlockingConversations(engine.conversations, loop)
        self.edits = BlockingEdits(engine.edits, loop)
        self._iterators: set[AsyncGenerator[Any, None]] = set()  # that have not reached their end

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._loop.is_stopped and not sys.is_finalizing():  # at exit, the loop's thread no longer runs
            self._loop.stop_after(self._engine.close())

    def close(self) -> None:
        """Close the index and stop its thread; closing twice does nothing."""
        if self._loop.is_stopped:
            return
        try:
            self._run(_close_all(self._iterators))
            self._run(self._engine.close())
        finally:
            self._loop.stop()

    # ---- documents in

    add = _blocking(Quipu.add)
    enqueue = _blocking(Quipu.enqueue)
    estimate = _blocking(Quipu.estimate)
    tune = _blocking(Quipu.tune)
    add_text = _blocking(Quipu.add_text)
    import_graph = _blocking(Quipu.import_graph)
    resume = _blocking(Quipu.resume)
    work = _blocking(Quipu.work)
    remove = _blocking(Quipu.remove)
    mirror = _blocking(Quipu.mirror)
    watch = _iterating(Quipu.watch)
    cancel = _blocking(Quipu.cancel)
    retry = _blocking(Quipu.retry)
    refresh = _blocking(Quipu.refresh)
    plan = _blocking(Quipu.plan)
    drop = _blocking(Quipu.drop)
    complete = _blocking(Quipu.complete)
    embed = _blocking(Quipu.embed)
    reembed = _blocking(Quipu.reembed)
    purge = _blocking(Quipu.purge)
    earlier_versions = _blocking(Quipu.earlier_versions)

    # ---- answers out

    query = _blocking(Quipu.query)
    stream = _iterating(Quipu.stream)
    retrieve = _blocking(Quipu.retrieve)
    passages = _blocking(Quipu.passages)
    compare = _blocking(Quipu.compare)
    explain = _blocking(Quipu.explain)
    usage = _blocking(Quipu.usage)
    prepare = _blocking(Quipu.prepare)

    # ---- looking around

    search = _blocking(Quipu.search)
    documents = _blocking(Quipu.documents)
    document = _blocking(Quipu.document)
    preview_removal = _blocking(Quipu.preview_removal)
    chunks = _blocking(Quipu.chunks)
    text = _blocking(Quipu.text)
    original = _iterating(Quipu.original)
    page_picture = _blocking(Quipu.page_picture)
    chunk = _blocking(Quipu.chunk)
    entity = _blocking(Quipu.entity)
    relation = _blocking(Quipu.relation)
    report = _blocking(Quipu.report)
    entities = _blocking(Quipu.entities)
    relations = _blocking(Quipu.relations)
    neighbours = _blocking(Quipu.neighbours)
    subgraph = _blocking(Quipu.subgraph)
    paths = _blocking(Quipu.paths)
    graph_map = _blocking(Quipu.graph_map)
    export_graph = _iterating(Quipu.export_graph)
    backup = _blocking(Quipu.backup)
    status = _blocking(Quipu.status)
    verify = _blocking(Quipu.verify)
    repair = _blocking(Quipu.repair)
    damage = _blocking(Quipu.damage)
    dump = _iterating(Quipu.dump)
