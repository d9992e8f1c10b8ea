"""Reranker: scores texts by how well they answer a question."""

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """Reads the question and each text together. `identity` names service and model."""

    @property
    def identity(self) -> str:
        """Name of the model, as in "jina/jina-reranker-v2-base-multilingual"."""
        ...

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, higher is better; raises as `LLM.complete` does."""
        ...
