"""The ablations set what there is, and put it back."""

from importlib import import_module

import pytest

from benchmarks.ablations import VARIANTS, Variant, _changed
from quipu.bench.datasets import Dataset
from quipu.model.query import Query, options_in
from quipu.retrieve import lca
from quipu.settings import Settings

_EMPTY = Dataset(name="none", passages=(), questions=())


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_each_variant_sets_a_constant_there_is_and_puts_it_back(variant: Variant) -> None:
    module = import_module(f"quipu.retrieve.{variant.strategy}")
    before = dict(vars(module))
    with _changed(variant, _EMPTY):
        query = Settings().query("Who?")
        own = {o.name: getattr(values, o.name) for values in query.options for o in options_in(type(values))}
        assert {name: own[name] for name in variant.options} == variant.options
        assert {name: vars(module)[name] for name in variant.constants} == variant.constants
        assert bool(variant.n_facts) == (vars(module).get("filter_facts") is not before.get("filter_facts"))
    assert dict(vars(module)) == before and Settings().query("Who?") == Query(text="Who?")


def test_what_fails_leaves_nothing_set() -> None:
    before = lca.DECAY
    changes = _changed(Variant(strategy="lca", constants={"DECAY": 0.1}, options={"hippo_damping": 0.1}), _EMPTY)
    with pytest.raises(RuntimeError), changes:
        raise RuntimeError
    assert before == lca.DECAY and Settings().query("Who?") == Query(text="Who?")


def test_a_variant_is_told_in_words() -> None:
    assert [str(each) for each in VARIANTS[:3]] == ["naive", "hippo", "hippo, the nearest 2"]
    assert str(Variant(strategy="hippo", n_facts=5, is_perfect=True)) == "hippo, the nearest 5 of use"
