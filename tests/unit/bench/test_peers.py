"""A peer: measured in a process of its own, here with a small package that is called as LightRAG is."""

import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from quipu.bench import peers
from quipu.bench.peers import LightRag, install_lightrag
from quipu.cli.app import run
from quipu.errors import Unavailable
from quipu.model.event import Event, Progress
from quipu.ports.providers import Embedder
from quipu.settings import Settings
from quipu.wiring import open_embedder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for LightRAG's Python is a script")

LIGHTRAG = """
import asyncio, json, os, types
from pathlib import Path

class QueryParam:
    def __init__(self, mode, only_need_context):
        assert (mode, only_need_context) == ("mix", True)

class LightRAG:
    def __init__(self, working_dir, llm_model_func, embedding_func, tokenizer):
        assert "QUIPU_LLM" not in os.environ
        self.llm, self.embed, self.tokenizer = llm_model_func, embedding_func.func, tokenizer.tokenizer
        self.file = Path(working_dir) / "store.json"
        stored = json.loads(self.file.read_text()) if self.file.exists() else [{}, {}]
        self.text_chunks, self.doc_status = (types.SimpleNamespace(_data=data) for data in stored)
    async def initialize_storages(self):
        print("LightRAG prints what it likes")
    async def ainsert(self, texts, separator, only_separator, ids, file_paths):
        assert only_separator and len(set(file_paths)) == len(ids)
        for text, document in zip(texts, ids, strict=True):
            if "Mutiny" in text:
                raise ValueError("no mutiny, please")
            assert not Path(".env").exists()
            status = "failed" if "Fog" in text else "processed"
            self.doc_status._data[document] = {"status": status, "error_msg": "lost"}
            chunks = text.split(separator)
            replies = await asyncio.gather(*(self.read(chunk) for chunk in chunks))
            for number, (chunk, reply) in enumerate(zip(chunks, replies, strict=True)):
                self.text_chunks._data[f"{document}-{number}"] = [chunk, reply]
            vectors = await self.embed(chunks)
            assert vectors.shape[0] == len(chunks) and float((vectors**2).sum()) > 0
    async def read(self, chunk):
        assert self.tokenizer.decode(self.tokenizer.encode(chunk)) == chunk
        reply = await self.llm("---Input Text---\\n```\\n" + chunk + "\\n```\\n\\n---Output---")
        assert reply.endswith("<|COMPLETE|>") and await self.llm("Based on the last extraction task") == "<|COMPLETE|>"
        assert await self.llm("Description List\\n- a\\n- b") == "- a\\n- b"
        return reply
    async def adelete_by_doc_id(self, document):
        del self.doc_status._data[document]
        kept = {key: chunk for key, chunk in self.text_chunks._data.items() if not key.startswith(document)}
        self.text_chunks._data = kept
        return types.SimpleNamespace(status="success")
    async def aquery(self, question, param):
        words = json.loads(await self.llm("User Query: " + question + "\\n"))
        assert words["high_level_keywords"] == [question] and words["low_level_keywords"]
    async def finalize_storages(self):
        self.file.write_text(json.dumps([self.text_chunks._data, self.doc_status._data]))
"""
UTILS = """
import logging

logger = logging.getLogger("lightrag")

class EmbeddingFunc:
    def __init__(self, embedding_dim, max_token_size, func):
        self.func = func

class Tokenizer:
    def __init__(self, name, tokenizer):
        self.tokenizer = tokenizer
"""
TEXTS = ["Ada Kern met Bo Dahl in Port Mery.", "Bo Dahl works for the Harbour Office."]


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The Python of an environment that has the stand-in for LightRAG."""
    package = tmp_path / "site" / "lightrag"
    (package / "kg").mkdir(parents=True)
    (package / "__init__.py").write_text(LIGHTRAG, "utf-8")
    (package / "utils.py").write_text(UTILS, "utf-8")
    (package / "lightrag.py").touch()
    for name in ("json_kv_impl", "nano_vector_db_impl", "networkx_impl", "json_doc_status_impl"):
        (package / "kg" / f"{name}.py").touch()
    script = tmp_path / "python"
    script.write_text(
        f"#!{sys.executable}\nimport runpy, sys\nsys.path.append({str(tmp_path / 'site')!r})\n"
        "assert sys.argv[1] == '-I'\nsys.argv = sys.argv[2:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n",
        "utf-8",
    )
    script.chmod(0o700)
    return script


@pytest.fixture
async def embedder() -> Embedder:
    """The default embedder."""
    return await open_embedder(Settings())


async def test_a_peer_grows_is_changed_and_asked(
    python: Path, embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIPU_LLM", "openai")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("CHUNK_SIZE=7")
    peer = LightRag(python=python, folder=tmp_path / "work", embedder=embedder, max_chunks=9)
    events: list[Event] = []
    small = await peer.measure({"a.md": TEXTS}, ["Who met Bo Dahl?"], events.append)
    large = await peer.measure({"b.md": TEXTS[:1], "c/b.md": TEXTS[1:]}, ["Who met Bo Dahl?", "what?"])
    assert [(size.n_chunks, size.n_documents) for size in (small, large)] == [(2, 1), (4, 3)]
    assert all(isinstance(event, Progress) and event.stage == "LightRAG" for event in events)
    assert [event.n_done for event in events if isinstance(event, Progress)] == [1, 2]
    assert large.n_bytes > small.n_bytes > 100
    assert min(large.open_ms, large.one_more_ms, large.remove_ms) > 0
    (question,) = large.questions
    assert question.strategy == "mix" and 0 < question.median_ms <= question.p95_ms


async def test_the_rules_read_for_a_peer_and_cost_it_nothing(python: Path, embedder: Embedder, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    long = " ".join(TEXTS * 100)
    peer = LightRag(python=python, folder=folder, embedder=embedder, max_chunks=9)
    size = await peer.measure({"a.md": [long]}, [])
    stored = next(folder.rglob("store.json")).read_text("utf-8")
    assert "entity<|#|>Ada Kern<|#|>Person<|#|>" in stored and "relation<|#|>" in stored
    assert size.add_cpu_ms < 200  # the process itself does next to nothing
    assert size.questions == ()


async def test_a_peer_that_fails_says_why(python: Path, embedder: Embedder, tmp_path: Path) -> None:
    peer = LightRag(python=python, folder=tmp_path / "work", embedder=embedder, max_chunks=9)
    with pytest.raises(Unavailable, match="no mutiny, please"):
        await peer.measure({"a.md": ["Mutiny"]}, [])
    with pytest.raises(Unavailable, match=r"did not add .*: lost"):
        await peer.measure({"b.md": ["Fog"]}, [])


def test_an_installation_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(command: list[str], **_options: object) -> None:
        raise subprocess.CalledProcessError(1, command, stderr="ERROR: No matching distribution\nfound")

    monkeypatch.setattr(venv, "create", lambda *_args, **_options: None)
    monkeypatch.setattr(subprocess, "run", refused)
    with pytest.raises(Unavailable, match="No matching distribution found"):
        install_lightrag(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Three files of one chunk each."""
    files = tmp_path / "files"
    files.mkdir()
    for number in range(3):
        (files / f"{number}.md").write_text(50 * f"Ada Kern{number} met Bo Dahl in Port Mery. ", "utf-8")
    yield files


def test_quipu_and_a_peer_are_measured_side_by_side(
    folder: Path, python: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "install_lightrag", lambda _folder: python)
    command = ("bench", "speed", str(folder), "--size", "1", "--size", "3", "-s", "mix", "--peers")
    assert run(command) == 0
    out = capsys.readouterr().out
    assert f"LightRAG {peers.VERSION}, and how many times Quipu's figure that is" in out
    rows = [line for line in out.partition("LightRAG")[2].splitlines() if line.startswith(("1 ", "3 "))]
    assert sum(line.count("×)") for line in rows) == 2 * 8  # columns, in one table or two


def test_a_peer_that_fails_leaves_the_figures_of_quipu(
    folder: Path, python: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "install_lightrag", lambda _folder: python)
    (folder / "3.md").write_text("Mutiny on board.", "utf-8")
    assert run(("bench", "speed", str(folder), "--size", "4", "-s", "lexical", "--peers")) == 0
    captured = capsys.readouterr()
    assert "no mutiny, please" in captured.out and "add, ms a chunk" in captured.out
