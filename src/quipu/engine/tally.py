"""Tally: the models one question may ask, and how many calls of them it took."""

from quipu.engine.models import Models
from quipu.model.chat import ChatRequest, Completion, Role
from quipu.ports.llm import LLM, TextSink, no_text
from quipu.wrap.meter import Meter


class Tally:
    """Gives the models of one question, counted by `meter`, and counts the calls of a language model itself.

    A meter counts what was paid for; `n_calls` also those whose reply was kept from before, which a method takes all
    the same. A call that failed is no call.
    """

    def __init__(self, models: Models, meter: Meter) -> None:
        self.meter = meter
        self.n_calls = 0
        self._models = models

    def llm(self, role: Role) -> LLM | None:
        """Return the model for this work, None where there is none."""
        llm = self._models.llm(role, self.meter)
        return _TalliedLLM(llm, self) if llm else None


class _TalliedLLM:
    """A chat model whose calls are counted."""

    def __init__(self, llm: LLM, tally: Tally) -> None:
        self._llm = llm
        self._tally = tally

    @property
    def identity(self) -> str:
        """That of the model."""
        return self._llm.identity

    async def complete(self, request: ChatRequest, on_text: TextSink = no_text) -> Completion:
        """Return the model's reply, and count it."""
        completion = await self._llm.complete(request, on_text)
        self._tally.n_calls += 1
        return completion
