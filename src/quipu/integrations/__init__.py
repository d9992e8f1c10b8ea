"""Integrations: retrievers of an index for other frameworks, one module for each framework."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quipu import sync
from quipu.engine import Quipu
from quipu.errors import InvalidInput, NotFound
from quipu.model.query import Filter
from quipu.model.results import RetrievedPassage
from quipu.sync import BlockingQuipu
from quipu.wiring import INDEX_FILE

Index = str | Path | BlockingQuipu | Quipu


class PassageSource:
    """Retrieves the passages of an index for questions, in a blocking way or with await.

    `index` is the folder of an index, which is opened here, or an open index. One opened with `quipu.open` can be used
    in its own event loop only, with await. `top_k` is the maximum number of passages, and `options` are further options
    of `Quipu.query`; None means what the settings say. Raises NotFound where the folder holds no index.
    """

    def __init__(
        self,
        index: Index,
        *,
        strategy: str | None = None,
        top_k: int | None = None,
        filter: Filter | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._index = _opened(index)
        chosen = {"strategy": strategy, "chunk_top_k": top_k, "filter": filter}
        self._options = {**(options or {}), **{name: value for name, value in chosen.items() if value is not None}}

    def passages(self, question: str, top_k: int | None = None) -> list[RetrievedPassage]:
        """Return the passages for a question, best first; `top_k` replaces the number given before."""
        if isinstance(self._index, Quipu):
            raise InvalidInput(
                "This index was opened with `quipu.open`, for asyncio: it cannot be asked in a blocking way.",
                remedy="Await the retriever's asynchronous method, or open the index with `quipu.sync.open`.",
            )
        return self._index.passages(question, **self._options_with(top_k))

    async def passages_async(self, question: str, top_k: int | None = None) -> list[RetrievedPassage]:
        """Return what `passages` returns, without blocking the event loop."""
        if isinstance(self._index, Quipu):
            return await self._index.passages(question, **self._options_with(top_k))
        return await asyncio.to_thread(self.passages, question, top_k)

    def _options_with(self, top_k: int | None) -> Any:
        return self._options if top_k is None else {**self._options, "chunk_top_k": top_k}


def passage_text(passage: RetrievedPassage) -> str:
    """Return the text of a passage; one that begins within a table is shown with the header of the table."""
    chunk = passage.chunk
    return f"{chunk.header}\n{chunk.text}" if chunk.header else chunk.text


def passage_metadata(passage: RetrievedPassage) -> dict[str, Any]:
    """Return the metadata of the document, and the place, score and reason of the passage.

    The passage is the characters from `start` to `end` of the document's text. What is unknown is left out.
    """
    chunk, document = passage.chunk, passage.document
    place = {
        "document_id": document.id,
        "title": chunk.title,
        "source": document.source or document.id,
        "chunk_id": chunk.id,
        "start": chunk.start,
        "end": chunk.end,
        "page": chunk.page,
        "headings": " › ".join(chunk.headings),
        "score": passage.score,
        "reason": passage.reason,
    }
    return {**document.metadata, **{name: value for name, value in place.items() if value not in (None, "")}}


def _opened(index: Index) -> BlockingQuipu | Quipu:
    if isinstance(index, (BlockingQuipu, Quipu)):
        return index
    if not isinstance(index, (str, Path)):
        raise InvalidInput(f"{index!r} is no index.", remedy="Give the folder of an index, or an open index.")
    if not (Path(index) / INDEX_FILE).is_file():
        raise NotFound(f"There is no index in {index}.", remedy="Add documents first: quipu --index DIR add PATH")
    return sync.open(index)
