"""A topology follows the store through any history: what it holds is what the store says, incremental or rebuilt."""

import asyncio
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.model.delta import Delta, DocumentFacts
from quipu.model.query import Filter
from quipu.ports.store import ReadView
from quipu.stores.relational.store import RelationalStore
from quipu.testing.facts import FactMention, alias, document, entity, passage, relation
from quipu.text.names import entity_key
from quipu.topology import LocalTopologyIndex
from quipu.topology.graph import Graph, GraphTables, build_graph, merge_layers
from tests.unit.stores.opening import open_index
from tests.unit.topology.reference import read, told

NAMES = ("Ada Lovelace", "Charles Babbage", "London", "Turin", "Analytical Engine", "Luigi Menabrea")
ALIASES = (
    ("Ada Lovelace", "Countess Ada"),
    ("Charles Babbage", "Babbage"),
    ("Analytical Engine", "Babbage"),
    ("London", "London"),
)
KEYS = [entity_key(name) for name in NAMES]
DOCUMENTS = ("a", "b", "c")


@st.composite
def facts(draw: st.DrawFn) -> DocumentFacts:
    passages = []
    for _ in range(draw(st.integers(0, 3))):
        spelled = draw(st.lists(st.sampled_from([*NAMES, "Countess Ada", "Babbage", "nothing"]), max_size=4))
        mentioned = draw(st.lists(st.sampled_from(NAMES), max_size=4))
        said: list[FactMention] = [entity(name) for name in mentioned]
        if len(set(mentioned)) > 1:
            ends = st.lists(st.sampled_from(sorted(set(mentioned))), min_size=2, max_size=2, unique=True)
            for source, target in draw(st.lists(ends, max_size=3)):
                said.append(relation(source, target, weight=draw(st.sampled_from([0.5, 1.0, 2.125]))))
        said += [alias(*each) for each in ALIASES if each[0] in mentioned and draw(st.booleans())]
        passages.append(passage(". ".join(spelled) or "Nobody is named here", *said))
    return document(draw(st.sampled_from(DOCUMENTS)), *passages)


changes = st.lists(st.one_of(facts(), st.sampled_from(DOCUMENTS), st.just("purge"), st.just("file")), max_size=7)


@settings(max_examples=30)
@given(history=changes, allowed=st.sets(st.sampled_from(DOCUMENTS), min_size=1))
def test_a_topology_holds_what_the_store_says_after_any_history(
    history: list[DocumentFacts | str], allowed: set[str]
) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_follow(Path(folder), history, Filter(documents=tuple(sorted(allowed)))))


LONDON, TURIN = entity("London"), entity("Turin")


@pytest.mark.parametrize(
    "history",
    [
        [document("a", passage("London.", LONDON)), document("b", passage("London again.")), "a"],
        [document("a", "One.", "Two."), document("a", "Two.", "One.")],
        [document("a", passage("London, London.", LONDON, alias("London", "London")))],
        [document("a", passage("London.", LONDON)), "a", document("b", passage("Turin.", TURIN))],
        [
            document("a", passage("The old town is London.", LONDON, alias("London", "old town"))),
            document("b", passage("The old town. Turin.", TURIN)),
            document("c", passage("The old town.", TURIN, alias("Turin", "old town"))),
            "a",
        ],
    ],
    ids=["an entity goes", "chunks move", "a name is its own alias", "a number is used again", "an alias goes"],
)
def test_a_topology_follows(tmp_path: Path, history: list[DocumentFacts | str]) -> None:
    asyncio.run(_follow(tmp_path, history, Filter(documents=("b",))))


async def _follow(folder: Path, history: list[DocumentFacts | str], allowed: Filter) -> None:
    topologies = LocalTopologyIndex(folder / "topology", min_chunks=0, max_unsaved=3)
    async with open_index(folder / "index.sqlite") as store:
        for change in history:
            if change == "file":  # another process: it knows nothing but the file
                async with store.view() as view:
                    await topologies.catch_up(view)
                topologies = LocalTopologyIndex(folder / "topology", min_chunks=0, max_unsaved=3)
            else:
                await _apply(store, change)
            for only in (Filter(), allowed):
                async with store.view(only) as view:
                    assert await read(await topologies.open(view), view) == await told(view, KEYS)
            async with store.view() as view:
                await _check_rebuilt(await topologies.open(view), view)


async def _apply(store: RelationalStore, change: DocumentFacts | str) -> None:
    if change == "purge":
        await store.purge()
    elif isinstance(change, str):
        await store.commit(Delta(remove=[change]))
    else:
        await store.commit(Delta(publish=[change]))


async def _check_rebuilt(topology: object, view: ReadView) -> None:
    """Check that the tables, in one piece, are those made of the store's rows, byte for byte."""
    assert isinstance(topology, Graph)
    again = build_graph(view.revision, await view.graph_rows())
    whole = merge_layers(topology)
    assert (whole.n_entities, whole.n_chunks) == (again.n_entities, again.n_chunks)
    for name in (each.name for each in fields(GraphTables)):
        kept, made = getattr(whole.tables, name).base, getattr(again.tables, name).base
        assert np.array_equal(kept.starts, made.starts), name
        assert np.array_equal(kept.columns, made.columns), name
        assert all(np.array_equal(a, b) for a, b in zip(kept.values, made.values, strict=True)), name
