"""Reports on communities: written where something changed, kept where nothing did, gone with what they tell of."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from quipu.derive import communities as partition
from quipu.derive import report_inputs
from quipu.derive import reports as derivation
from quipu.derive.derivation import DerivationContext
from quipu.derive.report_writer import EXTRACTIVE_AFTER_FAILURE, EXTRACTIVE_REPORT, EXTRACTIVE_SINGLE_ENTITY
from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, Unavailable
from quipu.model.chat import ChatRequest, Completion
from quipu.model.cluster import ClusterReport, Hierarchy, Partition, report_text
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.derivation import DerivationResult, DerivationState, Freshness
from quipu.model.event import Event, Progress
from quipu.model.ids import digest
from quipu.model.query import Filter
from quipu.testing.facts import document, entity, passage, relation
from quipu.wrap.meter import Meter
from quipu.wrap.reply_cache import CachedLLM
from tests.unit.derive.towns import chronicle, communities, shelf, written
from tests.unit.derive.workshop import open_bench, publish, remove
from tests.unit.derive.writer import Writer, completion, notes_of


def _reply(request: ChatRequest) -> Completion:
    """Return a report that says which notes it was made from, in a few words and by their digest."""
    notes = notes_of(request)
    said = {"title": notes[0][:40], "summary": f"{len(notes)} notes, {digest(*notes)[:8]}. {' '.join(notes)[:200]}"}
    return completion(
        json.dumps({**said, "rating": len(notes) % 10, "findings": [{"summary": n[:60]} for n in notes[:2]]})
    )


def _writer() -> Writer:
    return Writer(reply=_reply)


async def _refresh(context: DerivationContext, *, rebuild: bool = False) -> DerivationResult:
    """Bring communities up to date, then reports."""
    await partition.refresh(context, False)
    return await derivation.refresh(context, rebuild)


async def _state(context: DerivationContext) -> DerivationState:
    async with context.store.view() as view:
        return await derivation.read_state(view, context)


def _asking(context: DerivationContext, writer: Writer, *, n_ahead: int = 3) -> DerivationContext:
    return replace(context, llm=writer, n_ahead=n_ahead)


def _cached(context: DerivationContext, writer: Writer) -> DerivationContext:
    return replace(context, llm=CachedLLM(lambda _: writer, [writer.identity], context.store, Meter()), n_ahead=3)


async def test_without_a_model_every_community_is_quoted(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, *shelf())
        report = await _refresh(context)
        found, reports = await communities(context), await written(context)
        assert reports.keys() == found.keys()
        assert (report.n_built, report.n_calls, report.failed, report.stopped) == (len(found), 0, (), "")
        assert report.notes
        for each in reports.values():
            assert each.model == EXTRACTIVE_REPORT
            town = each.title.split()[0]
            assert all(part.split()[0] == town for part in each.title.split(", "))
            assert "met" in each.summary
            assert 0 < len(each.chunks) <= 8
        assert await _refresh(context) == DerivationResult(name="reports", n_unchanged=len(found))
        assert await context.store.verify() == []


async def test_a_model_is_asked_once_for_each_and_never_again_where_nothing_changed(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        writer, events = _writer(), list[Event]()
        asking = replace(_asking(context, writer), on_event=events.append)
        await publish(context, *shelf())
        report = await _refresh(asking)
        reports = await written(context)
        assert len(writer.asked) == report.n_calls == report.n_built == len(reports)
        assert {each.model for each in reports.values()} == {"tests/writer report/1"}
        assert writer.peak_under_way == 6
        told = [(each.n_done, each.n_total) for each in events if isinstance(each, Progress)]
        assert told == sorted(told)
        assert told[-1] == (len(reports), len(reports))
        assert await _refresh(asking) == DerivationResult(name="reports", n_unchanged=len(reports))
        assert len(writer.asked) == len(reports)
        assert await context.store.verify() == []


async def test_reports_on_parts_stand_in_for_what_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_inputs, "MAX_NOTE_TOKENS", 400)  # instead of documents as long as books
    async with open_bench(tmp_path / "a") as context:
        writer = _writer()
        await publish(context, *shelf())
        await _refresh(_asking(context, writer))
        found, reports = await communities(context), await written(context)
        asked = [" ".join(request.messages[1].text.split()) for request in writer.asked]
        holders = {each.parent for each in found.values() if each.parent}
        assert holders
        for holder in holders:
            parts = [" ".join(report_text(reports[e.id]).split()) for e in found.values() if e.parent == holder]
            assert any(part in text for part in parts for text in asked)
        grown = await _refresh(_asking(context, writer))
        assert grown.n_built == 0


async def test_a_changed_relation_asks_again_for_its_community_and_those_above_alone(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        writer = _writer()
        await publish(context, *shelf(12))
        await _refresh(_asking(context, writer))
        found, before = await communities(context), await written(context)
        finest = next(each for each in found.values() if each.parent and len(each.members) > 2)
        async with context.store.view() as view:
            inside = [
                r for r in await view.relations(entities=finest.members) if {r.source, r.target} <= set(finest.members)
            ]
        ends = inside[0].source_name, inside[0].target_name
        link = relation(*ends, "They fell out.", weight=0.001)
        await publish(context, document("note", passage("A note.", *(entity(end, "Person") for end in ends), link)))
        writer.asked.clear()
        report = await _refresh(_asking(context, writer))
        chain = {finest.id}
        while parent := found[min(chain, key=lambda name: found[name].level)].parent:
            chain.add(parent)
        after = await written(context)
        assert {name for name in after if after[name] != before.get(name)} == chain
        assert len(writer.asked) == report.n_built == len(chain)
        assert all("They fell out." in request.messages[1].text for request in writer.asked)


async def test_a_request_names_all_documents_whose_text_it_holds(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        writer = _writer()
        await publish(context, *shelf())
        await _refresh(_asking(context, writer))
        for request in writer.asked:
            told = set(re.findall(r"book\d", request.messages[1].text))
            assert told <= set(request.documents)
            assert request.documents == tuple(sorted(request.documents))


async def test_what_a_model_wrote_takes_the_place_of_quotes_and_not_the_other_way_round(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        writer = _writer()
        await publish(context, *shelf(4))
        quoted = await _refresh(context)
        assert (await _state(context)).freshness is Freshness.FRESH
        state = await _state(_asking(context, writer))
        assert (state.freshness, state.cost.n_calls) == (Freshness.STALE, quoted.n_built)
        await _refresh(_asking(context, writer))
        reports = await written(context)
        assert {each.model for each in reports.values()} == {"tests/writer report/1"}
        await _refresh(context)
        assert await written(context) == reports


async def test_one_entity_alone_is_quoted_without_a_call_and_once(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        writer = _writer()
        await publish(context, document("d", passage("Hermit prays. He eats.", entity("Hermit", "Person"))))
        await _refresh(_asking(context, writer))
        (report,) = (await written(context)).values()
        assert (report.title, report.summary, report.model) == ("Hermit", "Hermit prays.", EXTRACTIVE_SINGLE_ENTITY)
        assert (await _refresh(_asking(context, writer))).n_built == 0
        assert writer.asked == []


async def test_a_spoiled_reply_is_quoted_told_of_and_not_asked_for_again(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        writer = Writer(
            reply=lambda request: completion("No.") if "Acre" in request.messages[1].text else _reply(request)
        )
        await publish(context, *shelf(4))
        report = await _refresh(_asking(context, writer))
        reports = await written(context)
        quoted = {name for name, each in reports.items() if each.model == EXTRACTIVE_AFTER_FAILURE}
        assert quoted == {name for name, each in reports.items() if "Acre" in each.title}
        assert {what for what, _ in report.failed} == quoted
        assert report.n_built == len(reports) == len(await communities(context))
        n_asked = len(writer.asked)
        assert (await _refresh(_asking(context, writer))).n_built == 0
        assert len(writer.asked) == n_asked


async def test_what_fails_for_now_is_told_and_tried_again_with_all_above_it(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        writer = _writer()
        await publish(context, *shelf(4))
        await partition.refresh(context, False)
        found = await communities(context)
        victim = next(each for each in found.values() if each.parent)

        def fail(request: ChatRequest) -> Completion | QuipuError:
            text = request.messages[1].text
            is_victim = all(f"- {key.title()} (" in text for key in victim.members) and text.count(" (Person)") == len(
                victim.members
            )
            return Overloaded("Too much at once.") if is_victim else _reply(request)

        writer.reply = fail
        report = await _refresh(_asking(context, writer))
        assert [what for what, _ in report.failed] == [victim.id]
        assert report.stopped == ""
        assert found.keys() - (await written(context)).keys() == {victim.id, victim.parent}
        assert (await _state(_asking(context, writer))).freshness is Freshness.STALE
        writer.reply = _reply
        assert (await _refresh(_asking(context, writer))).n_built == 2
        assert (await written(context)).keys() == found.keys()


@pytest.mark.parametrize("error", [Unavailable("Gone."), OverBudget("Spent.")])
async def test_where_calls_end_the_rest_is_left(tmp_path: Path, error: QuipuError) -> None:
    async with open_bench(tmp_path / "a") as context:
        writer = _writer()
        writer.reply = lambda request: _reply(request) if len(writer.asked) <= 3 else error
        await publish(context, *shelf())
        events: list[Event] = []
        report = await _refresh(replace(_asking(context, writer, n_ahead=1), on_event=events.append))
        n_written = len(await written(context))
        assert 0 < n_written <= 3
        assert [each.n_done for each in events if isinstance(each, Progress)][-1] == n_written
        assert (report.n_built, report.stopped, report.failed) == (n_written, str(error), ())
        state = await _state(_asking(context, writer))
        assert (state.freshness, state.n_stale) == (Freshness.STALE, len(await communities(context)) - n_written)
        writer.reply = _reply
        assert (await _refresh(_asking(context, writer))).n_built == state.n_stale
        assert (await _state(_asking(context, writer))).freshness is Freshness.FRESH


async def test_made_anew_with_replies_kept_costs_nothing_and_says_the_same(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        writer = _writer()
        await publish(context, *shelf())
        await _refresh(_cached(context, writer))
        before, n_asked = await written(context), len(writer.asked)
        report = await _refresh(_cached(context, writer), rebuild=True)
        assert (report.n_built, report.n_calls, report.n_reused) == (len(before), 0, n_asked)
        assert await written(context) == before
        assert len(writer.asked) == n_asked


async def test_reports_by_an_older_prompt_are_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, *shelf(4))
        n = (await _refresh(context)).n_built
        monkeypatch.setattr(derivation, "REPORTS_IDENTITY", "another")
        assert (await _state(context)).n_stale == n
        assert (await _refresh(context)).n_built == n
        assert (await _state(context)).freshness is Freshness.FRESH


@pytest.mark.parametrize("seed", range(3))
async def test_given_the_partition_reports_are_those_of_an_index_made_at_once(tmp_path: Path, seed: int) -> None:
    """Whatever came, went and was reported on in between; by a model, and quoted."""
    random = Random(seed)
    books = {each.id: each for each in shelf(8, seed)}
    for kind in ("quoted", "asked"):
        async with open_bench(tmp_path / f"{kind} history") as context:
            working = _asking(context, _writer()) if kind == "asked" else context
            live = dict[str, DocumentFacts]()
            for step in range(14):
                name = random.choice(list(books))
                if name in live and random.random() < 0.5:
                    del live[name]
                    await remove(context, name)
                else:
                    live[name] = (
                        chronicle(name, name[-1] + "ton", random.randint(0, 3)) if step % 5 == 4 else books[name]
                    )
                    await publish(context, live[name])
                if random.random() < 0.6:
                    await _refresh(working)
            await _refresh(working)
            grown, divided = await written(context), await communities(context)
            assert await context.store.verify() == []
        async with open_bench(tmp_path / f"{kind} at once") as other:
            await publish(other, *sorted(live.values(), key=lambda each: each.id))
            clusters = list(divided.values())
            whole = Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=10**6)
            await other.store.commit(Delta(partition=whole))
            await derivation.refresh(_asking(other, _writer()) if kind == "asked" else other, False)
            assert await written(other) == grown


async def test_reports_do_not_depend_on_the_order_of_documents(tmp_path: Path) -> None:
    books, said = shelf(), list[dict[str, ClusterReport]]()
    for number, order in enumerate((books, books[::-1])):
        async with open_bench(tmp_path / str(number)) as context:
            for each in order:
                await publish(context, each)
            await _refresh(context)
            said.append(await written(context))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("马可·波罗在元大都见到了忽必烈。", "忽必烈派马可·波罗去扬州。", ("马可·波罗", "忽必烈", "元大都", "扬州")),
        ("Пётр встретил Февронию в Муроме.", "Феврония исцелила Петра.", ("Пётр", "Феврония", "Муром", "Пётр")),
    ],
)
async def test_reports_speak_the_language_of_the_documents(
    tmp_path: Path, first: str, second: str, names: tuple[str, ...]
) -> None:
    people = [entity(name, "Person", f"{name}。") for name in dict.fromkeys(names)]
    links = [relation(names[0], name, first) for name in dict.fromkeys(names[1:]) if name != names[0]]
    async with open_bench(tmp_path / "a") as context:
        writer = _writer()
        await publish(
            context, document("a", passage(first, *people, *links), passage(second, people[0], people[1], links[0]))
        )
        await _refresh(context)
        (report,) = (await written(context)).values()
        assert names[0] in report.title
        assert first in report.summary
        await _refresh(_asking(context, writer))
        (report,) = (await written(context)).values()
        assert first in writer.asked[0].messages[1].text
        assert names[0] in report.summary


async def test_under_a_filter_only_reports_of_allowed_documents_alone_are_shown(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, *shelf(8))
        await _refresh(context)
        every = await written(context)
        shown = await written(context, Filter(exclude=("book0",)))
        assert shown
        assert {name for name, each in every.items() if "Acre" in each.title}.isdisjoint(shown)
        assert shown == {name: each for name, each in every.items() if "Acre" not in each.title}


async def test_the_state_tells_the_cost_before_anything_is_made(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        asking = _asking(context, _writer())
        await publish(context, *shelf())
        before = await _state(asking)
        assert before.freshness is Freshness.MISSING
        assert before.cost.n_calls > 0
        await partition.refresh(context, False)
        exact = (await _state(asking)).cost
        assert exact.n_calls == exact.n_texts == len(await communities(context))
        assert exact.input_tokens > 0
        assert (await _state(context)).cost.n_calls == 0
        report = await derivation.refresh(asking, False)
        assert report.n_calls <= exact.n_calls


async def test_reports_of_what_changed_while_they_were_written_are_not_kept(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, *shelf(8))
        await partition.refresh(context, False)
        once = asyncio.Event()

        async def meddle(_: ChatRequest) -> None:
            if not once.is_set():
                once.set()
                await context.store.commit(Delta(remove=["book0"]))

        writer = Writer(reply=_reply, work=meddle)
        await derivation.refresh(_asking(context, writer), False)
        assert not any("book0" in f"{each}" for each in (await written(context)).values())
        assert (await _state(_asking(context, writer))).freshness is Freshness.STALE
        assert await context.store.verify() == []


async def test_a_refused_community_is_quoted(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, *shelf(2))
        report = await _refresh(_asking(context, Writer(reply=lambda _: Refused("Not this."))))
        reports = await written(context)
        assert {each.model for each in reports.values()} == {EXTRACTIVE_AFTER_FAILURE}
        assert len(report.failed) == len(reports)
