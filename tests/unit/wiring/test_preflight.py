"""Checks before work: a window too small for a chunk stops it before any document is touched, a busy server never."""

from pathlib import Path
from typing import Any

import pytest

from quipu.errors import Unavailable
from quipu.model.chunking import Chunking, ChunkingRule
from quipu.settings import Settings
from quipu.testing.scripted.script import Fault, FaultName, RequestKind, Script, Service
from quipu.testing.server import ServerHandle
from quipu.wiring import open_engine
from quipu.wiring.models import tokens_needed
from quipu.wrap.guard import RetryPolicy

TEXT = "Alice Kober taught classics at Brooklyn College and studied Linear B."
NO_PATIENCE = RetryPolicy(max_attempts=1)


async def _add(index: Path, server: ServerHandle, script: Script, **values: str | int) -> int:
    """Add a document; return how many are known then."""
    server.configure(script)
    settings = Settings(index=index, llm="custom/m", llm_base_url=server.base_url, **values)
    async with await open_engine(settings, retry=NO_PATIENCE) as kb:
        try:
            await kb.add_text(TEXT, id="kober")
        finally:
            n_documents = (await kb.status()).n_documents
    return n_documents


def _serving(window: int) -> Script:
    return Script(service=Service(models=("m",), context_window=window))


async def test_a_window_too_small_for_a_chunk_is_refused_with_both_numbers_before_reading(
    tmp_path: Path, server: ServerHandle
) -> None:
    needed = tokens_needed(Settings())
    with pytest.raises(Unavailable) as caught:
        await _add(tmp_path / "kb", server, _serving(needed - 1))
    assert f"a context window of {needed - 1:,} tokens" in caught.value.message
    assert f"takes {needed:,}" in caught.value.message
    assert "chunk_tokens" in caught.value.remedy
    assert server.stats().total(RequestKind.EXTRACT).n_completed == 0


async def test_one_that_is_large_enough_for_the_chunks_or_unknown_is_taken(
    tmp_path: Path, server: ServerHandle
) -> None:
    needed = tokens_needed(Settings(chunk_tokens=100))
    assert tokens_needed(Settings(chunk_tokens=50)) < needed < tokens_needed(Settings())
    assert await _add(tmp_path / "small", server, _serving(needed), chunk_tokens=100) == 1
    assert await _add(tmp_path / "unknown", server, Script()) == 1
    assert await _add(tmp_path / "local", server, _serving(1_000), extractor="local") == 1


def test_the_largest_chunk_of_any_rule_counts() -> None:
    rule = ChunkingRule(match="*.md", chunking=Chunking(max_tokens=9_000))
    given: dict[str, Any] = {"chunking": (rule,)}
    assert tokens_needed(Settings(**given)) > 9_000 + tokens_needed(Settings(chunk_tokens=100))


async def test_a_busy_server_passes_and_one_that_refuses_does_not(tmp_path: Path, server: ServerHandle) -> None:
    ok = "Reply with OK"
    busy = Script(faults=(Fault(name=FaultName.TOO_MANY_REQUESTS, containing=ok, retry_after_s=0.0),))
    assert await _add(tmp_path / "busy", server, busy) == 1
    with pytest.raises(Unavailable, match="answered 400"):
        await _add(tmp_path / "bad", server, Script(faults=(Fault(name=FaultName.BAD_REQUEST, containing=ok),)))
