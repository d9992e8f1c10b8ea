"""Estimates: what reading documents with a model will take, before it is spent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A number that is not known yet: what is likely, and between what it should lie."""

    low: float
    likely: float
    high: float

    def times(self, factor: "float | Range") -> "Range":
        """Return the product; with another range, low with low and high with high."""
        by = factor if isinstance(factor, Range) else Range(low=factor, likely=factor, high=factor)
        return Range(low=self.low * by.low, likely=self.likely * by.likely, high=self.high * by.high)

    def plus(self, other: "Range") -> "Range":
        """Return the sum."""
        return Range(low=self.low + other.low, likely=self.likely + other.likely, high=self.high + other.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What adding documents would take. `basis` says where the figures come from.

    `n_known` of the chunks are known from before and cost nothing. `cost` is in millionths of the price table's unit,
    None where the model has no price. `seconds` is the time of the model at the concurrency of the settings. Where a
    service computes the vectors, `embedder` is its model, and `embedded_tokens` and `embedding_cost` come on top.
    `sample_calls` and `sample_cost` are what was spent for this estimate; `n_sample_failed` of the `n_sampled` chunks
    could not be read, the first of them for `sample_error`. `extractor` says what would read; `n_read_otherwise` of
    the unchanged documents were not read by it, or by other settings, but as `read_otherwise_by` has it.
    """

    n_documents: int
    n_unchanged: int
    n_unreadable: int
    n_chunks: int
    n_known: int
    model: str
    basis: str
    calls: Range
    input_tokens: Range
    output_tokens: Range
    seconds: Range
    cost: Range | None
    sample_cost: int = 0
    sample_calls: int = 0
    n_sampled: int = 0
    n_sample_failed: int = 0
    sample_error: str = ""
    extractor: str = ""
    n_read_otherwise: int = 0
    read_otherwise_by: tuple[str, ...] = ()
    embedder: str = ""
    embedded_tokens: Range | None = None
    embedding_cost: Range | None = None

    @property
    def n_to_read(self) -> int:
        """How many chunks a model would be asked about."""
        return self.n_chunks - self.n_known
