"""How each chunker cuts real texts: how many chunks, how full, how many of them an edit leaves alone, at what CPU.

    python benchmarks/chunking.py [--tokens 1200]

Texts are the passages of a book joined again: A Christmas Carol, with its lines and paragraphs, and the first novel of
graphragbench_novel8, which has neither. An edit puts one sentence in; the share of chunks kept is the mean over eleven
edits between 40 and 60 % of the text, each of the unedited text. CPU is the least of three runs; of `semantic` with and
without the embedding of its sentences. Where the data is missing, this says so and ends.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from quipu.ingest.chunkers import chunk_spans, sentences_to_compare
from quipu.ingest.chunkers.semantic import sentence_similarities
from quipu.model.chunking import Chunking
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse import parse
from quipu.ports.providers import Embedder
from quipu.providers.local import ByteTokenizer, WordLlamaEmbedder

DATA = Path(os.environ.get("QUIPU_DATA", Path(__file__).resolve().parents[1] / "../shared/data"))
SETS = ("christmas_carol_nano", "graphragbench_novel8")
EDIT = "This sentence was not in the book before. "
N_RUNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a chunker does to a text; `cpu_ms` and `embedding_ms` are for 100 kB of it."""

    n_chunks: int
    fill: float
    kept: float
    repeated: float
    cpu_ms: float
    embedding_ms: float


def chunkings(max_tokens: int) -> dict[str, Chunking]:
    """Return what is compared."""
    return {
        "structure": Chunking(max_tokens=max_tokens),
        "fixed": Chunking(method="fixed", max_tokens=max_tokens),
        "fixed, no overlap": Chunking(method="fixed", max_tokens=max_tokens, overlap=0),
        "separator": Chunking(method="separator", separator="\n\n", max_tokens=max_tokens),
        "separator alone": Chunking(method="separator", separator="\n\n"),
        "semantic": Chunking(method="semantic", max_tokens=max_tokens),
    }


def book(name: str) -> str:
    """Return the first book of a data set: the passages that have the title of the first one."""
    lines = (DATA / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    passages = [json.loads(line) for line in lines]
    return "\n\n".join(passage["text"] for passage in passages if passage["title"] == passages[0]["title"])


def parsed(text: str) -> ParsedDocument:
    """Return a text as it is read."""
    return parse(SourceDocument(id="book", content=text.encode(), media_type="text/plain"))


def edits(text: str) -> Iterator[str]:
    """Yield the text with a sentence put in before a word, at eleven places around its middle."""
    for percent in range(40, 62, 2):
        place = text.index(" ", len(text) * percent // 100) + 1
        yield text[:place] + EDIT + text[place:]


async def likeness(document: ParsedDocument, chunking: Chunking, embedder: Embedder) -> list[float]:
    """Return how alike the neighbouring sentences of a document are; nothing where nobody asks."""
    return (await sentence_similarities([sentences_to_compare(document, chunking)], embedder))[0]


async def texts(text: str, chunking: Chunking, embedder: Embedder) -> list[str]:
    """Return the texts of the chunks."""
    document = parsed(text)
    spans = chunk_spans(
        document,
        chunking,
        count=ByteTokenizer().count,
        similarities=await likeness(document, chunking, embedder),
    )
    return [document.text[span.start : span.end] for span in spans]


async def measure(text: str, chunking: Chunking, max_tokens: int, embedder: Embedder) -> Figures:
    """Return the figures of one chunker on one text."""
    count = ByteTokenizer().count
    document = parsed(text)
    before = await texts(text, chunking, embedder)
    kept = [
        len(set(before) & set(await texts(edited, chunking, embedder))) / len(set(before)) for edited in edits(text)
    ]
    cpu, embedding = [], []
    for _ in range(N_RUNS):
        start = time.process_time()
        alike = await likeness(document, chunking, embedder)
        embedded = time.process_time()
        chunk_spans(document, chunking, count=count, similarities=alike)
        cpu.append(time.process_time() - embedded)
        embedding.append(embedded - start)
    scale = 1_000 * 100_000 / len(text.encode())
    return Figures(
        n_chunks=len(before),
        fill=mean(map(count, before)) / max_tokens,
        kept=mean(kept),
        repeated=sum(map(len, before)) / len(text) - 1,
        cpu_ms=min(cpu) * scale,
        embedding_ms=min(embedding) * scale,
    )


async def report(max_tokens: int) -> None:
    """Print the table of every text."""
    embedder = WordLlamaEmbedder()
    await embedder.embed(["load"])
    for name in SETS:
        if not (DATA / name).is_dir():
            print(f"{name} is not in {DATA}: left out")
            continue
        text = book(name)
        print(f"\n{name}: {len(text.encode()):,} bytes, at most {max_tokens:,} tokens a chunk")
        print("| chunker | chunks | mean fill | kept after an edit | repeated text | CPU ms / 100 kB | embedding |")
        print("|---|---|---|---|---|---|---|")
        for label, chunking in chunkings(max_tokens).items():
            found = await measure(text, chunking, max_tokens, embedder)
            print(
                f"| {label} | {found.n_chunks:,} | {found.fill:.2f} | {found.kept:.1%} | {max(0, found.repeated):.1%}"
                f" | {found.cpu_ms:.0f} | {found.embedding_ms:.0f} |"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure every chunker on real texts.")
    parser.add_argument("--tokens", type=int, default=1_200, help="most tokens a chunk")
    asyncio.run(report(parser.parse_args().tokens))
