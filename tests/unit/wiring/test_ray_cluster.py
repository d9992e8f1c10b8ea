"""Tests of documents read on a cluster: the same index, what is refused, what fails alone, and what goes on later.

Most run with a stand-in for Ray that sends everything through pickle. The last ones start Ray, where it is installed.
"""

import asyncio
import importlib.util
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from quipu.engine import Quipu
from quipu.errors import InvalidInput, Unavailable
from quipu.model.document import DocumentStatus, SourceDocument
from quipu.model.event import DocumentDone, Event
from quipu.model.results import AddResult
from quipu.providers.local import WordLlamaEmbedder
from quipu.settings import Settings
from quipu.wiring import open_engine, ray_cluster
from quipu.wiring.ray_cluster import MIN_SPREAD_TEXTS, RayCluster, WorkerDied, WorkerReply, open_cluster
from tests.laws.world import document

DOCUMENTS = [document(f"{number}.md", number) for number in range(12)]
DAMAGED = SourceDocument(id="damaged.pdf", content=b"%PDF-1.7 and no more", media_type="application/pdf")


class PicklingConnection:
    """Runs functions in threads, as workers that get and return bytes."""

    n_cpus = 2
    fails: Callable[[str], Exception | None] = staticmethod(lambda _: None)  # takes the id of a document
    n_tasks = 0
    is_closed = False

    async def run(self, function: Callable[..., WorkerReply], *arguments: object) -> WorkerReply:
        """Return what the function returns for copies of the arguments."""
        type(self).n_tasks += 1
        if isinstance(arguments[-1], SourceDocument) and (error := type(self).fails(arguments[-1].id)):
            raise error
        sent = pickle.dumps((function, arguments))

        def work() -> bytes:
            function, arguments = pickle.loads(sent)
            return pickle.dumps(function(*arguments))

        reply: WorkerReply = pickle.loads(await asyncio.to_thread(work))
        return reply

    def close(self) -> None:
        """Note that it was closed."""
        type(self).is_closed = True


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> type[PicklingConnection]:
    """Have a cluster of this process alone."""
    kind = type("Connection", (PicklingConnection,), {})
    monkeypatch.setattr(ray_cluster, "RayConnection", kind)
    return kind


async def _dump(kb: Quipu) -> list[str]:
    async with kb._store.view() as view:
        return [line async for line in view.dump()]


async def _add(folder: Path, *documents: SourceDocument, **settings: str) -> tuple[AddResult, list[str]]:
    async with await open_engine(Settings(index=folder / "kb", **settings)) as kb:
        result = await kb.add(*documents)
        assert await kb.verify() == []
        return result, await _dump(kb)


async def test_a_cluster_gives_the_same_index_byte_for_byte(
    tmp_path: Path, connection: type[PicklingConnection]
) -> None:
    result, dump = await _add(tmp_path / "local", *DOCUMENTS, DAMAGED)
    spread, spread_dump = await _add(tmp_path / "ray", *DOCUMENTS, DAMAGED, engine="ray")
    assert spread_dump == dump
    assert (spread.n_added, spread.n_chunks, spread.failed[0].error) == (12, result.n_chunks, result.failed[0].error)
    assert connection.n_tasks > len(DOCUMENTS)
    assert connection.is_closed


async def test_sentences_are_compared_in_the_worker(tmp_path: Path, connection: type[PicklingConnection]) -> None:
    _, dump = await _add(tmp_path / "local", *DOCUMENTS, chunker="semantic")
    assert (await _add(tmp_path / "ray", *DOCUMENTS, chunker="semantic", engine="ray"))[1] == dump
    assert connection.n_tasks > len(DOCUMENTS)


@pytest.mark.usefixtures("connection")
async def test_chunks_with_equal_text_share_a_reply(tmp_path: Path) -> None:
    copies = [SourceDocument(id=f"{name}.txt", content=DOCUMENTS[0].content) for name in "abc"]
    result, _ = await _add(tmp_path, *copies, engine="ray")
    assert result.n_extracted + result.n_reused == result.n_chunks
    assert result.n_extracted == result.n_chunks // 3


async def test_a_document_that_kills_its_worker_fails_alone_and_is_read_later(
    tmp_path: Path, connection: type[PicklingConnection]
) -> None:
    connection.fails = staticmethod(
        lambda name: WorkerDied("It ended.", remedy="Add memory.") if name == "3.md" else None
    )
    events: list[Event] = []
    async with await open_engine(Settings(index=tmp_path / "kb", engine="ray")) as kb:
        result = await kb.add(*DOCUMENTS, on_event=events.append)
        assert [(failed.id, failed.error) for failed in result.failed] == [("3.md", "It ended. Add memory.")]
        done = {event.document_id: event.status for event in events if isinstance(event, DocumentDone)}
        assert done["3.md"] is DocumentStatus.FAILED and len(done) == len(DOCUMENTS)
        connection.fails = staticmethod(lambda _: None)
        assert await kb.retry() == 1
        await kb.resume()
        dump = await _dump(kb)
    assert dump == (await _add(tmp_path / "local", *DOCUMENTS))[1]


async def test_what_was_read_before_the_cluster_went_stays_and_the_rest_is_read_later(
    tmp_path: Path, connection: type[PicklingConnection]
) -> None:
    connection.fails = staticmethod(lambda name: Unavailable("It is gone.") if name > "5" else None)
    result, _ = await _add(tmp_path / "ray", *DOCUMENTS, engine="ray")
    assert (result.stopped, result.n_added, result.n_waiting) == ("It is gone.", 7, 5)
    connection.fails, connection.n_tasks = staticmethod(lambda _: None), 0
    result, dump = await _add(tmp_path / "ray", *DOCUMENTS, engine="ray")
    assert (result.n_unchanged, result.n_waiting) == (7, 0)
    assert connection.n_tasks == 1 + 5  # the comparison, and what was left
    assert dump == (await _add(tmp_path / "local", *DOCUMENTS))[1]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"llm": "openai/gpt-4.1-mini"}, "openai/gpt-4.1-mini.*--no-model"),
        ({"reranker": "jina/any"}, "jina/any"),
        ({"parser": "docling", "parser_url": "http://localhost:5001"}, "docling"),
    ],
)
@pytest.mark.usefixtures("connection")
async def test_what_may_cost_money_is_refused_before_a_document_is_queued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], reason: str
) -> None:
    for name in ("QUIPU_LLM_KEY", "QUIPU_RERANKER_KEY"):
        monkeypatch.setenv(name, "any")
    async with await open_engine(Settings(index=tmp_path / "kb", engine="ray", **settings)) as kb:
        with pytest.raises(InvalidInput, match=reason):
            await kb.add(*DOCUMENTS)
        assert await kb.documents() == []


async def test_a_remote_embedder_is_refused() -> None:
    settings = Settings(engine="ray", embedder="openai", embedder_model="ollama/any")
    cluster = open_cluster(settings, WordLlamaEmbedder(), "local/5")
    with pytest.raises(InvalidInput, match=r"embedder = 'openai'.*quipu work"):
        await cluster.check()


async def test_without_ray_the_remedy_is_named_and_nothing_is_queued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    async with await open_engine(Settings(index=tmp_path / "kb", engine="ray")) as kb:
        with pytest.raises(Unavailable, match=r"pip install 'quipu-rag\[ray\]'"):
            await kb.add(*DOCUMENTS)
        assert await kb.documents() == []


def _cluster() -> RayCluster:
    return open_cluster(Settings(engine="ray"), WordLlamaEmbedder(), "local/5")


async def test_a_worker_that_would_read_otherwise_is_not_used(
    connection: type[PicklingConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "_describe", lambda _: "Quipu 0.0.1")
    with pytest.raises(Unavailable, match=r"would read as Quipu 0\.0\.1.*same version"):
        await _cluster().check()
    assert connection.is_closed


async def test_many_texts_are_spread_and_few_are_embedded_here(connection: type[PicklingConnection]) -> None:
    cluster, local = _cluster(), WordLlamaEmbedder()
    texts = [f"text {number} of many" for number in range(MIN_SPREAD_TEXTS)]
    assert np.array_equal(await cluster.embed(texts[1:]), await local.embed(texts[1:]))
    assert connection.n_tasks == 0
    assert np.array_equal(await cluster.embed(texts), await local.embed(texts))
    assert connection.n_tasks == 1 + MIN_SPREAD_TEXTS // ray_cluster.TEXTS_PER_TASK


needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'quipu-rag[ray]'"
)
may_warn = pytest.mark.filterwarnings("ignore")  # Ray's own warnings


@needs_ray
@may_warn
async def test_ray_itself_gives_the_same_index_and_survives_a_killed_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [document(f"{number}.md", number) for number in range(100)]
    _, dump = await _add(tmp_path / "local", *many, DAMAGED)
    result, spread_dump = await _add(tmp_path / "ray", *many, DAMAGED, engine="ray")
    assert spread_dump == dump
    assert [failed.id for failed in result.failed] == ["damaged.pdf"]
    connection = await asyncio.to_thread(ray_cluster.RayConnection)
    try:
        with pytest.raises(WorkerDied, match="twice"):
            await connection.run(_die)
        assert (await connection.run(_answer)).unpack() == 42
        with pytest.raises(Unavailable, match="ZeroDivisionError"):
            await connection.run(_fail)
    finally:
        await asyncio.to_thread(connection.close)


def _die() -> WorkerReply:
    os._exit(3)


def _answer() -> WorkerReply:
    return WorkerReply(result=42)


def _fail() -> WorkerReply:
    return WorkerReply(result=1 // 0)
