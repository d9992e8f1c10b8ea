"""The prompt that asks a model to answer one of the questions a larger one led to, and for further ones (DRIFT)."""

from collections.abc import Sequence

from quipu.model.chat import Message
from quipu.prompts.numbered import FENCED, Item, numbered

TITLE = "Answer to a follow-up"
MAX_OUTPUT_TOKENS = 2_048

_RULES = f"""\
{TITLE}

You are shown excerpts of documents and reports on them, each under its number, a larger question, and one question it
led to. Answer that one. Reply with one JSON object and nothing else:

{{"answer": "...", "score": 0, "sources": [1], "follow_ups": ["..."]}}

- answer: the answer to the question, at most 250 words, understood without the texts. Only what the texts say, in the
  language of the question.
- score: how much the answer helps with the larger question, from 0, not at all, to 100, it is its answer.
- sources: the numbers of the texts it rests on.
- follow_ups: questions that are now worth asking for the larger one, the most telling first, five at most; an empty
  list where none is. Each is understood by itself, names what it is about, and asks for one thing.

{FENCED.format(what="Texts and questions")}"""


def render(question: str, larger: str, texts: Sequence[Item]) -> tuple[Message, ...]:
    """Return the messages; texts are titles with what they say, `larger` the question that led to this one."""
    asked = [("Larger question", larger), ("Question", question)]
    return Message("system", _RULES), Message("user", numbered(texts, asked))
