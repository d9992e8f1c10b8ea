"""The prompts that ask a model to judge an answer, its passages or two answers, and to write the question of passages.

They cannot be replaced: figures are comparable only if the judge is asked the same.

Sources: S. Es et al., "RAGAS: Automated Evaluation of Retrieval Augmented Generation" (2023), for statements, questions
and passages; D. Edge et al., "From Local to Global" (2024), for the criteria of grades and pairs.
"""

import json
from collections.abc import Sequence

from quipu.model.chat import Message
from quipu.prompts.instructions import Instructions, TitledText, fence_rules, numbered_message

TITLE = "Judgement of an answer"
N_QUESTIONS = 3
MAX_GRADE = 10
CRITERIA = ("comprehensiveness", "diversity", "empowerment", "overall")

_STATEMENTS = """\
You are shown evidence, a question and an answer. Take the answer apart into statements, and say of each whether the
evidence says it or it follows from the evidence alone. What you know yourself does not count. Reply with one JSON
object and nothing else:

{format}

- statement: one fact of the answer, in a sentence that is understood alone: names instead of pronouns.
- Leave out what states nothing, such as numbers of sources, headings, and remarks about the evidence.
- An empty list where the answer states nothing."""

_QUESTION = """\
You are shown one passage or two of a collection of documents, each under its number. Write one question about them that
somebody would ask who has not seen them, and its answer. Reply with one JSON object and nothing else:

{format}

- question: in the language of the passages. It is understood alone: it names what it is about, and speaks of no
  passage, text or document. With two passages, nobody can answer it without both.
- answer: a few words, copied from a passage letter by letter.
- Leave both empty where the passages say nothing that anybody would ask for."""

_QUESTIONS = """\
You are shown an answer without its question. Write three different questions that it answers, in its language. Reply
with one JSON object and nothing else:

{format}

- evasive: true where the answer says that it does not know, or that there is no answer."""

_PASSAGES = """\
You are shown passages, each under its number, a question, and the expected answer. Say which passages help to arrive at
the expected answer: those that state it, or a part of it. Reply with one JSON object and nothing else:

{format}"""

_MEANINGS = """\
- comprehensiveness: how fully and in what detail it covers what the question asks.
- diversity: how many different points of view and insights it offers.
- empowerment: how well it helps a reader to understand the subject and to judge for themselves.
- overall: all of these together."""

_GRADES = f"""\
You are shown a question and an answer. Grade the answer on each criterion, from 0, useless, to 10, it could not be
better. Reply with one JSON object and nothing else:

{{format}}

{_MEANINGS}"""

_PAIR = f"""\
You are shown a question and two answers, each under its number. Say which is better on each criterion: 1 or 2, or 0
where neither is. Neither their order nor their length is a merit. Reply with one JSON object and nothing else:

{{format}}

{_MEANINGS}"""


def _instructions(name: str, purpose: str, text: str, reply: str, contents: str) -> Instructions:
    return Instructions(
        name=f"judge_{name}",
        purpose=purpose,
        title=TITLE,
        text=text,
        fixed={"format": reply},
        fence=fence_rules(contents),
    )


_NUMBERS = json.dumps(dict.fromkeys(CRITERIA, 0))
STATEMENTS = _instructions(
    "statements",
    "which statements of an answer its evidence supports",
    _STATEMENTS,
    '{"statements": [{"statement": "...", "supported": true}]}',
    "Evidence, question and answer",
)
QUESTION = _instructions(
    "question",
    "a question that passages answer, to measure strategies with",
    _QUESTION,
    '{"question": "...", "answer": "..."}',
    "The passages",
)
QUESTIONS = _instructions(
    "questions",
    "questions that an answer would answer",
    _QUESTIONS,
    '{"questions": ["...", "...", "..."], "evasive": false}',
    "The answer",
)
PASSAGES = _instructions(
    "passages",
    "which passages help to arrive at the expected answer",
    _PASSAGES,
    '{"useful": [1, 3]}',
    "Passages, question and expected answer",
)
GRADES = _instructions("grades", "grades of an answer", _GRADES, _NUMBERS, "Question and answer")
PAIR = _instructions("pair", "the better of two answers", _PAIR, _NUMBERS, "Answers and question")


def render(instructions: Instructions, texts: Sequence[TitledText], named: Sequence[TitledText]) -> tuple[Message, ...]:
    """Return the messages of a judgement: numbered texts, and then others under their names, as "Question"."""
    return Message("system", instructions.render()), numbered_message(texts, named)
