"""The derivations made on demand, by name. To add one: write its module, then add it to the list below."""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

from quipu.algo.vector_clusters import Grouping, nearest_centres
from quipu.derive import communities, hierarchy, names, reports, sentences, synonyms
from quipu.derive.derivation import Derivation
from quipu.errors import NotFound

# What every index keeps, asked for or not: a derivation may name them among its needs, and is made after them.
ALWAYS_DERIVED = ("summaries", "vectors", "topology")


def sort_by_needs(derivations: Iterable[Derivation]) -> tuple[Derivation, ...]:
    """Return derivations with what each needs before it, else in the order given.

    Raises ValueError where one needs what is not there, or itself in the end.
    """
    by_name = {each.name: each for each in derivations}
    ordered: dict[str, Derivation] = {}

    def place(name: str, wanted_by: tuple[str, ...]) -> None:
        if name in ordered or name in ALWAYS_DERIVED:
            return
        if name not in by_name or name in wanted_by:
            raise ValueError(f"{' → '.join((*wanted_by, name))}: no such derivation can be made")
        for need in by_name[name].needs:
            place(need, (*wanted_by, name))
        ordered[name] = by_name[name]

    for name in by_name:
        place(name, ())
    return tuple(ordered.values())


def make_catalog(
    grouping: Grouping = nearest_centres, check_grouping: Callable[[], None] = lambda: None
) -> tuple[Derivation, ...]:
    """Return all there are, in order of need; `grouping` is that of the hierarchy's layers, if the check lets it."""
    return sort_by_needs(
        (
            names.DERIVATION,
            synonyms.DERIVATION,
            sentences.DERIVATION,
            communities.DERIVATION,
            reports.DERIVATION,
            hierarchy.derivation(grouping, check_grouping),
        )
    )


CATALOG = make_catalog()


def get_derivation(name: str, catalog: Sequence[Derivation] = CATALOG) -> Derivation:
    """Return the derivation of that name; raises NotFound, naming the closest and all others, where there is none."""
    by_name = {each.name: each for each in catalog}
    if name in by_name:
        return by_name[name]
    if name in ALWAYS_DERIVED:
        remedy = "`quipu refresh` without a name brings it up to date."
        raise NotFound(f"'{name}' is not made on demand: every index keeps it.", remedy=remedy)
    near = get_close_matches(name.casefold(), by_name, n=1)
    hint = f"Did you mean '{near[0]}'? " if near else ""
    known = f"There are: {', '.join(by_name)}." if by_name else "There are none yet."
    raise NotFound(f"There is no derivation '{name}'.", remedy=f"{hint}{known}")


def resolve_needs(names: Iterable[str], catalog: Sequence[Derivation] = CATALOG) -> tuple[Derivation, ...]:
    """Return these derivations and all they need, in order of need. Raises NotFound for a name there is none of."""
    wanted: set[str] = set()

    def want(name: str) -> None:
        if name in wanted or name in ALWAYS_DERIVED:
            return
        wanted.add(name)
        for need in get_derivation(name, catalog).needs:
            want(need)

    for name in names:
        want(name)
    return tuple(each for each in catalog if each.name in wanted)
