"""Every derivation of the catalog on a real index: made, kept up to date, dropped, and needed by strategies."""

from pathlib import Path

import pytest

from quipu.derive.catalog import CATALOG, resolve_needs
from quipu.errors import Stale
from quipu.model.derivation import Freshness
from quipu.retrieve import STRATEGIES
from quipu.testing.llm import ScriptedLLM
from tests.laws.model_world import script, scripted_engine, travels
from tests.laws.world import document, engine

NAMES = [each.name for each in CATALOG]
QUESTION = "Who travelled with Marco Polo to the court of Kublai Khan?"
NEEDY = [
    name for name, strategy in STRATEGIES.items() if resolve_needs([need for need in strategy.needs if need in NAMES])
]


async def test_all_are_made_kept_up_to_date_and_dropped(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add(document("a", 1), document("b", 2))
        report = await kb.refresh(NAMES)
        assert [each.name for each in report.derivations] == NAMES
        assert report.is_complete
        for change in (kb.add(document("c", 3)), kb.add(document("a", 4)), kb.remove(["b"])):
            await change
            states = {each.name: each.freshness for each in (await kb.status()).derivations}
            assert {states[name] for name in NAMES} == {Freshness.FRESH}, states
            assert await kb.plan() == ()
            assert await kb.verify() == []
        assert (await kb.refresh()).n_embedded == 0
        assert await kb.drop(NAMES) == tuple(NAMES)
        assert await kb.verify() == []
        states = {each.name: each.freshness for each in (await kb.status()).derivations}
        assert {states[name] for name in NAMES} == {Freshness.MISSING}


@pytest.mark.parametrize("name", ["reports", "hierarchy"])
async def test_a_plan_to_rebuild_tells_the_calls_that_rebuilding_makes(tmp_path: Path, name: str) -> None:
    async with scripted_engine(tmp_path, ScriptedLLM(script())) as kb:
        await kb.add(*(travels(f"{n}.md") for n in range(4)))
        await kb.refresh([name])
        planned = {each.name: each for each in await kb.plan([name], rebuild=True)}[name]
        report = {each.name: each for each in (await kb.refresh([name], rebuild=True)).derivations}[name]
        assert planned.is_rebuild
        assert 0 < report.n_calls + report.n_reused == planned.cost.n_calls
        assert planned.cost.n_texts == planned.n_items == report.n_built


@pytest.mark.parametrize("name", NEEDY)
async def test_a_strategy_that_lacks_something_says_so_or_makes_it(tmp_path: Path, name: str) -> None:
    async with engine(tmp_path) as kb:
        await kb.add(document("a", 1), document("b", 2))
        with pytest.raises(Stale, match="quipu refresh") as raised:
            await kb.query(QUESTION, strategy=name)
        assert raised.value.missing
        answer = await kb.query(QUESTION, strategy=name, auto_refresh=True)
        assert answer.trace.stale == ()
        assert answer.trace.evidence == (await kb.query(QUESTION, strategy=name)).trace.evidence


@pytest.mark.parametrize("name", list(STRATEGIES))
async def test_a_strategy_makes_no_more_calls_than_it_says(tmp_path: Path, name: str) -> None:
    async with scripted_engine(tmp_path, ScriptedLLM(script())) as kb:
        await kb.add(travels("a.md"), travels("b.md"), travels("c.md"))
        answer = await kb.query(QUESTION, strategy=name, auto_refresh=True, with_answer=False)
        assert answer.trace.n_calls <= STRATEGIES[name].n_model_calls
        again = await kb.query(QUESTION, strategy=name, with_answer=False)
        assert (again.usage, again.trace.n_calls) == ((), answer.trace.n_calls)


@pytest.mark.parametrize("name", [name for name, strategy in STRATEGIES.items() if strategy.ranks_passages])
async def test_every_passage_of_every_strategy_is_explained(tmp_path: Path, name: str) -> None:
    async with engine(tmp_path) as kb:
        await kb.add(document("a", 1), document("b", 2), document("c", 3))
        explanation = await kb.explain(QUESTION, strategy=name, auto_refresh=True)
        assert explanation.chunks
        assert [each.rank for each in explanation.chunks] == list(range(1, len(explanation.chunks) + 1))
        for chunk in explanation.chunks:
            assert chunk.reason
            assert chunk.chains or chunk.supporting_hits, (name, chunk.reason)
