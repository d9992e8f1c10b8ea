"""Scripted model: turns requests into replies, vectors and scores, with the faults and latencies of a script."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from quipu.model.chat import FinishReason, Message, TokenCount
from quipu.model.ids import digest
from quipu.testing.scripted.fault_injection import FaultInjector, RequestDraw
from quipu.testing.scripted.prompt_parsing import parse_prompt
from quipu.testing.scripted.replies import ScriptedReplyWriter
from quipu.testing.scripted.script import FaultName, RequestKind, Script

BYTES_A_TOKEN = 4
TOKENS_A_MESSAGE = 4

_BLOCK_TOKENS = 128
_MIN_CACHED_TOKENS = 1024


def count_tokens(text: str) -> int:
    """Return the number of tokens of `text`: four bytes each."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def count_prompt(texts: Sequence[str]) -> int:
    """Return the number of tokens of a prompt with these messages."""
    return sum(count_tokens(text) + TOKENS_A_MESSAGE for text in texts)


def first_tokens(text: str, n_tokens: int) -> str:
    """Return the beginning of `text`, at most `n_tokens` long."""
    return text.encode("utf-8", "replace")[: n_tokens * BYTES_A_TOKEN].decode("utf-8", "ignore")


class PrefixMemory:
    """Remembers prefixes of prompts in blocks of 128 tokens, as providers with prompt caching do."""

    def __init__(self) -> None:
        self._known_prefixes: set[bytes] = set()

    def count_cached(self, texts: Sequence[str]) -> int:
        """Return how many tokens of this prompt are a prefix of an earlier one (0 below 1,024), and remember it."""
        encoded = "\0".join(texts).encode("utf-8", "replace")
        state = blake2b(digest_size=16)
        n_known, is_known, size = 0, True, _BLOCK_TOKENS * BYTES_A_TOKEN
        for start in range(0, len(encoded) - size + 1, size):
            state.update(encoded[start : start + size])
            mark = state.digest()
            is_known = is_known and mark in self._known_prefixes
            n_known += is_known
            self._known_prefixes.add(mark)
        n_tokens = n_known * _BLOCK_TOKENS
        return n_tokens if n_tokens >= _MIN_CACHED_TOKENS else 0


_WORD = re.compile(r"[^\W_]+")
_N_POSITIONS = 4  # positions in the vector for each word


def embed_words(texts: Sequence[str], dimension: int) -> npt.NDArray[np.float32]:
    """Return one unit vector per text, [n, dimension]; texts without words get a zero vector."""
    vectors = np.zeros((len(texts), dimension), dtype=np.float32)
    for vector, text in zip(vectors, texts, strict=True):
        for word in _WORD.findall(text.casefold()):
            _add_word(vector, word)
    lengths = np.sqrt(np.sum(vectors.astype(np.float64) ** 2, axis=1, keepdims=True))
    return (vectors / np.where(lengths, lengths, 1.0)).astype(np.float32)


def score_words(question: str, texts: Sequence[str]) -> list[float]:
    """Return for each text the share of the question's words that it contains."""
    question_words = set(_WORD.findall(question.casefold()))
    return [len(question_words & set(_WORD.findall(text.casefold()))) / max(1, len(question_words)) for text in texts]


def _add_word(vector: npt.NDArray[np.float32], word: str) -> None:
    hashed = blake2b(word.encode("utf-8", "replace"), digest_size=4 * _N_POSITIONS).digest()
    for start in range(0, len(hashed), 4):
        number = int.from_bytes(hashed[start : start + 4], "little")
        vector[(number >> 1) % len(vector)] += 1.0 if number & 1 else -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """A chat request: `max_tokens` is None without a limit; `schema` is None for free text, "" for any JSON."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A reply to a chat request and its tokens; `text_hash` is the hash of the text inside the prompt."""

    draw: RequestDraw
    text: str
    finish: FinishReason
    tokens: TokenCount
    text_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericReply:
    """Vectors, or scores in one column: one row per text, in the order of `indices`."""

    draw: RequestDraw
    rows: npt.NDArray[np.float32]
    indices: tuple[int, ...]
    n_tokens: int
    text_hash: str


class ScriptedModel:
    """Follows a script. It only remembers how often each request was made and the prefixes of prompts."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._injector = FaultInjector(script)
        self._answerer = ScriptedReplyWriter(script.answering)
        self._prefixes = PrefixMemory()

    def complete(self, call: ChatCall) -> ChatReply:
        """Return the reply to a chat request; the caller simulates faults of the connection."""
        prompt = parse_prompt(call.messages)
        texts = [message.text for message in call.messages]
        roles = [message.role for message in call.messages]
        key = digest(call.model, str(call.max_tokens), str(call.schema), *roles, *texts)
        draw = self._injector.draw(prompt.kind, key, prompt.full_text)
        schema = None if self.script.service.ignores_format else call.schema
        text, finish = _cut_reply(self._answerer.answer(prompt, draw, schema), draw, call.max_tokens)
        cached = self._prefixes.count_cached(texts) if self.script.service.caches_prefixes else 0
        tokens = TokenCount(input=count_prompt(texts), cached=cached, output=count_tokens(text))
        return ChatReply(draw=draw, text=text, finish=finish, tokens=tokens, text_hash=digest(prompt.text))

    def embed(self, model: str, texts: Sequence[str], dimension: int | None = None) -> NumericReply:
        """Return a vector for each text, changed by the injected fault if there is one."""
        draw = self._injector.draw(RequestKind.EMBED, digest("embed", model, str(dimension), *texts), "\n".join(texts))
        length = dimension or self.script.service.dimension
        if draw.fault and draw.fault.name is FaultName.DIMENSION:
            length += 1
        return _apply_numeric_fault(draw, embed_words(texts, length), texts)

    def score(self, model: str, question: str, texts: Sequence[str]) -> NumericReply:
        """Return a score for each text, changed by the injected fault if there is one."""
        draw = self._injector.draw(
            RequestKind.RERANK, digest("rerank", model, question, *texts), "\n".join((question, *texts))
        )
        scores = np.array(score_words(question, texts), dtype=np.float32).reshape(len(texts), 1)
        return _apply_numeric_fault(draw, scores, (question, *texts))


def split_pieces(text: str, length: int) -> list[str]:
    """Return `text` in pieces of `length` characters."""
    return [text[start : start + length] for start in range(0, len(text), length)]


def _cut_reply(text: str, draw: RequestDraw, max_tokens: int | None) -> tuple[str, FinishReason]:
    """Return the text after it is cut by a fault or by the limit of output tokens, and the finish reason."""
    name = draw.fault.name if draw.fault else None
    if name is FaultName.FILTERED:
        return text[: len(text) // 2], FinishReason.FILTERED
    half = text[: len(text) // 2] if name is FaultName.LENGTH else text
    limited = half if max_tokens is None else first_tokens(half, max_tokens)
    is_cut = name in (FaultName.LENGTH, FaultName.LOOP) or limited != half
    return limited, FinishReason.LENGTH if is_cut else FinishReason.STOP


def _apply_numeric_fault(draw: RequestDraw, rows: npt.NDArray[np.float32], texts: Sequence[str]) -> NumericReply:
    indices = tuple(range(len(rows)))
    name = draw.fault.name if draw.fault else None
    if name is FaultName.COUNT:
        indices = indices[:-1]
    elif name is FaultName.SHUFFLED:
        indices = indices[::-1]
    elif name is FaultName.NAN and len(rows):
        rows[-1, 0] = np.nan
    n_tokens = sum(count_tokens(text) for text in texts)
    return NumericReply(
        draw=draw, rows=rows[list(indices)], indices=indices, n_tokens=n_tokens, text_hash=digest(*texts)
    )
