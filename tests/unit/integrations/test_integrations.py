"""What all retrievers share: the index they ask, its options, and the metadata of a passage."""

import subprocess
import sys
from pathlib import Path

import pytest

import quipu
from quipu import sync
from quipu.errors import InvalidInput, NotFound
from quipu.integrations import PassageSource, passage_metadata, passage_text
from quipu.model.document import Document, DocumentStatus
from quipu.model.graph import Chunk
from quipu.model.query import Filter
from quipu.model.results import RetrievedPassage
from tests.unit.integrations.conftest import QUESTION


def _passage(*, header: str = "", page: int | None = None) -> RetrievedPassage:
    chunk = Chunk(
        id="c1",
        document_id="d1",
        title="Prices",
        ordinal=0,
        text="| ink | 3 |",
        start=20,
        end=31,
        n_tokens=5,
        text_hash="",
        headings=("Trade", "Ink"),
        page=page,
        header=header,
    )
    document = Document(
        id="d1", title="Prices", status=DocumentStatus.READY, metadata={"region": "Asia", "page": "old"}
    )
    return RetrievedPassage(chunk=chunk, document=document, score=0.5, reason="names it")


def test_the_metadata_is_that_of_the_document_with_the_place_of_the_passage() -> None:
    assert passage_metadata(_passage(page=7)) == {
        "region": "Asia",
        "document_id": "d1",
        "title": "Prices",
        "source": "d1",
        "chunk_id": "c1",
        "start": 20,
        "end": 31,
        "page": 7,
        "headings": "Trade › Ink",
        "score": 0.5,
        "reason": "names it",
    }


def test_what_is_unknown_is_left_out_of_the_metadata() -> None:
    assert passage_metadata(_passage())["page"] == "old"


def test_a_passage_that_begins_within_a_table_is_shown_with_its_header() -> None:
    assert passage_text(_passage(header="| ware | price |")) == "| ware | price |\n| ink | 3 |"
    assert passage_text(_passage()) == "| ink | 3 |"


def test_a_folder_is_opened_and_asked(folder: Path) -> None:
    passages = PassageSource(str(folder)).passages(QUESTION)
    assert passages[0].chunk.document_id == "letters/1"


def test_strategy_filter_number_and_other_options_are_used(kb: sync.BlockingQuipu) -> None:
    allowed = Filter(documents=("letters/*",))
    source = PassageSource(kb, strategy="lexical", top_k=1, filter=allowed, options={"chunk_top_k": 9, "top_k": 3})
    passages = source.passages("Anna Brandt printing press valley Tagus")
    assert [passage.chunk.document_id for passage in passages] in (["letters/1"], ["letters/2"])
    assert len(source.passages("Anna Brandt printing press", 2)) == 2
    with pytest.raises(InvalidInput, match="nothing"):
        PassageSource(kb, strategy="nothing").passages(QUESTION)


async def test_a_blocking_index_is_asked_without_blocking_the_loop(folder: Path) -> None:
    passages = await PassageSource(folder).passages_async(QUESTION, 1)
    assert [passage.chunk.document_id for passage in passages] == ["letters/1"]


async def test_an_index_for_asyncio_is_awaited_and_not_asked_in_a_blocking_way(folder: Path) -> None:
    async with quipu.open(folder) as kb:
        source = PassageSource(kb, top_k=1)
        assert [passage.chunk.document_id for passage in await source.passages_async(QUESTION)] == ["letters/1"]
        with pytest.raises(InvalidInput, match=r"quipu\.sync\.open"):
            source.passages(QUESTION)


def test_a_folder_without_an_index_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no index in"):
        PassageSource(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_index_is_refused() -> None:
    with pytest.raises(InvalidInput, match="None is no index"):
        PassageSource(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("module", "library"), [("langchain", "langchain_core"), ("llamaindex", "llama_index"), ("haystack", "haystack")]
)
def test_a_retriever_without_its_library_says_what_to_install(module: str, library: str) -> None:
    probe = f"""
import sys
sys.modules[{library!r}] = None
from quipu.errors import Unavailable
try:
    import quipu.integrations.{module}
except Unavailable as error:
    print(error.remedy)
"""
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout == f"Run pip install 'quipu-rag[{module}]'.\n"
