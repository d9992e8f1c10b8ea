"""Tests of the hierarchy as a derivation: made by rules, kept up to date, the same however it came about."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from quipu.algo.vector_clusters import Grid, Ints
from quipu.derive import hierarchy
from quipu.derive.derivation import DerivationContext
from quipu.derive.hierarchy.planning import EXTRACTIVE
from quipu.model.cluster import Hierarchy
from quipu.model.delta import Delta
from quipu.model.derivation import DerivationState, Freshness, RefreshCost
from quipu.model.query import Filter
from quipu.testing.facts import document, entity, passage, relation
from tests.unit.derive.hierarchy.guilds import (
    Narrator,
    aggregates,
    between,
    ledger,
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
    other = hierarchy.derivation(by_place)
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
        made = (await view.derivations())[hierarchy.NAME]
    assert "by_place" in made.identity


async def test_every_entity_is_in_one_aggregate_and_all_are_under_one_root(guilds: DerivationContext) -> None:
    await refresh(guilds)
    found = await aggregates(guilds)
    members = [key for each in found.values() for key in each.members]
    async with guilds.store.view() as view:
        assert len(members) == len(set(members)) == (await view.counts()).entities > 150
        finest = await view.clusters_of(Hierarchy.AGGREGATES, members)
    assert all(key in found[cluster].members for key, cluster in finest.items())
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
            named = await view.chunks_of_entities(below, 1_000)
            said = await view.entity_mentions(sorted({chunk for chunks in named.values() for chunk in chunks}))
        counts = {chunk: sum(mention.key in below for mention in mentions) for chunk, mentions in said.items()}
        counts = {chunk: n for chunk, n in counts.items() if n}
        ranked = sorted(counts, key=lambda chunk: (-counts[chunk], chunk))
        assert reports[name].chunks == tuple(ranked[:20]), each


async def test_a_report_leads_to_nothing_where_a_name_merely_stands_or_that_is_gone(guilds: DerivationContext) -> None:
    await publish(guilds, document("bare", passage("Smith N2. " * 40, entity("Cartwright Q"))))
    await refresh(guilds)
    async with guilds.store.view() as view:
        (chunk,) = await view.document_chunks("bare")
        finest = (await view.clusters_of(Hierarchy.AGGREGATES, ["smith n2"]))["smith n2"]
        own = (await view.clusters_of(Hierarchy.AGGREGATES, ["cartwright q"]))["cartwright q"]
        (report,) = await view.cluster_reports([finest])
    assert finest == own or chunk.id not in report.chunks
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
