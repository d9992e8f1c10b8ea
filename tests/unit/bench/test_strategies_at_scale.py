"""Measuring every strategy, on a made-up index of two hundred entities."""

from pathlib import Path

from benchmarks.strategies_at_scale import fill, measure, open_index
from quipu.retrieve import STRATEGIES

N = 200


async def test_every_strategy_is_measured_on_the_whole_index_on_a_tenth_and_after_a_commit(tmp_path: Path) -> None:
    async with open_index(tmp_path) as (kb, parts):
        await fill(kb, parts.store, N)
        assert await kb.verify() == []
        before = [line async for line in kb.dump()]
        figures = [figure async for figure in measure(kb, parts, N, list(STRATEGIES))]
        assert [line async for line in kb.dump()] == before
    assert [(each.strategy, each.allowed) for each in figures] == [
        (name, allowed) for allowed in ("all", "a tenth", "changed") for name in STRATEGIES
    ]
    assert all(each.ms > 0 and each.first_ms > 0 for each in figures)
    found = {each.strategy for each in figures if each.n_chunks}
    assert found == {name for name in STRATEGIES if name not in ("bypass", "community_global")}
