"""Golden tests: what each strategy finds in the corpus of `quipu demo`, with all that is made without a model.

The files in tests/data/golden are for reading: `pytest tests/acceptance/test_golden.py --rewrite-golden` writes them
again where a change is meant.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from random import Random

import pytest

from quipu.engine import Quipu
from quipu.model.query import Budget
from quipu.retrieve import STRATEGIES
from quipu.settings import Settings
from quipu.wiring import open_engine
from tests.acceptance.derived import made_anew, told
from tests.laws.derived_world import keep_all

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden"
QUESTIONS = (
    "Which book did the financier who sued Johannes Gutenberg print in Mainz in 1457?",
    "How did rulers keep roads and post stations in order?",
    "Какой князь стал покровителем печатника, который выпустил первую точно датированную русскую книгу «Апостол»?",
    "记载毕昇胶泥活字的学者晚年住在哪里？",
)
TOLERANCE = 0.0011  # of a score: the last decimal may be rounded otherwise elsewhere
LINE = re.compile(r"    (-?\d+\.\d{3}) (.*)")


@contextmanager
def _corpus() -> Iterator[Path]:
    with as_file(files("quipu") / "testing" / "corpora") as folder:
        yield folder / "demo"


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[Quipu]:
    async with await open_engine(Settings(index=folder)) as kb:
        yield kb


async def _built_at_once(folder: Path) -> None:
    with _corpus() as corpus:
        async with _opened(folder) as kb:
            await kb.add(corpus, root=corpus)
            await keep_all(kb)


async def _lived(folder: Path) -> None:
    """Build the same in another order and in parts, every derivation kept from the first on, with a detour."""
    with _corpus() as corpus:
        paths = sorted(path for path in corpus.iterdir() if not path.name.endswith(".meta.json"))
        Random("order").shuffle(paths)
        async with _opened(folder) as kb:
            await kb.add(*paths[:20], root=corpus)
            await keep_all(kb)
            await kb.add_text("Johann Fust went to Paris with a chest of books. 毕昇在杭州。", id="detour")
            await kb.add(*paths[20:], root=corpus)
            await kb.remove(["detour", paths[3].name])
            await kb.add(paths[3], root=corpus)
            await made_anew(kb)


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden") / "at once"
    asyncio.run(_built_at_once(folder))
    return folder


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden") / "lived"
    asyncio.run(_lived(folder))
    return folder


async def test_with_the_preset_of_the_sources_every_strategy_answers(at_once: Path) -> None:
    """Where a source has other values than the defaults, the evidence or the context is another."""
    question, equal = QUESTIONS[0], set()
    async with _opened(at_once) as kb:
        for strategy in STRATEGIES.values():
            if strategy.searches_index:
                default = await kb.query(question, strategy=strategy.name)
                faithful = await kb.query(question, strategy=strategy.name, preset="faithful")
                evidence = faithful.trace.evidence
                assert evidence.chunks or evidence.reports
                assert any(note.startswith("the preset 'faithful'") for note in evidence.notes)
                if (evidence.chunks, faithful.context) == (default.trace.evidence.chunks, default.context):
                    equal.add(strategy.name)
    assert equal == {"weave", "lexical", "community_global", "context"}  # they have no other values


def differences(found: str, expected: str) -> list[str]:
    """Return the lines in which what was found is not what was expected; scores may differ by what rounding does."""
    one, other = found.splitlines(), expected.splitlines()
    n_more = len(one) - len(other)
    lines = [f"{a!r} where {b!r} is expected" for a, b in zip(one, other, strict=False) if not _is_same(a, b)]
    return lines + ([f"{n_more:+} lines"] if n_more else [])


def _is_same(found: str, expected: str) -> bool:
    one, other = LINE.fullmatch(found), LINE.fullmatch(expected)
    if one is None or other is None:
        return found == expected
    return one[2] == other[2] and abs(float(one[1]) - float(other[1])) < TOLERANCE


@pytest.mark.parametrize("name", list(STRATEGIES))
async def test_a_strategy_finds_what_it_always_found(name: str, at_once: Path, rewrite_golden: bool) -> None:
    async with _opened(at_once) as kb:
        found = await told(kb, name, QUESTIONS)
    file = GOLDEN / f"{name}.txt"
    if rewrite_golden:
        file.write_text(found, encoding="utf-8")
    assert differences(found, file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("total", [2_000, 4_000, 8_000, 30_000])
async def test_what_ranks_passages_shows_some_in_a_context_of_any_size(total: int, at_once: Path) -> None:
    n_passages: dict[str, int] = {}
    async with _opened(at_once) as kb:
        for strategy in STRATEGIES.values():
            if strategy.ranks_passages:
                answer = await kb.query(QUESTIONS[0], strategy=strategy.name, budget=Budget(total=total))
                cut = [len(hits.ids) for hits in answer.trace.dropped if hits.section == "chunks"]
                n_passages[strategy.name] = len(answer.trace.evidence.chunks) - sum(cut)
    assert {name for name, n in n_passages.items() if n == 0} == set()


async def test_all_find_the_same_whatever_the_history_of_the_index(lived: Path) -> None:
    async with _opened(lived) as kb:
        found = {name: await told(kb, name, QUESTIONS) for name in STRATEGIES}
    expected = {file.stem: file.read_text(encoding="utf-8") for file in GOLDEN.glob("*.txt")}
    assert {name: lines for name in STRATEGIES if (lines := differences(found[name], expected[name]))} == {}


def test_no_golden_file_is_left_of_a_strategy_that_is_gone() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == set(STRATEGIES)


def test_another_order_another_score_and_a_missing_line_are_differences() -> None:
    expected = "Q\n    0.500 a · x\n    0.400 b\n"
    assert differences(expected, expected) == []
    assert differences("Q\n    0.501 a · x\n    0.400 b\n", expected) == []
    assert len(differences("Q\n    0.503 a · x\n    0.400 b\n", expected)) == 1
    assert len(differences("Q\n    0.400 b\n    0.500 a · x\n", expected)) == 2
    assert differences("Q\n    0.500 a · x\n", expected) == ["-1 lines"]
