"""The word lists."""

from importlib.resources import files

import pytest

from quipu.ingest.local.lexicon import is_common_word, word_set

NAMES = sorted(entry.name.removesuffix(".txt") for entry in (files("quipu.ingest.local") / "lexicon").iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_every_list_says_what_it_is_and_holds_casefolded_words(name: str) -> None:
    text = (files("quipu.ingest.local") / "lexicon" / f"{name}.txt").read_text("utf-8")

    assert text.startswith("# ")
    assert word_set(name)
    assert all(word == word.casefold() and not word.startswith("#") for word in word_set(name))


def test_no_given_name_of_note_is_an_common_word() -> None:
    assert not any(map(is_common_word, ("anna", "paul", "иван", "мария", "london", "paris")))
