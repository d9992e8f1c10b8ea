"""Names in other scripts: a question finds passages that name the same person or place in another script."""

from collections.abc import Awaitable, Callable

import pytest

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve import ppr, weave
from quipu.retrieve.steps.seeds import link_names
from quipu.retrieve.strategy import Tools
from tests.unit.retrieve.fakes import Library, page, titles

Retrieve = Callable[[Query, ReadView, Tools], Awaitable[Evidence]]

PAGES = (
    page("1", "Михаил Булгаков жил на Большой Садовой.", names={"Михаил Булгаков": "Person"}),
    page("2", "Linus Torvalds wrote a kernel.", names={"Linus Torvalds": "Person"}),
    page("3", "王小明住在上海。", names={"王小明": "Person", "上海": "Location"}),
    page("4", "Zhang Jianguo repairs clocks.", names={"Zhang Jianguo": "Person"}),
    page("5", "The Café Central opened in Wien.", names={"Café Central": "Organization"}),
    page("6", "Paul Erdos never had a house.", names={"Paul Erdos": "Person"}),
    page("7", "Nobody is named here."),
)
QUESTIONS = [
    ("Where did Mikhail Bulgakov live?", "1"),
    ("Что написал Линус Торвальдс?", "2"),
    ("Which city is Wang Xiaoming from?", "3"),
    ("张建国做什么工作？", "4"),
    ("When was Cafe Central founded?", "5"),
    ("What did Paul Erdős own?", "6"),
]


@pytest.fixture
async def index(library: Library) -> Library:
    """A library of the pages above."""
    await library.publish(*PAGES)
    return library


@pytest.mark.parametrize("retrieve", [weave.retrieve, ppr.retrieve], ids=["weave", "ppr"])
@pytest.mark.parametrize(("question", "title"), QUESTIONS)
async def test_a_question_finds_the_passage_that_writes_the_name_otherwise(
    index: Library, retrieve: Retrieve, question: str, title: str
) -> None:
    async with index.view() as view:
        evidence = await retrieve(Query(text=question, chunk_top_k=1), view, index.tools)
        assert await titles(view, evidence.chunks) == [title]
    assert [seed.kind for seed in evidence.seeds][:1] == ["name"]


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        ("Where did mikhail bulgakov live, says the Reader?", []),  # no capitals: no name in another script
        ("where did mikhail bulgakov live?", ["михаил булгаков"]),
        ("Where was Mikhail Bulgakov's flat?", ["михаил булгаков"]),
        ("What is the date of birth of Wang Xiaoming?", ["王小明"]),
        ("Who is Paul Erdős?", ["paul erdos"]),
    ],
)
async def test_only_what_is_written_as_a_name_is_looked_up_in_other_spellings(
    index: Library, question: str, keys: list[str]
) -> None:
    async with index.view() as view:
        assert [key for name in await link_names(question, view) for key in name.keys] == keys


async def test_a_name_that_an_entity_has_as_it_is_stands_for_no_other_spelling(index: Library) -> None:
    await index.publish(page("8", "Paul Erdős wrote papers.", names={"Paul Erdős": "Person"}))
    async with index.view() as view:
        (name,) = await link_names("Who is Paul Erdős?", view)
    assert name.keys == ("paul erdős",)
