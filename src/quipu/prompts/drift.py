"""Prompts of DRIFT search: a hypothetical report, a first answer from reports, and answers to follow-up questions.

Source: Microsoft GraphRAG, DRIFT search (2024). The reply to the primer and to a follow-up has the same schema.
"""

from collections.abc import Sequence

from quipu.model.chat import Message
from quipu.model.query import Query
from quipu.prompts.instructions import Instructions, TitledText, fence_rules, numbered_message

HYDE_TITLE = "Imagined report"
PRIMER_TITLE = "First answer from reports"
FOLLOW_UP_TITLE = "Answer to a follow-up"
HYDE_MAX_OUTPUT_TOKENS = 1_024
MAX_OUTPUT_TOKENS = 2_048  # of the primer and of an answer to a follow-up question

SCHEMA = """\
{"type": "object", "additionalProperties": false, "required": ["answer", "score", "sources", "follow_ups"], \
"properties": {"answer": {"type": "string"}, "score": {"type": "integer"}, "sources": {"type": "array", "items": \
{"type": "integer"}}, "follow_ups": {"type": "array", "items": {"type": "string"}}}}"""

_FORMAT = '{"answer": "...", "score": 0, "sources": [1], "follow_ups": ["..."]}'

_HYDE_TEXT = """\
You are shown a report from a collection, as an example, and a question. Write the report of that collection which would
answer the question, in the shape, tone and length of the example: title, summary, findings. It is used to search the
collection for reports like it and is read by nobody, so make up what you do not know, but use no name that stands
neither in the question nor in the example. Write plain text and nothing else, in the language of the example."""

_PRIMER_TEXT = """\
You are shown a few reports on parts of a collection of documents, each under its number, and a question. Say what they
answer, and what should be looked up in the documents themselves. Reply with one JSON object and nothing else:

{format}

- answer: what the reports say towards an answer, at most 250 words, understood without them. Only what they say, in the
  language of the question.
- score: how much of the question it answers, from 0, nothing, to 100, all of it.
- sources: the numbers of the reports it rests on.
- follow_ups: five questions at least whose answers would complete yours, the most telling first: about what the reports
  name and leave open. Each is understood by itself, names what it is about, and asks for one thing."""

_FOLLOW_UP_TEXT = """\
You are shown excerpts of documents and reports on them, each under its number, a larger question, and one question it
led to. Answer that one. Reply with one JSON object and nothing else:

{format}

- answer: the answer to the question, at most 250 words, understood without the texts. Only what the texts say, in the
  language of the question.
- score: how much the answer helps with the larger question, from 0, not at all, to 100, it is its answer.
- sources: the numbers of the texts it rests on.
- follow_ups: questions that are now worth asking for the larger one, the most telling first, five at most; an empty
  list where none is. Each is understood by itself, names what it is about, and asks for one thing."""

HYDE = Instructions(
    name="hypothetical_report",
    purpose="a report that would answer a question (`drift`)",
    title=HYDE_TITLE,
    text=_HYDE_TEXT,
    fence=fence_rules("Example and question"),
)
PRIMER = Instructions(
    name="primer",
    purpose="a first answer and follow-up questions (`drift`)",
    title=PRIMER_TITLE,
    text=_PRIMER_TEXT,
    fixed={"format": _FORMAT},
    fence=fence_rules("Reports and question"),
)
FOLLOW_UP = Instructions(
    name="follow_up",
    purpose="the answer to a follow-up question (`drift`)",
    title=FOLLOW_UP_TITLE,
    text=_FOLLOW_UP_TEXT,
    fixed={"format": _FORMAT},
    fence=fence_rules("Texts and questions"),
)


def render_hyde(query: Query, example: TitledText) -> tuple[Message, ...]:
    """Return the messages that ask for a hypothetical report which answers the question (HyDE).

    `example` is the title and the text of a real report, whose form the model imitates.
    """
    return Message("system", HYDE.render(query.prompts)), numbered_message([example], [("Question", query.text)])


def render_primer(query: Query, reports: Sequence[TitledText]) -> tuple[Message, ...]:
    """Return the messages that ask what a few reports answer, and which questions to look up next."""
    return Message("system", PRIMER.render(query.prompts)), numbered_message(reports, [("Question", query.text)])


def render_follow_up(question: str, larger: Query, texts: Sequence[TitledText]) -> tuple[Message, ...]:
    """Return the messages that ask for the answer to a follow-up question, and for further questions.

    `larger` is the query that the follow-up came from, `texts` are chunks and reports with their titles.
    """
    questions = [("Larger question", larger.text), ("Question", question)]
    return Message("system", FOLLOW_UP.render(larger.prompts)), numbered_message(texts, questions)
