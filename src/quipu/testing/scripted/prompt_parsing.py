"""Prompt parsing: the kind and the parts of a prompt, recognised by its first line and its boundary lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from quipu.model.chat import Message
from quipu.prompts import (
    aggregate,
    community_search,
    drift,
    extraction,
    judge,
    picture,
    question,
    report,
    summary,
    tuning,
)
from quipu.testing.scripted.script import RequestKind

# The first line of each prompt; a test checks that all prompts of quipu.prompts are here.
_KIND_BY_OPENING = {
    extraction.TITLE: RequestKind.EXTRACT,
    "You find keywords": RequestKind.KEYWORDS,
    summary.TITLE: RequestKind.SUMMARISE,
    picture.DESCRIPTION.title: RequestKind.PICTURE,
    picture.PAGE.title: RequestKind.PAGE,
    report.TITLE: RequestKind.REPORT,
    "You answer questions": RequestKind.ANSWER,
    "You rewrite the last question": RequestKind.REWRITE,
    judge.TITLE: RequestKind.JUDGE,
    community_search.MAP_TITLE: RequestKind.POINTS,
    community_search.RATING_TITLE: RequestKind.RATE,
    drift.HYDE_TITLE: RequestKind.IMAGINE,
    drift.PRIMER_TITLE: RequestKind.PRIMER,
    drift.FOLLOW_UP_TITLE: RequestKind.FOLLOW_UP,
    question.FACTS_TITLE: RequestKind.FACTS,
    question.TERMS_TITLE: RequestKind.TERMS,
    aggregate.TITLE: RequestKind.AGGREGATE,
    aggregate.RELATION_TITLE: RequestKind.CONNECT,
    tuning.TITLE: RequestKind.TUNE,
}
_CONTINUATIONS = (extraction.render_continuation("lines"), extraction.render_continuation("json"))
IMAGE = "Image: "  # begins what is written in a picture, behind the text of its message
_MARK = r"#[0-9a-f]{8,32}#"
_BOUNDED = re.compile(rf"^({_MARK})[ \t]*\n(?:(.*)\n)?\1[ \t]*$", re.MULTILINE | re.DOTALL)
_QUESTION = re.compile(rf"^(?:{_MARK})?Question:?[ \t]*\n?(.+)\Z", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPrompt:
    """The parts of a prompt.

    `text` is the text between the boundary lines, or the whole first user message; `boundary` is the boundary line or
    "". `question` follows the line "Question" after or inside the text; without one it is the text. `history` precedes
    that line. `earlier_replies` are the model's replies in the conversation, `full_text` is all messages together.
    """

    kind: RequestKind
    text: str
    boundary: str
    question: str
    history: str
    earlier_replies: tuple[str, ...]
    full_text: str


def parse_prompt(messages: Sequence[Message]) -> ParsedPrompt:
    """Return the parsed prompt of a conversation."""
    first = next((message.text for message in messages if message.role == "user"), "")
    bounded = _bounded(messages)
    text = (bounded.group(2) or "") if bounded else first
    after = bounded.string[bounded.end() :] if bounded else ""
    question = _QUESTION.search(after) or _QUESTION.search(text)
    earlier_replies = tuple(message.text for message in messages if message.role == "assistant")
    return ParsedPrompt(
        kind=_kind(messages, earlier_replies),
        text=text,
        boundary=bounded.group(1) if bounded else "",
        question=question.group(1).strip() if question else text.strip(),
        history=question.string[: question.start()] if question else "",
        earlier_replies=earlier_replies,
        full_text="\n".join(message.text for message in messages),
    )


def _bounded(messages: Sequence[Message]) -> re.Match[str] | None:
    matches = (_BOUNDED.search(message.text) for message in messages if message.role == "user")
    return next((match for match in matches if match), None)


def _kind(messages: Sequence[Message], earlier_replies: Sequence[str]) -> RequestKind:
    heads = [message.text.lstrip().partition("\n")[0] for message in messages if message.role != "assistant"]
    kinds = (kind for head in heads for opening, kind in _KIND_BY_OPENING.items() if head.startswith(opening))
    kind = next(kinds, RequestKind.OTHER)
    if kind is RequestKind.EXTRACT and earlier_replies:
        is_cut = (
            not earlier_replies[-1].rstrip().endswith((extraction.DONE, "}")) or messages[-1].text in _CONTINUATIONS
        )
        return RequestKind.CONTINUE if is_cut else RequestKind.GLEAN
    return kind
