"""Law 4: whatever a model's server does, work ends, nothing paid for is asked twice, and the meter agrees with it."""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.errors import Overloaded, QuipuError, Unavailable
from quipu.model.answer import Answer
from quipu.model.document import Status
from quipu.model.report import AddReport
from quipu.model.usage import UsageRow
from quipu.testing.scripted.fault import INSTEAD, MIDWAY, SPOILED_RECORDS, Fault, FaultName, mixed
from quipu.testing.scripted.kind import Kind
from quipu.testing.scripted.script import Answering, Reply
from quipu.testing.server import serving
from quipu.testing.server.process import ServerHandle
from quipu.wrap import cached
from tests.laws.model_counts import asked_again, differences
from tests.laws.model_world import dump_of, fresh, model_engine, model_settings, script, travels

LOOK_UPS = (Kind.KEYWORDS, Kind.EMBED, Kind.RERANK)
FIRST, ALWAYS = "first attempts", "always"

# Whole replies that say the same in another shape, or are asked for again: the facts become what they would have been.
SHAPES = frozenset(
    {
        FaultName.NO_USAGE,
        FaultName.THINKING,
        FaultName.THINKING_UNOPENED,
        FaultName.FILTERED,
    }
)
TRANSIENT = INSTEAD | MIDWAY | SHAPES
TRANSIENT_BY_KIND = {
    Kind.EXTRACT: TRANSIENT
    | (SPOILED_RECORDS - {FaultName.MISSING})
    | {FaultName.LENGTH, FaultName.EMPTY, FaultName.THINKING_UNCLOSED, FaultName.FENCES, FaultName.CHATTER},
    Kind.SUMMARISE: TRANSIENT | {FaultName.EMPTY},
    Kind.EMBED: INSTEAD | MIDWAY | {FaultName.COUNT, FaultName.NAN, FaultName.DIMENSION, FaultName.SHUFFLED},
}
# What shows that no document can be read as things stand is told before any is taken in.
HOPELESS = frozenset({FaultName.BAD_REQUEST, FaultName.QUOTA, FaultName.FILTERED, FaultName.EMPTY})


def striking(*kinds: Kind) -> list[FaultName]:
    """Return the faults that mean anything for one of these kinds."""
    return [name for name in FaultName if any(Fault(name=name).can_strike(kind) for kind in kinds)]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The server, an index that has read everything, summed up and embedded nothing, and the state of a whole one."""

    server: ServerHandle
    folder: Path
    whole: list[str]

    def copied(self, to: Path) -> Path:
        """Return a copy of the index."""
        shutil.copytree(self.folder / "read", to)
        return to


@pytest.fixture(scope="module")
def server() -> Iterator[ServerHandle]:
    with serving(script()) as running:
        yield running


@pytest.fixture(scope="module")
def world(server: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("world")
    documents = [travels(f"{letter}.md") for letter in "abcdefgh"]
    whole = fresh(model_settings(folder / "whole", server.base_url), *documents)
    broken = (Fault(name=FaultName.BAD_REQUEST, kinds=(Kind.SUMMARISE,)), Fault(name=FaultName.QUOTA, kinds=LOOK_UPS))
    server.configure(script(*broken))
    read = fresh(model_settings(folder / "read", server.base_url), *documents)
    assert any('"kind":"summary"' in line for line in whole)
    assert not any('"kind":"summary"' in line or '"kind":"vector"' in line for line in read)
    return World(server=server, folder=folder, whole=whole)


def begin(server: ServerHandle, *faults: Fault) -> None:
    """Have the server follow another script and forget what it has counted."""
    server.configure(script(*faults))
    server.reset()


def always_or_first(name: FaultName, mode: str, *kinds: Kind, containing: str = "") -> Fault:
    """Return a fault that strikes the first attempt at every request, or every attempt at those that hold a text."""
    if mode == FIRST:
        return Fault(name=name, kinds=kinds, attempts=(1,))
    return Fault(name=name, kinds=kinds, containing=containing)


async def check_counts(kb: Quipu, server: ServerHandle, before: Sequence[UsageRow] = ()) -> None:
    """Assert that the meter says what the server does, and that no reply that is kept was asked for again."""
    served = (await asyncio.to_thread(server.settled)).requests
    rows = [row for row in await kb.usage() if row not in before]
    assert differences(rows, served) == []
    assert asked_again(served) == []


async def check_documents(kb: Quipu, report: AddReport) -> None:
    """Assert that every document is read, in part with what is wrong, or waits since the work was stopped."""
    for document in await kb.documents():
        if document.status is Status.PARTIAL:
            failed = [chunk for chunk in (await kb.document(document.id)).chunks if chunk.error]
            assert failed and len(failed) == document.n_failed_chunks
            assert failed[0].error in document.error
            assert document.id in [each.id for each in report.partial]
        else:
            assert document.status is Status.READY or (report.stopped and document.status is Status.QUEUED)
    assert await kb.verify() == []


# ---- reading


async def read_through(folder: Path, server: ServerHandle, fault: Fault) -> list[str]:
    """Add two documents while a fault strikes, check the laws, let it stop, retry, and return the state then."""
    documents = [travels("a.md"), travels("b.md", n_sentences=1)]
    begin(server, fault)
    async with model_engine(model_settings(folder, server.base_url)) as kb:
        try:
            await check_documents(kb, await kb.add(*documents))
        except Unavailable as error:
            assert fault.name in HOPELESS and fault.attempts, error
            assert error.remedy
            assert await kb.documents() == []
        await check_counts(kb, server)
        await asyncio.to_thread(server.configure, script())
        await kb.retry()
        report = await kb.add(*documents)
        assert not (report.failed or report.partial or report.stopped)
        await check_counts(kb, server)
        return await dump_of(kb)


@pytest.fixture(scope="module")
def two_read(server: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    begin(server)
    settings = model_settings(tmp_path_factory.mktemp("two") / "kb", server.base_url)
    return fresh(settings, travels("a.md"), travels("b.md", n_sentences=1))


@pytest.mark.strikes(Kind.EXTRACT)
async def test_whatever_strikes_the_reading_of_chunks_can_be_made_good(
    name: FaultName, mode: str, server: ServerHandle, two_read: list[str], tmp_path: Path
) -> None:
    fault = always_or_first(name, mode, Kind.EXTRACT, Kind.GLEAN, containing="book of A")
    state = await read_through(tmp_path / "kb", server, fault)
    if name in TRANSIENT_BY_KIND[Kind.EXTRACT]:
        assert state == two_read


async def test_a_model_that_only_talked_is_asked_anew_when_its_chunks_are_retried(
    server: ServerHandle, two_read: list[str], tmp_path: Path
) -> None:
    documents = [travels("a.md"), travels("b.md", n_sentences=1)]
    async with model_engine(model_settings(tmp_path / "kb", server.base_url)) as kb:
        begin(server)
        chatter = Reply(text="I am sorry, I cannot help with that.", containing="book of A")
        await asyncio.to_thread(server.configure, replace(script(), answering=Answering(replies=(chatter,))))
        assert [each.id for each in (await kb.add(*documents)).partial] == ["a.md"]
        await asyncio.to_thread(server.configure, script())
        assert await kb.retry() == 1
        assert not (await kb.resume()).partial
        assert await dump_of(kb) == two_read


# ---- summing up and embedding


async def refresh_through(folder: Path, server: ServerHandle, fault: Fault) -> list[str]:
    """Bring derivations up to date while a fault strikes, check the laws, let it stop, and return the state then."""
    begin(server, fault)
    async with model_engine(model_settings(folder, server.base_url)) as kb:
        before = await kb.usage()
        report = await kb.refresh()
        stale = (await kb.status()).stale
        assert bool(stale) == bool(report.stopped or report.unsummarised)
        assert all(failure.error for failure in report.unsummarised)
        assert (await kb.query("Who read the book of A?", strategy="lexical")).text
        await check_counts(kb, server, before)
        await asyncio.to_thread(server.configure, script())
        report = await kb.refresh()
        assert not (report.stopped or report.unsummarised)
        await check_counts(kb, server, before)
        assert await kb.verify() == []
        return await dump_of(kb)


@pytest.mark.strikes(Kind.SUMMARISE)
async def test_whatever_strikes_summaries_can_be_made_good(
    name: FaultName, mode: str, world: World, tmp_path: Path
) -> None:
    fault = always_or_first(name, mode, Kind.SUMMARISE, containing="Subjects: kublai khan")
    state = await refresh_through(world.copied(tmp_path / "kb"), world.server, fault)
    if name in TRANSIENT_BY_KIND[Kind.SUMMARISE]:
        assert state == world.whole


@pytest.mark.strikes(Kind.EMBED)
async def test_whatever_strikes_vectors_can_be_made_good(
    name: FaultName, mode: str, world: World, tmp_path: Path
) -> None:
    fault = always_or_first(name, mode, Kind.EMBED)
    state = await refresh_through(world.copied(tmp_path / "kb"), world.server, fault)
    assert name in TRANSIENT_BY_KIND[Kind.EMBED]
    assert state == world.whole
