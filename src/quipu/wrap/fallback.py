"""Fallback: where one model cannot answer, the next one is asked."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from quipu.errors import Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, Completion
from quipu.ports.providers import LLM, TextSink, ignore_text

OUT_FOR_S = 60.0


class Outages:
    """Which models were found not to answer, for a while; shared by all calls of a role."""

    def __init__(self, *, out_for_s: float = OUT_FOR_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._out_for_s = out_for_s
        self._clock = clock
        self._until: dict[str, float] = {}

    def note(self, identity: str) -> None:
        """Note that a model does not answer."""
        self._until[identity] = self._clock() + self._out_for_s

    def is_out(self, identity: str) -> bool:
        """Whether a model was found not to answer a short while ago."""
        return self._clock() < self._until.get(identity, 0.0)


class FallbackLLM:
    """Several chat models; the first that answers does. A budget that is used up is nobody else's to spend."""

    def __init__(self, llms: Sequence[LLM], outages: Outages | None = None) -> None:
        self._llms = llms
        self._outages = outages or Outages()

    @property
    def identity(self) -> str:
        """That of the first."""
        return self._llms[0].identity

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply of the first model that gives one, named in it where it is not the first.

        Where none does, raises what says least that all is lost: Unavailable only if all are.
        """
        failures: list[QuipuError] = []
        for llm in sorted(self._llms, key=lambda each: self._outages.is_out(each.identity)):
            try:
                completion = await llm.complete(request, on_text)
            except (Overloaded, Unavailable) as error:
                self._outages.note(llm.identity)
                failures.append(error)
            except (TooLong, Refused) as error:
                failures.append(error)
            else:
                return completion if llm is self._llms[0] else replace(completion, model=llm.identity)
        raise next((error for error in failures if not isinstance(error, Unavailable)), failures[0])
