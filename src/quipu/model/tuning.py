"""Tuning: an ontology suggested from a sample of the documents, and how it changes their extraction."""

from dataclasses import dataclass

from quipu.model.extraction import GlossaryTerm, Ontology
from quipu.model.usage import Range, UsageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledChunk:
    """A chunk of the sample. `is_compared` marks chunks that are only used to compare extractions."""

    chunk_id: str
    document_id: str
    title: str
    n_tokens: int
    is_compared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeCount:
    """How often the rules found an entity type, with example names."""

    name: str
    n: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedName:
    """An entity name and its type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionOutcome:
    """The entities and the number of relations extracted from a chunk. `error` says why extraction was incomplete."""

    entities: tuple[TypedName, ...] = ()
    n_relations: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionComparison:
    """The extraction of one chunk before and after tuning.

    `only_before` and `only_after` are names that only one of the two contains. `retyped` are names that both contain
    with different types.
    """

    chunk_id: str
    document_id: str
    title: str
    before: ExtractionOutcome
    after: ExtractionOutcome
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningCost:
    """The estimated cost of tuning. `money` is in millionths of a unit of `currency`, None if no price is known."""

    model: str
    calls: Range
    input_tokens: Range
    output_tokens: Range
    money: Range | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningOrigin:
    """The inputs of a suggestion. Equal origins and equal replies of the model give equal suggestions.

    `revision` is the revision of the index whose documents were read, None if the caller passed documents. `sample` is
    a digest of the chosen chunks and of the chunks that the rules counted. `settings` are (name, value) pairs of all
    settings that influence the result.
    """

    revision: int | None
    n_documents: int
    sample: str
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    """The result of `tune`: a suggested ontology and what it changes.

    `file` is the text of the ontology file, "" if only the cost was requested; it also states `origin`. `method` says
    what produced the suggestion. `type_counts` and `glossary` (a suggestion) are what the rules found in a part of all
    chunks. `prompt_diff` is a unified diff of the extraction prompt before and after tuning. `stopped` says why tuning
    ended early, "" if it did not.
    """

    file: str
    ontology: Ontology
    method: str
    n_documents: int
    n_unreadable: int = 0
    n_chunks: int = 0
    sample: tuple[SampledChunk, ...] = ()
    type_counts: tuple[TypeCount, ...] = ()
    glossary: tuple[GlossaryTerm, ...] = ()
    prompt_diff: str = ""
    comparisons: tuple[ExtractionComparison, ...] = ()
    cost: TuningCost | None = None
    notes: tuple[str, ...] = ()
    stopped: str = ""
    usage: tuple[UsageRow, ...] = ()
    origin: TuningOrigin | None = None
