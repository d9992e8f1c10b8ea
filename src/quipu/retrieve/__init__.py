"""Retrieval strategies by name. To add one: write its file, then add it to the list below."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from quipu.errors import NotFound
from quipu.retrieve import (
    bridge,
    bypass,
    community_global,
    community_local,
    drift,
    global_,
    hippo,
    hybrid,
    lca,
    lexical,
    linear,
    local,
    mix,
    naive,
    path,
    ppr,
)
from quipu.retrieve.strategy import Retrieve, Strategy, Tools

__all__ = ["STRATEGIES", "Retrieve", "Strategy", "Tools", "strategy_named"]

STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        module.STRATEGY.name: module.STRATEGY
        for module in (
            bypass,
            naive,
            lexical,
            local,
            global_,
            hybrid,
            mix,
            community_global,
            community_local,
            drift,
            bridge,
            lca,
            hippo,
            linear,
            path,
            ppr,
        )
    }
)


def strategy_named(name: str) -> Strategy:
    """Return the strategy of that name; raises NotFound, naming the closest and all others, where there is none."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    near = get_close_matches(name.casefold(), STRATEGIES, n=1)
    hint = f"Did you mean '{near[0]}'? " if near else ""
    raise NotFound(f"There is no strategy '{name}'.", remedy=f"{hint}Choose one of: {', '.join(STRATEGIES)}.")
