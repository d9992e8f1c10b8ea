"""Embedder: texts in, unit vectors out."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt


class Embedder(Protocol):
    """Turns texts into vectors. `identity` (model and version) and `dimension` are recorded with the index."""

    @property
    def identity(self) -> str:
        """Name and version of the model, as in "wordllama/l2_supercat_256"."""
        ...

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector a text, shape [n, dimension]; an empty text gives a zero vector.

        A text's vector does not depend on the other texts of the call, to the bit.
        """
        ...

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors to look for among those of `embed`, under the same promises.

        They differ from `embed` where a model tells questions from passages, as E5 does.
        """
        ...
