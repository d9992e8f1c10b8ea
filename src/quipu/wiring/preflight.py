"""Preflight checks: whether the models that documents need answer, before any document is touched."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, Message, Role
from quipu.ports.store import ReplyCache
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.errors import Unreachable, context_window_remedy
from quipu.providers.openai.session import find_context_window
from quipu.wrap.chain import EmbedderChain, ModelLink
from quipu.wrap.meter import Meter
from quipu.wrap.metered_models import MeteredLLM

Notes = tuple[str, ...]
PreflightCheck = Callable[[Meter], Awaitable[Notes]]  # the meter counts its calls; it returns notes for the user

PROBE_TEXT = "Quipus are records kept in knotted cords."
PING = ChatRequest(messages=(Message("user", "Reply with OK."),), role=Role.EXTRACT, max_output_tokens=256)


def ping_check(links_by_role: Mapping[Role, Sequence[tuple[str, ModelLink]]], replies: ReplyCache) -> PreflightCheck:
    """Return a check that for each role the model or its fallback answers.

    Each link comes with a label of its service; a service with several roles is called once. Calls are counted, and
    their replies are not saved.
    """

    async def check(meter: Meter) -> Notes:
        """Raise Unavailable, with the remedy for the first model, if no model of a role answers.

        A busy model passes. If a fallback replaces a model, the notes say what is wrong with that model.
        """
        error_by_label: dict[str, QuipuError | None] = {}
        notes: list[str] = []
        for role, links in links_by_role.items():
            errors: list[QuipuError] = []
            for label, link in links:
                if label not in error_by_label:
                    error_by_label[label] = await _ping(link, role, replies, meter)
                error = error_by_label[label]
                if error is None:
                    break
                errors.append(error)
            else:
                raise Unavailable(errors[0].message, remedy=errors[0].remedy)
            first = links[0][1].pricing.model
            notes += [f"{first} cannot be used, so its fallback replaces it: {error}" for error in errors]
        return tuple(dict.fromkeys(notes))

    return check


async def _ping(link: ModelLink, role: Role, replies: ReplyCache, meter: Meter) -> QuipuError | None:
    """Return why a model does not answer; None if it does, or is only busy."""
    call_meter = meter.child()
    try:
        await MeteredLLM(link.llm, call_meter, link.pricing).complete(replace(PING, role=role))
    except OverBudget:
        raise
    except (Unreachable, Unavailable, Refused, TooLong) as error:
        return error
    except Overloaded:
        return None
    finally:
        if rows := call_meter.rows():
            await replies.record_call(rows)
    return None


def context_window_check(chat: OpenAIChat, n_needed: int) -> PreflightCheck:
    """Return a check that the context window has `n_needed` tokens, if the server reports it. Nothing is generated."""

    async def check(_meter: Meter) -> Notes:
        """Raise Unavailable with both numbers, because some servers cut longer prompts silently."""
        window = await find_context_window(chat.session)
        if window is not None and window < n_needed:
            target = chat.target
            raise Unavailable(
                f"{target.label} has a context window of {window:,} tokens, and reading a chunk takes {n_needed:,}.",
                remedy=context_window_remedy(target.endpoint.provider.name),
            )
        return ()

    return check


def embedder_check(chain: EmbedderChain) -> PreflightCheck:
    """Return a check that an embedder returns a vector. The call is counted."""

    async def check(meter: Meter) -> Notes:
        """Raise Unavailable with the remedy. A busy embedder passes."""
        try:
            await chain.single_attempt(meter).embed([PROBE_TEXT])
        except (Unreachable, Refused, TooLong) as error:
            raise Unavailable(error.message, remedy=error.remedy) from error
        except Overloaded:
            pass
        return ()

    return check


def combine_checks(checks: Sequence[PreflightCheck]) -> PreflightCheck:
    """Return a check that runs these checks in order and raises the first error."""

    async def check_all(meter: Meter) -> Notes:
        return tuple([note for check in checks for note in await check(meter)])

    return check_all
