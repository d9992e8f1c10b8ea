"""Tests of the look-up of reports: by id or its beginning, with what is in the group and what the report rests on."""

from pathlib import Path
from typing import Any

import pytest

from quipu.engine import Quipu
from quipu.engine.lookups import report
from quipu.errors import InvalidInput, NotFound
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import REPORTS, DerivationRecord
from quipu.model.document import Document
from quipu.stores.relational.view import RelationalView
from quipu.testing.contract.steps import publish
from quipu.testing.facts import document as facts
from quipu.testing.facts import entity, passage
from tests.laws.world import document, engine
from tests.unit.stores.opening import open_index

CITIES = ("Paris", "Vienna", "Lisbon", "Cairo", "Oslo", "Madrid", "Dublin", "Prague", "Rome", "Athens", "Bergen")
FIRSTS = ("Anna", "Boris", "Clara", "Denis", "Emma", "Frank", "Greta", "Henry", "Ivan", "Jack", "Karl", "Lena")
QUESTION = "Who travelled with Marco Polo to the court of Kublai Khan?"


async def reported(kb: Quipu, n: int = 6) -> None:
    await kb.add(*(document(f"d{each}", each) for each in range(n)))
    await kb.refresh(["reports", "hierarchy"])


@pytest.mark.parametrize("strategy", ["community_local", "community_global", "drift", "bridge", "lca"])
async def test_every_report_of_the_evidence_is_shown_by_its_id(tmp_path: Path, strategy: str) -> None:
    async with engine(tmp_path) as kb:
        await reported(kb)
        hits = (await kb.retrieve(QUESTION, strategy=strategy)).reports
        assert hits
        for hit in hits:
            found = await kb.report(hit.id)
            assert found.cluster.id == hit.id
            assert found.cluster.hierarchy is (Hierarchy.AGGREGATES if strategy == "lca" else Hierarchy.COMMUNITIES)
            assert found.report is not None
            assert found.is_current
            assert found.report.title
            assert [chunk.id for chunk in found.chunks] == list(found.report.chunks)
            assert 0 < len(found.entities) <= found.cluster.n_entities
            degrees = [entity.degree for entity in found.entities]
            assert degrees == sorted(degrees, reverse=True)


async def test_a_report_tells_of_those_above_and_below_it(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await reported(kb, 20)
        hits = (await kb.retrieve(QUESTION, strategy="community_global", top_k=50)).reports
        all_found = [await kb.report(hit.id) for hit in hits]
        fine = next(each for each in all_found if each.ancestors)
        coarse = await kb.report(fine.ancestors[-1][0])
        assert coarse.report is not None
        assert fine.ancestors == ((coarse.cluster.id, coarse.report.title),)
        assert fine.report is not None
        assert (fine.cluster.id, fine.report.title) in coarse.children
        assert {each.key for each in fine.entities} < {each.key for each in coarse.entities}


async def travelled(kb: Quipu) -> None:
    names = [f"{first} {last}" for first in FIRSTS for last in CITIES]
    pairs = zip(names, names[7:] + names[:7], CITIES * len(FIRSTS), strict=True)
    await kb.add_text("\n\n".join(f"{one} met {other} in {city}." for one, other, city in pairs), id="travels")
    await kb.refresh(["reports", "hierarchy"])


async def test_aggregates_are_shown_with_what_connects_them_to_others(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await travelled(kb)
        hits = (await kb.retrieve("Who met Anna Paris in Oslo?", strategy="lca")).reports
        found = next(each for each in [await kb.report(hit.id) for hit in hits] if each.neighbours)
        other, title, description = found.neighbours[0]
        assert title
        assert description
        assert (found.cluster.id, description) in [(end, told) for end, _, told in (await kb.report(other)).neighbours]


async def test_the_beginning_of_an_id_is_enough_where_it_tells_one_report(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await travelled(kb)
        hits = (await kb.retrieve("Who met Anna Paris?", strategy="community_global", top_k=50)).reports
        first = hits[0].id
        assert await kb.report(first[:12]) == await kb.report(f" {first.upper()} ") == await kb.report(first)
        letters = [hit.id[0] for hit in hits]
        twice = next(letter for letter in letters if letters.count(letter) > 1)
        with pytest.raises(InvalidInput, match=f"reports have an id that begins with '{twice}'") as raised:
            await kb.report(twice)
        told = next(hit.id for hit in hits if hit.id in raised.value.remedy)
        report = (await kb.report(told)).report
        assert report is not None
        assert f"{told} ({report.title})" in raised.value.remedy


async def test_a_report_there_is_none_of_is_told_with_what_may_have_been_meant(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add(document("a", 1))
        with pytest.raises(NotFound, match="There is no report 'c0ffee'") as raised:
            await kb.report("c0ffee")
        assert "quipu refresh reports" in raised.value.remedy
        await reported(kb)
        with pytest.raises(NotFound, match="There is no report 'zz'") as raised:
            await kb.report("zz")
        assert "--trace" in raised.value.remedy
        hit = (await kb.retrieve(QUESTION, strategy="community_global")).reports[0]
        shown = (await kb.report(hit.id)).report
        assert shown is not None
        with pytest.raises(NotFound) as raised:
            await kb.report(shown.title)
        assert hit.id in raised.value.remedy
        with pytest.raises(InvalidInput):
            await kb.report(" ")


async def test_where_no_report_is_written_yet_it_is_told_what_writes_them(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add(document("a", 1))
        await kb.refresh(["communities"])
        with pytest.raises(NotFound, match="There is no report 'c0ffee': none has been written") as raised:
            await kb.report("c0ffee")
        assert "quipu refresh reports" in raised.value.remedy


async def test_a_group_tells_of_all_above_it_from_the_coarsest_and_whether_its_report_is_of_what_is_in_it(
    tmp_path: Path,
) -> None:
    tree = {
        "top": ("", 0, ()),
        "middle": ("top", 1, ()),
        "leaf": ("middle", 2, ("ada", "bo")),
        "side": ("top", 1, ("cy",)),
    }
    clusters = [
        Cluster(id=name, hierarchy=Hierarchy.COMMUNITIES, level=level, parent=parent, members=members, inputs_hash=name)
        for name, (parent, level, members) in tree.items()
    ]
    written = [
        ClusterReport(cluster=each, title=each.title(), summary="", inputs_hash=each, model="m") for each in tree
    ]
    async with open_index(tmp_path / "index.sqlite") as store:
        await publish(store, facts("a", passage("Ada, Bo and Cy.", entity("Ada"), entity("Bo"), entity("Cy"))))
        async with store.view() as view:
            made = DerivationRecord(name=REPORTS, identity="test/1", revision=view.revision)
            partition = Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=view.revision)
        await store.commit(Delta(partition=partition, derivations=[made]))
        await store.commit(Delta(reports=written))
        async with store.view() as view:
            found = await report(view, "leaf")
        assert found.ancestors == (("top", "Top"), ("middle", "Middle"))
        assert found.is_current
        await publish(store, facts("b", passage("Ada sings.", entity("Ada", description="Ada sings."))))
        async with store.view() as view:
            assert [(await report(view, name)).is_current for name in tree] == [False, False, False, True]


async def test_what_was_written_of_removed_documents_is_not_shown(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await reported(kb, 2)
        await kb.add(document("c", 3))
        hits = (await kb.retrieve(QUESTION, strategy="community_global")).reports
        await kb.remove(["d0", "d1", "c"])
        for hit in hits:
            with pytest.raises(NotFound):
                await kb.report(hit.id)


async def test_a_wrong_document_id_is_compared_with_a_bounded_number_of_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_read: list[int] = []
    read = RelationalView.documents

    async def counted(view: RelationalView, *args: Any, **options: Any) -> list[Document]:
        documents = await read(view, *args, **options)
        n_read.append(len(documents))
        return documents

    async with engine(tmp_path) as kb:
        await publish(kb._components.store, *(facts(f"letters/{n:04}.md") for n in range(1_200)))
        monkeypatch.setattr(RelationalView, "documents", counted)
        with pytest.raises(NotFound) as caught:
            await kb.document("letters/1150.txt")
        assert "letters/1150.md" in caught.value.remedy
        with pytest.raises(NotFound) as caught:
            await kb.document("leters/0003.md")
        assert "letters/0003.md" in caught.value.remedy
    assert max(n_read) == 500
