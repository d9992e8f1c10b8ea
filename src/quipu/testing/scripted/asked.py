"""Asked: what kind of prompt arrived and what it holds, known by how it opens and by its boundary lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from quipu.model.chat import Message
from quipu.prompts import (
    aggregate,
    community_search,
    drift,
    extraction,
    question,
    report,
    summary,
    tuning,
)
from quipu.testing.scripted.kind import Kind

# How the rules of each prompt begin; the prompts of quipu.prompts are all known, and a test says so.
_KIND_BY_OPENING = {
    extraction.TITLE: Kind.EXTRACT,
    "You find keywords": Kind.KEYWORDS,
    summary.TITLE: Kind.SUMMARISE,
    report.TITLE: Kind.REPORT,
    "You answer questions": Kind.ANSWER,
    "You rewrite the last question": Kind.REWRITE,
    "Judgement of an answer": Kind.JUDGE,
    community_search.MAP_TITLE: Kind.POINTS,
    community_search.RATING_TITLE: Kind.RATE,
    drift.HYDE_TITLE: Kind.IMAGINE,
    drift.PRIMER_TITLE: Kind.PRIMER,
    drift.FOLLOW_UP_TITLE: Kind.FOLLOW_UP,
    question.FACTS_TITLE: Kind.FACTS,
    question.TERMS_TITLE: Kind.TERMS,
    aggregate.TITLE: Kind.AGGREGATE,
    aggregate.RELATION_TITLE: Kind.CONNECT,
    tuning.TITLE: Kind.TUNE,
}
_GO_ON = (extraction.render_continuation("lines"), extraction.render_continuation("json"))
_MARK = r"#[0-9a-f]{8,32}#"
_BOUNDED = re.compile(rf"^({_MARK})[ \t]*\n(?:(.*)\n)?\1[ \t]*$", re.MULTILINE | re.DOTALL)
_QUESTION = re.compile(rf"^(?:{_MARK})?Question:?[ \t]*\n?(.+)\Z", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A prompt as understood.

    `text` stands between the boundary lines, or is the whole first message of the user; `boundary` is that line or "".
    `question` is what follows the line "Question" behind the text or within it, or the text; `history` what stands
    before that line. `said` are the model's earlier replies, `whole` is
    everything.
    """

    kind: Kind
    text: str
    boundary: str
    question: str
    history: str
    said: tuple[str, ...]
    whole: str


def understand(messages: Sequence[Message]) -> Asked:
    """Return what the messages ask for."""
    first = next((message.text for message in messages if message.role == "user"), "")
    bounded = _bounded(messages)
    text = (bounded.group(2) or "") if bounded else first
    after = bounded.string[bounded.end() :] if bounded else ""
    question = _QUESTION.search(after) or _QUESTION.search(text)
    said = tuple(message.text for message in messages if message.role == "assistant")
    return Asked(
        kind=_kind(messages, said),
        text=text,
        boundary=bounded.group(1) if bounded else "",
        question=question.group(1).strip() if question else text.strip(),
        history=question.string[: question.start()] if question else "",
        said=said,
        whole="\n".join(message.text for message in messages),
    )


def _bounded(messages: Sequence[Message]) -> re.Match[str] | None:
    found = (_BOUNDED.search(message.text) for message in messages if message.role == "user")
    return next((match for match in found if match), None)


def _kind(messages: Sequence[Message], said: Sequence[str]) -> Kind:
    heads = [message.text.lstrip().partition("\n")[0] for message in messages if message.role != "assistant"]
    kinds = (kind for head in heads for opening, kind in _KIND_BY_OPENING.items() if head.startswith(opening))
    kind = next(kinds, Kind.OTHER)
    if kind is Kind.EXTRACT and said:
        is_cut = not said[-1].rstrip().endswith((extraction.DONE, "}")) or messages[-1].text in _GO_ON
        return Kind.CONTINUE if is_cut else Kind.GLEAN
    return kind
