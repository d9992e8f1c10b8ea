"""Tests of lists and exports as of a date: by the dates of documents, and from the history."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.engine.graph_map import MapLevel, MapQuery
from quipu.errors import InvalidInput
from quipu.model.document import DocumentListing
from quipu.model.query import Filter
from quipu.testing.postgres_server import PostgresServer
from tests.laws.world import DATABASE_VARIABLE, engine

OLD = "Alice Kober leads the Acme Corporation in Boston."
NEW = "Emmett Bennett leads the Acme Corporation in Madison."

PEOPLE = {"Alice Kober", "Emmett Bennett", "Eve Stone", "Bo Smith"}


@pytest.fixture(params=["sqlite", "postgres"])
async def kb(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Quipu]:
    """An index in which a policy was replaced in 2021, and another document came in 2023."""
    if request.param == "postgres":
        running: PostgresServer = request.getfixturevalue("running_postgres")
        monkeypatch.setenv(DATABASE_VARIABLE, running.uri())
    async with engine(tmp_path / "kb", keeps_history=True) as kb:
        for name, year, text in (
            ("policy", 2018, OLD),
            ("policy", 2021, NEW),
            ("late", 2023, "Eve Stone met Bo Smith in Riga."),
        ):
            await kb.add_text(text, id=name, metadata={"date": f"{year}-01-01"}, title=f"of {year}")
        yield kb


@pytest.mark.parametrize(
    ("as_of", "titles", "people"),
    [
        ("2017", [], []),
        ("2019", ["of 2018"], ["Alice Kober"]),
        ("2022", ["of 2021"], ["Emmett Bennett"]),
        ("2024", ["of 2023", "of 2021"], ["Bo Smith", "Emmett Bennett", "Eve Stone"]),
        ("", ["of 2023", "of 2021"], ["Bo Smith", "Emmett Bennett", "Eve Stone"]),
    ],
)
async def test_lists_and_exports_show_what_held(kb: Quipu, as_of: str, titles: list[str], people: list[str]) -> None:
    assert [document.title for document in await kb.documents(allowed=Filter(as_of=as_of))] == titles
    page = await kb.entities(as_of=as_of)
    names = {entity.name for entity in page.entities}
    assert sorted(names & PEOPLE) == people
    assert page.n_total == len(names)
    relations = (await kb.relations(as_of=as_of)).relations
    ends = {end for relation in relations for end in (relation.source_name, relation.target_name)}
    assert ends >= set(people)
    assert ("Acme Corporation" in ends) == (as_of != "2017")
    graph = json.loads(b"".join([piece async for piece in kb.export_graph(filter=Filter(as_of=as_of))]))
    assert {node["label"] for node in graph["nodes"]} == names


async def test_neighbours_and_pages_are_of_the_past(kb: Quipu) -> None:
    page = await kb.neighbours("Acme Corporation", as_of="2019")
    names = [entity.name for _, entity in page.neighbours]
    assert "Alice Kober" in names
    assert "Emmett Bennett" not in names
    seen: list[str] = []
    cursor = ""
    while not seen or cursor:
        entities = await kb.entities(k=1, after=cursor, as_of="2019")
        seen += [entity.name for entity in entities.entities]
        cursor = entities.cursor
    assert seen == [entity.name for entity in (await kb.entities(as_of="2019")).entities]
    assert (await kb.entities(prefix="ali", as_of="2019")).n_total == 1
    assert (await kb.entities(prefix="ali")).n_total == 0


async def test_chunks_parts_of_the_graph_and_maps_are_of_the_past(kb: Quipu) -> None:
    assert [chunk.text for chunk in (await kb.chunks("policy", as_of="2019")).chunks] == [OLD]
    names = {entity.name for entity in (await kb.subgraph("Acme Corporation", as_of="2019")).entities}
    assert names & PEOPLE == {"Alice Kober"}
    (path, *_) = await kb.paths("Alice Kober", "Acme Corporation", as_of="2019")
    assert len(path.relations) == 1
    now = await kb.graph_map(MapQuery(level=MapLevel.MIDDLE))
    then = [await kb.graph_map(MapQuery(level=MapLevel.MIDDLE, as_of="2019")) for _ in range(2)]
    assert set(then[0].labels) & PEOPLE == {"Alice Kober"}
    assert then[0].ids == then[1].ids
    assert (await kb.graph_map(MapQuery(level=MapLevel.MIDDLE))).labels == now.labels


async def test_the_past_of_an_index_that_is_empty_now_is_listed_and_exported(kb: Quipu) -> None:
    await kb.remove(["policy", "late"])
    assert {entity.name for entity in (await kb.entities(as_of="2019")).entities} & PEOPLE == {"Alice Kober"}
    for name in ("json", "html", "csv"):
        assert [piece async for piece in kb.export_graph(name, filter=Filter(as_of="2019"))]
    assert [document.id for document in await kb.documents(DocumentListing(k=1), Filter(as_of="2019"))] == ["policy"]


async def test_earlier_versions_come_page_by_page(kb: Quipu) -> None:
    for text in (OLD, NEW, OLD):
        await kb.add_text(text, id="policy", title="again")
    await kb.remove(["late"])
    whole = await kb.earlier_versions()
    assert [version.document_id for version in whole] == ["late", "policy", "policy", "policy", "policy"]
    pages = [await kb.earlier_versions(k=2)]
    while pages[-1]:
        pages.append(await kb.earlier_versions(k=2, after=pages[-1][-1].cursor))
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert [version for page in pages for version in page] == whole
    assert await kb.earlier_versions(["policy"], k=1) == whole[1:2]
    for wrong in ("x", "[1, 2, 3]", '["a"]', "null"):
        with pytest.raises(InvalidInput, match="not a cursor"):
            await kb.earlier_versions(after=wrong)


@pytest.mark.parametrize("wrong", ["yesterday", "2019-13", "2019-02-30"])
async def test_what_is_no_date_is_refused(kb: Quipu, wrong: str) -> None:
    for work in (
        kb.entities(as_of=wrong),
        kb.relations(as_of=wrong),
        kb.neighbours("Acme Corporation", as_of=wrong),
        kb.subgraph("Acme Corporation", as_of=wrong),
        kb.paths("Acme Corporation", "Alice Kober", as_of=wrong),
        kb.chunks("policy", as_of=wrong),
        kb.graph_map(MapQuery(as_of=wrong)),
        kb.usage(since=wrong),
        kb.usage(until=wrong),
    ):
        with pytest.raises(InvalidInput, match="is not a date"):
            await work
