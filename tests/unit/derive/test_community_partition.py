"""Tests of the community graph, and of ids and input hashes of communities."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from quipu.algo.edge_list import EdgeList, edge_list
from quipu.algo.graph_communities import Community
from quipu.derive.community_partition import (
    CommunityGraph,
    CommunityPlan,
    FactHashes,
    plan_communities,
    read_community_graph,
)
from quipu.derive.derivation import DerivationContext
from quipu.model.cluster import Cluster
from quipu.model.delta import DocumentFacts
from quipu.testing.facts import document, entity, passage, relation
from tests.unit.derive.workshop import open_bench, publish, remove

KEYS = ("ada", "bo", "cy", "di")
RELATIONS = edge_list(4, np.array([0, 2, 1]), np.array([1, 3, 2]), np.ones(3))
GRAPH = CommunityGraph(list(KEYS), RELATIONS, RELATIONS)


def _tree(*, n_first: int = 2) -> list[Community]:
    """Return a whole of two parts."""
    return [
        Community(0, -1, np.arange(4), False),
        Community(1, 0, np.arange(n_first), True),
        Community(1, 0, np.arange(n_first, 4), True),
    ]


def _said(**changes: str) -> FactHashes:
    relations = {f"{KEYS[a]} -- {KEYS[b]}": f"{a} to {b}" for a, b in ((0, 1), (2, 3), (1, 2))}
    entities = {key: f"of {key}" for key in KEYS} | changes
    return FactHashes(entities, {key: f"{told} alone" for key, told in entities.items()}, relations)


def _clusters(plan: CommunityPlan, said: FactHashes | None = None) -> list[Cluster]:
    return plan.clusters(said or _said())


def test_each_relation_belongs_to_the_smallest_community_that_holds_both_ends() -> None:
    plan = plan_communities(GRAPH, _tree(), [])
    assert plan.relations == {0: ["bo -- cy"], 1: ["ada -- bo"], 2: ["cy -- di"]}
    assert plan.unchanged == {}


def test_what_is_said_of_an_entity_changes_its_community_and_the_one_above() -> None:
    plan = plan_communities(GRAPH, _tree(), [])
    before, after = _clusters(plan), _clusters(plan, _said(di="of di, and more"))
    assert [old.inputs_hash == new.inputs_hash for old, new in zip(before, after, strict=True)] == [False, True, False]


def test_how_often_an_entity_is_mentioned_counts_only_where_it_is_related_to_nothing() -> None:
    none = EdgeList(4, *(np.zeros(0, dtype=np.int64),) * 2, np.zeros(0))
    said = _said()
    more = FactHashes(said.entities, {key: f"{told}, twice" for key, told in said.isolated.items()}, said.relations)
    for relations, is_same in ((RELATIONS, True), (none, False)):
        plan = plan_communities(CommunityGraph(list(KEYS), relations, relations), _tree(), [])
        assert (_clusters(plan, said) == _clusters(plan, more)) is is_same


def test_ids_come_from_the_contents_of_communities() -> None:
    first = _clusters(plan_communities(GRAPH, _tree(), []))
    assert [cluster.parent for cluster in first] == ["", first[0].id, first[0].id]
    assert [cluster.id for cluster in _clusters(plan_communities(GRAPH, _tree(), first))] == [c.id for c in first]
    other = _clusters(plan_communities(GRAPH, _tree(n_first=1), first))
    assert not {cluster.id for cluster in first} & {cluster.id for cluster in other}


def test_an_imported_community_may_have_entities_that_are_in_none_of_its_parts() -> None:
    whole, part, _ = _tree()
    ids = [plan_communities(GRAPH, [whole, part], []).ids, plan_communities(GRAPH, _tree(), []).ids]
    ids.append(plan_communities(GRAPH, [replace(whole, nodes=np.arange(2)), part], []).ids)
    assert len({found[0] for found in ids}) == 3
    assert len({found[1] for found in ids}) == 1
    assert ids[2][0] != ids[2][1]  # a whole is not its only part


def test_hashes_stand_where_nothing_changed_and_nothing_is_read_for_them() -> None:
    stored = _clusters(plan_communities(GRAPH, _tree(), []))
    plan = plan_communities(GRAPH, _tree(), stored)
    assert (len(plan.unchanged), plan.relations) == (3, {})
    assert _clusters(plan, FactHashes({}, {}, {})) == stored
    unsettled = [replace(stored[0], inputs_hash=""), stored[1], replace(stored[2], inputs_hash="")]
    plan = plan_communities(GRAPH, _tree(), unsettled)
    assert (set(plan.unchanged), set(plan.relations)) == ({1}, {0, 2})
    assert _clusters(plan) == stored


_RING = ("Ada", "Bo", "Cy", "Di", "Eve")
_SAID = document(
    "ring",
    *(passage(f"{a} {b}", entity(a), entity(b), relation(a, b, weight=2.0)) for a, b in pairwise(_RING)),
    passage("Ada, Bo, Flo and Gus.", entity("Ada"), entity("Flo"), entity("Gus"), entity("Bo")),
    passage("Hal is alone.", entity("Hal")),
)


async def _graph(context: DerivationContext) -> CommunityGraph:
    async with context.store.view() as view:
        return await read_community_graph(view, await context.topology.open(view))


def _links(graph: CommunityGraph, *, with_cooccurrence: bool) -> dict[str, float]:
    pairs = graph.edges if with_cooccurrence else graph.relations
    ends = zip(pairs.sources.tolist(), pairs.targets.tolist(), pairs.weights.tolist(), strict=True)
    return {f"{graph.keys[a]} {graph.keys[b]}": round(weight, 6) for a, b, weight in ends}


async def test_entities_are_in_the_order_of_their_keys_and_links_have_their_weights(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, _SAID)
        graph = await _graph(context)
        assert graph.keys == ["ada", "bo", "cy", "di", "eve", "flo", "gus", "hal"]
        assert _links(graph, with_cooccurrence=False) == {"ada bo": 2.0, "bo cy": 2.0, "cy di": 2.0, "di eve": 2.0}


async def test_what_is_related_to_too_few_is_tied_to_what_its_passages_name(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, _SAID)
        ties = _links(await _graph(context), with_cooccurrence=True)
        assert ties.items() >= _links(await _graph(context), with_cooccurrence=False).items()
        third = round(1 / 3, 6)
        assert ties["ada flo"] == ties["ada gus"] == ties["bo flo"] == third
        assert ties["flo gus"] == round(2 / 3, 6)  # from both sides
        assert not any("hal" in each for each in ties)  # nothing else is named where it is


async def test_the_graph_is_the_same_whatever_came_first_and_went(tmp_path: Path) -> None:
    other = document("other", passage("Ada and Zed.", entity("Ada"), entity("Zed"), relation("Ada", "Zed")))
    graphs: list[object] = []
    histories: list[list[DocumentFacts]] = [[_SAID, other], [other, _SAID]]
    for number, history in enumerate(histories):
        async with open_bench(tmp_path / str(number)) as context:
            if number:
                await publish(context, document("gone", passage("Flo and Ada.", entity("Flo"), entity("Ada"))))
            for each in history:
                await publish(context, each)
            if number:
                await remove(context, "gone")
            graph = await _graph(context)
            graphs.append((graph.keys, _links(graph, with_cooccurrence=False), _links(graph, with_cooccurrence=True)))
    assert graphs[0] == graphs[1]


async def test_an_empty_index_has_an_empty_graph(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        graph = await _graph(context)
        assert (graph.keys, graph.edges.n) == ([], 0)


@pytest.mark.parametrize("n", [1, 3])
async def test_ties_weigh_one_a_passage_in_all(tmp_path: Path, n: int) -> None:
    async with open_bench(tmp_path / "a") as context:
        chain = [passage(f"{a} {b}.", entity(a), entity(b), relation(a, b)) for a, b in pairwise(_RING)]
        named = [passage(f"Flo {i}: Ada, Bo.", entity("Flo"), entity("Ada"), entity("Bo")) for i in range(n)]
        await publish(context, document("d", *chain, *named))
        ties = _links(await _graph(context), with_cooccurrence=True)
        assert ties["ada flo"] + ties["bo flo"] == pytest.approx(n)


async def test_the_order_in_which_documents_came_does_not_show_in_the_last_bit(tmp_path: Path) -> None:
    books = [
        document(f"d{n}", passage(f"Text {n}.", entity("Ada"), entity("Bo"), *(entity(f"X{n}{i}") for i in range(n))))
        for n in (1, 2, 4, 5, 9)
    ]
    weights = set()
    orders = (0, 1, 2, 3, 4), (0, 3, 1, 2, 4), (0, 2, 4, 3, 1)  # in which floats would have three sums
    for number, order in enumerate(orders):
        async with open_bench(tmp_path / str(number)) as context:
            for book in (books[place] for place in order):
                await publish(context, book)
            weights.add((await _graph(context)).edges.weights.tobytes())
    assert len(weights) == 1
