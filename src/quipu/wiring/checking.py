"""Wiring of checks: whether a chat model answers, before any document is touched."""

from collections.abc import Awaitable, Callable, Sequence

from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, Message, Role
from quipu.ports.replies import Replies
from quipu.providers.openai.faults import Unreachable
from quipu.wrap.chain import Link
from quipu.wrap.meter import Meter
from quipu.wrap.metered import MeteredLLM

_PING = ChatRequest(messages=(Message("user", "Reply with OK."),), role=Role.EXTRACT, max_output_tokens=256)


def pinging(links: Sequence[Link], replies: Replies, meter: Meter) -> Callable[[], Awaitable[None]]:
    """Return a check that one of these models answers; it is counted as any call, and never kept."""

    async def check() -> None:
        """Raise Unavailable with the remedy of the first model; one that is merely busy will do."""
        failures: list[QuipuError] = []
        for link in links:
            call = meter.child()
            try:
                await MeteredLLM(link.llm, call, link.terms).complete(_PING)
            except OverBudget:
                raise
            except Unreachable as error:
                failures.append(error)
            except Overloaded:
                return
            except (Unavailable, Refused, TooLong) as error:
                failures.append(error)
            else:
                return
            finally:
                if rows := call.rows():
                    await replies.spend(rows)
        raise Unavailable(failures[0].message, remedy=failures[0].remedy)

    return check
