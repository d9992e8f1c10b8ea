"""The prompt that asks a model which of a few facts have to do with a question (recognition memory)."""

from collections.abc import Sequence

from quipu.model.chat import Message
from quipu.prompts.numbered import FENCED, Item, numbered

TITLE = "Facts of use"
MAX_OUTPUT_TOKENS = 512

SCHEMA = """\
{"type": "object", "additionalProperties": false, "required": ["relevant"], "properties": {"relevant": {"type": \
"array", "items": {"type": "integer"}}}}"""

_RULES = f"""\
{TITLE}

You are shown facts under their numbers, and a question. Say which of them help to find the answer: they name what the
question is about, or connect it with something that leads on. The answer itself need not be in them. Reply with one
JSON object and nothing else, the numbers in order of use:

{{"relevant": [2, 1]}}

Where none helps, the list is empty. As an example, for "Who founded the town where Mira Tal was born?" a fact on where
Mira Tal was born helps, and so does one on the founding of that town; one on another person of that name does not.

{FENCED.format(what="Facts and question")}"""


def render(question: str, facts: Sequence[Item]) -> tuple[Message, ...]:
    """Return the messages; a fact is its ends as a title, and what is said of them."""
    return Message("system", _RULES), Message("user", numbered(facts, [("Question", question)]))
