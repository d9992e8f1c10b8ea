"""Vectors: which texts wait, whose row is whose, what is gone; and the change of model beside the live one."""

import asyncio
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from quipu.errors import Mismatch, Stale
from quipu.model.delta import Delta, DocumentFacts
from quipu.ports.store import ReadView, Store, VectorBlock, VectorSpace
from quipu.testing.contract.steps import DIMENSION, MODEL, OpenStore, dump, embed, floats, publish, remove, vector
from quipu.testing.facts import document, entity, passage, relation, source

_NEXT, _NEXT_DIMENSION = "tests/other words", 6

_FACTS = document(
    "a",
    passage(
        "Venice trades with Acre.",
        entity("Venice", description="A republic."),
        entity("Acre"),
        relation("Venice", "Acre", "They trade.", keywords=("sea", "trade")),
    ),
    title="Travels",
)
_TEXTS = ["Acre", "Travels\nVenice trades with Acre.", "Venice\nA republic.", "sea, trade\nacre\nvenice\nThey trade."]
_SPACES = (VectorSpace.CHUNK, VectorSpace.ENTITY, VectorSpace.RELATION)
_CHUNK = _FACTS.chunks[0].chunk.id


async def _embedder(store: Store) -> tuple[str, int] | None:
    async with store.view() as view:
        return (await view.counts("embedder")).embedder


async def _embedded(store: Store, *documents: DocumentFacts) -> None:
    await store.set_embedder(MODEL, DIMENSION)
    await publish(store, *documents)
    await embed(store)


async def _rows(view: ReadView, space: VectorSpace) -> list[int]:
    rows: Sequence[int] = (await view.vectors(space)).rows.tolist()
    return list(rows)


async def _gone(view: ReadView, space: VectorSpace, revision: int) -> list[int] | None:
    deleted = (await view.vectors(space, since=revision)).deleted
    return None if deleted is None else [int(row) for row in deleted]


def _at(block: VectorBlock, row: int) -> npt.NDArray[np.float16]:
    """Return the vector of a row."""
    (place,) = np.flatnonzero(block.rows == row)
    stored_vector: npt.NDArray[np.float16] = block.vectors[place]
    return stored_vector


class VectorsContract:
    """What is promised of vectors."""

    async def test_without_an_embedder_nothing_waits(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _FACTS)
            assert await store.texts_without_vector(MODEL, 10) == {}
            async with store.view() as view:
                counts = await view.counts()
                assert (counts.n_waiting, counts.stale_vectors, counts.vector_dimension) == (0, 0, 0)
                assert [await _rows(view, space) for space in VectorSpace] == [[]] * len(VectorSpace)
                assert await view.numbers(VectorSpace.CHUNK, [_CHUNK]) == {}

    async def test_every_text_waits_until_it_has_its_vector(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _FACTS)
            await store.set_embedder(MODEL, DIMENSION)
            async with store.view() as view:
                assert (await view.counts("stale_vectors")).stale_vectors == 4
            assert len(await store.texts_without_vector(MODEL, 3)) == 3
            assert await store.texts_without_vector("another model", 10) == {}
            assert await embed(store) == _TEXTS
            assert await store.texts_without_vector(MODEL, 10) == {}
            async with store.view() as view:
                counts = await view.counts()
                assert (counts.vectors, counts.stale_vectors, counts.n_waiting) == (4, 0, 0)
            assert await store.verify() == []

    async def test_vectors_are_read_back_as_they_were_written(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _FACTS)
            hash_by_text = {
                text: text_hash for text_hash, text in (await store.texts_without_vector(MODEL, 10)).items()
            }
            await embed(store)
            expected = {text: floats(vector(text_hash).vector) for text, text_hash in hash_by_text.items()}
            async with store.view() as view:
                assert (await view.counts("embedder")).vector_dimension == DIMENSION
                blocks = {space: await view.vectors(space) for space in VectorSpace}
                chunks = await view.numbers(VectorSpace.CHUNK, ["nowhere", _CHUNK])
                entities = await view.numbers(VectorSpace.ENTITY, ["acre", "nowhere", "venice"])
                relations = await view.numbers(VectorSpace.RELATION, ["acre -- venice", "acre -- nowhere", "nonsense"])
                block = blocks[VectorSpace.ENTITY]
                owners = await view.vector_owners(VectorSpace.ENTITY, block.rows.tolist())
        assert {key: floats(_at(blocks[VectorSpace.CHUNK], row)) for key, row in chunks.items()} == {
            _CHUNK: expected[_TEXTS[1]]
        }
        assert {key: floats(_at(block, row)) for key, row in entities.items()} == {
            "acre": expected["Acre"],
            "venice": expected["Venice\nA republic."],
        }
        assert {key: floats(_at(blocks[VectorSpace.RELATION], row)) for key, row in relations.items()} == {
            "acre -- venice": expected[_TEXTS[3]]
        }
        assert (str(block.vectors.dtype), block.vectors.shape) == ("float16", (2, DIMENSION))
        by_row = {
            owners[int(row)]: floats(stored_vector)
            for row, stored_vector in zip(block.rows, block.vectors, strict=True)
        }
        assert by_row == {("acre",): expected["Acre"], ("venice",): expected["Venice\nA republic."]}

    async def test_rows_rise_and_only_those_above_are_returned(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS)
            async with store.view() as view:
                before = await _rows(view, VectorSpace.CHUNK)
            await publish(store, document("b", "One.", "Two."))
            await embed(store)
            async with store.view() as view:
                after = await _rows(view, VectorSpace.CHUNK)
                later = await view.vectors(VectorSpace.CHUNK, before[-1])
                last = await view.vectors(VectorSpace.CHUNK, after[-1])
        assert after == sorted(after)
        assert (len(before), len(after), later.rows.tolist()) == (1, 3, after[1:])
        assert later.vectors.shape == (2, DIMENSION)
        assert len(last.rows) == 0

    async def test_equal_texts_share_a_row(self, open_store: OpenStore) -> None:
        documents = [document(name, "The same words.", title="Title") for name in ("a", "b")]
        other = document("c", "The same words.", title="Another title")
        ids = sorted(document.chunks[0].chunk.id for document in documents)
        async with open_store() as store:
            await _embedded(store, *documents, other)
            async with store.view() as view:
                rows = await _rows(view, VectorSpace.CHUNK)
                owners = await view.vector_owners(VectorSpace.CHUNK, [*rows, 10**6])
            assert sorted(owners.values(), key=len) == [(other.chunks[0].chunk.id,), tuple(ids)]
            await remove(store, "a")
            async with store.view() as view:
                assert await _rows(view, VectorSpace.CHUNK) == rows
            await publish(store, documents[0])
            assert await store.texts_without_vector(MODEL, 10) == {}

    async def test_equal_texts_of_different_kinds_have_rows_of_their_own(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, document("a", passage("Acre", entity("Acre"))))
            async with store.view() as view:
                rows = [await _rows(view, space) for space in (VectorSpace.CHUNK, VectorSpace.ENTITY)]
        assert [len(row_ids) for row_ids in rows] == [1, 1]
        assert rows[0] != rows[1]

    async def test_rows_are_never_used_again(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS)
            async with store.view() as view:
                first = await _rows(view, VectorSpace.CHUNK)
                last = max([(await _rows(view, space))[-1] for space in _SPACES])
            await remove(store, "a")
            await publish(store, _FACTS)
            await embed(store)
            async with store.view() as view:
                second = await _rows(view, VectorSpace.CHUNK)
                assert min([(await _rows(view, space))[0] for space in _SPACES]) > last
            assert first != second

    async def test_rows_that_went_are_told_by_revision(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS, document("b", "One."))
            async with store.view() as view:
                start = view.revision
                rows = {space: await _rows(view, space) for space in VectorSpace}
                (of_b,) = [
                    r
                    for r, o in (await view.vector_owners(VectorSpace.CHUNK, rows[VectorSpace.CHUNK])).items()
                    if _CHUNK not in o
                ]
            first = (await remove(store, "b")).revision
            second = (await remove(store, "a")).revision
            async with store.view() as view:
                assert await _gone(view, VectorSpace.CHUNK, start) == rows[VectorSpace.CHUNK]
                assert await _gone(view, VectorSpace.CHUNK, first) == [
                    row for row in rows[VectorSpace.CHUNK] if row != of_b
                ]
                assert await _gone(view, VectorSpace.CHUNK, second) == []
                assert await _gone(view, VectorSpace.ENTITY, start) == rows[VectorSpace.ENTITY]
                assert await _gone(view, VectorSpace.RELATION, first) == rows[VectorSpace.RELATION]

    async def test_only_texts_that_change_want_a_new_vector(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS)
            async with store.view() as view:
                start = view.revision
                rows = await _rows(view, VectorSpace.ENTITY)
            await publish(store, document("b", passage("x", entity("Acre", description="A port."), entity("Venice"))))
            assert sorted((await store.texts_without_vector(MODEL, 10)).values()) == ["Acre\nA port.", "x"]
            await embed(store)
            async with store.view() as view:
                deleted = await _gone(view, VectorSpace.ENTITY, start)
                assert deleted is not None
                assert len(deleted) == 1
                assert set(deleted) < set(rows)
                assert len(await _rows(view, VectorSpace.ENTITY)) == 2

    async def test_a_vector_nobody_waits_for_is_ignored(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, document("a", "One."))
            (waiting,) = await store.texts_without_vector(MODEL, 10)
            await publish(store, document("a", "Two."))
            late = [vector(waiting), vector("0" * 32)]
            await store.commit(Delta(vectors=late))
            await embed(store)
            async with store.view() as view:
                before = (await view.vectors(VectorSpace.CHUNK)).vectors.tolist()
            (vector_line,) = [line for line in await dump(store) if '"kind":"vector"' in line]
            assert waiting not in vector_line
            await store.commit(Delta(vectors=[*late, vector(waiting, "another model")]))
            async with store.view() as view:
                assert (await view.vectors(VectorSpace.CHUNK)).vectors.tolist() == before
                assert (await view.counts()).vectors == 1
            assert await store.verify() == []

    async def test_another_embedder_is_refused_with_the_remedy(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            assert await _embedder(store) is None
            await store.set_embedder(MODEL, DIMENSION)
            await store.set_embedder(MODEL, DIMENSION)
            await store.commit(Delta(enqueue=[source("a")]))
            for identity, dimension in ((_NEXT, DIMENSION), (MODEL, _NEXT_DIMENSION)):
                with pytest.raises(Mismatch) as caught:
                    await store.set_embedder(identity, dimension)
                assert "quipu reembed" in caught.value.remedy
        async with open_store() as store:
            with pytest.raises(Mismatch):
                await store.set_embedder(_NEXT, _NEXT_DIMENSION)
            assert await _embedder(store) == (MODEL, DIMENSION)

    async def test_an_index_that_holds_nothing_takes_any_embedder(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS)
            await remove(store, "a")
            await store.set_embedder(MODEL, _NEXT_DIMENSION)
            await store.set_embedder(_NEXT, _NEXT_DIMENSION)
            await publish(store, _FACTS)
            assert await embed(store, _NEXT, _NEXT_DIMENSION) == _TEXTS
            assert await store.texts_without_vector(MODEL, 10) == {}
            assert await store.verify() == []

    async def test_of_two_embedders_that_come_at_once_the_first_to_add_something_stays(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as first, open_store() as second:
            await asyncio.gather(first.set_embedder(MODEL, DIMENSION), second.set_embedder(_NEXT, _NEXT_DIMENSION))
            outcomes = await asyncio.gather(publish(first, _FACTS), publish(second, _FACTS), return_exceptions=True)
            assert sorted(str(type(outcome).__name__) for outcome in outcomes) == ["CommitResult", "Mismatch"]
            n_waiting = [len(await first.texts_without_vector(name, 100)) for name in (MODEL, _NEXT)]
            assert sorted(n_waiting) == [0, len(_TEXTS)]

    async def test_a_second_set_is_built_beside_the_live_one(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS)
            async with store.view() as view:
                live = (await view.vectors(VectorSpace.CHUNK)).rows.tolist()
            with pytest.raises(Stale) as caught:
                async with store.reembedding(_NEXT, _NEXT_DIMENSION):
                    pass
            assert "quipu reembed" in caught.value.remedy
            async with store.reembedding(_NEXT, _NEXT_DIMENSION):
                assert await embed(store, _NEXT, _NEXT_DIMENSION) == _TEXTS
                async with store.view() as view:
                    assert (await view.vectors(VectorSpace.CHUNK)).rows.tolist() == live
                    assert (await view.counts("embedder")).vector_dimension == DIMENSION
                    start = view.revision
            async with store.view() as view:
                assert (await view.counts("embedder")).embedder == (_NEXT, _NEXT_DIMENSION)
                block = await view.vectors(VectorSpace.CHUNK)
                assert min(block.rows.tolist()) > max(live)
                assert await view.vector_owners(VectorSpace.CHUNK, live) == {}
                row = (await view.numbers(VectorSpace.CHUNK, [_CHUNK]))[_CHUNK]
                assert list(_at(block, row).shape) == [_NEXT_DIMENSION]
                assert await _gone(view, VectorSpace.CHUNK, start) is None
                # Whoever followed the first set rebuilds once; two views of one revision never differ.
                assert view.revision > start
                assert await _gone(view, VectorSpace.CHUNK, view.revision) == []
            await store.set_embedder(_NEXT, _NEXT_DIMENSION)
            with pytest.raises(Mismatch):
                await store.set_embedder(MODEL, DIMENSION)
            assert await store.verify() == []

    async def test_the_swap_gives_the_state_of_an_index_that_never_knew_another_model(
        self, open_store: OpenStore
    ) -> None:
        async with open_store("old") as store:
            await _embedded(store, _FACTS)
            async with store.reembedding(_NEXT, _NEXT_DIMENSION):
                await embed(store, _NEXT, _NEXT_DIMENSION)
            swapped = await dump(store)
        async with open_store("new") as store:
            await store.set_embedder(_NEXT, _NEXT_DIMENSION)
            await publish(store, _FACTS)
            await embed(store, _NEXT, _NEXT_DIMENSION)
            assert await dump(store) == swapped

    async def test_documents_that_come_meanwhile_are_embedded_for_both(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS)
            async with store.reembedding(_NEXT, _NEXT_DIMENSION):
                await publish(store, document("b", "One."))
                assert await embed(store) == ["One."]
                async with store.view() as view:
                    assert len(await _rows(view, VectorSpace.CHUNK)) == 2
                    assert (await view.counts()).stale_vectors == 0
                await remove(store, "a")
                assert await embed(store, _NEXT, _NEXT_DIMENSION) == ["One."]
            async with store.view() as view:
                assert len(await _rows(view, VectorSpace.CHUNK)) == 1
            assert await store.verify() == []

    async def test_begun_again_it_goes_on_where_it_stopped(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS)
            with pytest.raises(ZeroDivisionError):
                async with store.reembedding(_NEXT, _NEXT_DIMENSION):
                    entries = await store.texts_without_vector(_NEXT, 2)
                    await store.commit(Delta(vectors=[vector(entry, _NEXT, _NEXT_DIMENSION) for entry in entries]))
                    raise ZeroDivisionError
            assert await _embedder(store) == (MODEL, DIMENSION)
        async with open_store() as store:
            async with store.reembedding(_NEXT, _NEXT_DIMENSION):
                assert len(await embed(store, _NEXT, _NEXT_DIMENSION)) == 2
            async with store.reembedding(_NEXT, _NEXT_DIMENSION):
                assert await store.texts_without_vector(_NEXT, 2) == {}

    async def test_a_third_model_takes_the_place_of_an_unfinished_second(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS)
            with pytest.raises(Stale):
                async with store.reembedding("tests/unfinished", 3):
                    pass
            async with store.reembedding(_NEXT, _NEXT_DIMENSION):
                assert await store.texts_without_vector("tests/unfinished", 10) == {}
                await embed(store, _NEXT, _NEXT_DIMENSION)
            assert await store.verify() == []

    async def test_the_live_model_needs_no_second_set(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS)
            before = await dump(store)
            async with store.reembedding(MODEL, DIMENSION):
                assert await store.texts_without_vector(MODEL, 2) == {}
            assert await dump(store) == before

    async def test_the_live_model_cannot_change_its_dimension_beside_itself(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS)
            with pytest.raises(Mismatch):
                async with store.reembedding(MODEL, DIMENSION + 1):
                    pytest.fail("it has begun")
            await store.set_embedder(MODEL, DIMENSION)

    async def test_purge_forgets_which_rows_went(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _embedded(store, _FACTS, document("b", "One."))
            async with store.view() as view:
                start = view.revision
            await remove(store, "b")
            assert await store.purge() >= 1
            async with store.view() as view:
                assert await _gone(view, VectorSpace.CHUNK, start) is None
                assert await _gone(view, VectorSpace.CHUNK, view.revision) == []
            assert await store.purge() == 0

    async def test_queued_documents_are_counted_as_waiting(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(enqueue=[source("a"), source("b")]))
            async with store.view() as view:
                assert (await view.counts("jobs")).n_waiting == 2
