"""LangChain: a retriever whose documents are the passages that a strategy ranks."""

from collections.abc import Mapping
from typing import Any

from quipu.errors import Unavailable
from quipu.integrations import Index, PassageSource, passage_metadata, passage_text
from quipu.model.query import Filter
from quipu.model.results import RetrievedPassage

try:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise Unavailable("LangChain is not installed.", remedy="Run pip install 'quipu-rag[langchain]'.") from error


class LangChainRetriever(BaseRetriever):
    """Retrieves passages of an index; the parameters are those of PassageSource.

    The id of a document is the id of the chunk. Its metadata is that of the source document, with the place, score and
    reason of the passage.
    """

    index: Any
    strategy: str | None = None
    top_k: int | None = None
    filter: Filter | None = None
    options: Mapping[str, Any] = {}

    def __init__(self, index: Index, **fields: Any) -> None:
        super().__init__(index=index, **fields)
        self._source = PassageSource(
            index, strategy=self.strategy, top_k=self.top_k, filter=self.filter, options=self.options
        )

    def _get_relevant_documents(self, query: str, **_run: Any) -> list[Document]:
        return [_document(passage) for passage in self._source.passages(query)]

    async def _aget_relevant_documents(self, query: str, **_run: Any) -> list[Document]:
        return [_document(passage) for passage in await self._source.passages_async(query)]


def _document(passage: RetrievedPassage) -> Document:
    return Document(id=passage.chunk.id, page_content=passage_text(passage), metadata=passage_metadata(passage))
