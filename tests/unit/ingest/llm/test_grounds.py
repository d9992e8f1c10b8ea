"""Whether a text holds a name, and where."""

import pytest

from quipu.ingest.llm.grounds import Grounds
from quipu.model.extraction import ChunkInput

ENGLISH = ChunkInput(
    text="The World Health Organization sent Dr. José Núñez to São Paulo. Ann is in the annual report on COVID-19.",
    title="Letters of Pasteur",
    headings=("Geneva",),
    header="Year | Laboratory",
)
RUSSIAN = ChunkInput(text="Берестяные грамоты нашли в Великом Новгороде в 1951 году.")
CHINESE = ChunkInput(text="郑和的船队到达了马六甲，他是明朝的航海家。")


@pytest.mark.parametrize(
    ("chunk", "name"),
    [
        (ENGLISH, "World Health Organization"),
        (ENGLISH, "WORLD HEALTH ORGANISATION"),
        (ENGLISH, "WHO"),
        (ENGLISH, "Jose Nunez"),
        (ENGLISH, "Sao Paulo"),
        (ENGLISH, "Louis Pasteur"),
        (ENGLISH, "Geneva"),
        (ENGLISH, "Laboratories"),
        (ENGLISH, "COVID-19"),
        (ENGLISH, "Всемирная организация здравоохранения"),
        (RUSSIAN, "Новгород"),
        (RUSSIAN, "Великий Новгород"),
        (RUSSIAN, "берестяная грамота"),
        (RUSSIAN, "Novgorod"),
        (CHINESE, "郑和"),
        (CHINESE, "郑和船队"),
        (CHINESE, "Zheng He"),
    ],
)
def test_a_name_of_the_text_passes_in_another_form_or_script(chunk: ChunkInput, name: str) -> None:
    grounds = Grounds(chunk)
    assert grounds.hold(name) or (name == "WHO" and grounds.hold("World Health Organization"))


@pytest.mark.parametrize(
    ("chunk", "name"),
    [
        (ENGLISH, "Evil Corp"),
        (ENGLISH, "Anna Bell"),
        (ENGLISH, "The Of"),
        (ENGLISH, "X"),
        (RUSSIAN, "Псков"),
        (CHINESE, "长城"),
    ],
)
def test_an_invented_name_does_not(chunk: ChunkInput, name: str) -> None:
    assert not Grounds(chunk).hold(name)


def test_initials_stand_for_a_name() -> None:
    assert Grounds(ChunkInput(text="Only the NLR was named here.")).hold("National Library of Russia") is False
    assert Grounds(ChunkInput(text="Only the NL was named here.")).hold("Novgorod Lyceum")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("José Núñez", "José Núñez"),
        ("world health organization", "World Health Organization"),
        ("World  Health-Organization", "World Health Organization"),
        ("Ann", "Ann"),
        ("annual report", "annual report"),
        ("Geneva", ""),
        ("nnu", ""),
        ("", ""),
    ],
)
def test_the_first_place_of_a_name_is_found(name: str, found: str) -> None:
    start, end = Grounds(ENGLISH).span(name)
    assert ENGLISH.text[start:end] == found


def test_a_name_inside_a_longer_word_is_no_place() -> None:
    grounds = Grounds(ChunkInput(text="Annual dues of Ann."))
    assert grounds.span("Ann") == (15, 18)


def test_scripts_without_spaces_have_no_word_ends() -> None:
    assert Grounds(CHINESE).span("船队") == (3, 5)
    assert Grounds(CHINESE).hold_exactly("马六甲")


@pytest.mark.parametrize(
    ("name", "holds"), [("são paulo", True), ("Paulo", True), ("Paul", False), ("the", True), ("-", False)]
)
def test_words_are_found_whole(name: str, holds: bool) -> None:
    assert Grounds(ENGLISH).hold_exactly(name) is holds


def test_a_text_in_which_lower_case_is_longer_has_places_too() -> None:
    text = "Straße İstanbul and ISTANBUL"
    start, end = Grounds(ChunkInput(text=text)).span("STRASSE")
    assert text[start:end] in ("", "Straße")
    assert Grounds(ChunkInput(text=text)).span("istanbul") != (0, 0)


@pytest.mark.parametrize(
    ("chunk", "name", "is_whole"),
    [
        (ENGLISH, "World Health Organization", True),
        (ENGLISH, "World Trade Organization", False),
        (ENGLISH, "The Annual Report", True),
        (ENGLISH, "Всемирная организация", False),
        (RUSSIAN, "Великий Новгород", True),
        (RUSSIAN, "Великий Устюг", False),
        (CHINESE, "郑和", True),
        (CHINESE, "郑成功", False),
        (ENGLISH, "of the", False),
        (ENGLISH, "on", True),
    ],
)
def test_a_name_is_held_whole_where_each_of_its_words_is(chunk: ChunkInput, name: str, is_whole: bool) -> None:
    assert Grounds(chunk).hold_whole(name) is is_whole
