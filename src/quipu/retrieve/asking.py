"""Asking: what a question must be before anything is searched for it."""

from quipu.errors import InvalidInput
from quipu.model.query import Query

MAX_QUESTION = 10_000  # characters
LEAST_BY_OPTION = {"top_k": 1, "chunk_top_k": 1, "related_chunks": 0}


def check(query: Query) -> None:
    """Raise InvalidInput for a question that is empty or a book, and for options that ask for less than nothing."""
    if not query.text.strip():
        raise InvalidInput("The question is empty.", remedy="Ask something.")
    if len(query.text) > MAX_QUESTION:
        raise InvalidInput(
            f"The question has {len(query.text):,} characters; at most {MAX_QUESTION:,} are read.",
            remedy="Shorten it, or add the text as a document and ask about it.",
        )
    for name, least in LEAST_BY_OPTION.items():
        if getattr(query, name) < least:
            raise InvalidInput(f"{name} = {getattr(query, name)} is too little.", remedy=f"Use {least} or more.")
