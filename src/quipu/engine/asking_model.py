"""The model a strategy may ask: it knows the replies it has fetched, and fetches others while no view is open."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from quipu.engine.fetching import Wanted
from quipu.errors import QuipuError
from quipu.model.chat import ChatRequest, Completion, FinishReason, Role
from quipu.ports.providers import LLM

MAX_ROUNDS = 24  # more than any method takes
MAX_VAIN = 2  # rounds a question may pay for in vain: where documents change meanwhile, it may ask something else


@dataclass(slots=True)
class Replies:
    """The texts a model replied in one question, by request; `notes` tell what went wrong."""

    llm: Callable[[Role], LLM | None]
    texts: dict[str, str] = field(default_factory=dict)
    n_rounds: int = 0
    troubles: Counter[str] = field(default_factory=Counter)

    def notes(self) -> tuple[str, ...]:
        """Return what the trace should say of calls that gave nothing, or not all of it."""
        return tuple(why if n == 1 else f"{why} ({n:,} times)" for why, n in sorted(self.troubles.items()))

    async def fetch(self, requests: Sequence[ChatRequest]) -> None:
        """Ask all that is not known yet, at once; where one fails its text is "". None raises for want of a model."""
        missing = {_key(each): each for each in requests if _key(each) not in self.texts}
        async with asyncio.TaskGroup() as tasks:  # where one breaks, none is left under way
            texts = {key: tasks.create_task(self._text(request)) for key, request in missing.items()}
        self.texts |= {key: task.result() for key, task in texts.items()}
        self.n_rounds += 1

    async def _text(self, request: ChatRequest) -> str:
        llm = self.llm(request.role)
        if llm is None:
            self.troubles[f"no model is set for the work '{request.role}'"] += 1
            return ""
        try:
            completion = await llm.complete(request)
        except QuipuError as error:
            self.troubles[f"a model gave no reply: {error.message}"] += 1
            return ""
        if completion.finish is not FinishReason.STOP:
            self.troubles[_cut_short(completion)] += 1
        return completion.text


@dataclass(slots=True)
class AskingModel:
    """The Model of strategies, for one search in a view of `revision`: see `quipu.retrieve.strategy`.

    Where what the search asks has changed `MAX_VAIN` times, the view is held while the model works: so the replies are
    of use, however often documents change.
    """

    replies: Replies
    revision: int
    n_told: int = 0  # times this search has been told what it asked

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str]:
        """Return the text of each reply, in order; raises Wanted where one has not been fetched yet."""
        if any(_key(each) not in self.replies.texts for each in requests):
            if self.replies.n_rounds >= MAX_ROUNDS:
                self.replies.troubles[f"a model was asked {MAX_ROUNDS} times in a row, and then no more"] = 1
            else:
                fetch = partial(self.replies.fetch, [_as_of(self.revision, each) for each in requests])
                if self.replies.n_rounds - self.n_told < MAX_VAIN:
                    raise Wanted(fetch)
                await fetch()
        self.n_told += 1
        return [self.replies.texts.get(_key(each), "") for each in requests]


def _as_of(revision: int, request: ChatRequest) -> ChatRequest:
    return request if request.revision is not None else replace(request, revision=revision)


def _key(request: ChatRequest) -> str:
    return request.hash(request.role)


def _cut_short(completion: Completion) -> str:
    return f"a reply of a model was cut short ({completion.finish})"
