"""Measuring strategies through the engine."""

from dataclasses import replace
from pathlib import Path

from benchmarks.reference.scores import measure, table
from quipu.bench.datasets import Dataset, DatasetPassage, GoldQuestion
from quipu.bench.strategies import ranking_strategies
from quipu.wiring import INDEX_FILE

DATASET = Dataset(
    name="tiny",
    passages=(
        DatasetPassage(id="p/1", title="Marco Polo", text="Marco Polo was born in Venice in the year 1254."),
        DatasetPassage(id="p/2", title="Clay", text="Bricks are made of clay and burnt in a kiln for three days."),
    ),
    questions=(
        GoldQuestion(id="a", text="Where was Marco Polo born?", answers=("Venice",), gold=(frozenset({"p/1"}),)),
        GoldQuestion(id="b", text="Which moons did Galileo Galilei see?", answers=(), gold=()),
    ),
)


def _indexes(cache: Path) -> list[Path]:
    return list(cache.iterdir())


def _inode(index: Path) -> int:
    return (index / INDEX_FILE).stat().st_ino


async def test_passages_answers_and_refusals_are_scored(tmp_path: Path) -> None:
    measured = await measure(DATASET, tmp_path, ["naive", "lexical"])
    fusion, *scores = measured.scores
    assert [score.strategy for score in scores] == ["naive", "lexical"]
    assert (fusion.strategy, fusion.recall[2].value, fusion.gain.value) == ("convex fusion", 100.0, 0.0)
    assert fusion.answered.n == fusion.unanswerable_answered.n == 0
    for score in scores:
        assert score.recall[2].value == score.all_found.value == score.covered.value == 100.0
        assert score.unanswerable_answered.value == 0.0
        assert (score.covered.n, score.unanswerable_answered.n) == (1, 1)
        assert score.ms > 0.0
        assert score.cpu_ms > 0.0


async def test_plain_rankings_are_compared_with_their_references(tmp_path: Path) -> None:
    measured = await measure(DATASET, tmp_path, ["naive", "lexical", "mix"])
    assert [(each.strategy, each.questions, each.same) for each in measured.agreements] == [
        ("naive", 2, 2),
        ("lexical", 2, 2),
    ]


async def test_an_index_that_exists_is_used_again(tmp_path: Path) -> None:
    first = await measure(DATASET, tmp_path, ["lexical"])
    (folder,) = _indexes(tmp_path)
    inode = _inode(folder)
    again = await measure(DATASET, tmp_path, ["lexical"])
    assert _inode(folder) == inode
    assert first.scores[0].recall == again.scores[0].recall
    lines = table(again.scores).splitlines()
    assert lines[0].startswith(
        "| set | embedder | read by | strategy | R@2 | R@5 | R@10 | R@20 | All@8 | R@5 − fusion |"
    )
    assert lines[2].startswith("| tiny | wordllama | local/5 | convex fusion | 100.0 [100.0, 100.0] |")


async def test_other_passages_get_another_index(tmp_path: Path) -> None:
    await measure(DATASET, tmp_path, ["lexical"])
    await measure(replace(DATASET, passages=DATASET.passages[:1]), tmp_path, ["lexical"])
    assert len(_indexes(tmp_path)) == 2


def test_bypass_ranks_nothing_and_is_not_measured() -> None:
    assert "bypass" not in ranking_strategies()
    assert "mix" in ranking_strategies()
