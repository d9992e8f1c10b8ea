"""Tests of question kinds: what a question asks for, in three languages."""

import pytest

from quipu.answer.question_kind import QuestionKind, analyse_question


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Hello!", QuestionKind.SMALL_TALK),
        ("Thank you very much.", QuestionKind.SMALL_TALK),
        ("Привет!", QuestionKind.SMALL_TALK),
        ("你好", QuestionKind.SMALL_TALK),
        ("Hello Kitty was drawn by whom?", QuestionKind.FACT),
        ("What is this about?", QuestionKind.OVERVIEW),
        ("Summarise the travels of Marco Polo.", QuestionKind.OVERVIEW),
        ("О чём эта книга?", QuestionKind.OVERVIEW),
        ("这本书主要讲了什么？", QuestionKind.OVERVIEW),
        ("这一章讲到运输的部分有哪些内容？", QuestionKind.OVERVIEW),
        ("What is a caravan?", QuestionKind.DEFINITION),
        ("Что такое караван?", QuestionKind.DEFINITION),
        ("驿站是什么？", QuestionKind.DEFINITION),
        ("什么是驿站？", QuestionKind.DEFINITION),
        ("How do I load a camel?", QuestionKind.HOW_TO),
        ("Как навьючить верблюда?", QuestionKind.HOW_TO),
        ("怎么给骆驼装货？", QuestionKind.HOW_TO),
        ("What is the default of max_camels?", QuestionKind.VALUE),
        ("How many camels make a caravan?", QuestionKind.VALUE),
        ("Сколько верблюдов в караване?", QuestionKind.VALUE),
        ("一支商队有多少骆驼？", QuestionKind.VALUE),
        ("What is the difference between a camel and a horse?", QuestionKind.COMPARISON),
        ("Чем верблюд отличается от лошади?", QuestionKind.COMPARISON),
        ("骆驼和马有什么区别？", QuestionKind.COMPARISON),
        ("Which cities did the caravan pass?", QuestionKind.LIST),
        ("Назови города на пути.", QuestionKind.LIST),
        ("商队经过哪些城市？", QuestionKind.LIST),
        ("Did Polo reach China?", QuestionKind.YES_NO),
        ("Who led the caravan?", QuestionKind.FACT),
    ],
)
def test_the_words_of_a_question_tell_its_kind(text: str, kind: QuestionKind) -> None:
    assert analyse_question(text).kind is kind


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("What is a caravan?", "caravan"),
        ("What does yam mean in Mongolian?", "yam"),
        ("Что такое ям?", "ям"),
        ("驿站是什么？", "驿站"),
        ("What is the name of the man who led it?", ""),
    ],
)
def test_a_definition_names_its_term(text: str, term: str) -> None:
    (part,) = analyse_question(text).parts
    assert part.term == term


def test_a_comparison_asks_for_each_side_without_the_other() -> None:
    first, second = analyse_question("What is the difference between a camel and a horse?").parts
    assert ("camel" in first.words, "horse" in first.words) == (True, False)
    assert ("camel" in second.words, "horse" in second.words) == (False, True)


def test_sides_that_share_their_noun_both_get_it() -> None:
    first, second = analyse_question("How do local and global search differ?").parts
    assert (first.term, second.term) == ("local search", "global search")


def test_each_clause_of_a_double_question_is_a_part() -> None:
    first, second = analyse_question("Who led the caravan, and which city did it leave?").parts
    assert "caravan" in first.words and "city" not in first.words
    assert "city" in second.words


def test_a_clause_that_says_little_alone_gets_the_words_of_the_first() -> None:
    _, second = analyse_question("Of what wood is Venice's fleet built, and of what is Genoa's?").parts
    assert {"Genoa's", "wood", "fleet", "built"} <= set(second.words.split())
    assert "Venice" not in second.words


def test_words_that_only_ask_are_not_searched_for() -> None:
    (part,) = analyse_question("Which command starts the server?").parts
    assert part.words.split() == ["Which", "starts", "the", "server"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Кто отвечает за командировки?", "командировки"),
        ("Где хранятся видео?", "видео"),
        ("Кто работает в типографии?", "типографии"),
        ("Какой командир вёл отряд?", "командир"),
    ],
)
def test_words_that_only_begin_like_those_that_ask_are_searched_for(text: str, words: str) -> None:
    analysed = analyse_question(text)
    assert words in analysed.parts[0].words
    assert analysed.kind is QuestionKind.FACT
