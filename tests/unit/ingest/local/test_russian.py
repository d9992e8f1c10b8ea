"""Russian names: lower-case parts, case forms, and where two names meet."""

import pytest

from quipu.ingest.local.extraction import extract_chunk
from quipu.ingest.local.russian import extend_name, is_verb
from quipu.ingest.local.script_rules import case_rank, stem_name
from quipu.model.extraction import ChunkInput
from quipu.text.names import entity_key


def _names(text: str, title: str = "") -> list[str]:
    return [entity.name for entity in extract_chunk(ChunkInput(text=text, title=title)).entities]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Во время Крымской войны он жил на Васильевском острове.", ["Крымской войны", "Васильевском острове"]),
        ("Построен Большой адронный коллайдер.", ["Большой адронный коллайдер"]),
        ("Работал в Институте экспериментальной медицины.", ["Институте экспериментальной медицины"]),
        ("Так решил Верховный суд Бразилии.", ["Верховный суд Бразилии"]),
        ("Он гулял по улице Баумана.", ["улице Баумана"]),
        ("После битвы при Ватерлоо Наполеон Бонапарт бежал.", ["битвы при Ватерлоо", "Наполеон Бонапарт"]),
        ("Они уехали в Великое княжество Литовское.", ["Великое княжество Литовское"]),
    ],
)
def test_a_name_goes_on_in_lower_case_as_far_as_it_agrees(text: str, names: list[str]) -> None:
    assert _names(text) == names


def test_two_names_that_meet_are_parted_by_their_cases() -> None:
    assert _names("Губернатор Приморья Олег Кожемяко прилетел.") == ["Приморья", "Олег Кожемяко"]
    assert _names("Он построил в Киеве Софийский собор.") == ["Киеве", "Софийский собор"]


def test_a_verb_ends_the_name() -> None:
    assert _names("Пьесу написал Толстой вчера. Толстой написал её.") == ["Толстой"]


def test_case_forms_of_a_name_are_one_entity_shown_in_the_nominative() -> None:
    text = "С Иваном Фёдоровым работал Пётр Мстиславец. Книгу Ивана Фёдорова знали."

    assert _names(text, "Иван Фёдоров") == ["Иван Фёдоров", "Пётр Мстиславец"]
    assert _names("В Москве ждали. Дорога шла из Москвы. Стоит Москва.") == ["Москва"]


def test_stems_are_of_cyrillic_names_alone() -> None:
    assert stem_name(entity_key("Ивана Фёдорова")) == stem_name(entity_key("Иваном Фёдоровым"))
    assert stem_name("laura") == "laura"
    assert case_rank("москва") < case_rank("москве")


@pytest.mark.parametrize("verb", ["основал", "преобразовал", "показал", "искал", "открывал"])
def test_verbs_in_the_past_are_verbs_though_nouns_end_alike(verb: str) -> None:
    assert is_verb(verb)


@pytest.mark.parametrize("noun", ["вал", "вокзал", "зал", "карнавал", "интервал", "журнал", "скал", "подвал"])
def test_nouns_that_end_like_a_verb_in_the_past_are_no_verbs(noun: str) -> None:
    assert not is_verb(noun)


def test_a_noun_in_ie_follows_an_adjective_in_oe() -> None:
    text = "Глубокое молчание настало."

    assert extend_name(text, 0, 8, is_initial=False) == (0, 17)
