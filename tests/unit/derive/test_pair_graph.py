"""The graph of communities: relations by weight, and ties for what is related to too few."""

from itertools import pairwise
from pathlib import Path

import pytest

from quipu.derive.derivation import DerivationContext
from quipu.derive.pair_graph import PairGraph, read_pair_graph
from quipu.model.delta import DocumentFacts
from quipu.testing.facts import document, entity, passage, relation
from tests.unit.derive.workshop import open_bench, publish, remove

_RING = ("Ada", "Bo", "Cy", "Di", "Eve")
_SAID = document(
    "ring",
    *(passage(f"{a} {b}", entity(a), entity(b), relation(a, b, weight=2.0)) for a, b in pairwise(_RING)),
    passage("Ada, Bo, Flo and Gus.", entity("Ada"), entity("Flo"), entity("Gus"), entity("Bo")),
    passage("Hal is alone.", entity("Hal")),
)


async def _graph(context: DerivationContext) -> PairGraph:
    async with context.store.view() as view:
        return await read_pair_graph(view, await context.topology.open(view))


def _links(graph: PairGraph, *, tied: bool) -> dict[str, float]:
    pairs = graph.tied if tied else graph.relations
    ends = zip(pairs.sources.tolist(), pairs.targets.tolist(), pairs.weights.tolist(), strict=True)
    return {f"{graph.keys[a]} {graph.keys[b]}": round(weight, 6) for a, b, weight in ends}


async def test_entities_are_in_the_order_of_their_keys_and_links_have_their_weights(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, _SAID)
        graph = await _graph(context)
        assert graph.keys == ["ada", "bo", "cy", "di", "eve", "flo", "gus", "hal"]
        assert _links(graph, tied=False) == {"ada bo": 2.0, "bo cy": 2.0, "cy di": 2.0, "di eve": 2.0}


async def test_what_is_related_to_too_few_is_tied_to_what_its_passages_name(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, _SAID)
        ties = _links(await _graph(context), tied=True)
        assert ties.items() >= _links(await _graph(context), tied=False).items()
        third = round(1 / 3, 6)
        assert ties["ada flo"] == ties["ada gus"] == ties["bo flo"] == third
        assert ties["flo gus"] == round(2 / 3, 6)  # from both sides
        assert not any("hal" in each for each in ties)  # nothing else is named where it is


async def test_the_graph_is_the_same_whatever_came_first_and_went(tmp_path: Path) -> None:
    other = document("other", passage("Ada and Zed.", entity("Ada"), entity("Zed"), relation("Ada", "Zed")))
    graphs: list[object] = []
    histories: list[list[DocumentFacts]] = [[_SAID, other], [other, _SAID]]
    for number, history in enumerate(histories):
        async with open_bench(tmp_path / str(number)) as context:
            if number:
                await publish(context, document("gone", passage("Flo and Ada.", entity("Flo"), entity("Ada"))))
            for each in history:
                await publish(context, each)
            if number:
                await remove(context, "gone")
            graph = await _graph(context)
            graphs.append((graph.keys, _links(graph, tied=False), _links(graph, tied=True)))
    assert graphs[0] == graphs[1]


async def test_an_empty_index_has_an_empty_graph(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        graph = await _graph(context)
        assert (graph.keys, graph.tied.n) == ([], 0)


@pytest.mark.parametrize("n", [1, 3])
async def test_ties_weigh_one_a_passage_in_all(tmp_path: Path, n: int) -> None:
    async with open_bench(tmp_path / "a") as context:
        chain = [passage(f"{a} {b}.", entity(a), entity(b), relation(a, b)) for a, b in pairwise(_RING)]
        named = [passage(f"Flo {i}: Ada, Bo.", entity("Flo"), entity("Ada"), entity("Bo")) for i in range(n)]
        await publish(context, document("d", *chain, *named))
        ties = _links(await _graph(context), tied=True)
        assert ties["ada flo"] + ties["bo flo"] == pytest.approx(n)


async def test_the_order_in_which_documents_came_does_not_show_in_the_last_bit(tmp_path: Path) -> None:
    books = [
        document(f"d{n}", passage(f"Text {n}.", entity("Ada"), entity("Bo"), *(entity(f"X{n}{i}") for i in range(n))))
        for n in (1, 2, 4, 5, 9)
    ]
    weights = set()
    orders = (0, 1, 2, 3, 4), (0, 3, 1, 2, 4), (0, 2, 4, 3, 1)  # in which floats would have three sums
    for number, order in enumerate(orders):
        async with open_bench(tmp_path / str(number)) as context:
            for book in (books[place] for place in order):
                await publish(context, book)
            weights.add((await _graph(context)).tied.weights.tobytes())
    assert len(weights) == 1
