"""Terms: which terms of the glossary a chunk speaks of."""

from collections.abc import Sequence

from quipu.ingest.llm.grounds import Grounds
from quipu.model.extraction import GlossaryTerm

MAX_TERMS = 30


def terms_in(grounds: Grounds, glossary: Sequence[GlossaryTerm]) -> tuple[GlossaryTerm, ...]:
    """Return the terms whose name or alias stands in the chunk, its title or headings; at most MAX_TERMS, in order."""
    found = [term for term in glossary if any(map(grounds.hold_exactly, (term.name, *term.aliases)))]
    return tuple(found[:MAX_TERMS])
