"""The LlamaIndex retriever, with the real library."""

from pathlib import Path

import pytest

from quipu.model.query import Filter
from quipu.sync import BlockingQuipu
from tests.unit.integrations.conftest import LETTERS, QUESTION

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode

from quipu.integrations.llamaindex import LlamaIndexRetriever


def test_nodes_have_the_text_the_place_and_the_score(folder: Path) -> None:
    found = LlamaIndexRetriever(folder, top_k=1).retrieve(QUESTION)[0]
    node = found.node
    assert node.metadata["document_id"] == "letters/1"
    assert node.node_id == node.metadata["chunk_id"]
    assert node.get_content(MetadataMode.NONE) == LETTERS[0][3][node.metadata["start"] : node.metadata["end"]]
    assert found.score == node.metadata["score"]


def test_a_model_reads_the_title_and_not_the_technical_metadata(folder: Path) -> None:
    text = LlamaIndexRetriever(folder, top_k=1).retrieve(QUESTION)[0].node.get_content(MetadataMode.LLM)
    assert "title: First letter" in text
    assert "chunk_id" not in text


async def test_strategy_and_filter_are_used_with_await(kb: BlockingQuipu) -> None:
    retriever = LlamaIndexRetriever(kb, strategy="lexical", filter=Filter(exclude=("letters/1",)))
    nodes = await retriever.aretrieve("printing press")
    assert [found.node.metadata["document_id"] for found in nodes] == ["letters/2"]


def test_it_is_a_part_of_a_query_engine(kb: BlockingQuipu) -> None:
    engine = RetrieverQueryEngine.from_args(LlamaIndexRetriever(kb, top_k=1), llm=MockLLM())
    response = engine.query(QUESTION)
    assert [found.node.metadata["document_id"] for found in response.source_nodes] == ["letters/1"]
    assert "sold the printing press to Marco Polo" in str(response)
