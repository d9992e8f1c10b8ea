"""The glossary: every term once, and every module it names exists."""

import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_ROWS = re.findall(r"^\| (.+?) \| (.+) \| `(.+)` \|$", (_ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)


def test_every_module_of_the_glossary_exists() -> None:
    missing = [f"{term}: {path}" for term, _, path in _ROWS if not (_ROOT / "src" / "quipu" / path).is_file()]
    assert not missing, "docs/glossary.md names modules that do not exist: write where the terms are now"


def test_every_term_is_in_the_glossary_once_with_a_sentence() -> None:
    terms = [term for term, _, _ in _ROWS]
    assert len(terms) > 100
    assert sorted(terms) == sorted(set(terms))
    assert all(meaning.endswith(".") for _, meaning, _ in _ROWS)
