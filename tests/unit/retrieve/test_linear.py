"""Tests of linear against its formulas, on full matrices and by hand."""

from dataclasses import replace
from math import log, log1p
from pathlib import Path

import numpy as np
import pytest

from quipu.model.ids import sentence_id
from quipu.model.query import Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve import linear
from quipu.retrieve.question import apply_preset
from quipu.retrieve.strategy import Tools
from tests.unit.retrieve.dense import (
    NAMES,
    QUESTION,
    best,
    cosines,
    dense,
    derive,
    filtered_and_alone,
    found_in_order,
    key_of,
    page_rank,
    scaled,
    world,
)
from tests.unit.retrieve.fakes import Library, page, titles

_FAR = linear.LinearOptions(linear_min_activation=0.1, linear_sentences=2, linear_steps=3)  # for sentences of few words
_OTHERWISE = linear.LinearOptions(
    linear_min_activation=0.15,
    linear_sums=True,
    linear_steps=2,
    linear_sentences=1,
    linear_passage_weight=0.2,
    linear_similarity_weight=0.5,
    linear_damping=0.7,
)
_QUERY = Query(text=QUESTION, min_similarity=0.0, chunk_top_k=5, options=(_FAR,))


async def _activity(
    view: ReadView, tools: Tools, seeds: list[str], options: linear.LinearOptions
) -> dict[str, tuple[float, int]]:
    """Return the activity and step of each entity: every sentence a list of names, every step a loop."""
    found = await dense(view)
    sentences = {
        sentence_id(each.chunk, each.ordinal): {key_of(name) for name in NAMES if name in each.text}
        for listed in (await view.sentences(found.chunks)).values()
        for each in listed
    }
    near = dict(
        zip(
            sentences,
            (await cosines(view, tools, VectorSpace.SENTENCE, QUESTION, list(sentences))).tolist(),
            strict=True,
        )
    )
    active = dict.fromkeys(seeds, (1.0, 1))
    frontier = dict.fromkeys(seeds, 1.0)
    used: set[str] = set()
    for step in range(2, options.linear_steps + 2):
        reached: dict[str, float] = {}
        taken: set[str] = set()
        for key, score in frontier.items():
            mine = [each for each, named in sentences.items() if key in named and each not in used]
            for each in sorted(mine, key=lambda each: (-near[each], each))[: options.linear_sentences]:
                taken.add(each)
                worth = round(score * near[each], 6)
                for other in sentences[each] - {key}:
                    before = reached.get(other, 0.0)
                    reached[other] = before + worth if options.linear_sums else max(before, worth)
        reached = {key: round(score, 6) for key, score in reached.items() if score >= options.linear_min_activation}
        used |= taken
        frontier = {key: score for key, score in reached.items() if score > active.get(key, (0.0, 0))[0]}
        active |= {key: (score, active[key][1] if key in active else step) for key, score in frontier.items()}
    return active


async def _expected(
    view: ReadView, tools: Tools, seeds: list[str], options: linear.LinearOptions
) -> tuple[list[str], dict[str, float]]:
    found, active = await dense(view), await _activity(view, tools, seeds, options)
    n, m = found.appearances.shape
    shares = found.appearances / found.appearances.sum(axis=0)
    links = np.zeros((n + m, n + m))
    links[:n, n:] = shares
    links[n:, :n] = shares.T
    reset = np.zeros(n + m)
    bonus = np.zeros(m)
    for key, (score, tier) in active.items():
        reset[found.place(key)] = score
        bonus += score * np.log1p(found.appearances[found.place(key)]) / tier
    near = scaled(await cosines(view, tools, VectorSpace.CHUNK, QUESTION, found.chunks))
    reset[n:] = options.linear_passage_weight * (options.linear_similarity_weight * near + np.log1p(bonus))
    ranks = page_rank(links, reset, options.linear_damping)
    chunks = best(dict(zip(found.chunks, ranks[n:].tolist(), strict=True)), 5)
    return chunks, {key: score for key, (score, _) in active.items()}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("options", [_FAR, _OTHERWISE])
async def test_evidence_is_what_the_formulas_give_to_the_id(
    library: Library, seed: int, options: linear.LinearOptions
) -> None:
    await library.publish(*world(seed))
    await derive(library)
    async with library.view() as view:
        found = await linear.retrieve(_QUERY.with_options(options), view, library.tools)
        assert len(library.embedder.calls) == 1
        seeds = sorted(each.id for seed_ in found.seeds for each in seed_.matches)
        chunks, active = await _expected(view, library.tools, seeds, options)
    assert set(seeds) <= {"amber falk", "cedar guild", "birch"}
    assert {hit.id: hit.score for hit in found.entities} == pytest.approx(active, abs=2e-6)
    assert [hit.id for hit in found.chunks] == chunks


async def test_entities_beyond_those_named_are_reached(library: Library) -> None:
    await library.publish(*world(0))
    await derive(library)
    async with library.view() as view:
        found = await linear.retrieve(_QUERY, view, library.tools)
    assert any("reached in step 1" in hit.reason for hit in found.entities)
    assert any("reached in step 2" in hit.reason for hit in found.entities)


async def test_a_small_graph_by_hand(library: Library) -> None:
    """Ada is named; her sentence (cosine 1 / √2 with the question) leads to Bob, who leads nowhere new.

    Bonus of the passage: 1 · ln 2 / 1 + a · ln 2 / 2. The other passage is at the same distance from the question as
    the first from nothing: its prior is 0, so it is not found.
    """
    await library.publish(
        page("One", "Ada Bob.", names={"Ada": "Person", "Bob": "Person"}), page("Two", "Nothing here is said of it.")
    )
    await derive(library)
    async with library.view() as view:
        found = await linear.retrieve(Query(text="Ada"), view, library.tools)
        assert await titles(view, found.chunks) == ["One"]
    cosine = float(np.float16(2**-0.5))
    activity = round(cosine, 6)
    assert {hit.id: hit.score for hit in found.entities} == pytest.approx({"ada": 1.0, "bob": activity})
    prior = 0.05 * (_FAR.linear_similarity_weight * 1.0 + log1p(log(2) + activity * log(2) / 2))
    total = 1.0 + activity + prior  # the other passage weighs nothing
    # p = ½ · (a + b) + ½ · prior, a + b = ½ · p + ½ · (1 + activity), each over the total
    p, _ = np.linalg.solve([[1, -0.5], [-0.5, 1]], [prior / 2 / total, (1 + activity) / 2 / total])
    assert found.chunks[0].score == pytest.approx(p, abs=1e-6)


async def test_an_unknown_spelling_leads_to_the_nearest_name(library: Library) -> None:
    await library.publish(page("One", "Amber Falk Senior sat.", names={"Amber Falk Senior": "Person"}))
    await derive(library)
    async with library.view() as view:
        found = await linear.retrieve(Query(text="Where did Old Amber Falk sit?"), view, library.tools)
    (seed,) = found.seeds
    assert (seed.text, seed.kind, [each.id for each in seed.matches]) == (
        "Old Amber Falk",
        "vector",
        ["amber falk senior"],
    )
    assert library.embedder.calls == [("Where did Old Amber Falk sit?", "Old Amber Falk")]


async def test_an_unknown_name_is_said_to_be_left_out_where_no_names_are_kept(library: Library) -> None:
    await library.publish(page("One", "Amber Falk sat.", names={"Amber Falk": "Person"}))
    async with library.view() as view:
        found = await linear.retrieve(Query(text="Where did Amber Falk and Dorn Hale sit?"), view, library.tools)
    assert found.notes == ("unknown names ignored: Dorn Hale; run `quipu refresh names` to match similar names",)


async def test_a_question_that_names_nothing_finds_the_nearest_passages(library: Library) -> None:
    await library.publish(*world(1))
    await derive(library)
    async with library.view() as view:
        found = await linear.retrieve(Query(text="which old mill?", min_similarity=0.0), view, library.tools)
        (near,) = await library.tools.vectors.nearest(
            view, VectorSpace.CHUNK, await library.embedder.embed_queries(["which old mill?"]), k=20, min_score=0.0
        )
    assert [hit.id for hit in found.chunks] == [each.id for each in near]
    assert "contains no entity name" in found.notes[0]


async def test_of_a_hub_only_the_nearest_passages_are_read_and_it_is_said(
    library: Library,
) -> None:
    options = (linear.LinearOptions(linear_passages=2),)
    pages = [page(f"p{n}", f"Ada met Person{n} {'mill ' * (n == 3)}there.", names={"Ada": "Person"}) for n in range(6)]
    await library.publish(*pages)
    await derive(library)
    async with library.view() as view:
        found = await linear.retrieve(Query(text="Did Ada own a mill?", options=options), view, library.tools)
        assert (await titles(view, found.chunks))[0] == "p3"
    assert found.notes == ("not read, because these entities occur too often: 4 neighbours",)


async def test_of_the_active_entities_only_the_most_active_are_expanded(library: Library) -> None:
    pages = [page(f"p{n}", f"Ada met Person{n}.", names={"Ada": "Person", f"Person{n}": "Person"}) for n in range(3)]
    await library.publish(*pages, page("more", "Person0 met Zed.", names={"Person0": "Person", "Zed": "Person"}))
    await derive(library)
    reached = []
    for n in (1, 4):
        options = (linear.LinearOptions(linear_min_activation=0.01, linear_expanded=n),)
        async with library.view() as view:
            found = await linear.retrieve(Query(text="Did Ada meet Person0?", options=options), view, library.tools)
        reached.append({hit.id for hit in found.entities})
    assert "zed" in reached[1] and "zed" not in reached[0]


async def test_the_preset_adds_up_what_the_sentences_of_a_step_pass_on(library: Library) -> None:
    """Ada and Cid are named; a sentence of each leads to Bob, with the cosine 2 / 3 to the question.

    The paper adds both (Mᵀ (σ ∘ M a)), so that Bob gets 4 / 3; by default he gets the higher, 2 / 3.
    """
    await library.publish(
        page("One", "Ada met Bob.", names={"Ada": "Person", "Bob": "Person"}),
        page("Two", "Cid met Bob.", names={"Cid": "Person", "Bob": "Person"}),
    )
    await derive(library)
    query = Query(text="Ada Cid met?", strategy="linear")
    async with library.view() as view:
        default = await linear.retrieve(query, view, library.tools)
        faithful = await linear.retrieve(apply_preset(replace(query, preset="faithful")), view, library.tools)
    cosine = next(hit.score for hit in default.entities if hit.id == "bob")
    assert cosine == pytest.approx(2 / 3, abs=1e-3)
    assert {hit.id: hit.score for hit in faithful.entities} == pytest.approx({"ada": 1, "cid": 1, "bob": 2 * cosine})


async def test_the_order_and_batches_of_documents_do_not_show(tmp_path: Path) -> None:
    first, second = [await found_in_order(linear.retrieve, _QUERY, tmp_path / str(seed), seed) for seed in (1, 2)]
    assert first == second


async def test_a_filter_gives_what_the_allowed_documents_alone_give(tmp_path: Path) -> None:
    filtered, alone, allowed = await filtered_and_alone(linear.retrieve, _QUERY, tmp_path)
    assert [hit.id for hit in filtered.chunks] == [hit.id for hit in alone.chunks]
    assert {hit.id for hit in filtered.chunks} <= allowed
    assert filtered.entities == alone.entities


async def test_russian_and_chinese(library: Library) -> None:
    await library.publish(
        page("Поло", "Марко Поло служил хану Хубилаю.", names={"Марко Поло": "Person", "Хубилай": "Person"}),
        page("Хубилай", "Хубилай правил в Даду.", names={"Хубилай": "Person", "Даду": "Location"}),
        page("长城", "马可·波罗没有提到长城。别人提到了。", names={"马可·波罗": "Person", "长城": "Artifact"}),
        page("北方", "长城在北方。", names={"长城": "Artifact", "北方": "Location"}),
        page("Silk", "Silk is thread.", names={"Silk": "Artifact"}),
    )
    await derive(library)
    async with library.view() as view:
        russian = await linear.retrieve(Query(text="Кому служил Марко Поло?"), view, library.tools)
        chinese = await linear.retrieve(Query(text="马可·波罗提到长城吗？"), view, library.tools)
        assert (await titles(view, russian.chunks))[0] == "Поло"
        assert (await titles(view, chinese.chunks))[:2] == ["长城", "北方"]
        assert [each.text for each in chinese.seeds] == ["马可·波罗", "长城"]


async def test_an_empty_index_does_not_fail(library: Library) -> None:
    async with library.view() as view:
        assert (await linear.retrieve(_QUERY, view, library.tools)).chunks == ()
