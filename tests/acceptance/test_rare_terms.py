"""Rare terms under frequent neighbours: thirty questions whose rare word has many passages about something near it.

Each language has one file in tests/data/rare_terms, and one index is made of it. `? term | question` opens a case, `+`
is the passage that answers it, and `-` a neighbour that shares other words of the question.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.model.document import SourceDocument
from quipu.retrieve import STRATEGIES
from quipu.settings import Settings
from quipu.wiring import open_engine
from tests.laws.derived_world import keep_all

FOLDER = Path(__file__).resolve().parents[1] / "data" / "rare_terms"
LANGUAGES = ("en", "ru", "zh")
TOP_K = 3  # the passage must be among the first three; each question has six neighbours
RANKING = tuple(name for name, strategy in STRATEGIES.items() if strategy.ranks_passages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A rare term, a question about it and the one passage that answers it."""

    term: str
    question: str
    passage: str


def _lines(language: str) -> list[str]:
    return (FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines()


def _cases(language: str) -> list[Case]:
    lines, cases = _lines(language), []
    for n, line in enumerate(lines):
        if line.startswith("? "):
            term, question = line[2:].split(" | ")
            cases.append(Case(term=term, question=question, passage=lines[n + 1][2:]))
    return cases


def _expected_failures() -> dict[tuple[str, str], set[str]]:
    """Return the terms that are drowned, by strategy and language; each group of strategies has its reason above it."""
    failures = {}
    for line in (FOLDER / "drowned.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            strategy, language, terms = line.split(" | ")
            failures[strategy, language] = set(terms.split(", "))
    return failures


async def _build(folder: Path, language: str) -> None:
    texts = [line[2:] for line in _lines(language) if not line.startswith("? ")]
    async with await open_engine(Settings(index=folder)) as kb:
        report = await kb.add(*(SourceDocument(id=f"{n:03}", content=text.encode()) for n, text in enumerate(texts)))
        assert report.failed == ()
        await keep_all(kb)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the index of each language."""
    folder = tmp_path_factory.mktemp("rare terms")
    for language in LANGUAGES:
        asyncio.run(_build(folder / language, language))
    return {language: folder / language for language in LANGUAGES}


async def _drowned(kb: Quipu, strategy: str, cases: list[Case]) -> set[str]:
    """Return the terms whose passage is not among the first that a strategy ranks."""
    terms = set()
    for case in cases:
        passages = await kb.passages(case.question, strategy=strategy)
        if case.passage not in [passage.chunk.text for passage in passages[:TOP_K]]:
            terms.add(case.term)
    return terms


def test_there_are_ten_cases_in_each_language_and_each_term_belongs_to_one() -> None:
    terms = {language: {case.term for case in _cases(language)} for language in LANGUAGES}
    assert {language: len(names) for language, names in terms.items()} == dict.fromkeys(LANGUAGES, 10)
    assert all(names <= terms[language] for (_, language), names in _expected_failures().items())
    assert {strategy for strategy, _ in _expected_failures()} <= set(RANKING)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("strategy", RANKING)
async def test_a_rare_term_is_drowned_only_where_that_is_listed(
    strategy: str, language: str, indexes: dict[str, Path]
) -> None:
    async with await open_engine(Settings(index=indexes[language])) as kb:
        drowned = await _drowned(kb, strategy, _cases(language))
    assert drowned == _expected_failures().get((strategy, language), set())
