"""The law of histories on SQLite, with histories that hypothesis makes and makes shorter."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.model.delta import Delta
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.laws import survivors, version
from quipu.testing.contract.steps import dump, summarise

_NAMES = ("a", "b", "c")
# Each step: for some documents the number of a version to publish, or 0 to remove it.
_STEPS = st.lists(st.dictionaries(st.sampled_from(_NAMES), st.integers(0, 3), min_size=1), min_size=1, max_size=6)


async def _state_after(database: Path, steps: Sequence[Delta]) -> list[str]:
    """Return the dump of a new index after these changes, which must be sound after each; summarised now and then."""
    store = RelationalStore(SqliteBackend(database, busy_timeout_s=5.0), lease_s=60.0)
    await store.prepare()
    for number, step in enumerate(steps):
        if number % 2:
            await summarise(store)
        await store.commit(step)
        assert await store.verify() == []
    await summarise(store)
    state = await dump(store)
    await store.close()
    return state


@settings(deadline=None, max_examples=20, derandomize=True)
@given(_STEPS)
def test_any_history_ends_in_the_state_of_its_survivors(history: list[dict[str, int]]) -> None:
    steps = [
        Delta(
            publish=[version(name, number) for name, number in step.items() if number],
            remove=[name for name, number in step.items() if not number],
        )
        for step in history
    ]
    with TemporaryDirectory() as folder:
        state = asyncio.run(_state_after(Path(folder) / "history.sqlite", steps))
        fresh = Delta(publish=list(survivors(steps).values()))
        assert asyncio.run(_state_after(Path(folder) / "fresh.sqlite", [fresh])) == state
