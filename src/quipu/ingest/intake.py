"""Intake: queue what is new or changed, pass over what is already there."""

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from quipu.errors import InvalidInput
from quipu.ingest.pipeline import BYTES_AT_ONCE, CLAIM
from quipu.ingest.reading import Recipe, Standing, chunking_of, standing
from quipu.ingest.sources import MAX_BYTES, FoundSource, SkippedFiles, UnreadableSource, checked_id, checked_metadata
from quipu.model.delta import Delta
from quipu.model.document import SourceDocument
from quipu.model.event import EventSink, Progress
from quipu.ports.store import Store
from quipu.text.unicode import find_text_with_surrogate


@dataclass(slots=True)
class Taken:
    """What happened to the documents handed in, by id.

    Some of the `unchanged` were read otherwise than they would be now: `n_otherwise` of them by each reader, in words.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    n_otherwise: Counter[str] = field(default_factory=Counter)
    unreadable: list[UnreadableSource] = field(default_factory=list)
    skipped: SkippedFiles | None = None


async def _ready() -> None:
    """Wait for nothing."""


async def take_in(
    sources: Iterable[FoundSource],
    store: Store,
    recipe: Recipe,
    on_event: EventSink,
    make_ready: Callable[[], Awaitable[None]] = _ready,
    *,
    reread: bool = False,
) -> Taken:
    """Queue documents durably, a few megabytes at a time; those that are live as they stand are passed over.

    So are those that were read by another than the recipe has it, and have not changed, unless `reread`.
    How each is to be cut is settled here and queued with it, so that whoever resumes the work does the same. Before any
    is queued, `make_ready` is waited for: where nothing is new, it is not called.
    """
    taken = Taken()
    batches = _batches(sources, taken)
    while batch := await asyncio.to_thread(next, batches, None):
        by_id = {source.id: source for source in batch}
        async with store.view() as view:
            live = {document.id: document for document in await view.documents(list(by_id))}
        queued: list[SourceDocument] = []
        for source in by_id.values():
            before = live.get(source.id)
            stands = standing(before, source, recipe)
            if before and stands is Standing.READ_OTHERWISE and not reread:
                taken.n_otherwise[before.reader] += 1
                taken.unchanged.append(source.id)
                continue
            if stands is Standing.READ:
                taken.unchanged.append(source.id)
                continue
            queued.append(replace(source, chunking=chunking_of(source, recipe)))
            (taken.updated if before and before.version else taken.added).append(source.id)
        if queued:
            await make_ready()
            await store.commit(Delta(enqueue=queued))
        n_seen = len(taken.added) + len(taken.updated) + len(taken.unchanged)
        on_event(Progress(stage="read", done=n_seen, total=n_seen))
    return taken


def _check(source: SourceDocument) -> None:
    """Refuse what could not be named, filtered or compared later. Raises InvalidInput."""
    name = source.id
    checked_id(name)
    checked_metadata(source.metadata)
    if text := find_text_with_surrogate([name, source.title, source.source, source.metadata]):
        raise InvalidInput(
            f"{text[:80]!r}, of the document {name[:80]!r}, holds a lone surrogate.",
            remedy="Decode it from its bytes again, with errors='replace'.",
        )
    if len(source.data) > MAX_BYTES:
        raise InvalidInput(f"The document {name!r} holds more than {MAX_BYTES:,} bytes.", remedy="Split it.")
    for key, value in source.metadata.items():
        if not key.strip() or (isinstance(value, float) and not math.isfinite(value)):
            raise InvalidInput(
                f"The metadata {key!r} = {value!r} of {name!r} cannot be compared.",
                remedy="Give every field a name, and numbers that are finite.",
            )


def _batches(sources: Iterable[FoundSource], taken: Taken) -> Iterator[list[SourceDocument]]:
    """Yield documents a few megabytes at a time; note the rest of what was found."""
    batch: list[SourceDocument] = []
    room = BYTES_AT_ONCE
    for source in sources:
        if isinstance(source, UnreadableSource):
            taken.unreadable.append(source)
            continue
        if isinstance(source, SkippedFiles):
            taken.skipped = source
            continue
        _check(source)
        batch.append(source)
        room -= len(source.data)
        if room <= 0 or len(batch) == CLAIM:
            yield batch
            batch, room = [], BYTES_AT_ONCE
    if batch:
        yield batch
