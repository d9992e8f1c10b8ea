"""The fused graph beside BERT written out in NumPy."""

from math import erf, sqrt
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest

from quipu.providers.minilm.embedder import OnnxSession
from quipu.providers.minilm.onnx_graph import (
    FLOAT,
    INT32,
    BertShape,
    OnnxNode,
    OnnxTensor,
    build_bert,
    tensor_shapes,
    write_model,
)

SHAPE = BertShape(n_layers=2, n_heads=3, dimension=24, n_inner=40, n_tokens=50, n_positions=16)

Array = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def tensors() -> dict[str, Array]:
    random = np.random.default_rng(7)
    return {
        name: random.normal(scale=0.3, size=shape).astype(np.float32) for name, shape in tensor_shapes(SHAPE).items()
    }


def _linear(tensors: dict[str, Array], name: str, x: Doubles) -> Doubles:
    return x @ tensors[f"{name}.weight"].T.astype(np.float64) + tensors[f"{name}.bias"]


def _normalised(tensors: dict[str, Array], name: str, x: Doubles) -> Doubles:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
    return cast("Doubles", scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"])


def _attended(tensors: dict[str, Array], at: str, x: Doubles) -> Doubles:
    query, key, value = (
        _linear(tensors, f"{at}.attention.self.{each}", x).reshape(len(x), SHAPE.n_heads, -1).transpose(1, 0, 2)
        for each in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 2, 1) / sqrt(query.shape[-1])
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = (shares / shares.sum(axis=-1, keepdims=True)) @ value
    return cast("Doubles", heads.transpose(1, 0, 2).reshape(len(x), -1))


def _expected(tensors: dict[str, Array], ids: list[int]) -> Doubles:
    words = tensors["embeddings.word_embeddings.weight"][ids].astype(np.float64)
    positions = tensors["embeddings.position_embeddings.weight"][: len(ids)]
    x = words + positions + tensors["embeddings.token_type_embeddings.weight"][0]
    x = _normalised(tensors, "embeddings.LayerNorm", x)
    for layer in range(SHAPE.n_layers):
        at = f"encoder.layer.{layer}"
        product = _linear(tensors, f"{at}.attention.output.dense", _attended(tensors, at, x))
        x = _normalised(tensors, f"{at}.attention.output.LayerNorm", product + x)
        inner = _linear(tensors, f"{at}.intermediate.dense", x)
        inner = inner * 0.5 * (1 + np.vectorize(erf)(inner / sqrt(2)))
        x = _normalised(tensors, f"{at}.output.LayerNorm", _linear(tensors, f"{at}.output.dense", inner) + x)
    return x


@pytest.mark.parametrize("ids", [[3, 1, 4], [49, *range(14), 0]])
def test_the_graph_computes_what_bert_computes(tensors: dict[str, Array], ids: list[int]) -> None:
    pytest.importorskip("onnxruntime")
    vectors = OnnxSession(build_bert(tensors, SHAPE)).token_vectors([ids, ids[::-1]])
    assert vectors.shape == (2, len(ids), SHAPE.dimension)
    assert np.abs(vectors[0] - _expected(tensors, ids)).max() < 1e-5
    assert np.abs(vectors[1] - _expected(tensors, ids[::-1])).max() < 1e-5


def test_a_model_has_the_tensors_of_its_layers() -> None:
    assert len(tensor_shapes(SHAPE)) == 5 + 16 * SHAPE.n_layers
    assert tensor_shapes(SHAPE)["encoder.layer.1.intermediate.dense.weight"] == (40, 24)


INPUT = OnnxTensor(name="x", data_type=INT32, shape=("n", 2))
OUTPUT = OnnxTensor(name="y", data_type=FLOAT, shape=("n", 2))
CAST = OnnxNode(op="Cast", inputs=["x"], outputs=["y"], attributes={"to": FLOAT})


def test_numbers_are_written_in_groups_of_seven_bits() -> None:
    encoded = write_model([], inputs=[], outputs=[], weights=[OnnxTensor(name="w", data_type=FLOAT, shape=(300,))])
    assert b"\x08\xac\x02" in encoded  # field 1, varint 300: the example of the protocol-buffer documentation


def test_the_runtime_reads_inputs_outputs_and_attributes(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    path.write_bytes(write_model([CAST], inputs=[INPUT], outputs=[OUTPUT], weights=[]))
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [(each.name, each.shape) for each in session.get_inputs()] == [("x", ["n", 2])]
    (result,) = session.run(None, {"x": np.array([[1, 2]], dtype=np.int32)})
    assert result.dtype == np.float32
    assert result.tolist() == [[1.0, 2.0]]
