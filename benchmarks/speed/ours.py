"""Ours: one step of the measurement with Quipu, in a process of its own.

    python -m benchmarks.speed.ours STEP FOLDER INDEX N_CHUNKS

Everything goes through the engine as a user's work does; only the extractor, the embedder and the token count are
given. The clock stops when `add` returns, when nothing a query needs is stale.
"""

import asyncio
import json
import shutil
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.speed import process, workload
from benchmarks.speed.opening import opened
from benchmarks.speed.process import Given, Meter
from quipu.answer.packing import pack_evidence
from quipu.derive.derivation import embed_stale
from quipu.engine import Components, Quipu
from quipu.ingest.documents import IngestConfig, chunk_document, content_hash, parse_document
from quipu.ingest.extraction import chunk_facts
from quipu.ingest.sources import find_sources
from quipu.model.chunking import Chunking
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.document import SourceDocument
from quipu.model.event import Event, Progress, ignore_event
from quipu.model.extraction import ChunkInput, ExtractedEntity, ExtractedRelation, Extraction
from quipu.parse import FILE_TYPES, parse
from quipu.ports.ingest import ExtractionResult
from quipu.retrieve import strategy_named
from quipu.retrieve.strategy import Tools

SYSTEM = "quipu"
LAST_SHARE = 0.2  # of the chunks: what the last ones cost is measured on its own
DOCUMENTS_PER_COMMIT = 29  # of 68 kB: as many as the pipeline reads at once
REMOVED_EVERY = 10
WARM_UP = "Who were the first to arrive?"


class WordTokenizer:
    """Counts words, as the workload does, by the spaces and blank lines between them."""

    @property
    def identity(self) -> str:
        """Name of the rule."""
        return "words/1"

    def count(self, text: str) -> int:
        """Return the number of words; 0 only for the empty text."""
        return text.count(" ") + text.count("\n") - text.count("\n\n") + 1 if text else 0


class GivenExtractor:
    """Answers at once with what the workload says of a chunk, on the account of `given`."""

    identity = "given/1"
    description = "replies of the benchmark"
    n_ahead = 0

    def __init__(self, given: Given) -> None:
        self._given = given

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return 0: no model is asked."""
        return 0

    async def check(self) -> None:
        """Return: the replies are given."""

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Yield one outcome for each chunk."""
        for index, one in enumerate(inputs):
            with self._given.clock():
                extraction = _said(one.text)
            yield ExtractionResult(index=index, extraction=extraction)


class GivenEmbedder:
    """Answers with the vectors of the workload, on the account of `given`."""

    identity = "given/384"
    dimension = workload.DIMENSION

    def __init__(self, given: Given) -> None:
        self._given = given
        self._embedding = workload.Embedding()

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector a text."""
        with self._given.clock():
            return self._embedding.vectors(texts)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector a question: the same as for a passage."""
        return await self.embed(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where the texts and the index are, how many chunks it holds, and how many questions it is asked."""

    folder: Path
    index: Path
    n_chunks: int
    n_questions: int = workload.N_QUESTIONS

    def documents(self) -> list[Path]:
        """Return the documents of the index."""
        return workload.document_paths(self.folder, self.n_chunks)

    def report(self, step: str, values: dict[str, float]) -> None:
        """Hand a measurement to the process above."""
        process.report(SYSTEM, step, self.n_chunks, values)


async def ingest(bench: Bench) -> None:
    """Fill a new index: four fifths of the documents, then the rest, each by one `add`, with opening and closing."""
    documents = bench.documents()
    n_last = max(1, round(len(documents) * LAST_SHARE))
    given = Given()
    whole, last = Meter(given), Meter(given)
    with whole.running():
        await _add(bench, documents[:-n_last], given)
        with last.running():
            await _add(bench, documents[-n_last:], given)
    text_bytes = sum(document.stat().st_size for document in documents)
    values = whole.values(per=bench.n_chunks)
    values["last_cpu_s"] = last.values(per=n_last * workload.CHUNKS_PER_DOCUMENT)["cpu_s"]
    values["disk_bytes"] = (process.bytes_on_disk(bench.index) - text_bytes) / bench.n_chunks
    values |= process.peak_memory()
    async with open_index(bench.index, given) as (kb, _):
        status = await kb.status()
        values |= {"n_chunks": status.n_chunks, "n_entities": status.n_entities, "n_relations": status.n_relations}
    bench.report("ingest", values)


async def store(bench: Bench) -> None:
    """Fill a new index by the store alone, with what `add` would hand it: facts and vectors, in commits of its size."""
    given = Given()
    meter = Meter(given)
    async with open_index(bench.index, given) as (_, parts):
        sources = find_sources(bench.documents(), root=bench.folder, file_types=FILE_TYPES)
        documents = (source for source in sources if isinstance(source, SourceDocument))
        while group := list(islice(documents, DOCUMENTS_PER_COMMIT)):
            facts = [_facts(one, parts.ingest_config) for one in group]
            with meter.running():
                await parts.store.commit(Delta(publish=facts))
                await embed_stale(parts.store, parts.embedder, ignore_event)
        with meter.running():
            async with parts.store.view() as view:
                await parts.vectors.catch_up(view)
    bench.report("store", meter.values(per=bench.n_chunks))


async def grow(bench: Bench) -> None:
    """Add documents one by one to a full index: of one chunk, and of ten."""
    given = Given()
    async with open_index(bench.index, given) as (kb, _):
        for step, n_chunks in (("add1", 1), ("add10", workload.CHUNKS_PER_DOCUMENT)):
            first, *others = workload.addition_paths(bench.folder, workload.N_ADDED, n_chunks)
            await kb.add(first)
            meters = []
            for path in others:
                meters.append(Meter(given))
                with meters[-1].running():
                    added = await kb.add(path)
                if added.n_added != 1:
                    raise RuntimeError(f"{path.name} was not added.")
            bench.report(step, process.median_of(meters))
        await kb.remove([document.id for document in await kb.documents() if "additions" in document.id])


async def ask(bench: Bench) -> None:
    """Open a full index; ask questions for the first time, again, and with an answer."""
    given = Given()
    opened = Meter(given)
    with opened.running():
        context = open_index(bench.index, given)
        kb, parts = await context.__aenter__()
    first = Meter(given)
    with first.running():
        await _context(parts, WARM_UP)
    bench.report(
        "open",
        {**opened.values(), "first_cpu_s": opened.cpu_s + first.cpu_s, "first_wall_s": opened.wall_s + first.wall_s},
    )
    questions = workload.Texts().questions(bench.n_questions)
    try:
        for step, work in (
            ("ask", lambda question: _context(parts, question)),
            ("again", lambda question: _context(parts, question)),
            ("answer", lambda question: _answer(kb, question)),
        ):
            bench.report(step, await _asked(questions, work, given))
    finally:
        await context.__aexit__(None, None, None)


async def remove(bench: Bench) -> None:
    """Remove every tenth document; say whether what the others said is the same to the byte, and every fold sound."""
    given = Given()
    async with open_index(bench.index, given) as (kb, _):
        going = [document.id for document in await kb.documents()][::REMOVED_EVERY]
        n_gone = len(going) * workload.CHUNKS_PER_DOCUMENT
        before = await facts_of_others(kb, frozenset(going))
        meter = Meter(given)
        with meter.running():
            await kb.remove(going, _on_event)
        after = await facts_of_others(kb, frozenset(going))
        values = meter.values(per=n_gone)
        values["is_same"] = float(before == after and not await kb.verify())
    bench.report("remove", values)


def open_index(index: Path, given: Given) -> AbstractAsyncContextManager[tuple[Quipu, Components]]:
    """Open an engine on a folder with what the benchmark gives."""
    embedder = GivenEmbedder(given)
    ingest_config = IngestConfig(
        parse=parse,
        file_types=FILE_TYPES,
        extractor=GivenExtractor(given),
        tokenizer=WordTokenizer(),
        embedder=embedder,
        chunking=Chunking(method="fixed", max_tokens=workload.WINDOW, overlap=workload.OVERLAP),
    )
    return opened(index, ingest_config, embedder)


def _said(text: str) -> Extraction:
    found = workload.entities(text)
    return Extraction(
        entities=tuple(
            ExtractedEntity(name=one.name, type=workload.ENTITY_TYPE, description=one.description) for one in found
        ),
        relations=tuple(
            ExtractedRelation(
                source=one.source, target=one.target, keywords=workload.KEYWORDS, description=one.description
            )
            for one in workload.relations(found)
        ),
    )


def _facts(source: SourceDocument, ingest_config: IngestConfig) -> DocumentFacts:
    read = chunk_document(parse_document(source, ingest_config), (), ingest_config)
    return DocumentFacts(
        id=source.id,
        title=read.parsed.title,
        content_hash=content_hash(source, ingest_config),
        chunks=tuple(chunk_facts(chunk, _said(chunk.text)) for chunk in read.chunks),
        source=source.source,
        media_type=source.media_type,
        text=read.parsed.text,
        original=source.content,
    )


async def _add(bench: Bench, documents: Sequence[Path], given: Given) -> None:
    if documents:
        async with open_index(bench.index, given) as (kb, _):
            await kb.add(*documents, on_event=_on_event)


async def _context(parts: Components, question: str) -> None:
    """Find evidence and render the context a model would be given."""
    query = parts.make_query(question)
    async with parts.store.view(query.filter) as view:
        tools = Tools(
            vectors=parts.vectors,
            embedder=parts.embedder,
            topology=parts.topology,
            tokenizer=parts.ingest_config.tokenizer,
        )
        evidence = await strategy_named("mix").retrieve(query, view, tools)
        packed = await pack_evidence(query, evidence, view, parts.ingest_config.tokenizer)
        if not packed.context():
            raise RuntimeError(f"Nothing was found for {question!r}.")


async def _answer(kb: Quipu, question: str) -> None:
    await kb.query(question, strategy="mix")


async def _asked(questions: Sequence[str], work: Callable[[str], Awaitable[None]], given: Given) -> dict[str, float]:
    cpu, wall = [], []
    for question in questions:
        meter = Meter(given)
        with meter.running():
            await work(question)
        cpu.append(meter.cpu_s)
        wall.append(meter.wall_s)
    return {
        "cpu_s": process.percentile(cpu, 0.5),
        "cpu_p95_s": process.percentile(cpu, 0.95),
        "wall_s": process.percentile(wall, 0.5),
    }


async def facts_of_others(kb: Quipu, going: frozenset[str]) -> str:
    """Return a hash of the lines of the dump that are about the documents that stay: all but folds and vectors."""
    hashed = blake2b()
    gone_chunks: set[str] = set()
    async for line in kb.dump():
        record = json.loads(line)
        if record["kind"] == "chunk" and record["document"] in going:
            gone_chunks.add(record["id"])
        about = record.get("chunk") or record.get("document") or record["id"] if _is_fact(record["kind"]) else ""
        if about and about not in going and about not in gone_chunks:
            hashed.update(line.encode())
    return hashed.hexdigest()


def _is_fact(kind: str) -> bool:
    return kind in ("chunk", "document", "entity_mention", "relation_mention", "link")


def _on_event(event: Event) -> None:
    if isinstance(event, Progress) and event.stage in ("extract", "remove"):
        process.progress(event.n_done, event.n_total)


STEPS = {"store": store, "ingest": ingest, "grow": grow, "ask": ask, "remove": remove}


def main() -> None:
    """Run the step that the command line names."""
    started = time.perf_counter()
    workload.Embedding()  # what is given is drawn before any clock runs
    step, folder, index, n_chunks = sys.argv[1:]
    bench = Bench(folder=Path(folder), index=Path(index), n_chunks=int(n_chunks))
    if step in ("store", "ingest"):
        shutil.rmtree(bench.index, ignore_errors=True)
        bench.index.mkdir(parents=True)
    asyncio.run(STEPS[step](bench))
    sys.stderr.write(f"{step} {n_chunks}: {time.perf_counter() - started:.1f} s\n")


if __name__ == "__main__":
    main()
