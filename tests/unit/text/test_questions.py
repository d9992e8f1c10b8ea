"""What a question asks for, and where a text offers it."""

import pytest

from quipu.text.questions import Asked, asked_for, offers


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Who printed the Mainz Psalter?", Asked.PERSON),
        ("By whom was it printed?", Asked.PERSON),
        ("When did the printer die?", Asked.TIME),
        ("In which year was it printed?", Asked.TIME),
        ("Where was it printed?", Asked.PLACE),
        ("In what city was it printed?", Asked.PLACE),
        ("How many copies were printed?", Asked.NUMBER),
        ("What is the population of Mainz?", Asked.NUMBER),
        ("Which book did he print?", Asked.NAME),
        ("What were the keepers called?", Asked.NAME),
        ("Why did he print it?", Asked.OTHER),
        ("Кто напечатал книгу?", Asked.PERSON),
        ("Когда её напечатали?", Asked.TIME),
        ("В каком году её напечатали?", Asked.TIME),
        ("Где её напечатали?", Asked.PLACE),
        ("В каком городе её напечатали?", Asked.PLACE),
        ("Сколько книг напечатали?", Asked.NUMBER),
        ("Какой князь помог ему?", Asked.NAME),
        ("谁发明了活字？", Asked.PERSON),
        ("他住在哪里？", Asked.PLACE),
        ("这本书是哪一年印的？", Asked.TIME),
        ("印了多少本？", Asked.NUMBER),
        ("那本书叫什么？", Asked.NAME),
        ("", Asked.OTHER),
    ],
)
def test_the_kind_of_thing_asked_for_is_told_by_the_words(question: str, asked: Asked) -> None:
    assert asked_for(question) is asked


@pytest.mark.parametrize(
    ("asked", "text", "question", "offered"),
    [
        (Asked.TIME, "It was printed in 1457.", "When was it printed?", True),
        (Asked.TIME, "It was printed in 1457.", "When in 1457 was it printed?", False),
        (Asked.TIME, "Её напечатали 3 марта.", "Когда?", True),
        (Asked.TIME, "它是明朝末年印的。", "什么时候印的？", True),
        (Asked.TIME, "It was printed by hand.", "When was it printed?", False),
        (Asked.NUMBER, "They made twelve of 1,282 types.", "How many types?", True),
        (Asked.NUMBER, "共有三百页。", "多少页？", True),
        (Asked.NUMBER, "They made some.", "How many?", False),
        (Asked.PERSON, "It was printed in 1457.", "Who?", False),
    ],
)
def test_a_time_or_number_is_offered_where_the_question_does_not_say_it(
    asked: Asked, text: str, question: str, offered: bool
) -> None:
    assert offers(asked, text, question) is offered
