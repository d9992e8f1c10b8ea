"""Measuring strategies through the engine."""

from pathlib import Path

from quipu.bench.datasets import Dataset, GoldQuestion, Passage
from quipu.bench.retrieval import measure, ranking_strategies, table

DATASET = Dataset(
    name="tiny",
    passages=(
        Passage(id="p/1", title="Marco Polo", text="Marco Polo was born in Venice in the year 1254."),
        Passage(id="p/2", title="Clay", text="Bricks are made of clay and burnt in a kiln for three days."),
    ),
    questions=(
        GoldQuestion(id="a", text="Where was Marco Polo born?", answers=("Venice",), gold=(frozenset({"p/1"}),)),
        GoldQuestion(id="b", text="Which moons did Galileo Galilei see?", answers=(), gold=()),
    ),
)


async def test_passages_answers_and_refusals_are_scored(tmp_path: Path) -> None:
    scores = await measure(DATASET, tmp_path / "index", ["naive", "lexical"])
    assert [score.strategy for score in scores] == ["naive", "lexical"]
    for score in scores:
        assert score.recall[2].value == score.all_found.value == score.covered.value == 100.0
        assert score.unanswerable_answered.value == 0.0
        assert (score.covered.n, score.unanswerable_answered.n) == (1, 1)


async def test_an_index_that_exists_is_used_again(tmp_path: Path) -> None:
    first = await measure(DATASET, tmp_path / "index", ["lexical"])
    again = await measure(DATASET, tmp_path / "index", ["lexical"])
    assert first[0].recall == again[0].recall
    assert table(again).splitlines()[0].startswith("| set | strategy | R@2 | R@5 | R@10 | All@8 |")
    assert table(again).splitlines()[2].startswith("| tiny | lexical | 100.0 [100.0, 100.0] |")


def test_bypass_ranks_nothing_and_is_not_measured() -> None:
    assert "bypass" not in ranking_strategies()
    assert "mix" in ranking_strategies()
