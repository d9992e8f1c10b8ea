"""LlamaIndex: a retriever whose nodes are the passages that a strategy ranks."""

from typing import Any

from quipu.errors import Unavailable
from quipu.integrations import Index, PassageSource, passage_metadata, passage_text
from quipu.model.results import RetrievedPassage

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise Unavailable("LlamaIndex is not installed.", remedy="Run pip install 'quipu-rag[llamaindex]'.") from error

TECHNICAL = ("chunk_id", "start", "end", "score", "reason")  # metadata that a model need not read


class LlamaIndexRetriever(BaseRetriever):
    """Retrieves passages of an index; the `parameters` are those of PassageSource.

    The id of a node is the id of the chunk. Its metadata is that of the document, with the place of the passage.
    """

    def __init__(self, index: Index, **parameters: Any) -> None:
        super().__init__()
        self._source = PassageSource(index, **parameters)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(passage) for passage in self._source.passages(query_bundle.query_str)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(passage) for passage in await self._source.passages_async(query_bundle.query_str)]


def _node(passage: RetrievedPassage) -> NodeWithScore:
    chunk = passage.chunk
    node = TextNode(
        id_=chunk.id,
        text=passage_text(passage),
        metadata=passage_metadata(passage),
        start_char_idx=chunk.start,
        end_char_idx=chunk.end,
        excluded_llm_metadata_keys=list(TECHNICAL),
        excluded_embed_metadata_keys=list(TECHNICAL),
    )
    return NodeWithScore(node=node, score=passage.score)
