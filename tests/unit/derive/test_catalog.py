"""Tests of the catalog: derivations by name, in order of need."""

import pytest

from quipu.derive.catalog import CATALOG, get_derivation, resolve_needs, sort_by_needs
from quipu.derive.derivation import Derivation, DerivationContext
from quipu.errors import NotFound
from quipu.model.derivation import DerivationResult, DerivationState, Freshness
from quipu.ports.store import ReadView


def _derivation(name: str, *needs: str) -> Derivation:
    async def state(_view: ReadView, _bench: DerivationContext) -> DerivationState:
        return DerivationState(name=name, freshness=Freshness.MISSING)

    async def refresh(_bench: DerivationContext, _is_rebuild: bool) -> DerivationResult:
        return DerivationResult(name=name)

    return Derivation(name=name, summary=name, read_state=state, refresh=refresh, needs=needs)


def _names(derivations: tuple[Derivation, ...]) -> list[str]:
    return [each.name for each in derivations]


def test_what_is_needed_comes_first_and_the_rest_stays_in_order() -> None:
    listed = [_derivation("reports", "communities", "vectors"), _derivation("names"), _derivation("communities")]
    assert _names(sort_by_needs(listed)) == ["communities", "reports", "names"]


@pytest.mark.parametrize(
    ("listed", "complaint"),
    [
        ([_derivation("reports", "communities")], "reports → communities"),
        ([_derivation("a", "b"), _derivation("b", "a")], "a → b → a"),
    ],
)
def test_a_need_that_cannot_be_met_is_a_fault_of_the_list(listed: list[Derivation], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        sort_by_needs(listed)


def test_what_is_named_brings_what_it_needs() -> None:
    catalog = sort_by_needs([_derivation("c", "b"), _derivation("b", "a"), _derivation("a"), _derivation("d")])
    assert _names(resolve_needs(["c"], catalog)) == ["a", "b", "c"]
    assert _names(resolve_needs(["d", "a", "vectors"], catalog)) == ["a", "d"]


def test_an_unknown_name_is_told_with_the_closest() -> None:
    catalog = sort_by_needs([_derivation("communities"), _derivation("names")])
    with pytest.raises(NotFound, match="Did you mean 'communities'") as raised:
        get_derivation("comunities", catalog)
    assert "There are: communities, names." in raised.value.remedy


def test_the_catalog_itself_is_in_order_of_need_and_names_each_once() -> None:
    assert sort_by_needs(CATALOG) == CATALOG
    assert len({each.name for each in CATALOG}) == len(CATALOG)
