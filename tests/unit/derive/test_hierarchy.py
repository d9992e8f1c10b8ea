"""Tests of the hierarchy: its state, its texts, and what a refresh writes again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quipu.algo.vector_clusters import Grid, Ints
from quipu.derive import hierarchy
from quipu.derive.aggregate_inputs import EXTRACTIVE, EXTRACTIVE_AFTER_REFUSAL, EXTRACTIVE_CUT
from quipu.derive.catalog import get_derivation, make_catalog
from quipu.derive.derivation import DerivationContext
from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, Unavailable
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.cluster import Hierarchy
from quipu.model.delta import Delta
from quipu.model.derivation import HIERARCHY, DerivationState, Freshness, RefreshCost
from quipu.model.graph import EntityMention
from quipu.model.ids import digest
from quipu.model.query import Filter
from quipu.ports.store import OccurrenceKind
from quipu.testing.facts import document, entity, passage, relation
from tests.unit.derive.guilds import (
    Narrator,
    aggregates,
    between,
    is_between,
    ledger,
    material_of,
    refresh,
    shelf,
    told,
    with_model,
    words,
)
from tests.unit.derive.workshop import dump, open_bench, publish, remove


async def _state(context: DerivationContext) -> DerivationState:
    async with context.store.view() as view:
        return await hierarchy.DERIVATION.read_state(view, context)


async def test_of_nothing_there_is_nothing_to_tell(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        assert (await _state(context)).cost == RefreshCost()


async def test_all_of_a_new_hierarchy_is_told_and_nothing_of_it_again(guilds: DerivationContext) -> None:
    before = await _state(guilds)
    assert before.freshness is Freshness.MISSING
    assert before.cost.n_calls == 0 < before.cost.n_texts
    report = await refresh(guilds)
    found = await aggregates(guilds)
    assert (report.n_built, report.n_unchanged, report.failed, report.stopped) == (len(found), 0, (), "")
    state = await _state(guilds)
    assert (state.freshness, state.n_items, state.n_stale) == (Freshness.FRESH, len(found), 0)
    assert state.contents == f"{len(found)} aggregates in 2 layers"
    assert (await told(guilds)).keys() == found.keys()
    assert await guilds.store.verify() == []
    lines = await dump(guilds)
    again = await refresh(guilds)
    assert (again.n_built, again.n_unchanged) == (0, len(found))
    assert await dump(guilds) == lines


async def test_another_grouping_makes_all_of_it_stale_and_is_what_it_is_then_made_by(guilds: DerivationContext) -> None:
    def by_place(keys: Sequence[str], _grid: Grid, _layer: int) -> Ints:
        return np.arange(len(keys), dtype=np.int64) // 10 * 10

    await refresh(guilds)
    n_before = len(await aggregates(guilds))
    other = get_derivation("hierarchy", make_catalog(by_place))
    async with guilds.store.view() as view:
        state = await other.read_state(view, guilds)
        with_a_model = await other.read_state(view, with_model(guilds, Narrator()))
    assert (state.freshness, state.n_items, state.n_stale) == (Freshness.STALE, n_before, n_before)
    assert state.cost.n_calls == 0 < state.cost.n_texts
    assert with_a_model.cost.n_calls == state.cost.n_texts
    await other.refresh(guilds, False)
    async with guilds.store.view() as view:
        assert (await other.read_state(view, guilds)).freshness is Freshness.FRESH
        assert (await hierarchy.DERIVATION.read_state(view, guilds)).freshness is Freshness.STALE
        made = (await view.derivations())[HIERARCHY]
    assert "by_place" in made.identity


async def test_every_entity_is_in_one_aggregate_and_all_are_under_one_root(guilds: DerivationContext) -> None:
    await refresh(guilds)
    found = await aggregates(guilds)
    members = [key for each in found.values() for key in each.members]
    async with guilds.store.view() as view:
        assert len(members) == len(set(members)) == (await view.counts()).entities > 150
        finest = await view.clusters(Hierarchy.AGGREGATES, entities=members)
    assert sum(len(cluster.members) for cluster in finest) == len(members)
    assert all(cluster.members == found[cluster.id].members for cluster in finest)
    (root,) = [each for each in found.values() if not each.parent]
    assert root.n_entities == len(members)
    for each in found.values():
        assert not each.parent or found[each.parent].level > each.level


async def test_however_it_came_about_the_hierarchy_is_the_same_to_the_byte(
    guilds: DerivationContext, other: DerivationContext
) -> None:
    await refresh(guilds)
    for number in range(3):
        await publish(guilds, ledger(f"more{number}"))
        await refresh(guilds)
    await remove(guilds, "ledger03", "more1")
    await publish(guilds, ledger("ledger05", seed=7))
    await refresh(guilds)
    wanted = [each for each in shelf() if each.id not in ("ledger03", "ledger05")]
    for each in reversed([*wanted, ledger("ledger05", seed=7), ledger("more0"), ledger("more2")]):
        await publish(other, each)
    await refresh(other)
    assert [line for line in await dump(guilds) if "aggregate" in line] != []
    assert await dump(guilds) == await dump(other)
    lines = await dump(guilds)
    await refresh(guilds, rebuild=True)
    assert await dump(guilds) == lines
    assert await guilds.store.verify() == []


async def test_what_was_removed_is_nowhere_in_that_very_commit(guilds: DerivationContext) -> None:
    secret = document(
        "secret",
        passage(
            "Quixotic tale.",
            entity("Potter N1", "Person", "Potter N1 is quixotic."),
            entity("Smith N2", "Person", "Smith N2 saw it quixotically."),
            relation("Potter N1", "Smith N2", "A quixotic bond.", weight=9),
        ),
    )
    await publish(guilds, secret)
    await refresh(guilds)
    assert "quixotic" in words([line for line in await dump(guilds) if '"aggregate' in line])
    assert any("quixotic" in each.description for each in await between(guilds))
    await remove(guilds, "secret")
    assert "quixotic" not in words(await dump(guilds))
    assert len(await told(guilds)) < len(await aggregates(guilds))
    assert await guilds.store.verify() == []
    assert (await _state(guilds)).freshness is Freshness.STALE
    await refresh(guilds)
    assert (await told(guilds)).keys() == (await aggregates(guilds)).keys()
    assert "quixotic" not in words(await dump(guilds))


async def test_one_document_more_leaves_most_aggregates_as_they_are(guilds: DerivationContext) -> None:
    await refresh(guilds)
    before = await told(guilds)
    await publish(guilds, document("note", passage("Potter N1 rests.", entity("Potter N1", description="At rest."))))
    assert (await _state(guilds)).n_stale > 0
    await refresh(guilds)
    after = await told(guilds)
    same = {name for name, each in after.items() if before.get(name) == each}
    assert len(same) > len(after) / 2
    assert len(same) < len(after)


async def test_reports_lead_to_the_chunks_that_mention_most_of_what_is_in_them(guilds: DerivationContext) -> None:
    await refresh(guilds)
    found, reports = await aggregates(guilds), await told(guilds)
    for name, each in found.items():
        below = [key for other in found.values() for key in other.members if name in (other.id, other.parent)]
        async with guilds.store.view() as view:
            named = await view.occurrences(OccurrenceKind.ENTITY, below, 1_000)
            said = await view.mentions(EntityMention, sorted({chunk for chunks in named.values() for chunk in chunks}))
        counts = {chunk: sum(mention.key in below for mention in mentions) for chunk, mentions in said.items()}
        counts = {chunk: n for chunk, n in counts.items() if n}
        ranked = sorted(counts, key=lambda chunk: (-counts[chunk], chunk))
        assert reports[name].chunks == tuple(ranked[:20]), each


async def test_a_report_leads_to_nothing_where_a_name_merely_stands_or_that_is_gone(guilds: DerivationContext) -> None:
    await publish(guilds, document("bare", passage("Smith N2. " * 40, entity("Cartwright Q"))))
    await refresh(guilds)
    async with guilds.store.view() as view:
        (chunk,) = await view.chunks(document_id="bare")
        (finest,) = await view.clusters(Hierarchy.AGGREGATES, entities=["smith n2"])
        (own,) = await view.clusters(Hierarchy.AGGREGATES, entities=["cartwright q"])
        (report,) = await view.cluster_reports([finest.id])
    assert finest.id == own.id or chunk.id not in report.chunks
    await remove(guilds, "bare")
    assert await guilds.store.verify() == []


async def test_under_a_filter_only_what_is_told_of_allowed_documents_is_shown(guilds: DerivationContext) -> None:
    own = [f"Cartwright {name}" for name in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    said = [entity(each, "Person", f"{each} makes cartwright carts.") for each in own]
    await publish(guilds, document("carts", passage("Carts.", *said, relation(own[0], own[25], "They share a yard."))))
    await refresh(guilds)
    allowed = Filter(documents=("carts",))
    seen, reports = await aggregates(guilds, allowed), await told(guilds, allowed)
    assert {key for each in seen.values() for key in each.members} == {each.casefold() for each in own}
    assert 0 < len(reports) < len(seen)
    assert all("ledger" not in report.summary for report in reports.values())
    for each in await between(guilds, allowed):
        assert {each.source, each.target} <= reports.keys()
    assert len(await between(guilds, allowed)) < len(await between(guilds))
    elsewhere = await told(guilds, Filter(exclude=("carts",)))
    assert "cart" not in words([f"{each.summary} {each.title}" for each in elsewhere.values()]).casefold()


async def test_few_entities_have_a_root_alone_and_one_has_nothing(context: DerivationContext) -> None:
    await publish(context, document("one", passage("Ada.", entity("Ada"))))
    report = await refresh(context)
    assert (report.n_built, await aggregates(context)) == (0, {})
    assert (await _state(context)).freshness is Freshness.FRESH
    await publish(
        context, document("two", passage("Bo met Cy.", entity("Bo"), entity("Cy"), relation("Bo", "Cy", "Met.")))
    )
    await refresh(context)
    (root,) = (await aggregates(context)).values()
    assert (root.members, root.level, root.parent) == (("ada", "bo", "cy"), 1, "")
    (report_of_root,) = (await told(context)).values()
    assert report_of_root.title == "Bo, Cy, Ada"
    assert [each.summary for each in report_of_root.findings] == ["Met."]
    await remove(context, "one", "two")
    await refresh(context)
    assert await aggregates(context) == {}
    assert await context.store.verify() == []


async def test_chinese_and_russian_are_told_in_their_own_words(context: DerivationContext) -> None:
    await publish(
        context,
        document(
            "zh",
            passage(
                "长城位于中国北方。",
                entity("长城", "Location", "长城位于中国北方。它很长。"),
                entity("中国", "Location", "中国是一个国家。"),
                relation("长城", "中国", "长城位于中国。"),
            ),
        ),
        document("ru", passage("Москва.", entity("Москва", "Location", "Москва стоит на реке. Она велика."))),
    )
    await refresh(context)
    (report,) = (await told(context)).values()
    assert report.title == "中国, 长城, Москва"
    assert report.summary == "中国是一个国家。 长城位于中国北方。 Москва стоит на реке."
    assert [each.summary for each in report.findings] == ["长城位于中国。"]
    assert report.model == EXTRACTIVE


async def test_another_embedder_makes_the_hierarchy_stale(guilds: DerivationContext) -> None:
    await refresh(guilds)
    async with guilds.store.view() as view:
        (made,) = (await view.derivations()).values()
    await guilds.store.commit(Delta(derivations=[replace(made, identity="hierarchy/1 other")]))
    assert (await _state(guilds)).freshness is Freshness.STALE
    assert (await refresh(guilds)).n_built == len(await aggregates(guilds))


async def test_dropped_it_leaves_nothing(guilds: DerivationContext) -> None:
    lines = await dump(guilds)
    await refresh(guilds)
    await guilds.store.commit(Delta(drop=("hierarchy",)))
    assert await dump(guilds) == lines
    assert await guilds.store.verify() == []


async def test_with_a_model_what_rules_told_counts_as_stale(guilds: DerivationContext) -> None:
    await refresh(guilds)
    with_llm = with_model(guilds, Narrator())
    state = await _state(with_llm)
    assert (state.freshness, state.n_stale) == (Freshness.STALE, state.n_items)
    assert state.cost.n_calls == state.n_items


async def test_each_aggregate_costs_a_call_and_so_does_each_relation_over_its_allowance(
    guilds: DerivationContext,
) -> None:
    await refresh(guilds)
    n_cut = sum(each.model == EXTRACTIVE_CUT for each in await between(guilds))
    llm = Narrator()
    report = await refresh(with_model(guilds, llm))
    found = await aggregates(guilds)
    assert (len(llm.about_aggregates), len(llm.about_relations)) == (len(found), n_cut)
    assert report.n_calls == report.n_built + n_cut == len(found) + n_cut
    assert n_cut > 0
    reports = await told(guilds)
    assert {each.model for each in reports.values()} == {"fake/narrator aggregate/1"}
    assert {each.model for each in await between(guilds)} == {"fake/narrator aggregate/1", EXTRACTIVE}
    assert (await refresh(with_model(guilds, llm))).n_calls == 0
    assert (await refresh(guilds)).n_built == 0, "what a model wrote stands where there is none"
    assert await guilds.store.verify() == []


async def test_a_request_holds_what_is_told_of_its_members_and_goes_with_their_documents(
    guilds: DerivationContext,
) -> None:
    llm = Narrator()
    await refresh(with_model(guilds, llm))
    found, reports = await aggregates(guilds), await told(guilds)
    (root,) = [each for each in found.values() if not each.parent]
    request = next(
        each for each in llm.about_aggregates if reports[root.id].title.removeprefix("Guild ") in _mark(each)
    )
    children = [reports[each.id] for each in found.values() if each.parent == root.id]
    for child in children:
        assert f"- {child.title}: {child.summary}" in material_of(request)
    assert request.role is Role.REPORT
    assert request.lifetime is ReplyLifetime.ALL_DOCUMENTS
    assert request.documents == tuple(sorted(f"ledger{number:02}" for number in range(20)))
    leaf = next(each for each in found.values() if each.level == 1)
    request = next(
        each for each in llm.about_aggregates if reports[leaf.id].title.removeprefix("Guild ") in _mark(each)
    )
    async with guilds.store.view() as view:
        assert request.documents == (await view.cluster_documents([leaf.id]))[leaf.id]
        for each in await view.entities(leaf.members):
            assert f"- {each.name}: {' '.join(each.description.split())}" in material_of(request)


async def test_only_what_changed_is_asked_again(guilds: DerivationContext) -> None:
    await refresh(with_model(guilds, Narrator()))
    before = await told(guilds)
    await publish(guilds, document("note", passage("Potter N1 rests.", entity("Potter N1", description="At rest."))))
    llm = Narrator()
    report = await refresh(with_model(guilds, llm))
    after = await told(guilds)
    changed = {name for name, each in after.items() if each.title != getattr(before.get(name), "title", "")}
    assert len(llm.about_aggregates) == len(changed) == report.n_built < len(after) / 2
    assert report.n_unchanged == len(after) - len(changed)


async def test_equal_names_merge_nothing(guilds: DerivationContext) -> None:
    same = json.dumps({"name": "Potter N1", "description": "All the same.", "findings": []})
    await refresh(with_model(guilds, Narrator(lambda each: None if is_between(each) else same)))
    found = await aggregates(guilds)
    assert {each.title for each in (await told(guilds)).values()} == {"Potter N1"}
    assert sum(len(each.members) for each in found.values()) == max(each.n_entities for each in found.values())
    assert len([each for each in found.values() if not each.parent]) == 1
    assert await guilds.store.verify() == []


@pytest.mark.parametrize("error", [Unavailable("No key."), OverBudget("Enough.")])
async def test_where_no_call_is_made_any_more_the_rest_waits_and_is_made_up_for(
    guilds: DerivationContext, error: QuipuError
) -> None:
    llm = Narrator()
    llm.reply = lambda _: error if len(llm.requests) > 5 else None
    seen: list[int] = []
    report = await refresh(replace(with_model(guilds, llm), on_event=lambda each: seen.append(each.n_done)))  # type: ignore[union-attr]
    assert report.stopped == str(error)
    assert seen[-1] == 5
    assert (report.n_built, len(await told(guilds))) == (5, 5)
    assert len(await between(guilds)) > 0
    healed = await refresh(with_model(guilds, Narrator()))
    assert (healed.stopped, healed.n_built) == ("", len(await aggregates(guilds)) - 5)


async def test_relations_no_call_was_left_for_wait_and_are_made_up_for(guilds: DerivationContext) -> None:
    llm = Narrator()
    llm.reply = lambda _: OverBudget("Enough.") if len(llm.about_relations) > 3 else None
    await refresh(with_model(guilds, llm))
    n_cut = sum(each.model == EXTRACTIVE_CUT for each in await between(guilds))
    assert n_cut > 0
    after = with_model(guilds, Narrator())
    async with guilds.store.view() as view:
        state = await hierarchy.DERIVATION.read_state(view, after)
        assert (await hierarchy.DERIVATION.read_state(view, guilds)).freshness is Freshness.FRESH, "rules have told all"
    assert (state.freshness, state.n_stale, state.cost.n_calls) == (Freshness.STALE, n_cut, n_cut)
    assert (await refresh(after)).n_calls == n_cut
    assert EXTRACTIVE_CUT not in {each.model for each in await between(guilds)}
    assert (await refresh(after)).n_calls == 0


async def test_a_relation_is_not_asked_for_before_both_its_ends_are_told(guilds: DerivationContext) -> None:
    llm = Narrator()
    llm.reply = lambda _: Overloaded("Busy.") if len(llm.requests) == 1 else None
    report = await refresh(with_model(guilds, llm))
    assert "the report on one of its ends is missing" in {why for _, why in report.failed}
    assert (report.n_built, report.n_unchanged) == (len(await told(guilds)), 0)
    assert all(material_of(each).count("- Guild ") >= 2 for each in llm.about_relations)
    await refresh(with_model(guilds, llm))
    assert all(material_of(each).count("- Guild ") >= 2 for each in llm.about_relations)
    assert EXTRACTIVE_CUT not in {each.model for each in await between(guilds)}


async def test_one_that_fails_leaves_those_above_it_untold_until_it_does_not(guilds: DerivationContext) -> None:
    llm = Narrator()
    llm.reply = lambda _: Overloaded("Busy.") if len(llm.requests) == 1 else None
    report = await refresh(with_model(guilds, llm))
    of_aggregates = [why for what, why in report.failed if what.startswith("aggregate")]
    assert sorted(of_aggregates) == ["Busy.", "the report on an aggregate in it is missing"]
    found = await aggregates(guilds)
    untold = found.keys() - (await told(guilds)).keys()
    assert {found[each].parent for each in untold} <= untold | {""}
    healed = await refresh(with_model(guilds, Narrator()))
    assert (healed.failed, healed.n_built) == ((), len(untold))


@pytest.mark.parametrize("reply", ["I cannot say.", '{"name": "", "description": "x"}', Refused("No.")])
async def test_rules_stand_in_where_no_reply_is_of_use(guilds: DerivationContext, reply: str | QuipuError) -> None:
    llm = Narrator()
    llm.reply = lambda each: reply if each.messages == llm.requests[0].messages else None
    report = await refresh(with_model(guilds, llm))
    assert (report.failed, len(report.notes)) == ((), 1)
    by_rule = [each for each in (await told(guilds)).values() if each.model.startswith(EXTRACTIVE_AFTER_REFUSAL)]
    assert [each.model for each in by_rule] == [f"{EXTRACTIVE_AFTER_REFUSAL} fake/narrator"]
    assert (await refresh(with_model(guilds, Narrator()))).n_calls == 0


async def test_a_relation_no_reply_on_which_is_of_use_keeps_what_the_documents_say(guilds: DerivationContext) -> None:
    llm = Narrator(lambda each: Refused("No.") if is_between(each) else None)
    report = await refresh(with_model(guilds, llm))
    assert (report.failed, len(report.notes)) == ((), 1)
    assert all(each.description for each in await between(guilds))
    assert f"{EXTRACTIVE_AFTER_REFUSAL} fake/narrator" in {each.model for each in await between(guilds)}
    assert (await refresh(with_model(guilds, Narrator()))).n_calls == 0


async def test_what_is_removed_while_the_model_tells_of_it_is_told_nowhere(guilds: DerivationContext) -> None:
    await publish(
        guilds,
        document(
            "secret",
            passage(
                "Quixotic.",
                entity("Potter N1", description="A quixotic one."),
                entity("Smith N2", description="The same."),
                relation("Potter N1", "Smith N2", "A quixotic bond.", weight=9),
            ),
        ),
    )
    llm = Narrator()

    async def forget(request: ChatRequest) -> None:
        if "quixotic" in material_of(request):
            llm.before = None
            await remove(guilds, "secret")

    def repeat(request: ChatRequest) -> str | None:
        told_of = "quixotic" if "quixotic" in material_of(request) else "plain"
        if is_between(request):
            return told_of
        return json.dumps({"name": told_of, "description": told_of, "findings": [told_of]})

    llm.before, llm.reply = forget, repeat
    report = await refresh(with_model(guilds, llm))
    assert "quixotic" not in words(await dump(guilds))
    assert (report.failed, report.stopped) == ((), "")
    assert (await told(guilds)).keys() == (await aggregates(guilds)).keys()
    assert (await refresh(with_model(guilds, Narrator()))).n_calls == 0


async def test_told_by_a_model_it_is_the_same_however_it_came_about(
    guilds: DerivationContext, other: DerivationContext
) -> None:
    await refresh(with_model(guilds, Narrator()))
    await publish(guilds, ledger("more"))
    await remove(guilds, "ledger07")
    await refresh(with_model(guilds, Narrator()))
    await publish(other, ledger("more"), *(each for each in reversed(shelf()) if each.id != "ledger07"))
    await refresh(with_model(other, Narrator()))
    assert await dump(guilds) == await dump(other)


async def test_a_relation_is_told_again_where_one_of_its_ends_is(
    guilds: DerivationContext, other: DerivationContext
) -> None:
    """The new document says something of one entity, and nothing of its relations."""
    new = document("new", passage("Potter N2 was seen.", entity("Potter N2", "Person", "Potter N2 is in ledger00.")))
    await refresh(with_model(guilds, Narrator()))
    shape = (await aggregates(guilds)).keys()
    await publish(guilds, new)
    llm = Narrator()
    await refresh(with_model(guilds, llm))
    assert shape == (await aggregates(guilds)).keys()
    assert len(llm.about_relations) > 0
    await publish(other, *shelf(), new)
    await refresh(with_model(other, Narrator()))
    assert await dump(guilds) == await dump(other)


async def test_made_anew_the_model_tells_of_everything_again(guilds: DerivationContext) -> None:
    await refresh(with_model(guilds, Narrator()))
    first = await dump(guilds)
    llm = Narrator()
    report = await refresh(with_model(guilds, llm), rebuild=True)
    assert report.n_calls == len(llm.requests) > report.n_built == len(await aggregates(guilds))
    assert await dump(guilds) == first


async def test_progress_counts_up_to_all_there_is(guilds: DerivationContext) -> None:
    seen: list[tuple[int, int]] = []
    llm = Narrator()
    events = replace(with_model(guilds, llm), on_event=lambda each: seen.append((each.n_done, each.n_total)))  # type: ignore[union-attr]
    await refresh(events)
    assert seen[-1] == (len(llm.requests), len(llm.requests))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


async def test_what_communities_there_are_is_not_touched(guilds: DerivationContext) -> None:
    await refresh(guilds)
    async with guilds.store.view() as view:
        assert await view.clusters(Hierarchy.COMMUNITIES) == []


def _mark(request: ChatRequest) -> str:
    return digest(material_of(request))[:8]
