"""Tests of words: terms of full text, and where names occur."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given, settings

from quipu.providers.jieba import JiebaSegmenter
from quipu.text.unicode import is_unspaced
from quipu.text.words import TOKENIZER_IDENTITY, Analyzer, index_terms, query_terms, split_words, stem
from tests.unit.text.text_pieces import TEXTS


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("Marco Polo's  house", ["marco", "polo", "house"]),
        ("O'Brien, O’Brien", ["obrien", "obrien"]),
        ("C++ and C# and F", ["c++", "and", "c#", "and", "f"]),
        ("## Part 1 #tag", ["part", "1", "tag"]),
        ("1,000.5", ["1", "000", "5"]),
        ("snake_case", ["snake", "case"]),
        ("长城A股", ["长", "城", "a", "股"]),
        ("ジョン・スミス", ["ジ", "ョ", "ン", "ス", "ミ", "ス"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("cafe\u0301 café", ["café", "café"]),
        ("⑴ Ⅳ ﬁn", ["1", "iv", "fin"]),
        ("…!?", []),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_and_single_characters_of_unspaced_scripts(text: str, forms: list[str]) -> None:
    assert [word.form for word in split_words(text)] == forms


@pytest.mark.parametrize(
    "forms",
    [
        "название названием названия названиями",
        "решение решению решением решений",
        "может можете",
        "требуется требуются",
        "минута минуту минут",
        "тёмный темного",
    ],
)
def test_the_forms_of_a_russian_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


def test_stems_are_the_same_from_many_threads() -> None:
    forms = [
        f"{word}{ending}" for word in ("обновлени", "названи", "правил") for ending in ("ем", "я", "ю", "ями")
    ] * 50
    with ThreadPoolExecutor(8) as pool:
        threads = list(pool.map(stem.__wrapped__, forms))
    assert threads == [stem(form) for form in forms]


def test_words_know_where_they_stand() -> None:
    text = "The WHO’s «长城» iPhone"
    words = split_words(text)
    assert [text[word.start : word.end] for word in words] == ["The", "WHO’s", "长", "城", "iPhone"]
    assert [word.is_capital for word in words] == [True, True, True, True, True]
    assert [word.form for word in words if word.is_acronym] == ["who"]
    assert [word.is_joined for word in words] == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("gap", "is_joined"),
    [
        (" ", True),
        ("  ", True),
        ("\n", True),
        (" \n ", True),
        ("\n\n", False),
        ("-", True),
        (" – ", True),
        ("·", True),
        (" & ", True),
        ("/", True),
        (", ", False),
        (": ", False),
        ("; ", False),
        (" (", False),
        ("? ", False),
        (" | ", False),
    ],
)
def test_only_a_joint_joins_two_words(gap: str, is_joined: bool) -> None:
    assert [word.is_joined for word in split_words(f"Marco{gap}Polo")] == [False, is_joined]


@pytest.mark.parametrize(("text", "is_joined"), [("St. Mark", True), ("Dr. No", True), ("Polo. Mark", False)])
def test_a_full_stop_joins_only_after_an_abbreviation(text: str, is_joined: bool) -> None:
    assert split_words(text)[1].is_joined == is_joined


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The Wall", ["the", "wall"]),
        ("长城", ["长城", "城"]),
        ("万里长城", ["万里", "里长", "长城", "城"]),
        ("长", ["长"]),
        ("长 城。北", ["长城", "城", "北"]),
        ("A股市", ["a", "股市", "市"]),
        ("牛股A", ["牛股", "股", "a"]),
        ("Café Ёлка Ελλάδα йод", ["cafe", "елк", "ελλαδα", "йод"]),
        ("Апелляцию подали", ["апелляц", "пода"]),
        ("C++ C#", ["c++", "c#"]),
    ],
)
def test_full_text_indexes_words_and_pairs_and_the_last_character_of_a_run(text: str, terms: list[str]) -> None:
    assert index_terms(split_words(text), text) == terms


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("Who built the wall? The wall!", ["built", "wall", "builtwall"]),
        ("How do I create a superuser?", ["create", "superuser", "createsuperuser"]),
        ("Кому подать апелляцию?", ["пода", "апелляц"]),
        ("Who are they?", ["who", "are", "they"]),
        ("What did the WHO do?", ["who", ":WHO"]),
        ("长城", ["长城"]),
        ("长", ["长"]),
        ("万里长城在哪", ["万里", "里长", "长城", "城在"]),
        ("A股", ["股"]),
        ("What does -a do?", ["-a", ":-a"]),
        (
            "What does rsync --archive (-a) do?",
            ["rsync", "archive", "--archive", "-a", ":--archive", ":-a", "rsyncarchive"],
        ),
        ("What is max_size?", ["max", "size", "max_size", ":max_size", "maxsize"]),
        ("@reboot: a@example, 3-a", ["reboot", "example", "3", "@reboot", ":@reboot", "rebootexample", "example3"]),
        ("选项-a的作用", ["选项", "的作", "作用", "-a", ":-a"]),
        ("?! …", []),
        ("", []),
    ],
)
def test_a_question_asks_for_each_term_once_without_stop_words_and_of_a_run_for_pairs_alone(
    question: str, terms: list[str]
) -> None:
    assert query_terms(question) == terms


@settings(deadline=None, max_examples=300, derandomize=True)
@given(TEXTS)
def test_a_text_has_every_term_that_it_asks_for_as_a_question_but_entries_and_joined_words(text: str) -> None:
    terms = query_terms(text)
    others = {term for term in terms if term.startswith(":")} | {"".join(pair) for pair in pairwise(terms)}
    assert set(terms) - others <= set(index_terms(split_words(text), text))


def test_the_entry_of_an_option_or_identifier_has_a_term_of_its_own() -> None:
    text = "### `max_size` (integer)\n\nThe default of max_size is 4.\n-a, --all=NAME\nPATH\nNAME of it"
    entries = [term for term in index_terms(split_words(text), text) if term.startswith(":")]
    assert entries == [":max_size", ":-a", ":--all", ":PATH"]


def test_the_mark_of_a_footnote_is_no_part_of_a_word() -> None:
    assert split_words("million² m² 10⁶ 1,200³ people¹²").terms == ["million", "m2", "106", "1", "200", "people"]


@settings(deadline=None, max_examples=500, derandomize=True)
@given(TEXTS)
def test_a_word_is_what_its_characters_say_wherever_it_stands(text: str) -> None:
    words = split_words(text)
    assert [word.form for word in split_words(f"{text}\n\n{text}")] == [word.form for word in (*words, *words)]
    for word in words:
        assert word.form
        assert is_unspaced(word.form) == is_unspaced(text[word.start])
        assert [each.form for each in split_words(text[word.start : word.end])] == [word.form]


TEXT = "毕业于中国科学院计算所, then on to the Great Wall 长城"


@pytest.fixture
def analyzer() -> Analyzer:
    segmenter = JiebaSegmenter()
    return Analyzer(segment=segmenter.words, segmenter=segmenter.identity)


def test_without_a_segmenter_terms_are_words_and_pairs() -> None:
    words = split_words(TEXT)
    assert Analyzer().terms(words, TEXT) == index_terms(words, TEXT)
    assert Analyzer().identity == TOKENIZER_IDENTITY


def test_a_segmenter_adds_longer_words_behind_the_pairs(analyzer: Analyzer) -> None:
    words = split_words(TEXT)
    pairs, terms = index_terms(words, TEXT), analyzer.terms(words, TEXT)
    assert terms[: len(pairs)] == pairs
    assert {"中国科学院", "计算所"} <= set(terms[len(pairs) :])
    assert all(len(term) >= 3 for term in terms[len(pairs) :])


def test_questions_are_cut_as_chunks_are(analyzer: Analyzer) -> None:
    assert "中国科学院" in analyzer.query_terms("中国科学院在哪里？")
    assert set(analyzer.query_terms("中国科学院")) <= set(analyzer.terms(split_words(TEXT), TEXT))


def test_the_segmenter_is_part_of_the_recorded_identity(analyzer: Analyzer) -> None:
    assert analyzer.identity.startswith(f"{TOKENIZER_IDENTITY}+jieba/")
