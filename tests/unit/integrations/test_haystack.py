"""The Haystack component, with the real library."""

from pathlib import Path

import pytest

from quipu.errors import InvalidInput
from quipu.model.query import Condition, Filter
from quipu.sync import BlockingQuipu
from tests.unit.integrations.conftest import LETTERS, QUESTION

pytest.importorskip("haystack", reason="haystack-ai is not installed")

from haystack import Pipeline
from haystack.components.joiners import DocumentJoiner

from quipu.integrations.haystack import HaystackRetriever


def test_documents_have_the_text_the_place_and_the_score(folder: Path) -> None:
    document = HaystackRetriever(str(folder), top_k=1).run(QUESTION)["documents"][0]
    assert document.meta["document_id"] == "letters/1"
    assert document.id == document.meta["chunk_id"]
    assert document.content == LETTERS[0][3][document.meta["start"] : document.meta["end"]]
    assert document.score == document.meta["score"] > 0


def test_two_strategies_are_joined_in_a_pipeline(kb: BlockingQuipu) -> None:
    pipeline = Pipeline()
    for strategy in ("lexical", "naive"):
        pipeline.add_component(strategy, HaystackRetriever(kb, strategy=strategy))
    pipeline.add_component("joiner", DocumentJoiner())
    pipeline.connect("lexical", "joiner")
    pipeline.connect("naive", "joiner")
    asked = {"query": "printing press", "top_k": 1}
    documents = pipeline.run({"lexical": asked, "naive": asked})["joiner"]["documents"]
    assert {document.meta["document_id"] for document in documents} <= {"letters/1", "letters/2"}


async def test_it_is_a_part_of_asynchronous_pipelines(kb: BlockingQuipu) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", HaystackRetriever(kb, top_k=1))
    replies = await pipeline.run_async({"retriever": {"query": QUESTION}})
    assert [document.meta["document_id"] for document in replies["retriever"]["documents"]] == ["letters/1"]


def test_a_pipeline_is_saved_and_loaded_with_its_filter(folder: Path) -> None:
    late = Filter(documents=("letters/*",), where=(Condition(field="year", operator=">=", value="2000"),))
    pipeline = Pipeline()
    pipeline.add_component("retriever", HaystackRetriever(str(folder), strategy="lexical", top_k=5, filter=late))
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["quipu.integrations.haystack"])
    documents = loaded.run({"retriever": {"query": "printing press"}})["retriever"]["documents"]
    assert [document.meta["document_id"] for document in documents] == ["letters/2"]


def test_a_pipeline_with_an_open_index_is_not_saved(kb: BlockingQuipu) -> None:
    with pytest.raises(InvalidInput, match="cannot be saved"):
        HaystackRetriever(kb).to_dict()
