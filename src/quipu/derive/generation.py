"""Generation: many texts by a language model, with bounded concurrency, each stored as soon as it is written."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, Unavailable
from quipu.model.chat import ChatRequest, Completion, FinishReason
from quipu.model.delta import CommitResult, Delta
from quipu.model.derivation import DerivationResult
from quipu.model.event import EventSink, Progress
from quipu.ports.providers import LLM

READ_AHEAD = 16  # inputs that are read together
MAX_CAUSES = 3  # that the message about several failures names

KeyT = TypeVar("KeyT")
InputT = TypeVar("InputT")
TextT = TypeVar("TextT")
ContentT = TypeVar("ContentT")

Ask = Callable[[ChatRequest], Awaitable[Completion]]
Commit = Callable[[Delta], Awaitable[CommitResult]]


class ModelCalls:
    """Sends requests to a model, at most `n_concurrent` at once, until an error shows that no more will succeed."""

    def __init__(self, llm: LLM, n_concurrent: int) -> None:
        self.n_calls, self.n_reused = 0, 0
        self.n_concurrent = n_concurrent
        self._failures: list[QuipuError] = []
        self._llm = llm
        self._slots = asyncio.Semaphore(n_concurrent)

    @property
    def stop_error(self) -> QuipuError | None:
        """The Unavailable or OverBudget, with all causes, after which no request is sent; None before that."""
        return merge_errors(self._failures) if self._failures else None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFormat(Generic[ContentT]):
    """How replies are read, and how often one is asked for; `text` names it in error messages, as in "a report".

    `parse` returns the content of a valid reply, else None. A reply that reached its token limit is requested once more
    with `length_factor` times the limit. A request is given up after `max_new` invalid replies that were paid for.
    """

    text: str
    parse: Callable[[str], ContentT | None]
    length_factor: int = 2
    max_new: int = 2


@dataclass(frozen=True, slots=True)
class ValidReply(Generic[ContentT]):
    """The content of a valid reply, its completion, and the request as it was sent."""

    content: ContentT
    completion: Completion
    request: ChatRequest


async def ask_until_valid(request: ChatRequest, ask: Ask, rules: ReplyFormat[ContentT]) -> ValidReply[ContentT]:
    """Return the first valid reply; after an invalid one the request is sent again.

    Raises Refused if no reply is valid, Overloaded if a reply was interrupted, and whatever `ask` raises. An
    interrupted reply is an error even if it is valid, because the next attempt may return all of it.
    """
    remedy = f"Use another model for the role `{request.role}`."
    n_new = 0
    while True:
        sent = request
        completion = await ask(sent)
        if completion.finish is FinishReason.LENGTH:
            sent = replace(sent, max_output_tokens=sent.max_output_tokens * rules.length_factor)
            completion = await ask(sent)
        if completion.finish is FinishReason.INTERRUPTED:
            message = f"The model's reply was interrupted while it wrote {rules.text}."
            raise Overloaded(message, remedy="Run the same refresh again.")
        if completion.finish is FinishReason.FILTERED:
            raise Refused(f"The provider withheld the rest of {rules.text}.", remedy=remedy)
        content = rules.parse(completion.text)
        if content is not None:
            return ValidReply(content, completion, sent)
        n_new += not completion.is_reused
        if n_new and request.attempt + 1 >= rules.max_new:
            message = f"The model's reply was not {rules.text} ({completion.finish}): {completion.text.strip()[:60]!r}."
            raise Refused(message, remedy=remedy)
        request = replace(request, attempt=request.attempt + 1)


class TextMaker(Protocol[KeyT, InputT, TextT]):
    """What a derivation does for its texts: it reads their inputs, writes each one, and puts them into a delta."""

    async def read(self, keys: Sequence[KeyT], /) -> Sequence[tuple[KeyT, InputT]]:
        """Return the inputs of the texts with these keys, without the keys that need no text any more."""

    async def write(self, key: KeyT, inputs: InputT, /) -> TextT:
        """Return the text with a key. Raises a QuipuError if it cannot be written."""

    def to_delta(self, texts: Sequence[TextT], /) -> Delta:
        """Return the change of the store that records these texts."""


class TextGeneration(Generic[KeyT, InputT, TextT]):
    """Generates the texts of one derivation, and counts what was stored and what failed.

    `calls` is None without a model. `n_stored` texts were committed; the store rejected `n_outdated`, because their
    facts had changed. `failed` are the keys whose text could not be written, and why; the next refresh tries again.
    """

    def __init__(self, commit: Commit, calls: ModelCalls | None, on_event: EventSink, progress: Progress) -> None:
        self.n_stored, self.n_outdated = 0, 0
        self.failed: list[tuple[KeyT, str]] = []
        self._commit = commit
        self._calls = calls
        self._on_event = on_event
        self._progress = progress
        self._read_error: QuipuError | None = None

    @property
    def stopped(self) -> str:
        """Why no more texts are written: the model is unavailable or the budget is used up; "" before that."""
        error = self._calls.stop_error if self._calls is not None else None
        return str(error) if error is not None else ""

    async def generate(self, keys: Sequence[KeyT], maker: TextMaker[KeyT, InputT, TextT]) -> None:
        """Generate the texts of all `keys`, several at once, until the calls of the model stop.

        Progress counts the keys of earlier calls too, but not work that was not attempted. Raises what `read` or a
        commit raises; after a QuipuError of `read`, running work is completed and stored first.
        """
        n_writers = self._calls.n_concurrent if self._calls is not None else 1
        inputs: asyncio.Queue[tuple[KeyT, InputT] | None] = asyncio.Queue(maxsize=READ_AHEAD)
        written: asyncio.Queue[TextT | None] = asyncio.Queue()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read_inputs(keys, maker, inputs, n_writers))
                for _ in range(n_writers):
                    tasks.create_task(self._write_texts(inputs, maker, written))
                await self._commit_texts(written, n_writers, maker)
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        if self._read_error is not None:
            raise self._read_error

    async def commit(self, delta: Delta) -> int:
        """Commit a change, and return how many of its texts were outdated."""
        n_outdated = (await self._commit(delta)).n_outdated
        self.n_outdated += n_outdated
        return n_outdated

    def result(self, name: str) -> DerivationResult:
        """Return how many calls were made, and why they stopped, as the result of a derivation."""
        calls = self._calls
        if calls is None:
            return DerivationResult(name=name)
        return DerivationResult(name=name, n_calls=calls.n_calls, n_reused=calls.n_reused, stopped=self.stopped)

    async def _read_inputs(
        self,
        keys: Sequence[KeyT],
        maker: TextMaker[KeyT, InputT, TextT],
        inputs: asyncio.Queue[tuple[KeyT, InputT] | None],
        n_writers: int,
    ) -> None:
        """Read the inputs, a little ahead of the writers, and then tell each writer to stop."""
        for start in range(0, len(keys), READ_AHEAD):
            if self.stopped:
                break
            batch = keys[start : start + READ_AHEAD]
            try:
                pairs = await maker.read(batch)
            except QuipuError as error:
                self._read_error = error
                break
            self._advance(len(batch) - len(pairs))
            for pair in pairs:
                await inputs.put(pair)
        for _ in range(n_writers):
            await inputs.put(None)

    async def _write_texts(
        self,
        inputs: asyncio.Queue[tuple[KeyT, InputT] | None],
        maker: TextMaker[KeyT, InputT, TextT],
        written: asyncio.Queue[TextT | None],
    ) -> None:
        """Write one text after the other, and then None. What is not written after the calls stop has not failed."""
        while (pair := await inputs.get()) is not None:
            try:
                written.put_nowait(await maker.write(*pair))
            except QuipuError as error:
                if not (self.stopped and isinstance(error, (Unavailable, OverBudget))):
                    self.failed.append((pair[0], str(error)))
                    self._advance(1)
        written.put_nowait(None)

    async def _commit_texts(
        self, written: asyncio.Queue[TextT | None], n_writers: int, maker: TextMaker[KeyT, InputT, TextT]
    ) -> None:
        """Commit texts as they arrive, all that are waiting together, until every writer has finished."""
        while n_writers:
            arrived = [await written.get()]
            while not written.empty():
                arrived.append(written.get_nowait())
            n_writers -= arrived.count(None)
            if texts := [text for text in arrived if text is not None]:
                n_outdated = await self.commit(maker.to_delta(texts))
                self.n_stored += len(texts) - n_outdated
                self._advance(len(texts))

    def _advance(self, n_keys: int) -> None:
        self._progress = replace(self._progress, n_done=self._progress.n_done + n_keys)
        self._on_event(self._progress)


def merge_errors(failures: Sequence[QuipuError]) -> QuipuError:
    """Return one error for several, as in "3 model calls failed: Host is down (2 times); Host is busy."

    It has the class of the first failure and names each cause once. If all failures have the same cause, the first is
    returned as it is. All OverBudget errors together count as one cause, which the message names last.
    """
    n_by_cause = Counter(error.message.rstrip(".") for error in failures if not isinstance(error, OverBudget))
    over_budget = [error for error in failures if isinstance(error, OverBudget)][:1]
    if len(n_by_cause) + len(over_budget) == 1:
        return failures[0]
    messages = [_causes_message(n_by_cause), *(error.message for error in over_budget)]
    remedies = dict.fromkeys(error.remedy for error in failures if error.remedy)
    return type(failures[0])(" ".join(messages), remedy=" ".join(remedies))


def _causes_message(n_by_cause: Counter[str]) -> str:
    if len(n_by_cause) == 1:
        return f"{next(iter(n_by_cause))}."
    causes = [f"{cause} ({n} times)" if n > 1 else cause for cause, n in n_by_cause.items()]
    if len(causes) > MAX_CAUSES:
        causes = [*causes[:MAX_CAUSES], f"and {len(causes) - MAX_CAUSES:,} other causes"]
    return f"{n_by_cause.total():,} model calls failed: {'; '.join(causes)}."
