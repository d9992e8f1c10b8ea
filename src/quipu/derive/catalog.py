"""Catalog: all derivations made on demand, by name. To add one, write its module and add it to the list below."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from quipu.algo.vector_clusters import Grouping, nearest_centres
from quipu.derive import communities, hierarchy, names, reports, sentences
from quipu.derive.derivation import Derivation
from quipu.errors import NotFound

# Derivations that every index has. Others may name them in `needs`; they are always refreshed first.
ALWAYS_DERIVED = ("summaries", "vectors", "topology")


def make_catalog(
    grouping: Grouping = nearest_centres, check_grouping: Callable[[], None] = lambda: None
) -> tuple[Derivation, ...]:
    """Return all derivations, each after those it needs.

    `grouping` clusters the layers of the hierarchy; `check_grouping` raises Unavailable if its library is missing.
    """
    return sort_by_needs(
        (
            names.NAME_VECTORS,
            names.SYNONYM_PAIRS,
            sentences.DERIVATION,
            communities.DERIVATION,
            reports.DERIVATION,
            replace(
                hierarchy.DERIVATION,
                read_state=partial(hierarchy.read_state, grouping=grouping),
                refresh=partial(hierarchy.refresh, grouping=grouping),
                check_installed=check_grouping,
            ),
        )
    )


def sort_by_needs(derivations: Iterable[Derivation]) -> tuple[Derivation, ...]:
    """Return derivations in topological order: each after those it needs, otherwise in the given order.

    Raises ValueError if a needed derivation is missing or if needs form a cycle.
    """
    by_name = {derivation.name: derivation for derivation in derivations}
    ordered: dict[str, Derivation] = {}

    def place(name: str, dependents: tuple[str, ...]) -> None:
        if name in ordered or name in ALWAYS_DERIVED:
            return
        if name not in by_name or name in dependents:
            raise ValueError(f"{' → '.join((*dependents, name))}: no such derivation can be made")
        for need in by_name[name].needs:
            place(need, (*dependents, name))
        ordered[name] = by_name[name]

    for name in by_name:
        place(name, ())
    return tuple(ordered.values())


CATALOG = make_catalog()


def get_derivation(name: str, catalog: Sequence[Derivation] = CATALOG) -> Derivation:
    """Return the derivation of that name. Raises NotFound, which names the closest match and all derivations."""
    by_name = {derivation.name: derivation for derivation in catalog}
    if name in by_name:
        return by_name[name]
    if name in ALWAYS_DERIVED:
        remedy = "`quipu refresh` without a name brings it up to date."
        raise NotFound(f"'{name}' is not made on demand: every index keeps it.", remedy=remedy)
    matches = get_close_matches(name.casefold(), by_name, n=1)
    hint = f"Did you mean '{matches[0]}'? " if matches else ""
    listing = f"There are: {', '.join(by_name)}." if by_name else "There are none yet."
    raise NotFound(f"There is no derivation '{name}'.", remedy=f"{hint}{listing}")


def resolve_needs(names: Iterable[str], catalog: Sequence[Derivation] = CATALOG) -> tuple[Derivation, ...]:
    """Return the named derivations and all they need, in the order of the catalog. Raises NotFound for other names."""
    selected: set[str] = set()

    def select(name: str) -> None:
        if name in selected or name in ALWAYS_DERIVED:
            return
        selected.add(name)
        for need in get_derivation(name, catalog).needs:
            select(need)

    for name in names:
        select(name)
    return tuple(derivation for derivation in catalog if derivation.name in selected)
