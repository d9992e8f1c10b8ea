"""The prompt that asks a model for the points some reports hold towards an answer (the map step of global search)."""

from collections.abc import Sequence

from quipu.model.chat import Message
from quipu.prompts.numbered import FENCED, Item, numbered

TITLE = "Points in reports"
MAX_OUTPUT_TOKENS = 2_048

SCHEMA = """\
{"type": "object", "additionalProperties": false, "required": ["points"], "properties": {"points": {"type": "array", \
"items": {"type": "object", "additionalProperties": false, "required": ["text", "score", "reports"], "properties": \
{"text": {"type": "string"}, "score": {"type": "integer"}, "reports": {"type": "array", "items": {"type": \
"integer"}}}}}}}"""

_RULES = f"""\
{TITLE}

You are shown some of the reports on a collection of documents, each under its number, and a question about the whole
collection. Note what these reports hold towards an answer; somebody else writes it, from the points found in all
reports. Reply with one JSON object and nothing else:

{{"points": [{{"text": "...", "score": 0, "reports": [1]}}]}}

- text: one point, in one to three sentences that are understood without the reports: names instead of pronouns, numbers
  and dates as they are. Only what the reports say, in the language of the question.
- score: what the point is worth for the answer, from 0, nothing, to 100, all of it.
- reports: the numbers of the reports that say so, five at most.
- The most telling points first, twelve at most. An empty list where the reports say nothing about the question.

{FENCED.format(what="Reports and question")}"""


def render(question: str, reports: Sequence[Item]) -> tuple[Message, ...]:
    """Return the messages; reports are titles with their texts."""
    return Message("system", _RULES), Message("user", numbered(reports, [("Question", question)]))
