"""The embedder over a library's model: one text at a time, in a thread of its own."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quipu.errors import Unavailable

_PROBE = "Quipus are records kept in knotted cords."
_TEXTS_AT_ONCE = 32  # one call of the library: between two of them work can be stopped

Floats = npt.NDArray[np.float32]


class Encoder(Protocol):
    """A loaded model: texts in, one vector each out, [n, d], computed one text at a time."""

    @property
    def identity(self) -> str:
        """Library, model and what tells its weights from others of that name."""
        ...

    def passages(self, texts: list[str]) -> Floats:
        """Embed what is searched."""
        ...

    def queries(self, texts: list[str]) -> Floats:
        """Embed what is searched for, as a model that tells the two apart wants it."""
        ...


class PretrainedEmbedder:
    """Embeds with a model of another library, which is asked for one text at a time.

    In a batch texts are padded to one length, which changes the last bits of their vectors; an index must not depend on
    what was embedded together. A text longer than the model reads is cut there by the library.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._dimension = int(encoder.passages([_PROBE]).shape[1])
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")  # the tokenizers bear one caller at a time

    @property
    def identity(self) -> str:
        """Library, model and version of its use here."""
        return f"{self._encoder.identity}/1"

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector a text, [n, dimension]; a blank text gives a zero vector."""
        return await self._in_thread(self._encoder.passages, texts)

    async def embed_queries(self, texts: Sequence[str]) -> Floats:
        """Return the vectors to look for among those of `embed`, [n, dimension]."""
        return await self._in_thread(self._encoder.queries, texts)

    async def _in_thread(self, encode: Callable[[list[str]], Floats], texts: Sequence[str]) -> Floats:
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        present = [index for index, text in enumerate(texts) if text.strip()]
        for start in range(0, len(present), _TEXTS_AT_ONCE):
            rows = present[start : start + _TEXTS_AT_ONCE]
            readable = [texts[row].encode("utf-8", "replace").decode("utf-8") for row in rows]
            found = await asyncio.get_running_loop().run_in_executor(self._thread, encode, readable)
            if not np.isfinite(found).all():
                raise Unavailable(
                    f"The model {self.identity} returned vectors that are no numbers.",
                    remedy="Check the model behind it.",
                )
            vectors[rows] = _units(found)
        return vectors


def _units(vectors: Floats) -> Floats:
    wide = vectors.astype(np.float64)
    norms = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    return (wide / np.where(norms > 0, norms, 1)).astype(np.float32)
