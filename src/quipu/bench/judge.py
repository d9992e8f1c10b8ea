"""Judge: a model judges answers by the measures of RAGAS, by grades, and against another answer; it writes questions.

The measures have the definitions of RAGAS (S. Es et al. 2023, and its documentation); the criteria of grades and pairs
are those of D. Edge et al. (2024). Pairs are judged in both orders, since judges prefer the first answer.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean
from typing import TypeVar

import quipu
from quipu.bench.datasets import GoldQuestion
from quipu.errors import InvalidInput
from quipu.model.answer import Answer
from quipu.model.chat import ChatRequest, Message, ReplyLifetime, Role
from quipu.model.event import EventSink, Progress, ignore_event
from quipu.prompts import judge as prompt
from quipu.prompts.instructions import Instructions, TitledText
from quipu.prompts.judge import CRITERIA, MAX_GRADE
from quipu.text.model_text import parse_lenient_json

T = TypeVar("T")

# Tokens of one judgement beside the evidence, for an estimate: instructions with an answer, and a reply.
_INPUT_TOKENS, _LONG_REPLY, _SHORT_REPLY = 600, 300, 40

MAX_PASSAGES = 10
MAX_OUTPUT_TOKENS = 2_048
_AT_ONCE = 8  # questions written at a time
N_ATTEMPTS = 2  # for a reply that cannot be read


class Judgement(StrEnum):
    """What a judge is asked: the measures of RAGAS, grades, or which of two answers is better."""

    RAGAS = "ragas"
    GRADES = "grades"
    PAIRS = "pairs"


RAGAS = ("faithful", "relevant", "context precision", "context recall")
GRADES = tuple(f"{name} grade" for name in CRITERIA)
WINS = tuple(f"{name} wins" for name in CRITERIA)
JUDGED = (*RAGAS, *GRADES, *WINS)


def estimate_judgements(
    kinds: Sequence[Judgement], n_answers: int, n_pairs: int, n_context: int, n_questions: int = 0
) -> tuple[int, int, int]:
    """Return the likely calls, input tokens and output tokens of judging answers and writing `n_questions`.

    `n_context` are tokens of all contexts.
    """
    calls, n_input, n_output = n_questions, n_questions * 2 * _INPUT_TOKENS, n_questions * _SHORT_REPLY
    if Judgement.RAGAS in kinds:
        calls += 4 * n_answers
        n_input += 3 * n_context + 4 * n_answers * _INPUT_TOKENS
        n_output += n_answers * (2 * _LONG_REPLY + 2 * _SHORT_REPLY)
    n_short = (n_answers if Judgement.GRADES in kinds else 0) + (2 * n_pairs if Judgement.PAIRS in kinds else 0)
    return calls + n_short, n_input + n_short * _INPUT_TOKENS, n_output + n_short * _SHORT_REPLY


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Asks the model of the role `judge`, by way of the engine, which caches, counts and limits the calls."""

    kb: quipu.Quipu
    kinds: Sequence[Judgement]

    async def figures(self, question: GoldQuestion, answer: Answer, rival: Answer | None) -> dict[str, float]:
        """Return what the judge says of an answer, each from 0 to 1; what does not apply or cannot be read is absent.

        `rival` is the answer that pairs compare it with, None for that answer itself. Refusals are not judged, but
        for a pair: there they lose, or neither wins.
        """
        figures: dict[str, float | None] = {}
        if answer.is_supported:
            if Judgement.RAGAS in self.kinds:
                figures |= await self._ragas(question, answer)
            if Judgement.GRADES in self.kinds:
                texts = [("Question", question.text), ("Answer", answer.text)]
                grades = await self._ask(prompt.GRADES, [], texts, read_grades) or {}
                figures |= {f"{name} grade": grade for name, grade in grades.items()}
        if Judgement.PAIRS in self.kinds and rival is not None:
            figures |= await self._wins(question, answer, rival)
        return {name: figure for name, figure in figures.items() if figure is not None}

    async def _ragas(self, question: GoldQuestion, answer: Answer) -> dict[str, float | None]:
        expected = "\n".join(question.answers)
        figures: dict[str, float | None] = {
            "faithful": await self._supported_share(answer.context, question.text, answer.text),
            "relevant": await self._relevancy(question.text, answer.text),
        }
        if not expected:
            return figures
        texts = [(await self.kb.chunk(hit.id)).chunk.text for hit in answer.trace.evidence.chunks[:MAX_PASSAGES]]
        named = [("Question", question.text), ("Expected answer", expected)]
        passages = [("Passage", text) for text in texts]
        useful = await self._ask(prompt.PASSAGES, passages, named, lambda reply: read_useful(reply, len(texts)))
        return figures | {
            "context precision": None if useful is None else context_precision(useful, len(texts)),
            "context recall": await self._supported_share(answer.context, question.text, expected),
        }

    async def _supported_share(self, context: str, question: str, text: str) -> float | None:
        named = [("Question", question), ("Answer", text)]
        verdicts = await self._ask(prompt.STATEMENTS, [("Evidence", context)], named, read_statements)
        return fmean(verdicts) if verdicts else None

    async def _relevancy(self, question: str, text: str) -> float | None:
        questions = await self._ask(prompt.QUESTIONS, [], [("Answer", text)], read_questions)
        if not questions:
            return None if questions is None else 0.0
        original, *written = await self.kb.embed([question, *questions])
        return fmean(max(0.0, float(vector @ original)) for vector in written)

    async def _wins(self, question: GoldQuestion, answer: Answer, rival: Answer) -> dict[str, float | None]:
        verdicts = []
        for own, texts in ((1, (answer.text, rival.text)), (2, (rival.text, answer.text))):
            numbered = [("Answer", text) for text in texts]
            verdict = await self._ask(prompt.PAIR, numbered, [("Question", question.text)], read_pair)
            if verdict:
                verdicts.append({name: winner and (1 if winner == own else 2) for name, winner in verdict.items()})
        return {f"{name} wins": share for name, share in win_shares(verdicts).items()}

    async def question(self, draft: GoldQuestion) -> GoldQuestion | None:
        """Return a question about the passages of a draft; None without one whose answer they hold word by word."""
        texts = [(await self.kb.chunk(chunk_id)).chunk.text for group in draft.gold for chunk_id in sorted(group)]
        passages = [("Passage", text) for text in texts]
        written = await self._ask(prompt.QUESTION, passages, [], lambda reply: read_question(reply, texts))
        return replace(draft, text=written[0], answers=written[1:]) if written else None

    async def _ask(
        self,
        instructions: Instructions,
        texts: Sequence[TitledText],
        named: Sequence[TitledText],
        read: Callable[[str], T | None],
    ) -> T | None:
        """Return what `read` makes of the reply; None if it cannot read two of them."""
        for attempt in range(N_ATTEMPTS):
            completion = await self.kb.complete(_request(prompt.render(instructions, texts, named), attempt))
            if (judged := read(completion.text)) is not None:
                return judged
        return None


async def written_questions(
    kb: quipu.Quipu, drafts: Sequence[GoldQuestion], on_event: EventSink = ignore_event
) -> tuple[GoldQuestion, ...]:
    """Return what the model of the role `judge` asks about the passages that each draft is made of.

    Drafts are those of `own_questions`. A question whose answer is not in its passages is left out. Raises what a call
    of the model raises, and InvalidInput if no question is left.
    """
    judge, questions = Judge(kb=kb, kinds=()), list[GoldQuestion]()
    for start in range(0, len(drafts), _AT_ONCE):
        on_event(Progress(stage="write", n_done=start, n_total=len(drafts)))
        written = await asyncio.gather(*map(judge.question, drafts[start : start + _AT_ONCE]))
        questions += filter(None, written)
    if not questions:
        raise InvalidInput(
            "The model wrote no question whose answer is in its passage.",
            remedy="Set another model in [role.judge], or make questions without one: --no-model.",
        )
    return tuple(questions)


def _request(messages: tuple[Message, ...], attempt: int) -> ChatRequest:
    return ChatRequest(
        messages=messages,
        role=Role.JUDGE,
        max_output_tokens=MAX_OUTPUT_TOKENS,
        attempt=attempt,
        lifetime=ReplyLifetime.REVISION,  # it quotes the documents
        subject=prompt.TITLE,
    )


def context_precision(useful: Iterable[int], n_passages: int) -> float:
    """Return the mean of the precision at the rank of each useful passage; ranks count from 1; 0 if none is useful."""
    ranks = sorted(rank for rank in set(useful) if 1 <= rank <= n_passages)
    return fmean(n / rank for n, rank in enumerate(ranks, 1)) if ranks else 0.0


def win_shares(verdicts: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """Return, for each criterion, the share of verdicts that answer 1 wins; a verdict 0 is half a win.

    A verdict names the better answer of each criterion: 1, 2, or 0 for neither.
    """
    shares = {}
    for name in CRITERIA:
        points = [1.0 if verdict[name] == 1 else 0.5 if verdict[name] == 0 else 0.0 for verdict in verdicts]
        if points:
            shares[name] = fmean(points)
    return shares


def read_statements(reply: str) -> list[bool] | None:
    """Return of each statement in a reply whether it is supported; None if there is no list of them."""
    parsed = parse_lenient_json(reply)
    statements = parsed.get("statements") if isinstance(parsed, dict) else None
    if not isinstance(statements, list):
        return None
    verdicts = [entry.get("supported") for entry in statements if isinstance(entry, dict)]
    return [_is_yes(verdict) for verdict in verdicts if isinstance(verdict, bool | int | str)]


def _is_yes(verdict: bool | int | str) -> bool:
    return verdict.strip().lower() in ("true", "yes", "1") if isinstance(verdict, str) else bool(verdict)


def read_questions(reply: str) -> list[str] | None:
    """Return the questions in a reply, none for an evasive answer; None if there are none to read."""
    parsed = parse_lenient_json(reply)
    if not isinstance(parsed, dict):
        return None
    if parsed.get("evasive") is True:
        return []
    questions = parsed.get("questions")
    texts = [text.strip() for text in questions if isinstance(text, str)] if isinstance(questions, list) else []
    return list(filter(None, texts))[: prompt.N_QUESTIONS] or None


def read_question(reply: str, passages: Sequence[str]) -> tuple[str, str] | None:
    """Return the question and the answer in a reply; None unless a passage holds the answer, whatever its case."""
    parsed = parse_lenient_json(reply)
    pair = (parsed.get("question"), parsed.get("answer")) if isinstance(parsed, dict) else ("", "")
    question, answer = (" ".join(text.split()) if isinstance(text, str) else "" for text in pair)
    is_held = any(answer.casefold() in " ".join(text.casefold().split()) for text in passages)
    return (question, answer) if question and answer and is_held else None


def read_useful(reply: str, n_passages: int) -> list[int] | None:
    """Return the numbers of useful passages in a reply; None if there is no list of them."""
    parsed = parse_lenient_json(reply)
    numbers = parsed.get("useful") if isinstance(parsed, dict) else None
    if not isinstance(numbers, list):
        return None
    return [number for number in numbers if isinstance(number, int) and 1 <= number <= n_passages]


def read_grades(reply: str) -> dict[str, float] | None:
    """Return the grades in a reply, each from 0 to 1; None unless there is one for every criterion."""
    grades = _numbers(reply)
    if grades is None or not all(0 <= grade <= MAX_GRADE for grade in grades.values()):
        return None
    return {name: grade / MAX_GRADE for name, grade in grades.items()}


def read_pair(reply: str) -> dict[str, int] | None:
    """Return the better answer by each criterion (1, 2, or 0 for neither); None unless a reply names all."""
    numbers = _numbers(reply)
    if numbers is None or not set(numbers.values()) <= {0, 1, 2}:
        return None
    return {name: int(number) for name, number in numbers.items()}


def _numbers(reply: str) -> dict[str, float] | None:
    parsed = parse_lenient_json(reply)
    values = parsed if isinstance(parsed, dict) else {}
    numbers = {name: values.get(name) for name in CRITERIA}
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers.values()):
        return None
    return {name: float(number) for name, number in numbers.items() if isinstance(number, int | float)}
