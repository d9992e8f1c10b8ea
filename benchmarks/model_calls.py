"""Our own CPU for a call of a model: the whole adapter against the scripted server, whole and streamed."""

import asyncio
import time
from itertools import product

from quipu.model.chat import ChatRequest, Message, Role
from quipu.providers.local import ByteTokenizer
from quipu.providers.openai.catalog import PROVIDERS
from quipu.providers.openai.chat import ChatParameters, OpenAIChat
from quipu.providers.openai.endpoint import Endpoint
from quipu.testing.scripted.script import CannedReply, ReplyRules, Script, Service
from quipu.testing.server import serving

CALLS, AT_ONCE, WARM_UP = 500, 16, 50
REPLY = "y" * 1_000


async def measure(base_url: str, *, is_streamed: bool) -> float:
    """Return milliseconds of CPU a call."""
    chat = OpenAIChat(
        Endpoint(provider=PROVIDERS["vllm"], base_url=base_url),
        "scripted",
        count_tokens=ByteTokenizer().count,
        parameters=ChatParameters(is_streamed=is_streamed),
    )
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(n: int) -> None:
        request = ChatRequest(
            messages=(Message("user", f"{n} {'x' * 2_000}"),), role=Role.EXTRACT, max_output_tokens=2_000
        )
        async with gate:
            await chat.complete(request)

    for n in range(WARM_UP):
        await ask(n)
    started = time.process_time()
    await asyncio.gather(*(ask(n) for n in range(CALLS)))
    spent_s = time.process_time() - started
    await chat.aclose()
    return 1_000 * spent_s / CALLS


def main() -> None:
    """Print a line for each way of asking."""
    for piece_chars, is_streamed in product((16, 4), (False, True)):
        script = Script(
            answering=ReplyRules(replies=(CannedReply(text=REPLY),)), service=Service(piece_chars=piece_chars)
        )
        with serving(script) as server:
            spent_ms = asyncio.run(measure(server.base_url, is_streamed=is_streamed))
        how = f"streamed in pieces of {piece_chars}" if is_streamed else "whole"
        print(f"{spent_ms:.2f} ms of CPU a call of {len(REPLY):,} characters, {how}")


if __name__ == "__main__":
    main()
