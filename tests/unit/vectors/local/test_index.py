"""Searching vectors: exact where few, near-exact where many, always as of the view."""

from pathlib import Path

import numpy as np
import pytest

from quipu.errors import Mismatch
from quipu.model.evidence import Scored
from quipu.ports.store import VectorSpace
from quipu.vectors.local import LocalVectors
from tests.unit.vectors.local.ledger import Ledger, LedgerView, Matrix, clustered, named

DIMENSION = 70
EXACT, SKETCHED = 20_000, 50


async def found(
    vectors: LocalVectors, view: LedgerView, query: Matrix, k: int = 10, min_score: float = -1.0
) -> tuple[Scored, ...]:
    (result,) = await vectors.nearest(view.port(), VectorSpace.CHUNK, query[None], k=k, min_score=min_score)
    return result


def same(left: tuple[Scored, ...], right: tuple[Scored, ...]) -> bool:
    """Say whether two results agree on ids and on scores, up to the grid queries are rounded to."""
    ids_agree = [s.id for s in left] == [s.id for s in right]
    return ids_agree and all(abs(a.score - b.score) < 1.5e-6 for a, b in zip(left, right, strict=True))


@pytest.fixture(params=[EXACT, SKETCHED], ids=["exact", "sketched"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> LocalVectors:
    return LocalVectors(tmp_path / "vectors", exact_below=request.param)


@pytest.mark.parametrize("k", [1, 10, 500])
async def test_few_rows_are_searched_exactly(tmp_path: Path, k: int) -> None:
    ledger = Ledger()
    ledger.add(named(clustered(1_000, DIMENSION)))
    index, view = LocalVectors(tmp_path), ledger.view()
    for query in clustered(20, DIMENSION, seed=1):
        assert same(await found(index, view, query, k), view.nearest(query, k))


async def test_many_rows_are_searched_with_a_recall_of_99_percent(tmp_path: Path) -> None:
    data, queries = clustered(60_000, DIMENSION), clustered(50, DIMENSION, seed=1)
    ledger = Ledger()
    ledger.add(named(data))
    index = LocalVectors(tmp_path)
    results = await index.nearest(ledger.view().port(), VectorSpace.CHUNK, queries, k=10)
    best = np.argsort(-(queries @ data.astype(np.float16).astype(np.float32).T), axis=1)[:, :10]
    hits = [len({int(s.id[1:]) for s in result} & set(row.tolist())) for result, row in zip(results, best, strict=True)]
    assert np.mean(hits) / 10 >= 0.99


async def test_results_do_not_depend_on_the_order_of_insertion(tmp_path: Path) -> None:
    vectors = named(np.repeat(clustered(2_000, DIMENSION), 2, axis=0))
    results = []
    for seed in range(3):
        ids = list(vectors)
        np.random.default_rng(seed).shuffle(ids)
        ledger = Ledger()
        for start in range(0, len(ids), 1_300):
            ledger.add({i: vectors[i] for i in ids[start : start + 1_300]})
        index = LocalVectors(tmp_path, exact_below=SKETCHED)
        queries = clustered(20, DIMENSION, seed=1)
        results.append(await index.nearest(ledger.view().port(), VectorSpace.CHUNK, queries, k=25))
    assert results[0] == results[1] == results[2]


async def test_a_query_is_answered_the_same_beside_other_queries(index: LocalVectors) -> None:
    ledger = Ledger()
    ledger.add(named(clustered(1_000, DIMENSION)))
    view, queries = ledger.view(), clustered(5, DIMENSION, seed=1)
    together = await index.nearest(view.port(), VectorSpace.CHUNK, queries, k=10)
    assert together == [await found(index, view, query) for query in queries]


async def test_equal_scores_are_ordered_by_id_also_at_the_cut(index: LocalVectors) -> None:
    ledger, (vector,) = Ledger(), clustered(1, DIMENSION)
    ledger.add(dict.fromkeys((f"t{i * 7 % 600:03d}" for i in range(600)), vector))
    assert [s.id for s in await found(index, ledger.view(), vector, k=3)] == ["t000", "t001", "t002"]


async def test_ids_with_equal_texts_share_a_row(index: LocalVectors) -> None:
    ledger, data = Ledger(), clustered(200, DIMENSION)
    ledger.add({"b+a+z": data[0], **named(data[1:])})
    assert [s.id for s in await found(index, ledger.view(), data[0], k=3)] == ["a", "b", "z"]
    assert [s.id for s in await found(index, ledger.view(), data[0], k=2)] == ["a", "b"]


async def test_deleted_rows_are_not_found(index: LocalVectors) -> None:
    ledger, data = Ledger(), clustered(1_000, DIMENSION)
    ledger.add(named(data))
    assert (await found(index, ledger.view(), data[7]))[0].id == "c00007"
    ledger.remove(["c00007"])
    view = ledger.view()
    result = await found(index, view, data[7])
    assert "c00007" not in {s.id for s in result}
    assert same(result, view.nearest(data[7], 10))


async def test_an_older_view_sees_neither_newer_rows_nor_newer_deletions(index: LocalVectors) -> None:
    ledger, data = Ledger(), clustered(300, DIMENSION)
    ledger.add(named(data[:200]))
    old = ledger.view()
    before = await found(index, old, data[7])
    ledger.remove(["c00007"])
    ledger.add(named(data[200:], "d"))
    await found(index, ledger.view(), data[7])
    assert await found(index, old, data[7]) == before


async def test_a_view_between_two_known_revisions_is_answered_as_of_its_own(index: LocalVectors) -> None:
    ledger, data = Ledger(), clustered(400, DIMENSION)
    ledger.add(named(data[:200]))
    await found(index, ledger.view(), data[0])
    ledger.add(named(data[200:300], "d"))
    ledger.remove(["c00001", "d00001"])
    between = ledger.view()
    ledger.remove(["c00002", "d00002"])
    ledger.add(named(data[300:], "e"))
    await found(index, ledger.view(), data[0])
    for query in (data[1], data[2], data[201], data[202], data[301]):
        assert same(await found(index, between, query), between.nearest(query, 10))


async def test_views_of_revisions_that_were_searched_read_nothing_more(index: LocalVectors) -> None:
    ledger, data, views = Ledger(), clustered(400, DIMENSION), []
    for start in range(0, 400, 100):
        ledger.add(named(data[start : start + 100], f"{start:03d}-"))
        views.append(ledger.view())
        await found(index, views[-1], data[0])
    for view in views:
        n_read = view.n_read
        assert same(await found(index, view, data[0]), view.nearest(data[0], 10))
        assert view.n_read == n_read


async def test_a_view_older_than_everything_known_is_answered(index: LocalVectors) -> None:
    ledger, data = Ledger(), clustered(300, DIMENSION)
    ledger.add(named(data[:200]))
    old = ledger.view()
    ledger.add(named(data[200:], "d"))
    await found(index, ledger.view(), data[250])
    assert same(await found(index, old, data[250]), old.nearest(data[250], 10))


async def test_following_a_change_reads_only_the_change(index: LocalVectors) -> None:
    ledger, data = Ledger(), clustered(1_000, DIMENSION)
    ledger.add(named(data[:990]))
    await found(index, ledger.view(), data[0])
    ledger.add(named(data[990:], "d"))
    view = ledger.view()
    assert (await found(index, view, data[995]))[0].id == "d00005"
    assert view.n_read == 11  # the ten new ones, and the last known one to compare


@pytest.mark.parametrize("n_allowed", [3, 40, 700])
async def test_a_filter_leaves_the_best_of_what_it_allows(index: LocalVectors, n_allowed: int) -> None:
    ledger = Ledger()
    vectors = named(clustered(1_000, DIMENSION))
    ledger.add(vectors)
    ledger.remove(["c00003"])
    allowed = list(vectors)[: n_allowed * 1_000 // 700 : 1 if n_allowed < 700 else 2]
    view = ledger.view(allowed=allowed)
    for query in clustered(10, DIMENSION, seed=1):
        result = await found(index, view, query)
        assert {s.id for s in result} <= set(allowed)
        assert same(result, view.nearest(query, 10))


async def test_a_filter_that_allows_nothing_finds_nothing(index: LocalVectors) -> None:
    ledger, data = Ledger(), clustered(100, DIMENSION)
    ledger.add(named(data))
    assert await found(index, ledger.view(allowed=[]), data[0]) == ()


async def test_rows_whose_owners_are_hidden_are_passed_over(index: LocalVectors) -> None:
    ledger, data = Ledger(), clustered(900, DIMENSION)
    ledger.add(named(data))
    view = ledger.view()
    nearest = [s.id for s in view.nearest(data[0], 500)]
    for row in ledger.rows.values():
        row.owners = () if row.owners[0] in nearest[:450] else row.owners
    assert same(await found(index, view, data[0]), view.nearest(data[0], 10))


async def test_results_reach_down_to_the_least_score_and_no_further(index: LocalVectors) -> None:
    ledger, data = Ledger(), clustered(300, DIMENSION)
    ledger.add(named(data))
    view = ledger.view()
    least = view.nearest(data[0], 5)[-1].score
    assert [s.id for s in await found(index, view, data[0], k=50, min_score=least)] == [
        s.id for s in view.nearest(data[0], 5)
    ]


async def test_a_zero_query_and_no_query_find_nothing(index: LocalVectors) -> None:
    ledger, data = Ledger(), clustered(100, DIMENSION)
    ledger.add(named(data))
    view = ledger.view()
    assert await found(index, view, np.zeros(DIMENSION, dtype=np.float32)) == ()
    assert await found(index, view, data[0], k=0) == ()
    assert await index.nearest(view.port(), VectorSpace.CHUNK, data[:0], k=5) == []


async def test_an_empty_space_finds_nothing(index: LocalVectors) -> None:
    view, (query,) = Ledger().view(), clustered(1, DIMENSION)
    assert await found(index, view, query) == ()
    assert await index.similarities(view.port(), VectorSpace.CHUNK, query, ["c00000"]) == {}


async def test_a_space_emptied_and_filled_again_is_searched(index: LocalVectors) -> None:
    ledger, data = Ledger(), clustered(200, DIMENSION)
    ledger.add(named(data))
    await found(index, ledger.view(), data[0])
    ledger.remove(list(named(data)))
    assert await found(index, ledger.view(), data[0]) == ()
    ledger.add(named(data, "d"))
    assert (await found(index, ledger.view(), data[0]))[0].id == "d00000"


async def test_vectors_of_another_length_replace_the_old(index: LocalVectors) -> None:
    ledger, old, new = Ledger(), clustered(200, DIMENSION), clustered(200, 32)
    ledger.add(named(old))
    await found(index, ledger.view(), old[0])
    ledger.remove(list(named(old)))
    ledger.add(named(new, "d"))
    assert (await found(index, ledger.view(), new[3]))[0].id == "d00003"


async def test_a_query_of_another_length_is_refused(index: LocalVectors) -> None:
    ledger = Ledger()
    ledger.add(named(clustered(100, DIMENSION)))
    (query,) = clustered(1, 32)
    with pytest.raises(Mismatch, match="32 dimensions, the index 70"):
        await found(index, ledger.view(), query)
    with pytest.raises(Mismatch, match="32 dimensions, the index 70"):
        await index.similarities(ledger.view().port(), VectorSpace.CHUNK, query, ["c00000"])


async def test_similarities_equal_the_scores_of_a_search(index: LocalVectors) -> None:
    ledger = Ledger()
    ledger.add(named(clustered(300, DIMENSION)))
    view, (query,) = ledger.view(), clustered(1, DIMENSION, seed=1)
    score_by_id = {s.id: s.score for s in await found(index, view, query)}
    assert await index.similarities(view.port(), VectorSpace.CHUNK, query, [*score_by_id, "unknown"]) == score_by_id


async def test_all_similarities_are_those_of_every_row_the_view_may_see(index: LocalVectors) -> None:
    ledger = Ledger()
    ledger.add(named(clustered(120, DIMENSION)))
    ledger.remove(["c00003", "c00119"])
    (query,) = clustered(1, DIMENSION, seed=1)
    for view in (ledger.view(), ledger.view(allowed=["c00001", "c00003", "c00100"])):
        rows, scores = await index.all_similarities(view.port(), VectorSpace.CHUNK, query)
        owners = await view.vector_owners(VectorSpace.CHUNK, rows.tolist())
        found = {each: score for row, score in zip(rows.tolist(), scores.tolist(), strict=True) for each in owners[row]}
        expected = {each.id: each.score for each in view.nearest(query, 1_000)}
        assert found.keys() == expected.keys()
        assert all(abs(found[each] - expected[each]) < 1.5e-6 for each in found)
        assert rows.tolist() == sorted(rows.tolist())


async def test_an_empty_space_has_no_similarities(index: LocalVectors) -> None:
    rows, scores = await index.all_similarities(Ledger().view().port(), VectorSpace.CHUNK, np.ones(3, np.float32))
    assert (len(rows), len(scores)) == (0, 0)


@pytest.mark.parametrize("seed", range(3))
async def test_alike_are_all_pairs_of_some_ids_with_any_other(index: LocalVectors, seed: int) -> None:
    ledger = Ledger()
    vectors = clustered(300, DIMENSION, seed=seed)
    ledger.add(named(vectors[:200]) | {"x+y": vectors[0]})
    ledger.add(named(vectors[200:], prefix="d"))
    ledger.remove(["c00005", "d00001"])
    asked = ["c00000", "c00005", "c00007", "d00002", "x", "nobody"]
    for view in (ledger.view(), ledger.view(allowed=["c00000", "c00007", "y", "d00003"])):
        data = {i: row.data.astype(np.float64) for row in view.live().values() for i in view._seen(row)}
        expected = {
            (min(one, other), max(one, other)): round(float(data[one] @ data[other]), 6)
            for one in set(asked) & data.keys()
            for other in data
            if one != other and round(float(data[one] @ data[other]), 6) >= 0.6
        }
        found = await index.similar_pairs(view.port(), VectorSpace.CHUNK, asked, min_score=0.6)
        assert [((each.first, each.second), each.score) for each in found] == sorted(expected.items())
        assert found
