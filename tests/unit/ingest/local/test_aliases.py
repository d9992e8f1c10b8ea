"""Other names a text states."""

import pytest

from quipu.ingest.local.extraction import extract_chunk
from quipu.ingest.local.relations import abbreviates
from quipu.model.extraction import ChunkInput


def _aliases(text: str) -> list[tuple[str, str]]:
    return [(alias.name, alias.alias) for alias in extract_chunk(ChunkInput(text=text)).aliases]


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("The World Food Programme (WFP) warned of famine.", [("World Food Programme", "WFP")]),
        ("The WFP (World Food Programme) warned of famine.", [("World Food Programme", "WFP")]),
        (
            "Совет собрала Организация Объединённых Наций (ООН) в Женеве.",
            [("Организация Объединённых Наций", "ООН")],
        ),
        ("世界卫生组织（WHO）表示同意。", [("世界卫生组织", "WHO")]),
        ("世界卫生组织（简称世卫组织）表示同意。", [("世界卫生组织", "世卫组织")]),
        ("Печатник Иван Фёдоров (Ivan Fyodorov) жил там.", [("Иван Фёдоров", "Ivan Fyodorov")]),
        ("We met Kim Jong-hyun, better known as Jonghyun, in Seoul.", [("Kim Jong-hyun", "Jonghyun")]),
    ],
)
def test_stated_names_are_aliases_with_the_fuller_name_first(text: str, pairs: list[tuple[str, str]]) -> None:
    assert _aliases(text) == pairs


@pytest.mark.parametrize(
    "text", ["We met Henry Worrall (1825-1902).", "He lives in Paris (France).", "Anna (NASA) left."]
)
def test_a_bracket_that_does_not_name_the_same_thing_is_no_alias(text: str) -> None:
    assert _aliases(text) == []


@pytest.mark.parametrize(
    ("short", "long", "expected"),
    [
        ("MBARI", "Monterey Bay Aquarium Research Institute", True),
        ("Минздрав", "Министерство здравоохранения", True),
        ("MOU", "Memorandum of Understanding", True),
        ("NASA", "National Park", False),
        ("NA", "National", False),
        ("Park", "Pacific Ark", False),
    ],
)
def test_an_abbreviation_is_made_of_the_beginnings_of_the_words(short: str, long: str, expected: bool) -> None:
    assert abbreviates(short, long) is expected


def test_a_screen_name_is_an_alias_of_the_name_it_is_made_of() -> None:
    text = "AdamSmith: Hi Maya!\nMaya: Hello Adam, are you well?"

    assert _aliases(text) == [("AdamSmith", "Adam Smith")]
