"""Peers: another system on the same chunks as Quipu, in a process and an environment of its own.

LightRAG is the one that is measured. It pays for no model: this process tells it what local rules read in a chunk and
gives it vectors, and what that takes is taken off its times. Quipu's own times include both.
"""

import asyncio
import base64
import json
import os
import subprocess
import venv
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from quipu.bench.speed import N_REPEATS, SENTENCE, SizeSpeed, question_speed
from quipu.errors import Unavailable
from quipu.ingest.local.extraction import extract_chunk
from quipu.model.event import EventSink, Progress, ignore_event
from quipu.model.extraction import ChunkInput, Extraction
from quipu.model.ids import digest
from quipu.ports.providers import Embedder
from quipu.settings.sources import environment_of

PACKAGE, VERSION = "lightrag-hku", "1.5.7"
PROCESS = Path(__file__).with_name("lightrag_process.py")
# What the process sees of the environment: settings of others would change LightRAG's defaults.
KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
MAX_LINE_BYTES = 1 << 28
MAX_ERROR_CHARS = 400
_REMEDY = "Leave out --peers to measure Quipu alone."


def install_lightrag(folder: Path) -> Path:
    """Make LightRAG's environment in a folder, if it is not there yet, and return its Python.

    Raises Unavailable if it cannot be installed.
    """
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    package = f"{PACKAGE}=={VERSION}"
    try:
        if not (folder / package).exists():
            venv.create(folder, clear=True, with_pip=True)
            pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", package]
            subprocess.run(pip, check=True, capture_output=True, text=True)
            (folder / package).touch()
    except (OSError, subprocess.CalledProcessError) as error:
        reason = last_words(str(getattr(error, "stderr", None) or error))
        raise Unavailable(f"LightRAG could not be installed in {folder}: {reason}", remedy=_REMEDY) from error
    return python


def last_words(text: str) -> str:
    """Return the end of what a process wrote, on one line."""
    return " ".join(text.split())[-MAX_ERROR_CHARS:]


@dataclass(slots=True, kw_only=True)
class LightRag:
    """A store of LightRAG that grows up to `max_chunks`.

    `python` is that of its environment; its store and its log are in `folder`.
    """

    python: Path
    folder: Path
    embedder: Embedder
    max_chunks: int
    name: str = f"LightRAG {VERSION}"

    async def measure(
        self, documents: Mapping[str, Sequence[str]], questions: Sequence[str], on_event: EventSink = ignore_event
    ) -> SizeSpeed:
        """Add documents, given as their chunks by id, and return what that and other work takes at the new size.

        One process adds the documents, another one opens what was written. Raises Unavailable if one of them fails.
        """
        chunks = {digest("document", document): list(texts) for document, texts in documents.items()}
        n_new = sum(map(len, chunks.values()))
        async with self._process(n_new, on_event) as process:
            await process.order("open")
            grown = await process.order("add", chunks)
        async with self._process(0, on_event) as process:
            opened = await process.order("open")
            changes = [await _change(process, number) for number in range(N_REPEATS)]
            replies = [await process.order("ask", question) for question in (*questions[:1], *questions)]
        times = [(reply["ms"], reply["cpu_ms"]) for reply in replies[1:]]
        return SizeSpeed(
            n_chunks=opened["n_chunks"],
            n_documents=opened["n_documents"],
            add_ms=grown["ms"] / max(n_new, 1),
            add_cpu_ms=grown["cpu_ms"] / max(n_new, 1),
            one_more_ms=median(added for added, _ in changes),
            remove_ms=median(removed for _, removed in changes),
            open_ms=opened["ms"],
            n_bytes=sum(file.stat().st_size for file in self._store.rglob("*") if file.is_file()),
            peak_bytes=max(reply["peak_bytes"] for reply in (grown, opened, *replies)),
            questions=(question_speed("mix", times),) if times else (),
        )

    @property
    def _store(self) -> Path:
        return self.folder / "lightrag"

    @asynccontextmanager
    async def _process(self, n_new: int, on_event: EventSink) -> "AsyncIterator[_LightRagProcess]":
        """Run a process until it has followed its orders. `n_new` is the number of chunks that it will read."""
        self._store.mkdir(parents=True, exist_ok=True)
        log = self.folder / "lightrag.log"
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(self.python.absolute(), "-I", PROCESS, self._store.absolute(), str(self.embedder.dimension)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                env=environment_of(KEPT_ENVIRONMENT),
                cwd=self.folder,  # LightRAG takes settings from a file .env in its folder
                limit=MAX_LINE_BYTES,
            )
            try:
                orders = _LightRagProcess(process, self.embedder, n_new, on_event)
                yield orders
                orders.end()
                await process.wait()
                is_done = process.returncode == 0
            except (_Ended, OSError):
                is_done = False
                await process.wait()  # it may still be writing what went wrong
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if not is_done:
            words = last_words(log.read_text("utf-8", errors="replace"))
            raise Unavailable(f"LightRAG ended with an error: {words}", remedy=_REMEDY)


async def _change(process: "_LightRagProcess", number: int) -> tuple[float, float]:
    """Return what adding and removing one small document take, in ms."""
    added = await process.order("add", {"one more": [SENTENCE.format(number=number)]})
    removed = await process.order("remove", "one more")
    return added["ms"], removed["ms"]


class _Ended(Exception):
    """The process ended before it had followed an order."""


class _LightRagProcess:
    """Sends orders to a process of LightRAG, and answers what it asks of a model."""

    def __init__(self, process: Process, embedder: Embedder, n_new: int, on_event: EventSink) -> None:
        assert process.stdin is not None and process.stdout is not None  # both are pipes
        self._orders, self._replies, self._embedder = process.stdin, process.stdout, embedder
        self._n_new, self._n_read, self._on_event = n_new, 0, on_event

    async def order(self, name: str, value: object = None) -> dict[str, Any]:
        """Have an order followed and return what it took."""
        await self._write({"do": name, "value": value})
        while line := await self._replies.readline():
            message: dict[str, Any] = json.loads(line)
            if "need" not in message:
                return message
            await self._write(await self._reply(message["need"], message["value"]))
        raise _Ended

    def end(self) -> None:
        """Say that there are no more orders."""
        self._orders.close()

    async def _write(self, message: object) -> None:
        self._orders.write(json.dumps(message).encode() + b"\n")
        await self._orders.drain()

    async def _reply(self, need: str, value: Any) -> object:
        if need == "graph":
            return self._graph(value)
        if need == "names":
            return [entity.name for entity in _read(value).entities] or [value]
        vectors = await self._embedder.embed(value)
        return base64.b64encode(vectors.astype(np.float32).tobytes()).decode()

    def _graph(self, text: str) -> dict[str, list[tuple[str, ...]]]:
        """Return the entities and relations that local rules read in a chunk."""
        extraction = _read(text)
        if self._n_new:
            self._n_read += 1
            self._on_event(Progress(stage="LightRAG", n_done=self._n_read, n_total=max(self._n_new, self._n_read)))
        return {
            "entity": [(one.name, one.type, one.description or one.name) for one in extraction.entities],
            "relation": [
                (one.source, one.target, ",".join(one.keywords) or "related", one.description or one.target)
                for one in extraction.relations
            ],
        }


def _read(text: str) -> Extraction:
    return extract_chunk(ChunkInput(text=text))
