"""Chain: all wrappers together, under each kind of fault and mixed. All times are virtual."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest

from quipu.errors import Mismatch, OverBudget, Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.model.usage import SpendingLimit, UsageRow, total
from quipu.ports.providers import TextSink, ignore_text
from quipu.wrap.chain import EmbedderChain, FallbackLLM, LLMChain, ModelLink, RerankerChain, outage_breakers
from quipu.wrap.concurrency import AdaptiveLimit, ConcurrencyLimiter
from quipu.wrap.guard import Guard, Retry, RetryPolicy
from quipu.wrap.meter import Meter, SpendingBudget
from tests.unit.wrap.fakes import PRICING, FakeLLM, Shelf, completion, request
from tests.unit.wrap.virtual_time import now, run

FAULTS: Mapping[str, Callable[[], QuipuError]] = {
    "429": lambda: Overloaded("429"),
    "429 with Retry-After": lambda: Overloaded("429", retry_after_s=3.0),
    "5xx": lambda: Overloaded("503"),
    "timeout": lambda: Overloaded("late", may_cost=True),
    "reset": lambda: Overloaded("reset", may_cost=True),
    "refused": lambda: Refused("filter"),
    "too long": lambda: TooLong("context"),
}
TRANSIENT = [name for name in FAULTS if name not in ("refused", "too long")]
N = 60


@dataclass
class Server:
    """An LLM, an embedder and a reranker that fail with some probability and count what they really did."""

    fault: Callable[[random.Random], QuipuError | None]
    seed: int = 0
    identity: str = "fake/model"
    dimension: int = 2
    n_completed: int = 0
    n_maybe: int = 0
    answered: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        await self._work(request)
        return completion()

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        await self._work(tuple(texts))
        return np.ones((len(texts), 2), np.float32)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return await self.embed(texts)

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        await self._work((question, *texts))
        return [1.0 for _ in texts]

    async def _work(self, asked: object) -> None:
        await asyncio.sleep(self._rng.lognormvariate(0.0, 0.5))
        if (error := self.fault(self._rng)) is not None:
            self.n_maybe += isinstance(error, Overloaded) and error.may_cost
            raise error
        self.n_completed += 1
        self.answered.append(asked)


def _sometimes(names: Sequence[str], share: float) -> Callable[[random.Random], QuipuError | None]:
    return lambda rng: FAULTS[rng.choice(names)]() if rng.random() < share else None


def _guards(seed: int = 0) -> Sequence[Guard]:
    policy = RetryPolicy(max_attempts=40, max_paid=40, patience_s=1e6, urgent_patience_s=1e6)
    return [
        Retry("fake/model", policy, jitter=random.Random(seed).random),
        ConcurrencyLimiter(AdaptiveLimit(16), clock=now),
    ]


def _chain(server: Server, shelf: Shelf, guards: Sequence[Guard] | None = None) -> LLMChain:
    return LLMChain([ModelLink(llm=server, pricing=PRICING, guards=_guards() if guards is None else guards)], shelf)


async def _ask(kind: str, server: Server, shelf: Shelf, meter: Meter) -> list[BaseException]:
    """Ask N times at once for different things; return what was raised."""
    guards = _guards()
    llm = _chain(server, shelf, guards).llm(meter)
    embedder = EmbedderChain(provider=server, pricing=PRICING, save_usage=shelf.record_call, guards=guards).embedder(
        meter
    )
    reranker = RerankerChain(provider=server, pricing=PRICING, save_usage=shelf.record_call, guards=guards).reranker(
        meter
    )
    calls: Mapping[str, Callable[[int], Coroutine[None, None, object]]] = {
        "llm": lambda n: llm.complete(request(str(n))),
        "embedder": lambda n: embedder.embed([str(n)]),
        "query embedder": lambda n: embedder.embed_queries([str(n)]),
        "reranker": lambda n: reranker.score("?", [str(n)]),
    }
    outcomes = await asyncio.gather(*(calls[kind](n) for n in range(N)), return_exceptions=True)
    return [each for each in outcomes if isinstance(each, BaseException)]


def _check_counts(server: Server, shelf: Shelf, meter: Meter) -> None:
    """The meter and the shelf agree with the server, and nothing was answered twice."""
    kept, metered = total(shelf.spent), total(meter.rows())
    assert (kept.n_calls, kept.n_interrupted) == (metered.n_calls, metered.n_interrupted)
    assert (metered.n_calls, metered.n_interrupted) == (server.n_completed, server.n_maybe)
    assert len(server.answered) == len(set(server.answered))


KINDS = ["llm", "embedder", "query embedder", "reranker"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", TRANSIENT)
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_faults_that_pass_are_not_seen(kind: str, fault: str, share: float) -> None:
    server, shelf, meter = Server(_sometimes([fault], share)), Shelf(), Meter()
    assert run(_ask(kind, server, shelf, meter)) == []
    assert server.n_completed == N
    _check_counts(server, shelf, meter)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["refused", "too long"])
def test_faults_of_one_request_fail_it_alone(kind: str, fault: str) -> None:
    server, shelf, meter = Server(_sometimes([fault], 0.2)), Shelf(), Meter()
    errors = run(_ask(kind, server, shelf, meter))
    assert {type(error) for error in errors} == {type(FAULTS[fault]())}
    assert server.n_completed == N - len(errors) > N / 2
    _check_counts(server, shelf, meter)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_all_faults_at_once(kind: str, seed: int) -> None:
    server, shelf, meter = Server(_sometimes(list(FAULTS), 0.2), seed), Shelf(), Meter()
    errors = run(_ask(kind, server, shelf, meter))
    assert {type(error) for error in errors} <= {Refused, TooLong}
    assert server.n_completed == N - len(errors)
    _check_counts(server, shelf, meter)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_service_stops_the_run(kind: str) -> None:
    server, shelf, meter = Server(_sometimes(["5xx"], 1.0)), Shelf(), Meter()
    errors = run(_ask(kind, server, shelf, meter))
    assert len(errors) == N
    assert sum(isinstance(error, Overloaded) for error in errors) == 4
    assert sum(isinstance(error, Unavailable) for error in errors) == N - 4
    assert (shelf.spent, meter.rows()) == ([], ())


@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_stops_in_time_with_everything_kept(kind: str) -> None:
    server, shelf = Server(_sometimes(TRANSIENT, 0.2)), Shelf()
    budget = SpendingBudget(SpendingLimit(calls=20))
    errors = run(_ask(kind, server, shelf, Meter(budget=budget)))
    assert {type(error) for error in errors} == {OverBudget}
    assert server.n_completed == N - len(errors)
    assert server.n_completed + server.n_maybe == 20
    assert total(shelf.spent).n_calls == server.n_completed


def test_a_second_run_asks_only_for_what_is_missing() -> None:
    shelf = Shelf()
    first, second = Server(_sometimes(["refused"], 0.5)), Server(_sometimes([], 0.0))
    errors = run(_ask("llm", first, shelf, Meter()))
    assert run(_ask("llm", second, shelf, Meter())) == []
    assert second.n_completed == len(errors) > 0


def test_questions_at_once_are_counted_apart() -> None:
    async def scenario() -> None:
        server, shelf, engine = Server(_sometimes([], 0.0)), Shelf(), Meter()
        chain, embedders = (
            _chain(server, shelf),
            EmbedderChain(provider=server, pricing=PRICING, save_usage=shelf.record_call),
        )

        async def ask(question: str, n_calls: int) -> tuple[UsageRow, ...]:
            meter = engine.child(question)
            llm, embedder = chain.llm(meter), embedders.embedder(meter)
            await embedder.embed_queries([question])
            for n in range(n_calls):
                await llm.complete(request(f"{question} {n}"))
            return meter.rows()

        rows = await asyncio.gather(ask("Who?", 1), ask("Where?", 3), ask("Where?", 0))
        assert [[(row.subject, row.stage, row.n_calls) for row in each] for each in rows] == [
            [("Who?", "embed", 1), ("Who?", "extract", 1)],
            [("Where?", "embed", 1), ("Where?", "extract", 3)],
            [("Where?", "embed", 1)],
        ]
        assert total(engine.rows()).n_calls == server.n_completed

    run(scenario())


def test_a_fallback_answers_and_is_named_in_usage_and_reply() -> None:
    async def scenario() -> None:
        shelf, meter = Shelf(), Meter()
        first, second = FakeLLM([Unavailable("no key")], "first"), FakeLLM([completion("Bob.")], "second")
        links = [ModelLink(llm=first, pricing=PRICING), ModelLink(llm=second, pricing=PRICING)]
        chain = LLMChain(links, shelf, outage_breakers([first, second], now))
        assert (await chain.llm(meter).complete(request())).model == "second"
        again = await chain.llm(meter).complete(request())
        assert (again.is_reused, again.model, chain.identity) == (True, "second", "first")
        assert list(shelf.payloads) == [request().hash("second")]

    run(scenario())


def test_a_reply_that_broke_off_is_returned_and_asked_for_again_by_the_next() -> None:
    async def scenario() -> None:
        shelf, meter = Shelf(), Meter()
        llm = FakeLLM([completion("Al", FinishReason.INTERRUPTED), completion("Alice.")])
        chain = LLMChain([ModelLink(llm=llm, pricing=PRICING, guards=_guards())], shelf)
        assert (await chain.llm(meter).complete(request())).text == "Al"
        assert (await chain.llm(meter).complete(request())).text == "Alice."
        row = total(meter.rows())
        assert (row.n_calls, row.n_interrupted, row.interrupted_tokens) == (1, 1, TokenCount(input=14, output=100))

    run(scenario())


class Clock:
    """A time that is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _pair(*faults: QuipuError) -> tuple[FakeLLM, FakeLLM]:
    return FakeLLM([*faults, completion("one")], "first"), FakeLLM([completion("two")], "second")


async def test_the_first_model_answers_while_it_can() -> None:
    first, second = _pair()
    reply = await FallbackLLM([first, second]).complete(request())
    assert (reply.text, reply.model, len(second.asked)) == ("one", "", 0)


@pytest.mark.parametrize("error", [Overloaded("no"), Unavailable("no"), TooLong("no"), Refused("no")])
async def test_the_second_answers_where_the_first_cannot(error: QuipuError) -> None:
    first, second = _pair(error)
    pieces: list[str] = []
    llm = FallbackLLM([first, second])
    reply = await llm.complete(request(), pieces.append)
    assert (reply.text, reply.model, pieces, llm.identity) == ("two", "second", ["two"], "first")


@pytest.mark.parametrize("error", [OverBudget("no"), Mismatch("no")])
async def test_a_used_up_budget_is_not_passed_on(error: QuipuError) -> None:
    first, second = _pair(error)
    with pytest.raises(type(error)):
        await FallbackLLM([first, second]).complete(request())
    assert second.asked == []


@pytest.mark.parametrize("error", [Overloaded("no"), Unavailable("no")])
async def test_a_model_that_is_down_is_left_alone_for_a_while(error: QuipuError) -> None:
    (first, second), clock = _pair(error), Clock()
    llm = FallbackLLM([first, second], outage_breakers([first, second], clock))
    assert [(await llm.complete(request())).text for _ in range(3)] == ["two"] * 3
    assert len(first.asked) == 1
    clock.now += 60.0
    assert (await llm.complete(request())).text == "one"


@pytest.mark.parametrize("error", [TooLong("no"), Refused("no")])
async def test_a_request_that_is_refused_says_nothing_of_the_next(error: QuipuError) -> None:
    first, second = _pair(error)
    llm = FallbackLLM([first, second])
    assert [(await llm.complete(request())).text for _ in range(2)] == ["two", "one"]


async def test_a_model_that_was_down_is_asked_before_giving_up() -> None:
    first, second = (
        FakeLLM([Unavailable("no"), completion("one")], "first"),
        FakeLLM([completion("two"), Overloaded("no")], "second"),
    )
    llm = FallbackLLM([first, second], outage_breakers([first, second], Clock()))
    assert (await llm.complete(request())).text == "two"
    assert (await llm.complete(request())).text == "one"


@pytest.mark.parametrize(
    ("one", "two", "raised"),
    [
        (Unavailable("a"), Unavailable("b"), "a"),
        (Unavailable("a"), Overloaded("b"), "b"),
        (Overloaded("a"), Unavailable("b"), "a"),
        (TooLong("a"), Unavailable("b"), "a"),
        (Refused("a"), Overloaded("b"), "a"),
    ],
)
async def test_only_where_all_are_unavailable_nothing_can_be_done(
    one: QuipuError, two: QuipuError, raised: str
) -> None:
    llm = FallbackLLM([FakeLLM([one], "first"), FakeLLM([two], "second")])
    with pytest.raises(QuipuError, match=f"^{raised}$"):
        await llm.complete(request())
