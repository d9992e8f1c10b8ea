"""Rewriting: a model makes a question of a conversation stand alone; no view is open while it thinks."""

from collections.abc import Sequence

from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.query import Turn
from quipu.ports.providers import LLM
from quipu.prompts import question as prompt
from quipu.text.lenient_json import parse_lenient_json

MAX_TURNS = 6  # what a question points back to was said of late
MAX_TURN = 2_000  # characters
MAX_QUESTION = 2_000


async def stand_alone(question: str, history: Sequence[Turn], llm: LLM) -> str:
    """Return the question as it reads without the conversation, "" where the reply holds none.

    Raises as `LLM.complete`.
    """
    recent = [Turn(role=turn.role, text=_cut(turn.text)) for turn in history[-MAX_TURNS:]]
    request = ChatRequest(
        messages=prompt.render_rewrite(question, recent),
        role=Role.KEYWORDS,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.REWRITE_SCHEMA,
        lifetime=ReplyLifetime.REVISION,  # earlier answers may have quoted what has been removed since
        subject=question,
    )
    return read_question((await llm.complete(request)).text)


def read_question(reply: str) -> str:
    """Return the question in a reply, on one line, "" where there is none or it is no question but a treatise."""
    said = parse_lenient_json(reply)
    text = said.get("question") if isinstance(said, dict) else None
    line = " ".join(text.split()) if isinstance(text, str) else ""
    return line if len(line) <= MAX_QUESTION else ""


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TURN else f"{text[:MAX_TURN]} …"
