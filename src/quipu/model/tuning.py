"""Tuning: how documents should be read, worked out from a sample of them, and what that changes."""

from dataclasses import dataclass

from quipu.model.extraction import GlossaryTerm, Ontology
from quipu.model.usage import Range, UsageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledChunk:
    """A chunk of the sample; `is_compared` says that it was kept apart, to compare readings of it."""

    chunk_id: str
    document_id: str
    title: str
    n_tokens: int
    is_compared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeCount:
    """How often rules found a type, and as which names."""

    name: str
    n: int
    such_as: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedName:
    """A name and the type it was given."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionOutcome:
    """What one reading of a chunk found. `error` is why it could not be read, or not to its end."""

    entities: tuple[TypedName, ...] = ()
    n_relations: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionComparison:
    """A chunk read as before and as tuned; `only_before` and `only_after` are the names in one of them alone."""

    chunk_id: str
    document_id: str
    title: str
    before: ExtractionOutcome
    after: ExtractionOutcome
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()  # names that both have, with another type


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningCost:
    """What tuning would take; `money` is in millionths of the price table's unit, None where no price is known."""

    model: str
    calls: Range
    input_tokens: Range
    output_tokens: Range
    money: Range | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningOrigin:
    """What a suggestion was made from: equal ones, and equal replies of a model, make equal suggestions.

    `revision` is that of the index whose documents were looked at, None where others were named; `sample` is a digest
    of the chunks that were chosen and of those rules counted in, `settings` are names and values of all that has a say
    in what becomes of them.
    """

    revision: int | None
    n_documents: int
    sample: str
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    """What `tune` worked out.

    `file` is the text of an ontology file that says `ontology`, "" where it was only asked what it would take; `by`
    says who worked it out. `type_counts` and `glossary`, a suggestion, are what rules found in some of all chunks.
    `prompt_diff` is a unified diff of what a model is told of every text, as before and as tuned. `stopped` is why
    tuning ended before all was done, "" where it did not. `usage` is what models were asked for it. `origin` stands in
    the file too.
    """

    file: str
    ontology: Ontology
    by: str
    n_documents: int
    n_unreadable: int = 0
    n_chunks: int = 0
    sample: tuple[SampledChunk, ...] = ()
    type_counts: tuple[TypeCount, ...] = ()
    glossary: tuple[GlossaryTerm, ...] = ()
    prompt_diff: str = ""
    compared: tuple[ExtractionComparison, ...] = ()
    cost: TuningCost | None = None
    notes: tuple[str, ...] = ()
    stopped: str = ""
    usage: tuple[UsageRow, ...] = ()
    origin: TuningOrigin | None = None
