"""Answers: evidence in, cited text out: pack, render, quote or write, check, cite."""

from quipu.answer.answer_input import AnswerInput, copies_by_document, documents_behind, read_answer_input
from quipu.answer.context import PackedEvidence, Passage
from quipu.answer.packing import pack_evidence
from quipu.answer.quoted_answer import NOTHING_FOUND, best_snippets
from quipu.answer.written_answer import compose_answer, is_small_talk, reply_to_small_talk

__all__ = [
    "NOTHING_FOUND",
    "AnswerInput",
    "PackedEvidence",
    "Passage",
    "best_snippets",
    "compose_answer",
    "copies_by_document",
    "documents_behind",
    "is_small_talk",
    "pack_evidence",
    "read_answer_input",
    "reply_to_small_talk",
]
