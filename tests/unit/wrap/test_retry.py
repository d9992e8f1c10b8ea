"""Retry: what a service could not answer just now is asked again."""

from collections.abc import Callable

import pytest

from quipu.errors import Overloaded, Refused, TooLong, Unavailable
from quipu.wrap.guard import Retry, RetryPolicy, ServiceCall

CALL = ServiceCall(kind="extract")


class Naps:
    """Sleeps that take no time, written down."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def _retry(naps: Naps, *, jitter: Callable[[], float] = lambda: 1.0, **policy: float) -> Retry:
    return Retry("fake/model", RetryPolicy(**policy), sleep=naps, jitter=jitter)  # type: ignore[arg-type]


class Service:
    """Raises its faults, one a call, the last for ever if it `is_dead`; then answers."""

    def __init__(self, *faults: Exception, is_dead: bool = False) -> None:
        self._faults = faults
        self.is_dead = is_dead
        self.n_calls = 0

    async def __call__(self) -> str:
        self.n_calls += 1
        if self.is_dead:
            raise self._faults[0]
        if self.n_calls <= len(self._faults):
            raise self._faults[self.n_calls - 1]
        return "yes"


async def test_a_call_is_tried_again_until_it_is_answered() -> None:
    naps, service = Naps(), Service(Overloaded("503"), Overloaded("503"))
    assert await _retry(naps).run(service, CALL) == "yes"
    assert service.n_calls == 3


async def test_every_wait_and_the_end_of_trying_are_logged_without_the_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = Service(Overloaded("503 secret"), is_dead=True)
    with pytest.raises(Overloaded):
        await _retry(Naps(), max_attempts=2).run(service, CALL)
    assert [record.getMessage() for record in caplog.records] == [
        "fake/model did not answer, attempt 1: asked again in 1.0 s",
        "fake/model did not answer a call (extract): gave up after attempt 2",
    ]


async def test_waits_double_up_to_a_cap() -> None:
    naps, service = Naps(), Service(*[Overloaded("503")] * 7)
    await _retry(naps, patience_s=1e9).run(service, CALL)
    assert naps.taken == [1, 2, 4, 8, 16, 30, 30]


async def test_waits_are_random_below_their_bound() -> None:
    fractions = iter([0.0, 0.25, 0.5])
    naps, service = Naps(), Service(*[Overloaded("503")] * 3)
    await _retry(naps, jitter=lambda: next(fractions)).run(service, CALL)
    assert naps.taken == [0.0, 0.5, 2.0]


@pytest.mark.parametrize("asked", [0.5, 7.0, 60.0])
async def test_no_call_comes_back_before_it_was_asked_to(asked: float) -> None:
    naps, service = Naps(), Service(Overloaded("429", retry_after_s=asked))
    await _retry(naps, jitter=lambda: 0.1).run(service, CALL)
    assert naps.taken == [asked + 0.1]


async def test_who_asks_for_too_long_a_wait_is_not_waited_for() -> None:
    naps, service = Naps(), Service(Overloaded("Too many requests.", remedy="Wait.", retry_after_s=3600.0))
    with pytest.raises(Overloaded, match=r"asks for a pause of 3,600 s; Quipu waits at most 120 s\. Wait\.") as raised:
        await _retry(naps).run(service, CALL)
    assert (naps.taken, service.n_calls, raised.value.retry_after_s) == ([], 1, 3600.0)


@pytest.mark.parametrize("asked", [-5.0, 0.0])
async def test_a_wait_that_is_over_is_none(asked: float) -> None:
    naps, service = Naps(), Service(Overloaded("429", retry_after_s=asked))
    await _retry(naps, jitter=lambda: 0.0).run(service, CALL)
    assert naps.taken == [0.0]


async def test_attempts_end() -> None:
    naps, service = Naps(), Service(Overloaded("503 from the server."), is_dead=True)
    with pytest.raises(Overloaded, match=r"^503 from the server\. Gave up after 3 attempts and 3 s of waiting\.$"):
        await _retry(naps, max_attempts=3).run(service, CALL)
    assert service.n_calls == 3


async def test_patience_ends() -> None:
    naps, service = Naps(), Service(Overloaded("503", retry_after_s=40.0), is_dead=True)
    with pytest.raises(Overloaded, match="Gave up after 3 attempts"):
        await _retry(naps).run(service, CALL)
    assert sum(naps.taken) <= 120


async def test_attempts_that_may_have_to_be_paid_for_end_sooner() -> None:
    service = Service(Overloaded("No reply in time.", may_cost=True), is_dead=True)
    with pytest.raises(Overloaded) as raised:
        await _retry(Naps()).run(service, CALL)
    assert service.n_calls == 4
    assert raised.value.may_cost


@pytest.mark.parametrize("error", [Refused("no"), TooLong("no"), Unavailable("no"), ValueError("no")])
async def test_what_will_not_change_is_not_tried_again(error: Exception) -> None:
    service = Service(error)
    with pytest.raises(type(error), match="no"):
        await _retry(Naps()).run(service, CALL)
    assert service.n_calls == 1


async def test_a_dead_service_stops_the_run() -> None:
    retry, service = _retry(Naps(), max_attempts=4), Service(Overloaded("No reply.", remedy="Start it."), is_dead=True)
    for _ in range(4):
        with pytest.raises(Overloaded):
            await retry.run(service, CALL)
    with pytest.raises(
        Unavailable,
        match=r"^fake/model has not answered 5 calls in a row\. The last error: No reply\. Start it\. .*resume",
    ):
        await retry.run(service, CALL)
    assert retry.is_down


async def test_a_dead_service_gets_one_attempt_and_comes_back_by_answering() -> None:
    retry, service = _retry(Naps(), max_failures=1, max_attempts=2), Service(Overloaded("no"), is_dead=True)
    with pytest.raises(Unavailable):
        await retry.run(service, CALL)
    assert service.n_calls == 2
    with pytest.raises(Unavailable):
        await retry.run(service, CALL)
    assert service.n_calls == 3
    service.is_dead = False
    assert await retry.run(service, CALL) == "yes"
    assert not retry.is_down


@pytest.mark.parametrize("answer", [None, Refused("no"), TooLong("no")])
async def test_any_answer_between_shows_that_a_service_lives(answer: Exception | None) -> None:
    retry = _retry(Naps(), max_attempts=1, max_failures=2)
    for _ in range(3):
        with pytest.raises(Overloaded):
            await retry.run(Service(Overloaded("no"), is_dead=True), CALL)
        if answer is None:
            await retry.run(Service(), CALL)
        else:
            with pytest.raises(type(answer)):
                await retry.run(Service(answer), CALL)
    assert not retry.is_down


URGENT = ServiceCall(kind="answer", is_urgent=True)


async def test_somebody_who_waits_is_told_soon() -> None:
    naps, service = Naps(), Service(Overloaded("503"), is_dead=True)
    with pytest.raises(Overloaded, match="Gave up after 4 attempts and 7 s of waiting"):
        await _retry(naps).run(service, URGENT)
    assert naps.taken == [1, 2, 4]


async def test_right_after_a_call_was_given_up_an_urgent_one_is_tried_once() -> None:
    naps, service = Naps(), Service(Overloaded("503"), is_dead=True)
    retry = _retry(naps)
    with pytest.raises(Overloaded):
        await retry.run(service, URGENT)
    waited, asked = len(naps.taken), service.n_calls
    with pytest.raises(Overloaded, match="Gave up after 1 attempt"):
        await retry.run(service, URGENT)
    assert (len(naps.taken), service.n_calls) == (waited, asked + 1)
    service.is_dead = False
    assert await retry.run(service, URGENT) == "yes"


async def test_no_longer_retry_after_is_waited_for_than_somebody_waits() -> None:
    naps, service = Naps(), Service(Overloaded("429", retry_after_s=40.0))
    with pytest.raises(Overloaded, match="asks for a pause of 40 s; Quipu waits at most 10 s"):
        await _retry(naps).run(service, URGENT)
    assert naps.taken == []


async def test_impatient_calls_do_not_make_a_service_dead_for_those_that_wait() -> None:
    naps, service = Naps(), Service(Overloaded("503"), is_dead=True)
    retry = _retry(naps)
    for _ in range(10):
        with pytest.raises((Overloaded, Unavailable)):
            await retry.run(service, URGENT)
    assert not retry.is_down
    assert await retry.run(Service(*[Overloaded("503")] * 4), CALL) == "yes"
