"""LightRAG kept waiting: one ingest with a model of some latency, by the Python of its own environment.

    python -m benchmarks.speed.lightrag_busy FOLDER INDEX N_CHUNKS LATENCY_S CONCURRENCY

The model answers as for the speed table, after a log-normal time. LightRAG may make as many calls at a time, and read
as many documents as its documentation advises for that (a third of the calls, at most ten). Prints one line of JSON.
"""

import asyncio
import importlib
import json
import logging
import random
import sys
import time
from math import log
from pathlib import Path
from typing import Any

from benchmarks.speed import lightrag_driver, workload
from benchmarks.speed.process import Given

SIGMA = 0.5
MAX_DOCUMENTS = 10


class SlowModel(lightrag_driver.Model):
    """Answers after a time drawn from a log-normal distribution; `latency_s` is what its calls took together."""

    def __init__(self, mean_s: float) -> None:
        super().__init__(Given())
        self.latency_s = 0.0
        self.n_running = self.peak = 0
        self._mean_s = mean_s
        self._chance = random.Random(1)

    async def complete(
        self, prompt: str, system_prompt: str | None = None, history_messages: object = None, **options: object
    ) -> str:
        """Return the reply, late."""
        latency = self._chance.lognormvariate(log(self._mean_s) - SIGMA**2 / 2, SIGMA)
        self.latency_s += latency
        self.n_running += 1
        self.peak = max(self.peak, self.n_running)
        await asyncio.sleep(latency)
        self.n_running -= 1
        return await super().complete(prompt, system_prompt, history_messages, **options)


async def busy(folder: Path, index: Path, n_chunks: int, latency_s: float, concurrency: int) -> dict[str, float]:
    """Insert all documents and return what that took."""
    model = SlowModel(latency_s)
    rag = await _open(index, model, concurrency)
    documents = workload.document_paths(folder, n_chunks)
    workload.write(documents, workload.CHUNKS_PER_DOCUMENT, workload.Texts())
    begun, cpu_begun = time.perf_counter(), time.process_time()
    await lightrag_driver._insert(rag, documents)
    wall_s, cpu_s = time.perf_counter() - begun, time.process_time() - cpu_begun
    await rag.finalize_storages()
    perfect_s = model.latency_s / concurrency
    return {
        "n_chunks": n_chunks,
        "n_calls": model.n_calls,
        "peak": model.peak,
        "perfect_s": perfect_s,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
    }


async def _open(index: Path, model: SlowModel, concurrency: int) -> Any:
    lightrag, utils = importlib.import_module("lightrag"), importlib.import_module("lightrag.utils")
    for name in ("lightrag", "nano-vectordb"):
        logging.getLogger(name).setLevel(logging.ERROR)
    rag = lightrag.LightRAG(
        working_dir=str(index),
        llm_model_func=model.complete,
        llm_model_max_async=concurrency,
        max_parallel_insert=max(2, min(MAX_DOCUMENTS, concurrency // 3)),
        embedding_func=utils.EmbeddingFunc(embedding_dim=workload.DIMENSION, max_token_size=8_192, func=model.embed),
        tokenizer=utils.Tokenizer("words", lightrag_driver.WordTokens()),
    )
    await rag.initialize_storages()
    return rag


def main() -> None:
    """Run as the arguments say."""
    folder, index, n_chunks, latency_s, concurrency = sys.argv[1:]
    values = asyncio.run(busy(Path(folder), Path(index), int(n_chunks), float(latency_s), int(concurrency)))
    sys.stdout.write(f"{json.dumps(values)}\n")


if __name__ == "__main__":
    main()
