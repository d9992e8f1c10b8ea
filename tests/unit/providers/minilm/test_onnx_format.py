"""The bytes of a model in ONNX format."""

from pathlib import Path

import numpy as np
import pytest

from quipu.providers.minilm.onnx_format import FLOAT, INT32, Node, Tensor, model

INPUT = Tensor(name="x", kind=INT32, shape=("n", 2))
OUTPUT = Tensor(name="y", kind=FLOAT, shape=("n", 2))
CAST = Node(op="Cast", inputs=["x"], outputs=["y"], attributes={"to": FLOAT})


def test_numbers_are_written_in_groups_of_seven_bits() -> None:
    encoded = model([], inputs=[], outputs=[], weights=[Tensor(name="w", kind=FLOAT, shape=(300,))])
    assert b"\x08\xac\x02" in encoded  # field 1, varint 300: the example of the protocol-buffer documentation


def test_the_runtime_reads_inputs_outputs_and_attributes(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    path.write_bytes(model([CAST], inputs=[INPUT], outputs=[OUTPUT], weights=[]))
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [(each.name, each.shape) for each in session.get_inputs()] == [("x", ["n", 2])]
    (result,) = session.run(None, {"x": np.array([[1, 2]], dtype=np.int32)})
    assert result.dtype == np.float32
    assert result.tolist() == [[1.0, 2.0]]
