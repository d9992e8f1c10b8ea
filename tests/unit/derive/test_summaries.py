"""Tests of summaries: each missing one is written once, in batches, and failures stay separate."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from quipu.derive.summaries import MAX_CHARS, SummaryOptions, summarise_stale, write_summary
from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, Unavailable
from quipu.model.chat import ChatRequest, Completion, FinishReason, ReplyLifetime, Role
from quipu.model.delta import DocumentFacts
from quipu.model.event import Event, EventSink, Progress, ignore_event
from quipu.model.graph import descriptions_hash
from quipu.model.ids import digest
from quipu.model.results import RefreshResult
from quipu.model.summary import Description, Summary, SummaryTarget, SummaryTargetKind, SummaryTask
from quipu.ports.providers import LLM
from quipu.prompts.summary import TITLE, VERSION
from quipu.providers.local import ByteTokenizer
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.steps import dump, only_entity, publish, remove, summary_targets
from quipu.testing.facts import document, entity, passage
from quipu.wrap.meter import Meter
from quipu.wrap.reply_cache import CachedLLM
from tests.unit.derive.writer import Writer, completion, notes_of, subjects_of

OPTIONS = SummaryOptions(batch_tokens=300, max_words=20, max_output_tokens=100, n_ahead=4)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[RelationalStore]:
    store = RelationalStore(SqliteBackend(tmp_path / "index.sqlite", busy_timeout_s=5.0), lease_s=60.0)
    await store.prepare()
    yield store
    await store.close()


def _saying(document_id: str, *names: str, n: int = 8) -> DocumentFacts:
    """Return a document that says n things of each name."""
    return document(
        document_id,
        *(
            passage(f"{name} {i}", entity(name, description=f"{name} is {i} in {document_id}."))
            for name in names
            for i in range(n)
        ),
    )


async def _run(store: RelationalStore, llm: LLM, on_event: EventSink = ignore_event) -> RefreshResult:
    return await summarise_stale(store, llm, on_event, tokenizer=ByteTokenizer(), options=OPTIONS)


def _cached(writer: Writer, store: RelationalStore) -> LLM:
    return CachedLLM(lambda _: writer, [writer.identity], store, Meter())


async def test_nothing_is_asked_where_nothing_waits(store: RelationalStore) -> None:
    writer = Writer()
    await publish(store, _saying("a", "Acre", n=3))
    assert await _run(store, writer) == RefreshResult()
    assert writer.asked == []
    async with store.view() as view:
        assert view.revision == 1


async def test_all_that_waits_gets_its_summary_and_progress_is_told(store: RelationalStore) -> None:
    writer, events = Writer(), list[Event]()
    names = [f"Doge {n}" for n in range(40)]
    await publish(store, _saying("a", *names))
    report = await _run(store, writer, events.append)
    assert report == RefreshResult(n_summarised=40)
    assert sorted(subjects_of(request) for request in writer.asked) == sorted(name.lower() for name in names)
    assert (await only_entity(store, "doge 7")).description.startswith("8 notes")
    assert await summary_targets(store) == []
    assert await store.verify() == []
    done = [(event.n_done, event.n_total) for event in events if isinstance(event, Progress)]
    assert done == sorted(done)
    assert done[-1] == (40, 40)
    assert 4 < writer.peak_under_way <= 2 * OPTIONS.n_ahead


async def test_any_history_ends_in_the_same_summaries(tmp_path: Path, store: RelationalStore) -> None:
    documents = [_saying(f"d{n}", "Acre", "Venice", n=20) for n in range(6)]
    for each in documents:
        await publish(store, each)
        await _run(store, _cached(Writer(), store))
    await publish(store, _saying("gone", "Acre"))
    await _run(store, _cached(Writer(), store))
    await remove(store, "gone", "d5")
    await _run(store, _cached(Writer(), store))
    fresh = RelationalStore(SqliteBackend(tmp_path / "fresh.sqlite", busy_timeout_s=5.0), lease_s=60.0)
    await fresh.prepare()
    await publish(fresh, *reversed(documents[:5]))
    await _run(fresh, _cached(Writer(), fresh))
    assert await dump(fresh) == await dump(store)
    await fresh.close()


async def test_nothing_is_asked_again_when_descriptions_come_and_go(store: RelationalStore) -> None:
    writer = Writer()
    llm = _cached(writer, store)
    await publish(store, *(_saying(f"d{n}", "Acre", n=80) for n in range(10)))
    await _run(store, llm)
    shown = (await only_entity(store, "acre")).description
    n_all = len(writer.asked)
    await publish(store, document("new", passage("New.", entity("Acre", description="Acre is new."))))
    report = await _run(store, llm)
    n_new = len(writer.asked) - n_all
    assert n_all > 20
    assert 2 <= n_new <= 8
    assert report.n_summarised == 1
    await remove(store, "new")
    report = await _run(store, llm)
    assert (await only_entity(store, "acre")).description == shown
    assert report.n_summarised == 1
    assert len(writer.asked) == n_all + n_new


async def test_removing_a_document_leaves_no_reply_made_from_it(store: RelationalStore) -> None:
    writer = Writer()
    await publish(store, *(_saying(f"d{n}", "Acre", n=2 if n == 3 else 60) for n in range(10)))
    await _run(store, _cached(writer, store))
    await remove(store, "d3")
    replies = await store.find_replies([request.hash(writer.identity) for request in writer.asked])
    kept = [request for request in writer.asked if request.hash(writer.identity) in replies]
    assert 0 < len(kept) < len(writer.asked)
    assert not [request for request in kept if "d3" in request.documents]
    assert not [request for request in kept if any("in d3." in message.text for message in request.messages)]
    keys = {request.hash(writer.identity) for request in kept}
    assert all(keys.issuperset(request.source_replies) for request in kept)
    async with store.view() as view:
        assert (await view.counts()).replies == len(keys)
    before = len(writer.asked)
    await _run(store, _cached(writer, store))
    assert all("d3" not in request.documents for request in writer.asked[before:])


async def test_one_that_cannot_be_made_fails_alone_and_waits(store: RelationalStore) -> None:
    writer = Writer(reply=lambda r: Refused("It is withheld.") if subjects_of(r) == "acre" else None)
    await publish(store, _saying("a", "Acre", "Venice"))
    report = await _run(store, writer)
    assert (report.n_summarised, report.stopped) == (1, "")
    ((owner, error),) = [(each.target, each.error) for each in report.summary_failures]
    assert (owner.kind, owner.id, error) == (SummaryTargetKind.ENTITY, "acre", "It is withheld.")
    assert await summary_targets(store) == [owner]
    assert len(writer.asked) == 2
    assert (await _run(store, replace(writer, reply=lambda _: None))).n_summarised == 1


@pytest.mark.parametrize("end", [Unavailable("The key is wrong."), OverBudget("That would be 5.01.")])
async def test_when_no_call_is_made_any_more_all_that_was_done_is_kept(store: RelationalStore, end: QuipuError) -> None:
    names = [f"Doge {n:02}" for n in range(60)]
    n_asked = 0

    def reply(_: ChatRequest) -> QuipuError | None:
        nonlocal n_asked
        n_asked += 1
        return end if n_asked > 20 else None

    writer, events = Writer(reply=reply), list[Event]()
    await publish(store, _saying("a", *names))
    report = await _run(store, writer, events.append)
    assert (report.n_summarised, report.stopped) == (20, str(end))
    assert [each.n_done for each in events if isinstance(each, Progress)][-1] == 20
    assert len(await summary_targets(store)) == 40
    assert len(writer.asked) <= 20 + 2 * OPTIONS.n_ahead
    assert await store.verify() == []
    assert (await _run(store, Writer())).n_summarised == 40


async def test_a_summary_that_is_outdated_when_it_comes_is_not_shown(store: RelationalStore) -> None:
    await publish(store, _saying("a", "Acre"))

    async def overtaken(_: ChatRequest) -> None:
        await publish(store, _saying("b", "Acre", n=1))

    report = await _run(store, Writer(work=overtaken))
    assert (report.n_summarised, report.summary_failures) == (0, ())
    assert len(await summary_targets(store)) == 1
    assert "notes" not in (await only_entity(store, "acre")).description


async def test_an_error_of_the_store_is_raised_as_it_is(store: RelationalStore) -> None:
    await publish(store, _saying("a", *(f"Doge {n}" for n in range(40))))
    await store.close()
    with pytest.raises(QuipuError):
        await _run(store, Writer())


async def test_a_run_that_is_cancelled_stops(store: RelationalStore) -> None:
    await publish(store, _saying("a", *(f"Doge {n}" for n in range(40))))
    held = asyncio.Event()

    async def hold(_: ChatRequest) -> None:
        held.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(_run(store, Writer(work=hold)))
    await held.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await summary_targets(store)) == 40


OPTIONS_ONE = SummaryOptions(batch_tokens=200, max_words=20, max_output_tokens=100)


def _task(texts: Sequence[str]) -> SummaryTask:
    said = tuple(Description(text=text, document=f"d{digest(text)[:1]}") for text in texts)
    owner = SummaryTarget(SummaryTargetKind.RELATION, "polo -- venice")
    return SummaryTask(
        target=owner, names=("polo", "venice"), descriptions=said, inputs_hash=descriptions_hash(t for t in texts)
    )


def _notes(n: int) -> list[str]:
    return sorted((f"Note {i} says {digest(str(i))}." for i in range(n)), key=digest)


async def _write(task: SummaryTask, writer: Writer, options: SummaryOptions = OPTIONS_ONE) -> Summary:
    async def ask(request: ChatRequest) -> Completion:
        return replace(await writer.complete(request), model=writer.identity)

    return await write_summary(task, ask, ByteTokenizer(), options)


async def test_a_few_descriptions_are_summed_up_in_one_call() -> None:
    writer, task = Writer(), _task(["He left.", "He returned.", "He left.", "He\nwrote."])
    summary = await _write(task, writer)
    (request,) = writer.asked
    assert (subjects_of(request), notes_of(request)) == ("polo | venice", ["He left.", "He returned.", "He wrote."])
    assert (request.role, request.lifetime, request.max_output_tokens) == (
        Role.SUMMARISE,
        ReplyLifetime.ALL_DOCUMENTS,
        100,
    )
    assert request.messages[0].text.startswith(TITLE)
    assert request.documents == tuple(sorted({each.document for each in task.descriptions}))
    assert (summary.target, summary.inputs_hash) == (task.target, task.inputs_hash)
    assert summary.text.startswith("3 notes")
    assert summary.model == f"tests/writer summary/{VERSION}"


async def test_many_are_summed_up_in_batches_and_these_in_turn() -> None:
    writer, notes = Writer(), _notes(200)
    summary = await _write(_task(notes), writer)
    leaves = [request for request in writer.asked if notes_of(request)[0] in notes]
    above = [request for request in writer.asked if request not in leaves]
    leaves.sort(key=lambda request: notes.index(notes_of(request)[0]))
    assert [note for request in leaves for note in notes_of(request)] == notes
    assert len(leaves) > 15
    assert len(above) > len(leaves) / 5
    assert all(len(notes_of(request)) <= 200 // 40 for request in above)
    known = {request.hash(writer.identity) for request in writer.asked}
    assert all(request.documents and not request.source_replies for request in leaves)
    assert all(
        request.source_replies and not request.documents and known.issuperset(request.source_replies)
        for request in above
    )
    root = writer.asked[-1]
    assert summary.text.startswith(f"{len(notes_of(root))} notes")


async def test_the_requests_depend_on_the_descriptions_alone_and_one_more_changes_few() -> None:
    first, again, other = Writer(), Writer(), Writer()
    notes = _notes(200)
    await _write(_task(notes), first)
    await _write(_task(notes), again)
    assert {r.hash("m") for r in first.asked} == {r.hash("m") for r in again.asked}
    await _write(_task(sorted([*notes, "One more."], key=digest)), other)
    new = {r.hash("m") for r in other.asked} - {r.hash("m") for r in first.asked}
    assert 2 <= len(new) <= 8


async def test_thoughts_and_space_around_a_summary_are_left_out() -> None:
    writer = Writer(reply=lambda _: completion("<think>He may\nhave left.</think>\n\n Polo left.\n"))
    assert (await _write(_task(["x"]), writer)).text == "Polo left."


async def test_a_reply_cut_short_is_asked_for_once_more_with_more_room() -> None:
    def reply(request: ChatRequest) -> Completion:
        is_short = request.max_output_tokens == 100
        return completion("Polo le", FinishReason.LENGTH) if is_short else completion("Polo left.")

    writer = Writer(reply=reply)
    assert (await _write(_task(["x"]), writer)).text == "Polo left."
    assert [request.max_output_tokens for request in writer.asked] == [100, 400]


async def test_a_reply_cut_short_twice_keeps_its_whole_sentences() -> None:
    writer = Writer(reply=lambda _: completion("Polo left Venice. He came to Dadu. There he", FinishReason.LENGTH))
    assert (await _write(_task(["x"]), writer)).text == "Polo left Venice. He came to Dadu."
    assert len(writer.asked) == 2


async def test_a_model_that_goes_on_and_on_is_cut_at_a_sentence() -> None:
    writer = Writer(reply=lambda _: completion("Polo left Venice again. " * 500))
    text = (await _write(_task(["x"]), writer)).text
    assert MAX_CHARS - 30 < len(text) <= MAX_CHARS
    assert text.endswith("again.")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (completion(" \n"), Refused),
        (completion("<think>Hm.</think>"), Refused),
        (completion("Polo was", FinishReason.FILTERED), Refused),
        (completion("Polo le", FinishReason.INTERRUPTED), Overloaded),
    ],
)
async def test_a_reply_that_is_no_summary_is_an_error(reply: Completion, error: type[QuipuError]) -> None:
    with pytest.raises(error):
        await _write(_task(["x"]), Writer(reply=lambda _: reply))


async def test_where_one_batch_fails_the_others_are_still_asked() -> None:
    notes = _notes(200)
    writer = Writer(reply=lambda r: Refused("No.") if notes[0] in notes_of(r) else None)
    with pytest.raises(Refused):
        await _write(_task(notes), writer)
    asked = [note for request in writer.asked for note in notes_of(request) if note in notes]
    assert sorted(asked) == sorted(notes)


async def test_a_kept_reply_without_words_is_asked_for_anew() -> None:
    kept = replace(completion("<think>All of it a thought."), is_reused=True)
    writer = Writer(reply=lambda request: kept if request.attempt < 2 else None)
    assert (await _write(_task(["He left.", "He stayed."]), writer)).text.startswith("2 notes")
    assert [request.attempt for request in writer.asked] == [0, 1, 2]
