"""The embedder: windows of one length together, their token vectors' means, their mean."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quipu.errors import Unavailable
from quipu.providers.minilm import graph
from quipu.providers.minilm.files import REMEDY, ModelFiles, find_files, read_tensors
from quipu.providers.minilm.session import Session, check_runtime
from quipu.providers.minilm.windows import Windows

SHAPE = graph.Shape(n_layers=6, n_heads=12, dimension=384, n_inner=1_536, n_tokens=30_522, n_positions=512)

_MAX_BATCH_TOKENS = 256  # more at once is slower: the layers no longer fit the processor's cache
_MAX_THREADS = 16
_TEXTS_AT_ONCE = 256  # tokenized at once
_PROBE = "Quipus are records kept in knotted cords."
_PROBE_START = (-0.0683, 0.0656, -0.0244, -0.0736, -0.0777, -0.0678, 0.0009, 0.0479)  # of its vector, by torch
_PROBE_TOLERANCE = 0.002  # other models do not pass, nor do 8-bit weights, which are 0.008 off

Vectors = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Windows of one length, and the text each is of."""

    owners: Sequence[int]
    windows: Sequence[Sequence[int]]


class MiniLmEmbedder:
    """Embeds a text by all-MiniLM-L6-v2: the mean of its tokens' vectors, over windows where it is long.

    A text of more than 256 tokens, as far as the model reads, is cut into windows of equal length and gets the mean of
    their vectors. Windows run together only with windows of exactly their length: without padding the result is that
    of a window alone, to the bit. Raises Unavailable where the weights or ONNX Runtime are missing.
    Source: W. Wang et al., MiniLM (2020); N. Reimers and I. Gurevych, Sentence-BERT (2019).
    """

    def __init__(self, folder: str = "", *, n_threads: int | None = None) -> None:
        check_runtime()
        self._files = find_files(folder)
        self._threads = ThreadPoolExecutor(n_threads or _n_processors(), thread_name_prefix="minilm")
        self._loading = asyncio.Lock()
        self._model: _Model | None = None

    @property
    def identity(self) -> str:
        """Model, what computes it (a graph in ONNX format may round otherwise than ours) and version of our pooling."""
        computed = "onnx" if self._files.is_onnx else "fused"
        return f"minilm/all-MiniLM-L6-v2/{computed}/windows-256/1"

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return SHAPE.dimension

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector a text, [n, 384]; a text without tokens gives a zero vector.

        The first call loads the model (0.4 s of CPU). Raises Unavailable where its files are damaged or those of
        another model.
        """
        model = await self._loaded()
        run = asyncio.get_running_loop().run_in_executor
        sums = np.zeros((len(texts), self.dimension))
        windows: list[list[list[int]]] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            windows += await run(self._threads, model.windows.of, texts[start : start + _TEXTS_AT_ONCE])
        batches = list(_batches(windows))
        running = [run(self._threads, model.window_vectors, batch.windows) for batch in batches]
        for batch, vectors in zip(batches, await asyncio.gather(*running), strict=True):
            np.add.at(sums, list(batch.owners), vectors)
        return _units(sums).astype(np.float32)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return what `embed` does: questions and passages are alike to the model."""
        return await self.embed(texts)

    async def _loaded(self) -> "_Model":
        async with self._loading:
            if self._model is None:
                self._model = await asyncio.to_thread(_load, self._files)
            return self._model


class _Model:
    """Tokenizer and session."""

    def __init__(self, windows: Windows, session: Session) -> None:
        self.windows = windows
        self._session = session

    def window_vectors(self, windows: Sequence[Sequence[int]]) -> Vectors:
        """Return the unit vectors of windows of one length, [n, dimension]: each the mean of its tokens' vectors.

        Summed window by window, so that the order of additions is that of a window alone.
        """
        sums = [tokens.sum(axis=0, dtype=np.float64) for tokens in self._session.token_vectors(windows)]
        return _units(np.stack(sums))


def _load(files: ModelFiles) -> _Model:
    """Return the model, once it has turned a known sentence into its known vector."""
    model = _Model(Windows(files.tokenizer, n_tokens=SHAPE.n_tokens), Session(_source(files)))
    (probe,) = model.windows.of([_PROBE])
    vector = model.window_vectors(probe)[0]
    if vector.shape != (SHAPE.dimension,):
        raise Unavailable(
            f"{files.weights} gives vectors of {vector.shape[0]} numbers, all-MiniLM-L6-v2 of {SHAPE.dimension}.",
            remedy=REMEDY,
        )
    if not np.abs(vector[: len(_PROBE_START)] - _PROBE_START).max() < _PROBE_TOLERANCE:
        raise Unavailable(
            f"{files.weights} is damaged or not all-MiniLM-L6-v2: a known sentence gets another vector.", remedy=REMEDY
        )
    return model


def _source(files: ModelFiles) -> graph.OnnxGraph | Path:
    if files.is_onnx:
        return files.weights
    return graph.build(read_tensors(files.weights, graph.tensor_shapes(SHAPE)), SHAPE)


def _batches(windows_by_text: Sequence[Sequence[list[int]]]) -> Iterator[_Batch]:
    """Yield windows of one length together, shortest first; those of one text stay in their order."""
    pairs = [(owner, window) for owner, windows in enumerate(windows_by_text) for window in windows]
    for length, group in groupby(sorted(pairs, key=_length), key=_length):
        members, size = list(group), max(1, _MAX_BATCH_TOKENS // length)
        for start in range(0, len(members), size):
            owners, windows = zip(*members[start : start + size], strict=True)
            yield _Batch(owners=owners, windows=windows)


def _length(pair: tuple[int, list[int]]) -> int:
    return len(pair[1])


def _units(vectors: Vectors) -> Vectors:
    """Return vectors of length one; zero vectors stay."""
    norms = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    units: Vectors = vectors / np.where(norms > 0, norms, 1)
    return units


def _n_processors() -> int:
    """Return how many processors this process may use, as far as the system tells."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, _MAX_THREADS)
