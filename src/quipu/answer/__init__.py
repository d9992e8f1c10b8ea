"""Answers: evidence in, cited text out: pack, render, quote or write, check, cite."""

from quipu.answer.answer_input import AnswerInput, read_answer_input
from quipu.answer.composition import compose_answer
from quipu.answer.context import PackedEvidence, Passage
from quipu.answer.extractive import NOTHING_FOUND
from quipu.answer.packing import pack_evidence

__all__ = [
    "NOTHING_FOUND",
    "AnswerInput",
    "PackedEvidence",
    "Passage",
    "compose_answer",
    "pack_evidence",
    "read_answer_input",
]
