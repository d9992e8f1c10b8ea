"""Questions: what to ask, how, within which budgets and over which documents."""

from dataclasses import dataclass, field
from typing import Literal

Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "in", "contains", "exists"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One comparison on document metadata, as in `region = Asia` or `date >= 1500-01-01`."""

    field: str
    comparison: Comparison
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which documents a query may see; all parts must hold. Applied before any search or expansion.

    `documents` and `exclude` take ids or shell patterns (`letters/*`). `after` and `before` compare the metadata field
    `date` (ISO 8601; both inclusive); a document without one is left out when either is given.
    """

    documents: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    after: str = ""
    before: str = ""

    def is_empty(self) -> bool:
        """Say whether the filter lets every document through."""
        return not (self.documents or self.exclude or self.where or self.after or self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Token budgets of the context; the total includes prompt, entities, relations and passages."""

    entities: int = 6_000
    relations: int = 8_000
    total: int = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One earlier turn of the conversation."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and how to answer it.

    `top_k` entities or relations are searched, `chunk_top_k` passages kept; `min_similarity` is a cosine.
    `low_level_keywords` name things, `high_level_keywords` themes; given, they are used as they are.
    """

    text: str
    strategy: str = "mix"
    top_k: int = 40
    chunk_top_k: int = 20
    min_similarity: float = 0.2
    related_chunks: int = 5
    budget: Budget = field(default_factory=Budget)
    filter: Filter = field(default_factory=Filter)
    low_level_keywords: tuple[str, ...] = ()
    high_level_keywords: tuple[str, ...] = ()
    response_type: str = "Multiple Paragraphs"
    user_prompt: str = ""
    history: tuple[Turn, ...] = ()
