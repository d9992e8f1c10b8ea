"""Content words without their endings."""

import pytest

from quipu.retrieve.steps.passages import nearness, term_places
from quipu.text.words import content_terms_of, stem


@pytest.mark.parametrize(
    "forms",
    [
        ("print", "prints", "printed", "printing", "printer", "printers"),
        ("invent", "invention", "inventions", "inventor", "invented"),
        ("country", "countries"),
        ("князь", "князя", "князю", "князем"),
        ("печатник", "печатника", "печатники", "печатником"),
        ("острожский", "острожского", "острожским"),
    ],
)
def test_the_forms_of_one_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("pair", [("print", "paint"), ("князь", "грязь"), ("polo", "pole"), ("1254", "1255")])
def test_other_words_have_other_stems(pair: tuple[str, str]) -> None:
    assert stem(pair[0]) != stem(pair[1])


def test_short_words_are_left_whole() -> None:
    assert [stem(word) for word in ("sea", "is", "я", "дом")] == ["sea", "is", "я", "дом"]


def test_function_words_are_left_out() -> None:
    assert content_terms_of("Who was the first printer of Mainz?") == ["first", "print", "mainz"]
    assert content_terms_of("Кто был первым печатником?") == ["перв", "печатник"]
    assert content_terms_of("谁发明了活字？") == ["谁发", "发明", "明了", "了活", "活字"]


def test_words_are_seen_where_they_begin_with_a_term() -> None:
    assert term_places("Printing: a reprint, prints", ["print"]) == [(0, "print"), (21, "print")]
    assert term_places("谁发明了活字？", ["活字", "发明"]) == [(1, "发明"), (4, "活字")]
    assert term_places("nothing", ["print"]) == []


def test_terms_that_stand_together_are_nearer_than_terms_far_apart() -> None:
    together, apart = "salt and silk" + " and" * 99, "salt" + " and" * 99 + " silk"
    assert nearness([together, apart, "pepper"], ["salt", "silk"], reach=20) == [1.0, 0.5, 0.0]


def test_a_rare_term_counts_more_than_a_common_one() -> None:
    of_rare, of_common, _ = nearness(["silk", "salt", "salt"], ["salt", "silk"], reach=20)
    assert of_rare > of_common > 0


def test_no_terms_are_near_nothing() -> None:
    assert nearness(["salt"], [], reach=20) == [0.0]
    assert nearness([], ["salt"], reach=20) == []
