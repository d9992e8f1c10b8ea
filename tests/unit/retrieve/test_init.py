"""Strategies by name."""

import pytest

from quipu.derive.catalog import CATALOG
from quipu.errors import InvalidInput
from quipu.model.query import Query, options_in
from quipu.retrieve import STRATEGIES, Strategy, strategy_named
from quipu.retrieve.question import apply_preset, check_query


def test_every_strategy_is_found_by_its_name() -> None:
    assert [strategy_named(name).name for name in STRATEGIES] == list(STRATEGIES)
    assert list(STRATEGIES)[:8] == ["weave", "bypass", "naive", "lexical", "local", "global", "hybrid", "mix"]


def test_an_unknown_name_is_answered_with_the_closest_and_the_whole_list() -> None:
    with pytest.raises(InvalidInput) as caught:
        strategy_named("Hybird")
    assert "'Hybird'" in str(caught.value)
    assert "Did you mean 'hybrid'?" in str(caught.value)
    assert "weave, bypass, naive, lexical, local, global, hybrid, mix" in str(caught.value)


def test_every_strategy_says_what_it_is_and_when_to_use_it() -> None:
    for strategy in STRATEGIES.values():
        assert strategy.summary
        assert strategy.after
        assert strategy.when
        assert strategy.n_model_calls >= strategy.wants_keywords


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=lambda strategy: strategy.name)
def test_every_value_of_a_source_is_allowed_and_differs_from_the_default(strategy: Strategy) -> None:
    shared = {option.name: option for option in options_in(Query)}
    values = [(shared[name], value) for name, value in strategy.faithful.items()]
    own = [option for kind in strategy.options for option in options_in(kind)]
    values += [(option, option.faithful) for option in own if option.faithful is not None]
    for option, value in values:
        assert value != option.default and option.allows(value) and isinstance(value, type(option.default)), option
    check_query(apply_preset(Query(text="Who?", strategy=strategy.name, preset="faithful")))


def test_the_strategies_that_search_the_graph_want_keywords() -> None:
    assert [s.name for s in STRATEGIES.values() if s.wants_keywords] == ["local", "global", "hybrid", "mix", "ppr"]


def test_only_bypass_looks_nothing_up_and_only_one_more_ranks_no_passages() -> None:
    assert [s.name for s in STRATEGIES.values() if not s.searches_index] == ["bypass"]
    assert [s.name for s in STRATEGIES.values() if not s.ranks_passages] == ["bypass", "community_global"]


def test_what_a_strategy_is_better_with_is_made_on_demand_and_not_needed() -> None:
    gaining = {s.name: s.better_with for s in STRATEGIES.values() if s.better_with}
    assert gaining == {"hippo": ("synonyms",), "linear": ("names",), "ppr": ("synonyms",)}
    for name, better in gaining.items():
        assert {each.name for each in CATALOG}.issuperset(better)
        assert not set(better) & set(STRATEGIES[name].needs)
