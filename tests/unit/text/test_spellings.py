"""Spellings: which names are one name in another script or with other accents."""

import pytest

from quipu.text.names import entity_key, other_spellings, spelling_key

SAME = [
    ("Cafe", "Café"),
    ("Erdos", "Erdős"),
    ("Lodz", "Łódź"),
    ("Muller", "Müller"),
    ("Королев", "Королёв"),
    ("Mikhail Bulgakov", "Михаил Булгаков"),
    ("Nikolai Gogol", "Николай Гоголь"),
    ("Tchaikovsky", "Чайковский"),
    ("Dostoyevsky", "Достоевский"),
    ("Yeltsin", "Ельцин"),
    ("Khrushchev", "Хрущёв"),
    ("Linus Torvalds", "Линус Торвальдс"),
    ("Wang Xiaoming", "王小明"),
    ("Beijing", "北京"),
]
DIFFERENT = [
    ("Marley", "Marli"),  # in one script only accents may differ
    ("Dostoevsky", "Dostoyevsky"),
    ("Бойко", "Боико"),  # й is a letter, not и with an accent
    ("Xian", "西安"),  # too short for another script
    ("Li", "李"),
    ("МИР", "Mir"),  # an acronym
    ("глава 1", "глава 11"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_name_is_the_same_in_another_script_or_with_other_accents(one: str, other: str) -> None:
    assert _is_same(one, other)
    assert _is_same(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_short_names_letters_and_acronyms_stay_apart(one: str, other: str) -> None:
    assert not _is_same(one, other)
    assert not _is_same(other, one)


def test_a_spelling_that_two_names_of_another_script_share_stands_for_neither() -> None:
    assert spelling_key("元数据") == spelling_key("源数据") == spelling_key("yuanshuju")
    assert other_spellings("yuanshuju", ["元数据", "源数据"]) == ()
    assert other_spellings("yuanshuju", ["元数据"]) == ("元数据",)
    # ё and е are two spellings of one name, so both are meant.
    assert other_spellings("korolev", ["королёв", "королев"]) == ("королев", "королёв")


@pytest.mark.parametrize("key", ["", "1941", "WHO", "США"])
def test_numbers_and_acronyms_have_no_spelling_key(key: str) -> None:
    assert spelling_key(key) == ""


def _is_same(one: str, other: str) -> bool:
    first, second = entity_key(one), entity_key(other)
    return spelling_key(first) == spelling_key(second) and other_spellings(first, [second]) == (second,)
