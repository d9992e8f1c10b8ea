"""Answers: evidence in, cited text out."""

from quipu.answer.compose import NOTHING_FOUND, compose
from quipu.answer.pack import Packed, Passage, pack

__all__ = ["NOTHING_FOUND", "Packed", "Passage", "compose", "pack"]
