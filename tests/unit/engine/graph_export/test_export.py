"""Exports as a whole: equal documents give equal bytes, and a filter shows nothing of other documents."""

import json
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.engine.graph_export import FORMATS
from quipu.errors import NotFound
from quipu.model.query import Condition, Filter
from quipu.testing.contract.steps import publish
from quipu.testing.facts import document, entity, passage, relation
from tests.laws.world import engine
from tests.unit.engine.graph_export.world import exported, exported_bytes, exported_files


async def test_a_type_or_community_limits_an_export(kb: Quipu) -> None:
    people = json.loads(await exported(kb, "json", types=["Person"]))
    assert {node["type"] for node in people["nodes"]} == {"Person"}
    assert len(people["edges"]) == 1
    community = people["nodes"][0]["community"]
    part = json.loads(await exported(kb, "json", communities=[community]))
    assert {node["community"] for node in part["nodes"]} == {community}
    places = json.loads(await exported(kb, "json", types=["Place"]))
    assert (len(places["nodes"]), places["edges"]) == (1, [])


async def test_an_unknown_format_or_community_is_named(kb: Quipu) -> None:
    with pytest.raises(NotFound, match="'pdf'"):
        await exported(kb, "pdf")
    with pytest.raises(NotFound, match="'nowhere'"):
        await exported(kb, "json", communities=["nowhere"])


@pytest.mark.parametrize("name", FORMATS)
async def test_documents_in_another_order_give_the_same_bytes(tmp_path: Path, name: str) -> None:
    facts = [
        document("1", passage("Ada met Bob.", entity("Ada", "P"), entity("Bob", "P"), relation("Ada", "Bob", "met"))),
        document("2", passage("Bob met Cy.", entity("Bob", "Q"), entity("Cy", "P"), relation("Bob", "Cy", "met"))),
        document("3", passage("Ada met Cy.", entity("Ada", "P"), entity("Cy", "P"), relation("Cy", "Ada", "met"))),
    ]
    exports: list[bytes] = []
    for order in (facts, facts[::-1]):
        async with engine(tmp_path / f"kb{len(exports)}") as kb:
            for one in order:
                await publish(kb._components.store, one)
            exports.append(await exported_bytes(kb, name))
    assert exports[0] == exports[1]


@pytest.mark.parametrize("name", FORMATS)
async def test_a_filter_leaves_no_word_of_other_documents(kb: Quipu, name: str) -> None:
    late = Filter(where=(Condition(field="year", operator=">", value="1900"),))
    if FORMATS[name].is_folder:
        files = await exported_files(kb, name, filter=late)
        text = "".join([*files, *(content.decode("utf-8", "replace") for content in files.values())])
    else:
        text = await exported(kb, name, filter=late)
    assert "HYPERLINK" in text
    assert not [word for word in ("Ada", "Countess", "countess", "letters", "Лхаса") if word in text]


async def test_under_a_filter_entities_keep_their_place_on_the_map(kb: Quipu) -> None:
    whole = {node["id"]: node for node in json.loads(await exported(kb, "json"))["nodes"]}
    [ada, _] = json.loads(await exported(kb, "json", filter=Filter(documents=("2",))))["nodes"]
    assert (ada["x"], ada["y"], ada["community"]) == tuple(whole["ada"][name] for name in ("x", "y", "community"))
    assert (ada["mentions"], ada["description"]) == (1, "")


@pytest.mark.parametrize("name", FORMATS)
async def test_an_empty_graph_is_exported(tmp_path: Path, name: str) -> None:
    async with engine(tmp_path / "empty") as kb:
        assert bool(await exported_bytes(kb, name)) == (name != "jsonl")
