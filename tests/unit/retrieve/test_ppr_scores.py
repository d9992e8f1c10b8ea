"""Tests of scores carried over from entities to relations and passages."""

import numpy as np
import pytest

from quipu.model.evidence import Hit, Scored
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import Floats, Topology
from quipu.retrieve.ppr import score_passages, score_relations
from tests.unit.retrieve.fakes import Library, titles

EVERYONE = ("dadu", "kublai khan", "marco polo", "paper", "venice")


async def ranks_of(ranks: dict[str, float], topology: Topology, view: ReadView) -> Floats:
    found = np.zeros(topology.n_entities)
    for key, number in (await view.numbers(NodeKind.ENTITY, list(ranks))).items():
        found[number] = ranks[key]
    return found


def scored(**scores: float) -> list[Scored]:
    return [Scored(id=key.replace("_", " "), score=score) for key, score in scores.items()]


async def test_relations_rank_by_what_counts_at_their_ends_then_by_the_others(travels: Library) -> None:
    async with travels.view() as view:
        topology = await travels.tools.topology.open(view)
        ranks = await ranks_of({"kublai khan": 0.5, "dadu": 0.001, "marco polo": 0.002, "paper": 0.2}, topology, view)
        kept = scored(kublai_khan=0.5, paper=0.2)
        relations, isolated = await score_relations(kept, ranks, 5, topology=topology, view=view)
    assert [(hit.id, hit.score) for hit in relations] == [
        ("kublai khan -- marco polo", 0.5),
        ("dadu -- kublai khan", 0.5),
    ]
    assert [each.id for each in isolated] == ["paper"]


@pytest.mark.parametrize("k", [0, 1, 2, 3])
async def test_equal_relations_are_ordered_by_id_also_at_the_cut(travels: Library, k: int) -> None:
    async with travels.view() as view:
        topology = await travels.tools.topology.open(view)
        ranks = np.full(topology.n_entities, 0.1)
        kept = [Scored(id=key, score=0.1) for key in EVERYONE]
        relations, _ = await score_relations(kept, ranks, k, topology=topology, view=view)
    every = ["dadu -- kublai khan", "kublai khan -- marco polo", "marco polo -- venice"]
    assert [hit.id for hit in relations] == every[:k]


async def test_chunks_rank_by_the_sum_of_what_they_state_and_name(travels: Library) -> None:
    relations = [
        Hit(id="marco polo -- venice", score=0.2, reason=""),
        Hit(id="kublai khan -- marco polo", score=0.1, reason=""),
        Hit(id="dadu -- kublai khan", score=0.25, reason=""),
    ]
    async with travels.view() as view:
        chunks = await score_passages(relations, scored(paper=0.3), 2, view)
        assert sorted(await titles(view, chunks)) == ["Marco Polo", "Paper"]
    assert [hit.score for hit in chunks] == [0.3, 0.3]
    assert [hit.id for hit in chunks] == sorted(hit.id for hit in chunks)
    assert {hit.reason for hit in chunks} == {"states marco polo -- venice; and 1 more", "mentions paper"}
