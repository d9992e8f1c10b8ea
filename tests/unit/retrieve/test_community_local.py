"""community_local: entities, the reports on their communities, what is related and claimed of them, passages."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from quipu.model.cluster import report_text
from quipu.model.delta import Delta
from quipu.model.evidence import Scored
from quipu.model.graph import claim_text, entity_text, relation_text
from quipu.model.ids import claim_id
from quipu.model.query import Budget, Filter, Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.providers.local import ByteTokenizer
from quipu.retrieve.community_local import CommunityLocalOptions, fit_entities, retrieve
from quipu.retrieve.question import apply_preset
from quipu.retrieve.steps.local_search import read_neighbourhood
from quipu.testing.facts import claim
from quipu.text.words import STOP_WORDS
from tests.unit.retrieve.communities import trades
from tests.unit.retrieve.fakes import Library, page, titles
from tests.unit.retrieve.random_world import QUESTION, World, cosines, settle, world

TOKENS = ByteTokenizer()


async def _dense(library: Library, view: ReadView, made: World, query: Query) -> dict[str, list[str]]:
    """Return the lists of ids the method's description gives, worked out on everything there is."""
    near = await cosines(library, view, VectorSpace.ENTITY, made.keys, query.text)
    ranked = sorted((key for key in near if near[key] >= query.min_similarity), key=lambda key: (-near[key], key))
    options = query.options_of(CommunityLocalOptions)
    keys = ranked[: min(options.community_entities, query.top_k)]
    texts = await _texts(view, made)
    claims = {key: _dense_claims(made, key, texts, query.text)[: options.community_claims] for key in keys}
    fitting = _dense_fit(made, claims, texts, 0.35 * query.budget.total)
    return {
        "chunks": _dense_chunks(made, keys, await _near_chunks(library, view, made, query.text)),
        "reports": _dense_reports(made, keys, query),
        "relations": _dense_relations(made, fitting),
        "claims": [claim for key in fitting for claim in claims[key]],
        "entities": fitting,
    }


async def _texts(view: ReadView, made: World) -> dict[str, str]:
    """Return the text of every entity, relation and claim there is, by id."""
    claims = await view.claims([each for key in made.keys for each in _every_claim(made, key)])
    return {
        **{each.key: entity_text(each.name, each.description) for each in await view.entities(made.keys)},
        **{
            each.id: relation_text(each.keywords, each.source, each.target, each.description)
            for each in await view.relations(list(made.relations()))
        },
        **{each.id: claim_text(each) for each in claims},
    }


def _dense_reports(made: World, keys: list[str], query: Query) -> list[str]:
    reports = {each.cluster: each for each in made.reports}
    counts: Counter[str] = Counter()
    for key in keys:
        branch = made.branch(key)
        coarse = [cluster for cluster in branch if made.level(cluster) <= query.community_level]
        fine = [cluster for cluster in branch if made.level(cluster) > query.community_level]
        if query.options_of(CommunityLocalOptions).community_all_levels:
            counts.update(cluster for cluster in coarse if cluster in reports)
        else:
            counts.update([cluster for cluster in [*coarse[-1:], *fine] if cluster in reports][:1])
    ranked = sorted(counts, key=lambda each: (-counts[each], -reports[each].rating, each))
    fitting, spent = [], 0
    for cluster in ranked:
        spent += TOKENS.count(report_text(reports[cluster]))
        if spent > 0.15 * query.budget.total:
            break
        fitting.append(cluster)
    return fitting


def _dense_relations(made: World, keys: list[str]) -> list[str]:
    degrees, relations = made.degrees(), made.relations()
    rank = {each: degrees[left] + degrees[right] for each, (left, right, _) in relations.items()}
    within = [each for each, (left, right, _) in relations.items() if left in keys and right in keys]
    without = [each for each, (left, right, _) in relations.items() if (left in keys) != (right in keys)]

    def n_links(identifier: str) -> int:
        left, right, _ = relations[identifier]
        outer = right if left in keys else left
        return sum({a, b} == {outer, key} for a, b, _ in relations.values() for key in keys)

    return (
        sorted(within, key=lambda each: (-rank[each], each))
        + sorted(without, key=lambda each: (-n_links(each), -rank[each], each))[: 10 * len(keys)]
    )


def _every_claim(made: World, key: str) -> list[str]:
    return [
        claim_id(chunk, place)
        for chunk, title in sorted((chunk, title) for title, chunk in made.chunk_by_page.items())
        for place, claim in enumerate(made.claims[title])
        if claim.subject == key
    ]


def _dense_claims(made: World, key: str, texts: dict[str, str], question: str) -> list[str]:
    """Return 20 claims: what is new before what is said again, by words of the question, by how often it is claimed."""
    every = _every_claim(made, key)
    asked = _plain_words(question) - _plain_words(key)
    n_same = Counter(texts[each] for each in every)
    is_first = {each: texts[each] not in [texts[other] for other in every[:place]] for place, each in enumerate(every)}
    order = {
        each: (not is_first[each], -len(asked & _plain_words(texts[each])), -n_same[texts[each]], place)
        for place, each in enumerate(every)
    }
    return sorted(every, key=lambda each: order[each])[:20]


def _plain_words(text: str) -> set[str]:
    return set(text.casefold().translate(str.maketrans("?.,()—", "      ")).split()) - STOP_WORDS


def _dense_fit(made: World, claims: dict[str, list[str]], texts: dict[str, str], room: float) -> list[str]:
    """Return the first of the entities whose texts fit with those of all they bring, and fit with all before them."""
    keys = list(claims)
    for n in range(1, len(keys) + 1):
        said = [claim for key in keys[:n] for claim in claims[key]]
        brought = [*keys[:n], *_dense_relations(made, keys[:n]), *said]
        if sum(TOKENS.count(texts[each]) for each in brought) > room:
            return keys[: n - 1]
    return keys


async def _near_chunks(library: Library, view: ReadView, made: World, text: str) -> dict[str, float]:
    return await cosines(library, view, VectorSpace.CHUNK, sorted(made.chunk_by_page.values()), text)


def _dense_chunks(made: World, keys: list[str], near: Mapping[str, float]) -> list[str]:
    order: list[tuple[int, int, float, str]] = []
    for place, key in enumerate(keys):
        for title, names in made.names.items():
            if key in names:
                n_stated = sum(key in pair for pair in made.pairs[title])
                chunk = made.chunk_by_page[title]
                order.append((place, -n_stated, -near[chunk], chunk))
    return list(dict.fromkeys(chunk for *_, chunk in sorted(order)))


_OPTIONS = [
    CommunityLocalOptions(),
    CommunityLocalOptions(community_all_levels=True, community_claims=2),
    CommunityLocalOptions(community_entities=2),
]


@pytest.mark.parametrize("total", [30_000, 4_000, 1_500])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("options", _OPTIONS)
async def test_the_evidence_is_that_of_a_dense_reading(
    library: Library, seed: int, total: int, options: CommunityLocalOptions
) -> None:
    made = world(seed)
    await settle(library, made)
    query = Query(
        text=QUESTION,
        min_similarity=0.05,
        community_level=seed % 3,
        top_k=3 + 4 * (seed % 2),
        budget=Budget(total=total),
        options=(options,),
    )
    async with library.view() as view:
        dense = await _dense(library, view, made, query)
        found = await retrieve(query, view, library.tools)
    assert {section: [hit.id for hit in getattr(found, section)] for section in dense} == dense


async def test_the_order_of_documents_does_not_matter(tmp_path: Path) -> None:
    found = []
    for order in range(2):
        library = Library(tmp_path / str(order))
        (tmp_path / str(order)).mkdir()
        await library.open()
        await settle(library, world(3), order=order)
        async with library.view() as view:
            found.append(await retrieve(Query(text=QUESTION, min_similarity=0.05), view, library.tools))
        await library.close()
    assert found[0] == found[1]


async def test_a_passage_that_states_no_relation_of_an_entity_is_only_said_to_name_it(library: Library) -> None:
    await library.publish(page("Alone", "Aleppo stands alone.", names={"Aleppo": "Location"}))
    async with library.view() as view:
        found = await retrieve(Query(text="Aleppo"), view, library.tools)
    assert [hit.reason for hit in found.chunks] == ["mentions aleppo"]


async def test_no_more_than_ten_entities_are_taken_however_many_are_near(library: Library) -> None:
    await library.publish(*(page(f"P{n}", f"Port {n}.", names={f"Port {n}": "Location"}) for n in range(14)))
    async with library.view() as view:
        found = await retrieve(Query(text="Which port?", min_similarity=0.05), view, library.tools)
        faithful = Query(text="Which port?", strategy="community_local", preset="faithful")
        assert len((await retrieve(apply_preset(faithful), view, library.tools)).entities) == 14
    assert len(found.entities) == 10


async def test_with_the_preset_an_entity_counts_for_its_reports_on_all_levels(library: Library) -> None:
    """By default only for the finest report, so that the others are not read; the source reads all of them."""
    made = world(2)
    await settle(library, made)
    query = Query(text=QUESTION, strategy="community_local", community_level=3)
    async with library.view() as view:
        default = await retrieve(query, view, library.tools)
        faithful = await retrieve(apply_preset(replace(query, preset="faithful")), view, library.tools)
    reports = {each.cluster for each in made.reports}
    branches = [set(made.branch(hit.id)) & reports for hit in faithful.seeds[0].matches]
    assert {hit.id: hit.score for hit in faithful.reports} == {
        cluster: sum(cluster in branch for branch in branches) for cluster in set().union(*branches)
    }
    assert len(default.reports) < len(faithful.reports)


async def test_entities_are_added_while_they_and_their_relations_fit_their_share(library: Library) -> None:
    await trades(library)
    query = Query(text="Of Bursa, Tabriz and Hallein", min_similarity=0.05)
    async with library.view() as view:
        whole = await retrieve(query, view, library.tools)
        assert [hit.id for hit in whole.entities] == ["bursa", "hallein", "tabriz"]
        bursa = await view.entities(["bursa"])
        relations = await view.relations(["anna -- bursa", "bursa -- tabriz"])
        cost = sum(TOKENS.count(entity_text(each.name, each.description)) for each in bursa)
        cost += sum(TOKENS.count(relation_text(r.keywords, r.source, r.target, r.description)) for r in relations)
        total = -(-cost * 100 // 35)
        for budget, kept in ((total, ["bursa"]), (total - 4, [])):
            tight = replace(query, budget=Budget(total=budget))
            assert [hit.id for hit in (await retrieve(tight, view, library.tools)).entities] == kept


ACCUSED = page(
    "Trial",
    "Anna says that Basil stole silk. Basil says that Anna lied.",
    names={"Anna": "Person", "Basil": "Person"},
    relations=[("Anna", "Basil", "They met at court.")],
    claims=[
        claim("Basil", "He stole silk.", "Anna", kind="theft", status="suspected", dates="1301"),
        claim("Anna", "She lied.", kind="lie"),
        claim("Basil", "He fled."),
    ],
)
BEFORE = page("Before", "Basil wove.", names={"Basil": "Person"}, claims=[claim("Basil", "He wove badly.")])


async def test_an_entity_brings_the_claims_about_it_and_fits_with_all_of_them_or_not_at_all(library: Library) -> None:
    await library.publish(ACCUSED, BEFORE)
    trial, before = (each.chunks[0].chunk.id for each in (ACCUSED, BEFORE))
    of_anna, of_trial, of_before = [f"{trial}:1"], [f"{trial}:0", f"{trial}:2"], [f"{before}:0"]
    of_basil = [*of_trial, *of_before] if trial < before else [*of_before, *of_trial]
    # In tokens of four bytes Anna is 1, their relation "\nanna\nbasil\nThey met at court." 8, and what is said of her
    # "Anna (lie)\nShe lied." 5. Basil is 2, "Basil — Anna (theft, suspected, 1301)\nHe stole silk." 14,
    # "Basil\nHe fled." 4, "Basil\nHe wove badly." 5.
    by_room = {
        39: (["anna", "basil"], [*of_anna, *of_basil]),
        38: (["anna"], of_anna),
        14: (["anna"], of_anna),
        13: ([], []),
    }
    async with library.view() as view:
        around = await read_neighbourhood((Scored(id="anna", score=0.7), Scored(id="basil", score=0.6)), view)
        for room, (entities, claims) in by_room.items():
            found = await fit_entities(around, room, question="", view=view, tokenizer=TOKENS, max_claims=20)
            assert [hit.id for hit in found.entities] == entities
            assert [hit.id for hit in found.claims] == claims
            assert [hit.id for hit in found.relations] == ["anna -- basil"][: len(entities)]
            note = f"{len(entities)} of 2 entities fit the budget, with their relations and claims"
            assert found.notes == ((note,) if len(entities) < 2 else ())


async def test_a_claim_says_why_it_is_there_and_goes_with_its_document(library: Library) -> None:
    await library.publish(ACCUSED, BEFORE)
    query = Query(text="Basil?", min_similarity=0.05)
    before = f"{BEFORE.chunks[0].chunk.id}:0"
    async with library.view() as view:
        found = await retrieve(query, view, library.tools)
    assert len(found.claims) == 3
    assert {(hit.score, hit.reason) for hit in found.claims} == {(found.entities[0].score, "is about basil")}
    async with library.view(Filter(exclude=("Trial",))) as view:
        assert [hit.id for hit in (await retrieve(query, view, library.tools)).claims] == [before]
    await library.commit(Delta(remove=["Trial"]))
    async with library.view() as view:
        assert [hit.id for hit in (await retrieve(query, view, library.tools)).claims] == [before]


async def test_of_an_entity_much_is_claimed_about_some_claims_are_taken_and_it_is_noted(library: Library) -> None:
    claims = [claim("Basil", f"Charge {n}.") for n in range(21)]
    await library.publish(page("Trial", "Basil.", names={"Basil": "Person"}, claims=claims))
    async with library.view() as view:
        found = await retrieve(Query(text="Basil?", min_similarity=0.05), view, library.tools)
        said = [each.description for each in await view.claims([hit.id for hit in found.claims])]
    assert said == [f"Charge {n}." for n in range(20)]
    assert found.notes[-1] == "only 20 claims each are used about basil"


async def test_what_a_filter_leaves_out_takes_its_reports_along(library: Library) -> None:
    await trades(library)
    query = Query(text="Who carried silk from Bursa to Tabriz?", min_similarity=0.05)
    async with library.view(Filter(exclude=("Caravans",))) as view:
        found = await retrieve(query, view, library.tools)
        assert await titles(view, found.chunks) == ["Weavers"]
    assert [hit.id for hit in found.entities] == ["bursa"]
    assert found.reports == ()
    assert "have no available report" in found.notes[0]


async def test_without_anything_near_it_says_so(library: Library) -> None:
    async with library.view() as view:
        found = await retrieve(Query(text="Who?"), view, library.tools)
    assert found.notes == ("no entity is near to the question",)
    assert found.chunks == found.reports == ()
