"""Own cost of ingest against the size of the index: CPU, bytes written and disk, extraction and vectors given.

Documents of ten chunks of about 900 words; each chunk says eight entities, drawn by Zipf's law from 20,000 two-word
names, and eight relations among them in a ring. One commit a document, then its vectors; nothing a query needs is stale
when the clock stops.

    python benchmarks/ingest.py              # 200, 1,000 and 4,000 chunks
    python benchmarks/ingest.py 200 40000    # these sizes
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np

from quipu.model.delta import ChunkFacts, Delta, DocumentFacts, VectorRow
from quipu.model.graph import Chunk, EntityMention, RelationMention
from quipu.model.ids import chunk_id, digest
from quipu.stores.relational.sqlite import SqliteBackend
from quipu.stores.relational.store import RelationalStore
from quipu.text.names import entity_key

SIZES = (200, 1_000, 4_000)
CHUNKS_PER_DOCUMENT = 10
WORDS_PER_CHUNK = 900
ENTITIES_PER_CHUNK = 8
N_NAMES = 20_000
N_WORDS = 30_000
MODEL, DIMENSION = "given", 384


class Texts:
    """Draws names and filler words by Zipf's law (Mandelbrot's form, 1 / (rank + 2.7)), from a fixed seed."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        syllables = [a + b + c for a in "bdgklmnprstvz" for b in "aeiou" for c in ("n", "l", "r", "s", "m")]
        parts = [(x + y).capitalize() for x in syllables[::5] for y in syllables[::11]]
        pairs = {f"{random.choice(parts)} {random.choice(parts)}" for _ in range(2 * N_NAMES)}
        self._names = sorted(pairs)[:N_NAMES]
        random.shuffle(self._names)
        self._words = [f"{random.choice(syllables)}{random.choice(syllables)}{n % 97}" for n in range(N_WORDS)]
        self._random = np.random.default_rng(seed)

    def names(self) -> list[str]:
        """Return the distinct names of one chunk."""
        return list(dict.fromkeys(self._names[rank] for rank in self._ranks(ENTITIES_PER_CHUNK, N_NAMES)))

    def chunk(self, names: Sequence[str]) -> str:
        """Return the text of one chunk that names these."""
        words = [self._words[rank] for rank in self._ranks(WORDS_PER_CHUNK, N_WORDS)]
        step = WORDS_PER_CHUNK // ENTITIES_PER_CHUNK
        for position, name in enumerate(names):
            words[position * step] = name
        return " ".join(words)

    def _ranks(self, n: int, population: int) -> list[int]:
        shares = np.cumsum(1 / (np.arange(population) + 3.7))
        return [int(rank) for rank in np.searchsorted(shares, self._random.random(n) * shares[-1])]


def document(number: int, texts: Texts) -> DocumentFacts:
    """Return the facts of one document."""
    name = f"document-{number}"
    chunks: list[ChunkFacts] = []
    start = 0
    for ordinal in range(CHUNKS_PER_DOCUMENT):
        names = texts.names()
        text = texts.chunk(names)
        text_hash = digest(text)
        chunk = Chunk(
            id=chunk_id(name, text_hash, 0),
            document_id=name,
            title=name,
            ordinal=ordinal,
            text=text,
            start=start,
            end=start + len(text),
            n_tokens=len(text) // 4,
            text_hash=text_hash,
            input_hash=text_hash,
        )
        start += len(text) + 2
        chunks.append(_said(chunk, names, f"{number}-{ordinal}"))
    return DocumentFacts(id=name, title=name, content_hash=digest(name), chunks=tuple(chunks))


def _said(chunk: Chunk, names: Sequence[str], where: str) -> ChunkFacts:
    keys = [entity_key(name) for name in names]
    ring = list(zip(keys, keys[1:] + keys[:1], strict=True)) if len(keys) > 1 else []
    return ChunkFacts(
        chunk=chunk,
        entities=tuple(
            EntityMention(key=key, surface=name, type="Person", description=f"{name} is a person seen in {where}.")
            for key, name in zip(keys, names, strict=True)
        ),
        relations=tuple(
            RelationMention(source=a, target=b, keywords=("works with",), description=f"{a} works with {b} in {where}.")
            for a, b in ring
        ),
    )


async def ingest(folder: Path, sizes: Sequence[int]) -> None:
    """Fill one index up to the largest size and print a line at each."""
    store = RelationalStore(SqliteBackend(folder / "index.sqlite", busy_timeout_s=5), lease_s=60)
    await store.prepare()
    await store.use_embedder(MODEL, DIMENSION)
    texts = Texts(seed=1)
    vector = np.random.default_rng(2).normal(size=DIMENSION).astype(np.float16)
    print(f"{'chunks':>8} {'CPU ms/chunk':>13} {'since last':>11} {'MB written/chunk':>17} {'disk KB/chunk':>14}")
    n_chunks, cpu, last = 0, 0.0, (0, 0.0)
    for size in sorted(sizes):
        while n_chunks < size:
            facts = document(n_chunks // CHUNKS_PER_DOCUMENT, texts)
            begun = time.process_time()
            await store.commit(Delta(publish=[facts]))
            while stale := await store.stale_texts(MODEL, 1_024):
                rows = [VectorRow(model=MODEL, text_hash=text_hash, data=vector) for text_hash in stale]
                await store.commit(Delta(vectors=rows))
            cpu += time.process_time() - begun
            n_chunks += CHUNKS_PER_DOCUMENT
        recent = (cpu - last[1]) / (n_chunks - last[0])
        last = (n_chunks, cpu)
        disk = _bytes_on_disk(folder)
        print(
            f"{n_chunks:>8,} {cpu / n_chunks * 1e3:>13.2f} {recent * 1e3:>11.2f} "
            f"{_bytes_written() / n_chunks / 1e6:>17.2f} {disk / n_chunks / 1e3:>14.1f}",
            flush=True,
        )
    await store.close()


def _bytes_on_disk(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _bytes_written() -> int:
    """Return the bytes this process has had written to disk, 0 where the system does not say."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


def main() -> None:
    """Measure at the sizes given, or the usual ones."""
    sizes = [int(argument) for argument in sys.argv[1:]] or SIZES
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(ingest(Path(folder), sizes))


if __name__ == "__main__":
    main()
