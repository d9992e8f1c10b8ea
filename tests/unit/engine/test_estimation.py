"""Tests of estimating: what a dry run tells of vectors, and that it pays for none."""

from pathlib import Path

import pytest

from quipu.model.chunking import SEMANTIC, Chunking
from quipu.model.document import SourceDocument
from quipu.model.usage import Price, Stage
from quipu.settings import Settings
from quipu.settings.tables import ModelPrice
from quipu.testing.scripted.script import RequestKind, Script
from quipu.testing.server import serving
from quipu.wiring import open_engine
from tests.laws.model_world import model_settings

EMBEDDING = ModelPrice(model="custom/words", price=Price(input=3.0, output=0.0))
TEXT = " ".join(f"Traveller{n} Jones met Envoy{n} Khan by the river." for n in range(40))


def _document(method: str = "structure") -> SourceDocument:
    chunking = Chunking(method=method, max_tokens=64)
    return SourceDocument(id="a.md", content=TEXT.encode(), media_type="text/markdown", chunking=chunking)


@pytest.mark.parametrize("llm", ["custom/scripted", None])
async def test_a_dry_run_tells_what_vectors_of_a_service_take(tmp_path: Path, llm: str | None) -> None:
    with serving(Script()) as server:
        settings = model_settings(tmp_path / "kb", server.base_url, price=(EMBEDDING,), llm=llm)
        async with await open_engine(settings) as kb:
            told = await kb.estimate(_document())
            n_asked = len(server.stats().requests)
            report = await kb.add(_document())
    embedded, cost = told.embedded_tokens, told.embedding_cost
    assert (n_asked, told.embedder) == (0, "custom/words")
    assert embedded is not None and cost is not None
    (row,) = [row for row in report.usage if row.stage is Stage.EMBED]
    assert embedded.low / 2 < row.tokens.input < embedded.high * 2
    assert cost.likely == pytest.approx(3 * embedded.likely)


async def test_vectors_made_in_this_process_cost_nothing(tmp_path: Path) -> None:
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        told = await kb.estimate(_document())
    assert (told.embedder, told.embedded_tokens, told.embedding_cost) == ("", None, None)


async def test_a_dry_run_compares_no_sentences_by_a_service_but_counts_them(tmp_path: Path) -> None:
    with serving(Script()) as server:
        async with await open_engine(model_settings(tmp_path / "kb", server.base_url)) as kb:
            plain, compared = [await kb.estimate(_document(method)) for method in ("structure", SEMANTIC)]
            assert server.stats().requests == ()
            assert plain.embedded_tokens is not None and compared.embedded_tokens is not None
            assert compared.embedded_tokens.low > 1.5 * plain.embedded_tokens.low
            assert compared.embedding_cost is None
            await kb.estimate(_document(SEMANTIC), n_sample=1)
            assert server.stats().by_kind[RequestKind.EMBED].n_completed > 0
