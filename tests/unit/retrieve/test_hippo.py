"""Tests of hippo against its formulas, on full matrices and by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quipu.model.ids import relation_ends
from quipu.model.query import Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve import hippo
from quipu.retrieve.hippo import HippoOptions
from quipu.retrieve.question import apply_preset
from quipu.retrieve.strategy import Tools
from tests.unit.retrieve.dense import (
    QUESTION,
    asked_with,
    best,
    cosines,
    dense,
    derive,
    filtered_and_alone,
    found_in_order,
    page_rank,
    relations_of,
    scaled,
    world,
)
from tests.unit.retrieve.fakes import Library, page, titles

_DEFAULT = HippoOptions()
_QUERY = Query(text=QUESTION, min_similarity=0.0, chunk_top_k=5)


def _facts(keys: list[str], similarity: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, float]:
    """Return all facts, nearest first, with their place between the nearest and the farthest."""
    order = sorted(range(len(keys)), key=lambda n: (-similarity[n], keys[n]))
    share = scaled(similarity)
    return {keys[n]: max(round(float(share[n]), 6), 0.01) for n in order}


def _about_what_is_named(facts: list[str]) -> list[str]:
    """Return the first five facts an end of which stands in the question."""
    return [fact for fact in facts if any(end in QUESTION.casefold() for end in relation_ends(fact))][:5]


async def _expected(
    view: ReadView, tools: Tools, kept: set[str] | None = None, options: HippoOptions = _DEFAULT
) -> tuple[list[str], dict[str, float]]:
    """Return the chunks and the weights of phrases that the paper's formulas give."""
    found = await dense(view)
    relations = relations_of(found)
    facts = _facts(relations, await cosines(view, tools, VectorSpace.RELATION, QUESTION, relations))
    facts = {fact: score for fact, score in facts.items() if fact in (kept or _about_what_is_named(list(facts)))}
    scores: dict[str, list[float]] = {}
    for fact, score in facts.items():
        for end in relation_ends(fact):
            scores.setdefault(end, []).append(score)
    n_chunks = (found.appearances > 0).sum(axis=1)
    means = {key: sum(each) / len(each) / n_chunks[found.place(key)] for key, each in scores.items()}
    phrases = {key: means[key] for key in sorted(means, key=lambda key: (-round(means[key], 9), key))[:5]}
    n, m = found.appearances.shape
    links = np.zeros((n + m, n + m))
    links[:n, :n] = options.hippo_fact_weight * found.mentions + options.hippo_synonym_weight * found.synonyms
    links[:n, n:] = found.appearances > 0
    links[n:, :n] = links[:n, n:].T
    reset = np.zeros(n + m)
    for key, weight in phrases.items():
        reset[found.place(key)] = weight
    reset[n:] = options.hippo_passage_weight * scaled(
        await cosines(view, tools, VectorSpace.CHUNK, QUESTION, found.chunks)
    )
    ranks = page_rank(links, reset, options.hippo_damping)
    return best(dict(zip(found.chunks, ranks[n:].tolist(), strict=True)), 5), phrases


@pytest.mark.parametrize("seed", range(8))
async def test_evidence_is_what_the_formulas_give_to_the_id(library: Library, seed: int) -> None:
    await library.publish(*world(seed))
    await derive(library)
    async with library.view() as view:
        found = await hippo.retrieve(_QUERY, view, library.tools)
        assert library.embedder.calls == [(QUESTION,)]
        chunks, phrases = await _expected(view, library.tools)
    assert [hit.id for hit in found.chunks] == chunks
    assert {hit.id: hit.score for hit in found.entities} == pytest.approx(phrases)
    assert len(found.relations) == 5
    assert found.notes == ("no language model: the nearest facts about what the question names are used",)


@pytest.mark.parametrize("seed", range(3))
async def test_a_model_says_which_facts_count(library: Library, seed: int) -> None:
    await library.publish(*world(seed))
    await derive(library)
    async with library.view() as view:
        (near,) = await library.tools.vectors.nearest(
            view, VectorSpace.RELATION, await library.embedder.embed_queries([QUESTION]), k=5
        )
        tools, model = asked_with(library.tools, '{"relevant": [2, 4, 99, 2, "4"]}')
        found = await hippo.retrieve(_QUERY, view, tools)
        kept = {near[place].id for place in (1, 3)}
        chunks, phrases = await _expected(view, library.tools, kept)
    assert {hit.id for hit in found.relations} == kept
    assert [hit.id for hit in found.chunks] == chunks
    assert {hit.id for hit in found.entities} == set(phrases)
    assert len(model.requests) == hippo.STRATEGY.n_model_calls == 1
    assert found.notes == ("the model kept 2 of 5 facts",)


@pytest.mark.parametrize("reply", ["", "None of them.", '{"relevant": "2"}'])
async def test_a_reply_that_tells_nothing_leaves_it_to_the_names(library: Library, reply: str) -> None:
    await library.publish(*world(1))
    await derive(library)
    async with library.view() as view:
        without = await hippo.retrieve(_QUERY, view, library.tools)
        found = await hippo.retrieve(_QUERY, view, asked_with(library.tools, reply)[0])
    assert found.chunks == without.chunks
    assert "did not say" in found.notes[0]
    assert "no language model" in without.notes[0]


async def test_of_a_question_that_names_nothing_the_nearest_facts_count(library: Library) -> None:
    await library.publish(*world(1))
    await derive(library)
    query = replace(_QUERY, text="which river is left at night")
    async with library.view() as view:
        found = await hippo.retrieve(query, view, library.tools)
        (near,) = await library.tools.vectors.nearest(
            view, VectorSpace.RELATION, await library.embedder.embed_queries([query.text]), k=5, min_score=0.0
        )
    assert [hit.id for hit in found.relations] == [each.id for each in near]
    assert "no near fact is about what the question names" in found.notes[0]


async def test_where_no_fact_is_of_use_the_nearest_passages_stand_in(library: Library) -> None:
    await library.publish(*world(1))
    await derive(library)
    async with library.view() as view:
        found = await hippo.retrieve(_QUERY, view, asked_with(library.tools, '{"relevant": []}')[0])
        (near,) = await library.tools.vectors.nearest(
            view, VectorSpace.CHUNK, await library.embedder.embed_queries([QUESTION]), k=5, min_score=0.0
        )
    assert [(hit.id, hit.score) for hit in found.chunks] == [(each.id, each.score) for each in near]
    assert any("passages nearest to the question are used instead" in note for note in found.notes)


_OTHERWISE = HippoOptions(hippo_passage_weight=0.5, hippo_damping=0.7)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", [_OTHERWISE, HippoOptions(hippo_fact_weight=2.0, hippo_synonym_weight=2.0)])
async def test_the_options_are_the_weights_of_the_formulas(library: Library, seed: int, options: HippoOptions) -> None:
    await library.publish(*world(seed))
    await derive(library)
    async with library.view() as view:
        found = await hippo.retrieve(_QUERY.with_options(options), view, library.tools)
        default = await hippo.retrieve(_QUERY, view, library.tools)
        chunks, _ = await _expected(view, library.tools, options=options)
    assert [hit.id for hit in found.chunks] == chunks
    assert [hit.score for hit in found.chunks] != [hit.score for hit in default.chunks]


async def test_scores_are_scaled_over_the_nearest_facts_or_with_the_preset_over_all(library: Library) -> None:
    await library.publish(*world(2))
    await derive(library)
    few = _QUERY.with_options(HippoOptions(hippo_scaled_facts=5))
    faithful = apply_preset(replace(_QUERY, strategy="hippo", preset="faithful"))
    async with library.view() as view:
        relations = relations_of(await dense(view))
        scores = sorted((await cosines(view, library.tools, VectorSpace.RELATION, QUESTION, relations)), reverse=True)
        (of_few, of_all) = [(await hippo.retrieve(q, view, library.tools)).relations for q in (few, faithful)]
    fifth, last = scores[4], scores[-1]
    assert of_few[1].score == pytest.approx((scores[1] - fifth) / (scores[0] - fifth), abs=1e-5)
    assert of_all[1].score == pytest.approx((scores[1] - last) / (scores[0] - last), abs=1e-5)


async def test_with_the_preset_a_fact_weighs_two_for_its_two_directions(library: Library) -> None:
    """One fact, A — B, in the only passage. Both ends weigh 1 in the reset, and the passage 0.05.

    Links a–b of 2 and a–p, b–p of 1: x = ½ · (2 / 3 · x + ½ · y) + ½ · 1 / 2.05 and y = 1 / 3 · x + ½ · 0.05 / 2.05.
    """
    fact = [("Ada", "Bob", "amber mill")]
    await library.publish(page("One", "Ada, Bob.", names={"Ada": "Person", "Bob": "Person"}, relations=fact))
    await derive(library)
    query = apply_preset(Query(text="Ada Bob amber mill", strategy="hippo", preset="faithful"))
    async with library.view() as view:
        found = await hippo.retrieve(query, view, library.tools)
    _, y = np.linalg.solve([[1 - 1 / 3, -0.25], [-1 / 3, 1]], [0.5 / 2.05, 0.025 / 2.05])
    assert found.chunks[0].score == pytest.approx(y, abs=1e-6)


async def test_how_much_a_fact_counts_does_not_hang_on_how_many_are_searched_for(library: Library) -> None:
    await library.publish(*world(2))
    await derive(library)
    async with library.view() as view:
        found = await hippo.retrieve(_QUERY, view, library.tools)
        few = await hippo.retrieve(replace(_QUERY, top_k=5), view, library.tools)
        (near,) = await library.tools.vectors.nearest(
            view, VectorSpace.RELATION, await library.embedder.embed_queries([QUESTION]), k=3
        )
        far = await hippo.retrieve(replace(_QUERY, min_similarity=near[2].score), view, library.tools)
    assert few == found
    assert far.relations == found.relations[:3]


async def test_it_says_what_synonyms_would_add(library: Library) -> None:
    await library.publish(*world(1))
    async with library.view() as view:
        without = await hippo.retrieve(_QUERY, view, library.tools)
    await derive(library)
    async with library.view() as view:
        found = await hippo.retrieve(_QUERY, view, library.tools)
    assert "`quipu refresh synonyms`" in without.notes[-1]
    assert not any("synonyms" in note for note in found.notes)


async def test_a_passage_is_told_by_the_way_the_walk_came(library: Library) -> None:
    await library.publish(*world(1))
    await derive(library)
    async with library.view() as view:
        found = await hippo.retrieve(_QUERY, view, library.tools)
    (first, *_) = found.chunks
    assert first.reason.startswith(f"PageRank {first.score:.4g}, reached by ")
    assert any(f"by {phrase.id}" in first.reason for phrase in found.entities)


async def test_a_small_graph_by_hand(library: Library) -> None:
    """One fact, A — B, in the passage of both; a third passage stands for itself.

    f = 1; both ends stand in one passage, so both weigh 1. The passages weigh 0.05 and 0 (the farthest). The walk:
    a = b = x, p = y with links a–b, a–p, b–p of 1 each: a triangle, in which every node has degree 2.
    x = ½ · (x + y) / 2 + ½ · 1 / 2.05 and y = ½ · x + ½ · 0.05 / 2.05, solved below.
    """
    await library.publish(
        page(
            "One", "Ada met Bob.", names={"Ada": "Person", "Bob": "Person"}, relations=[("Ada", "Bob", "Ada met Bob.")]
        ),
        page("Two", "Nothing here."),
    )
    async with library.view() as view:
        found = await hippo.retrieve(Query(text="Did Ada meet Bob?", min_similarity=0.0), view, library.tools)
        assert await titles(view, found.chunks) == ["One"]
    x, y = np.linalg.solve([[1 - 0.25, -0.25], [-0.5, 1]], [0.5 / 2.05, 0.5 * 0.05 / 2.05])
    assert found.chunks[0].score == pytest.approx(y, abs=1e-6)
    assert 2 * x + y == pytest.approx(1)
    assert [(hit.id, hit.score) for hit in found.entities] == [("ada", 1.0), ("bob", 1.0)]


async def test_the_order_and_batches_of_documents_do_not_show(tmp_path: Path) -> None:
    first, second = [await found_in_order(hippo.retrieve, _QUERY, tmp_path / str(seed), seed) for seed in (1, 2)]
    assert first == second


async def test_a_filter_gives_what_the_allowed_documents_alone_give(tmp_path: Path) -> None:
    filtered, alone, allowed = await filtered_and_alone(hippo.retrieve, _QUERY, tmp_path)
    assert {hit.id for hit in filtered.chunks} <= allowed
    assert len(filtered.chunks) == len(alone.chunks)


async def test_russian_and_chinese(library: Library) -> None:
    await library.publish(
        page(
            "Поло",
            "Марко Поло служил хану Хубилаю.",
            names={"Марко Поло": "Person", "Хубилай": "Person"},
            relations=[("Марко Поло", "Хубилай", "Марко Поло служил хану.")],
        ),
        page("Хубилай", "Хубилай правил в Даду.", names={"Хубилай": "Person", "Даду": "Location"}),
        page(
            "长城",
            "马可·波罗没有提到长城。",
            names={"马可·波罗": "Person", "长城": "Artifact"},
            relations=[("马可·波罗", "长城", "马可·波罗没有提到长城。")],
        ),
        page("北方", "长城在北方。", names={"长城": "Artifact", "北方": "Location"}),
    )
    await derive(library)
    async with library.view() as view:
        russian = await hippo.retrieve(Query(text="Кому служил Марко Поло?", min_similarity=0.1), view, library.tools)
        chinese = await hippo.retrieve(Query(text="马可·波罗提到长城吗？", min_similarity=0.1), view, library.tools)
        assert (await titles(view, russian.chunks))[:2] == ["Поло", "Хубилай"]
        assert (await titles(view, chinese.chunks))[:2] == ["长城", "北方"]


async def test_an_empty_index_and_one_without_relations_do_not_fail(library: Library) -> None:
    async with library.view() as view:
        assert (await hippo.retrieve(_QUERY, view, library.tools)).chunks == ()
    await library.publish(page("One", "The old mill.", names={"Mill": "Location"}))
    async with library.view() as view:
        found = await hippo.retrieve(_QUERY, view, library.tools)
        assert await titles(view, found.chunks) == ["One"]
