"""Claims from documents to an answer: found, shown, cited and compared; and gone with their document, or left out."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.model.chat import ChatRequest
from quipu.model.document import SourceDocument
from quipu.model.query import Filter
from quipu.prompts.extraction import DONE
from quipu.settings import Settings
from quipu.wiring.models import make_llm_extractor
from tests.laws.world import engine
from tests.unit.ingest.llm.fakes import SpokenLLM

TEXTS = {
    "court": "Ann Lee was charged with robbing Acme of Leeds in 1999.",
    "paper": "Acme says that Ann Lee took a golden clock from Leeds.",
    "walls": "Leeds has walls of stone.",
}
CHARGED = "claim<|>Ann Lee<|>Acme<|>robbery<|>suspected<|>1999<|>Ann Lee was charged with robbing Acme."
TOOK = "claim<|>Ann Lee<|>Leeds<|>theft<|>suspected<|>-<|>Ann Lee took a golden clock."
CLAIMS = {"court": CHARGED, "paper": TOOK}
QUESTION = "What is Ann Lee charged with?"


def read(request: ChatRequest) -> str:
    """Return what a model that reads makes of one of the texts."""
    asked = request.messages[-1].text
    name = next((name for name, text in TEXTS.items() if text in asked), "")
    said = [
        f"entity<|>{each}<|>Person<|>{each} is named."
        for each in ("Ada Lovelace", "Ann Lee", "Acme", "Leeds")
        if each in asked
    ]
    related = ["relation<|>Ann Lee<|>Acme<|>robbed<|>Ann Lee and Acme met in court.<|>5"] if name in CLAIMS else []
    return "\n".join((*said, *related, *([CLAIMS[name]] if name in CLAIMS else []), DONE))


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[Quipu]:
    """An index of the texts, read with claims, its communities reported on without a model."""
    extractor = make_llm_extractor(SpokenLLM(speaker=read), Settings(claims=True), 1)
    async with engine(tmp_path, extractor=extractor) as opened:
        await opened.add(*(SourceDocument(id=name, content=text.encode()) for name, text in TEXTS.items()))
        await opened.refresh(["reports"])
        yield opened


async def test_claims_are_found_shown_and_counted(kb: Quipu) -> None:
    answer = await kb.query(QUESTION, strategy="community_local")
    claims = answer.trace.evidence.claims
    (court,), (paper,) = [(await kb.document(name)).chunks for name in ("court", "paper")]
    assert sorted(hit.id for hit in claims) == sorted([f"{court.id}:0", f"{paper.id}:0"])
    assert {hit.reason.partition(",")[0] for hit in claims} == {"is about ann lee"}
    assert "Ann Lee — Acme (robbery, suspected, 1999)\nAnn Lee was charged with robbing Acme." in answer.context
    assert "Ann Lee — Leeds (theft, suspected)\nAnn Lee took a golden clock." in answer.context
    (row,) = (await kb.compare(QUESTION, ["community_local"])).results
    assert row.n_claims == 2
    told = await kb.explain(QUESTION, strategy="community_local", chunk=court.id)
    assert told.n_claims == 2
    grounds = [(each.kind, each.name) for each in told.chunks[0].supporting_hits]
    assert ("claim", "Ann Lee was charged with robbing Acme.") in grounds


async def test_claims_come_with_no_other_strategy(kb: Quipu) -> None:
    for name in ("local", "mix", "drift"):
        assert (await kb.retrieve(QUESTION, strategy=name)).claims == ()


async def test_a_claim_goes_with_its_document_and_is_not_shown_where_that_is_left_out(kb: Quipu) -> None:
    left_out = await kb.query(QUESTION, strategy="community_local", filter=Filter(exclude=("court",)))
    await kb.remove("court")
    removed = await kb.query(QUESTION, strategy="community_local")
    for answer in (left_out, removed):
        assert len(answer.trace.evidence.claims) == 1
        for seen in (answer.context, answer.prompt, answer.text):
            assert "robbery" not in seen and "1999" not in seen
    assert await kb.verify() == []


async def test_the_same_claims_stand_in_the_same_order_whatever_the_history_of_the_index(
    kb: Quipu, tmp_path: Path
) -> None:
    extractor = make_llm_extractor(SpokenLLM(speaker=read), Settings(claims=True), 1)
    async with engine(tmp_path / "other", extractor=extractor) as other:
        for name in ("paper", "walls", "court"):
            await other.add_text(TEXTS[name], id=name)
        await other.remove("paper")
        await other.add_text(TEXTS["paper"], id="paper")
        await other.refresh(["reports"])
        ways = [await each.retrieve(QUESTION, strategy="community_local") for each in (kb, other)]
    assert ways[0].claims == ways[1].claims
    assert len(ways[0].claims) == 2
