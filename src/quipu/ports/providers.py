"""What a provider implements, as Protocols: LLM, Embedder, Reranker, Tokenizer."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quipu.model.chat import ChatRequest, Completion

TextSink = Callable[[str], None]


def ignore_text(text: str) -> None:
    """Take a piece of a reply and do nothing."""


class LLM(Protocol):
    """Answers chat requests. `identity` changes whenever the same request may get another reply."""

    @property
    def identity(self) -> str:
        """Provider, model and parameters, as in "openai/gpt-4.1-mini"; part of the key under which replies are kept."""
        ...

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply; `on_text` is given its pieces in order as they arrive, together the whole text.

        A reply that breaks off after some text is returned with finish `interrupted`, not raised. Raises Overloaded
        where the same request may succeed later, TooLong where it does not fit the model's context window, Unavailable
        where nothing will be answered until something is changed (key, model name, address), Refused where this request
        will never be answered (a filter, a parameter the server rejects).
        """
        ...


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


class Reranker(Protocol):
    """Reads the question and each text together. `identity` names service and model."""

    @property
    def identity(self) -> str:
        """Name of the model, as in "jina/jina-reranker-v2-base-multilingual"."""
        ...

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, higher is better; raises as `LLM.complete` does."""
        ...


class Tokenizer(Protocol):
    """Counts tokens. `identity` is recorded where counts decide chunk boundaries."""

    @property
    def identity(self) -> str:
        """Name and version, as in "bytes/4"."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`; 0 only for the empty text; never less for a longer text."""
        ...
