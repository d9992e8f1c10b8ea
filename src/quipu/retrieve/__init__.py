"""Retrieval strategies by name. To add one: write its module in this folder, then add it to the table below."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import cast

from quipu.errors import InvalidInput
from quipu.model.query import Options
from quipu.retrieve.strategy import Retrieve, Strategy, Tools

__all__ = ["STRATEGIES", "Retrieve", "Strategy", "Tools", "strategies_by_options", "strategy_named"]

# The module of each strategy, in the order in which they are listed.
_MODULES = {
    "weave": "weave",
    "bypass": "bypass",
    "naive": "naive",
    "lexical": "lexical",
    "local": "local",
    "global": "global_",
    "hybrid": "hybrid",
    "mix": "mix",
    "community_global": "community_global",
    "community_local": "community_local",
    "drift": "drift",
    "bridge": "bridge",
    "lca": "lca",
    "hippo": "hippo",
    "linear": "linear",
    "path": "path",
    "ppr": "ppr",
    "context": "context",
}


class _StrategyTable(Mapping[str, Strategy]):
    """The strategies by name. A strategy's module is imported when the strategy is looked up: a question needs one."""

    def __getitem__(self, name: str) -> Strategy:
        return cast(Strategy, import_module(f"{__name__}.{_MODULES[name]}").STRATEGY)

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


STRATEGIES: Mapping[str, Strategy] = _StrategyTable()


def strategy_named(name: str) -> Strategy:
    """Return the strategy with that name; raises InvalidInput, naming the closest and all, if there is none."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    near = get_close_matches(name.casefold(), STRATEGIES, n=1)
    hint = f"Did you mean '{near[0]}'? " if near else ""
    raise InvalidInput(f"There is no strategy '{name}'.", remedy=f"{hint}Choose one of: {', '.join(STRATEGIES)}.")


def strategies_by_options() -> Mapping[type[Options], str]:
    """Return each class of options with the names of the strategies that have it; this imports every strategy."""
    names: dict[type[Options], list[str]] = {}
    for strategy in STRATEGIES.values():
        for kind in strategy.options:
            names.setdefault(kind, []).append(strategy.name)
    return {options: ", ".join(strategies) for options, strategies in names.items()}
