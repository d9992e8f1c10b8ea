"""Wiring: settings in, engine out; the only module that knows every concrete class."""

from quipu.engine import Parts, Quipu
from quipu.errors import InvalidInput, NotFound
from quipu.ingest.local import LocalExtractor
from quipu.ingest.reading import Recipe
from quipu.parse import MEDIA_TYPE_BY_SUFFIX, parse
from quipu.providers.jieba import JiebaSegmenter
from quipu.providers.local import ByteTokenizer, WordLlamaEmbedder
from quipu.settings import Settings
from quipu.stores.relational.sqlite import SqliteBackend
from quipu.stores.relational.store import RelationalStore
from quipu.text.analyzer import Analyzer
from quipu.vectors.local import LocalVectors

INDEX_FILE = "index.sqlite"
VECTORS_FOLDER = "vectors"

EXTRACTORS = {"local": LocalExtractor}
EMBEDDERS = {"wordllama": WordLlamaEmbedder}


async def open_engine(settings: Settings, *, create: bool = True, repair: bool = False) -> Quipu:
    """Open the index the settings name; make an empty one where there is none and `create` is set.

    Raises NotFound where there is no index and none is to be made, Mismatch where it was built with another embedder or
    tokenizer. `repair` opens it all the same, for the commands that rebuild.
    """
    path = settings.index.absolute()
    database = path / INDEX_FILE
    if not database.exists():
        if not create:
            raise NotFound(f"There is no index in {path}.", remedy="Add documents first: quipu add PATH")
        _make_folder(settings)
    backend = SqliteBackend(database, busy_timeout_s=settings.busy_timeout_s)
    store = RelationalStore(backend, lease_s=settings.lease_s, analyzer=_analyzer(settings))
    embedder = EMBEDDERS[settings.embedder]()
    try:
        await store.prepare(any_tokenizer=repair)
        if not repair:
            await store.use_embedder(embedder.identity, embedder.dimension)
    except BaseException:
        await store.close()
        raise
    recipe = Recipe(
        parse=parse,
        media_types=MEDIA_TYPE_BY_SUFFIX,
        extractor=EXTRACTORS[settings.extractor](),
        tokenizer=ByteTokenizer(),
        max_tokens=settings.chunk_tokens,
    )
    vectors = LocalVectors(path / VECTORS_FOLDER, exact_below=settings.exact_below)
    return Quipu(Parts(path=path, store=store, vectors=vectors, embedder=embedder, recipe=recipe, ask=settings.query))


def _analyzer(settings: Settings) -> Analyzer:
    if settings.segmenter == "pairs":
        return Analyzer()
    segmenter = JiebaSegmenter()
    return Analyzer(segment=segmenter.words, segmenter=segmenter.identity)


def _make_folder(settings: Settings) -> None:
    try:
        settings.index.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"The index folder {settings.index} cannot be made ({error.strerror}).", remedy="Name another: --index DIR"
        ) from error
