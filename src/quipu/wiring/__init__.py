"""Wiring: settings in, engine out; the only module that knows every concrete class."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from quipu.algo.vector_clusters import Grouping, check_gaussian_mixture, gaussian_mixture, nearest_centres
from quipu.derive.catalog import make_catalog
from quipu.derive.summarising import SummaryOptions
from quipu.engine import Components, Quipu
from quipu.engine.components import Models
from quipu.errors import InvalidInput, Mismatch, NotFound
from quipu.ingest.documents import IngestConfig
from quipu.ingest.local import LocalExtractor
from quipu.model.chat import Role
from quipu.parse import MEDIA_TYPE_BY_SUFFIX, parse
from quipu.ports.ingest import Extractor
from quipu.ports.providers import Embedder
from quipu.providers.local import ByteTokenizer, WordLlamaEmbedder
from quipu.settings import Settings
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend, is_index
from quipu.text.words import Analyzer
from quipu.topology import LocalTopologies
from quipu.vectors.local import LocalVectors

if TYPE_CHECKING:
    from quipu.wrap.retry import RetryPolicy

INDEX_FILE = "index.sqlite"
VECTORS_FOLDER = "vectors"
TOPOLOGY_FOLDER = "topology"


def _open_wordllama(_model: str) -> Embedder:
    return WordLlamaEmbedder()


def _open_minilm(model: str) -> Embedder:
    from quipu.providers.minilm.embedder import MiniLmEmbedder  # noqa: PLC0415 - see _open_models

    return MiniLmEmbedder(model)


def _open_sentence_transformers(model: str) -> Embedder:
    from quipu.providers.pretrained import open_sentence_transformers  # noqa: PLC0415 - see _open_models

    return open_sentence_transformers(model)


def _open_fastembed(model: str) -> Embedder:
    from quipu.providers.pretrained import open_fastembed  # noqa: PLC0415 - see _open_models

    return open_fastembed(model)


EMBEDDERS: Mapping[str, Callable[[str], Embedder]] = {
    "wordllama": _open_wordllama,
    "minilm": _open_minilm,
    "sentence-transformers": _open_sentence_transformers,
    "fastembed": _open_fastembed,
}
# Each with what raises Unavailable where its library is not installed.
GROUPINGS: Mapping[str, tuple[Grouping, Callable[[], None]]] = {
    "nearest": (nearest_centres, lambda: None),
    "mixture": (gaussian_mixture, check_gaussian_mixture),
}


async def open_engine(
    settings: Settings,
    *,
    create: bool = True,
    repair: bool = False,
    extractor: Extractor | None = None,
    retry: "RetryPolicy | None" = None,
) -> Quipu:
    """Open the index the settings name; make an empty one where there is none and `create` is set.

    Raises NotFound where there is no index and none is to be made, Mismatch where it was built with another tokenizer.
    `repair` opens it all the same, for the commands that rebuild. One with the vectors of another embedder is opened:
    only what embeds, as questions by vectors and adding do, raises Mismatch. `extractor` takes the place of the one the
    settings name; `retry` says how patient calls of models are, where not as they are by default.
    """
    path = settings.index.absolute()
    database = path / INDEX_FILE
    is_new = not database.exists()
    if is_new and not create:
        raise NotFound(f"There is no index in {path}.", remedy="Add documents first: quipu add PATH")
    _check(settings)
    store = open_store(settings)
    try:
        if not is_new:
            await store.prepare(any_tokenizer=repair)
        embedder = await open_embedder(settings, None if is_new else await store.embedder())
        if is_new:
            _make_folder(settings)
            await store.prepare(any_tokenizer=repair)
        if not repair:
            with suppress(Mismatch):  # what needs the vectors says so when it comes to that
                await store.set_embedder(embedder.identity, embedder.dimension)
        models = _open_models(settings, store, embedder, retry)
        reader = extractor or make_extractor(settings, models)
        if extractor is None:
            models = with_reader(models, reader)
        return Quipu(
            _components(settings, store, models, embedder=models.embedder(embedder, models.meter), reader=reader)
        )
    except BaseException:
        await store.close()
        raise


def _components(
    settings: Settings, store: RelationalStore, models: Models, *, embedder: Embedder, reader: Extractor
) -> Components:
    path = settings.index.absolute()
    ingest_config = IngestConfig(
        parse=parse,
        media_types=MEDIA_TYPE_BY_SUFFIX,
        extractor=reader,
        tokenizer=ByteTokenizer(),
        embedder=embedder,
        chunking=settings.default_chunking,
        rules=settings.chunking,
    )
    return Components(
        path=path,
        store=store,
        vectors=LocalVectors(path / VECTORS_FOLDER, exact_below=settings.exact_below),
        topology=LocalTopologies(path / TOPOLOGY_FOLDER),
        embedder=embedder,
        ingest_config=ingest_config,
        make_query=settings.query,
        models=models,
        summaries=SummaryOptions(language=settings.language or "", n_ahead=models.n_ahead),
        catalog=make_catalog(*GROUPINGS[settings.hierarchy_grouping]),
        is_index=is_index,
    )


def _check(settings: Settings) -> None:
    """Raise InvalidInput where the settings name models that cannot be: it must leave no empty index behind."""
    if settings.extractor == "llm" and settings.model_of(Role.EXTRACT) is None:
        raise InvalidInput(
            "extractor = 'llm' needs a language model.", remedy='Set llm, as in QUIPU_LLM="ollama/qwen3:8b".'
        )
    if settings.names_model or settings.embedder == "openai":
        from quipu.wiring.models import check_settings  # noqa: PLC0415 - see _open_models

        check_settings(settings)
    if settings.extractor != "local" and settings.model_of(Role.EXTRACT) is not None:
        from quipu.wiring.extraction import extraction_options  # noqa: PLC0415 - see _open_models

        extraction_options(settings)


def _open_models(settings: Settings, store: RelationalStore, embedder: Embedder, retry: "RetryPolicy | None") -> Models:
    """Return the models the settings name; what asks them is imported only where there are any, as that takes time."""
    if not settings.names_model and settings.embedder != "openai":
        return Models()
    from quipu.wiring.models import open_models  # noqa: PLC0415 - see above

    return open_models(settings, store, embedder, retry)


def make_extractor(settings: Settings, models: Models) -> Extractor:
    """Return what reads chunks."""
    llm = models.llm(Role.EXTRACT)
    if settings.extractor == "local" or llm is None:
        return LocalExtractor()
    from quipu.wiring.extraction import make_llm_extractor  # noqa: PLC0415 - see _open_models

    return make_llm_extractor(llm, settings, models.reading.concurrency)


def with_reader(models: Models, reader: Extractor) -> Models:
    """Return the models with what reads chunks, so that each run can count it; rules have nothing to count."""
    if isinstance(reader, LocalExtractor):
        return models
    from quipu.wiring.extraction import counted_reader  # noqa: PLC0415 - see _open_models

    return replace(models, reader=counted_reader(reader, models))


def open_store(settings: Settings) -> RelationalStore:
    """Return the store of the index the settings name; nothing is read yet."""
    backend = SqliteBackend(settings.index.absolute() / INDEX_FILE, busy_timeout_s=settings.busy_timeout_s)
    return RelationalStore(backend, lease_s=settings.lease_s, analyzer=make_analyzer(settings))


async def open_embedder(settings: Settings, measured: tuple[str, int] | None = None) -> Embedder:
    """Return the embedder the settings name; in a thread, since some load their model, which takes seconds.

    `measured` are identity and dimension of the embedder an index was made with, so that a remote one is not asked.
    Raises Unavailable naming what is not installed, InvalidInput where a model is named that nothing would read.
    """
    if settings.embedder == "openai":
        from quipu.wiring.models import open_remote_embedder  # noqa: PLC0415 - see _open_models

        return await open_remote_embedder(settings, measured)
    model = settings.embedder_model or ""
    if model and settings.embedder == "wordllama":
        raise InvalidInput(
            f"embedder_model = {model!r} means nothing to the embedder 'wordllama'.",
            remedy="Set embedder to minilm, sentence-transformers or fastembed, or take embedder_model out.",
        )
    return await asyncio.to_thread(EMBEDDERS[settings.embedder], model)


def make_analyzer(settings: Settings) -> Analyzer:
    """Return what makes the terms of full text."""
    if settings.segmenter == "pairs":
        return Analyzer()
    from quipu.providers.jieba import JiebaSegmenter  # noqa: PLC0415 - see _open_models

    segmenter = JiebaSegmenter()
    return Analyzer(segment=segmenter.words, segmenter=segmenter.identity)


def _make_folder(settings: Settings) -> None:
    try:
        settings.index.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"The index folder {settings.index} cannot be made ({error.strerror}).", remedy="Name another: --index DIR"
        ) from error
