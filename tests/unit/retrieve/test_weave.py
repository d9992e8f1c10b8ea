"""weave: similarity and a walk from names in one ranking."""

import pytest

from quipu.model.graph import AliasMention
from quipu.model.ids import relation_id
from quipu.model.query import Filter, Query
from quipu.retrieve.weave import retrieve
from tests.unit.retrieve.communities import divide, report, report_on
from tests.unit.retrieve.fakes import Library, page, titles

CAPITAL = Query(text="What was the capital of the ruler whom Marco Polo served?", chunk_top_k=3)


async def test_the_home_passage_of_an_entity_two_steps_away_is_found(travels: Library) -> None:
    envoy = "Marco Polo served Kublai Khan as an envoy."
    await travels.publish(page("Envoys", envoy, names={"Marco Polo": "Person", "Kublai Khan": "Person"}))
    async with travels.view() as view:
        evidence = await retrieve(CAPITAL, view, travels.tools)
        assert (await titles(view, evidence.chunks))[:2] == ["Marco Polo", "Kublai Khan"]
    assert [seed.kind for seed in evidence.seeds] == ["name", "full text"]
    assert {"marco polo", "kublai khan"} <= {hit.id for hit in evidence.entities}
    assert relation_id("marco polo", "kublai khan") in [hit.id for hit in evidence.relations]


async def test_a_title_is_trusted_and_the_trace_says_how_far(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(CAPITAL, view, travels.tools)
    assert "the walk from the names in the question weighs 1.00, by how few passages they lead to" in evidence.notes


async def test_a_name_that_is_everywhere_is_trusted_little(library: Library) -> None:
    chats = [page(f"{n}", f"Ann: note {n} of the day", names={"Ann": "Person"}) for n in range(9)]
    await library.publish(*chats, page("10", "Ann: the key is under the mat", names={"Ann": "Person"}))
    async with library.view() as view:
        evidence = await retrieve(Query(text="Where is the key of Ann?"), view, library.tools)
        assert (await titles(view, evidence.chunks))[0] == "10"
    assert "the walk from the names in the question weighs 0.10, by how few passages they lead to" in evidence.notes


async def test_links_of_similar_passages_count_as_far_as_the_names_are_trusted(library: Library) -> None:
    use = page("Ada Kern", "Ada Kern obeys the backoff policy.", names={"Ada Kern": "Person"})
    filler = [page(f"filler {n}", f"Bread and soup number{n} were served.") for n in range(9)]
    await library.publish(use, page("Words", "## Backoff policy\nPauses double until one minute passed."), *filler)
    question = Query(text="What does Ada Kern obey?")
    async with library.view() as view:
        trusted = await retrieve(question, view, library.tools)
        assert (await titles(view, trusted.chunks))[:2] == ["Ada Kern", "Words"]
    assert "mentions 'backoff policy', which names it" in trusted.chunks[1].reason
    everywhere = [page(f"chat {n}", f"Ada Kern: note {n}", names={"Ada Kern": "Person"}) for n in range(12)]
    await library.publish(page("Ada", use.chunks[0].chunk.text), *everywhere)
    async with library.view(Filter(exclude=("Ada Kern",))) as view:
        doubted = await retrieve(question, view, library.tools)
    assert not any("names it" in hit.reason for hit in doubted.chunks)


async def test_without_a_name_words_and_vectors_rank_alone(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="what was made of mulberry bark"), view, travels.tools)
        assert (await titles(view, evidence.chunks))[0] == "Paper"
    assert evidence.notes[-1] == "the question names no entity of the index: words and vectors rank alone"
    assert not evidence.entities


async def test_of_passages_with_the_same_words_the_one_where_they_stand_together_is_first(library: Library) -> None:
    filler = " ".join(f"road{n}" for n in range(60))
    await library.publish(
        page("Apart", f"Salt was dear. {filler}. Silk was not."),
        page("Together", f"{filler}. Salt was dear, silk was not."),
    )
    async with library.view() as view:
        evidence = await retrieve(Query(text="salt, silk"), view, library.tools)
        assert await titles(view, evidence.chunks) == ["Together", "Apart"]


async def test_words_rank_alone_while_vectors_are_missing(library: Library) -> None:
    await library.publish(page("Paper", "Paper was made of mulberry bark."), page("Ink", "Soot."), is_embedded=False)
    async with library.view() as view:
        evidence = await retrieve(Query(text="mulberry bark"), view, library.tools)
        assert await titles(view, evidence.chunks) == ["Paper"]


async def test_a_title_with_a_bracket_is_home_to_the_name_before_it(library: Library) -> None:
    await library.publish(
        page("Solaris (novel)", "Solaris was written by Lem.", names={"Solaris": "Work", "Lem": "Person"}),
        page("Lem", "He was born in Lwów.", names={"Lwów": "Location"}),
        page("Notes", "Solaris is far away.", names={"Solaris": "Work"}),
    )
    async with library.view() as view:
        evidence = await retrieve(Query(text="Where was the author of Solaris born?"), view, library.tools)
        assert (await titles(view, evidence.chunks))[0] == "Solaris (novel)"
    assert any("weighs 1.00" in note for note in evidence.notes)


async def test_an_alias_leads_to_its_entity(library: Library) -> None:
    await library.publish(
        page("Emil Mars", "Emil Mars built a bridge.", names={"Emil Mars": "Person"}, aliases={"EMA": "Emil Mars"}),
        page("Bridges", "Bridges cross rivers.", names={"Rivers": "Location"}),
    )
    async with library.view() as view:
        evidence = await retrieve(Query(text="What did EMA do?"), view, library.tools)
        assert (await titles(view, evidence.chunks))[0] == "Emil Mars"
    assert AliasMention(key="emil mars", alias="EMA", surface="EMA").key in {hit.id for hit in evidence.entities}


@pytest.mark.parametrize("excluded", ["Kublai Khan", "Marco Polo"])
async def test_a_filter_hides_documents_from_every_step(travels: Library, excluded: str) -> None:
    allowed = Filter(exclude=(excluded,))
    async with travels.view(allowed) as view:
        evidence = await retrieve(CAPITAL, view, travels.tools)
        assert excluded not in await titles(view, evidence.chunks)
    if excluded == "Kublai Khan":
        assert "dadu" not in {hit.id for hit in evidence.entities}


async def test_no_more_than_chunk_top_k_passages_are_kept(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="Marco Polo, Venice", chunk_top_k=2), view, travels.tools)
    assert len(evidence.chunks) == 2


async def test_words_that_almost_every_passage_holds_may_score_nothing(library: Library) -> None:
    long = " ".join(f"road{n} stone{n}" for n in range(99))
    await library.publish(*(page(f"{n}", f"Salt {n}.") for n in range(9)), page("Long", f"Salt, {long}."))
    async with library.view(Filter(documents=("Long",))) as view:
        evidence = await retrieve(Query(text="salt"), view, library.tools)
        assert await titles(view, evidence.chunks) == ["Long"]
    assert [match.score for match in evidence.seeds[-1].matches] == [0.0]


async def test_a_flag_is_looked_for_as_it_is_written(library: Library) -> None:
    await library.publish(
        page("Salt", "Salt is dry and runs.", names={"Salt": "Thing"}),
        page("Options", "Use --dry-run with salt first."),
    )
    async with library.view() as view:
        evidence = await retrieve(Query(text="What does --dry-run do?"), view, library.tools)
        assert (await titles(view, evidence.chunks))[0] == "Options"
    assert evidence.notes[-1] == "full text ranks alone, because the question holds --dry-run as it is written"


async def test_a_quoted_name_takes_the_walk(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text='Whom did "Marco Polo" serve?'), view, travels.tools)
    assert evidence.notes[-1].startswith("the walk from the names in the question weighs")


async def test_an_overview_adds_the_reports_on_communities(library: Library) -> None:
    await library.publish(page("Salt", "Salt is dear.", names={"Salt": "Thing"}))
    await divide(library, {"all": ("", ["salt"])})
    await report_on(library, report("all", "Trade in salt."))
    async with library.view() as view:
        evidence = await retrieve(Query(text="What are these documents about?"), view, library.tools)
        assert await titles(view, evidence.chunks) == ["Salt"]
    assert [hit.id for hit in evidence.reports] == ["all"]
    assert evidence.notes[0] == "an overview is asked for: 1 report on communities"


async def test_an_overview_without_communities_has_passages_only(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="What are these documents about?"), view, travels.tools)
    assert evidence.chunks
    assert not evidence.reports
    assert "an overview is asked for, and there are no reports on communities" in evidence.notes


async def test_near_duplicates_do_not_crowd_out_a_second_step(travels: Library) -> None:
    envoy = "Marco Polo served Kublai Khan, the ruler, as an envoy in the capital."
    names = {"Marco Polo": "Person", "Kublai Khan": "Person"}
    await travels.publish(*(page(f"Copy {n}", f"{envoy} Note {n}.", names=names) for n in range(8)))
    async with travels.view() as view:
        evidence = await retrieve(CAPITAL, view, travels.tools)
        assert "Kublai Khan" in await titles(view, evidence.chunks)


async def test_release_notes_give_way_unless_changes_are_asked_for(library: Library) -> None:
    notes = [page(f"Changelog {n}", f"Caravel: the proxy of caravel was fixed, proxy number {n}.") for n in range(6)]
    await library.publish(*notes, page("Manual", "Set the proxy of caravel in its file, and leave the rest as it is."))
    async with library.view() as view:
        use = await retrieve(Query(text="proxy of caravel", chunk_top_k=2), view, library.tools)
        change = await retrieve(Query(text="proxy of caravel fixed", chunk_top_k=2), view, library.tools)
        assert (await titles(view, use.chunks))[0] == "Manual"
        assert (await titles(view, change.chunks))[0].startswith("Changelog")


async def test_the_passage_that_the_words_of_the_question_name_is_first(library: Library) -> None:
    filler = [page(f"Trade {n}", f"A camel is loaded, and the load of a camel is salt number{n}.") for n in range(9)]
    await library.publish(*filler, page("Guide", "## Load a camel\nFirst it kneels. Then tie salt to its sides."))
    async with library.view() as view:
        evidence = await retrieve(Query(text="How do I load a camel?"), view, library.tools)
        assert (await titles(view, evidence.chunks))[0] == "Guide"
