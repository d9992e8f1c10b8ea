"""Needs: whether the derivations a strategy reads are there, and what making or refreshing them would cost."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from quipu.derive.catalog import resolve_needs
from quipu.derive.derivation import Derivation, DerivationContext
from quipu.errors import Stale
from quipu.model.chat import TokenCount
from quipu.model.derivation import DerivationState, Freshness, RefreshCost
from quipu.model.results import RefreshResult
from quipu.model.usage import Price
from quipu.ports.store import ReadView
from quipu.retrieve.strategy import Strategy
from quipu.text.formatting import format_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Knows the state of every derivation made on demand; one is worked out once for each revision."""

    derivation_context: DerivationContext
    catalog: tuple[Derivation, ...]
    price: Price | None = None
    _known: dict[str, tuple[int, DerivationState]] = field(default_factory=dict)

    def of(self, strategy: Strategy) -> tuple[Derivation, ...]:
        """Return the derivations a strategy needs, in order of need."""
        names = {each.name for each in self.catalog}
        return resolve_needs([need for need in strategy.needs if need in names], self.catalog)

    async def states(self, view: ReadView, derivations: Sequence[Derivation]) -> tuple[DerivationState, ...]:
        """Return the state of these derivations in an unfiltered view, with what refreshing each would cost."""
        kept = await view.derivations()
        return tuple([await self._state(view, each, is_kept=each.name in kept) for each in derivations])

    async def states_anew(self, view: ReadView, derivations: Sequence[Derivation]) -> tuple[DerivationState, ...]:
        """Return the state of these derivations, with about what making all of each anew would cost."""
        states = await self.states(view, derivations)
        return tuple([await self._anew(view, *pair) for pair in zip(derivations, states, strict=True)])

    async def missing(self, strategy: Strategy) -> tuple[DerivationState, ...]:
        """Return those a strategy needs that have never been made."""
        return tuple(state for state in await self._needed(strategy) if state.freshness is Freshness.MISSING)

    async def check(self, strategy: Strategy) -> tuple[str, ...]:
        """Return, in words, what is stale of all a strategy needs, with the remedy. Raises Stale where it lacks any."""
        states = await self._needed(strategy)
        if missing := [state for state in states if state.freshness is Freshness.MISSING]:
            raise self.error(strategy, missing)
        return tuple(_stale_in_words(state) for state in states if state.freshness is Freshness.STALE)

    async def make(
        self, strategy: Strategy, refresh: Callable[[Sequence[str]], Awaitable[RefreshResult]]
    ) -> RefreshResult | None:
        """Make by `refresh` what a strategy lacks; None where that is nothing. Raises Stale where it cannot be made."""
        if not (missing := await self.missing(strategy)):
            return None
        report = await refresh([each.name for each in missing])
        if report.stopped and (left := await self.missing(strategy)):
            message = f"What the strategy '{strategy.name}' needs could not be made."
            raise Stale(message, remedy=report.stopped, missing=tuple(each.name for each in left))
        return report

    def error(self, strategy: Strategy, missing: Sequence[DerivationState]) -> Stale:
        """Return the error that says what a strategy lacks, which command makes it, and what that costs."""
        names = tuple(state.name for state in missing)
        cost = reduce(RefreshCost.__add__, (state.cost for state in missing))
        brought_along = {need for each in self.catalog if each.name in names for need in each.needs}
        wanted = " ".join(name for name in names if name not in brought_along)
        hindrances = dict.fromkeys(state.hindrance for state in missing if state.hindrance)
        run = f"un `quipu refresh {wanted}` ({format_cost(cost)}), or ask with --auto-refresh."
        return Stale(
            f"The strategy '{strategy.name}' needs what has not been made: {', '.join(names)}.",
            remedy=f"{' '.join(hindrances)} Then r{run}" if hindrances else f"R{run}",
            missing=names,
        )

    async def _needed(self, strategy: Strategy) -> tuple[DerivationState, ...]:
        derivations = self.of(strategy)
        if not derivations:
            return ()
        async with self.derivation_context.store.view() as view:
            return await self.states(view, derivations)

    async def _state(self, view: ReadView, derivation: Derivation, *, is_kept: bool) -> DerivationState:
        revision, state = self._known.get(derivation.name, (-1, None))
        if state is None or revision != view.revision:
            state = await derivation.read_state(view, self.derivation_context)
            self._known[derivation.name] = view.revision, state
        # What nobody keeps is missing, whatever there may be left of it.
        freshness = state.freshness if is_kept else Freshness.MISSING
        cost = priced(state.cost, self.price)
        return replace(state, freshness=freshness, cost=cost, hindrance=derivation.unavailable_reason())

    async def _anew(self, view: ReadView, derivation: Derivation, state: DerivationState) -> DerivationState:
        if (
            derivation.estimate_rebuild is None or state.freshness is Freshness.MISSING
        ):  # then making it is making all of it
            return replace(state, is_anew=True)
        anew = await derivation.estimate_rebuild(view, self.derivation_context)
        holds = "; ".join(filter(None, (state.holds, anew.note)))
        return replace(state, is_anew=True, holds=holds, cost=priced(anew.cost, self.price))


def with_remedy(stale: str) -> str:
    """Return what is stale, in words, with what brings it up to date."""
    return f"{stale}; `quipu resume` finishes it."


def priced(cost: RefreshCost, price: Price | None) -> RefreshCost:
    """Return a cost with the money it comes to, where the price is known."""
    if price is None or not cost.n_calls:
        return cost
    return replace(cost, money=price.of(TokenCount(input=cost.input_tokens, output=cost.output_tokens)))


def _stale_in_words(state: DerivationState) -> str:
    behind = f" ({state.n_stale:,} to do)" if state.n_stale else ""  # not all of it is there already: no share of it
    stale = f"not up to date: {state.name}{behind}"
    return f"{stale}; {state.hindrance}" if state.hindrance else with_remedy(stale)
