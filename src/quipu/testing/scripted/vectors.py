"""Vectors: texts as unit vectors of their hashed words, so that texts with words in common are near."""

import re
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

_WORD = re.compile(r"[^\W_]+")
_N_PLACES = 4  # of a word


def embed_words(texts: Sequence[str], dimension: int) -> npt.NDArray[np.float32]:
    """Return one unit vector a text, shape [n, dimension]; a text without words gets a zero vector."""
    vectors = np.zeros((len(texts), dimension), dtype=np.float32)
    for vector, text in zip(vectors, texts, strict=True):
        for word in _WORD.findall(text.casefold()):
            _add_word(vector, word)
    lengths = np.sqrt(np.sum(vectors.astype(np.float64) ** 2, axis=1, keepdims=True))
    return (vectors / np.where(lengths, lengths, 1.0)).astype(np.float32)


def score_words(question: str, texts: Sequence[str]) -> list[float]:
    """Return for each text the share of the question's words that stand in it."""
    wanted = set(_WORD.findall(question.casefold()))
    return [len(wanted & set(_WORD.findall(text.casefold()))) / max(1, len(wanted)) for text in texts]


def _add_word(vector: npt.NDArray[np.float32], word: str) -> None:
    hashed = blake2b(word.encode("utf-8", "replace"), digest_size=4 * _N_PLACES).digest()
    for start in range(0, len(hashed), 4):
        number = int.from_bytes(hashed[start : start + 4], "little")
        vector[(number >> 1) % len(vector)] += 1.0 if number & 1 else -1.0
