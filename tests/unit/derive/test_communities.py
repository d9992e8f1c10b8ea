"""Communities of an index: a function of the documents, and hashes of what reports on them are written from."""

from dataclasses import replace
from pathlib import Path

import pytest

from quipu.algo.graph_communities import MAX_SIZE
from quipu.derive import communities as derivation
from quipu.derive.derivation import DerivationContext
from quipu.model.cluster import Cluster
from quipu.model.delta import CommitResult, Delta, DocumentFacts
from quipu.model.derivation import DerivationResult, Freshness
from quipu.testing.contract.steps import summarise
from quipu.testing.facts import document, entity, passage, relation
from tests.unit.derive.towns import TOWNS, chronicle, communities, shelf
from tests.unit.derive.workshop import open_bench, publish, remove


async def _refresh(context: DerivationContext, *, rebuild: bool = False) -> DerivationResult:
    return await derivation.refresh(context, rebuild)


async def _freshness(context: DerivationContext) -> Freshness:
    async with context.store.view() as view:
        return (await derivation.read_state(view, context)).freshness


def _lineage(found: dict[str, Cluster], cluster: str) -> set[str]:
    """Return a community and those above it."""
    chain = {cluster}
    while parent := found[cluster].parent:
        chain.add(parent)
        cluster = parent
    return chain


def _holding(found: dict[str, Cluster], *keys: str) -> set[str]:
    """Return the communities that hold one of these entities, and those above."""
    return {up for name, each in found.items() if set(each.members) & set(keys) for up in _lineage(found, name)}


async def test_every_entity_is_in_one_community_and_people_of_a_town_are_together(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        lonely = document("lonely", passage("Hermit.", entity("Hermit")))
        await publish(context, *shelf(), lonely)
        assert await _freshness(context) is Freshness.MISSING
        report = await _refresh(context)
        found = await communities(context)
        assert report == DerivationResult(name="communities", n_built=len(found))
        members = [key for each in found.values() for key in each.members]
        assert len(members) == len(set(members)) == sum(each.n_entities for each in found.values() if each.level == 0)
        assert "hermit" in members
        for each in found.values():
            assert len({key.split()[0] for key in each.members}) <= 1
            assert len(each.members) <= MAX_SIZE
            assert each.inputs_hash
        assert await _freshness(context) is Freshness.FRESH
        assert await context.store.verify() == []


async def test_they_depend_on_the_documents_alone(tmp_path: Path) -> None:
    books = shelf()
    found: list[dict[str, Cluster]] = []
    for number, order in enumerate((books, books[::-1], [*books[4:], *books[:4]])):
        async with open_bench(tmp_path / str(number)) as context:
            if number:
                await publish(context, chronicle("gone", "Acre", 9))
                await _refresh(context)
            for each in order:
                await publish(context, each)
                if number == 1:
                    await _refresh(context)
            if number:
                await remove(context, "gone")
            await _refresh(context)
            found.append(await communities(context))
    assert found[0] == found[1] == found[2]


async def test_nothing_is_made_where_nothing_changed(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, *shelf())
        await _refresh(context)
        before = await communities(context)
        assert await _refresh(context) == DerivationResult(name="communities", n_unchanged=len(before))
        assert await communities(context) == before


async def test_what_a_document_does_not_touch_stays_to_the_letter(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, *shelf(12))
        await _refresh(context)
        before = await communities(context)
        await publish(context, chronicle("new", "Bari", 5, n=1))
        assert await _freshness(context) is Freshness.STALE
        touched = _holding(before, *(f"bari {number}" for number in range(14)))
        await _refresh(context)
        after = await communities(context)
        assert {name: after.get(name) for name in before.keys() - touched} == {
            name: each for name, each in before.items() if name not in touched
        }
        assert await _freshness(context) is Freshness.FRESH
        assert await context.store.verify() == []


async def test_a_removed_document_takes_its_entities_along_and_leaves_the_others(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, *shelf(), document("x", passage("Zed met Yan.", entity("Zed"), entity("Yan"))))
        await _refresh(context)
        before = await communities(context)
        await remove(context, "x")
        await _refresh(context)
        after = await communities(context)
        assert before.keys() - after.keys() == _holding(before, "zed")
        assert after.items() <= before.items()


async def test_a_changed_description_changes_the_hash_of_its_community_and_those_above(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, *shelf(12))
        await _refresh(context)
        before = await communities(context)
        await publish(context, document("note", passage("Acre 3 sang.", entity("Acre 3", "Person", "A singer."))))
        await _refresh(context)
        after = await communities(context)
        assert [replace(each, inputs_hash="") for each in before.values()] == [
            replace(each, inputs_hash="") for each in after.values()
        ]
        changed = {name for name in before if before[name].inputs_hash != after[name].inputs_hash}
        assert changed == _holding(before, "acre 3")


async def test_a_relation_between_two_parts_changes_the_whole_and_neither_part(tmp_path: Path) -> None:
    def bridge(name: str, told: str) -> DocumentFacts:
        link = relation(ends[0], ends[1], told, weight=0.001)
        return document(name, passage(f"{name}: {ends}.", *(entity(end, "Person") for end in ends), link))

    async with open_bench(tmp_path / "a") as context:
        await publish(context, *shelf(12))
        await _refresh(context)
        found = await communities(context)
        finest = [each for each in found.values() if each.parent and each.members]
        first, second = next((a, b) for a in finest for b in finest if a.id < b.id and a.parent == b.parent)
        ends = [each.members[0].title() for each in (first, second)]
        await publish(context, bridge("first", "They met."))
        await _refresh(context)
        before = await communities(context)
        await publish(context, bridge("second", "They wrote to each other."))
        await _refresh(context)
        after = await communities(context)
        changed = {name for name in before if before[name].inputs_hash != after[name].inputs_hash}
        assert before.keys() == after.keys() == found.keys()
        assert changed == _lineage(before, first.parent)


async def test_a_summary_makes_them_stale_and_changes_the_hash(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        said = [passage(f"Acre 1 {i}.", entity("Acre 1", "Person", f"Acre 1 was {i}.")) for i in range(9)]
        await publish(context, *shelf(), document("many", *said))
        await _refresh(context)
        before = await communities(context)
        await summarise(context.store)
        assert await _freshness(context) is Freshness.STALE
        await _refresh(context)
        after = await communities(context)
        changed = {name for name in before if before[name].inputs_hash != after[name].inputs_hash}
        assert changed >= _holding(before, "acre 1")
        assert await _freshness(context) is Freshness.FRESH


async def test_nearly_all_that_is_untouched_keeps_id_and_members_through_a_history(tmp_path: Path) -> None:
    n_untouched, n_kept = 0, 0
    async with open_bench(tmp_path / "a") as context:
        await publish(context, *shelf(12))
        await _refresh(context)
        for step in range(8):
            before = await communities(context)
            await publish(context, chronicle(f"new{step}", TOWNS[step % 4], step, n=2, people=20))
            if step % 3 == 2:
                await remove(context, f"book{step}")
            touched = {name for name, each in (await communities(context)).items() if not each.inputs_hash}
            await _refresh(context)
            after = await communities(context)
            untouched = before.keys() - touched
            n_untouched += len(untouched)
            n_kept += sum(after.get(name) == before[name] for name in untouched)
            assert await context.store.verify() == []
    assert n_untouched >= 60
    assert n_kept >= 0.95 * n_untouched


async def test_what_arrives_while_they_are_brought_up_to_date_leaves_the_others_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, *shelf())
        await _refresh(context)
        before = await communities(context)
        commit = context.store.commit

        async def late(delta: Delta) -> CommitResult:
            await commit(Delta(publish=[document("late", passage("Unheard Of.", entity("Unheard Of")))]))
            return await commit(delta)

        await publish(context, document("note", passage("Hermit.", entity("Hermit"))))
        monkeypatch.setattr(context.store, "commit", late)
        await _refresh(context)
        monkeypatch.undo()
        assert await _freshness(context) is Freshness.STALE
        unsettled = [each for each in (await communities(context)).values() if not each.inputs_hash]
        assert [each.members for each in unsettled] == [("hermit",)]  # it was in none when something last changed
        await _refresh(context)
        after = await communities(context)
        assert {name: each for name, each in after.items() if name in before} == before
        assert {key for name in after.keys() - before.keys() for key in after[name].members} == {"hermit", "unheard of"}


async def test_an_empty_index_has_none_and_is_fresh(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        assert await _refresh(context) == DerivationResult(name="communities")
        assert await communities(context) == {}
        assert await _freshness(context) is Freshness.FRESH
        await publish(context, *shelf(2))
        assert await _freshness(context) is Freshness.STALE
        await _refresh(context)
        assert await communities(context)


async def test_in_what_words_two_are_related_is_an_input_of_their_community(tmp_path: Path) -> None:
    hashes: set[str] = set()
    async with open_bench(tmp_path / "a") as context:
        for word in ("sight", "sound", "sight"):
            said = entity("Ada"), entity("Bo"), relation("Ada", "Bo", keywords=(word,))
            await publish(context, document("d", passage(f"Ada and Bo: {word}.", *said)))
            await _refresh(context)
            (found,) = (await communities(context)).values()
            hashes.add(found.inputs_hash)
    assert len(hashes) == 2
