"""The rules of a script are imported only when text in that script comes."""

import subprocess
import sys

import pytest

from quipu.ingest.local.lexicon import common_words, word_set
from quipu.ingest.local.script_rules import case_rank, find_chinese_names, has_russian_letter, stem_name

_PROGRAM = """
import sys
from quipu.ingest.local.extraction import extract_chunk
from quipu.model.extraction import ChunkInput
extract_chunk(ChunkInput(text=sys.argv[1], title="Café Zürich", headings=("Early life",)))
rules = ("russian", "chinese_names", "chinese_phrases", "chinese_words")
print(*(name for name in rules if f"quipu.ingest.local.{name}" in sys.modules))
"""


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("Ada Lovelace – “the Countess” – was born in Zürich. She is Ada.", []),
        ("Ada met Иван Фёдоров.", ["russian"]),
        ("Ada came to 云南。", ["chinese_names", "chinese_phrases", "chinese_words"]),
    ],
)
def test_a_text_imports_only_the_rules_of_its_scripts(text: str, modules: list[str]) -> None:
    process = subprocess.run(
        [sys.executable, "-c", _PROGRAM, text], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert process.stdout.split() == modules


def test_other_scripts_have_no_case_forms_and_no_chinese_names() -> None:
    assert stem_name("laura") == "laura"
    assert case_rank("laura") == 0
    assert not has_russian_letter("laura")
    assert find_chinese_names("Laura 1842 – “Ωμέγα”") == []


def test_russian_words_are_cyrillic_and_english_words_are_ascii() -> None:
    own_lists = [word_set(f"ru_{name}") for name in ("common", "function", "openers")]
    assert all(has_russian_letter(word) for words in own_lists for word in words)
    english = common_words("en") - word_set("demonyms") - word_set("roles")
    assert all(word.isascii() for word in english)
