"""Guards: what stands around each call of a service."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from quipu.model.chat import Role
from quipu.wrap.guard import Call, GuardedEmbedder, GuardedLLM, GuardedReranker, guarded
from tests.unit.wrap.fakes import FakeEmbedder, FakeLLM, FakeReranker, request

T = TypeVar("T")


class Watch:
    """A guard that writes down what passes."""

    def __init__(self, name: str, log: list[str]) -> None:
        self._name = name
        self._log = log

    async def run(self, work: Callable[[], Awaitable[T]], call: Call) -> T:
        """Write down the call, before and after."""
        urgent = "!" if call.is_urgent else ""
        self._log.append(f"{self._name}: {call.kind}{urgent}")
        result = await work()
        self._log.append(f"{self._name}.")
        return result


async def _seven() -> int:
    return 7


async def test_the_first_guard_is_the_outermost() -> None:
    log: list[str] = []
    assert await guarded([Watch("a", log), Watch("b", log)], _seven, Call(kind="x")) == 7
    assert log == ["a: x", "b: x", "b.", "a."]


async def test_without_guards_work_is_just_done() -> None:
    assert await guarded([], _seven, Call(kind="x")) == 7


@pytest.mark.parametrize(
    ("role", "said"), [(Role.ANSWER, "answer!"), (Role.KEYWORDS, "keywords!"), (Role.EXTRACT, "extract")]
)
async def test_what_a_person_waits_for_is_urgent(role: Role, said: str) -> None:
    log: list[str] = []
    llm = GuardedLLM(FakeLLM(), [Watch("g", log)])
    assert (await llm.complete(request(role=role))).text == "Alice."
    assert log == [f"g: {said}", "g."]
    assert llm.identity == "fake/model"


async def test_embedders_and_rerankers_are_guarded_alike() -> None:
    log: list[str] = []
    embedder = GuardedEmbedder(FakeEmbedder(), [Watch("g", log)])
    reranker = GuardedReranker(FakeReranker(), [Watch("g", log)])
    assert (await embedder.embed(["ab"])).tolist() == [[2, 1]]
    assert (await embedder.embed_queries(["abc"])).tolist() == [[3, 1]]
    assert await reranker.score("?", ["a", "bc"]) == [1, 2]
    assert log[::2] == ["g: embed", "g: embed query!", "g: rerank!"]
    assert (embedder.identity, embedder.dimension, reranker.identity) == ("fake/embedder", 2, "fake/reranker")


async def test_pieces_of_text_pass_through() -> None:
    pieces: list[str] = []
    await GuardedLLM(FakeLLM(), [Watch("g", [])]).complete(request(), pieces.append)
    assert pieces == ["Alice."]
