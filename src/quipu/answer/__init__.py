"""Answers: evidence in, cited text out."""

from quipu.answer.compose import compose
from quipu.answer.material import Material, gather
from quipu.answer.pack import Packed, Passage, pack
from quipu.answer.quoted import NOTHING_FOUND
from quipu.answer.stream import stream

__all__ = ["NOTHING_FOUND", "Material", "Packed", "Passage", "compose", "gather", "pack", "stream"]
