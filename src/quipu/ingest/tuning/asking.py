"""Asking: a model is shown a sample and suggests what to look for in documents like it."""

from collections.abc import Sequence
from dataclasses import dataclass

from quipu.errors import Refused, TooLong
from quipu.ingest.tuning.means import Means
from quipu.ingest.tuning.passages import excerpts
from quipu.ingest.tuning.suggestion import Suggestion, read_suggestion
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.graph import Chunk
from quipu.ports.providers import LLM
from quipu.prompts import tuning as prompt
from quipu.prompts.extraction import type_gloss

SAMPLE_TOKENS = (6_000, 3_000, 1_500, 750)  # of all passages shown; fewer where they do not fit the model's window
ATTEMPTS = 2
MAX_NOTES = 8  # on what a model suggested in vain


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """What a model suggests, None where that was of no use, and what to say of it."""

    suggestion: Suggestion | None
    notes: tuple[str, ...] = ()


async def ask_for_suggestion(llm: LLM, chunks: Sequence[Chunk], means: Means) -> Suggested:
    """Return what the model suggests. Raises what its call does, unless it refuses or has no room."""
    try:
        suggestion = await _suggestion(llm, chunks, means)
    except (Refused, TooLong) as error:
        note = f"The model made no suggestion, so this was counted by rules: {error}"
        return Suggested(suggestion=None, notes=(note,))
    if suggestion is None:
        note = "The model's replies were no suggestion, so this was counted by rules."
        return Suggested(suggestion=None, notes=(note,))
    notes = [*suggestion.notes[:MAX_NOTES]]
    if len(suggestion.notes) > MAX_NOTES:
        notes.append(f"… and {len(suggestion.notes) - MAX_NOTES:,} more were left out.")
    return Suggested(suggestion=suggestion, notes=tuple(notes))


def suggestion_request(chunks: Sequence[Chunk], means: Means, max_tokens: int, attempt: int = 0) -> ChatRequest:
    """Return what a model is asked about the beginnings of chunks, of `max_tokens` tokens together."""
    options = means.options
    types = [f"{rule.name}: {gloss}" if (gloss := type_gloss(rule)) else rule.name for rule in options.types]
    documents = tuple(sorted({chunk.document_id for chunk in chunks} & means.live))
    return ChatRequest(
        messages=prompt.render(
            excerpts(chunks, max_tokens, means.ingest_config.tokenizer), types, language=options.language
        ),
        role=Role.EXTRACT,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.SCHEMA,
        attempt=attempt,
        documents=documents,
        lifetime=ReplyLifetime.ALL_DOCUMENTS if documents else ReplyLifetime.DOCUMENTS,
    )


async def _suggestion(llm: LLM, chunks: Sequence[Chunk], means: Means) -> Suggestion | None:
    sizes = iter(SAMPLE_TOKENS)
    size = next(sizes)
    for attempt in range(ATTEMPTS):
        while True:
            try:
                completion = await llm.complete(suggestion_request(chunks, means, size, attempt))
                break
            except TooLong:
                smaller = next(sizes, None)
                if smaller is None:
                    raise
                size = smaller
        if suggestion := read_suggestion(completion.text, means.options.types):
            return suggestion
    return None
