"""The prompt that asks a model what a few reports answer, and what should be looked up next (DRIFT, first step)."""

from collections.abc import Sequence

from quipu.model.chat import Message
from quipu.prompts.numbered import FENCED, Item, numbered

TITLE = "First answer from reports"
MAX_OUTPUT_TOKENS = 2_048

# Also that of the answers to what is followed up: `quipu.prompts.drift_follow_up`.
SCHEMA = """\
{"type": "object", "additionalProperties": false, "required": ["answer", "score", "sources", "follow_ups"], \
"properties": {"answer": {"type": "string"}, "score": {"type": "integer"}, "sources": {"type": "array", "items": \
{"type": "integer"}}, "follow_ups": {"type": "array", "items": {"type": "string"}}}}"""

_RULES = f"""\
{TITLE}

You are shown a few reports on parts of a collection of documents, each under its number, and a question. Say what they
answer, and what should be looked up in the documents themselves. Reply with one JSON object and nothing else:

{{"answer": "...", "score": 0, "sources": [1], "follow_ups": ["..."]}}

- answer: what the reports say towards an answer, at most 250 words, understood without them. Only what they say, in the
  language of the question.
- score: how much of the question it answers, from 0, nothing, to 100, all of it.
- sources: the numbers of the reports it rests on.
- follow_ups: five questions at least whose answers would complete yours, the most telling first: about what the reports
  name and leave open. Each is understood by itself, names what it is about, and asks for one thing.

{FENCED.format(what="Reports and question")}"""


def render(question: str, reports: Sequence[Item]) -> tuple[Message, ...]:
    """Return the messages; reports are titles with their texts."""
    return Message("system", _RULES), Message("user", numbered(reports, [("Question", question)]))
