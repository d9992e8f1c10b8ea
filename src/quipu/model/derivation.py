"""Derivations: the record that one is kept, its state, and the cost and result of a refresh."""

from dataclasses import dataclass
from enum import StrEnum

# The derivations that are made on demand.
NAMES, SYNONYMS, SENTENCES = "names", "synonyms", "sentences"
COMMUNITIES, REPORTS, HIERARCHY = "communities", "reports", "hierarchy"
SUMMARIES = "summaries"  # always kept, if a model is set
# Not derivations, but stored with them: which imported graph the communities come from,
IMPORTED_GRAPH = "adopted"
# and the location of all communities that were ever imported, for a rebuild.
IMPORTED_COMMUNITIES = "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationRecord:
    """A note that a derivation is kept. `identity` is its algorithm, version and parameters.

    `revision` is the revision it was computed from.
    """

    name: str
    identity: str
    revision: int


class Freshness(StrEnum):
    """Whether a derivation agrees with the facts. A missing derivation was never built; nothing updates it."""

    FRESH = "fresh"
    STALE = "stale"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshCost:
    """The estimated cost of a refresh: calls of a language model, their tokens, and texts to embed.

    `money` is the cost of the calls in millionths of a unit of `currency`, None if no price is known.
    """

    n_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    n_texts: int = 0
    money: int | None = None
    currency: str = ""

    def __add__(self, other: "RefreshCost") -> "RefreshCost":
        """Return the sum. It has no price if one of the two needs calls that have no price."""
        is_priced = all(cost.money is not None or not cost.n_calls for cost in (self, other))
        return RefreshCost(
            n_calls=self.n_calls + other.n_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            n_texts=self.n_texts + other.n_texts,
            money=(self.money or 0) + (other.money or 0) if is_priced else None,
            currency=self.currency or other.currency,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationState:
    """The state of one derivation. `contents` describes it, for example "41 communities in 3 levels".

    `unavailable_reason` says why it cannot be refreshed now, and what to do; "" if it can. In a plan, `is_rebuild`
    means that all of it would be computed again, and `cost` is the estimated cost.
    """

    name: str
    freshness: Freshness
    contents: str = ""
    n_items: int = 0
    n_stale: int = 0
    n_bytes: int = 0
    cost: RefreshCost = RefreshCost()
    is_rebuild: bool = False
    unavailable_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationResult:
    """The result of refreshing one derivation: `n_built` items were computed, `n_unchanged` were already up to date.

    `n_reused` replies came from the cache. `failed` are (item, reason) pairs. `stopped` says why the refresh ended
    early, "" if it did not.
    """

    name: str
    n_built: int = 0
    n_unchanged: int = 0
    n_calls: int = 0
    n_reused: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    stopped: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairResult:
    """What a repair did, in words; if there are `faults` in facts or `losses` of facts, it changed nothing.

    `repaired` are the differences that there were, `left` those that there are. `stopped` says why the refresh that
    followed ended early, "" if it did not.
    """

    faults: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    stopped: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether the index equals what its facts give."""
        return not (self.faults or self.losses or self.left)
