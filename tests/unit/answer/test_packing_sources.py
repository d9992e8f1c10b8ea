"""Tests of packing: points, reports and claims, and the chunks they rest on."""

from dataclasses import replace

import pytest

from quipu.answer.context import PackedEvidence, SecondarySource, chunks_of_sources
from quipu.answer.packing import MAX_SOURCE_CHUNKS, pack_evidence
from quipu.model.delta import Delta
from quipu.model.evidence import Evidence, Hit, KeyPoint
from quipu.model.query import Budget, Filter, Query, Turn
from quipu.providers.local import ByteTokenizer
from tests.unit.retrieve.communities import CARAVANS, SALT, WEAVERS, chunk_of, report, report_on, trades
from tests.unit.retrieve.fakes import Library

TOKENS = ByteTokenizer()
QUERY = Query(text="Who carried silk?")
W, C, S = chunk_of(WEAVERS, CARAVANS, SALT)


def _hits(*ids: str) -> tuple[Hit, ...]:
    return tuple(Hit(id=each, score=1.0, reason="test") for each in ids)


async def _packed(
    library: Library, evidence: Evidence, query: Query = QUERY, allowed: Filter | None = None
) -> PackedEvidence:
    async with library.view(allowed) as view:
        return await pack_evidence(query, evidence, view, TOKENS)


EVIDENCE = Evidence(
    points=(
        KeyPoint(text="Dara carried it.", score=90, reports=("carrying",)),
        KeyPoint(text="Anna wove it.", score=40.5, reports=("weaving", "silk"), chunks=(S,)),
    ),
    reports=_hits("silk", "salt"),
    chunks=_hits(W),
)


async def test_points_reports_and_passages_are_numbered_one_after_the_other(library: Library) -> None:
    await trades(library)
    packed = await _packed(library, EVIDENCE)
    assert packed.context() == (
        "Points\n[1] importance 90 of 100\nDara carried it.\n\n[2] importance 40.5 of 100\nAnna wove it.\n\n"
        "Reports\n[3] On silk\nSilk was woven and carried.\n\nBursa stood in its middle.\n\n"
        "[4] On salt\nEgil dug salt in Hallein.\n\n"
        "Passages\n[5] Weavers\nAnna wove silk in Bursa. Anna taught Basil to weave."
    )
    assert packed.dropped == ()


async def test_they_rest_on_the_chunks_of_their_reports(library: Library) -> None:
    await trades(library)
    packed = await _packed(library, EVIDENCE)
    assert [account.chunks for account in packed.secondary] == [(C,), (S, W, C), (W, C), (S,)]


async def test_an_account_rests_on_no_more_chunks_than_can_be_read() -> None:
    secondary = [
        SecondarySource(number=1, text="x", chunks=("a", "b", "c")),
        SecondarySource(number=2, text="y", chunks=("d", "a")),
    ]
    assert chunks_of_sources(secondary, 9) == ["a", "d", "b", "c"]
    assert chunks_of_sources(secondary, 2) == ["a", "d"]
    assert MAX_SOURCE_CHUNKS == 20


async def test_reports_keep_to_their_budget_where_passages_stand_beside_them_and_else_to_the_total(
    library: Library,
) -> None:
    await trades(library)
    tight = replace(QUERY, budget=Budget(reports=42))
    packed = await _packed(library, EVIDENCE, tight)
    assert [account.number for account in packed.secondary] == [1, 2]
    assert [passage.number for passage in packed.passages] == [3]
    assert [(cut.section, cut.ids) for cut in packed.dropped] == [("reports", ("silk", "salt"))]
    alone = await _packed(library, replace(EVIDENCE, chunks=()), tight)
    assert len(alone.secondary) == 4


async def test_points_that_do_not_fit_are_listed_by_their_rank(library: Library) -> None:
    await trades(library)
    packed = await _packed(library, EVIDENCE, replace(QUERY, budget=Budget(reports=20)))
    assert [(cut.section, cut.budget, cut.ids) for cut in packed.dropped] == [
        ("points", 20, ("point 2",)),
        ("reports", 5, ("silk", "salt")),
    ]


async def test_the_first_report_that_does_not_fit_is_shown_without_its_last_findings(library: Library) -> None:
    await trades(library)
    long = report("silk", "Short.", "First.", "Second, and long. " * 40, chunks=[W])
    await report_on(library, long)
    evidence = Evidence(reports=_hits("salt", "silk", "weaving"), chunks=_hits(W))
    packed = await _packed(library, evidence, replace(QUERY, budget=Budget(reports=50)))
    assert [account.text for account in packed.reports] == ["Egil dug salt in Hallein.", "Short.\n\nFirst."]
    assert [(cut.section, cut.ids) for cut in packed.dropped] == [("reports", ("weaving",))]


@pytest.mark.parametrize("total", [500, 520, 540, 580, 620])
@pytest.mark.parametrize("n_chunks", [0, 1])
async def test_the_whole_prompt_stays_within_the_total(library: Library, total: int, n_chunks: int) -> None:
    await trades(library)
    history = (Turn(role="user", text="Tell me of the road of silk, all of it, from the first day. " * 3),)
    query = replace(QUERY, budget=Budget(total=total), history=history)
    packed = await _packed(library, replace(EVIDENCE, chunks=_hits(W)[:n_chunks]), query)
    assert TOKENS.count(packed.prompt(query)) <= total


async def test_what_a_filter_hides_takes_points_and_reports_along(library: Library) -> None:
    await trades(library)
    packed = await _packed(library, EVIDENCE, allowed=Filter(exclude=("Salt",)))
    assert [account.text for account in packed.points] == ["Dara carried it."]
    assert [account.title for account in packed.reports] == ["On silk"]
    assert [(cut.section, cut.ids) for cut in packed.dropped] == [("reports", ("salt",))]


async def test_what_a_removed_document_said_is_in_no_point(library: Library) -> None:
    await trades(library)
    await library.commit(Delta(remove=["Caravans"]))
    packed = await _packed(library, EVIDENCE)
    assert packed.points == ()
    assert [account.title for account in packed.reports] == ["On salt"]
