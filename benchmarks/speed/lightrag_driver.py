"""LightRAG: one step of the measurement with LightRAG, by the Python of its own environment.

    python -m benchmarks.speed.lightrag_driver STEP FOLDER INDEX N_CHUNKS

It imports the workload and LightRAG, and nothing of Quipu. The model answers at once in LightRAG's format, vectors and
the token count are the workload's; everything else is LightRAG's default, but that its log of every step is off.
"""

import asyncio
import importlib
import json
import logging
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.speed import process, workload
from benchmarks.speed.process import Given, Meter

SYSTEM = "lightrag"
LAST_SHARE = 0.2
N_ADDED = {"add1": 5, "add10": 3}
N_REMOVED = 3
N_VECTORS, N_VECTORS_ADDED, N_VECTOR_QUERIES = 100_000, 100, 50
SUMMARY = " ".join(["A person who met others and was met by them, as the texts have it again."] * 3)
WARM_UP = "Who were the first to arrive?"
# What LightRAG imports when it opens a store; imported before, so that opening is measured alone.
IMPORTED = (
    "lightrag.lightrag",
    "lightrag.kg.json_kv_impl",
    "lightrag.kg.nano_vector_db_impl",
    "lightrag.kg.networkx_impl",
    "lightrag.kg.json_doc_status_impl",
)
DELIMITER, DONE = "<|#|>", "<|COMPLETE|>"

_INPUT = re.compile(r"---Input Text---\n```\n(.*)\n```\n\n---Output---", re.DOTALL)
_ASKED = re.compile(r"User Query: (.*)\n")


class WordTokens:
    """Encodes words, as the workload counts them."""

    def __init__(self) -> None:
        self._number_by_token: dict[str, int] = {}
        self._tokens: list[str] = []

    def encode(self, content: str) -> list[int]:
        """Return the numbers of the tokens."""
        return [self._number(token) for token in workload.tokens(content)]

    def decode(self, tokens: list[int]) -> str:
        """Return the text of the numbers."""
        return "".join(self._tokens[number] for number in tokens)

    def __deepcopy__(self, memo: object) -> "WordTokens":
        """LightRAG copies its settings; the numbers must stay what they are."""
        return self

    def _number(self, token: str) -> int:
        number = self._number_by_token.get(token)
        if number is None:
            self._tokens.append(token)
            number = self._number_by_token.setdefault(token, len(self._tokens) - 1)
        return number


class Model:
    """A model without latency: it knows which of LightRAG's prompts it was sent, and answers from the workload."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._embedding = workload.Embedding()
        self.n_calls = 0

    async def complete(
        self, prompt: str, system_prompt: str | None = None, history_messages: object = None, **_options: object
    ) -> str:
        """Return the reply to a prompt."""
        self.n_calls += 1
        with self._given.clock():
            return self._reply(prompt)

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text."""
        with self._given.clock():
            return self._embedding.vectors(texts)

    def _reply(self, prompt: str) -> str:
        if text := _INPUT.search(prompt):
            return _rows(text.group(1))
        if "Based on the last extraction task" in prompt:
            return DONE
        if asked := _ASKED.search(prompt):
            found = workload.names(asked.group(1))
            return json.dumps({"high_level_keywords": workload.THEMES, "low_level_keywords": found})
        if "Description List" in prompt:
            return SUMMARY
        raise ValueError(f"LightRAG asked something unknown: {prompt[:200]!r}")


async def ingest(folder: Path, index: Path, n_chunks: int) -> None:
    """Fill a new store: four fifths of the documents, then the rest, each as one `ainsert`."""
    documents = workload.document_paths(folder, n_chunks)
    n_last = max(1, round(len(documents) * LAST_SHARE))
    given = Given()
    model = Model(given)
    whole, last = Meter(given), Meter(given)
    rag = await _open(index, model)
    watching = asyncio.create_task(_watch(model, 2 * n_chunks))
    with whole.running():
        await _insert(rag, documents[:-n_last])
        with last.running():
            await _insert(rag, documents[-n_last:])
    watching.cancel()
    graph = rag.chunk_entity_relation_graph._graph
    text_bytes = sum(document.stat().st_size for document in documents)
    values = whole.values(per=n_chunks)
    values |= {
        "last_cpu_s": last.values(per=n_last * workload.CHUNKS_PER_DOCUMENT)["cpu_s"],
        "disk_bytes": (process.bytes_on_disk(index) - text_bytes) / n_chunks,
        **process.peak_memory(),
        "n_chunks": len(rag.text_chunks._data),
        "n_entities": graph.number_of_nodes(),
        "n_relations": graph.number_of_edges(),
        "n_calls": model.n_calls,
    }
    process.report(SYSTEM, "ingest", n_chunks, values)
    await rag.finalize_storages()


async def grow(folder: Path, index: Path, n_chunks: int) -> None:
    """Add documents one by one to a full store, of one chunk and of ten; then remove some of those of ten."""
    given = Given()
    rag = await _open(index, Model(given))
    for step, n_chunks_each in (("add1", 1), ("add10", workload.CHUNKS_PER_DOCUMENT)):
        first, *others = workload.addition_paths(folder, N_ADDED[step] + 1, n_chunks_each)
        await _insert(rag, [first])
        meters = []
        for number, path in enumerate(others):
            process.progress(number, len(others))
            meters.append(Meter(given))
            n_before = len(rag.text_chunks._data)
            with meters[-1].running():
                await _insert(rag, [path])
            if len(rag.text_chunks._data) != n_before + n_chunks_each:
                raise RuntimeError(f"{path.name} was not added.")
        process.report(SYSTEM, step, n_chunks, process.median_of(meters))
    await rag.finalize_storages()


async def ask(folder: Path, index: Path, n_chunks: int) -> None:
    """Open a full store; ask questions for the first time, and again."""
    lightrag = importlib.import_module("lightrag")
    for name in IMPORTED:
        importlib.import_module(name)
    given = Given()
    opened, first = Meter(given), Meter(given)
    with opened.running():
        rag = await _open(index, Model(given))
    param = lightrag.QueryParam(mode="mix", only_need_context=True)
    with first.running():
        await rag.aquery(WARM_UP, param)
    values = {
        **opened.values(),
        "first_cpu_s": opened.cpu_s + first.cpu_s,
        "first_wall_s": opened.wall_s + first.wall_s,
    }
    process.report(SYSTEM, "open", n_chunks, values)
    questions = workload.Texts().questions()
    for step in ("ask", "again"):
        cpu, wall, handed = [], [], []
        for number, question in enumerate(questions):
            process.progress(number, len(questions))
            meter = Meter(given)
            with meter.running():
                context = await rag.aquery(question, param)
            if not context or "[no-context]" in context:
                raise RuntimeError(f"Nothing was found for {question!r}.")
            cpu.append(meter.cpu_s)
            wall.append(meter.wall_s)
            handed.append(float(meter.handed))
        asked = {
            "cpu_s": process.percentile(cpu, 0.5),
            "cpu_p95_s": process.percentile(cpu, 0.95),
            "wall_s": process.percentile(wall, 0.5),
            "handed_bytes": process.percentile(handed, 0.5),
        }
        process.report(SYSTEM, step, n_chunks, asked)
    await rag.finalize_storages()


async def remove(folder: Path, index: Path, n_chunks: int) -> None:
    """Remove a few documents of ten chunks, one by one, as LightRAG does."""
    given = Given()
    rag = await _open(index, Model(given))
    meters = []
    documents = workload.document_paths(folder, n_chunks)
    for path in documents[:: max(1, len(documents) // N_REMOVED)][:N_REMOVED]:
        meters.append(Meter(given))
        with meters[-1].running():
            result = await rag.adelete_by_doc_id(path.stem)
        if result.status != "success":
            raise RuntimeError(f"LightRAG did not remove {path.stem}: {result.message}")
    median = process.median_of(meters)
    per_chunk = {name: value / workload.CHUNKS_PER_DOCUMENT for name, value in median.items()}
    process.report(SYSTEM, "remove", n_chunks, per_chunk)
    await rag.finalize_storages()


async def vectors(folder: Path, index: Path, n_chunks: int) -> None:
    """Search, grow and open the vector store that LightRAG uses."""
    nano = importlib.import_module("nano_vectordb")
    storage = str(index / "vectors.json")
    random = np.random.default_rng(7)
    data = random.standard_normal((N_VECTORS + N_VECTORS_ADDED, workload.DIMENSION)).astype(np.float32)
    given = Given()
    store = nano.NanoVectorDB(workload.DIMENSION, storage_file=storage)
    store.upsert([{"__id__": str(row), "__vector__": vector} for row, vector in enumerate(data[:N_VECTORS])])
    store.save()
    added, opened, asked = Meter(given), Meter(given), Meter(given)
    with added.running():
        rows = enumerate(data[N_VECTORS:], N_VECTORS)
        store.upsert([{"__id__": str(row), "__vector__": vector} for row, vector in rows])
        store.save()
    with opened.running():
        store = nano.NanoVectorDB(workload.DIMENSION, storage_file=storage)
    with asked.running():
        for row in range(N_VECTOR_QUERIES):
            store.query(data[row], top_k=10)
    process.report(SYSTEM, "vectors", N_VECTORS, {
        "query_s": asked.cpu_s / N_VECTOR_QUERIES,
        "query_wall_s": asked.wall_s / N_VECTOR_QUERIES,
        "add_s": added.wall_s,
        "open_s": opened.wall_s,
    })  # fmt: skip


async def _open(index: Path, model: Model) -> Any:
    lightrag, utils = importlib.import_module("lightrag"), importlib.import_module("lightrag.utils")
    for name in ("lightrag", "nano-vectordb"):
        logging.getLogger(name).setLevel(logging.ERROR)
    rag = lightrag.LightRAG(
        working_dir=str(index),
        llm_model_func=model.complete,
        embedding_func=utils.EmbeddingFunc(embedding_dim=workload.DIMENSION, max_token_size=8_192, func=model.embed),
        tokenizer=utils.Tokenizer("words", WordTokens()),
    )
    await rag.initialize_storages()
    return rag


async def _insert(rag: Any, documents: Sequence[Path]) -> None:
    if documents:
        texts = [document.read_text("utf-8") for document in documents]
        stems = [document.stem for document in documents]
        await rag.ainsert(texts, ids=stems, file_paths=[document.name for document in documents])


async def _watch(model: Model, n_calls: int) -> None:
    while True:
        await asyncio.sleep(1)
        process.progress(min(model.n_calls, n_calls), n_calls)


def _rows(text: str) -> str:
    found = workload.entities(text)
    rows = [("entity", one.name, workload.ENTITY_TYPE, one.description) for one in found]
    keywords = ",".join(workload.KEYWORDS)
    related = [("relation", one.source, one.target, keywords, one.description) for one in workload.relations(found)]
    return "\n".join([*map(DELIMITER.join, [*rows, *related]), DONE])


STEPS = {"ingest": ingest, "grow": grow, "ask": ask, "remove": remove, "vectors": vectors}


def main() -> None:
    """Run the step that the command line names."""
    started = time.perf_counter()
    workload.Embedding()  # what is given is drawn before any clock runs
    step, folder, index, n_chunks = sys.argv[1:]
    if step in ("ingest", "vectors"):
        shutil.rmtree(index, ignore_errors=True)
        Path(index).mkdir(parents=True)
    asyncio.run(STEPS[step](Path(folder), Path(index), int(n_chunks)))
    sys.stderr.write(f"{step} {n_chunks}: {time.perf_counter() - started:.1f} s\n")


if __name__ == "__main__":
    main()
