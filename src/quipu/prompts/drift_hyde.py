"""The prompt that asks a model to imagine the report that would answer a question, to search with it (DRIFT)."""

from quipu.model.chat import Message
from quipu.prompts.numbered import FENCED, Item, numbered

TITLE = "Imagined report"
MAX_OUTPUT_TOKENS = 1_024

_RULES = f"""\
{TITLE}

You are shown a report from a collection, as an example, and a question. Write the report of that collection which would
answer the question, in the shape, tone and length of the example: title, summary, findings. It is used to search the
collection for reports like it and is read by nobody, so make up what you do not know, but use no name that stands
neither in the question nor in the example. Write plain text and nothing else, in the language of the example.

{FENCED.format(what="Example and question")}"""


def render(question: str, example: Item) -> tuple[Message, ...]:
    """Return the messages; the example is the title of a report with its text."""
    return Message("system", _RULES), Message("user", numbered([example], [("Question", question)]))
