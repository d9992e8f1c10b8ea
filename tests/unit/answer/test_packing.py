"""Tests of packing: what fits the budgets is shown, best first, and what does not fit is listed."""

from dataclasses import replace

import pytest

from quipu.answer.context import PackedEvidence
from quipu.answer.packing import pack_evidence
from quipu.model.evidence import Evidence, Hit
from quipu.model.ids import relation_id
from quipu.model.query import Budget, Query, Turn
from quipu.providers.local import ByteTokenizer
from tests.unit.retrieve.fakes import Library, page

TOKENS = ByteTokenizer()
NAMES = ["Aleppo", "Basra", "Cairo", "Damascus"]


@pytest.fixture
async def cities(library: Library) -> Library:
    """Four pages about four cities, each on a road to the next."""
    await library.publish(
        *(
            page(
                name,
                f"{name} is a city on the road of silk.",
                names={name: "Location", after: "Location"},
                relations=[(name, after, f"A road leads from {name} to {after}.")],
            )
            for name, after in zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True)
        )
    )
    return library


async def _packed(library: Library, query: Query, evidence: Evidence | None = None) -> PackedEvidence:
    async with library.view() as view:
        return await pack_evidence(query, evidence or await _evidence(library), view, TOKENS)


async def _evidence(library: Library) -> Evidence:
    async with library.view() as view:
        chunk_ids = [chunk.id for name in NAMES for chunk in await view.chunks(document_id=name)]
    return Evidence(
        chunks=_hits(chunk_ids),
        entities=_hits([name.casefold() for name in NAMES]),
        relations=_hits([relation_id("aleppo", "basra"), relation_id("basra", "cairo")]),
    )


def _hits(ids: list[str]) -> tuple[Hit, ...]:
    return tuple(Hit(id=identifier, score=1.0, reason="test") for identifier in ids)


async def test_everything_fits_in_order_and_passages_are_numbered(cities: Library) -> None:
    packed = await _packed(cities, Query(text="Where?"))
    assert [entity.name for entity in packed.entities] == NAMES
    assert [relation.id for relation in packed.relations] == ["aleppo -- basra", "basra -- cairo"]
    assert [(passage.number, passage.chunk.title) for passage in packed.passages] == list(enumerate(NAMES, 1))
    assert packed.dropped == ()


async def test_each_section_has_its_own_budget(cities: Library) -> None:
    packed = await _packed(cities, Query(text="Where?", budget=Budget(entities=8, relations=0)))
    assert [entity.name for entity in packed.entities] == NAMES[:1]
    assert packed.relations == ()
    assert len(packed.passages) == 4
    assert [(cut.section, cut.budget, cut.ids) for cut in packed.dropped] == [
        ("entities", 8, ("basra", "cairo", "damascus")),
        ("relations", 0, ("aleppo -- basra", "basra -- cairo")),
    ]


async def test_passages_get_what_the_rest_leaves_of_the_total(cities: Library) -> None:
    everything = await _packed(cities, Query(text="Where?"))
    n_tokens = TOKENS.count(everything.prompt(Query(text="Where?")))
    query = Query(text="Where?", budget=Budget(total=n_tokens - 10))
    packed = await _packed(cities, query)
    assert [passage.chunk.title for passage in packed.passages] == NAMES[:3]
    assert [cut.section for cut in packed.dropped] == ["chunks"]


async def test_passages_keep_their_share_before_all_else(cities: Library) -> None:
    everything = await _packed(cities, Query(text="Where?"))
    n_tokens = TOKENS.count(everything.prompt(Query(text="Where?")))
    for share, n_passages, n_relations in ((0.0, 3, 2), (0.99, 4, 0)):
        budget = Budget(total=n_tokens - 10, min_passage_share=share)
        packed = await _packed(cities, Query(text="Where?", budget=budget))
        assert (len(packed.passages), len(packed.relations)) == (n_passages, n_relations)


@pytest.mark.parametrize("total", [500, 520, 540, 560, 580])
async def test_the_whole_prompt_stays_within_the_total(cities: Library, total: int) -> None:
    history = (Turn(role="user", text="Tell me of the road of silk, all of it, from the first day. " * 4),)
    query = Query(text="Where?", budget=Budget(total=total), history=history, user_prompt="Be brief.")
    packed = await _packed(cities, query)
    assert TOKENS.count(packed.prompt(query)) <= total
    assert packed.dropped


async def test_a_total_smaller_than_the_prompt_leaves_no_evidence(cities: Library) -> None:
    packed = await _packed(cities, Query(text="Where?", budget=Budget(total=10)))
    assert packed.context() == ""
    assert [(cut.section, cut.budget, len(cut.ids)) for cut in packed.dropped] == [
        ("entities", 0, 4),
        ("relations", 0, 2),
        ("chunks", 0, 4),
    ]


async def test_nothing_overtakes_what_does_not_fit(cities: Library) -> None:
    long = page("Epic", "A long tale. " * 400, names={"Epic": "Content"})
    await cities.publish(long)
    evidence = await _evidence(cities)
    chunk_id = long.chunks[0].chunk.id
    evidence = replace(evidence, chunks=(evidence.chunks[0], *_hits([chunk_id]), *evidence.chunks[1:]))
    packed = await _packed(cities, Query(text="Where?", budget=Budget(total=1200)), evidence)
    assert [passage.chunk.title for passage in packed.passages] == NAMES[:1]
    assert packed.dropped[0].ids[0] == chunk_id


async def test_context_and_prompt_show_the_same_evidence_the_prompt_behind_its_boundary(cities: Library) -> None:
    query = Query(text="Where is Cairo?")
    packed = await _packed(cities, query)
    context, prompt = packed.context(), packed.prompt(query)
    assert context.startswith("Entities\n- Aleppo (Location)")
    assert "[3] Cairo\nCairo is a city on the road of silk." in context
    boundary = prompt.split("The mark of this message is ")[1].split("\n")[0]
    assert prompt.count(f"\n{boundary}\n") == 2
    assert f"\n{boundary}[3] Cairo\n" in prompt
    assert prompt.endswith(f"\n{boundary}Question\nWhere is Cairo?")
    assert boundary not in context
