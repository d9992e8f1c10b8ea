"""Generation: many texts by a language model, with bounded concurrency, each stored as soon as it is written."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, Unavailable
from quipu.model.chat import ChatRequest, Completion, FinishReason
from quipu.ports.providers import LLM

READ_AHEAD = 16  # inputs that are read together
MAX_CAUSES = 3  # that the message about several failures names
LENGTH_FACTOR = 2  # a reply that reached its token limit is requested once more with this many times the limit
MAX_NEW_REPLIES = 2  # invalid replies that are paid for before the request is given up

KeyT = TypeVar("KeyT")
InputT = TypeVar("InputT")
TextT = TypeVar("TextT")
ArgumentT = TypeVar("ArgumentT")
ResultT = TypeVar("ResultT")

Ask = Callable[[ChatRequest], Awaitable[Completion]]


class ModelCalls:
    """Sends requests to a model, at most `n_concurrent` at once, until an error shows that no more will succeed."""

    def __init__(self, llm: LLM, n_concurrent: int) -> None:
        self.n_calls, self.n_reused = 0, 0
        self._failures: list[QuipuError] = []
        self._llm = llm
        self._slots = asyncio.Semaphore(n_concurrent)

    @property
    def stop_error(self) -> QuipuError | None:
        """The Unavailable or OverBudget, with all causes, after which no request is sent; None before that."""
        return merge_errors(self._failures, "model calls failed") if self._failures else None

    async def ask(self, request: ChatRequest) -> Completion:
        """Return the completion, with the name of the model filled in.

        Raises `stop_error` once there is one. Requests that are already running at that time are completed.
        """
        async with self._slots:
            if self.stop_error is not None:
                raise self.stop_error
            try:
                completion = await self._llm.complete(request)
            except (Unavailable, OverBudget) as error:
                self._failures.append(error)
                raise
        self.n_calls += not completion.is_reused
        self.n_reused += completion.is_reused
        return replace(completion, model=completion.model or self._llm.identity)


async def ask_until_valid(what: str, request: ChatRequest, ask: Ask, is_valid: Callable[[str], bool]) -> Completion:
    """Return a completion whose text is valid; an invalid new reply is requested once more.

    `what` names the text in error messages, as in "a report". Raises Refused if no reply is valid, Overloaded if a
    reply was interrupted, and whatever `ask` raises. An interrupted reply is an error even if it is valid, because the
    next attempt may return all of it.
    """
    n_new = 0
    while True:
        completion = await _ask_with_longer_limit(request, ask)
        if completion.finish is FinishReason.INTERRUPTED:
            raise Overloaded(
                f"The model's reply was interrupted while it wrote {what}.", remedy="Run the same refresh again."
            )
        if completion.finish is FinishReason.FILTERED:
            raise Refused(f"The provider withheld the rest of {what}.", remedy="Use another model for reports.")
        if is_valid(completion.text):
            return completion
        n_new += not completion.is_reused
        if n_new and request.attempt + 1 >= MAX_NEW_REPLIES:
            raise Refused(
                f"The model's reply was not {what} ({completion.finish}): {completion.text.strip()[:60]!r}.",
                remedy="Use another model for reports.",
            )
        request = replace(request, attempt=request.attempt + 1)


async def _ask_with_longer_limit(request: ChatRequest, ask: Ask) -> Completion:
    completion = await ask(request)
    if completion.finish is FinishReason.LENGTH:
        completion = await ask(replace(request, max_output_tokens=request.max_output_tokens * LENGTH_FACTOR))
    return completion


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSteps(Generic[KeyT, InputT, TextT]):
    """How texts are generated: `read` the inputs of some keys, `write` the text for one input, `store` new texts.

    `read` leaves out keys that need no text any more. `read` and `write` return None for work that is not attempted. A
    QuipuError from either ends the run: no further work starts, and running work is completed and stored.
    """

    read: Callable[[Sequence[KeyT]], Awaitable[Sequence[InputT] | None]]
    write: Callable[[InputT], Awaitable[TextT | None]]
    store: Callable[[Sequence[TextT]], Awaitable[None]]


async def generate_all(
    keys: Sequence[KeyT],
    steps: GenerationSteps[KeyT, InputT, TextT],
    *,
    n_concurrent: int,
    on_done: Callable[[int], None],
) -> None:
    """Generate the texts of all `keys`, at most `n_concurrent` at once.

    `on_done` receives the number of keys completed so far; work that was not attempted does not count. Raises the
    QuipuError that ended the run, or one of the same class that lists all of them.
    """
    pipeline = _Pipeline(steps, n_concurrent)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(pipeline.read_inputs(keys))
            for _ in range(n_concurrent):
                tasks.create_task(pipeline.write_texts())
            await pipeline.store_texts(len(keys), on_done)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    if pipeline.failures:
        raise merge_errors(pipeline.failures, "texts could not be written")


def merge_errors(failures: Sequence[QuipuError], what: str) -> QuipuError:
    """Return one error for several, as in "3 calls failed: Host is down (2 times); Host is busy."

    It has the class of the first failure and names each cause once. If all failures have the same cause, the first is
    returned as it is. All OverBudget errors together count as one cause, which the message names last.
    """
    n_by_cause = Counter(error.message.rstrip(".") for error in failures if not isinstance(error, OverBudget))
    over_budget = [error for error in failures if isinstance(error, OverBudget)][:1]
    if len(n_by_cause) + len(over_budget) == 1:
        return failures[0]
    messages = [_causes_message(n_by_cause, what), *(error.message for error in over_budget)]
    remedies = dict.fromkeys(error.remedy for error in failures if error.remedy)
    return type(failures[0])(" ".join(messages), remedy=" ".join(remedies))


def _causes_message(n_by_cause: Counter[str], what: str) -> str:
    if len(n_by_cause) == 1:
        return f"{next(iter(n_by_cause))}."
    causes = [f"{cause} ({n} times)" if n > 1 else cause for cause, n in n_by_cause.items()]
    if len(causes) > MAX_CAUSES:
        causes = [*causes[:MAX_CAUSES], f"and {len(causes) - MAX_CAUSES:,} other causes"]
    return f"{n_by_cause.total():,} {what}: {'; '.join(causes)}."


class _Pipeline(Generic[KeyT, InputT, TextT]):
    """One reader, several writers, and a collector that stores everything written since it last stored."""

    def __init__(self, steps: GenerationSteps[KeyT, InputT, TextT], n_concurrent: int) -> None:
        self._steps = steps
        self._n_concurrent = n_concurrent
        self.failures: list[QuipuError] = []
        self._inputs: asyncio.Queue[tuple[InputT] | None] = asyncio.Queue(maxsize=READ_AHEAD)
        # One pair for each key: its text, if any, and whether the key is done.
        self._outcomes: asyncio.Queue[tuple[TextT | None, bool]] = asyncio.Queue()

    async def read_inputs(self, keys: Sequence[KeyT]) -> None:
        """Read the inputs, a little ahead of the writers, and then tell each writer to stop."""
        for start in range(0, len(keys), READ_AHEAD):
            batch = keys[start : start + READ_AHEAD]
            inputs = await self._attempt(self._steps.read, batch)
            for text_input in inputs or ():
                await self._inputs.put((text_input,))
            for _ in range(len(batch) - len(inputs or ())):
                self._outcomes.put_nowait((None, inputs is not None))
        for _ in range(self._n_concurrent):
            await self._inputs.put(None)

    async def write_texts(self) -> None:
        """Write texts until the reader has no more inputs."""
        while queued := await self._inputs.get():
            text = await self._attempt(self._steps.write, queued[0])
            self._outcomes.put_nowait((text, text is not None))

    async def store_texts(self, n_keys: int, on_done: Callable[[int], None]) -> None:
        """Store texts as they arrive, all that are waiting together."""
        n_waiting, n_done = n_keys, 0
        while n_waiting:
            outcomes = [await self._outcomes.get()]
            while not self._outcomes.empty():
                outcomes.append(self._outcomes.get_nowait())
            n_waiting -= len(outcomes)
            if texts := [text for text, _ in outcomes if text is not None]:
                await self._steps.store(texts)
            n_done += sum(is_done for _, is_done in outcomes)
            on_done(n_done)

    async def _attempt(
        self, step: Callable[[ArgumentT], Awaitable[ResultT | None]], argument: ArgumentT
    ) -> ResultT | None:
        """Return what a step returns, None after any step has failed."""
        try:
            return None if self.failures else await step(argument)
        except QuipuError as error:
            self.failures.append(error)
            return None
