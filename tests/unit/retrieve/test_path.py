"""Tests of path against its formulas, path by path, and by hand."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from quipu.model.ids import relation_ends, relation_id
from quipu.model.query import Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve import path
from quipu.retrieve.question import apply_preset
from quipu.retrieve.strategy import Tools
from tests.unit.retrieve.dense import (
    QUESTION,
    Dense,
    asked_with,
    best,
    cosines,
    dense,
    derive,
    filtered_and_alone,
    found_in_order,
    relations_of,
    world,
)
from tests.unit.retrieve.fakes import Library, page, titles

_QUERY = Query(text=QUESTION, min_similarity=0.0, chunk_top_k=5)
_REPLY = '{"answer_types": ["location", "Ship"], "names": ["Amber Falk", "Cedar House"]}'
_NAMES = ("Amber Falk", "Cedar House")


def _walks(starts: dict[str, float], found: Dense, length: int) -> list[tuple[str, ...]]:
    """Return every path over related pairs, shorter ones to a dead end, and none from the best of the lonely."""
    near = {
        key: [other for n, other in enumerate(found.keys) if found.weights[row, n]]
        for row, key in enumerate(found.keys)
    }

    def extended(walk: tuple[str, ...]) -> list[tuple[str, ...]]:
        used = {relation_id(one, other) for one, other in pairwise(walk)}
        unused = [to for to in near[walk[-1]] if relation_id(walk[-1], to) not in used]
        if len(walk) == length + 1 or not unused:
            return [walk]
        return [longer for to in unused for longer in extended((*walk, to))]

    walks = [walk for start in starts for walk in extended((start,)) if len(walk) > 1]
    lonely = sorted((key for key in starts if not near[key]), key=lambda key: (-starts[key], key))
    return walks + [(key,) for key in lonely[: -(-len(lonely) // 5)]]


async def _starts(view: ReadView, tools: Tools, found: Dense) -> dict[str, float]:
    starts: dict[str, float] = {}
    for name in _NAMES:
        for key, cosine in zip(found.keys, await cosines(view, tools, VectorSpace.NAME, name, found.keys), strict=True):
            if cosine >= 0:
                starts[key] = max(starts.get(key, 0.0), 1.0 if key == name.casefold() else float(cosine))
    return starts


async def _marked(view: ReadView, tools: Tools, found: Dense, ends: set[str]) -> set[str]:
    relations = relations_of(found)
    near = await cosines(view, tools, VectorSpace.RELATION, QUESTION, relations)
    pairs = zip(relations, near, strict=True)
    return {each for each, cosine in pairs if cosine >= 0 and ends.intersection(relation_ends(each))}


def _within(relation: str, hops: int, found: Dense) -> set[str]:
    """Return the entities within so many hops of a relation."""
    near = set(relation_ends(relation))
    for _ in range(hops):
        near |= {found.keys[int(n)] for key in near for n in np.flatnonzero(found.weights[found.place(key)])}
    return near


async def _expected(view: ReadView, tools: Tools, options: path.PathOptions) -> tuple[dict[str, float], list[str]]:
    """Return the worth of each chunk that the formulas give, and the best chunks."""
    found = await dense(view)
    starts = await _starts(view, tools, found)
    answers = {key for key, kind in zip(found.keys, found.types, strict=True) if kind == "Location"}
    near = await _marked(view, tools, found, {*starts, *answers})
    omega = dict.fromkeys(near, 1)
    if hops := options.path_hops:
        omega = {
            each: len(answers & _within(each, hops, found)) + len(starts.keys() & _within(each, hops, found))
            for each in near
        }
    scored = []
    for walk in _walks(starts, found, options.path_length):
        steps = [relation_id(one, other) for one, other in pairwise(walk)]
        score = round(
            starts[walk[0]]
            * (1 + len(answers.intersection(walk)) + sum(omega[step] for step in steps if step in near)),
            6,
        )
        weight = sum(found.weights[found.place(a), found.place(b)] for a, b in pairwise(walk))
        scored.append((-score, -round(weight, 6), walk, steps))
    worth = dict.fromkeys(found.chunks, 0.0)
    for negative, _, walk, steps in sorted(scored)[: path.N_PATHS]:
        naming = [
            [chunk for chunk, n in zip(found.chunks, found.appearances[found.place(key)], strict=True) if n]
            for key in walk
        ]
        for sharing in [*naming, *(found.stated[step] for step in steps)]:
            for chunk in sharing:
                worth[chunk] -= negative / len(sharing)
    closest = await cosines(view, tools, VectorSpace.CHUNK, QUESTION, found.chunks)
    for _, chunk in sorted(zip((-closest).tolist(), found.chunks, strict=True))[: _QUERY.chunk_top_k]:
        worth[chunk] *= path.BOOST
    return worth, best(worth, _QUERY.chunk_top_k)


_FORMULAS = [path.PathOptions(), path.PathOptions(path_hops=1), path.PathOptions(path_length=3, path_hops=2)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("options", [*_FORMULAS, path.PathOptions(path_length=1)])
async def test_evidence_is_what_the_formulas_give_to_the_id(
    library: Library, seed: int, options: path.PathOptions
) -> None:
    await library.publish(*world(seed))
    await derive(library)
    tools, model = asked_with(library.tools, _REPLY)
    async with library.view() as view:
        found = await path.retrieve(_QUERY.with_options(options), view, tools)
        assert library.embedder.calls == [(QUESTION, *_NAMES)]
        worth, chunks = await _expected(view, library.tools, options)
    assert [hit.id for hit in found.chunks] == chunks
    assert [hit.score for hit in found.chunks] == pytest.approx([worth[chunk] for chunk in chunks])
    assert len(model.requests) == path.STRATEGY.n_model_calls == 1
    assert found.notes == ()


async def test_a_small_graph_by_hand(library: Library) -> None:
    """Ada — Bob — Cyril; Ada is named, a person is asked for, and "Bob paid Cyril" is the relation near the question.

    The one path of Ada is worth 1 · (1 + 3 persons + 1 relation) = 5. Of the passages, one names Ada, shares Bob with
    the other, and states their relation: 5 + 5 / 2 + 5; the other likewise. The one on Dan is on no path.
    """
    await library.publish(
        page("One", "Ada knew Bob.", names={"Ada": "Person", "Bob": "Person"}, relations=[("Ada", "Bob", "knew")]),
        page(
            "Two",
            "Bob paid Cyril.",
            names={"Bob": "Person", "Cyril": "Person"},
            relations=[("Bob", "Cyril", "was paid by whom")],
        ),
        page("Three", "Dan sat.", names={"Dan": "Person"}),
    )
    await derive(library)
    query = Query(text="Who was paid by a friend of Ada?", min_similarity=0.4)
    async with library.view() as view:
        found = await path.retrieve(query, view, library.tools)
        faithful = await path.retrieve(
            apply_preset(replace(query, strategy="path", preset="faithful")), view, library.tools
        )
        assert sorted(await titles(view, found.chunks)) == ["One", "Two"]
    assert {hit.id: hit.score for hit in found.entities} == {"ada": 5.0, "bob": 5.0, "cyril": 5.0}
    assert {hit.id: hit.score for hit in found.relations} == {"ada -- bob": 5.0, "bob -- cyril": 5.0}
    assert [hit.score for hit in found.chunks] == [12.5, 12.5]
    # ω_e of the key relation: one start node and three answer candidates are within two hops; so 1 · (1 + 3 + 4) = 8
    assert {hit.id: hit.score for hit in faithful.relations} == {"ada -- bob": 8.0, "bob -- cyril": 8.0}
    assert [hit.score for hit in faithful.chunks] == [20.0, 20.0]
    assert all(hit.reason == "on the path ada → bob → cyril" for hit in found.chunks)


async def test_what_only_lies_near_the_question_is_lifted_and_not_added(library: Library) -> None:
    await library.publish(
        page("One", "Ada knew Bob.", names={"Ada": "Person", "Bob": "Person"}, relations=[("Ada", "Bob", "knew")]),
        page("Two", "Did nobody know it?"),
    )
    await derive(library)
    async with library.view() as view:
        found = await path.retrieve(Query(text="Did Ada know it?", min_similarity=0.0), view, library.tools)
        assert await titles(view, found.chunks) == ["One"]
    assert found.chunks[0].reason.endswith("and near the question")


@pytest.mark.parametrize("reply", ["", "I do not know.", '{"names": [], "answer_types": "Person"}'])
async def test_a_reply_that_tells_nothing_leaves_it_to_the_words(library: Library, reply: str) -> None:
    await library.publish(*world(1))
    await derive(library)
    async with library.view() as view:
        without = await path.retrieve(_QUERY, view, library.tools)
        found = await path.retrieve(_QUERY, view, asked_with(library.tools, reply)[0])
    assert found.chunks == without.chunks
    assert "taken from the words of the question" in found.notes[0]
    assert "no language model" in without.notes[0]


async def test_a_question_without_names_starts_from_names_like_its_words(library: Library) -> None:
    await library.publish(*world(1))
    await derive(library)
    async with library.view() as view:
        found = await path.retrieve(Query(text="what fair was there?"), view, library.tools)
    assert [(seed.text, [each.id for each in seed.matches]) for seed in found.seeds[:1]] == [
        ("what fair was there?", ["elm fair"])
    ]


async def test_where_nothing_is_named_alike_the_nearest_passages_stand_in(library: Library) -> None:
    await library.publish(*world(1))
    await derive(library)
    async with library.view() as view:
        found = await path.retrieve(Query(text="who did sell the grain?"), view, library.tools)
    assert found.chunks
    assert any("passages nearest to the question are used instead" in note for note in found.notes)


async def test_hubs_are_cut_and_it_is_said(library: Library) -> None:
    options = (path.PathOptions(path_links=2),)
    others = [f"Person {letter}" for letter in "ABCDE"]
    relations = [("Ada", other, f"Ada knew {other}.") for other in others]
    await library.publish(
        page("One", "Ada knew many.", names={"Ada": "Person"} | dict.fromkeys(others, "Person"), relations=relations)
    )
    await derive(library)
    async with library.view() as view:
        found = await path.retrieve(Query(text="Whom did Ada know?", options=options), view, library.tools)
    assert "only 2 relations were followed from each of 1 hub" in found.notes


async def test_the_order_and_batches_of_documents_do_not_show(tmp_path: Path) -> None:
    first, second = [await found_in_order(path.retrieve, _QUERY, tmp_path / str(seed), seed) for seed in (1, 2)]
    assert first == second


async def test_a_filter_sees_the_graph_of_the_allowed_documents_alone(tmp_path: Path) -> None:
    filtered, alone, allowed = await filtered_and_alone(path.retrieve, _QUERY, tmp_path)
    assert {hit.id for hit in filtered.chunks} <= allowed
    assert {hit.id for hit in filtered.entities} == {hit.id for hit in alone.entities}


async def test_russian_and_chinese(library: Library) -> None:
    await library.publish(
        page(
            "Поло",
            "Марко Поло служил Хубилаю.",
            names={"Марко Поло": "Person", "Хубилай": "Person"},
            relations=[("Марко Поло", "Хубилай", "Марко Поло служил Хубилаю.")],
        ),
        page(
            "长城",
            "马可·波罗没有提到长城。",
            names={"马可·波罗": "Person", "长城": "Artifact"},
            relations=[("马可·波罗", "长城", "马可·波罗没有提到长城。")],
        ),
    )
    await derive(library)
    async with library.view() as view:
        russian = await path.retrieve(Query(text="Кому служил Марко Поло?"), view, library.tools)
        chinese = await path.retrieve(Query(text="谁提到长城？"), view, library.tools)
        assert (await titles(view, russian.chunks))[0] == "Поло"
        assert (await titles(view, chinese.chunks))[0] == "长城"
    assert {hit.id for hit in russian.entities} == {"марко поло", "хубилай"}
    assert [each.text for each in chinese.seeds][:1] == ["长城"]


async def test_an_empty_index_does_not_fail(library: Library) -> None:
    async with library.view() as view:
        assert (await path.retrieve(_QUERY, view, library.tools)).chunks == ()
