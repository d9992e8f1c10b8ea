"""A world for the laws with models: documents about the same few people, and an engine over the scripted server.

The documents share names, so that entities and relations have more descriptions than are shown and want summaries.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from quipu.derive.summaries import SummaryOptions
from quipu.engine import Components, Quipu
from quipu.engine.components import Models
from quipu.ingest.documents import IngestConfig
from quipu.ingest.llm import ExtractionOptions, LlmExtractor
from quipu.model.chat import Role
from quipu.model.chunking import Chunking
from quipu.model.document import SourceDocument
from quipu.model.query import Query
from quipu.parse import FILE_TYPES, parse
from quipu.ports.providers import Embedder
from quipu.providers.local import ByteTokenizer
from quipu.settings import Settings
from quipu.stores.relational.store import RelationalStore
from quipu.testing.llm import ScriptedEmbedder, ScriptedLLM
from quipu.testing.scripted.script import Fault, Latency, ReplyRules, Script
from quipu.topology import LocalTopologyIndex
from quipu.vectors.local import LocalVectors
from quipu.wiring import open_engine
from quipu.wrap.chain import LLMChain, ModelLink
from quipu.wrap.guard import RetryPolicy
from quipu.wrap.meter import Meter, ModelPricing
from tests.laws.world import open_backend

BATCH_TOKENS = 120  # of descriptions: a few, so that a summary takes several calls
AT_ONCE = Latency()
LONG_S, SHORT_S = 60.0, 2.0  # how long to wait for a reply: where none is to hang, and where one is to
IMPATIENT = RetryPolicy(max_attempts=3, max_paid=2, first_wait_s=0.0, max_wait_s=0.0, patience_s=30.0)

_NAMES = ("Marco Polo", "Kublai Khan", "Ibn Battuta", "Cai Lun", "Niccolo Polo", "Rustichello")
_DEEDS = ("met", "wrote to", "travelled with", "spoke of", "sold paper to", "waited for")
_PLACES = ("in the harbour", "on the road", "at the court", "by the river", "near the wall", "behind the gate")


def script(*faults: Fault, seed: str = "0", latency: Latency = AT_ONCE) -> Script:
    """Return a script whose first replies leave something out, so that there is something to glean."""
    return Script(seed=seed, faults=faults, answering=ReplyRules(n_withheld=2), latency=latency)


def travels(name: str, version: int = 0, *, n_sentences: int = 2) -> SourceDocument:
    """Return a document of sentences that each name two of the same few people, one of them by its own name."""
    random = Random(f"{name} {version}")
    own = name.partition(".")[0].capitalize()
    sentences = [f"The book of {own} was read by Marco Polo.", *(_sentence(random) for _ in range(n_sentences))]
    return SourceDocument(
        id=name, content=" ".join(sentences).encode(), media_type="text/markdown", title=f"Travels of {own}"
    )


def _sentence(random: Random) -> str:
    first, second = random.sample(_NAMES, 2)
    year = random.randint(1200, 1400)
    return f"In {year} did {first} say that {second} {random.choice(_DEEDS)} them {random.choice(_PLACES)}."


def model_settings(folder: Path, base_url: str, **values: Any) -> Settings:
    """Return settings with the scripted server for all that models can do."""
    chosen: dict[str, Any] = {
        "index": folder,
        "llm": "custom/scripted",
        "llm_base_url": base_url,
        "llm_timeout_s": LONG_S,
        "embedder": "openai",
        "embedder_model": "custom/words",
        "embedder_base_url": base_url,
        "embedder_dimension": 64,
        "chunk_tokens": 64,
        "always_glean": True,
    }
    return Settings(**{**chosen, **values})


@asynccontextmanager
async def model_engine(settings: Settings, *, batch_tokens: int = BATCH_TOKENS) -> AsyncIterator[Quipu]:
    """Open an engine that does not wait before it tries again, and sums up few descriptions at a time."""
    async with await open_engine(settings, retry=IMPATIENT) as kb:
        kb._components = replace(kb._components, summaries=replace(kb._components.summaries, batch_tokens=batch_tokens))
        yield kb


@asynccontextmanager
async def scripted_engine(
    folder: Path, llm: ScriptedLLM, *, embedder: Embedder | None = None, concurrency: int = 4
) -> AsyncIterator[Quipu]:
    """Open an engine whose models are in this process: without a server, as wiring would put it together."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    embedder, tokenizer = embedder or ScriptedEmbedder(), ByteTokenizer()
    store = RelationalStore(open_backend(folder), lease_s=60)
    await store.prepare()
    await store.set_embedder(embedder.identity, embedder.dimension)
    link = ModelLink(llm=llm, pricing=ModelPricing(model=llm.identity, price=None, count_tokens=tokenizer.count))
    chains = {role: LLMChain([link], store) for role in Role}
    meter = Meter(subject=None)
    extractor = LlmExtractor(
        chains[Role.EXTRACT].llm(meter), tokenizer, ExtractionOptions(always_glean=True), concurrency=concurrency
    )
    models = Models(
        meter=meter,
        chains=chains,
        n_ahead=concurrency,
        reader=lambda meter: extractor.with_llm(chains[Role.EXTRACT].llm(meter)),
    )
    ingest_config = IngestConfig(
        parse=parse,
        file_types=FILE_TYPES,
        extractor=extractor,
        tokenizer=tokenizer,
        embedder=embedder,
        chunking=Chunking(max_tokens=64),
    )
    parts = Components(
        path=folder,
        outer_folder=folder.parent,
        store=store,
        vectors=LocalVectors(folder / "vectors", exact_below=1_000),
        topology=LocalTopologyIndex(folder / "topology"),
        embedder=embedder,
        ingest_config=ingest_config,
        make_query=lambda text: Query(text=text),
        models=models,
        summaries=SummaryOptions(batch_tokens=BATCH_TOKENS, n_ahead=concurrency),
        conversations=store.conversations,
    )
    async with Quipu(parts) as kb:
        yield kb


async def dump_of(kb: Quipu) -> list[str]:
    """Return the canonical state, line by line."""
    return [line async for line in kb.dump()]


async def fresh_dump(settings: Settings, *documents: SourceDocument, batch_tokens: int = BATCH_TOKENS) -> list[str]:
    """Return the state of a new index of these documents."""
    async with model_engine(settings, batch_tokens=batch_tokens) as kb:
        await kb.add(*documents)
        return await dump_of(kb)


def fresh(settings: Settings, *documents: SourceDocument) -> list[str]:
    """Return the same, for fixtures."""
    return asyncio.run(fresh_dump(settings, *documents))
