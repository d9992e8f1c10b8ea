"""The prompt that asks a model how useful a report is for a question (dynamic selection of communities)."""

from quipu.model.chat import Message
from quipu.prompts.numbered import FENCED, Item, numbered

TITLE = "Use of a report"
MAX_OUTPUT_TOKENS = 512

SCHEMA = """\
{"type": "object", "additionalProperties": false, "required": ["rating"], "properties": {"rating": {"type": \
"integer"}}}"""

_RULES = f"""\
{TITLE}

You are shown a report on a part of a collection of documents, and a question. Say how useful that part is for the
answer. Reply with one JSON object and nothing else:

{{"rating": 0}}

0: it has nothing to do with the question. 1: it touches the question, or what lies beneath it may. 2 or 3: it holds
some of the answer. 4: it holds much of it. 5: it answers the question.

{FENCED.format(what="Report and question")}"""


def render(question: str, report: Item) -> tuple[Message, ...]:
    """Return the messages; the report is its title with its text."""
    return Message("system", _RULES), Message("user", numbered([report], [("Question", question)]))
