"""Differences from the sources: each strategy has a table, whose values are those of the code."""

from types import ModuleType

import pytest

from quipu.model.graph import MAX_RELATION_KEYWORDS
from quipu.retrieve import STRATEGIES
from scripts.reference import DIFFERENCES, difference_tables, strategies_page
from tests.architecture.source import modules

WITHOUT_SOURCE = {"weave", "bypass"}  # Quipu's own method, and no retrieval


def module_with(bullet: str) -> ModuleType:
    module = ModuleType("example", f"An example.\n\nDifferences from the paper:\n{bullet}\n\nMore.")
    module.__dict__["MAX_SEEDS"] = 1_000
    return module


def test_the_page_has_a_table_for_every_strategy_with_a_source() -> None:
    page = strategies_page().partition("## Differences from the sources")[2]
    assert [name for name in STRATEGIES if f"\n### `{name}`: " not in page] == sorted(WITHOUT_SOURCE, reverse=True)


def test_every_list_of_differences_is_on_the_page() -> None:
    page = strategies_page()
    lists = [bullets for module in modules() for _, bullets in DIFFERENCES.findall(module.text)]
    firsts = [
        " ".join(bullets.removeprefix("- ").partition("\n- ")[0].split()).partition(" → ")[0] for bullets in lists
    ]
    assert len(firsts) > len(STRATEGIES)
    assert [first for first in firsts if first not in page] == []


def test_a_row_shows_the_value_of_a_constant_and_the_default_of_an_option() -> None:
    bullet = "- 5 seeds and 2\n  steps → `MAX_SEEDS` seeds,\n  and `n_steps` steps, because it helps."
    *_, row = difference_tables(module_with(bullet), {"n_steps": 0.5})
    assert row == "| 5 seeds and 2 steps | `MAX_SEEDS` (1,000) seeds, and `n_steps` (0.5) steps | it helps |"


def test_a_constant_of_another_module_is_named_by_its_path() -> None:
    *_, row = difference_tables(module_with("- All → `model.graph.MAX_RELATION_KEYWORDS`, because it helps."), {})
    assert row == f"| All | `model.graph.MAX_RELATION_KEYWORDS` ({MAX_RELATION_KEYWORDS}) | it helps |"


@pytest.mark.parametrize(
    ("bullet", "message"),
    [
        ("- 5 seeds, here a thousand.", "because why"),
        ("- 5 seeds → a thousand.", "because why"),
        ("- 5 seeds → 1,000 seeds, because it helps.", "constant or option that is 1,000"),
        ("- No minimum → at least 0.2, because it helps.", "constant or option that is 0.2"),
        ("- 5 seeds → `MAX_NODES` seeds, because it helps.", "'MAX_NODES' is no option"),
    ],
)
def test_a_row_of_another_form_or_with_a_value_of_its_own_is_refused(bullet: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(difference_tables(module_with(bullet), {}))
