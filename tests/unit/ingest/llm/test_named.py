"""Names a text seems to hold."""

import pytest

from quipu.ingest.llm.named import may_be_missed, names_in

CITIES = "Oslo Bergen Lima Quito Paris Turin"
LIST = f"The ferry calls at {', '.join(CITIES.split())} and at no other port."


def test_names_are_given_in_the_order_of_the_text() -> None:
    assert list(names_in(LIST).name_by_key.values()) == CITIES.split()


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
    assert names_in(text).is_sure is is_sure


def test_a_name_is_not_missed_where_a_part_or_more_of_it_was_found() -> None:
    named = names_in("they met Marco Polo of Venice, then Kublai Khan.")
    assert named.missed_by(["Polo", "the Republic of Venice"]) == ["Kublai Khan"]
    assert named.missed_by([]) == ["Marco Polo", "Venice", "Kublai Khan"]


@pytest.mark.parametrize(("n_missed", "are_many"), [(6, True), (4, True), (3, False), (0, False)])
def test_asking_again_is_worth_it_where_more_than_half_is_missing(n_missed: int, are_many: bool) -> None:
    named = names_in(LIST)
    assert named.are_many(CITIES.split()[:n_missed]) is are_many


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
    assert may_be_missed(text, found) is may_be
