"""Keywords without a model: names for the low level, the question for the high."""

from dataclasses import replace

from quipu.model.query import Keywords, Query
from quipu.retrieve.steps.seeds import NameOptions, find_low_level_keywords, join_high_level_keywords
from tests.unit.retrieve.fakes import Library, page


async def test_the_names_in_the_question_are_the_low_level_keywords(travels: Library) -> None:
    async with travels.view() as view:
        found = await find_low_level_keywords(Query(text="Did Marco Polo return to Venice?"), view)
    assert found.text == "Marco Polo, Venice"
    assert [(seed.kind, seed.text, [s.id for s in seed.matches]) for seed in found.names] == [
        ("name", "Marco Polo", ["marco polo"]),
        ("name", "Venice", ["venice"]),
    ]
    assert found.notes == ()


async def test_a_question_that_names_nothing_stands_in_itself_and_says_so(travels: Library) -> None:
    async with travels.view() as view:
        found = await find_low_level_keywords(Query(text="what is it made of?"), view)
    assert found.text == "what is it made of?"
    assert found.names == ()
    assert "contains no entity name" in found.notes[0]


async def test_given_keywords_are_used_as_they_are(travels: Library) -> None:
    query = Query(text="Did Venice trade?", low_level_keywords=("Marco Polo", "silk"), high_level_keywords=("trade",))
    async with travels.view() as view:
        found = await find_low_level_keywords(query, view)
    assert found.text == "Marco Polo, silk"
    assert [seed.text for seed in found.names] == ["Marco Polo"]
    assert join_high_level_keywords(query) == "trade"


def test_the_high_level_keyword_is_the_question_itself() -> None:
    assert join_high_level_keywords(Query(text="How did trade grow?")) == "How did trade grow?"


async def test_a_name_in_most_chunks_is_left_out_where_a_rarer_one_remains(library: Library) -> None:
    everywhere = [page(f"Day {n}", f"Li Hua wrote letter {n}.", names={"Li Hua": "Person"}) for n in range(8)]
    rare = page("Party", "Li Hua met Chae.", names={"Li Hua": "Person", "Chae": "Person"})
    await library.publish(*everywhere, rare)
    async with library.view() as view:
        both = await find_low_level_keywords(Query(text="Did Li Hua meet Chae?", chunk_top_k=3), view)
        alone = await find_low_level_keywords(Query(text="Where is Li Hua?", chunk_top_k=3), view)
        readable = await find_low_level_keywords(Query(text="Did Li Hua meet Chae?", chunk_top_k=20), view)
    assert (both.text, both.notes) == ("Chae", ("names dropped because they are too common: Li Hua",))
    assert (alone.text, alone.notes) == ("Li Hua", ())
    assert readable.text == "Li Hua, Chae"


async def test_names_are_dropped_by_the_share_of_chunks_and_with_the_whole_as_share_never(library: Library) -> None:
    await library.publish(*[page(f"Day {n}", f"Li Hua wrote {n}.", names={"Li Hua": "Person"}) for n in range(8)])
    await library.publish(page("Night", "Chae slept.", names={"Chae": "Person"}))
    query = Query(text="Did Li Hua meet Chae?", chunk_top_k=3)
    async with library.view() as view:
        default, above, never = [
            (await find_low_level_keywords(query.with_options(NameOptions(max_name_share=share)), view)).text
            for share in (0.2, 0.9, 1.0)
        ]
    assert (default, above, never) == ("Chae", "Li Hua, Chae", "Li Hua, Chae")


async def test_without_matched_names_the_keywords_of_a_model_stand_alone(travels: Library) -> None:
    query = Query(text="Did Marco Polo bring silk home?", options=(NameOptions(match_names=False),))
    said = replace(query, model_keywords=Keywords(low_level=("silk", "Venice")))
    async with travels.view() as view:
        of_model, of_question, of_nothing = [
            await find_low_level_keywords(asked, view) for asked in (said, query, replace(query, text="why?"))
        ]
    assert (of_model.text, of_question.text, of_nothing.text) == ("silk, Venice", "Marco Polo", "why?")
    assert of_model.names == of_question.names == of_nothing.names == ()


async def test_keywords_of_a_model_add_to_the_names_in_the_question(travels: Library) -> None:
    keywords = Keywords(low_level=("silk", "marco polo", "Venice"), high_level=("trade", "journeys"))
    query = Query(text="Did Marco Polo bring silk home?", model_keywords=keywords)
    async with travels.view() as view:
        found = await find_low_level_keywords(query, view)
    assert found.text == "Marco Polo, silk, Venice"
    assert [seed.text for seed in found.names] == ["Marco Polo", "Venice"]
    assert join_high_level_keywords(query) == "trade, journeys"


async def test_names_the_model_leaves_out_are_kept(travels: Library) -> None:
    query = Query(text="Did Marco Polo return to Venice?", model_keywords=Keywords(high_level=("return",)))
    async with travels.view() as view:
        assert (await find_low_level_keywords(query, view)).text == "Marco Polo, Venice"


async def test_given_keywords_come_before_those_of_a_model(travels: Library) -> None:
    keywords = Keywords(low_level=("Venice",), high_level=("trade",))
    query = Query(text="Did he?", model_keywords=keywords, low_level_keywords=("x",), high_level_keywords=("y",))
    async with travels.view() as view:
        assert (await find_low_level_keywords(query, view)).text == "x"
    assert join_high_level_keywords(query) == "y"


async def test_a_common_name_is_not_dropped_for_a_keyword_no_entity_has(library: Library) -> None:
    await library.publish(*[page(f"Day {n}", f"Li Hua wrote {n}.", names={"Li Hua": "Person"}) for n in range(8)])
    query = Query(text="Did Li Hua write?", chunk_top_k=3, model_keywords=Keywords(low_level=("letters",)))
    async with library.view() as view:
        found = await find_low_level_keywords(query, view)
    assert found.text == "Li Hua, letters"
    assert [seed.text for seed in found.names] == ["Li Hua"]
