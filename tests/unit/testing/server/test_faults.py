"""Tests of faults as a client sees them."""

import asyncio

import aiohttp
import pytest

from quipu.testing.scripted.script import Fault, FaultName, Latency, Limit, Script, fault_mix
from quipu.testing.server import ServerHandle
from quipu.testing.server.request_log import LoggedRequest
from tests.unit.testing.scripted.prompts import extraction
from tests.unit.testing.server.client import Client


def strike(server: ServerHandle, name: FaultName, *, n_pieces: int = 3, retry_after_s: float | None = None) -> None:
    fault = Fault(name=name, attempts=(1,), n_pieces=n_pieces, retry_after_s=retry_after_s)
    server.configure(Script(faults=(fault,)))


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        (FaultName.BAD_REQUEST, 400, "content_policy_violation"),
        (FaultName.TOO_MANY_REQUESTS, 429, "rate_limit_exceeded"),
        (FaultName.QUOTA, 429, "insufficient_quota"),
        (FaultName.SERVER_ERROR, 500, "server_error"),
        (FaultName.SERVICE_UNAVAILABLE, 503, "overloaded"),
        (FaultName.ERROR_IN_200, 200, "server_error"),
    ],
)
async def test_errors_come_in_the_shape_of_openai_and_pass(
    server: ServerHandle, client: Client, name: FaultName, status: int, code: str, is_streamed: bool
) -> None:
    strike(server, name)
    response = await client.chat(stream=is_streamed)
    assert (response.status, response.error) == (status, code)
    assert (await client.chat(stream=is_streamed)).text.endswith("<|done|>")
    first, second = server.stats().requests
    assert (first.fault, first.is_completed, first.attempt) == (name, False, 1)
    assert (second.fault, second.is_completed, second.attempt) == ("", True, 2)


@pytest.mark.parametrize(("name", "status"), [(FaultName.BAD_GATEWAY, 502), (FaultName.NOT_JSON, 200)])
async def test_a_gateway_answers_with_a_page(
    server: ServerHandle, client: Client, name: FaultName, status: int
) -> None:
    strike(server, name)
    response = await client.chat()
    assert (response.status, response.headers["Content-Type"]) == (status, "text/html")


async def test_retry_after_is_sent_only_if_given(server: ServerHandle, client: Client) -> None:
    strike(server, FaultName.TOO_MANY_REQUESTS, retry_after_s=1.5)
    assert (await client.chat()).headers["Retry-After"] == "1.5"
    strike(server, FaultName.TOO_MANY_REQUESTS)
    assert "Retry-After" not in (await client.chat()).headers


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("name", [FaultName.TIMEOUT, FaultName.STALL])
async def test_a_reply_that_never_comes_ends_with_the_clients_patience(
    server: ServerHandle, client: Client, name: FaultName, is_streamed: bool
) -> None:
    strike(server, name)
    with pytest.raises(TimeoutError):
        await client.chat(stream=is_streamed, patience_s=0.05)
    stats = await asyncio.to_thread(server.settled)
    assert [served.is_completed for served in stats.requests] == [False]


async def test_a_reset_comes_before_the_headers(server: ServerHandle, client: Client) -> None:
    strike(server, FaultName.RESET)
    with pytest.raises(aiohttp.ClientOSError):
        await client.chat()


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("name", [FaultName.RESET_MIDWAY, FaultName.CUT_BODY])
async def test_a_reply_breaks_off_in_its_middle(
    server: ServerHandle, client: Client, name: FaultName, is_streamed: bool
) -> None:
    strike(server, name)
    with pytest.raises(aiohttp.ClientPayloadError):
        await client.chat(stream=is_streamed)
    (served,) = server.stats().requests
    assert (served.status, served.is_completed) == (200, False)


@pytest.mark.parametrize(("name", "n_errors"), [(FaultName.UNFINISHED, 0), (FaultName.ERROR_MIDWAY, 1)])
async def test_a_stream_may_end_early_in_good_order(
    server: ServerHandle, client: Client, name: FaultName, n_errors: int
) -> None:
    strike(server, name, n_pieces=2)
    events = (await client.chat(stream=True)).events()
    said = [event["choices"][0] for event in events if "choices" in event]
    assert [choice["delta"]["content"] for choice in said] == ["", "entity<|>Alice K", "ober<|>Concept<|"]
    assert {choice["finish_reason"] for choice in said} == {None}
    assert len([event for event in events if "error" in event]) == n_errors


@pytest.mark.parametrize(("name", "reason"), [(FaultName.LENGTH, "length"), (FaultName.FILTERED, "content_filter")])
async def test_half_a_reply_says_why(server: ServerHandle, client: Client, name: FaultName, reason: str) -> None:
    strike(server, name)
    half, whole = await client.chat(), await client.chat()
    assert half.text == whole.text[: len(whole.text) // 2]
    assert half.json()["choices"][0]["finish_reason"] == reason
    assert half.json()["usage"]["completion_tokens"] < whole.json()["usage"]["completion_tokens"]
    assert [served.is_completed for served in server.stats().requests] == [True, True]


async def test_a_reply_may_not_say_what_it_cost(server: ServerHandle, client: Client) -> None:
    strike(server, FaultName.NO_USAGE)
    assert "usage" not in (await client.chat()).json()
    assert server.stats().requests[0].tokens.output > 0


async def test_requests_beyond_the_limit_are_rejected_and_their_attempts_not_counted(
    server: ServerHandle, client: Client
) -> None:
    server.configure(Script(latency=Latency(mean_s=0.05), limit=Limit(concurrent=2, retry_after_s=0.5)))
    responses = await asyncio.gather(*(client.chat(extraction(f"Anna{n}.")) for n in range(5)))
    rejected = [response for response in responses if response.status == 429]
    assert len(rejected) == 3
    assert {response.headers["Retry-After"] for response in rejected} == {"0.5"}
    await asyncio.gather(*(client.chat(extraction(f"Anna{n}.")) for n in range(2)))
    stats = server.stats()
    assert stats.total().n_completed == 4
    assert {served.key for served in stats.requests if served.status == 429} == {""}


async def test_an_overloaded_server_may_grow_slow(server: ServerHandle, client: Client) -> None:
    server.configure(Script(latency=Latency(mean_s=0.05), limit=Limit(concurrent=1, beyond="slow")))
    await asyncio.gather(*(client.chat(extraction(f"Anna{n}.")) for n in range(4)))
    latencies = {served.n_under_way: served.latency_s for served in server.stats().requests}
    assert latencies == {n: pytest.approx(0.05 * n) for n in latencies}
    assert max(latencies) > 1


async def test_concurrent_runs_repeat(server: ServerHandle, client: Client) -> None:
    """Twenty requests, each made until it succeeds, at a time or in turn: the same faults for the same requests."""
    names = (FaultName.SERVER_ERROR, FaultName.RESET, FaultName.RESET_MIDWAY, FaultName.LENGTH, FaultName.SWAPPED)
    server.configure(Script(faults=fault_mix(*names, probability=0.4)))
    await asyncio.gather(*(until_it_succeeds(client, n) for n in range(20)))
    together = by_request(server)
    server.reset()
    for n in reversed(range(20)):
        await until_it_succeeds(client, n)
    assert by_request(server) == together
    assert len({fault for _, _, fault, _ in together}) > 3


async def until_it_succeeds(client: Client, n: int) -> None:
    while True:
        try:
            if (await client.chat(extraction(f"Anna met Bruno in Cadiz, {n}."))).status == 200:
                return
        except aiohttp.ClientError:
            continue


def by_request(server: ServerHandle) -> list[tuple[str, int, str, bool]]:
    def row(served: LoggedRequest) -> tuple[str, int, str, bool]:
        return served.key, served.attempt, served.fault, served.is_completed

    return sorted(row(served) for served in server.stats().requests)
