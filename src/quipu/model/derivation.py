"""Derivations as a user sees them: what is kept, whether it is up to date, and what bringing it there would cost."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationRecord:
    """A derivation that is kept: what it was made by (algorithm, version, parameters), and of which revision."""

    name: str
    identity: str
    revision: int


# Derivations the store keeps in step with each commit know their names.
NAMES, SYNONYMS, SENTENCES, REPORTS = "names", "synonyms", "sentences", "reports"
ADOPTED = "adopted"  # no derivation: kept beside them, which recorded graph the communities were taken from
IMPORTED = "imported"  # nor is this: where all communities that ever came with an import are kept for a rebuild


class Freshness(StrEnum):
    """Whether a derivation agrees with the facts."""

    FRESH = "fresh"
    STALE = "stale"
    MISSING = "missing"  # never made: nothing keeps it until it is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshCost:
    """What bringing a derivation up to date would take, about: calls of a language model, tokens, texts to embed.

    `money` is what the calls would cost, in millionths of a unit; None where no price is known.
    """

    n_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    n_texts: int = 0
    money: int | None = None

    def __add__(self, other: "RefreshCost") -> "RefreshCost":
        """Return both together: without a price where either asks a model and has none."""
        is_priced = all(each.money is not None or not each.n_calls for each in (self, other))
        return RefreshCost(
            n_calls=self.n_calls + other.n_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            n_texts=self.n_texts + other.n_texts,
            money=(self.money or 0) + (other.money or 0) if is_priced else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationState:
    """The state of one derivation. `holds` says what there is, as in "41 communities in 3 levels".

    `hindrance` is why it cannot be refreshed as things stand, with the remedy; "" where it can. In a plan `is_anew`
    says that all of it would be made anew, and `cost` about what that would cost.
    """

    name: str
    freshness: Freshness
    holds: str = ""
    n_items: int = 0
    n_stale: int = 0
    n_bytes: int = 0
    cost: RefreshCost = RefreshCost()
    is_anew: bool = False
    hindrance: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationResult:
    """What refreshing one derivation did. `failed` are (what, why); `stopped` is why it ended early, "" otherwise."""

    name: str
    n_made: int = 0  # computed or written anew
    n_kept: int = 0  # found to be as they should be
    n_calls: int = 0
    n_reused: int = 0  # replies found again
    failed: tuple[tuple[str, str], ...] = ()
    stopped: str = ""
    notes: tuple[str, ...] = ()
