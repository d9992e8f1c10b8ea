"""Session: ONNX Runtime's handle on a model, from token ids to token vectors."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quipu.errors import Unavailable
from quipu.providers.minilm.files import REMEDY
from quipu.providers.minilm.graph import OnnxGraph
from quipu.providers.minilm.onnx_format import FLOAT

_ERRORS_ONLY = 3


def check_runtime() -> None:
    """Raise Unavailable where ONNX Runtime is not installed; it is not imported, which takes a tenth of a second."""
    if importlib.util.find_spec("onnxruntime") is None:
        raise Unavailable("The embedder 'minilm' needs ONNX Runtime, which is not installed.", remedy=REMEDY)


class Session:
    """One model, loaded. Every run takes one thread, so that it may be called from many at once.

    With a thread of its own for each run the sums inside a matrix product are the same on any number of processors.
    """

    def __init__(self, source: OnnxGraph | Path) -> None:
        import onnxruntime  # noqa: PLC0415 - optional driver
        from onnxruntime.capi import onnxruntime_pybind11_state as native  # noqa: PLC0415

        refusals = (native.Fail, native.InvalidArgument, native.InvalidGraph, native.InvalidProtobuf)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._weights = source.weights if isinstance(source, OnnxGraph) else {}  # shared with the runtime, not copied
        if isinstance(source, OnnxGraph):
            wrap = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
            values = [wrap(array, FLOAT) for array in source.weights.values()]
            options.add_external_initializers(list(source.weights), values)
            # The graph is as it should be: the runtime would fuse sums and normalisations, which makes them slower.
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        model = source.model if isinstance(source, OnnxGraph) else str(source)
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except (*refusals, native.NotImplemented, native.RuntimeException) as error:
            raise Unavailable(f"ONNX Runtime cannot load {_named(source)}: {error}.", remedy=REMEDY) from error
        self._dtype_by_input = {
            each.name: np.int64 if "int64" in each.type else np.int32 for each in self._session.get_inputs()
        }

    def token_vectors(self, ids: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        """Return the vector of every token, [n, length, dimension], of texts of one length."""
        tokens = np.asarray(ids)
        given = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        feed = {name: given[name].astype(dtype) for name, dtype in self._dtype_by_input.items()}
        vectors: npt.NDArray[np.float32] = self._session.run(None, feed)[0]
        return vectors


def _named(source: OnnxGraph | Path) -> str:
    return "the graph made for it" if isinstance(source, OnnxGraph) else str(source)
