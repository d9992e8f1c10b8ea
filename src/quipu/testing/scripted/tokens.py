"""Tokens: the scripted models' own way of counting them, and of remembering the beginnings of prompts."""

from collections.abc import Sequence
from hashlib import blake2b

BYTES_A_TOKEN = 4
TOKENS_A_MESSAGE = 4

_BLOCK_TOKENS = 128
_MIN_CACHED_TOKENS = 1024


def count_tokens(text: str) -> int:
    """Return the number of tokens: four bytes each."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def count_prompt(texts: Sequence[str]) -> int:
    """Return the number of tokens of a prompt of these messages."""
    return sum(count_tokens(text) + TOKENS_A_MESSAGE for text in texts)


def first_tokens(text: str, n_tokens: int) -> str:
    """Return the beginning of a text, at most this many tokens of it."""
    return text.encode("utf-8", "replace")[: n_tokens * BYTES_A_TOKEN].decode("utf-8", "ignore")


class PrefixMemory:
    """Remembers the beginnings of prompts in blocks of 128 tokens, as providers with prompt caching do."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def count_cached(self, texts: Sequence[str]) -> int:
        """Return how many tokens of this prompt began an earlier one, 0 below 1,024; and remember it."""
        data = "\0".join(texts).encode("utf-8", "replace")
        state = blake2b(digest_size=16)
        n_known, is_known, size = 0, True, _BLOCK_TOKENS * BYTES_A_TOKEN
        for start in range(0, len(data) - size + 1, size):
            state.update(data[start : start + size])
            mark = state.digest()
            is_known = is_known and mark in self._seen
            n_known += is_known
            self._seen.add(mark)
        n_tokens = n_known * _BLOCK_TOKENS
        return n_tokens if n_tokens >= _MIN_CACHED_TOKENS else 0
