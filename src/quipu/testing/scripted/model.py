"""A scripted model: requests in, replies with their faults and latencies out, without a wire between."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quipu.model.chat import FinishReason, Message, TokenCount
from quipu.model.ids import digest
from quipu.testing.scripted.answering import Answerer
from quipu.testing.scripted.asked import Asked, understand
from quipu.testing.scripted.fate import Fate, Lot
from quipu.testing.scripted.fault import FaultName
from quipu.testing.scripted.kind import Kind
from quipu.testing.scripted.script import Script
from quipu.testing.scripted.tokens import PrefixMemory, count_prompt, count_tokens, first_tokens
from quipu.testing.scripted.vectors import embed_words, score_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A chat request: `max_tokens` None for no limit, `schema` None for free text, "" for any JSON."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A reply to a chat request and what it costs; `text_hash` is that of the text the prompt was about."""

    lot: Lot
    text: str
    finish: FinishReason
    tokens: TokenCount
    text_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A reply in numbers, one row a text, in the order of `indices`: vectors, or scores of one column."""

    lot: Lot
    rows: npt.NDArray[np.float32]
    indices: tuple[int, ...]
    n_tokens: int
    text_hash: str


class ScriptedModel:
    """Follows a script; remembers only how often it was asked the same, and how prompts began."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._fate = Fate(script)
        self._answerer = Answerer(script.answering)
        self._prefixes = PrefixMemory()

    def speak(self, call: Call) -> Spoken:
        """Return the reply to a chat request; what its fault does on the way is left to the caller."""
        asked = understand(call.messages)
        texts = [message.text for message in call.messages]
        roles = [message.role for message in call.messages]
        key = digest(call.model, str(call.max_tokens), str(call.schema), *roles, *texts)
        lot = self._fate.draw(asked.kind, key, asked.whole)
        schema = None if self.script.service.ignores_format else call.schema
        text, finish = _limited(self._answerer.answer(asked, lot, schema), lot, call.max_tokens)
        cached = self._prefixes.count_cached(texts) if self.script.service.caches_prefixes else 0
        tokens = TokenCount(input=count_prompt(texts), cached=cached, output=count_tokens(text))
        return Spoken(lot=lot, text=text, finish=finish, tokens=tokens, text_hash=_text_hash(asked))

    def embed(self, model: str, texts: Sequence[str], dimension: int | None = None) -> Numbers:
        """Return a vector for each text, spoiled where a fault strikes."""
        lot = self._fate.draw(Kind.EMBED, digest("embed", model, str(dimension), *texts), "\n".join(texts))
        length = dimension or self.script.service.dimension
        if lot.fault and lot.fault.name is FaultName.DIMENSION:
            length += 1
        return _spoiled(lot, embed_words(texts, length), texts)

    def score(self, model: str, question: str, texts: Sequence[str]) -> Numbers:
        """Return a score for each text, spoiled where a fault strikes."""
        lot = self._fate.draw(Kind.RERANK, digest("rerank", model, question, *texts), "\n".join((question, *texts)))
        scores = np.array(score_words(question, texts), dtype=np.float32).reshape(len(texts), 1)
        return _spoiled(lot, scores, (question, *texts))


def pieces_of(text: str, length: int) -> list[str]:
    """Return a text in pieces of this many characters."""
    return [text[start : start + length] for start in range(0, len(text), length)]


def _limited(text: str, lot: Lot, max_tokens: int | None) -> tuple[str, FinishReason]:
    """Return the text cut where its fault or the limit on output cuts it."""
    name = lot.fault.name if lot.fault else None
    if name is FaultName.FILTERED:
        return text[: len(text) // 2], FinishReason.FILTERED
    half = text[: len(text) // 2] if name is FaultName.LENGTH else text
    limited = half if max_tokens is None else first_tokens(half, max_tokens)
    is_cut = name in (FaultName.LENGTH, FaultName.LOOP) or limited != half
    return limited, FinishReason.LENGTH if is_cut else FinishReason.STOP


def _spoiled(lot: Lot, rows: npt.NDArray[np.float32], texts: Sequence[str]) -> Numbers:
    indices = tuple(range(len(rows)))
    name = lot.fault.name if lot.fault else None
    if name is FaultName.COUNT:
        indices = indices[:-1]
    elif name is FaultName.SHUFFLED:
        indices = indices[::-1]
    elif name is FaultName.NAN and len(rows):
        rows[-1, 0] = np.nan
    n_tokens = sum(count_tokens(text) for text in texts)
    return Numbers(lot=lot, rows=rows[list(indices)], indices=indices, n_tokens=n_tokens, text_hash=digest(*texts))


def _text_hash(asked: Asked) -> str:
    return digest(asked.text)
