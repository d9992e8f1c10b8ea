"""Wiring of checks: whether the models that read documents answer, before any document is touched."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, Message, Role
from quipu.ports.reply_cache import ReplyCache
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.errors import Unreachable, context_window_remedy
from quipu.providers.openai.session import find_context_window
from quipu.wrap.chain import EmbedderChain, ModelLink
from quipu.wrap.meter import Meter
from quipu.wrap.metered_models import MeteredLLM

Notes = tuple[str, ...]
Check = Callable[[Meter], Awaitable[Notes]]  # counted by the meter; what it returns is worth a look

CHECKED_TEXT = "Quipus are records kept in knotted cords."
PING = ChatRequest(messages=(Message("user", "Reply with OK."),), role=Role.EXTRACT, max_output_tokens=256)


def pinging(asked: Mapping[Role, Sequence[tuple[str, ModelLink]]], replies: ReplyCache) -> Check:
    """Return a check that for each role the model, or its fallback, answers: each by its place, and asked once.

    A call is counted as any, and never kept.
    """

    async def check(meter: Meter) -> Notes:
        """Raise Unavailable with the remedy of the first model of a role of which none answers.

        One that is merely busy will do. Where a fallback stands in, the notes say what is wrong with the model.
        """
        failure_by_place: dict[str, QuipuError | None] = {}
        notes: list[str] = []
        for role, links in asked.items():
            failures: list[QuipuError] = []
            for place, link in links:
                if place not in failure_by_place:
                    failure_by_place[place] = await _ping(link, role, replies, meter)
                failure = failure_by_place[place]
                if failure is None:
                    break
                failures.append(failure)
            else:
                raise Unavailable(failures[0].message, remedy=failures[0].remedy)
            notes += [
                f"{links[0][1].pricing.model} cannot be asked, its fallback stands in: {each}" for each in failures
            ]
        return tuple(dict.fromkeys(notes))

    return check


async def _ping(link: ModelLink, role: Role, replies: ReplyCache, meter: Meter) -> QuipuError | None:
    """Return why a model does not answer, None where it does."""
    call = meter.child()
    try:
        await MeteredLLM(link.llm, call, link.pricing).complete(replace(PING, role=role))
    except OverBudget:
        raise
    except (Unreachable, Unavailable, Refused, TooLong) as error:
        return error
    except Overloaded:
        return None
    finally:
        if rows := call.rows():
            await replies.add_usage(rows)
    return None


def fitting(chat: OpenAIChat, n_needed: int) -> Check:
    """Return a check that a chunk fits into the context window, where the server tells it; nothing is generated."""

    async def check(_meter: Meter) -> Notes:
        """Raise Unavailable with both numbers: some servers cut what is too long without a word."""
        window = await find_context_window(chat.session)
        if window is not None and window < n_needed:
            target = chat.target
            raise Unavailable(
                f"{target.label} has a context window of {window:,} tokens, and to read a chunk takes {n_needed:,}.",
                remedy=context_window_remedy(target.endpoint.provider.name),
            )
        return ()

    return check


def embedding(chain: EmbedderChain) -> Check:
    """Return a check that an embedder gives a vector; it is counted as any call."""

    async def check(meter: Meter) -> Notes:
        """Raise Unavailable with the remedy; one that is merely busy will do."""
        try:
            await chain.single_attempt(meter).embed([CHECKED_TEXT])
        except (Unreachable, Refused, TooLong) as error:
            raise Unavailable(error.message, remedy=error.remedy) from error
        except Overloaded:
            pass
        return ()

    return check


def all_of(checks: Sequence[Check]) -> Check:
    """Return a check that makes one after the other."""

    async def check(meter: Meter) -> Notes:
        """Raise what the first of them raises."""
        return tuple([note for each in checks for note in await each(meter)])

    return check
