"""Tests of explaining: the grounds of a chunk, and the shortest way from a seed to it."""

from dataclasses import replace

import pytest

from quipu.errors import InvalidInput, NotFound
from quipu.model.evidence import Chain, Evidence, Explanation, Hit, KeyPoint, Scored, Seed, Step
from quipu.model.query import Filter, Query
from quipu.retrieve import STRATEGIES
from quipu.retrieve.explanation import ChunkChoice, explain
from quipu.testing.facts import claim
from tests.unit.retrieve.communities import divide, report, report_on
from tests.unit.retrieve.fakes import Library, page

POLO_VENICE, POLO_KHAN, KHAN_DADU = "marco polo -- venice", "kublai khan -- marco polo", "dadu -- kublai khan"


async def _chunk(library: Library, document: str) -> str:
    async with library.view() as view:
        (chunk,) = await view.chunks(document_id=document)
        return chunk.id


async def _explain(
    library: Library, evidence: Evidence, *, chunk: str = "", rank: int | None = None, allowed: Filter | None = None
) -> Explanation:
    async with library.view(allowed) as view:
        return await explain(Query(text="Who?"), evidence, view, ChunkChoice(chunk=chunk, rank=rank))


def _relations(*ids: str) -> tuple[Hit, ...]:
    return tuple(Hit(id=each, score=1.0, reason="related") for each in ids)


async def test_the_shortest_way_from_a_seed_leads_over_relations_of_the_evidence(travels: Library) -> None:
    chunk = await _chunk(travels, "Kublai Khan")
    evidence = Evidence(
        chunks=(Hit(id=chunk, score=0.7, reason="near"),),
        relations=_relations(POLO_VENICE, POLO_KHAN),
        seeds=(Seed(text="Venezia", kind="name", matches=(Scored(id="venice", score=0.9),)),),
    )
    (told,) = (await _explain(travels, evidence)).chunks
    steps = (
        Step(source="Venice", relation=POLO_VENICE, target="Marco Polo", description="Marco Polo was born in Venice."),
        Step(source="Marco Polo", relation=POLO_KHAN, target="Kublai Khan", description="He served Kublai Khan."),
    )
    assert told.chains == (Chain(seed="Venezia", kind="name", score=0.9, start="Venice", steps=steps),)
    assert (told.rank, told.score, told.reason, told.document_id) == (1, 0.7, "near", "Kublai Khan")


async def test_without_the_relation_in_the_evidence_there_is_no_way(travels: Library) -> None:
    chunk = await _chunk(travels, "Kublai Khan")
    evidence = Evidence(
        chunks=(Hit(id=chunk, score=0.7, reason="near"),),
        relations=_relations(POLO_VENICE),
        seeds=(Seed(text="Venezia", kind="name", matches=(Scored(id="venice", score=0.9),)),),
    )
    (told,) = (await _explain(travels, evidence)).chunks
    assert told.chains == ()


async def test_a_seed_that_found_the_chunk_itself_comes_first_then_the_shorter_way(travels: Library) -> None:
    chunk = await _chunk(travels, "Kublai Khan")
    evidence = Evidence(
        chunks=(Hit(id=chunk, score=0.7, reason="near"),),
        relations=_relations(POLO_KHAN),
        seeds=(
            Seed(text="Polo", kind="name", matches=(Scored(id="marco polo", score=1.0),)),
            Seed(text="Khan", kind="name", matches=(Scored(id="kublai khan", score=0.8),)),
            Seed(text="ruled", kind="vector", matches=(Scored(id=f"{chunk}#0", score=0.4),)),
        ),
    )
    (told,) = (await _explain(travels, evidence)).chunks
    assert [(chain.seed, chain.start, len(chain.steps)) for chain in told.chains] == [
        ("ruled", "", 0),
        ("Khan", "Kublai Khan", 0),
        ("Polo", "Marco Polo", 1),
    ]


async def test_a_seed_that_found_a_relation_begins_at_its_ends(travels: Library) -> None:
    chunk = await _chunk(travels, "Venice")
    evidence = Evidence(
        chunks=(Hit(id=chunk, score=0.7, reason="near"),),
        seeds=(Seed(text="birth", kind="vector", matches=(Scored(id=POLO_VENICE, score=0.5),)),),
    )
    explanation = await _explain(travels, evidence)
    (told,) = explanation.chunks
    assert told.chains == (Chain(seed="birth", kind="vector", score=0.5, start="Venice"),)
    assert dict(explanation.names)[POLO_VENICE] == "Marco Polo – Venice"


async def test_grounds_are_the_evidence_the_chunk_names_states_or_was_drawn_from(travels: Library) -> None:
    chunk = await _chunk(travels, "Kublai Khan")
    evidence = Evidence(
        chunks=(Hit(id=chunk, score=0.7, reason="near"),),
        entities=(
            Hit(id="venice", score=0.9, reason="a city"),
            Hit(id="dadu", score=0.5, reason="a capital"),
            Hit(id="nobody", score=0.4, reason="unknown"),
        ),
        relations=_relations(POLO_VENICE, KHAN_DADU),
        points=(KeyPoint(text="He ruled.", score=60.0, chunks=(chunk,)), KeyPoint(text="He did not.", score=50.0)),
    )
    (told,) = (await _explain(travels, evidence)).chunks
    assert [(each.kind, each.name, each.rank, each.connection) for each in told.supporting_hits] == [
        ("entity", "Dadu", 2, "mentioned once"),
        ("relation", "Dadu – Kublai Khan", 2, "stated here"),
        ("point", "He ruled.", 1, "drawn from this passage"),
    ]


async def test_a_claim_of_the_evidence_leads_to_the_chunk_that_makes_it(travels: Library) -> None:
    said = [claim("Basil", f"Charge {n}.") for n in range(12)]
    await travels.publish(page("Trial", "Basil.", names={"Basil": "Person"}, claims=said))
    chunk, other = await _chunk(travels, "Trial"), await _chunk(travels, "Venice")
    claims = tuple(Hit(id=f"{chunk}:{n}", score=0.5, reason="is about basil") for n in range(11, -1, -1))
    evidence = Evidence(chunks=tuple(Hit(id=each, score=0.7, reason="near") for each in (chunk, other)), claims=claims)
    told = await _explain(travels, evidence)
    assert told.n_claims == 12
    first, second = told.chunks
    assert [(each.kind, each.name, each.rank, each.connection) for each in first.supporting_hits] == [
        ("claim", f"Charge {11 - n}.", n + 1, "claimed here") for n in range(10)
    ]
    assert second.supporting_hits == ()


async def test_chunks_are_chosen_by_rank_by_id_or_the_first_three(travels: Library) -> None:
    ids = [await _chunk(travels, name) for name in ("Paper", "Venice", "Kublai Khan", "Marco Polo")]
    evidence = Evidence(chunks=tuple(Hit(id=each, score=1.0, reason="") for each in ids))
    assert [each.id for each in (await _explain(travels, evidence)).chunks] == ids[:3]
    assert [each.id for each in (await _explain(travels, evidence, rank=4)).chunks] == ids[3:]
    (named,) = (await _explain(travels, evidence, chunk=ids[1])).chunks
    assert (named.id, named.rank) == (ids[1], 2)


async def test_a_report_that_a_seed_found_has_its_title(travels: Library) -> None:
    await divide(travels, {"c0": ("", ("marco polo", "venice"))})
    await report_on(travels, report("c0", "He was born there."))
    evidence = Evidence(seeds=(Seed(text="?", kind="vector", matches=(Scored(id="c0", score=0.5),)),))
    assert dict((await _explain(travels, evidence)).names)["c0"] == "On c0"


async def test_a_chunk_that_was_not_found_is_told_with_what_leads_to_it(travels: Library) -> None:
    chunk = await _chunk(travels, "Venice")
    evidence = Evidence(entities=(Hit(id="venice", score=0.9, reason="a city"),))
    (told,) = (await _explain(travels, evidence, chunk=chunk)).chunks
    assert (told.rank, told.reason) == (0, "not among the evidence")
    assert [each.name for each in told.supporting_hits] == ["Venice"]


async def test_what_was_found_beside_passages_is_counted(travels: Library) -> None:
    evidence = Evidence(
        reports=(Hit(id="dead", score=1.0, reason=""),),
        points=(KeyPoint(text="He ruled.", score=60.0),),
        searches_index=False,
    )
    told = await _explain(travels, evidence)
    assert (told.n_chunks, told.n_reports, told.n_points, told.searches_index) == (0, 1, 1, False)


async def test_where_no_passage_is_ranked_the_points_and_reports_are_told(travels: Library) -> None:
    await divide(travels, {"c0": ("", ("marco polo", "venice"))})
    await report_on(travels, report("c0", "He was born there."))
    evidence = Evidence(
        reports=(Hit(id="c0", score=0.8, reason="rated 7 of 10"),),
        points=(KeyPoint(text="He ruled.", score=60.0, reports=("c0",)),),
        ranks_passages=False,
    )
    told = await _explain(travels, evidence)
    assert not told.ranks_passages
    assert [(each.kind, each.name, each.rank, each.score, each.reason) for each in told.other_evidence] == [
        ("point", "He ruled.", 1, 60.0, ""),
        ("report", "On c0", 1, 0.8, "rated 7 of 10"),
    ]
    ranked = await _explain(travels, replace(evidence, ranks_passages=True))
    assert (ranked.ranks_passages, ranked.other_evidence) == (True, ())


async def test_a_rank_of_a_strategy_that_ranks_no_passages_is_refused_with_what_to_do(travels: Library) -> None:
    evidence = Evidence(reports=(Hit(id="c0", score=0.8, reason=""),), ranks_passages=False)
    with pytest.raises(NotFound, match=r"'weave' ranks no passages\. Leave out the rank to see what it found instead"):
        await _explain(travels, evidence, rank=1)
    with pytest.raises(NotFound, match=r"looks nothing up"):
        await _explain(travels, replace(evidence, reports=(), searches_index=False), rank=1)


async def test_a_chunk_the_filter_leaves_out_is_not_said_not_to_exist(travels: Library) -> None:
    chunk = await _chunk(travels, "Venice")
    allowed = Filter(exclude=("Venice",))
    async with travels.view(allowed) as view:
        with pytest.raises(NotFound, match=r"There is no chunk .* that the filter allows"):
            await explain(Query(text="Who?", filter=allowed), Evidence(), view, ChunkChoice(chunk=chunk))


async def test_what_is_not_there_is_not_found(travels: Library) -> None:
    with pytest.raises(NotFound, match=r"no passage of rank 1: none was found\. Leave out the rank to see where"):
        await _explain(travels, Evidence(), rank=1)
    with pytest.raises(NotFound, match="There is no chunk 'dead'"):
        await _explain(travels, Evidence(), chunk="dead")
    with pytest.raises(InvalidInput, match="not by both"):
        ChunkChoice(chunk="dead", rank=1)


async def test_what_a_filter_excludes_is_not_told(travels: Library) -> None:
    chunk = await _chunk(travels, "Kublai Khan")
    evidence = Evidence(
        chunks=(Hit(id=chunk, score=0.7, reason="near"),),
        relations=_relations(POLO_KHAN),
        seeds=(Seed(text="Polo", kind="name", matches=(Scored(id="marco polo", score=1.0),)),),
    )
    (told,) = (await _explain(travels, evidence, allowed=Filter(exclude=("Marco Polo",)))).chunks
    assert (told.chains, told.supporting_hits) == ((), ())


@pytest.mark.parametrize("strategy", ["naive", "lexical", "local", "global", "hybrid", "mix"])
async def test_every_passage_of_a_strategy_has_a_way_or_a_ground(travels: Library, strategy: str) -> None:
    query = Query(text="Whom did Marco Polo of Venice serve?", strategy=strategy)
    async with travels.view() as view:
        evidence = await STRATEGIES[strategy].retrieve(query, view, travels.tools)
        explanation = await explain(query, evidence, view, ChunkChoice())
    assert explanation.chunks
    assert all(each.chains or each.supporting_hits for each in explanation.chunks)
    assert explanation.n_chunks == len(evidence.chunks)
