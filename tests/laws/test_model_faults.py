"""Law 4: whatever a model's server does, work ends, nothing paid for is asked twice, and the meter agrees with it."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.errors import Overloaded, Refused, Unavailable
from quipu.model.chat import FinishReason
from quipu.model.document import DocumentStatus, SourceDocument
from quipu.model.results import AddResult
from quipu.model.usage import NOTHING
from quipu.providers.openai.reply import ReplyAssembler
from quipu.stores.relational import jobs
from quipu.testing.scripted.script import CannedReply, Fault, FaultName, ReplyRules, RequestKind, fault_mix
from quipu.testing.server.process import ServerHandle
from quipu.wrap import metered_models, reply_cache
from quipu.wrap.meter import Meter
from tests.laws.model_faults import HANGING, HOPELESS, PASSING_BY_KIND, TRANSIENT, Case, begin, cases, check_counts
from tests.laws.model_world import (
    LONG_S,
    SHORT_S,
    dump_of,
    fresh,
    fresh_dump,
    model_engine,
    model_settings,
    script,
    travels,
)

STRUCK = {
    RequestKind.EXTRACT: (RequestKind.EXTRACT, RequestKind.GLEAN),
    RequestKind.SUMMARISE: (RequestKind.SUMMARISE,),
    RequestKind.EMBED: (RequestKind.EMBED,),
}


# ---- one fault at a time


def own_letter(number: int) -> SourceDocument:
    """Return a document of names that are in no other, so that there is nothing to sum up."""
    names = [f"{name}{number} Smith" for name in ("Anna", "Boris", "Clara")]
    text = f"{names[0]} wrote letter {number}. In 1290 did {names[1]} say that {names[2]} waited for it."
    return SourceDocument(id=f"{number:03}.md", content=text.encode(), media_type="text/markdown", title="Letter")


def shared_letter(number: int) -> SourceDocument:
    """Return a document that says something else of a name that is in all of them."""
    return travels(f"letter{number:03}.md", n_sentences=1)


def letters(kind: RequestKind, n: int) -> list[SourceDocument]:
    """Return documents that want the kind of call that is to be struck."""
    return [shared_letter(number) if kind is RequestKind.SUMMARISE else own_letter(number) for number in range(n)]


def fault_of(case: Case, kind: RequestKind, document: SourceDocument) -> Fault:
    """Return the fault of a case; one that strikes always spares what has nothing to do with the document."""
    beginning = document.content.decode().partition(".")[0]
    spares = {RequestKind.EXTRACT: beginning, RequestKind.SUMMARISE: "Subjects: marco polo", RequestKind.EMBED: ""}
    return case.fault(*STRUCK[kind], containing=spares[kind])


async def live_through(kb: Quipu, server: ServerHandle, fault: Fault, document: SourceDocument) -> None:
    """Add a document while a fault strikes, check the laws, let it stop, and make good what is missing."""
    await asyncio.to_thread(begin, server, fault)
    before = await kb.usage()
    report = await kb.add(document)
    (known,) = [each for each in await kb.documents() if each.id == document.id]
    is_listed = (
        known.status is DocumentStatus.PARTIAL and known.error and known.id in [each.id for each in report.partial]
    )
    assert (
        known.status is DocumentStatus.READY or is_listed or (report.stopped and known.status is DocumentStatus.QUEUED)
    ), fault
    assert bool((await kb.status()).stale) == bool(report.summary_failures or report.stopped), fault
    await check_counts(kb, server, before)
    await asyncio.to_thread(server.configure, script())
    assert await kb.retry() == (known.status is DocumentStatus.PARTIAL), fault
    report = await kb.resume()
    assert not (report.failed or report.partial or report.stopped or report.summary_failures), fault
    assert not (await kb.status()).stale
    await check_counts(kb, server, before)


class Group(Enum):
    """What comes of faults: they pass, a client notices nothing but that time passes, or something is missing."""

    PASSING, HANGING, LASTING = auto(), auto(), auto()

    @classmethod
    def of(cls, kind: RequestKind, name: FaultName) -> "Group":
        """Return the group of a fault that strikes requests of a kind."""
        if name in HANGING:
            return cls.HANGING
        return cls.PASSING if name in PASSING_BY_KIND[kind] else cls.LASTING


@pytest.mark.parametrize(
    ("kind", "group"),
    [(kind, group) for kind in STRUCK for group in Group if (kind, group) != (RequestKind.EMBED, Group.LASTING)],
)
async def test_whatever_strikes_can_be_made_good(
    kind: RequestKind, group: Group, server: ServerHandle, laws_scale: int, tmp_path: Path
) -> None:
    chosen = [case for case in cases(kind, laws_scale) if Group.of(kind, case.name) is group]
    timeout_s = SHORT_S if group is Group.HANGING else LONG_S
    known = [travels(f"{letter}.md", n_sentences=1) for letter in ("abcdefg" if kind is RequestKind.SUMMARISE else "a")]
    documents = letters(kind, len(chosen))
    begin(server)
    async with model_engine(model_settings(tmp_path / "kb", server.base_url, llm_timeout_s=timeout_s)) as kb:
        await kb.add(*known)  # and the check is made, which no fault is to strike
        for case, document in zip(chosen, documents, strict=True):
            await live_through(kb, server, fault_of(case, kind, document), document)
        assert await kb.verify() == []
        state = await dump_of(kb)
    if group is not Group.LASTING:
        begin(server)
        assert state == await fresh_dump(model_settings(tmp_path / "fresh", server.base_url), *known, *documents)


async def test_every_request_for_vectors_is_counted(server: ServerHandle, tmp_path: Path) -> None:
    busy = Fault(name=FaultName.SERVER_ERROR, kinds=(RequestKind.EMBED,), attempts=(1,), containing="Boris1 Smith")
    await asyncio.to_thread(begin, server, busy)
    async with model_engine(model_settings(tmp_path / "kb", server.base_url, always_glean=False)) as kb:
        assert (await kb.add(*(own_letter(number) for number in range(25)))).n_embedded > 64
        await check_counts(kb, server)


# ---- the check, and what is left of replies of no use


async def check_documents(kb: Quipu, report: AddResult) -> None:
    """Assert that every document is read, in part with what is wrong, or waits since the work was stopped."""
    for document in await kb.documents():
        if document.status is DocumentStatus.PARTIAL:
            failed = [chunk for chunk in (await kb.document(document.id)).chunks if chunk.error]
            assert failed and len(failed) == document.n_failed_chunks
            assert failed[0].error in document.error
            assert document.id in [each.id for each in report.partial]
        else:
            assert document.status is DocumentStatus.READY or (
                report.stopped and document.status is DocumentStatus.QUEUED
            )
    assert await kb.verify() == []


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
        report = await kb.resume() if await kb.documents() else await kb.add(*documents)
        assert not (report.failed or report.partial or report.stopped)
        await check_counts(kb, server)
        return await dump_of(kb)


@pytest.fixture(scope="module")
def two_read(server: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    begin(server)
    settings = model_settings(tmp_path_factory.mktemp("two") / "kb", server.base_url)
    return fresh(settings, travels("a.md"), travels("b.md", n_sentences=1))


@pytest.mark.parametrize("name", sorted(HOPELESS))
async def test_what_strikes_the_check_is_told_before_a_document_is_taken_in(
    name: FaultName, server: ServerHandle, two_read: list[str], tmp_path: Path
) -> None:
    fault = Fault(name=name, kinds=(RequestKind.EXTRACT, RequestKind.GLEAN), attempts=(1,))
    assert await read_through(tmp_path / "kb", server, fault) == two_read


async def test_a_model_that_only_talked_is_asked_anew_when_its_chunks_are_retried(
    server: ServerHandle, two_read: list[str], tmp_path: Path
) -> None:
    documents = [travels("a.md"), travels("b.md", n_sentences=1)]
    async with model_engine(model_settings(tmp_path / "kb", server.base_url)) as kb:
        begin(server)
        chatter = CannedReply(text="I am sorry, I cannot help with that.", containing="book of A")
        await asyncio.to_thread(server.configure, replace(script(), answering=ReplyRules(replies=(chatter,))))
        assert [each.id for each in (await kb.add(*documents)).partial] == ["a.md"]
        await asyncio.to_thread(server.configure, script())
        assert await kb.retry() == 1
        assert not (await kb.resume()).partial
        assert await dump_of(kb) == two_read


# ---- everything at once


SHARING = tuple(travels(f"{letter}.md", n_sentences=1) for letter in "abcdefgh")


async def mixture(folder: Path, server: ServerHandle, faults: Sequence[Fault], seed: str) -> list[str]:
    """Live while a fifth of all requests is struck, check the laws, let it stop, and return the state then."""
    await asyncio.to_thread(begin, server, *faults, seed=seed)
    timeout_s = SHORT_S if HANGING & {fault.name for fault in faults} else LONG_S
    async with model_engine(model_settings(folder, server.base_url, llm_timeout_s=timeout_s)) as kb:
        for _ in range(3):
            with suppress(Unavailable):
                await check_documents(kb, await kb.add(*SHARING))
            with suppress(Overloaded, Unavailable, Refused):
                # An answer is kept until any fact changes; the context of mix differs between the rounds, too.
                assert (await kb.query("Who read the book of A?", strategy="mix")).text
            await check_counts(kb, server)
            await kb.retry()
        await asyncio.to_thread(server.configure, script(seed=seed))
        report = await kb.add(*SHARING)
        assert not (report.failed or report.partial or report.stopped or report.summary_failures)
        await check_counts(kb, server)
        assert await kb.verify() == []
        return await dump_of(kb)


async def test_a_mixture_of_all_faults_ends_and_is_paid_for_once(
    server: ServerHandle, laws_scale: int, tmp_path: Path
) -> None:
    for seed in range(2 * laws_scale):
        await mixture(tmp_path / str(seed), server, fault_mix(*FaultName, probability=0.2), str(seed))


async def test_a_mixture_of_faults_that_pass_leaves_no_trace(
    server: ServerHandle, laws_scale: int, tmp_path: Path
) -> None:
    begin(server)
    whole = await fresh_dump(model_settings(tmp_path / "whole", server.base_url), *SHARING)
    passing = fault_mix(*sorted(TRANSIENT - HANGING), probability=0.2)
    for seed in range(laws_scale):
        assert await mixture(tmp_path / str(seed), server, passing, str(seed)) == whole


# ---- the laws fail where they are broken


async def holds_through(folder: Path, server: ServerHandle, fault: Fault, expected: list[str]) -> bool:
    """Say whether the laws of reading hold while a fault strikes."""
    try:
        return await read_through(folder, server, fault) == expected
    except AssertionError:
        return False


LOST_GLEANING = Fault(name=FaultName.SERVER_ERROR, kinds=(RequestKind.GLEAN,), containing="book of A")
BROKEN_REPLY = Fault(name=FaultName.CUT_BODY, kinds=(RequestKind.EXTRACT,), attempts=(1,))


@dataclass(frozen=True, slots=True)
class Seeded:
    """What is broken on purpose, and the fault of a server that shows it."""

    place: object
    name: str
    broken: object
    shown_by: Fault


@pytest.mark.parametrize(
    "seeded",
    [
        Seeded(reply_cache, "CACHEABLE", frozenset(), LOST_GLEANING),
        Seeded(
            metered_models,
            "_tokens_of_completion",
            lambda completion: replace(completion.tokens, output=1),
            LOST_GLEANING,
        ),
        Seeded(Meter, "_count_interrupted", lambda *_: NOTHING, BROKEN_REPLY),
        Seeded(ReplyAssembler, "finish", FinishReason.STOP, BROKEN_REPLY),
        Seeded(jobs, "retry", lambda *_: 0, LOST_GLEANING),
    ],
    ids=["replies are not kept", "tokens", "broken calls", "a broken reply is taken for a whole one", "retry"],
)
async def test_the_laws_fail_where_they_are_broken(
    seeded: Seeded, server: ServerHandle, two_read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await holds_through(tmp_path / "sound", server, seeded.shown_by, two_read)
    monkeypatch.setattr(seeded.place, seeded.name, seeded.broken)
    assert not await holds_through(tmp_path / "broken", server, seeded.shown_by, two_read)
