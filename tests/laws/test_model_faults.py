"""Law 4: whatever a model's server does, work ends, nothing paid for is asked twice, and the meter agrees with it."""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.errors import Overloaded, QuipuError, Refused, Unavailable
from quipu.model.answer import Answer
from quipu.model.chat import Finish
from quipu.model.document import SourceDocument, Status
from quipu.model.report import AddReport
from quipu.model.usage import UsageRow
from quipu.providers.openai import transcript
from quipu.stores.relational.store import RelationalStore
from quipu.testing.scripted.fault import INSTEAD, MIDWAY, SPOILED_RECORDS, Fault, FaultName, mixed
from quipu.testing.scripted.kind import Kind
from quipu.testing.scripted.script import Answering, Reply
from quipu.testing.server import serving
from quipu.testing.server.process import ServerHandle
from quipu.wrap import cached, metered
from quipu.wrap.budget import NOTHING
from quipu.wrap.meter import Meter
from tests.laws.model_counts import asked_again, differences, spent_since
from tests.laws.model_world import dump_of, fresh, fresh_dump, model_engine, model_settings, script, travels

FIRST, ALWAYS = "first attempts", "always"

# One of each way a fault can go on for ever; with a larger scale all of them do.
LASTING = frozenset(
    {
        FaultName.BAD_REQUEST,
        FaultName.TOO_MANY_REQUESTS,
        FaultName.QUOTA,
        FaultName.RESET_MIDWAY,
        FaultName.EMPTY,
        FaultName.FILTERED,
        FaultName.COUNT,
    }
)

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
    Kind.SUMMARISE: TRANSIENT | {FaultName.EMPTY, FaultName.THINKING_UNCLOSED},
}
# What shows that no document can be read as things stand is told before any is taken in.
HOPELESS = frozenset({FaultName.BAD_REQUEST, FaultName.QUOTA, FaultName.FILTERED, FaultName.EMPTY})


@dataclass(frozen=True, slots=True)
class Case:
    """A fault that strikes requests of some kind: their first attempts, or always."""

    name: FaultName
    mode: str

    def __str__(self) -> str:
        return f"{self.name}, {self.mode}"

    def fault(self, *kinds: Kind, containing: str = "") -> Fault:
        """Return the fault; one that strikes always spares requests that do not hold a text."""
        if self.mode == FIRST:
            return Fault(name=self.name, kinds=kinds, attempts=(1,))
        return Fault(name=self.name, kinds=kinds, containing=containing)


def cases(kind: Kind, scale: int) -> list[Case]:
    """Return every fault that means anything for requests of a kind, in the modes that are tried at this scale."""
    names = [name for name in FaultName if Fault(name=name).can_strike(kind)]
    lasting = [name for name in names if scale > 1 or name in LASTING]
    return [*(Case(name, FIRST) for name in names), *(Case(name, ALWAYS) for name in lasting)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that takes `extract_case` the faults that strike extraction, and so on."""
    for kind in Kind:
        if f"{kind}_case" in metafunc.fixturenames:
            chosen = cases(kind, metafunc.config.getoption("--laws-scale"))
            metafunc.parametrize(f"{kind}_case", chosen, ids=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The server, an index that has read everything, summed up and embedded nothing, a whole one and its state."""

    server: ServerHandle
    folder: Path
    whole: list[str]

    def copied(self, to: Path, which: str = "read") -> Path:
        """Return a copy of an index."""
        shutil.copytree(self.folder / which, to)
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
    broken = (
        Fault(name=FaultName.BAD_REQUEST, kinds=(Kind.SUMMARISE,)),
        Fault(name=FaultName.TOO_MANY_REQUESTS, kinds=(Kind.EMBED,)),
    )
    server.configure(script(*broken))
    read = fresh(model_settings(folder / "read", server.base_url), *documents)
    assert any('"kind":"summary"' in line for line in whole)
    assert not any('"kind":"summary"' in line or '"kind":"vector"' in line for line in read)
    return World(server=server, folder=folder, whole=whole)


def begin(server: ServerHandle, *faults: Fault, seed: str = "0") -> None:
    """Have the server follow another script and forget what it has counted."""
    server.configure(script(*faults, seed=seed))
    server.reset()


async def check_counts(kb: Quipu, server: ServerHandle, before: Sequence[UsageRow] = ()) -> None:
    """Assert that the meter says what the server does, and that no reply that is kept was asked for again."""
    served = (await asyncio.to_thread(server.settled)).requests
    assert differences(spent_since(before, await kb.usage()), served) == []
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
        report = await kb.resume() if await kb.documents() else await kb.add(*documents)
        assert not (report.failed or report.partial or report.stopped)
        await check_counts(kb, server)
        return await dump_of(kb)


@pytest.fixture(scope="module")
def two_read(server: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    begin(server)
    settings = model_settings(tmp_path_factory.mktemp("two") / "kb", server.base_url)
    return fresh(settings, travels("a.md"), travels("b.md", n_sentences=1))


def own_letter(number: int) -> SourceDocument:
    """Return a document of names that are in no other, so that there is nothing to sum up."""
    names = [f"{name}{number} Smith" for name in ("Anna", "Boris", "Clara")]
    text = f"{names[0]} wrote letter {number}. In 1290 did {names[1]} say that {names[2]} waited for it."
    return SourceDocument(id=f"{number:03}.md", data=text.encode(), media_type="text/markdown", title="Letter")


async def read_one(kb: Quipu, server: ServerHandle, case: Case, document: SourceDocument) -> None:
    """Add a document while a fault strikes, check the laws, let it stop, and retry."""
    title = document.data.decode().partition(".")[0]
    await asyncio.to_thread(begin, server, case.fault(Kind.EXTRACT, Kind.GLEAN, containing=title))
    before = await kb.usage()
    report = await kb.add(document)
    (known,) = [each for each in await kb.documents() if each.id == document.id]
    is_whole = known.status is Status.READY and not report.stopped
    is_listed = known.status is Status.PARTIAL and known.error and known.id in [each.id for each in report.partial]
    assert is_whole or is_listed or (report.stopped and known.status is Status.QUEUED), case
    await check_counts(kb, server, before)
    await asyncio.to_thread(server.configure, script())
    assert await kb.retry() == (known.status is Status.PARTIAL), case
    report = await kb.resume()
    assert not (report.failed or report.partial or report.stopped), case
    await check_counts(kb, server, before)


@pytest.mark.parametrize("passes", [True, False], ids=["that pass", "that spoil"])
async def test_whatever_strikes_the_reading_of_chunks_can_be_made_good(
    passes: bool, server: ServerHandle, laws_scale: int, tmp_path: Path
) -> None:
    chosen = [
        case for case in cases(Kind.EXTRACT, laws_scale) if passes == (case.name in TRANSIENT_BY_KIND[Kind.EXTRACT])
    ]
    documents = [own_letter(number) for number in range(len(chosen))]
    begin(server)
    async with model_engine(model_settings(tmp_path / "kb", server.base_url)) as kb:
        await kb.resume()  # so that no fault strikes the check
        for case, document in zip(chosen, documents, strict=True):
            await read_one(kb, server, case, document)
        assert await kb.verify() == []
        state = await dump_of(kb)
    if passes:
        begin(server)
        assert state == await fresh_dump(model_settings(tmp_path / "fresh", server.base_url), *documents)


@pytest.mark.parametrize("name", sorted(HOPELESS))
async def test_what_strikes_the_check_is_told_before_a_document_is_taken_in(
    name: FaultName, server: ServerHandle, two_read: list[str], tmp_path: Path
) -> None:
    fault = Fault(name=name, kinds=(Kind.EXTRACT, Kind.GLEAN), attempts=(1,))
    assert await read_through(tmp_path / "kb", server, fault) == two_read


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


async def test_whatever_strikes_summaries_can_be_made_good(summarise_case: Case, world: World, tmp_path: Path) -> None:
    fault = summarise_case.fault(Kind.SUMMARISE, containing="Subjects: kublai khan")
    state = await refresh_through(world.copied(tmp_path / "kb"), world.server, fault)
    if fault.name in TRANSIENT_BY_KIND[Kind.SUMMARISE]:
        assert state == world.whole


async def test_whatever_strikes_vectors_can_be_made_good(embed_case: Case, world: World, tmp_path: Path) -> None:
    fault = embed_case.fault(Kind.EMBED)
    assert await refresh_through(world.copied(tmp_path / "kb"), world.server, fault) == world.whole


# ---- asking


async def check_question(kb: Quipu, server: ServerHandle, fault: Fault, question: str) -> None:
    """Ask while a fault strikes and when it has stopped: an answer comes, or the error that is documented."""
    await asyncio.to_thread(begin, server, fault)
    try:
        answer = await kb.query(question)
    except QuipuError as error:
        assert Kind.EMBED in fault.kinds, f"{fault.name}: {error}"
        assert isinstance(error, Overloaded | Unavailable | Refused) and error.message
    else:
        assert answer.text
        assert is_models(answer) or any(note.startswith("Quoted, as the model") for note in answer.notes), fault
    served = (await asyncio.to_thread(server.settled)).requests
    rows = [row for row in await kb.usage() if row.subject == question]
    assert (fault.name, differences(rows, served), asked_again(served)) == (fault.name, [], [])
    await asyncio.to_thread(server.configure, script())
    answer = await kb.query(question)
    assert is_models(answer) and answer.text, fault
    assert asked_again((await asyncio.to_thread(server.settled)).requests) == []


def is_models(answer: Answer) -> bool:
    """Say whether a model wrote the answer."""
    return answer.generator.endswith("/scripted")


@pytest.mark.parametrize("kind", [Kind.KEYWORDS, Kind.EMBED, Kind.RERANK, Kind.ANSWER])
async def test_whatever_strikes_a_question_is_answered_or_told(
    kind: Kind, world: World, laws_scale: int, tmp_path: Path
) -> None:
    settings = model_settings(
        world.copied(tmp_path / "kb", "whole"),
        world.server.base_url,
        reranker="custom/words",
        reranker_base_url=world.server.base_url,
    )
    async with model_engine(settings) as kb:
        for number, case in enumerate(cases(kind, laws_scale)):
            await check_question(kb, world.server, case.fault(kind), f"Who read the book of A? ({number})")


# ---- everything at once


async def mixture(folder: Path, server: ServerHandle, faults: Sequence[Fault], seed: str) -> list[str]:
    """Live while a fifth of all requests is struck, check the laws, let it stop, and return the state then."""
    documents = [travels(f"{letter}.md") for letter in "abcdefgh"]
    await asyncio.to_thread(begin, server, *faults, seed=seed)
    async with model_engine(model_settings(folder, server.base_url)) as kb:
        for _ in range(3):
            with suppress(Unavailable):
                await check_documents(kb, await kb.add(*documents))
            with suppress(Overloaded, Unavailable, Refused):
                assert (await kb.query("Who read the book of A?")).text
            await check_counts(kb, server)
            await kb.retry()
        await asyncio.to_thread(server.configure, script(seed=seed))
        report = await kb.add(*documents)
        assert not (report.failed or report.partial or report.stopped or report.unsummarised)
        await check_counts(kb, server)
        assert await kb.verify() == []
        return await dump_of(kb)


async def test_a_mixture_of_all_faults_ends_and_is_paid_for_once(
    server: ServerHandle, laws_scale: int, tmp_path: Path
) -> None:
    for seed in range(3 * laws_scale):
        await mixture(tmp_path / str(seed), server, mixed(*FaultName, probability=0.2), str(seed))


async def test_a_mixture_of_faults_that_pass_leaves_no_trace(world: World, laws_scale: int, tmp_path: Path) -> None:
    passing = mixed(*sorted(TRANSIENT - {FaultName.TIMEOUT, FaultName.STALL}), probability=0.2)
    for seed in range(2 * laws_scale):
        assert await mixture(tmp_path / str(seed), world.server, passing, str(seed)) == world.whole


# ---- the laws fail where they are broken


async def holds_through(folder: Path, server: ServerHandle, fault: Fault, expected: list[str]) -> bool:
    """Say whether the laws of reading hold while a fault strikes."""
    try:
        return await read_through(folder, server, fault) == expected
    except AssertionError:
        return False


LOST_GLEANING = Fault(name=FaultName.SERVER_ERROR, kinds=(Kind.GLEAN,), containing="book of A")
BROKEN_REPLY = Fault(name=FaultName.CUT_BODY, kinds=(Kind.EXTRACT,), attempts=(1,))


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
        Seeded(cached, "KEPT", frozenset(), LOST_GLEANING),
        Seeded(metered, "_tokens_of", lambda completion: replace(completion.tokens, output=1), LOST_GLEANING),
        Seeded(Meter, "_interrupted", lambda *_: NOTHING, BROKEN_REPLY),
        Seeded(transcript.Transcript, "finish", Finish.STOP, BROKEN_REPLY),
        Seeded(RelationalStore, "retry", lambda *_: asyncio.sleep(0), LOST_GLEANING),
    ],
    ids=["replies are not kept", "tokens", "broken calls", "a broken reply is taken for a whole one", "retry"],
)
async def test_the_laws_fail_where_they_are_broken(
    seeded: Seeded, server: ServerHandle, two_read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await holds_through(tmp_path / "sound", server, seeded.shown_by, two_read)
    monkeypatch.setattr(seeded.place, seeded.name, seeded.broken)
    assert not await holds_through(tmp_path / "broken", server, seeded.shown_by, two_read)
