"""Law 5: killed anywhere while a model works, nothing that is kept is paid for again, and finishing ends the same."""

import asyncio
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from sqlite3 import connect

import pytest

from quipu.model.chat import ChatRequest, Completion
from quipu.model.usage import Stage
from quipu.ports.providers import TextSink, ignore_text
from quipu.providers.openai.chat import OpenAIChat
from quipu.stores.relational import replies
from quipu.stores.relational.store import RelationalStore
from quipu.testing.scripted.model import ChatCall, ScriptedModel
from quipu.testing.scripted.script import Latency, RequestKind
from quipu.testing.server.process import ServerHandle
from tests.laws.model_child import BATCH_TOKENS, DOCUMENTS, READING, SURVIVED
from tests.laws.model_counts import completed
from tests.laws.model_world import dump_of, model_engine, model_settings, script
from tests.laws.mortal import Mortal, mortal_of

N_KILLS = 30
EARLY = 0.1  # share of the points of a run
ONE_KEPT = "kept-extract:1"  # then a chunk is half read: what was missed in it is still to be asked for
IN_EACH_STAGE = {READING: "1", "extract": "begun-extract:1", "summarise": "begun-summarise:1", "embed": "begun-embed:1"}
AT_RISK = 8  # completed calls whose replies may wait for a commit: twice as many as a custom server is asked at once
SCRIPT = script(latency=Latency(mean_s=0.002, sigma=0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Undisturbed:
    """What a run that nobody kills comes to: its state, its points, and the server's key of each kept reply by ours."""

    state: list[str]
    n_points: int
    key_by_hash: Mapping[str, str]


@pytest.fixture(scope="module")
def mortal() -> Iterator[Mortal]:
    """One that adds the documents."""
    with mortal_of("tests.laws.model_child") as ready:
        yield ready


@pytest.fixture(scope="module")
def undisturbed(server: ServerHandle, mortal: Mortal, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    server.configure(SCRIPT)
    with pytest.MonkeyPatch.context() as patch:
        key_by_hash = note_requests(patch)
        state, _ = asyncio.run(finished(folder / "here", server))
    life = mortal.live(folder / "there", server.base_url, 0)
    assert life.code == 0
    assert set(kept_replies(folder / "there")) == set(kept_replies(folder / "here"))
    return Undisturbed(state=state, n_points=life.n_points, key_by_hash=key_by_hash)


def note_requests(patch: pytest.MonkeyPatch) -> dict[str, str]:
    """Note for each request to a model the key under which the server knows it, by the one of its kept reply."""
    key_by_hash: dict[str, str] = {}
    model, complete = ScriptedModel(SCRIPT), OpenAIChat.complete

    async def noted(chat: OpenAIChat, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        call = ChatCall(model="scripted", messages=request.messages, max_tokens=request.max_output_tokens)
        key_by_hash[request.hash(chat.identity)] = model.complete(call).draw.key
        return await complete(chat, request, on_text)

    patch.setattr(OpenAIChat, "complete", noted)
    return key_by_hash


async def finished(folder: Path, server: ServerHandle) -> tuple[list[str], int]:
    """Add the documents, or finish what was begun; return the state, and how many calls of the chat model it counts."""
    async with model_engine(model_settings(folder, server.base_url), batch_tokens=BATCH_TOKENS) as kb:
        assert await kb.verify() == []
        await kb.add(*DOCUMENTS)
        n_calls = sum(row.n_calls for row in await kb.usage() if row.stage is not Stage.EMBED)
        return await dump_of(kb), n_calls


def kept_replies(folder: Path) -> list[str]:
    """Return the keys of the replies that are committed: of extractions, and of single calls."""
    if not (folder / "index.sqlite").exists():
        return []
    with closing(connect(folder / "index.sqlite")) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'reply'").fetchone():
            return []
        return [row[0] for row in database.execute("SELECT input_hash FROM reply")]


async def kill_and_finish(
    folder: Path, server: ServerHandle, mortal: Mortal, point: int | str, whole: Undisturbed
) -> str:
    """Kill a run at a point, finish it, and assert the law on what the server saw; return the stage of the kill."""
    server.reset()
    life = mortal.live(folder, server.base_url, point)
    assert life.code == (0 if life.stage == SURVIVED else -signal.SIGKILL)
    before = (await asyncio.to_thread(server.settled)).requests
    kept = {whole.key_by_hash[each] for each in kept_replies(folder) if each in whole.key_by_hash}
    assert kept <= {each.key for each in completed(before)}
    state, n_counted = await finished(folder, server)
    assert state == whole.state
    served = (await asyncio.to_thread(server.settled)).requests
    after = served[len(before) :]
    assert not kept & {each.key for each in after}, "a reply that was kept was asked for again"
    n_completed = sum(each.kind is not RequestKind.EMBED for each in completed(served))
    assert 0 <= n_completed - n_counted <= AT_RISK, "calls were lost, or counted twice"
    return life.stage


def points(n: int, n_points: int, seed: str) -> list[int]:
    """Return points all over a run, one at random in each of `n` stretches of it."""
    random = Random(seed)
    return [1 + i * n_points // n + random.randrange(n_points // n) for i in range(n)]


async def test_killed_at_any_point_the_work_can_be_finished_and_nothing_kept_is_paid_again(
    server: ServerHandle, mortal: Mortal, undisturbed: Undisturbed, laws_scale: int, tmp_path: Path
) -> None:
    stages: Counter[str] = Counter()
    for stage, first in IN_EACH_STAGE.items():
        assert await kill_and_finish(tmp_path / stage, server, mortal, first, undisturbed) == stage
    wanted = N_KILLS * laws_scale
    everywhere = points(wanted + 2, undisturbed.n_points, "kills")
    # A run has fewer points than another where more was written at once: others stand in for kills that came too late.
    spare = points(wanted, undisturbed.n_points // 2, "spare")
    for number, point in enumerate((*everywhere, *spare)):
        if number >= len(everywhere) and stages.total() - stages[SURVIVED] >= wanted:
            break
        folder = tmp_path / f"kill {number}"
        stages[await kill_and_finish(folder, server, mortal, point, undisturbed)] += 1
        shutil.rmtree(folder)
    assert stages.total() - stages[SURVIVED] >= wanted


async def test_the_law_fails_where_kept_replies_are_not_looked_for(
    server: ServerHandle,
    mortal: Mortal,
    undisturbed: Undisturbed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await kill_and_finish(tmp_path / "sound", server, mortal, ONE_KEPT, undisturbed)

    async def find(_store: RelationalStore, _input_hashes: Sequence[str]) -> dict[str, str]:
        return {}

    monkeypatch.setattr(RelationalStore, "find_replies", find)
    with pytest.raises(AssertionError, match="asked for again"):
        await kill_and_finish(tmp_path / "broken", server, mortal, ONE_KEPT, undisturbed)


async def test_the_law_fails_where_costs_are_not_kept_with_their_replies(
    server: ServerHandle,
    mortal: Mortal,
    undisturbed: Undisturbed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replies, "add_usage", lambda *_: None)
    with pytest.raises(AssertionError, match="calls were lost"):
        await kill_and_finish(tmp_path / "broken", server, mortal, round(EARLY * undisturbed.n_points), undisturbed)
