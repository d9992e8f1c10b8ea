"""Speed: what adding documents and asking questions cost as an index grows, measured on one's own documents."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import Protocol

import quipu
from quipu.bench.datasets import GoldQuestion, own_questions
from quipu.errors import QuipuError, Unavailable
from quipu.model.document import SourceDocument
from quipu.model.event import EventSink, Progress, ignore_event
from quipu.settings import Settings
from quipu.wiring import open_engine

if sys.platform != "win32":
    import resource

N_QUESTIONS, SEED = 20, 1
N_REPEATS = 5  # of what is done with one document; the median counts
_BYTES_A_CHUNK = 1_500  # of a document that is to be added: fewer than most have
SENTENCE = "Ada Kern of the Harbour Office counted {number} ships in Port Mery."


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSpeed:
    """What a question takes with one strategy: wall time in ms, and the median of the processor time of all threads."""

    strategy: str
    median_ms: float
    p95_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSpeed:
    """What work takes at one size of the index; times in ms.

    `add_ms` and `add_cpu_ms` are those of a chunk since the size before. `one_more_ms` and `remove_ms` are those of a
    document of one chunk. `n_bytes` is the size on disk, `peak_bytes` the most memory that the process has had so far,
    0 where the system does not tell.
    """

    n_chunks: int
    n_documents: int
    add_ms: float
    add_cpu_ms: float
    one_more_ms: float
    remove_ms: float
    open_ms: float
    n_bytes: int
    peak_bytes: int
    questions: tuple[QuestionSpeed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSpeed:
    """The speed of another system at each size; `note` says why a size was not reached."""

    name: str
    sizes: tuple[SizeSpeed, ...] = ()
    note: str = ""


class Peer(Protocol):
    """Another system, which is given the same chunks and questions."""

    @property
    def name(self) -> str:
        """The name and version of the system."""

    @property
    def max_chunks(self) -> int:
        """The largest size at which it is measured."""

    async def measure(
        self, documents: Mapping[str, Sequence[str]], questions: Sequence[str], on_event: EventSink
    ) -> SizeSpeed:
        """Add documents, given as their chunks by id, and return what that and other work takes at the new size.

        Raises Unavailable if the system fails.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedReport:
    """The speed at each size. `failed` are (strategy, error) pairs; `note` says why a size was not reached."""

    embedder: str
    extractor: str
    sizes: tuple[SizeSpeed, ...]
    failed: tuple[tuple[str, str], ...] = ()
    note: str = ""
    peer: PeerSpeed | None = None


class _PeerRun:
    """Gives a peer, if there is one, what Quipu has read since the size before. After an error it is left alone."""

    def __init__(self, peer: Peer | None, on_event: EventSink) -> None:
        self.speed = PeerSpeed(name=peer.name) if peer else None
        self._peer, self._on_event = peer, on_event
        self._ids = set[str]()

    async def follow(self, kb: quipu.Quipu, size: int, questions: Sequence[GoldQuestion]) -> None:
        """Measure the peer at this size."""
        if self._peer is None or self.speed is None or self.speed.note:
            return
        if size > self._peer.max_chunks:
            note = f"{self._peer.name} is measured up to {self._peer.max_chunks:,} chunks. For more, give --size."
            self.speed = replace(self.speed, note=note)
            return
        ids = [document.id for document in await kb.documents() if document.id not in self._ids]
        if not ids:
            return
        self._ids.update(ids)
        chunks = {document_id: [chunk.text for chunk in (await kb.document(document_id)).chunks] for document_id in ids}
        texts = [question.text for question in questions]
        try:
            measured = await self._peer.measure(chunks, texts, self._on_event)
        except Unavailable as error:
            self.speed = replace(self.speed, note=str(error))
        else:
            self.speed = replace(self.speed, sizes=(*self.speed.sizes, measured))


class _Stopwatch:
    """Wall and processor time since it was made, in ms."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    @property
    def ms(self) -> float:
        return 1_000 * (time.perf_counter() - self._wall)

    @property
    def cpu_ms(self) -> float:
        return 1_000 * (time.process_time() - self._cpu)


async def measure_speed(
    settings: Settings,
    sources: Iterable[SourceDocument],
    sizes: Sequence[int],
    strategies: Sequence[str],
    on_event: EventSink = ignore_event,
    peer: Peer | None = None,
) -> SpeedReport:
    """Add documents to a new index until it has each number of chunks, and measure there.

    Where the documents end before a size is reached, the last size is what they give. Questions are made from them
    without a model. A strategy that fails is left out. `peer` is measured after Quipu at each size.
    """
    waiting, measured, failed, n_chunks = iter(sources), list[SizeSpeed](), dict[str, str](), 0
    peer_run = _PeerRun(peer, on_event)
    for size in sorted(set(sizes)):
        n_before = n_chunks
        async with await open_engine(settings) as kb:
            watch = _Stopwatch()
            n_chunks = await _grow(kb, waiting, size, on_event)
            n_new = max(n_chunks - n_before, 1)
            add_ms, add_cpu_ms = watch.ms / n_new, watch.cpu_ms / n_new
            one_more_ms, remove_ms = await _change_ms(kb)
            own = await own_questions(kb, N_QUESTIONS, SEED)
            questions = await _ask(kb, own, [name for name in strategies if name not in failed], failed, on_event)
            status = await kb.status()
            await peer_run.follow(kb, size, own)
        if n_chunks == n_before:
            break
        size_speed = SizeSpeed(
            n_chunks=n_chunks,
            n_documents=status.n_documents,
            add_ms=add_ms,
            add_cpu_ms=add_cpu_ms,
            one_more_ms=one_more_ms,
            remove_ms=remove_ms,
            open_ms=await _open_ms(settings),
            n_bytes=status.n_bytes,
            peak_bytes=_peak_bytes(),
            questions=questions,
        )
        measured.append(size_speed)
    return SpeedReport(
        embedder=status.embedder,
        extractor=status.extractor,
        sizes=tuple(measured),
        failed=tuple(failed.items()),
        note=_note(n_chunks, max(sizes)),
        peer=peer_run.speed,
    )


def _note(n_chunks: int, size: int) -> str:
    if not n_chunks:
        return "There is no document that can be read."
    return "" if n_chunks >= size else f"The documents have only {n_chunks:,} chunks."


async def _grow(kb: quipu.Quipu, sources: Iterator[SourceDocument], size: int, on_event: EventSink) -> int:
    """Add documents until there are `size` chunks or no more documents; return how many chunks there are."""
    while (n_chunks := (await kb.status()).n_chunks) < size:
        batch = list(_next_sources(sources, (size - n_chunks) * _BYTES_A_CHUNK))
        if not batch:
            break
        await kb.add(*batch, on_event=on_event)
    return n_chunks


async def _open_ms(settings: Settings) -> float:
    watch = _Stopwatch()
    async with await open_engine(settings) as kb:
        await kb.status()
        return watch.ms


def _next_sources(sources: Iterator[SourceDocument], n_bytes: int) -> Iterator[SourceDocument]:
    """Yield documents up to about this size, at least one if there is one."""
    for source in sources:
        yield source
        n_bytes -= len(source.content)
        if n_bytes <= 0:
            return


async def _change_ms(kb: quipu.Quipu) -> tuple[float, float]:
    """Return what adding and removing one small document take."""
    add_times, removal_times = list[float](), list[float]()
    for number in range(N_REPEATS):
        watch = _Stopwatch()
        await kb.add_text(SENTENCE.format(number=number), id="one more")
        add_times.append(watch.ms)
        watch = _Stopwatch()
        await kb.remove(["one more"])
        removal_times.append(watch.ms)
    return median(add_times), median(removal_times)


async def _ask(
    kb: quipu.Quipu,
    questions: Sequence[GoldQuestion],
    strategies: Sequence[str],
    failed: dict[str, str],
    on_event: EventSink,
) -> tuple[QuestionSpeed, ...]:
    """Ask each question with each strategy, the first one twice; one that fails joins `failed`."""
    speeds = []
    for n_done, strategy in enumerate(strategies if questions else ()):
        on_event(Progress(stage="ask", n_done=n_done, n_total=len(strategies), detail=strategy))
        watches = []
        try:
            for question in (*questions[:1], *questions):
                watch = _Stopwatch()
                await kb.query(question.text, strategy=strategy)
                watches.append((watch.ms, watch.cpu_ms))
        except QuipuError as error:
            failed[strategy] = str(error)
            continue
        speeds.append(question_speed(strategy, watches[1:]))
    return tuple(speeds)


def question_speed(strategy: str, times: Sequence[tuple[float, float]]) -> QuestionSpeed:
    """Return the speed of questions that took these wall and processor times, in ms; there is at least one."""
    walls, cpus = zip(*times, strict=True)
    return QuestionSpeed(
        strategy=strategy,
        median_ms=median(walls),
        p95_ms=quantiles(walls, n=20, method="inclusive")[-1] if len(walls) > 1 else walls[0],
        cpu_ms=median(cpus),
    )


def _peak_bytes() -> int:
    if sys.platform == "win32":
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1_024  # macOS counts bytes
