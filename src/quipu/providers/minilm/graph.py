"""Graph: BERT's encoder in ONNX Runtime's fused operators, from the tensors of its checkpoint.

One operator does a layer's attention with its projections. The operator that adds and normalises at once is left out:
it takes three times as long as the plain ones (ONNX Runtime 1.31).
Source: J. Devlin et al., BERT (2019); operators: ONNX Runtime, docs/ContribOperators.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quipu.providers.minilm.onnx_format import CONTRIB, FLOAT, INT32, Node, Tensor, model

INPUT = "input_ids"

_OUTPUT = "last_hidden_state"
_NORM = {"epsilon": 1e-12}

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes of a BERT encoder."""

    n_layers: int
    n_heads: int
    dimension: int
    n_inner: int
    n_tokens: int
    n_positions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxGraph:
    """A model in ONNX format, and its weights by name."""

    model: bytes
    weights: Mapping[str, Floats]


def tensor_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Return every tensor a checkpoint of this shape holds, by its name there."""
    d, inner = shape.dimension, shape.n_inner
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (shape.n_tokens, d),
        "embeddings.position_embeddings.weight": (shape.n_positions, d),
        "embeddings.token_type_embeddings.weight": (2, d),
        "embeddings.LayerNorm.weight": (d,),
        "embeddings.LayerNorm.bias": (d,),
    }
    for layer in range(shape.n_layers):
        at = f"encoder.layer.{layer}"
        linear = {f"attention.self.{each}": (d, d) for each in ("query", "key", "value")}
        linear |= {"attention.output.dense": (d, d), "intermediate.dense": (inner, d), "output.dense": (d, inner)}
        for name, (n_out, n_in) in linear.items():
            shapes |= {f"{at}.{name}.weight": (n_out, n_in), f"{at}.{name}.bias": (n_out,)}
        for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{at}.{norm}.weight": (d,), f"{at}.{norm}.bias": (d,)}
    return shapes


def build(tensors: Mapping[str, Floats], shape: Shape) -> OnnxGraph:
    """Return the encoder as a graph from token ids, int32 [n, length], to token vectors, float32 [n, length, d].

    Every text of a batch has the same length, so that there is no padding and no mask.
    """
    weights = _embedding_weights(tensors)
    nodes = [
        Node(
            op="EmbedLayerNormalization",
            inputs=[INPUT, "", "words", "positions", "", "norm", "norm_bias"],
            outputs=["hidden_0", "unused_mask"],
            domain=CONTRIB,
            attributes=_NORM,
        )
    ]
    for layer in range(shape.n_layers):
        weights |= {f"{name}_{layer}": np.ascontiguousarray(array) for name, array in _layer_weights(tensors, layer)}
        nodes += _layer_nodes(layer, shape.n_heads)
    nodes.append(Node(op="Identity", inputs=[f"hidden_{shape.n_layers}"], outputs=[_OUTPUT]))
    encoded = model(
        nodes,
        inputs=[Tensor(name=INPUT, kind=INT32, shape=("n", "length"))],
        outputs=[Tensor(name=_OUTPUT, kind=FLOAT, shape=("n", "length", shape.dimension))],
        weights=[Tensor(name=name, kind=FLOAT, shape=array.shape) for name, array in weights.items()],
    )
    return OnnxGraph(model=encoded, weights=weights)


def _embedding_weights(tensors: Mapping[str, Floats]) -> dict[str, Floats]:
    """Every token is of the first of BERT's two types, so the vector of that type is added to the positions' once."""
    type_vector = tensors["embeddings.token_type_embeddings.weight"][0]
    return {
        "words": tensors["embeddings.word_embeddings.weight"],
        "positions": tensors["embeddings.position_embeddings.weight"] + type_vector,
        "norm": tensors["embeddings.LayerNorm.weight"],
        "norm_bias": tensors["embeddings.LayerNorm.bias"],
    }


def _layer_weights(tensors: Mapping[str, Floats], layer: int) -> Iterator[tuple[str, Floats]]:
    """Yield a layer's weights; torch keeps a matrix as [out, in], ONNX multiplies by [in, out]."""
    at = f"encoder.layer.{layer}"
    inputs = [f"{at}.attention.self.{each}" for each in ("query", "key", "value")]
    yield "inputs", np.concatenate([tensors[f"{name}.weight"].T for name in inputs], axis=1)
    yield "inputs_bias", np.concatenate([tensors[f"{name}.bias"] for name in inputs])
    names = {"attended": "attention.output.dense", "up": "intermediate.dense", "down": "output.dense"}
    for ours, theirs in names.items():
        yield ours, tensors[f"{at}.{theirs}.weight"].T
        yield f"{ours}_bias", tensors[f"{at}.{theirs}.bias"]
    for ours, theirs in {"norm_attended": "attention.output.LayerNorm", "norm_down": "output.LayerNorm"}.items():
        yield ours, tensors[f"{at}.{theirs}.weight"]
        yield f"{ours}_bias", tensors[f"{at}.{theirs}.bias"]


def _layer_nodes(layer: int, n_heads: int) -> Iterator[Node]:
    def node(op: str, *names: str, domain: str = "", **attributes: float) -> Node:
        *inputs, output = (f"{name}_{layer}" for name in names)
        return Node(op=op, inputs=inputs, outputs=[output], domain=domain, attributes=attributes)

    def normalised(step: str, residual: str, output: str) -> Iterator[Node]:
        yield node("Add", f"{step}_product", f"{step}_bias", f"{step}_sum")
        yield node("Add", f"{step}_sum", residual, f"{step}_residual")
        weights = [f"norm_{step}_{layer}", f"norm_{step}_bias_{layer}"]
        inputs = [f"{step}_residual_{layer}", *weights]
        yield Node(op="LayerNormalization", inputs=inputs, outputs=[output], attributes=_NORM)

    yield node("Attention", "hidden", "inputs", "inputs_bias", "heads", domain=CONTRIB, num_heads=n_heads)
    yield node("MatMul", "heads", "attended", "attended_product")
    yield from normalised("attended", "hidden", f"middle_{layer}")
    yield node("MatMul", "middle", "up", "up_product")
    yield node("BiasGelu", "up_product", "up_bias", "inner", domain=CONTRIB)
    yield node("MatMul", "inner", "down", "down_product")
    yield from normalised("down", "middle", f"hidden_{layer + 1}")
