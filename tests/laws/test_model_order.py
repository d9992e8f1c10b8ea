"""Laws 1 and 3 with a model: any history, any order of replies and two processes end in the same bytes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from quipu.engine import Quipu
from quipu.model.document import SourceDocument
from quipu.model.query import Query
from quipu.stores.relational import summaries
from quipu.testing.llm import ScriptedLLM
from quipu.testing.scripted.script import Latency
from quipu.testing.server.process import ServerHandle
from tests.laws.model_child import BATCH_TOKENS, DOCUMENTS
from tests.laws.model_world import dump_of, fresh_dump, model_engine, model_settings, script, scripted_engine, travels
from tests.laws.mortal import mortal_of

NAMES = tuple(f"{letter}.md" for letter in "abcdefghij")
SUMMARY = '"kind":"summary"'

Step = tuple[Sequence[SourceDocument], Sequence[str]]


def history(seed: int) -> list[Step]:
    """Return steps of documents to add together and ids to remove; at the end there is much to sum up."""
    random = Random(f"history {seed}")
    steps: list[Step] = []
    for _ in range(random.randint(2, 4)):
        chosen = random.sample(NAMES, random.randint(3, 8))
        added = [travels(name, random.randint(0, 2), n_sentences=1) for name in chosen]
        steps.append((added, random.sample(NAMES, random.randint(0, 3))))
    missing = [travels(name, n_sentences=1) for name in random.sample(NAMES, 8)]
    return [*steps, (missing, random.sample([each.id for each in missing], 1))]


async def state(kb: Quipu) -> tuple[list[str], object]:
    """Return the dump, and what one question finds with its scores."""
    found = await kb.retrieve(Query(text="Who spoke of Kublai Khan at the court?", strategy="mix"))
    return await dump_of(kb), (found.chunks, found.entities, found.relations)


async def lived(folder: Path, steps: Sequence[Step]) -> tuple[object, list[SourceDocument]]:
    """Live through a history; return the state at its end and the documents that are left."""
    alive: dict[str, SourceDocument] = {}
    async with scripted_engine(folder, ScriptedLLM(script())) as kb:
        for added, removed in steps:
            await kb.add(*added)
            alive |= {source.id: source for source in added}
            gone = [name for name in removed if name in alive]
            await kb.remove(gone)
            for name in gone:
                del alive[name]
        return (await kb.verify(), await state(kb)), list(alive.values())


async def fresh_state(folder: Path, documents: Sequence[SourceDocument], latency: Latency, n: int = 4) -> object:
    """Return the state of a new index; `latency` decides in what order replies come, `n` how many are waited for."""
    async with scripted_engine(folder, ScriptedLLM(script(latency=latency)), concurrency=n) as kb:
        await kb.add(*documents)
        return await state(kb)


async def differs(folder: Path, seed: int) -> bool:
    """Say whether an index that lived through a history differs from a fresh one of its survivors."""
    ended, survivors = await lived(folder / f"lived {seed}", history(seed))
    other_order = sorted(survivors, key=lambda source: source.id[::-1], reverse=True)
    return ended != ([], await fresh_state(folder / f"fresh {seed}", other_order, Latency()))


async def test_any_history_ends_in_the_state_of_a_fresh_build_of_its_survivors(laws_scale: int, tmp_path: Path) -> None:
    for seed in range(3 * laws_scale):
        assert not await differs(tmp_path, seed), seed


async def test_the_law_fails_where_summaries_outlive_what_they_sum_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "with_changed_descriptions", lambda *_: set())
    assert await differs(tmp_path, 0)


async def test_replies_may_come_in_any_order(laws_scale: int, tmp_path: Path) -> None:
    at_once = await fresh_state(tmp_path / "at once", DOCUMENTS, Latency())
    for number in range(2 * laws_scale):
        late = Latency(mean_s=0.004, sigma=1.0 + number)
        assert await fresh_state(tmp_path / str(number), DOCUMENTS, late, 1 + 7 * (number % 2)) == at_once


async def test_two_processes_that_add_the_same_end_in_the_state_of_one(server: ServerHandle, tmp_path: Path) -> None:
    await asyncio.to_thread(server.configure, script(latency=Latency(mean_s=0.003, sigma=1.0)))
    job = (tmp_path / "kb", server.base_url)
    codes = await asyncio.gather(*(asyncio.to_thread(add_elsewhere, *job, hash_seed=each) for each in ("1", "7")))
    assert codes == [0, 0]
    settings = model_settings(tmp_path / "alone", server.base_url)
    alone = await fresh_dump(settings, *DOCUMENTS, batch_tokens=BATCH_TOKENS)
    async with model_engine(model_settings(tmp_path / "kb", server.base_url), batch_tokens=BATCH_TOKENS) as kb:
        await kb.refresh()
        assert await kb.verify() == []
        assert await dump_of(kb) == alone
        assert any(SUMMARY in line for line in alone)


def add_elsewhere(folder: Path, base_url: str, *, hash_seed: str) -> int:
    """Add the documents in a process of its own, where sets have another order; return its exit code."""
    with mortal_of("tests.laws.model_child", environment={"PYTHONHASHSEED": hash_seed}) as mortal:
        return mortal.live(folder, base_url, 0).code
