"""Measures every strategy on a large index: what a question takes of all of it, of a tenth, and after a commit.

    python benchmarks/strategies_at_scale.py [--full] [--only STRATEGY…] [--keep DIR] [--json FILE]

The index is made up, from a fixed seed: as many chunks as entities, four times as many relations, in groups of fifty
with every seventh relation leading anywhere, to some entities by the thousand. It is made by commits, with every
derivation, of vectors of 64 hashed words; no language model is asked. At 10⁴ entities, with --full at 10⁵ too: to make
that takes half an hour, so --keep keeps it, and takes it where it is there. A figure is the median of a few questions,
by the clock and of the process's own time, from opening the view to evidence; `first` is that of the first question.
Of the whole index the first strategy reads arrays that those after it find in memory: to see what another takes, ask
for it alone, with --only. Under a filter each has one of its own, of which nothing is known yet. "changed" is the whole
index again, where before each question a document came or went, with its vectors.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import median
from zlib import crc32

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that it runs as a file, too

from benchmarks.speed.opening import opened
from quipu.derive.catalog import CATALOG
from quipu.derive.derivation import embed_stale
from quipu.engine import Components, Quipu
from quipu.ingest.documents import IngestConfig
from quipu.ingest.local import LocalExtractor
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.event import ignore_event
from quipu.model.query import Condition, Filter, Query
from quipu.parse import FILE_TYPES, parse
from quipu.ports.store import Store
from quipu.providers.local import ByteTokenizer
from quipu.retrieve import STRATEGIES
from quipu.stores.relational.sql import blocks
from quipu.testing.facts import document, entity, passage, relation

Ints = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]

SIZES = (10_000, 100_000)
RELATIONS_PER_ENTITY, CHUNKS_PER_DOCUMENT, GROUP = 4, 10, 50
N_QUESTIONS = 5  # and a first one, so that a document that comes and goes is gone at the end
CHANGED = "changed"
DOCUMENTS_PER_COMMIT = 200
TYPES = ("person", "place", "organization", "event", "work", "date", "concept", "object")
TENTH = Filter(where=(Condition(field="part", operator="=", value="3"),))
DIMENSION, N_BUCKETS, N_WORDS = 64, 1 << 15, 2_000
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What a question takes, in milliseconds: the first, and the median of others by the clock and of the processor."""

    strategy: str
    allowed: str
    first_ms: float
    ms: float
    cpu_ms: float
    n_chunks: int


class HashedWords:
    """Embeds a text as the sum of fixed random vectors of its words, at a microsecond a word."""

    identity, dimension = "hashed-words/1", DIMENSION

    def __init__(self) -> None:
        self._table = np.random.default_rng(7).normal(size=(N_BUCKETS, DIMENSION)).astype(np.float32)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector a text; zeros for one without words."""
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            places = [crc32(word.encode()) % N_BUCKETS for word in _WORD.findall(text.casefold())]
            vector[:] = self._table[places].sum(axis=0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(lengths, lengths, 1)).astype(np.float32)

    embed_queries = embed


def documents(n: int) -> Iterator[DocumentFacts]:
    """Yield the documents of an index of n entities: each chunk introduces one and states the relations it is given."""
    chance = np.random.default_rng(0)
    names = _names(n, chance)
    sources, targets, by_chunk = _relations(n, chance)
    words = [word.lower() for word in _names(N_WORDS, chance)]
    for number, chunks in enumerate(blocks(range(n), CHUNKS_PER_DOCUMENT)):
        passages = []
        for chunk in chunks:
            pairs = [(names[sources[i]], names[targets[i]]) for i in by_chunk[chunk] if sources[i] != targets[i]]
            verbs = [words[(chunk + at) % N_WORDS] for at in range(len(pairs))]
            ways = [words[each] for each in chance.integers(N_WORDS, size=len(pairs)).tolist()]
            told = [f"{a} {verb} {b} by the {way}" for (a, b), verb, way in zip(pairs, verbs, ways, strict=True)]
            kind = TYPES[chunk % len(TYPES)]
            about = f"{names[chunk]} is a {kind} of {words[chunk // GROUP % N_WORDS]}"
            ends = [entity(each) for each in dict.fromkeys(chain(*pairs)) if each != names[chunk]]
            said = [relation(a, b, text) for (a, b), text in zip(pairs, told, strict=True)]
            text = " ".join(f"{each}." for each in (about, *told))
            passages.append(passage(text, entity(names[chunk], kind, about, is_definition=True), *ends, *said))
        part = str(10 * number * CHUNKS_PER_DOCUMENT // n)
        yield document(f"d{number:06}", *passages, title=f"Document {number}", metadata={"part": part})


def questions(n: int) -> list[str]:
    """Return questions on entities of the part of the documents that a filter allows."""
    names = _names(n, np.random.default_rng(0))
    pairs = ((3 * n // 10 + 7 * i + 1, 3 * n // 10 + 7 * i + 5) for i in range(N_QUESTIONS + 1))
    return [f"How is {names[one]} connected to {names[other]}?" for one, other in pairs]


async def fill(kb: Quipu, store: Store, n: int) -> None:
    """Make an index of n entities with every derivation."""
    begun = time.perf_counter()
    for some in blocks(documents(n), DOCUMENTS_PER_COMMIT):
        await store.commit(Delta(publish=some))
    print(f"  {time.perf_counter() - begun:,.0f} s: documents", flush=True)
    for name in ("", *(each.name for each in CATALOG)):
        await kb.refresh([name] if name else [])
        print(f"  {time.perf_counter() - begun:,.0f} s: {name or 'vectors'}", flush=True)


async def measure(kb: Quipu, parts: Components, n: int, strategies: Sequence[str]) -> AsyncIterator[Figure]:
    """Yield what each strategy takes."""
    for of in ("all", "a tenth", "changed"):
        for strategy in strategies:
            # A filter nobody has asked with: what was worked out for another strategy is not found again.
            allowed = replace(TENTH, exclude=(f"for {strategy}",)) if of == "a tenth" else Filter()
            taken = []
            for place, text in enumerate(questions(n)):
                if of == "changed":
                    await _change(parts, is_there=bool(place % 2))
                start, cpu = time.perf_counter(), time.process_time()
                found = await kb.retrieve(Query(text=text, strategy=strategy, filter=allowed))
                taken.append(((time.perf_counter() - start) * 1e3, (time.process_time() - cpu) * 1e3))
            (first_ms, _), *others = taken
            yield Figure(
                strategy=strategy,
                allowed=of,
                first_ms=first_ms,
                ms=median(ms for ms, _ in others),
                cpu_ms=median(cpu_ms for _, cpu_ms in others),
                n_chunks=len(found.chunks),
            )


async def _change(parts: Components, *, is_there: bool) -> None:
    """Add a document, or remove it where it is there, and bring the vectors up to date."""
    if is_there:
        await parts.store.commit(Delta(remove=[CHANGED]))
        return
    about = "Zuzu bought Bibi from Kolo by the river"
    facts = passage(f"{about}.", entity("Zuzu", "person"), entity("Bibi"), relation("Zuzu", "Bibi", about))
    await parts.store.commit(Delta(publish=[document(CHANGED, facts, title="Changed")]))
    await embed_stale(parts.store, parts.embedder, ignore_event)


def open_index(folder: Path) -> AbstractAsyncContextManager[tuple[Quipu, Components]]:
    """Open an engine with the local embedder above over an index in a folder."""
    embedder = HashedWords()
    ingest_config = IngestConfig(
        parse=parse,
        file_types=FILE_TYPES,
        extractor=LocalExtractor(),
        tokenizer=ByteTokenizer(),
        embedder=embedder,
    )
    return opened(folder, ingest_config, embedder)


def _relations(n: int, chance: np.random.Generator) -> tuple[Ints, Ints, list[Ints]]:
    """Return the sources and targets of relations, and which of them each chunk states, [n]."""
    sources = np.repeat(np.arange(n), RELATIONS_PER_ENTITY)
    near = sources // GROUP * GROUP + chance.integers(0, GROUP, len(sources))
    anywhere = chance.permutation(n)[(n * chance.random(len(sources)) ** 3).astype(np.int64)]
    targets = np.minimum(np.where(chance.random(len(sources)) < 1 / 7, anywhere, near), n - 1)
    stated_in = np.minimum(sources // GROUP * GROUP + chance.integers(0, GROUP, len(sources)), n - 1)
    order = np.argsort(stated_in, kind="stable")
    return sources, targets, np.split(order, np.searchsorted(stated_in[order], np.arange(1, n)))


def _names(n: int, chance: np.random.Generator) -> list[str]:
    """Return n different names."""
    base = len(_SYLLABLES)
    codes = (base**3 + chance.permutation(max(n, base**3))[:n]).tolist()
    spelt = ("".join(_SYLLABLES[code // base**at % base] for at in range(4) if code >= base**at) for code in codes)
    return [word.title() for word in spelt]


async def _measure_all(sizes: Sequence[int], strategies: Sequence[str], folder: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for n in sizes:
        print(f"\n{n:,} entities and chunks, {RELATIONS_PER_ENTITY * n:,} relations", flush=True)
        place = folder / str(n)
        is_made = (place / "made").exists()
        place.mkdir(parents=True, exist_ok=True)
        if not is_made:
            async with open_index(place) as (kb, parts):
                await fill(kb, parts.store, n)
            (place / "made").touch()
        async with open_index(place) as (kb, parts):
            async for figure in measure(kb, parts, n, strategies):
                print(
                    f"  {figure.strategy:<18}{figure.allowed:<9}{figure.ms:>10,.1f} ms, cpu {figure.cpu_ms:>8,.1f} ms"
                    f"   first {figure.first_ms:>10,.1f} ms   {figure.n_chunks} chunks",
                    flush=True,
                )
                found.append({"n_entities": n, **asdict(figure)})
    return found


def main() -> None:
    """Measure, print, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="also at 10⁵ entities")
    parser.add_argument("--only", nargs="+", choices=sorted(STRATEGIES), help="strategies to measure (default: all)")
    parser.add_argument("--keep", type=Path, help="a folder where the indexes are kept, and taken from")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sizes = SIZES if given.full else SIZES[:1]
        found = asyncio.run(_measure_all(sizes, given.only or list(STRATEGIES), given.keep or Path(folder)))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
