"""LightRAG in a process of its own: does what it is told, one JSON object a line, and measures itself.

The Python of LightRAG's environment runs this file, so it imports nothing of Quipu. An order is `open`, `add`, `remove`
or `ask`; its result has `ms`, `cpu_ms` (of all threads) and counts. Before it, the process asks for what a model would
say (`need`). Waiting for that, counting tokens and the traffic are taken off: LightRAG gets them for nothing. The
chunks are those of the order; everything else is LightRAG's default, but its log of every step is off.
"""

import asyncio
import base64
import importlib
import json
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SEPARATOR = "\n<|chunk|>\n"
DELIMITER, DONE = "<|#|>", "<|COMPLETE|>"
MAX_SUMMARY_CHARS = 600
# What LightRAG imports when it opens a store; imported before, so that opening is measured alone.
IMPORTED = (
    "lightrag.lightrag",
    "lightrag.kg.json_kv_impl",
    "lightrag.kg.nano_vector_db_impl",
    "lightrag.kg.networkx_impl",
    "lightrag.kg.json_doc_status_impl",
)

_INPUT = re.compile(r"---Input Text---\n```\n(.*)\n```\n\n---Output---", re.DOTALL)
_QUESTION = re.compile(r"User Query: (.*)\n")
_PIECE = re.compile(r".{1,4}", re.DOTALL)


class StandInModel:
    """What stands for models: the process above answers. `free_ms` and `free_cpu_ms` are what that took."""

    def __init__(self, dimension: int, replies: Any) -> None:
        self.dimension = dimension
        self.free_ms = self.free_cpu_ms = 0.0
        self._replies = replies
        self._pieces: list[str] = []
        self._number_by_piece: dict[str, int] = {}

    async def complete(
        self, prompt: str, system_prompt: str | None = None, history_messages: object = None, **_options: object
    ) -> str:
        """Return the reply to one of LightRAG's prompts, in its format."""
        with self._free():
            if text := _INPUT.search(prompt):
                graph = self._ask("graph", text[1])
                rows = [(kind, *row) for kind in ("entity", "relation") for row in graph[kind]]
                return "\n".join([*map(DELIMITER.join, rows), DONE])
            if "Based on the last extraction task" in prompt:
                return DONE
            if question := _QUESTION.search(prompt):
                names = self._ask("names", question[1])
                return json.dumps({"high_level_keywords": [question[1]], "low_level_keywords": names})
            if "Description List" in prompt:
                return prompt.partition("Description List")[2].strip()[:MAX_SUMMARY_CHARS]
            raise ValueError(f"LightRAG sent an unknown prompt: {prompt[:200]!r}")

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text, [n, dimension]."""
        with self._free():
            packed = base64.b64decode(self._ask("vectors", list(texts)))
            return np.frombuffer(packed, np.float32).reshape(len(texts), self.dimension)

    def encode(self, content: str) -> list[int]:
        """Return tokens of four characters each."""
        with self._free():
            return [self._number(piece) for piece in _PIECE.findall(content)]

    def decode(self, tokens: list[int]) -> str:
        """Return the text of the tokens."""
        with self._free():
            return "".join(self._pieces[number] for number in tokens)

    def __deepcopy__(self, memo: object) -> "StandInModel":
        """Return itself: LightRAG copies its settings, but tokens must keep their numbers."""
        return self

    def _number(self, piece: str) -> int:
        number = self._number_by_piece.get(piece)
        if number is None:
            number = self._number_by_piece[piece] = len(self._pieces)
            self._pieces.append(piece)
        return number

    def _ask(self, need: str, value: object) -> Any:
        _write(self._replies, {"need": need, "value": value})
        return json.loads(sys.stdin.readline())

    @contextmanager
    def _free(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            self.free_ms += 1_000 * (time.perf_counter() - wall)
            self.free_cpu_ms += 1_000 * (time.thread_time() - cpu)


class Index:
    """A store of LightRAG, and the orders it takes."""

    def __init__(self, folder: str, model: StandInModel) -> None:
        self._folder, self._model = folder, model
        self._rag: Any = None

    async def open(self, _value: object) -> None:
        """Open the store, which is made where there is none."""
        lightrag, utils = importlib.import_module("lightrag"), importlib.import_module("lightrag.utils")
        embedding = utils.EmbeddingFunc(
            embedding_dim=self._model.dimension, max_token_size=8_192, func=self._model.embed
        )
        self._rag = lightrag.LightRAG(
            working_dir=self._folder,
            llm_model_func=self._model.complete,
            embedding_func=embedding,
            tokenizer=utils.Tokenizer("four characters", self._model),
        )
        await self._rag.initialize_storages()

    async def add(self, documents: dict[str, list[str]]) -> None:
        """Add documents, given as their chunks by id. Raises RuntimeError where LightRAG could not add one.

        Of documents with the same text LightRAG adds one.
        """
        texts = [SEPARATOR.join(chunks) for chunks in documents.values()]
        names = [f"{document}.txt" for document in documents]
        await self._rag.ainsert(texts, SEPARATOR, True, ids=list(documents), file_paths=names)
        for document in documents:
            status = self._rag.doc_status._data.get(document, {})
            if "fail" in str(status.get("status")).lower():
                raise RuntimeError(f"LightRAG did not add {document}: {status.get('error_msg')}")

    async def remove(self, document: str) -> None:
        """Remove a document. Raises RuntimeError where LightRAG does not."""
        result = await self._rag.adelete_by_doc_id(document)
        if result.status != "success":
            raise RuntimeError(f"LightRAG did not remove {document}: {result.message}")

    async def ask(self, question: str) -> None:
        """Make the context of an answer, in the mode `mix`, which is LightRAG's default."""
        options = importlib.import_module("lightrag").QueryParam(mode="mix", only_need_context=True)
        await self._rag.aquery(question, options)

    async def close(self) -> None:
        """Write what is not written yet."""
        if self._rag is not None:
            await self._rag.finalize_storages()

    def counts(self) -> dict[str, int]:
        """Return how many chunks and documents there are, and the most memory that this process has had."""
        statuses = [str(document.get("status")).lower() for document in self._rag.doc_status._data.values()]
        n_documents = sum("processed" in status for status in statuses)
        return {"n_chunks": len(self._rag.text_chunks._data), "n_documents": n_documents, "peak_bytes": peak_bytes()}


def peak_bytes() -> int:
    """Return the most memory that this process has had, 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text("utf-8").splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1_024 for line in lines if line.startswith("VmHWM")), 0)


async def follow_orders(index: Index, model: StandInModel, replies: Any) -> None:
    """Do what each line says until there is no more, and write what it took."""
    orders: dict[str, Callable[[Any], Awaitable[None]]] = {
        "open": index.open,
        "add": index.add,
        "remove": index.remove,
        "ask": index.ask,
    }
    while line := sys.stdin.readline():
        order = json.loads(line)
        wall, cpu = time.perf_counter(), time.process_time()
        free_ms, free_cpu_ms = model.free_ms, model.free_cpu_ms
        await orders[order["do"]](order["value"])
        took_ms, cpu_ms = 1_000 * (time.perf_counter() - wall), 1_000 * (time.process_time() - cpu)
        result = {
            "ms": took_ms - (model.free_ms - free_ms),
            "cpu_ms": cpu_ms - (model.free_cpu_ms - free_cpu_ms),
            **index.counts(),
        }
        _write(replies, result)
    await index.close()


def main() -> None:
    """Take a folder and the length of vectors from the command line, and orders from the standard input."""
    folder, dimension = sys.argv[1:]
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)  # so that nothing that LightRAG prints is taken for a reply
        for name in IMPORTED:
            importlib.import_module(name)
        importlib.import_module("lightrag.utils").logger.setLevel("ERROR")
        model = StandInModel(int(dimension), replies)
        asyncio.run(follow_orders(Index(folder, model), model, replies))


def _write(replies: Any, message: Mapping[str, object]) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


if __name__ == "__main__":
    main()
