"""What a provider implements: LLM, Embedder, Reranker and Tokenizer."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quipu.model.chat import ChatRequest, Completion

TextSink = Callable[[str], None]


def ignore_text(text: str) -> None:
    """Discard a piece of a reply: the default TextSink."""


class LLM(Protocol):
    """A chat model. `identity` changes whenever the same request may get a different reply."""

    @property
    def identity(self) -> str:
        """Provider, model and parameters, for example "openai/gpt-4.1-mini". It is part of each reply's cache key."""

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply. `on_text` receives its pieces in order while they arrive; together they are the whole text.

        If the connection breaks after some text, the reply is returned with the finish reason `interrupted`.

        Raises:
            Overloaded: the same request may succeed later.
            TooLong: the request does not fit the model's context window.
            Unavailable: no request will succeed until the user changes something (key, model name, address).
            Refused: this request will never succeed (a content filter, a parameter the server rejects).
        """


class Embedder(Protocol):
    """A model that turns texts into vectors. `identity` and `dimension` are recorded with the index."""

    @property
    def identity(self) -> str:
        """Name and version of the model, for example "wordllama/l2_supercat_256"."""

    @property
    def dimension(self) -> int:
        """The length of every vector."""

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector per text, shape [n, dimension]. An empty text gives a zero vector.

        A text's vector is bit-identical whatever other texts are in the call.
        """

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one query vector per text, shape [n, dimension], with the same guarantees as `embed`.

        Query vectors differ from `embed` for models that encode questions and passages differently, such as E5.
        """


class Reranker(Protocol):
    """A model that reads a question and a text together and scores how well the text answers the question."""

    @property
    def identity(self) -> str:
        """Name of the model, for example "jina/jina-reranker-v2-base-multilingual"."""

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score per text; higher is better. Raises the same errors as `LLM.complete`."""


class Tokenizer(Protocol):
    """Counts tokens. `identity` is recorded in the index if the counts determine chunk boundaries."""

    @property
    def identity(self) -> str:
        """Name and version, for example "bytes/4"."""

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`, 0 only for "".

        One that measures chunks never counts fewer for a text than for its prefix.
        """
