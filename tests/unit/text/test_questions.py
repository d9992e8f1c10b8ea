"""What a question asks for, and where a text offers it."""

import pytest

from quipu.text.questions import (
    AnswerType,
    answer_entity_types,
    asks_for_changes,
    asks_for_overview,
    expected_answer_type,
    find_literal,
    is_release_notes,
    offers_answer,
)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Who printed the Mainz Psalter?", AnswerType.PERSON),
        ("By whom was it printed?", AnswerType.PERSON),
        ("When did the printer die?", AnswerType.TIME),
        ("In which year was it printed?", AnswerType.TIME),
        ("Where was it printed?", AnswerType.PLACE),
        ("In what city was it printed?", AnswerType.PLACE),
        ("How many copies were printed?", AnswerType.NUMBER),
        ("What is the population of Mainz?", AnswerType.NUMBER),
        ("Which book did he print?", AnswerType.NAME),
        ("What were the keepers called?", AnswerType.NAME),
        ("Why did he print it?", AnswerType.OTHER),
        ("Кто напечатал книгу?", AnswerType.PERSON),
        ("Когда её напечатали?", AnswerType.TIME),
        ("В каком году её напечатали?", AnswerType.TIME),
        ("Где её напечатали?", AnswerType.PLACE),
        ("В каком городе её напечатали?", AnswerType.PLACE),
        ("Сколько книг напечатали?", AnswerType.NUMBER),
        ("Какой князь помог ему?", AnswerType.NAME),
        ("谁发明了活字？", AnswerType.PERSON),
        ("他住在哪里？", AnswerType.PLACE),
        ("这本书是哪一年印的？", AnswerType.TIME),
        ("印了多少本？", AnswerType.NUMBER),
        ("那本书叫什么？", AnswerType.NAME),
        ("", AnswerType.OTHER),
    ],
)
def test_the_kind_of_thing_asked_for_is_told_by_the_words(question: str, asked: AnswerType) -> None:
    assert expected_answer_type(question) is asked


@pytest.mark.parametrize(
    ("asked", "text", "question", "offered"),
    [
        (AnswerType.TIME, "It was printed in 1457.", "When was it printed?", True),
        (AnswerType.TIME, "It was printed in 1457.", "When in 1457 was it printed?", False),
        (AnswerType.TIME, "Её напечатали 3 марта.", "Когда?", True),
        (AnswerType.TIME, "它是明朝末年印的。", "什么时候印的？", True),
        (AnswerType.TIME, "It was printed by hand.", "When was it printed?", False),
        (AnswerType.NUMBER, "They made twelve of 1,282 types.", "How many types?", True),
        (AnswerType.NUMBER, "共有三百页。", "多少页？", True),
        (AnswerType.NUMBER, "They made some.", "How many?", False),
        (AnswerType.PERSON, "It was printed in 1457.", "Who?", False),
    ],
)
def test_a_time_or_number_is_offered_where_the_question_does_not_say_it(
    asked: AnswerType, text: str, question: str, offered: bool
) -> None:
    assert offers_answer(asked, text, question) is offered


_TYPES = ("Concept", "Data", "Event", "Location", "Organization", "Other", "Person")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who founded the bank?", ("Organization", "Person")),
        ("Where was he born?", ("Location",)),
        ("Which city did he rule?", ("Location",)),
        ("When did it end?", ("Data", "Event")),
        ("How many ships sailed?", ("Data",)),
        ("Which organization was founded there?", ("Organization",)),
        ("Why did it fail?", ()),
        ("Кто основал банк?", ("Organization", "Person")),
        ("Где он родился?", ("Location",)),
        ("Когда закончилась война?", ("Data", "Event")),
        ("谁建立了银行？", ("Organization", "Person")),
        ("他在哪里出生？", ("Location",)),
        ("战争什么时候结束？", ("Data", "Event")),
    ],
)
def test_the_words_of_a_question_tell_the_type_of_its_answer(question: str, expected: tuple[str, ...]) -> None:
    assert answer_entity_types(question, _TYPES) == expected


def test_types_in_other_languages_and_cases_are_known() -> None:
    assert answer_entity_types("Кто это?", ("ПЕРСОНА", "МЕСТО")) == ("ПЕРСОНА",)
    assert answer_entity_types("他在哪里？", ("人物", "地点")) == ("地点",)
    assert answer_entity_types("Who is it?", ("geo", "person")) == ("person",)


def test_only_types_there_are_come_out() -> None:
    assert answer_entity_types("Who is it?", ("Ship",)) == ()
    assert answer_entity_types("Who is it?", ()) == ()


@pytest.mark.parametrize(
    ("question", "literal"),
    [
        ('Who says "all that glitters"?', "all that glitters"),
        ("Где сказано «семь раз отмерь»?", "семь раз отмерь"),
        ("谁说过「知彼知己」？", "知彼知己"),
        ("What does `git gc` do?", "git gc"),
        ("What do --dry-run and -n mean?", "--dry-run"),
        ("参数--force有什么用？", "--force"),
        ("What is the default of MAX_SIZE?", "MAX_SIZE"),
        ("What does error E1042 mean?", "E1042"),
        ("How is parseLine() called?", "parseLine()"),
        ("What happened at the well-known Battle of Hastings in 1066?", ""),
        ("What is a co-operative's price - roughly?", ""),
    ],
)
def test_what_is_searched_for_as_it_is_written(question: str, literal: str) -> None:
    assert find_literal(question) == literal


@pytest.mark.parametrize(
    "question", ["What is this about?", "Summarise these documents.", "О чём этот документ?", "总结这些文档"]
)
def test_an_overview_is_asked_for(question: str) -> None:
    assert asks_for_overview(question)


def test_a_question_about_one_fact_asks_for_no_overview() -> None:
    assert not asks_for_overview("Who wrote about the war?")


@pytest.mark.parametrize(
    ("document_id", "title", "expected"),
    [
        ("CHANGELOG.md", "", True),
        ("docs/changes.rst", "", True),
        ("a\\release-notes.txt", "", True),
        ("docs/news.rst", "Release notes", True),
        ("docs/history.rst", "Release history", True),
        ("docs/changelog.html", "Changelog — Caravel 1.2 documentation", True),
        ("a.md", "История изменений", True),
        ("a.md", "更新日志", True),
        ("docs/upgrading.rst", "", True),
        ("Guides/Migration-Guide-V5.md", "", True),
        ("docs/migrating-to-v2.md", "", True),
        ("a.md", "Migrating from version 3 to 4", True),
        ("a.md", "升级指南", True),
        ("docs/database-migrations.md", "Database migrations", False),
        ("a.md", "The migration of camels", False),
        ("a.md", "Migration of 5 camels", False),
        ("a.md", "Migrating from 2.x", True),
        ("changes/intro.md", "Intro", False),
        ("exchanges.md", "Exchanges", False),
        ("history.md", "The history of salt", False),
        ("a.md", "Changing camels", False),
        ("a.md", "Changes", True),
        ("a.md", "Changes in the climate of the steppe", False),
    ],
)
def test_release_notes_and_guides_to_new_versions_are_known_by_their_file_or_title(
    document_id: str, title: str, expected: bool
) -> None:
    assert is_release_notes(document_id, title) is expected


@pytest.mark.parametrize(
    "question",
    [
        "What changed in 2.1?",
        "Which version added the proxy?",
        "When was the proxy removed?",
        "Что нового в последнем выпуске?",
        "В какой версии исправили ошибку?",
        "How do I migrate to the new proxy?",
        "Как обновиться до третьего выпуска?",
        "如何升级代理？",
        "哪个版本新增了代理？",
    ],
)
def test_a_question_about_versions_or_changes_asks_for_changes(question: str) -> None:
    assert asks_for_changes(question)


@pytest.mark.parametrize(
    "question", ["What is the default broker?", "How do I add a camel?", "Что такое караван？", "如何设置代理？"]
)
def test_other_questions_do_not(question: str) -> None:
    assert not asks_for_changes(question)
