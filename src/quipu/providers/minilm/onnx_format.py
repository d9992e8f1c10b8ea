"""ONNX format: the few protocol-buffer messages of a model, written without the onnx package.

Field numbers are those of onnx.proto (IR version 8), which its rules of compatibility keep for good.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

FLOAT, INT32 = 1, 6  # TensorProto.DataType
CONTRIB = "com.microsoft"  # operators of ONNX Runtime's own

_IR_VERSION, _OPSET = 8, 17
_EXTERNAL = 1  # TensorProto.DataLocation
_LENGTH_DELIMITED, _FIXED_32 = 2, 5  # wire types; 0 is a varint

Value = int | float | str | bytes
Dimension = int | str  # a name stands for any length


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One operator: its inputs (an empty name is left out), its outputs and its attributes."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    domain: str = ""
    attributes: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """The name, element type and shape of an input, an output or a weight."""

    name: str
    kind: int
    shape: Sequence[Dimension]


def model(
    nodes: Iterable[Node], *, inputs: Sequence[Tensor], outputs: Sequence[Tensor], weights: list[Tensor]
) -> bytes:
    """Return a model in ONNX format whose weights are declared alone, to be given to the session as arrays."""
    graph = b"".join(
        [
            *(_field(1, _node(node)) for node in nodes),
            _field(2, "graph"),
            *(_field(5, _weight(tensor)) for tensor in weights),
            *(_field(11, _value_info(tensor)) for tensor in inputs),
            *(_field(12, _value_info(tensor)) for tensor in outputs),
        ]
    )
    opsets = _field(8, _field(1, "") + _field(2, _OPSET)) + _field(8, _field(1, CONTRIB) + _field(2, 1))
    return _field(1, _IR_VERSION) + _field(7, graph) + opsets


def _node(node: Node) -> bytes:
    inputs = b"".join(_field(1, name) for name in node.inputs)
    outputs = b"".join(_field(2, name) for name in node.outputs)
    attributes = b"".join(_field(5, _attribute(name, value)) for name, value in node.attributes.items())
    return inputs + outputs + _field(4, node.op) + attributes + _field(7, node.domain)


def _attribute(name: str, value: float) -> bytes:
    number, kind = (3, 2) if isinstance(value, int) else (2, 1)
    return _field(1, name) + _field(number, value) + _field(20, kind)


def _weight(tensor: Tensor) -> bytes:
    dims = b"".join(_field(1, length) for length in tensor.shape)
    nowhere = _field(1, "location") + _field(2, "given to the session")
    return dims + _field(2, tensor.kind) + _field(8, tensor.name) + _field(13, nowhere) + _field(14, _EXTERNAL)


def _value_info(tensor: Tensor) -> bytes:
    dims = b"".join(_field(1, _field(2 if isinstance(length, str) else 1, length)) for length in tensor.shape)
    return _field(1, tensor.name) + _field(2, _field(1, _field(1, tensor.kind) + _field(2, dims)))


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | _FIXED_32) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Return a number that is not negative in groups of seven bits, lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)
