"""Wiring: builds an engine from settings. Only this package knows every concrete class."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quipu.algo.vector_clusters import Grouping, check_gaussian_mixture, gaussian_mixture, nearest_centres
from quipu.derive.catalog import make_catalog
from quipu.derive.summaries import SummaryOptions
from quipu.engine import Components, Quipu
from quipu.engine.components import Models
from quipu.engine.past import CopiedIndex, PastIndexes
from quipu.engine.reopenable_view import RetrievalTurns
from quipu.errors import InvalidInput, Mismatch, NotFound
from quipu.ingest.documents import IngestConfig
from quipu.ingest.local import LocalExtractor
from quipu.model.chat import Role
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse import FILE_TYPES, IMAGE_TYPE_BY_SUFFIX, SCANNED, parse, parse_in_languages
from quipu.ports.ingest import Extractor, FileTypes
from quipu.ports.providers import Embedder, Tokenizer
from quipu.providers.local import ByteTokenizer, WordLlamaEmbedder, open_tokenizer
from quipu.settings import Settings
from quipu.stores.relational.sql import Backend
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend, is_index
from quipu.text.words import Analyzer
from quipu.topology import LocalTopologyIndex
from quipu.vectors.local import LocalVectors

if TYPE_CHECKING:
    from quipu.ports.store import SpendingLedger
    from quipu.vectors.approximate import ApproximateVectors
    from quipu.wiring.ray_cluster import RayCluster
    from quipu.wrap.guard import RetryPolicy

INDEX_FILE = "index.sqlite"
VECTORS_FOLDER = "vectors"
TOPOLOGY_FOLDER = "topology"
PAST_FOLDER = "past"


def _open_wordllama(_model: str) -> Embedder:
    return WordLlamaEmbedder()


def _open_minilm(model: str) -> Embedder:
    from quipu.providers.minilm.embedder import MiniLmEmbedder

    return MiniLmEmbedder(model)


def _open_sentence_transformers(model: str) -> Embedder:
    from quipu.providers.pretrained import open_sentence_transformers

    return open_sentence_transformers(model)


def _open_fastembed(model: str) -> Embedder:
    from quipu.providers.pretrained import open_fastembed

    return open_fastembed(model)


EMBEDDERS: Mapping[str, Callable[[str], Embedder]] = {
    "wordllama": _open_wordllama,
    "minilm": _open_minilm,
    "sentence-transformers": _open_sentence_transformers,
    "fastembed": _open_fastembed,
}
# Each with a function that raises Unavailable if its library is not installed.
GROUPINGS: Mapping[str, tuple[Grouping, Callable[[], None]]] = {
    "nearest": (nearest_centres, lambda: None),
    "mixture": (gaussian_mixture, check_gaussian_mixture),
}


@dataclass(frozen=True, slots=True)
class SharedServices:
    """What engines of one program share: a built-in embedder, and what may be spent in all processes together."""

    embedder: Embedder | None = None
    ledger: "SpendingLedger | None" = None


_NOTHING_SHARED = SharedServices()


async def open_engine(
    settings: Settings,
    *,
    create: bool = True,
    repair: bool = False,
    extractor: Extractor | None = None,
    retry: "RetryPolicy | None" = None,
    shared: SharedServices = _NOTHING_SHARED,
) -> Quipu:
    """Open the index that the settings name; if there is none and `create` is set, create an empty one.

    Raises NotFound if there is no index and `create` is not set, and Mismatch if it was built with another tokenizer;
    with `repair`, for commands that rebuild, it is opened anyway. An index with the vectors of another embedder can be
    opened; only operations that embed, such as adding documents or searching by vectors, then raise Mismatch.
    `extractor` replaces the one of the settings, and `retry` the default retry policy of model calls. The embedder in
    `shared` is one that `open_embedder` returned for such settings before.
    """
    store = open_store(settings)
    try:
        is_new = not await is_in_place(settings, store)
        if is_new and not create:
            raise NotFound(f"There is no index in {place(settings)}.", remedy="Add documents first: quipu add PATH")
        _check(settings)
        tokenizer = open_tokenizer(settings.tokenizer)
        if not is_new:
            await store.prepare(any_tokenizer=repair)
        embedder = shared.embedder or await _open_embedder_of(settings, None if is_new else store)
        if is_new:
            if settings.folder:
                make_folder(settings.folder)
            await store.prepare(any_tokenizer=repair)
        if not repair:
            with suppress(Mismatch):  # operations that need the vectors raise it themselves
                await store.set_embedder(embedder.identity, embedder.dimension)
        models = _open_models(settings, store, replace(shared, embedder=embedder), retry)
        if extractor is None:
            models = _with_metered_extractor(models, extractor := make_extractor(settings, models))
        return Quipu(
            await _components(
                settings,
                store,
                models,
                embedder=models.embedder(embedder, models.meter),
                extractor=extractor,
                tokenizer=tokenizer,
            )
        )
    except BaseException:
        await store.close()
        raise


async def _open_embedder_of(settings: Settings, store: RelationalStore | None) -> Embedder:
    if store is None:
        return await open_embedder(settings)
    async with store.view() as view:
        recorded = (await view.counts("embedder")).embedder
    return await open_embedder(settings, recorded)


async def _components(
    settings: Settings,
    store: RelationalStore,
    models: Models,
    *,
    embedder: Embedder,
    extractor: Extractor,
    tokenizer: Tokenizer,
) -> Components:
    path = await _local_folder(settings, store)
    cluster = _cluster(settings, embedder, extractor)
    vectors = await _vectors(settings, store, path)
    closing = [opened.close for opened in (cluster, getattr(vectors, "candidates", None)) if opened]
    return Components(
        place=place(settings),
        path=path,
        outer_folder=settings.outer_folder.absolute(),
        store=store,
        vectors=vectors,
        topology=LocalTopologyIndex(path / TOPOLOGY_FOLDER),
        embedder=embedder,
        bulk_embedder=cluster,
        ingest_config=_ingest_config(settings, models, embedder, extractor, cluster),
        make_query=settings.query,
        models=replace(models, closing=(*models.closing, *closing)),
        summaries=SummaryOptions(language=settings.language or "", prompts=settings.prompts, n_ahead=models.n_ahead),
        catalog=make_catalog(*GROUPINGS[settings.hierarchy_grouping]),
        is_index=is_index,
        tokenizer=tokenizer,
        retrieval_turns=RetrievalTurns(max_waiting=settings.max_waiting_questions),
        conversations=store.conversations,
        edits=store.edits,
        merge_duplicates_above=settings.merge_duplicates_above,
        archives=store.archives,
        worker_ledger=store.worker_ledger,
        past=PastIndexes(path / PAST_FOLDER, store.history, partial(_copy_index, settings, store)),
        keeps_history=settings.history,
    )


def _ingest_config(
    settings: Settings, models: Models, embedder: Embedder, extractor: Extractor, cluster: "RayCluster | None"
) -> IngestConfig:
    reading = _reading(settings)
    pictures, identities = None, reading.identities
    if Role.VISION in models.chains:
        from quipu.wiring.models import open_picture_reader

        pictures, identities = open_picture_reader(settings, models, reading.parse, reading.identities)
        reading = replace(reading, file_types=reading.file_types.with_suffixes(IMAGE_TYPE_BY_SUFFIX))
    return IngestConfig(
        parse=reading.parse,
        parser_settings=identities,
        pictures=pictures,
        file_types=reading.file_types,
        extractor=extractor,
        tokenizer=ByteTokenizer(),
        embedder=embedder,
        chunking=settings.default_chunking,
        rules=settings.chunking,
        keep_originals=settings.keep_originals,
        reader=cluster,
    )


async def _vectors(settings: Settings, store: RelationalStore, path: Path) -> "LocalVectors | ApproximateVectors":
    local = LocalVectors(path / VECTORS_FOLDER, exact_below=settings.exact_below)
    if settings.vector_search == "local":
        return local
    from quipu.wiring.candidates import open_approximate

    return await open_approximate(settings, await store.identity(), local)


def _cluster(settings: Settings, embedder: Embedder, extractor: Extractor) -> "RayCluster | None":
    if settings.engine == "local":
        return None
    from quipu.wiring.ray_cluster import open_cluster

    return open_cluster(settings, embedder, extractor.identity)


@dataclass(frozen=True, slots=True)
class _FileReading:
    """How files are parsed by the settings; `identities` says so for the media types that are not parsed as usual."""

    parse: Callable[[SourceDocument], ParsedDocument] = parse
    identities: Mapping[str, str] = field(default_factory=dict)
    file_types: FileTypes = FILE_TYPES


def parse_function(ocr_languages: str | None) -> Callable[[SourceDocument], ParsedDocument]:
    """Return what parses documents in this process; `ocr_languages` are those of scanned pages, None: detected."""
    return partial(parse_in_languages, ocr_languages) if ocr_languages else parse


def _reading(settings: Settings) -> _FileReading:
    languages = settings.ocr_languages
    in_languages = dict.fromkeys(SCANNED, f"ocr_languages={languages}") if languages else {}
    local = _FileReading(parse_function(languages), in_languages)
    if settings.parser == "local":
        return local
    from quipu.wiring.services import remote_parser

    by_suffix, read = remote_parser(settings)
    remote = dict.fromkeys(by_suffix.values(), f"parser={settings.parser}")
    return _FileReading(
        lambda source: read(source) if source.media_type in remote else local.parse(source),
        {**local.identities, **remote},
        replace(FILE_TYPES, by_suffix={**FILE_TYPES.by_suffix, **by_suffix}),
    )


async def _copy_index(settings: Settings, store: RelationalStore, folder: Path) -> CopiedIndex:
    """Copy the index into a new folder, and open the copy."""
    await asyncio.to_thread(make_folder, folder)
    await store.history.copy_to(folder / INDEX_FILE)
    copied = open_store(settings, folder)
    return CopiedIndex(
        store=copied,
        history=copied.history,
        edits=copied.edits,
        vectors=LocalVectors(folder / VECTORS_FOLDER, exact_below=settings.exact_below),
        topology=LocalTopologyIndex(folder / TOPOLOGY_FOLDER),
    )


def _check(settings: Settings) -> None:
    """Raise InvalidInput if the settings name impossible models, before an empty index is created."""
    if settings.extractor == "llm" and settings.model_of(Role.EXTRACT) is None:
        raise InvalidInput(
            "extractor = 'llm' needs a language model.", remedy='Set llm, as in QUIPU_LLM="ollama/qwen3:8b".'
        )
    _reading(settings)
    if settings.names_model or settings.embedder == "openai":
        from quipu.wiring.models import check_settings, extraction_options

        check_settings(settings)
        if settings.extractor != "local" and settings.model_of(Role.EXTRACT) is not None:
            extraction_options(settings)


def _open_models(
    settings: Settings, store: RelationalStore, shared: SharedServices, retry: "RetryPolicy | None"
) -> Models:
    """Return the models of the settings. Their modules are imported only if there are any, because that takes time."""
    if not settings.names_model and settings.embedder != "openai":
        return Models()
    from quipu.wiring.models import open_models

    assert shared.embedder is not None
    return open_models(settings, store, shared.embedder, retry, shared.ledger)


def make_extractor(settings: Settings, models: Models) -> Extractor:
    """Return the extractor: the model of the settings, or local rules."""
    llm = models.llm(Role.EXTRACT)
    if settings.extractor == "local" or llm is None:
        return LocalExtractor()
    from quipu.wiring.models import make_llm_extractor

    return make_llm_extractor(llm, settings, models.reading.concurrency)


def _with_metered_extractor(models: Models, extractor: Extractor) -> Models:
    """Return the models with a way to count the extractor per run. Local rules have nothing to count."""
    if isinstance(extractor, LocalExtractor):
        return models
    from quipu.wiring.models import metered_extractor

    return replace(models, reader=metered_extractor(extractor, models))


def open_store(settings: Settings, copy: Path | None = None) -> RelationalStore:
    """Return the store of the index that the settings name, or of a copy of it in a folder; nothing is read yet."""
    return RelationalStore(
        _open_backend(settings, copy or settings.index),
        lease_s=settings.lease_s,
        analyzer=make_analyzer(settings),
        keeps_history=settings.history and copy is None,
    )


def _open_backend(settings: Settings, index: Path | str) -> Backend:
    if isinstance(index, Path):
        return SqliteBackend(index.absolute() / INDEX_FILE, busy_timeout_s=settings.busy_timeout_s)
    from quipu.wiring.candidates import open_postgres

    return open_postgres(settings, str(index))


def place(settings: Settings) -> str:
    """Return where the index is, for messages: its folder or its address."""
    return str(settings.folder or settings.index)


async def is_in_place(settings: Settings, store: RelationalStore) -> bool:
    """Return whether there is an index where the settings say."""
    if settings.folder:
        return (settings.folder / INDEX_FILE).exists()
    return await store.exists()


async def _local_folder(settings: Settings, store: RelationalStore) -> Path:
    """Return the folder of the files beside the index; for one in a database, it is named by the index's identity."""
    return settings.folder or make_folder(settings.cache_folder / await store.identity())


async def open_embedder(settings: Settings, measured: tuple[str, int] | None = None) -> Embedder:
    """Return the embedder that the settings name. It is opened in a thread, because some load their model for seconds.

    `measured` is identity and dimension of the embedder an index was built with, so that a remote one needs no call.
    Raises Unavailable, which names the missing package, and InvalidInput if embedder_model would be ignored.
    """
    if settings.embedder == "openai":
        from quipu.wiring.models import open_remote_embedder

        return await open_remote_embedder(settings, measured)
    model = settings.embedder_model or ""
    if model and settings.embedder == "wordllama":
        raise InvalidInput(
            f"embedder_model = {model!r} has no effect on the embedder 'wordllama'.",
            remedy="Set embedder to minilm, sentence-transformers or fastembed, or remove embedder_model.",
        )
    return await asyncio.to_thread(EMBEDDERS[settings.embedder], model)


def make_analyzer(settings: Settings) -> Analyzer:
    """Return the analyzer that splits text into terms for full-text search."""
    if settings.segmenter == "pairs":
        return Analyzer()
    from quipu.providers.jieba import JiebaSegmenter

    segmenter = JiebaSegmenter()
    return Analyzer(segment=segmenter.words, segmenter=segmenter.identity)


def make_folder(folder: Path) -> Path:
    """Create a folder unless it is there, and return it. Raises InvalidInput where it cannot be created."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"The folder {folder} cannot be created ({error.strerror}).",
            remedy="Name another: --index DIR, or `cache` for an index in a database.",
        ) from error
    return folder
