"""Tests of the scripted models of this process."""

import asyncio

import numpy as np
import pytest

from quipu.errors import Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, FinishReason, Role
from quipu.ports.providers import LLM, Embedder, Reranker
from quipu.testing.llm import ScriptedEmbedder, ScriptedLLM, ScriptedReranker
from quipu.testing.scripted.script import (
    MIDWAY,
    Fault,
    FaultName,
    Latency,
    Limit,
    ReplyRules,
    RequestKind,
    Script,
    Service,
)
from tests.unit.testing.scripted.prompts import TEXT, extraction

TEXTS = ("Alice Kober taught classics", "Rain fell on the hills", "")


def ask(text: str = TEXT, *, max_output_tokens: int = 4096) -> ChatRequest:
    return ChatRequest(messages=extraction(text), role=Role.EXTRACT, max_output_tokens=max_output_tokens)


def striking(name: FaultName, *, n_pieces: int = 2) -> Script:
    return Script(faults=(Fault(name=name, attempts=(1,), n_pieces=n_pieces, retry_after_s=7),))


class Sleeper:
    """Notes how long it was asked to sleep."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


def test_the_fakes_are_what_the_ports_ask_for() -> None:
    llm: LLM = ScriptedLLM()
    embedder: Embedder = ScriptedEmbedder()
    reranker: Reranker = ScriptedReranker()
    assert (llm.identity, embedder.identity, reranker.identity) == (
        "scripted/chat",
        "scripted/words-64",
        "scripted/words",
    )


async def test_the_pieces_make_the_reply() -> None:
    llm, pieces = ScriptedLLM(), list[str]()
    completion = await llm.complete(ask(), pieces.append)
    assert "".join(pieces) == completion.text and len(pieces) > 10
    assert (completion.finish, completion.is_estimate) == (FinishReason.STOP, False)
    assert [(each.kind, each.outcome) for each in llm.answered] == [(RequestKind.EXTRACT, completion)]
    assert llm.n_completed() == llm.n_completed(RequestKind.EXTRACT) == 1


@pytest.mark.parametrize(
    ("name", "error", "retry_after_s", "may_cost"),
    [
        (FaultName.TOO_MANY_REQUESTS, Overloaded, 7, False),
        (FaultName.SERVER_ERROR, Overloaded, 7, False),
        (FaultName.SERVICE_UNAVAILABLE, Overloaded, 7, False),
        (FaultName.BAD_GATEWAY, Overloaded, 7, False),
        (FaultName.TIMEOUT, Overloaded, None, True),
        (FaultName.RESET, Overloaded, None, True),
        (FaultName.ERROR_IN_200, Overloaded, None, True),
        (FaultName.NOT_JSON, Unavailable, None, False),
        (FaultName.QUOTA, Unavailable, None, False),
        (FaultName.BAD_REQUEST, Refused, None, False),
    ],
)
async def test_errors_are_raised_as_the_port_says(
    name: FaultName, error: type[QuipuError], retry_after_s: float | None, may_cost: bool
) -> None:
    llm = ScriptedLLM(striking(name))
    with pytest.raises(error) as raised:
        await llm.complete(ask())
    assert getattr(raised.value, "retry_after_s", None) == retry_after_s
    assert getattr(raised.value, "may_cost", False) == may_cost
    assert (await llm.complete(ask())).finish is FinishReason.STOP
    assert [type(each.outcome).__name__ for each in llm.answered] == [error.__name__, "Completion"]
    assert llm.n_completed() == 1


@pytest.mark.parametrize("name", sorted(MIDWAY))
async def test_a_reply_that_breaks_off_is_returned_as_far_as_it_came(name: FaultName) -> None:
    llm, pieces = ScriptedLLM(striking(name)), list[str]()
    completion = await llm.complete(ask(), pieces.append)
    assert (completion.finish, completion.is_estimate, len(pieces)) == (FinishReason.INTERRUPTED, True, 2)
    assert completion.text == "".join(pieces) == "entity<|>Alice Kober<|>Concept<|"
    assert llm.n_completed() == 0


async def test_a_reply_that_breaks_off_before_its_text_is_an_error() -> None:
    with pytest.raises(Overloaded):
        await ScriptedLLM(striking(FaultName.RESET_MIDWAY, n_pieces=0)).complete(ask())


@pytest.mark.parametrize(
    ("name", "finish"), [(FaultName.LENGTH, FinishReason.LENGTH), (FaultName.FILTERED, FinishReason.FILTERED)]
)
async def test_half_a_reply_says_why(name: FaultName, finish: FinishReason) -> None:
    llm = ScriptedLLM(striking(name))
    half, whole = await llm.complete(ask()), await llm.complete(ask())
    assert (half.finish, half.text) == (finish, whole.text[: len(whole.text) // 2])


async def test_the_limit_on_output_cuts_the_reply() -> None:
    completion = await ScriptedLLM().complete(ask(max_output_tokens=10))
    assert (completion.finish, len(completion.text), completion.tokens.output) == (FinishReason.LENGTH, 40, 10)


async def test_unreported_usage_is_an_estimate() -> None:
    assert (await ScriptedLLM(striking(FaultName.NO_USAGE)).complete(ask())).is_estimate


async def test_a_request_beyond_the_context_window_is_too_long() -> None:
    llm = ScriptedLLM(Script(service=Service(context_window=5000)))
    assert (await llm.complete(ask(max_output_tokens=1000))).finish is FinishReason.STOP
    with pytest.raises(TooLong):
        await llm.complete(ask(max_output_tokens=5000))


async def test_a_schema_is_answered_with_json() -> None:
    request = ChatRequest(messages=extraction(), role=Role.EXTRACT, max_output_tokens=4096, schema='{"type": "object"}')
    assert (await ScriptedLLM().complete(request)).text.startswith('{"entities": [')


async def test_latency_is_slept_before_and_between_the_pieces() -> None:
    sleeper = Sleeper()
    script = Script(latency=Latency(mean_s=4, first_share=0.25, piece_s=1), service=Service(piece_chars=1000))
    await ScriptedLLM(script, sleep=sleeper).complete(ask())
    assert sleeper.slept == [1, 2.5, 2.5]


async def test_requests_beyond_the_limit_are_rejected() -> None:
    script = Script(latency=Latency(mean_s=1), limit=Limit(concurrent=2, retry_after_s=3))
    llm = ScriptedLLM(script, sleep=Sleeper())
    requests = [ask(f"Anna met Bruno{n}.") for n in "abc"]
    outcomes = await asyncio.gather(*map(llm.complete, requests), return_exceptions=True)
    assert [isinstance(outcome, Overloaded) for outcome in outcomes] == [False, False, True]
    assert llm.peak_under_way == 3


async def test_another_script_is_followed_from_then_on() -> None:
    llm = ScriptedLLM(striking(FaultName.RESET))
    llm.configure(Script(answering=ReplyRules(max_entities=1)))
    assert (await llm.complete(ask())).text.count("entity<|>") == 1


async def test_vectors_are_the_same_alone_and_in_company() -> None:
    embedder = ScriptedEmbedder(Script(service=Service(dimension=32)))
    together = await embedder.embed(TEXTS)
    assert together.shape == (3, embedder.dimension)
    assert together[0].tobytes() == (await embedder.embed_queries(TEXTS[:1]))[0].tobytes()
    assert not together[2].any()
    assert embedder.n_calls == 2


@pytest.mark.parametrize("name", [FaultName.SERVER_ERROR, FaultName.COUNT, FaultName.NAN, FaultName.RESET_MIDWAY])
async def test_broken_numbers_are_raised(name: FaultName) -> None:
    embedder, reranker = ScriptedEmbedder(striking(name)), ScriptedReranker(striking(name))
    with pytest.raises(Overloaded):
        await embedder.embed(TEXTS)
    with pytest.raises(Overloaded):
        await reranker.score("classics", TEXTS)
    assert (await embedder.embed(TEXTS)).shape == (3, 64)
    assert await reranker.score("classics", TEXTS) == [1, 0, 0]


async def test_numbers_in_another_order_are_put_right() -> None:
    shuffled = await ScriptedEmbedder(striking(FaultName.SHUFFLED)).embed(TEXTS)
    np.testing.assert_array_equal(shuffled, await ScriptedEmbedder().embed(TEXTS))
    assert await ScriptedReranker(striking(FaultName.SHUFFLED)).score("classics", TEXTS) == [1, 0, 0]
