"""Ids and hashes of communities: kept where nothing changed, a function of what is in them where something did."""

from dataclasses import replace

import numpy as np

from quipu.algo.edge_list import EdgeList, edge_list
from quipu.algo.leiden import Community
from quipu.derive.community_hashes import Plan, Said, plan_clusters
from quipu.model.cluster import Cluster

KEYS = ("ada", "bo", "cy", "di")
RELATIONS = edge_list(4, np.array([0, 2, 1]), np.array([1, 3, 2]), np.ones(3))


def _tree(*kept: int) -> list[Community]:
    """Return a whole of two parts."""
    first, second, third = kept or (-1, -1, -1)
    return [
        Community(0, -1, np.arange(4), first, False),
        Community(1, 0, np.array([0, 1]), second, True),
        Community(1, 0, np.array([2, 3]), third, True),
    ]


def _said(**changes: str) -> Said:
    relations = {f"{KEYS[a]} -- {KEYS[b]}": f"{a} to {b}" for a, b in ((0, 1), (2, 3), (1, 2))}
    entities = {key: f"of {key}" for key in KEYS} | changes
    return Said(entities, {key: f"{told} alone" for key, told in entities.items()}, relations)


def _clusters(plan: Plan, said: Said | None = None) -> list[Cluster]:
    return plan.clusters(said or _said())


def test_each_relation_belongs_to_the_smallest_community_that_holds_both_ends() -> None:
    plan = plan_clusters(KEYS, RELATIONS, _tree(), [])
    assert plan.own == {0: ["bo -- cy"], 1: ["ada -- bo"], 2: ["cy -- di"]}
    assert plan.standing == {}


def test_what_is_said_of_an_entity_changes_its_community_and_the_one_above() -> None:
    plan = plan_clusters(KEYS, RELATIONS, _tree(), [])
    before, after = _clusters(plan), _clusters(plan, _said(di="of di, and more"))
    assert [old.inputs_hash == new.inputs_hash for old, new in zip(before, after, strict=True)] == [False, True, False]


def test_how_often_an_entity_is_mentioned_counts_only_where_it_is_related_to_nothing() -> None:
    none = EdgeList(4, *(np.zeros(0, dtype=np.int64),) * 2, np.zeros(0))
    said = _said()
    more = Said(said.entities, {key: f"{told}, twice" for key, told in said.lonely.items()}, said.relations)
    for relations, is_same in ((RELATIONS, True), (none, False)):
        plan = plan_clusters(KEYS, relations, _tree(), [])
        assert (_clusters(plan, said) == _clusters(plan, more)) is is_same


def test_new_ids_are_those_of_the_members_and_kept_ones_stay() -> None:
    stored = _clusters(plan_clusters(KEYS, RELATIONS, _tree(), []))
    assert [each.parent for each in stored] == ["", stored[0].id, stored[0].id]
    assert [each.id for each in _clusters(plan_clusters(KEYS, RELATIONS, _tree(), []))] == [e.id for e in stored]
    again = plan_clusters(KEYS, RELATIONS, _tree(0, 2, 1), stored)  # what was one is the other now
    assert [each.id for each in _clusters(again)] == [stored[0].id, stored[2].id, stored[1].id]


def test_a_new_community_is_not_taken_for_one_that_began_with_the_same_entities() -> None:
    stored = _clusters(plan_clusters(KEYS, RELATIONS, _tree(), []))
    grown = [replace(stored[0]), replace(stored[1], members=("cy", "di")), replace(stored[2], members=("ada", "bo"))]
    plan = plan_clusters(KEYS, RELATIONS, _tree(0, -1, 1), grown)  # the second has the members the first began with
    assert len({each.id for each in _clusters(plan)}) == 3


def test_hashes_stand_where_nothing_changed_and_nothing_is_read_for_them() -> None:
    stored = _clusters(plan_clusters(KEYS, RELATIONS, _tree(), []))
    plan = plan_clusters(KEYS, RELATIONS, _tree(0, 1, 2), stored)
    assert (len(plan.standing), plan.own) == (3, {})
    assert _clusters(plan, Said({}, {}, {})) == stored
    unsettled = [replace(stored[0], inputs_hash=""), stored[1], replace(stored[2], inputs_hash="")]
    plan = plan_clusters(KEYS, RELATIONS, _tree(0, 1, 2), unsettled)
    assert (set(plan.standing), set(plan.own)) == ({1}, {0, 2})
    assert _clusters(plan) == stored
