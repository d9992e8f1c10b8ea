"""The prompt of recognition memory (HippoRAG 2): which of a few facts help to answer a question."""

from collections.abc import Sequence

from quipu.model.chat import Message
from quipu.prompts.fence import FENCE_RULES, TitledText, numbered_message

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

{FENCE_RULES.format(what="Facts and question")}"""


def render(question: str, facts: Sequence[TitledText]) -> tuple[Message, ...]:
    """Return the messages; the title of a fact names its two entities, the text is the description of the relation."""
    return Message("system", _RULES), numbered_message(facts, [("Question", question)])
