"""Tests of the paths between what a search begins with."""

from quipu.retrieve.lca import find_tree_paths
from tests.unit.retrieve.aggregated import aggregate
from tests.unit.retrieve.fakes import Library, page

_NAMES = ("Ada", "Bo", "Cy", "Di", "Eve")
_TREE = {
    "top": ("", 3, ("eve",)),  # promoted through both layers
    "side": ("top", 2, ()),
    "one": ("side", 1, ("ada", "bo")),
    "two": ("side", 1, ("cy", "di")),
}


async def _steps(library: Library, *starts: str) -> dict[str, dict[str, int]]:
    async with library.view() as view:
        found = await find_tree_paths(starts, view)
    assert found.clusters.keys() == found.steps.keys()
    return {node: dict(steps) for node, steps in found.steps.items()}


async def test_paths_go_up_to_where_they_meet(library: Library) -> None:
    await library.publish(page("all", "All.", names=dict.fromkeys(_NAMES, "P")))
    await aggregate(library, _TREE)
    assert await _steps(library, "ada", "bo") == {"one": {"ada": 1, "bo": 1}}
    assert await _steps(library, "ada", "cy") == {"one": {"ada": 1}, "two": {"cy": 1}, "side": {"ada": 2, "cy": 2}}
    assert await _steps(library, "eve", "di") == {"top": {"eve": 1, "di": 3}, "side": {"di": 2}, "two": {"di": 1}}
    assert await _steps(library, "two", "di", "ada") == {
        "two": {"two": 0, "di": 1},
        "side": {"two": 1, "di": 2, "ada": 2},
        "one": {"ada": 1},
    }


async def test_what_stands_alone_or_twice_or_nowhere_is_on_no_path(library: Library) -> None:
    await library.publish(page("all", "All.", names=dict.fromkeys(_NAMES, "P")))
    await aggregate(library, _TREE)
    await library.publish(page("new", "New.", names={"Fay": "P"}))
    assert await _steps(library) == {}
    assert await _steps(library, "ada") == {}
    assert await _steps(library, "ada", "ada") == {}
    assert await _steps(library, "ada", "fay", "nobody") == {}


async def test_an_aggregate_that_stands_alone_is_on_its_own_path(library: Library) -> None:
    await library.publish(page("all", "All.", names=dict.fromkeys(_NAMES, "P")))
    await aggregate(library, _TREE)
    assert await _steps(library, "two") == {"two": {"two": 0}}
