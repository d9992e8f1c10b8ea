"""Prompts of global search over community reports: rate a report (dynamic selection) and list its points (map step).

Source: D. Edge et al., "From Local to Global" (2024), and dynamic community selection of Microsoft GraphRAG.
"""

from collections.abc import Sequence

from quipu.model.chat import Message, PromptText
from quipu.prompts.instructions import Instructions, TitledText, fence_rules, numbered_message

MAP_TITLE = "Points in reports"
RATING_TITLE = "Use of a report"
MAP_MAX_OUTPUT_TOKENS = 2_048
RATING_MAX_OUTPUT_TOKENS = 512

MAP_SCHEMA = """\
{"type": "object", "additionalProperties": false, "required": ["points"], "properties": {"points": {"type": "array", \
"items": {"type": "object", "additionalProperties": false, "required": ["text", "score", "reports"], "properties": \
{"text": {"type": "string"}, "score": {"type": "integer"}, "reports": {"type": "array", "items": {"type": \
"integer"}}}}}}}"""

RATING_SCHEMA = """\
{"type": "object", "additionalProperties": false, "required": ["rating"], "properties": {"rating": {"type": \
"integer"}}}"""

_POINTS_TEXT = """\
You are shown some of the reports on a collection of documents, each under its number, and a question about the whole
collection. Note what these reports hold towards an answer; somebody else writes it, from the points found in all
reports. Reply with one JSON object and nothing else:

{format}

- text: one point, in one to three sentences that are understood without the reports: names instead of pronouns, numbers
  and dates as they are. Only what the reports say, in the language of the question.
- score: what the point is worth for the answer, from 0, nothing, to 100, all of it.
- reports: the numbers of the reports that say so, five at most.
- The most telling points first, twelve at most. An empty list where the reports say nothing about the question."""

_RATING_TEXT = """\
You are shown a report on a part of a collection of documents, and a question. Say how useful that part is for the
answer. Reply with one JSON object and nothing else:

{format}

0: it has nothing to do with the question. 1: it touches the question, or what lies beneath it may. 2 or 3: it holds
some of the answer. 4: it holds much of it. 5: it answers the question."""

POINTS = Instructions(
    name="points",
    purpose="points in reports that help with a question (`community_global`)",
    title=MAP_TITLE,
    text=_POINTS_TEXT,
    fixed={"format": '{"points": [{"text": "...", "score": 0, "reports": [1]}]}'},
    fence=fence_rules("Reports and question"),
)
RATING = Instructions(
    name="rating",
    purpose="how useful a report is for a question (`community_global`)",
    title=RATING_TITLE,
    text=_RATING_TEXT,
    fixed={"format": '{"rating": 0}'},
    fence=fence_rules("Report and question"),
)


def render_map(question: str, reports: Sequence[TitledText], texts: Sequence[PromptText] = ()) -> tuple[Message, ...]:
    """Return the messages that ask for the points some reports contribute to the answer, each with a score."""
    return Message("system", POINTS.render(texts)), numbered_message(reports, [("Question", question)])


def render_rating(question: str, report: TitledText, texts: Sequence[PromptText] = ()) -> tuple[Message, ...]:
    """Return the messages that ask how useful one report is for the question, from 0 to 5."""
    return Message("system", RATING.render(texts)), numbered_message([report], [("Question", question)])
