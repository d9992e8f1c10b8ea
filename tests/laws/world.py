"""A small world for the laws: documents that share names, titles and whole chunk texts, and an engine for them."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from quipu.engine import Components, Quipu
from quipu.engine.past import CopiedIndex, PastIndexes
from quipu.ingest.documents import IngestConfig, chunk_document, parse_document
from quipu.ingest.local import LocalExtractor
from quipu.model.chunking import Chunking
from quipu.model.document import SourceDocument
from quipu.model.ids import digest
from quipu.model.index_address import DatabaseAddress
from quipu.model.query import Query
from quipu.parse import FILE_TYPES, parse
from quipu.ports.ingest import Extractor
from quipu.providers.local import ByteTokenizer, WordLlamaEmbedder
from quipu.stores.relational.sql import Backend
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.topology import LocalTopologyIndex
from quipu.vectors.local import LocalVectors
from tests.postgres import open_postgres

T = TypeVar("T")

DATABASE_VARIABLE = "LAWS_DATABASE"
CHUNK_TOKENS = 48
STRATEGIES = ("weave", "naive", "lexical", "local", "global", "hybrid", "mix")
QUESTIONS = (
    "Who travelled with Marco Polo to the court of Kublai Khan?",
    "Кто нашёл берестяные грамоты в Новгороде?",
    "郑和去了哪里？",
    "what does the WHO say about the silk road",
)

_TITLES = ("Marco Polo", "Silk Road", "Великий Новгород", "郑和", "World Health Organization", "Notes", "")
_PARAGRAPHS = (
    "Marco Polo was a merchant of Venice. Marco Polo reached the court of Kublai Khan in 1275.",
    "Kublai Khan ruled the Yuan dynasty. The Silk Road carried paper and silk to Venice.",
    "The World Health Organization (WHO) was founded in Geneva in 1948. The WHO reports to the United Nations.",
    "who would have thought that the silk road is so long? Nobody knows, and IT workers in the US do not care.",
    "Артемий Арциховский нашёл первую берестяную грамоту в Великом Новгороде 26 июля 1951 года.",
    "Новгород вёл торговлю с Ганзой. Марко Поло никогда не был в Новгороде.",
    "郑和是明朝的航海家。郑和的船队到达了马六甲和锡兰。",
    "长城在北方。马可·波罗没有提到长城，但是提到了大都。",
    "## Travels\n\nIbn Battuta met merchants of Venice in Quanzhou. Ibn Battuta never met Marco Polo.",
    "# Archives\n\nThe letters of Novgorod were written on birch bark. Artemy Artsikhovsky found the first of them.",
    "Paper came from Cai Lun, says the Book of Later Han. Cai Lun served Emperor He of the Han dynasty.",
    "Geneva hosts the International Telecommunication Union (ITU), which was the International Telegraph Union once.",
)

_EMBEDDER = WordLlamaEmbedder()

INGEST_CONFIG = IngestConfig(
    parse=parse,
    file_types=FILE_TYPES,
    extractor=LocalExtractor(),
    tokenizer=ByteTokenizer(),
    embedder=_EMBEDDER,
    chunking=Chunking(max_tokens=CHUNK_TOKENS),
)


def document(name: str, seed: int) -> SourceDocument:
    """Return the version `seed` of the document `name`: a title and paragraphs drawn from the shared pool."""
    random = Random(f"{name} {seed}")
    paragraphs = [random.choice(_PARAGRAPHS) for _ in range(random.randint(1, 5))]
    if random.random() < 0.3:
        paragraphs.append(paragraphs[0])
    return SourceDocument(
        id=name,
        content="\n\n".join(paragraphs).encode(),
        media_type="text/markdown",
        title=random.choice(_TITLES),
        metadata={"year": random.randint(1200, 1950), "region": random.choice(("Asia", "Europe"))},
    )


def chunk_texts(source: SourceDocument) -> list[str]:
    """Return the texts of the chunks that a document is to have."""
    return [chunk.text for chunk in chunk_document(parse_document(source, INGEST_CONFIG), (), INGEST_CONFIG).chunks]


def open_backend(folder: Path, busy_timeout_s: float = 60.0) -> Backend:
    """Return the database of the index in `folder`: a file there, or a workspace of the server in LAWS_DATABASE.

    The variable reaches child processes, too.
    """
    server = os.environ.get(DATABASE_VARIABLE)
    if not server:
        return SqliteBackend(folder / "index.sqlite", busy_timeout_s=busy_timeout_s)
    address = DatabaseAddress(server, digest(str(folder.absolute()))[:20])
    return open_postgres(address, busy_timeout_s)


@asynccontextmanager
async def engine(
    folder: Path,
    *,
    extractor: Extractor | None = None,
    exact_below: int = 20_000,
    busy_timeout_s: float = 60.0,
    keep_originals: bool = True,
    keeps_history: bool = False,
) -> AsyncIterator[Quipu]:
    """Open an engine on `folder`, as wiring does, with small chunks and one embedder for the whole process."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    store = RelationalStore(open_backend(folder, busy_timeout_s), lease_s=60, keeps_history=keeps_history)
    await store.prepare()
    await store.set_embedder(_EMBEDDER.identity, _EMBEDDER.dimension)
    config = replace(INGEST_CONFIG, keep_originals=keep_originals)
    parts = Components(
        path=folder,
        outer_folder=folder.parent,
        store=store,
        vectors=LocalVectors(folder / "vectors", exact_below=exact_below),
        topology=LocalTopologyIndex(folder / "topology"),
        embedder=_EMBEDDER,
        ingest_config=replace(config, extractor=extractor) if extractor else config,
        make_query=lambda text: Query(text=text),
        conversations=store.conversations,
        edits=store.edits,
        past=PastIndexes(folder / "past", store.history, partial(_copy_index, store, exact_below)),
        keeps_history=keeps_history,
    )
    async with Quipu(parts) as kb:
        yield kb


async def _copy_index(store: RelationalStore, exact_below: int, folder: Path) -> CopiedIndex:
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    await store.history.copy_to(folder / "index.sqlite")
    copied = RelationalStore(SqliteBackend(folder / "index.sqlite", busy_timeout_s=60.0), lease_s=60)
    return CopiedIndex(
        store=copied,
        history=copied.history,
        edits=copied.edits,
        vectors=LocalVectors(folder / "vectors", exact_below=exact_below),
        topology=LocalTopologyIndex(folder / "topology"),
    )


async def state(kb: Quipu, strategies: Sequence[str] = STRATEGIES) -> tuple[list[str], list[str]]:
    """Return what the laws compare: the dump, and the rankings of the strategies with their scores."""
    dump = [line async for line in kb.dump()]
    rankings: list[str] = []
    for strategy in strategies:
        for question in QUESTIONS:
            found = await kb.retrieve(question, strategy=strategy)
            hits = [(hit.id, hit.score) for hit in (*found.chunks, *found.entities, *found.relations)]
            rankings.append(f"{strategy} {question} {hits}")
    return dump, rankings


async def fresh_state(
    folder: Path,
    documents: Sequence[SourceDocument],
    *,
    exact_below: int = 20_000,
    strategies: Sequence[str] = STRATEGIES,
) -> tuple[list[str], list[str]]:
    """Return the state of a new index of these documents, added at once."""
    async with engine(folder, exact_below=exact_below) as kb:
        await kb.add(*documents)
        return await state(kb, strategies)


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run async work to its end, for tests that hypothesis drives."""
    return asyncio.run(work())
