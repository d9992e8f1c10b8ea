"""Tests of sentence spans."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.text.sentences import record_questions, sentence_spans

ALPHABET = "ab Az09.!?…。！？」”\"'()[]:：-*#|\n\t и г他说"


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def test_a_text_without_words_has_no_sentences() -> None:
    assert sentence_spans("") == []
    assert sentence_spans(" \n\t \n") == []


def test_spans_point_into_the_text() -> None:
    assert sentence_spans("  One. Two! ") == [(2, 6), (7, 11)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He met Mr. Smith. She met Dr. Jones.", ["He met Mr. Smith.", "She met Dr. Jones."]),
        ("J. R. R. Tolkien wrote it. It sold.", ["J. R. R. Tolkien wrote it.", "It sold."]),
        ("The U.S. Army came. It left.", ["The U.S. Army came.", "It left."]),
        ("They left the U.S. He stayed.", ["They left the U.S.", "He stayed."]),
        ("It was in 1066 A.D. The king died.", ["It was in 1066 A.D.", "The king died."]),
        ("Some cities, e.g. Paris, grew. Pi is 3.14 here.", ["Some cities, e.g. Paris, grew.", "Pi is 3.14 here."]),
        ("See no. 5. He said no. Bob left.", ["See no. 5.", "He said no.", "Bob left."]),
        ("It ended in 1945. Bob left.", ["It ended in 1945.", "Bob left."]),
        (
            "Acme Inc. Berlin is new. Ask Acme Inc. They know.",
            ["Acme Inc. Berlin is new.", "Ask Acme Inc.", "They know."],
        ),
    ],
)
def test_a_full_stop_of_an_abbreviation_does_not_end_a_sentence(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Родился в 1812 г. в Москве. Он умер.", ["Родился в 1812 г. в Москве.", "Он умер."]),
        ("А. С. Пушкин и др. писали, т. е. творили. Конец.", ["А. С. Пушкин и др. писали, т. е. творили.", "Конец."]),
        ("Это было в 1820 г. Он уехал.", ["Это было в 1820 г.", "Он уехал."]),
    ],
)
def test_cyrillic_abbreviations_are_known(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_cjk_sentences_end_without_a_space_and_keep_their_closing_quote() -> None:
    assert sentences("他说：“你好。”她走了。是吗？是的！东京3.5公里") == [
        "他说：“你好。”",
        "她走了。",
        "是吗？",
        "是的！",
        "东京3.5公里",
    ]
    assert sentences("「雨だ。」彼は言った。真的?他走了。") == ["「雨だ。」", "彼は言った。", "真的?", "他走了。"]


def test_a_lower_case_letter_continues_the_sentence() -> None:
    assert sentences('"Really?" he asked. She left... and came back.') == [
        '"Really?" he asked.',
        "She left... and came back.",
    ]


def test_quotes_and_footnote_marks_stay_with_their_sentence() -> None:
    assert sentences('"Yes." Founded in 1995.[1][2] It grew.') == ['"Yes."', "Founded in 1995.[1][2]", "It grew."]


def test_a_lost_space_does_not_join_sentences() -> None:
    assert sentences("He was of this group.Courten fought. See example.com or v2.Go and U.S.A today.") == [
        "He was of this group.",
        "Courten fought.",
        "See example.com or v2.Go and U.S.A today.",
    ]


def test_wrapped_lines_continue_and_blank_lines_end() -> None:
    wrapped = (
        "The longest road in the country was built by the miners of the\nEastern valley in winter\n\nNobody used it"
    )
    assert sentences(wrapped) == [
        "The longest road in the country was built by the miners of the\nEastern valley in winter",
        "Nobody used it",
    ]


def test_a_line_break_after_terminal_punctuation_ends_a_sentence() -> None:
    assert sentences("it rained.\nthen it stopped") == ["it rained.", "then it stopped"]


def test_list_items_headings_rows_and_speakers_begin_sentences() -> None:
    text = (
        "A line that is long enough to be a wrapped line of prose\n- one\n2. two\n# Head\nAnn: hi\nBob Lee: ho\na | b"
    )
    assert sentences(text)[1:] == ["- one", "2. two", "# Head", "Ann: hi", "Bob Lee: ho", "a | b"]


def test_a_short_line_stands_alone() -> None:
    assert sentences("Passage 1:\nFriedrich von Berg\nFriedrich was a nobleman") == [
        "Passage 1:",
        "Friedrich von Berg",
        "Friedrich was a nobleman",
    ]


@given(st.text(st.sampled_from(ALPHABET), max_size=300))
def test_spans_hold_every_visible_character_once_in_order(text: str) -> None:
    spans = sentence_spans(text)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
    for start, end in spans:
        assert text[start:end] == text[start:end].strip() != ""
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(spans))


@given(st.text(st.sampled_from(ALPHABET), max_size=200), st.text(st.sampled_from(ALPHABET), max_size=200))
def test_paragraphs_are_split_independently(first: str, second: str) -> None:
    body = first.rstrip() + ".\n\n"
    joined = sentence_spans(body + second)
    alone = [(start + len(body), end + len(body)) for start, end in sentence_spans(second)]
    assert joined[len(joined) - len(alone) :] == alone


@pytest.mark.parametrize("unit", [".", '."', "( ", "\n ", "A. ", "word ", "[1]", "Name: "])
def test_a_long_run_of_anything_is_read_in_one_pass(unit: str) -> None:
    text = unit * (300_000 // len(unit)) + "x"
    assert "".join(sentences(text)).count("x") == 1


@pytest.mark.parametrize(
    ("text", "header", "questions"),
    [
        ("Q: How do I pay?\nA: By card.\n\nQ: And\nwhen?\nA: Now.", "", ["How do I pay?", "And\nwhen?"]),
        ("Q: Why?\n\nA: So.", "", ["Why?"]),
        ("Q: Why\n1\n2\n3\n4\n5\nA: So.", "", ["Why\n1\n2\n3\n4\n5"]),
        ("Q: Why\n1\n2\n3\n4\n5\n6\nA: So.", "", []),
        ("**Q:** Why?\n**A:** So.", "", ["Why?"]),
        ("Вопрос: Как платить?\nОтвет: Картой.", "", ["Как платить?"]),
        ("问：怎么付款？\n答案：刷卡。", "", ["怎么付款？"]),
        ("问题：怎么付款？\n答案：刷卡。", "", ["怎么付款？"]),
        ("# Help\n\n## How do I pay?\n\nBy card.\n\n**May I wait?**\nNo.", "", ["How do I pay?", "May I wait?"]),
        (
            "Question | Answer\nHow do I pay? | By card\nWhen? | Now\n\nPlace | Time\nHere | Now",
            "",
            ["How do I pay?", "When?"],
        ),
        ("| Frage | Antwort |\n| --- | --- |\n| Wie? | So |", "", ["Wie?"]),
        ("How do I pay? | By card", "Question | Answer", ["How do I pay?"]),
        ("How do I pay? | By card", "Name | Number", []),
        ("Q: Nobody answers this.\nB: Or does one?", "", []),
        ("He asked: how do I pay? She knew.", "", []),
        ("", "", []),
    ],
)
def test_questions_that_a_text_answers_are_found(text: str, header: str, questions: list[str]) -> None:
    assert [text[start:end] for start, end in record_questions(text, header)] == questions
