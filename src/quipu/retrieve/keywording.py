"""Keywording: a model says what a question names and what it is about; no view is open while it thinks."""

from collections.abc import Iterator

from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.query import Keywords, Query
from quipu.ports.providers import LLM
from quipu.prompts import question as prompt
from quipu.text.lenient_json import parse_lenient_json

MAX_KEYWORDS = 20
MAX_LENGTH = 200  # characters


async def find_keywords(query: Query, llm: LLM) -> Keywords:
    """Return the keywords a model finds in what is searched for, none where its reply holds none.

    Raises as `LLM.complete`.
    """
    request = ChatRequest(
        messages=prompt.render_keywords(query.as_searched().text),
        role=Role.KEYWORDS,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.KEYWORDS_SCHEMA,
        lifetime=ReplyLifetime.REVISION if query.search_text else ReplyLifetime.FREE,  # as of the rewritten question
        subject=query.text,
    )
    return read_keywords((await llm.complete(request)).text)


def read_keywords(reply: str) -> Keywords:
    """Return the keywords of a reply, each once, without what is no keyword."""
    said = parse_lenient_json(reply)
    if not isinstance(said, dict):
        return Keywords()
    low, high = (tuple(dict.fromkeys(_keywords(said.get(f"{level}_level_keywords")))) for level in ("low", "high"))
    return Keywords(low_level=low[:MAX_KEYWORDS], high_level=high[:MAX_KEYWORDS])


def _keywords(said: object) -> Iterator[str]:
    values = said.split(",") if isinstance(said, str) else said if isinstance(said, list) else []
    for value in values:
        keyword = " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
        if keyword and len(keyword) <= MAX_LENGTH:
            yield keyword
