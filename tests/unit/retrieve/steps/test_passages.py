"""Passages of entities and relations: nearest to the question first, each chunk for the first that brought it."""

from dataclasses import replace

from quipu.model.evidence import Hit
from quipu.model.ids import relation_id
from quipu.model.query import Query
from quipu.retrieve.steps.dual_level import GraphHits
from quipu.retrieve.steps.passages import (
    SourceOptions,
    densest_part,
    merge_passages,
    poll_by_weight,
    rank_source_passages,
)
from tests.unit.retrieve.fakes import Library, page, titles


def _hit(identifier: str) -> Hit:
    return Hit(id=identifier, score=1.0, reason="test")


async def _rankings(library: Library, found: GraphHits, query: Query) -> list[list[str]]:
    (vector,) = await library.embedder.embed([query.text])
    async with library.view() as view:
        rankings = await rank_source_passages(
            found.entities, found.relations, vector, query=query, view=view, tools=library.tools
        )
        return [await titles(view, ranking) for ranking in rankings]


async def test_chunks_of_entities_are_ranked_by_their_cosine_to_the_question(travels: Library) -> None:
    found = GraphHits(entities=(_hit("venice"), _hit("kublai khan")))
    by_entity, by_relation = await _rankings(travels, found, Query(text="islands of venice"))
    assert by_entity == ["Venice", "Marco Polo", "Kublai Khan"]
    assert by_relation == []


async def test_half_the_related_chunks_of_each_entity_are_kept(travels: Library) -> None:
    found = GraphHits(entities=(_hit("venice"), _hit("kublai khan")))
    by_entity, _ = await _rankings(travels, found, Query(text="islands of venice", related_chunks=2))
    assert by_entity == ["Venice", "Marco Polo"]


async def test_relations_bring_the_chunks_that_state_them(travels: Library) -> None:
    found = GraphHits(
        entities=(_hit("venice"),),
        relations=(_hit(relation_id("marco polo", "venice")), _hit(relation_id("kublai khan", "dadu"))),
    )
    by_entity, by_relation = await _rankings(travels, found, Query(text="who was born"))
    assert sorted(by_entity) == ["Marco Polo", "Venice"]
    assert by_relation == ["Marco Polo", "Kublai Khan"]


async def test_only_the_first_top_k_bring_chunks(travels: Library) -> None:
    found = GraphHits(entities=(_hit("paper"), _hit("venice")))
    by_entity, _ = await _rankings(travels, found, Query(text="venice", top_k=1))
    assert by_entity == ["Paper"]


async def test_the_reason_names_what_brought_the_chunk(travels: Library) -> None:
    query = Query(text="mulberry")
    (vector,) = await travels.embedder.embed([query.text])
    async with travels.view() as view:
        found = GraphHits(entities=(_hit("paper"),))
        (hit,), _ = await rank_source_passages(
            found.entities, found.relations, vector, query=query, view=view, tools=travels.tools
        )
    assert hit.reason == f"mentions paper; cosine {hit.score:.3f} to the question"
    assert hit.score > 0.3


async def test_a_chunk_without_a_vector_comes_last_and_is_not_lost(library: Library) -> None:
    await library.publish(page("Old", "Venice and its islands.", names={"Venice": "Location"}))
    await library.publish(page("New", "Venice again.", names={"Venice": "Location"}), is_embedded=False)
    by_entity, _ = await _rankings(library, GraphHits(entities=(_hit("venice"), _hit("venice"))), Query(text="islands"))
    assert by_entity == ["Old", "New"]


async def test_chunks_of_entities_are_left_out_of_those_of_relations_with_the_option(travels: Library) -> None:
    found = GraphHits(
        entities=(_hit("venice"),),
        relations=(_hit(relation_id("marco polo", "venice")), _hit(relation_id("kublai khan", "dadu"))),
    )
    query = Query(text="who was born", options=(SourceOptions(separate_chunks=True),))
    by_entity, by_relation = await _rankings(travels, found, query)
    assert (sorted(by_entity), by_relation) == (["Marco Polo", "Venice"], ["Kublai Khan"])


def test_weighted_polling_by_hand() -> None:
    """Three owners, five for the first: quotas 5, 3, 1. The second lacks two, which the others have left."""
    owned = [list("abcdef"), list("g"), list("hij")]
    assert poll_by_weight(owned, 5) == [*"abcde", "g", "h", "f", "i"]
    assert poll_by_weight([list("abcdef")], 5) == list("abcde")
    assert poll_by_weight([list("ab"), list("cd")], 1) == ["a", "c"]
    assert poll_by_weight(owned, 0) == poll_by_weight([], 5) == []


async def test_chunks_are_chosen_by_how_many_entities_they_mention_with_the_option(travels: Library) -> None:
    """Marco Polo mentions both entities, so it is the first of Venice; it does not count for Kublai Khan again."""
    found = GraphHits(entities=(_hit("venice"), _hit("kublai khan")))
    query = Query(text="islands of venice", related_chunks=1, options=(SourceOptions(chunk_choice="weight"),))
    by_weight, _ = await _rankings(travels, found, query)
    by_vector, _ = await _rankings(travels, found, replace(query, options=()))
    assert (by_weight, by_vector) == (["Marco Polo", "Kublai Khan"], ["Venice"])


def test_merged_passages_are_taken_in_turn_and_cut() -> None:
    merged = merge_passages(
        Query(text="?", chunk_top_k=3), [[_hit("a"), _hit("b")], [_hit("b"), _hit("c")], [_hit("d")]]
    )
    assert [hit.id for hit in merged] == ["a", "b", "d"]


def test_of_a_long_text_the_part_with_most_terms_is_read() -> None:
    text = f"{'x ' * 500}the ferry sails {'y ' * 500}the ferry sails at noon {'z ' * 500}"
    part = densest_part(text, ("ferry", "noon", "sail"), 100)
    assert len(part) == 100 and "the ferry sails at noon" in part
    assert densest_part(text, ("ferry", "sail"), 100) == text[text.index("ferry") - 25 :][:100]  # the first of equals
    assert densest_part(text, ("absent",), 100) == text[:100]
    assert densest_part(text, ("noon",), 10_000) == text
    assert densest_part(f"{'x ' * 500}end", ("end",), 100).endswith("end")
