"""Wiring of checks: whether the models that read documents answer, before any document is touched."""

from collections.abc import Awaitable, Callable, Sequence

from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, Message, Role
from quipu.ports.replies import Replies
from quipu.providers.openai.faults import Unreachable
from quipu.wrap.chain import EmbedderChain, Link
from quipu.wrap.meter import Meter
from quipu.wrap.metered import MeteredEmbedder, MeteredLLM

Check = Callable[[], Awaitable[None]]

CHECKED_TEXT = "Quipus are records kept in knotted cords."
_PING = ChatRequest(messages=(Message("user", "Reply with OK."),), role=Role.EXTRACT, max_output_tokens=256)


def pinging(links: Sequence[Link], replies: Replies, meter: Meter) -> Check:
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


def embedding(chain: EmbedderChain, meter: Meter) -> Check:
    """Return a check that an embedder gives a vector; it is counted as any call."""

    async def check() -> None:
        """Raise Unavailable with the remedy; one that is merely busy will do."""
        try:
            await MeteredEmbedder(chain.provider, meter, chain.terms, chain.spend).embed([CHECKED_TEXT])
        except (Unreachable, Refused, TooLong) as error:
            raise Unavailable(error.message, remedy=error.remedy) from error
        except Overloaded:
            return

    return check


def all_of(checks: Sequence[Check]) -> Check:
    """Return a check that makes one after the other."""

    async def check() -> None:
        """Raise what the first of them raises."""
        for each in checks:
            await each()

    return check
