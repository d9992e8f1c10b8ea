"""Models of other libraries, as far as the adapters use them, that keep what they were asked."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

WEIGHTS: Floats = np.arange(24, dtype=np.float32)


def vector_of(text: str) -> Floats:
    """Return a vector of three numbers, not of length one."""
    return np.array([len(text), 1.0, sum(map(ord, text)) % 7], dtype=np.float32)


class Tensor:
    """The few methods of a torch tensor that a fingerprint takes."""

    def __init__(self, array: Floats) -> None:
        self.shape = array.shape
        self._array = array

    def flatten(self) -> "Tensor":
        return Tensor(self._array.ravel())

    def __getitem__(self, part: slice) -> "Tensor":
        return Tensor(self._array[part])

    def float(self) -> "Tensor":
        return self

    def cpu(self) -> "Tensor":
        return self

    def numpy(self) -> Floats:
        return self._array


@dataclass
class SentenceTransformer:
    """sentence_transformers.SentenceTransformer."""

    name: str
    revision: str | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    weights: Floats = field(default_factory=lambda: WEIGHTS)
    max_seq_length: int = 128
    asked: list[tuple[str, list[str], int]] = field(default_factory=list)

    def state_dict(self) -> dict[str, Tensor]:
        return {"layer.weight": Tensor(self.weights)}

    def encode_document(self, texts: list[str], *, batch_size: int, **_: bool) -> Floats:
        self.asked.append(("document", texts, batch_size))
        return np.stack([vector_of(text) for text in texts])

    def encode_query(self, texts: list[str], *, batch_size: int, **_: bool) -> Floats:
        self.asked.append(("query", texts, batch_size))
        return np.stack([vector_of(text) for text in texts])


class TextEmbedding:
    """fastembed.TextEmbedding."""

    known: list[dict[str, object]]
    batch_sizes: list[int]

    def __init__(self, name: str, specific_model_path: str | None = None) -> None:
        if name not in [each["model"] for each in self.known]:
            raise ValueError(f"Model {name} is not supported")
        self.path = specific_model_path

    @classmethod
    def list_supported_models(cls) -> list[dict[str, object]]:
        return cls.known

    @classmethod
    def add_custom_model(cls, **description: object) -> None:
        cls.known.append(description)

    def passage_embed(self, texts: Iterable[str], *, batch_size: int) -> Iterator[Floats]:
        self.batch_sizes.append(batch_size)
        return iter([vector_of(text) for text in texts])

    query_embed = passage_embed
