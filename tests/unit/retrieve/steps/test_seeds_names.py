"""Linking: which known entities a question names."""

import pytest

from quipu.retrieve.steps.seeds import link_names
from tests.unit.retrieve.fakes import Library, page

NAMES = {
    "Journal of Mathematical Physics": "Content",
    "Mathematical Physics": "Concept",
    "Brand": "Content",
    "WHO": "Organization",
    "The Who": "Organization",
    "Johnnycake, West Virginia": "Location",
    "West Virginia": "Location",
    "US": "Location",
    "Lothair II": "Person",
    "长城": "Location",
    "北京": "Location",
    "Новгород": "Location",
}


@pytest.fixture
async def index(library: Library) -> Library:
    """A library that knows the names above, and one alias."""
    await library.publish(page("Names", "A list of names.", names=NAMES, aliases={"Beijing": "北京"}))
    return library


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        ("Who edits the Journal of Mathematical Physics?", ["journal of mathematical physics"]),
        ("who edits the journal of mathematical physics?", ["journal of mathematical physics"]),
        ("What country was the author of Brand a citizen of?", ["brand"]),
        ("Which brand of soap is it?", []),
        ("what country was the author of brand from?", ["brand"]),
        ("Who founded it?", []),
        ("who founded it?", []),
        ("Did The Who play there?", ["who"]),
        ("When did the WHO begin?", ["WHO"]),
        ("What county is Johnnycake, West Virginia in?", ["johnnycake west virginia"]),
        ("Is West Virginia in the U.S.?", ["west virginia", "US"]),
        ("Is it in the US or not?", ["US"]),
        ("it made us laugh", []),
        ("When did Lothair II's mother die?", ["lothair ii"]),
        ("俄国人到过长城吗？", ["长城"]),
        ("Was Beijing the capital?", ["北京"]),
        ("Где стоит Новгород?", ["новгород"]),
        ("", []),
    ],
)
async def test_names_are_linked_by_normal_form_and_case(index: Library, question: str, keys: list[str]) -> None:
    async with index.view() as view:
        linked = await link_names(question, view)
    assert [key for name in linked for key in name.keys] == keys


async def test_a_link_says_which_characters_of_the_question_it_is(index: Library) -> None:
    question = "When did Lothair II's mother see 长城?"
    async with index.view() as view:
        linked = await link_names(question, view)
    assert [question[name.start : name.end] for name in linked] == [name.surface for name in linked]
    assert [name.surface for name in linked] == ["Lothair II's", "长城"]


async def test_no_name_reaches_over_the_end_of_a_sentence(index: Library) -> None:
    async with index.view() as view:
        linked = await link_names("Is it in the West? Virginia was first.", view)
    assert linked == ()
