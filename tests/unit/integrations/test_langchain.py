"""The LangChain retriever, with the real library."""

from pathlib import Path

import pytest

from quipu.model.query import Condition, Filter
from quipu.sync import BlockingQuipu
from tests.unit.integrations.conftest import LETTERS, QUESTION

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.runnables import RunnableLambda

from quipu.integrations.langchain import LangChainRetriever


def test_documents_have_the_text_the_place_and_the_score(folder: Path) -> None:
    document = LangChainRetriever(str(folder), top_k=1).invoke(QUESTION)[0]
    place = document.metadata
    assert place["document_id"] == "letters/1"
    assert document.id == place["chunk_id"]
    assert document.page_content == LETTERS[0][3][place["start"] : place["end"]]
    assert (place["year"], place["title"]) == (1500, "First letter")
    assert place["score"] > 0


def test_strategy_and_filter_are_used(kb: BlockingQuipu) -> None:
    late = Filter(where=(Condition(field="year", operator=">=", value="2000"),))
    documents = LangChainRetriever(kb, strategy="lexical", filter=late).invoke("printing press")
    assert [document.metadata["document_id"] for document in documents] == ["letters/2"]


async def test_it_is_a_part_of_asynchronous_chains(kb: BlockingQuipu) -> None:
    ids = RunnableLambda(lambda documents: [document.metadata["document_id"] for document in documents])
    chain = LangChainRetriever(kb, top_k=2) | ids
    answers = await chain.abatch([QUESTION, "Where did it rain?"])
    assert [answer[0] for answer in answers] == ["letters/1", "notes/1"]
    assert chain.invoke(QUESTION)[0] == "letters/1"
