"""Haystack: a component that retrieves the passages that a strategy ranks."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from quipu.errors import InvalidInput, Unavailable
from quipu.integrations import Index, PassageSource, passage_metadata, passage_text
from quipu.model.query import Condition, Filter
from quipu.model.results import RetrievedPassage

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as error:
    raise Unavailable("Haystack is not installed.", remedy="Run pip install 'quipu-rag[haystack]'.") from error


@component
class HaystackRetriever:
    """Retrieves passages of an index; the parameters are those of PassageSource.

    The id of a document is the id of the chunk. Its metadata is that of the source document, with the place and reason
    of the passage. A pipeline can be saved where `index` is a folder.
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
        self._index = index
        self._parameters = {"strategy": strategy, "top_k": top_k, "options": dict(options or {})}
        self._filter = filter
        self._source = PassageSource(index, strategy=strategy, top_k=top_k, filter=filter, options=options)

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a dictionary, to save a pipeline. Raises InvalidInput where the index came open."""
        if not isinstance(self._index, str):
            raise InvalidInput(
                "A pipeline with an open index cannot be saved.", remedy="Make the retriever with the index's folder."
            )
        allowed = asdict(self._filter) if self._filter else None
        return default_to_dict(self, index=self._index, filter=allowed, **self._parameters)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> "HaystackRetriever":
        """Return the component that `to_dict` saved."""
        parameters = dict(saved["init_parameters"])
        if allowed := parameters.get("filter"):
            where = [Condition(**condition) for condition in allowed["where"]]
            parameters["filter"] = Filter(**{**allowed, "where": where})
        return default_from_dict(cls, {**saved, "init_parameters": parameters})

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Return the passages for a question, best first, as `documents`; `top_k` replaces the number set before."""
        return {"documents": [_document(passage) for passage in self._source.passages(query, top_k)]}

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Return what `run` returns, without blocking the event loop."""
        return {"documents": [_document(passage) for passage in await self._source.passages_async(query, top_k)]}


def _document(passage: RetrievedPassage) -> Document:
    return Document(
        id=passage.chunk.id, content=passage_text(passage), meta=passage_metadata(passage), score=passage.score
    )
