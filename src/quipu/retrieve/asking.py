"""Asking: what a question must be before anything is searched for it."""

from math import inf

from quipu.errors import InvalidInput
from quipu.model.query import Query
from quipu.text.unicode import find_text_with_surrogate

MAX_QUESTION = 10_000  # characters
LEAST_BY_OPTION = {"top_k": 1, "chunk_top_k": 1, "related_chunks": 0, "community_level": 0, "drift_follow_ups": 0}


def check(query: Query) -> None:
    """Raise InvalidInput for a question that is empty, a book or no text, and for options that ask for too little."""
    if not query.text.strip():
        raise InvalidInput("The question is empty.", remedy="Ask something.")
    if len(query.text) > MAX_QUESTION:
        raise InvalidInput(
            f"The question has {len(query.text):,} characters; at most {MAX_QUESTION:,} are read.",
            remedy="Shorten it, or add the text as a document and ask about it.",
        )
    if text := find_text_with_surrogate(query):
        raise InvalidInput(
            f"{text[:80]!r} holds a lone surrogate: bytes that are not UTF-8 text.", remedy="Write it as UTF-8."
        )
    for name, least in LEAST_BY_OPTION.items():
        if getattr(query, name) < least:
            raise InvalidInput(f"{name} = {getattr(query, name)} is too little.", remedy=f"Use {least} or more.")
    weights = (query.mix_weights.entity, query.mix_weights.relation, query.mix_weights.vector)
    if not all(0 <= weight < inf for weight in weights) or not any(weights):
        raise InvalidInput(
            f"The arms of mix cannot weigh {', '.join(f'{weight:g}' for weight in weights)}.",
            remedy="Give each 0 or more, and one of them more than 0.",
        )
