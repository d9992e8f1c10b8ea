"""A Ray cluster that reads documents and embeds texts by local rules and models; one process commits what it returns.

The components of an engine cannot be sent to another process. `WorkerSettings` can: each worker builds from them what
it needs, once.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

from quipu.errors import InvalidInput, QuipuError, Unavailable
from quipu.ingest.documents import READING, DocumentReading, IngestConfig
from quipu.ingest.local import LocalExtractor
from quipu.ingest.spread import read_completely
from quipu.model.document import SourceDocument
from quipu.parse import FILE_TYPES
from quipu.ports.providers import Embedder
from quipu.providers.local import ByteTokenizer
from quipu.providers.minilm.embedder import MiniLmEmbedder
from quipu.settings import Settings
from quipu.settings.sources import set_default_variable
from quipu.wiring import EMBEDDERS, parse_function
from quipu.wrap.embedder import Vectors

T = TypeVar("T")

TEXTS_PER_TASK = 32
MIN_SPREAD_TEXTS = 256  # fewer are embedded here, sooner than a task is sent
DOCUMENTS_PER_CPU = 4  # in progress, beside the group that is committed
MIN_AHEAD = 128
MAX_RETRIES = 1  # of a task whose process died: a document that needs too much memory fails alone

INSTALL_REMEDY = "pip install 'quipu-rag[ray]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The settings that a worker needs to read and embed as this process would. It can be sent to other processes."""

    ocr_languages: str | None
    embedder: str
    embedder_model: str

    @classmethod
    def of(cls, settings: Settings) -> "WorkerSettings":
        """Return what workers need of the settings."""
        return cls(
            ocr_languages=settings.ocr_languages,
            embedder=settings.embedder,
            embedder_model=settings.embedder_model or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReply:
    """What a worker returns: a result, or that nothing can be done now. Not every error can be sent as it is."""

    result: Any = None
    unavailable: tuple[str, str] | None = None  # message and remedy

    def unpack(self) -> Any:
        """Return the result. Raises Unavailable."""
        if self.unavailable is not None:
            raise Unavailable(self.unavailable[0], remedy=self.unavailable[1])
        return self.result


def describe_worker(settings: WorkerSettings) -> WorkerReply:
    """Return the versions and identities on which facts and vectors depend."""
    return _reply(lambda: _describe(_worker_config(settings)))


def read_in_worker(settings: WorkerSettings, source: SourceDocument) -> WorkerReply:
    """Return the DocumentReading of one document."""
    return _reply(lambda: asyncio.run(read_completely(source, _worker_config(settings))))


def embed_in_worker(settings: WorkerSettings, texts: Sequence[str]) -> WorkerReply:
    """Return one unit vector per text, float32 [n, dimension]."""
    return _reply(lambda: asyncio.run(_embed(_worker_config(settings).embedder, texts)))


async def _embed(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    return await embedder.embed(texts)


def _reply(work: Callable[[], Any]) -> WorkerReply:
    try:
        return WorkerReply(result=work())
    except Unavailable as error:
        return WorkerReply(unavailable=(error.message, error.remedy))


@lru_cache(maxsize=1)  # a worker runs many tasks, and loading a model takes longer than most of them
def _worker_config(settings: WorkerSettings) -> IngestConfig:
    return IngestConfig(
        parse=parse_function(settings.ocr_languages),
        file_types=FILE_TYPES,
        extractor=LocalExtractor(),
        tokenizer=ByteTokenizer(),
        embedder=_worker_embedder(settings),
    )


def _worker_embedder(settings: WorkerSettings) -> Embedder:
    """Return the embedder of the settings. A task has one CPU, so MiniLM gets one thread; its vectors are the same."""
    if settings.embedder == "minilm":
        return MiniLmEmbedder(settings.embedder_model, n_threads=1)
    return EMBEDDERS[settings.embedder](settings.embedder_model)


def _describe(config: IngestConfig) -> str:
    embedder = f"{config.embedder.identity}, {config.embedder.dimension} dimensions"
    return f"Quipu {version('quipu-rag')}, {READING}, {config.extractor.identity}, {embedder}"


class RayCluster:
    """Reads documents and embeds texts on a Ray cluster; a DocumentReader, and the Embedder of many texts.

    It joins the cluster that RAY_ADDRESS names or that runs on this machine, else it starts one here, at the first
    check. `refusal` is why the settings do not allow it, as an error; None: they do. Raises Unavailable if Ray is not
    installed or does not answer, and where a worker has another version of Quipu, another model, or none.
    """

    def __init__(
        self, settings: WorkerSettings, local: Embedder, extractor: str, refusal: InvalidInput | None = None
    ) -> None:
        self._settings, self._local, self._extractor, self._refusal = settings, local, extractor, refusal
        self._connection: RayConnection | None = None
        self._lock = asyncio.Lock()

    @property
    def n_ahead(self) -> int:
        """How many documents should be in progress."""
        n_cpus = self._connection.n_cpus if self._connection else 1
        return max(MIN_AHEAD, DOCUMENTS_PER_CPU * n_cpus)

    @property
    def identity(self) -> str:
        return self._local.identity

    @property
    def dimension(self) -> int:
        return self._local.dimension

    async def check(self) -> None:
        """Connect, and compare what a worker would do with what this process would do."""
        if self._refusal:
            raise self._refusal
        await self._connect()

    async def read(self, source: SourceDocument) -> DocumentReading:
        """Return what a worker read. A document whose worker dies twice has failed; the others go on."""
        connection = await self._connect()
        try:
            reading: DocumentReading = (await connection.run(read_in_worker, self._settings, source)).unpack()
        except WorkerDied as error:
            return DocumentReading(error=str(error))
        return reading

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, shape [n, dimension]; the same bits as those of the local embedder."""
        if len(texts) < MIN_SPREAD_TEXTS:
            return await self._local.embed(texts)
        connection = await self._connect()
        parts = [texts[start : start + TEXTS_PER_TASK] for start in range(0, len(texts), TEXTS_PER_TASK)]
        try:
            replies = await asyncio.gather(*(connection.run(embed_in_worker, self._settings, part) for part in parts))
        except WorkerDied as error:
            raise Unavailable(error.message, remedy=error.remedy) from error
        return np.concatenate([reply.unpack() for reply in replies])

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one query vector per text; computed here, because a question waits."""
        return await self._local.embed_queries(texts)

    async def close(self) -> None:
        """Leave the cluster, and stop it if it was started here."""
        if self._connection is not None:
            await asyncio.to_thread(self._connection.close)

    async def _connect(self) -> "RayConnection":
        async with self._lock:
            if self._connection is None:
                connection = await asyncio.to_thread(RayConnection)
                try:
                    await self._compare(connection)
                except BaseException:
                    await asyncio.to_thread(connection.close)
                    raise
                self._connection = connection
            return self._connection

    async def _compare(self, connection: "RayConnection") -> None:
        here = f"{self._extractor}, {self._local.identity}, {self._local.dimension} dimensions"
        here = f"Quipu {version('quipu-rag')}, {READING}, {here}"
        there = (await connection.run(describe_worker, self._settings)).unpack()
        if here != there:
            raise Unavailable(
                f"A worker of the Ray cluster would read as {there}; this process reads as {here}.",
                remedy="Install the same version of Quipu, with the same extras and models, on every machine.",
            )


class WorkerDied(QuipuError):
    """The process of a worker ended twice before a task was finished."""


class RayConnection:
    """A connection to a Ray cluster: runs functions in its workers, one CPU each."""

    def __init__(self) -> None:
        """Join or start a cluster; this takes seconds. Raises Unavailable."""
        try:
            import ray
        except ImportError:
            raise Unavailable("engine = 'ray' needs Ray, which is not installed.", remedy=INSTALL_REMEDY) from None
        self._ray = ray
        self._remote: dict[Callable[..., WorkerReply], Any] = {}
        self._is_own = not ray.is_initialized()
        if self._is_own:
            set_default_variable("RAY_USAGE_STATS_ENABLED", "0")  # else it reports to its makers
            try:
                ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, OSError, RuntimeError, ValueError) as error:
                raise Unavailable(
                    f"The Ray cluster cannot be joined: {error}",
                    remedy="Start it (`ray start --head`), or unset RAY_ADDRESS to use this machine alone.",
                ) from error
        self.n_cpus = int(ray.cluster_resources().get("CPU", 1))

    async def run(self, function: Callable[..., WorkerReply], *arguments: object) -> WorkerReply:
        """Return what the function returns in a worker. Raises WorkerDied, and Unavailable if the cluster is gone."""
        errors = self._ray.exceptions
        if function not in self._remote:
            self._remote[function] = self._ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(function)
        try:
            reply: WorkerReply = await self._remote[function].remote(*arguments)
        except (errors.WorkerCrashedError, errors.OutOfMemoryError) as error:
            raise WorkerDied(
                "The process that read it ended before it was finished, twice.",
                remedy="It may need more memory than there is: add it without --engine ray, or split it.",
            ) from error
        except errors.RayError as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            raise Unavailable(
                f"A worker of the Ray cluster failed: {lines[-1].strip() if lines else type(error).__name__}",
                remedy="Look at its log, and whether Quipu is installed on every machine: docs/scaling.md.",
            ) from error
        return reply

    def close(self) -> None:
        """Leave the cluster, if this connection joined it."""
        if self._is_own:
            self._ray.shutdown()


def open_cluster(settings: Settings, embedder: Embedder, extractor: str) -> RayCluster:
    """Return the cluster of `engine = "ray"`; nothing is started yet. `extractor` is the identity of the local one."""
    return RayCluster(WorkerSettings.of(settings), embedder, extractor, _refusal(settings))


def _refusal(settings: Settings) -> InvalidInput | None:
    """Return why documents cannot be read on a cluster with these settings: only what costs nothing is sent there."""
    models = [settings.llm or "", *(role.llm or "" for role in settings.role), settings.reranker or ""]
    refuse = partial(_refused, remedy="Add --no-model, or start `quipu work` on several machines: docs/scaling.md.")
    if model := next(filter(None, models), ""):
        return refuse(f"a model is set ({model})")
    if settings.embedder not in EMBEDDERS:
        return _refused(f"embedder = {settings.embedder!r}", remedy="Start `quipu work` on several machines instead.")
    if settings.parser != "local":
        return _refused(f"parser = {settings.parser!r}", remedy="Set parser to local, or start `quipu work` instead.")
    return None


def _refused(reason: str, *, remedy: str) -> InvalidInput:
    return InvalidInput(f"engine = 'ray' spreads only work that costs nothing, and {reason}.", remedy=remedy)
