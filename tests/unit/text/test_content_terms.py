"""Content words without their endings."""

import pytest

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
