"""Tests of grounding: which names a text contains, and which of its names rules detect."""

import pytest

from quipu.ingest.llm.grounding import GroundingText, detect_names, may_miss_names
from quipu.model.extraction import ChunkInput

ENGLISH = ChunkInput(
    text="The World Health Organization sent Dr. José Núñez to São Paulo. Ann is in the annual report on COVID-19.",
    title="Letters of Pasteur",
    headings=("Geneva",),
    header="Year | Laboratory",
)
CORP = ChunkInput(text="Gamma Delta Corp opened a laboratory.")
CHINESE_CORP = ChunkInput(text="南方公司在北京。")
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
        (CORP, "Gamma Corporation"),
        (CORP, "Corp"),
        (CHINESE_CORP, "南方公司"),
        (CHINESE, "郑和"),
        (CHINESE, "郑和船队"),
        (CHINESE, "Zheng He"),
    ],
)
def test_a_name_of_the_text_passes_in_another_form_or_script(chunk: ChunkInput, name: str) -> None:
    grounds = GroundingText(chunk)
    assert grounds.may_contain(name) or (name == "WHO" and grounds.may_contain("World Health Organization"))


@pytest.mark.parametrize(
    ("chunk", "name"),
    [
        (ENGLISH, "Evil Corp"),
        (ENGLISH, "Anna Bell"),
        (ENGLISH, "The Of"),
        (ENGLISH, "World Trade Organization"),
        (CORP, "Evil Planted Corp"),
        (CORP, "Evil Corp"),
        (RUSSIAN, "Великий Устюг"),
        (CHINESE_CORP, "邪恶公司"),
        (ENGLISH, "X"),
        (RUSSIAN, "Псков"),
        (CHINESE, "长城"),
    ],
)
def test_an_invented_name_does_not(chunk: ChunkInput, name: str) -> None:
    assert not GroundingText(chunk).may_contain(name)


def test_initials_stand_for_a_name() -> None:
    assert (
        GroundingText(ChunkInput(text="Only the NLR was named here.")).may_contain("National Library of Russia")
        is False
    )
    assert GroundingText(ChunkInput(text="Only the NL was named here.")).may_contain("Novgorod Lyceum")


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
    start, end = GroundingText(ENGLISH).span(name)
    assert ENGLISH.text[start:end] == found


@pytest.mark.parametrize(
    ("chunk", "names", "place"),
    [
        (ENGLISH, ["Nobody", "São Paulo"], "São Paulo"),
        (RUSSIAN, ["Великий Новгород"], "Новгороде"),
        (CORP, ["Gamma Corporation"], "Gamma"),
        (ENGLISH, ["Geneva"], ENGLISH.text),
        (RUSSIAN, ["Novgorod"], RUSSIAN.text),
    ],
)
def test_every_name_has_a_place_in_the_text(chunk: ChunkInput, names: list[str], place: str) -> None:
    start, end = GroundingText(chunk).place(names)
    assert chunk.text[start:end] == place


def test_a_name_inside_a_longer_word_is_no_place() -> None:
    grounds = GroundingText(ChunkInput(text="Annual dues of Ann."))
    assert grounds.span("Ann") == (15, 18)


def test_scripts_without_spaces_have_no_word_ends() -> None:
    assert GroundingText(CHINESE).span("船队") == (3, 5)
    assert GroundingText(CHINESE).contains_exactly("马六甲")


@pytest.mark.parametrize(
    ("name", "holds"), [("são paulo", True), ("Paulo", True), ("Paul", False), ("the", True), ("-", False)]
)
def test_words_are_found_whole(name: str, holds: bool) -> None:
    assert GroundingText(ENGLISH).contains_exactly(name) is holds


def test_a_text_in_which_lower_case_is_longer_has_places_too() -> None:
    text = "Straße İstanbul and ISTANBUL"
    start, end = GroundingText(ChunkInput(text=text)).span("STRASSE")
    assert text[start:end] in ("", "Straße")
    assert GroundingText(ChunkInput(text=text)).span("istanbul") != (0, 0)


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
    assert GroundingText(chunk).contains_all_words(name) is is_whole


CITIES = "Oslo Bergen Lima Quito Paris Turin"
LIST = f"The ferry calls at {', '.join(CITIES.split())} and at no other port."


def test_names_are_given_in_the_order_of_the_text() -> None:
    assert list(detect_names(LIST).name_by_key.values()) == CITIES.split()


@pytest.mark.parametrize(
    ("text", "is_sure"),
    [
        ("Marco Polo left.", True),
        ("they saw Venice and then Genoa.", True),
        ("郑和到达了马六甲，郑和回来了。", True),
        ("В городе нашли грамоты. Артемий Арциховский нашёл первую в Новгороде.", True),
        ("nothing is named here.", False),
        ("Yes. No. Perhaps.", False),
        ("12 34 56", False),
        ("CHAPTER OF THE END\n\nnothing is named here.", False),
        ("", False),
    ],
)
def test_a_text_has_names_only_where_there_is_no_doubt(text: str, is_sure: bool) -> None:
    assert detect_names(text).is_certain is is_sure


def test_a_name_is_not_missed_where_a_part_or_more_of_it_was_found() -> None:
    named = detect_names("they met Marco Polo of Venice, then Kublai Khan.")
    assert named.missed_by(["Polo", "the Republic of Venice"]) == ["Kublai Khan"]
    assert named.missed_by([]) == ["Marco Polo", "Venice", "Kublai Khan"]


@pytest.mark.parametrize(("n_missed", "are_many"), [(6, True), (4, True), (3, False), (0, False)])
def test_asking_again_is_worth_it_where_more_than_half_is_missing(n_missed: int, are_many: bool) -> None:
    named = detect_names(LIST)
    assert named.is_mostly(CITIES.split()[:n_missed]) is are_many


@pytest.mark.parametrize(
    ("text", "found", "may_be"),
    [
        (LIST, CITIES.split(), False),
        (LIST, CITIES.split()[:3], True),
        (LIST, ["port of oslo", "BERGEN", "lima", "quito"], False),
        ("no capitals at all", [], False),
        ("郑和", [], True),
    ],
)
def test_a_look_at_capitals_tells_whether_names_may_be_missing(text: str, found: list[str], may_be: bool) -> None:
    assert may_miss_names(text, found) is may_be
