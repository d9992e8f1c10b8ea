"""Tests of composition: claims are shown, and cited through the passages that make them."""

from dataclasses import replace

import pytest

from quipu.answer import AnswerInput, compose_answer, read_answer_input
from quipu.answer.answer_input import quotable_passages
from quipu.answer.context import SecondarySource
from quipu.model.delta import Delta
from quipu.model.evidence import Evidence, Hit, KeyPoint
from quipu.model.query import Budget, Filter, Query
from quipu.providers.local import ByteTokenizer
from quipu.testing.facts import claim
from tests.unit.retrieve.fakes import Library, page
from tests.unit.retrieve.talker import Talker

TOKENS = ByteTokenizer()
QUERY = Query(text="Who stole the silk of Bursa?")
TRIAL = page(
    "Trial",
    "Anna says that Basil stole silk of Bursa. Basil fled to Tabriz.",
    names={"Anna": "Person", "Basil": "Person"},
    relations=[("Anna", "Basil", "They met at court.")],
    claims=[
        claim("Basil", "He stole\nsilk.", "Anna", kind="theft", status="suspected", dates="1301"),
        claim("Basil", "He fled."),
    ],
)
SALT = page("Salt", "Salt was dug in Hallein.", names={"Hallein": "Location"})
T, S = (each.chunks[0].chunk.id for each in (TRIAL, SALT))


def _hits(*ids: str) -> tuple[Hit, ...]:
    return tuple(Hit(id=each, score=1.0, reason="test") for each in ids)


EVIDENCE = Evidence(
    chunks=_hits(S),
    entities=_hits("basil"),
    relations=_hits("anna -- basil"),
    claims=_hits(f"{T}:1", f"{T}:0"),
    points=(KeyPoint(text="It was silk.", score=90, chunks=(S,)),),
)


@pytest.fixture
async def court(library: Library) -> Library:
    """What was said at a trial, and something else."""
    await library.publish(TRIAL, SALT)
    return library


async def _gathered(
    library: Library, evidence: Evidence = EVIDENCE, query: Query = QUERY, allowed: Filter | None = None
) -> AnswerInput:
    async with library.view(allowed) as view:
        return await read_answer_input(query, evidence, view, TOKENS)


async def test_claims_stand_between_relations_and_passages_under_numbers_of_their_own(court: Library) -> None:
    material = await _gathered(court)
    assert material.packed.context() == (
        "Points\n[1] importance 90 of 100\nIt was silk.\n\n"
        "Entities\n- Basil (Person)\n\n"
        "Relations\n- Anna — Basil: They met at court.\n\n"
        "Claims (what is alleged or reported)\n[2] Basil\nHe fled.\n\n"
        "[3] Basil — Anna (theft, suspected, 1301)\nHe stole\nsilk.\n\n"
        "Passages\n[4] Salt\nSalt was dug in Hallein."
    )
    assert material.packed.dropped == ()


async def test_each_number_of_a_claim_opens_with_the_mark_of_the_message(court: Library) -> None:
    context = (await _gathered(court)).packed.context("#x#")
    assert "\n#x#[2] Basil\n" in context
    assert "\n\n#x#Claims (what is alleged or reported)\n" in context


@pytest.mark.parametrize(("n_tokens", "kept"), [(38, 2), (37, 1), (19, 1), (18, 0), (0, 0)])
async def test_claims_have_what_relations_leave_of_their_budget(court: Library, n_tokens: int, kept: int) -> None:
    material = await _gathered(court, query=replace(QUERY, budget=Budget(relations=n_tokens)))
    assert len(material.packed.claims) == kept


async def test_a_citation_of_a_claim_is_the_sentence_of_its_chunk_and_the_claim_is_no_support(court: Library) -> None:
    said = "Basil stole silk [3]. In 1301 he was suspected of theft by envoys of Venice [3]."
    answer = await compose_answer(QUERY, await _gathered(court), llm=Talker(said))
    assert [(c.number, c.document_id, c.chunk_id) for c in answer.citations][:1] == [(3, "Trial", T)]
    assert answer.citations[0].quote == "Anna says that Basil stole silk of Bursa. Basil fled to Tabriz."
    assert [statement.is_supported for statement in answer.statements] == [True, False]


async def test_without_a_model_the_chunk_of_a_claim_is_quoted(court: Library) -> None:
    material = await _gathered(court)
    assert [(passage.number, passage.chunk.id) for passage in quotable_passages(material)] == [(4, S), (2, T)]
    answer = await compose_answer(QUERY, material)
    assert [(c.number, c.document_id) for c in answer.citations] == [(1, "Trial")]


async def test_where_nothing_is_said_of_the_question_the_claims_that_came_back_are_counted(court: Library) -> None:
    query = Query(text="How high is Everest?")
    answer = await compose_answer(query, await _gathered(court, Evidence(claims=EVIDENCE.claims), query))
    assert "Read: 2 claims and 1 passage of 1 document." in answer.text


async def test_claims_alone_are_something_to_ask_a_model_about(court: Library) -> None:
    answer = await compose_answer(
        QUERY, await _gathered(court, Evidence(claims=EVIDENCE.claims)), llm=Talker("He fled [1].")
    )
    assert answer.generator != "extractive"
    assert [c.document_id for c in answer.citations] == ["Trial"]


async def test_a_claim_of_a_document_that_is_left_out_or_removed_is_not_shown(court: Library) -> None:
    shown = await _gathered(court, allowed=Filter(exclude=("Trial",)))
    assert "Basil" not in shown.packed.context()
    assert [(cut.section, cut.ids) for cut in shown.packed.dropped if cut.section == "claims"] == [
        ("claims", (f"{T}:1", f"{T}:0"))
    ]
    await court.commit(Delta(remove=["Trial"]))
    assert (await _gathered(court)).packed.claims == ()


@pytest.mark.parametrize("total", range(500, 660, 10))
async def test_the_whole_prompt_stays_within_the_total(court: Library, total: int) -> None:
    query = replace(QUERY, budget=Budget(total=total))
    packed = (await _gathered(court, query=query)).packed
    assert TOKENS.count(packed.prompt(query)) <= total


async def test_a_claim_is_an_account_that_rests_on_its_chunk(court: Library) -> None:
    first, _ = (await _gathered(court)).packed.claims
    assert first == SecondarySource(number=2, text="He fled.", title="Basil", chunks=(T,))
