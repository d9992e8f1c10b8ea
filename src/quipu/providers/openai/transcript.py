"""Transcript: a reply as it comes in, whole or in pieces, in every form servers give it."""

import json
from collections.abc import Mapping

from quipu.model.chat import FinishReason, TokenCount
from quipu.providers.openai.fields import at, count_at, list_at, text_at
from quipu.providers.openai.said import Fault, said_in

_DONE = "[DONE]"
_CUT = ("length", "max_tokens", "model_length")
_FILTERED = ("content_filter", "safety", "recitation", "prohibited_content")
_BROKEN = ("error", "insufficient_system_resource", "aborted", "abort")


class Transcript:
    """What has come of one reply; its text can be written as UTF-8.

    Reasoning is counted and not kept, calls of tools are passed over. `is_done`: the server has said that this is all.
    Raises Fault where the server reports an error before any text; after some the reply is interrupted. A reply of more
    than `max_chars` characters ends there, as at a limit of tokens: a server that never ends is not listened to.
    """

    def __init__(self, max_chars: int = 10_000_000) -> None:
        self.tokens: TokenCount | None = None
        self.refusal = ""
        self.is_done = False
        self.n_replies = 0  # objects with a choice
        self._pieces: list[str] = []
        self._hidden: list[str] = []
        self._finish = ""
        self._half = ""
        self._is_broken = False
        self._room = max_chars

    @property
    def is_over(self) -> bool:
        """Whether more has come than a reply may have."""
        return self._room <= 0

    @property
    def text(self) -> str:
        """All of the text so far."""
        return "".join(self._pieces)

    @property
    def generated(self) -> str:
        """All the model wrote, as far as it was shown: its reasoning too."""
        return "".join((*self._hidden, *self._pieces))

    @property
    def finish(self) -> FinishReason:
        """Why the reply ended; `interrupted` while the server has said neither that it did nor why."""
        if self.is_over:
            return FinishReason.LENGTH
        reason = self._finish.lower()
        if self._is_broken or reason in _BROKEN or not (reason or self.is_done):
            return FinishReason.INTERRUPTED
        if reason in _CUT:
            return FinishReason.LENGTH
        if reason in _FILTERED:
            return FinishReason.FILTERED
        return FinishReason.STOP

    def take(self, data: str) -> str:
        """Take the data of one event; return the text it adds. What cannot be read is passed over."""
        if data.strip() == _DONE:
            self.is_done = True
            return ""
        try:
            event: object = json.loads(data)
        except (ValueError, RecursionError):
            return "".join(map(self.take, data.split("\n"))) if "\n" in data else ""
        return self.take_object(event)

    def take_object(self, event: object) -> str:
        """Take one parsed object, an event's or a whole reply; return the text it adds."""
        if not isinstance(event, dict):
            return ""
        choices = event.get("choices")
        if event.get("error"):
            if not choices and not self.text:
                raise Fault(said_in(200, {}, event))
            self._is_broken = True
        if usage := event.get("usage") or at(event, "x_groq", "usage"):
            self.tokens = _tokens(usage) or self.tokens
        if not isinstance(choices, list):
            return ""
        return "".join(
            [self._take_choice(each) for each in choices if isinstance(each, dict) and not each.get("index")]
        )

    def _take_choice(self, choice: Mapping[str, object]) -> str:
        """Take the first choice: read once for every token of a reply, hence plainly."""
        delta = choice.get("delta")
        part = delta if isinstance(delta, dict) else choice.get("message")
        self.n_replies += 1
        self._finish = text_at(choice, "finish_reason") if choice.get("finish_reason") else self._finish
        content = part.get("content") if isinstance(part, dict) else choice.get("text")
        if isinstance(part, dict) and (len(part) > 1 or not content):
            self.refusal += text_at(part, "refusal")
            self._hidden.append(text_at(part, "reasoning_content") or text_at(part, "reasoning"))
        text = self._whole_characters(content if isinstance(content, str) else _joined(content))[: self._room]
        self._room -= len(text)
        self._pieces.append(text)
        return text

    def _whole_characters(self, text: str) -> str:
        """Return a piece without half a character at its end, which waits for the other half."""
        text = self._half + text
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = text[: len(text) - len(self._half)]
        return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _joined(parts: object) -> str:
    """Return the text of a message whose content is a list of parts, of which some are text."""
    return "".join(text_at(each, "text") for each in list_at(parts))


def _tokens(usage: object) -> TokenCount | None:
    """Return what a server counted, None where it did not: no prompt has 0 tokens, and damage is no count.

    Gemini's and xAI's totals hold reasoning that their output leaves out; it is paid for as output.
    """
    given, output = count_at(usage, "prompt_tokens"), count_at(usage, "completion_tokens")
    if not given or (output is None and at(usage, "completion_tokens") is not None):
        return None
    total = count_at(usage, "total_tokens") or 0
    details = count_at(usage, "prompt_tokens_details", "cached_tokens")
    cached = details or count_at(usage, "prompt_cache_hit_tokens") or count_at(usage, "cached_tokens") or 0
    return TokenCount(input=given, cached=min(cached, given), output=max(output or 0, total - given))
