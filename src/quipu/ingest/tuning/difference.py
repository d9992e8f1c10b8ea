"""Difference: what tuning changes: in what a model is told, and in what it finds in a chunk."""

from difflib import unified_diff

from quipu.model.extraction import Extraction
from quipu.model.graph import Chunk
from quipu.model.tuning import ExtractionComparison, ExtractionOutcome, TypedName
from quipu.ports.ingest import ExtractionResult
from quipu.text.names import entity_key

CONTEXT = 1  # lines around what differs: those of the prompt are long


def prompt_diff(before: str, after: str) -> str:
    """Return a unified diff of two prompts, "" where they are the same."""
    lines = unified_diff(
        before.splitlines(), after.splitlines(), "prompt before", "prompt tuned", lineterm="", n=CONTEXT
    )
    return "\n".join(lines)


def compared(chunk: Chunk, before: ExtractionResult, after: ExtractionResult) -> ExtractionComparison:
    """Return what two readings of a chunk found, and which names are in one of them alone, or have another type."""
    one, other = _by_key(before), _by_key(after)
    return ExtractionComparison(
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        title=chunk.title,
        before=_reading(before),
        after=_reading(after),
        only_before=tuple(named.name for key, named in one.items() if key not in other),
        only_after=tuple(named.name for key, named in other.items() if key not in one),
        retyped=tuple(named.name for key, named in other.items() if key in one and one[key].type != named.type),
    )


def _reading(outcome: ExtractionResult) -> ExtractionOutcome:
    found = outcome.extraction or Extraction()
    return ExtractionOutcome(
        entities=tuple(_by_key(outcome).values()), n_relations=len(found.relations), error=outcome.error
    )


def _by_key(outcome: ExtractionResult) -> dict[str, TypedName]:
    found = outcome.extraction or Extraction()
    return {entity_key(each.name): TypedName(name=each.name, type=each.type) for each in found.entities}
