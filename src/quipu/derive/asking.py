"""Asking: a model's reply on something, whole and of use, or the reason why there is none."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from quipu.errors import Overloaded, Refused
from quipu.model.chat import ChatRequest, Completion, FinishReason

MORE_OUTPUT = 2  # how many times as much room a reply gets, once, that was cut short
MAX_FRESH = 2  # replies without use that are paid for

Ask = Callable[[ChatRequest], Awaitable[Completion]]


async def ask_for(what: str, request: ChatRequest, ask: Ask, is_of_use: Callable[[str], bool]) -> Completion:
    """Return a reply that is `what` is wanted; one that is of no use is asked for once more.

    Raises Refused where there is none, Overloaded where one broke off, and what `ask` does. What broke off is not a
    model's last word even where it can be read: to ask again later may bring the rest.
    """
    n_fresh = 0
    while True:
        completion = await _with_room(request, ask)
        if completion.finish is FinishReason.INTERRUPTED:
            raise Overloaded(f"The reply that was to be {what} broke off.", remedy="Run the same refresh again.")
        if completion.finish is FinishReason.FILTERED:
            raise Refused(
                f"The provider withheld the rest of a reply that was to be {what}.",
                remedy="Use another model for reports.",
            )
        if is_of_use(completion.text):
            return completion
        n_fresh += not completion.is_reused
        if n_fresh and request.attempt + 1 >= MAX_FRESH:
            raise Refused(
                f"The model's reply was not {what} ({completion.finish}): {completion.text.strip()[:60]!r}.",
                remedy="Use another model for reports.",
            )
        request = replace(request, attempt=request.attempt + 1)


async def _with_room(request: ChatRequest, ask: Ask) -> Completion:
    completion = await ask(request)
    if completion.finish is FinishReason.LENGTH:
        completion = await ask(replace(request, max_output_tokens=request.max_output_tokens * MORE_OUTPUT))
    return completion
