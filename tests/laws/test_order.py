"""Law 1: any order and batching of the same work gives the same bytes and the same rankings."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.algo import similarity
from quipu.model.document import SourceDocument
from quipu.stores.relational import text_index
from quipu.testing.postgres_server import PostgresServer
from quipu.vectors.local import segments
from tests.laws.world import DATABASE_VARIABLE, STRATEGIES, document, engine, fresh_state, run, state

NAMES = ("a.md", "b.md", "c.md", "d.md", "e.md")


@dataclass(frozen=True)
class Step:
    """Some documents are handed in together (at these versions), then some are removed."""

    added: tuple[tuple[str, int], ...]
    removed: tuple[str, ...]


steps = st.builds(
    Step,
    added=st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 3)), max_size=4).map(tuple),
    removed=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
)
histories = st.lists(steps, min_size=1, max_size=5)


async def lived(
    folder: Path, history: Sequence[Step], exact_below: int, strategies: Sequence[str]
) -> tuple[object, dict[str, SourceDocument]]:
    """Live through a history; return the state at its end and the surviving documents."""
    alive: dict[str, SourceDocument] = {}
    async with engine(folder, exact_below=exact_below) as kb:
        for step in history:
            given_documents = {name: document(name, seed) for name, seed in step.added}
            await kb.add(*given_documents.values())
            alive |= given_documents
            removed = [name for name in step.removed if name in alive]
            if removed:
                await kb.remove(removed)
            for name in removed:
                del alive[name]
        assert await kb.verify() == []
        return await state(kb, strategies), alive


async def differs(
    history: Sequence[Step], *, exact_below: int = 20_000, strategies: Sequence[str] = ("lexical", "mix")
) -> bool:
    """Say whether an index that lived through `history` differs from a fresh one of the survivors."""
    with tempfile.TemporaryDirectory() as folder:
        lived_state, alive = await lived(Path(folder) / "lived", history, exact_below, strategies)
        survivors = [alive[name] for name in sorted(alive, reverse=True)]
        fresh = await fresh_state(Path(folder) / "fresh", survivors, exact_below=exact_below, strategies=strategies)
        return lived_state != fresh


def test_every_history_ends_in_the_state_of_a_fresh_build_of_its_survivors(database: str, laws_scale: int) -> None:
    n_examples = (60 if laws_scale == 1 else 200 * laws_scale) if database == "sqlite" else 5 * laws_scale

    @settings(max_examples=n_examples, derandomize=True)
    @given(histories)
    def check(history: list[Step]) -> None:
        assert not run(lambda: differs(history))

    check()


@pytest.fixture
def few_candidates(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make sketches decide on small indexes too; return how many rows each of their cuts kept."""
    cuts: list[int] = []
    cut = similarity.smallest_with_ties

    def counted(distances: npt.NDArray[np.uint16], n: int) -> npt.NDArray[np.int64]:
        kept = cut(distances, n)
        cuts.append(len(kept))
        return kept

    monkeypatch.setattr(segments, "_MIN_CANDIDATES", 8)
    monkeypatch.setattr(segments, "_CANDIDATES_PER_RESULT", 0)
    monkeypatch.setattr(segments, "smallest_with_ties", counted)
    return cuts


async def differs_with_sketches() -> bool:
    """Say whether a long history over many documents differs from a fresh build, searching by sketches alone."""
    everything = [(f"{name}{i}", i) for name in NAMES for i in range(12)]
    history = [
        Step(added=tuple(everything[:30]), removed=()),
        Step(added=tuple((name, seed + 1) for name, seed in everything[20:]), removed=("a.md3", "c.md7")),
        Step(added=tuple(everything), removed=("b.md1",)),
    ]
    return await differs(history, exact_below=20, strategies=STRATEGIES)


async def test_both_databases_hold_the_same_bytes(on_postgres: PostgresServer, tmp_path: Path) -> None:
    history = [
        Step(added=tuple((name, 0) for name in NAMES), removed=()),
        Step(added=(("a.md", 1), ("b.md", 2)), removed=("c.md",)),
    ]
    lived_there, alive = await lived(tmp_path / "there", history, 20, STRATEGIES)
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv(DATABASE_VARIABLE)
        here = await fresh_state(tmp_path / "here", list(alive.values()), exact_below=20, strategies=STRATEGIES)
        assert (tmp_path / "here" / "index.sqlite").exists()
    assert lived_there == here
    assert not (tmp_path / "there" / "index.sqlite").exists()


async def test_the_law_holds_where_sketches_are_used(few_candidates: list[int]) -> None:
    assert not await differs_with_sketches()
    assert len(few_candidates) > 20


async def test_the_law_fails_where_sketches_cut_ties_by_position(
    few_candidates: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nearest(distances: npt.NDArray[np.uint16], n: int) -> npt.NDArray[np.int64]:
        return np.sort(np.argsort(distances, kind="stable")[:n])

    monkeypatch.setattr(segments, "smallest_with_ties", nearest)
    assert await differs_with_sketches()


@pytest.mark.parametrize(
    ("fault", "history"),
    [
        ("_link_new_names", [Step(added=(("a.md", 0),), removed=()), Step(added=(("c.md", 1),), removed=())]),
        (
            "_drop_links",
            [Step(added=(("a.md", 0), ("b.md", 0)), removed=()), Step(added=(("a.md", 1),), removed=("b.md",))],
        ),
    ],
    ids=["new names in old chunks", "links of removed chunks"],
)
async def test_the_law_fails_where_links_depend_on_order(
    fault: str, history: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeded faults: forget to look for new names in old chunks, or to drop the links of removed chunks."""
    assert not await differs(history)
    monkeypatch.setattr(text_index, fault, lambda *_: None)
    with pytest.raises(AssertionError):
        assert not await differs(history)
