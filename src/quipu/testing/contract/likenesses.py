"""Likenesses: vectors of names, sentences and questions, and pairs of alike names, kept in step while they are kept."""

from collections.abc import Sequence

from quipu.model.delta import ChunkSentences, Delta, SynonymPair, SynonymUpdate
from quipu.model.derivation import NAMES, SENTENCES, SYNONYMS, DerivationRecord
from quipu.model.ids import sentence_id
from quipu.model.query import Filter
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import OccurrenceKind, Store, VectorSpace
from quipu.testing.contract.steps import DIMENSION, MODEL, OpenStore, dump, embed, publish, remove, synonyms
from quipu.testing.facts import document, entity, passage

_A = document("a", passage("Acre fell. Venice stood.", entity("Acre", "Location"), entity("Venice", "Location")))
_B = document("b", passage("Acres are fields.", entity("Acres", "Concept"), entity("Venice", "Other")))
_PAIR = SynonymPair(first="acre", second="acres", similarity=0.9)


async def _keep(store: Store, *names: str) -> None:
    await store.commit(
        Delta(derivations=[DerivationRecord(name=name, identity="test/1", revision=0) for name in names])
    )


async def _revision(store: Store) -> int:
    async with store.view() as view:
        return view.revision


async def _divide(store: Store, *chunks: ChunkSentences) -> None:
    await store.commit(Delta(sentences=chunks))


def _kinds(lines: Sequence[str], kind: str) -> int:
    return sum(f'"kind":"{kind}"' in line for line in lines)


class LikenessesContract:
    """What is promised of names, synonyms, sentences and questions."""

    async def test_names_want_vectors_from_when_they_are_kept(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _A)
            await embed(store)
            await _keep(store, NAMES)
            assert await embed(store) == ["Acre", "Venice"]
            await publish(store, _B)
            assert "Acres" in await embed(store)
            async with store.view() as view:
                rows = await view.numbers(VectorSpace.NAME, ["acre", "acres", "venice", "nobody"])
                owners = await view.vector_owners(VectorSpace.NAME, list(rows.values()))
                assert {row_key: (key,) for key, row_key in rows.items()} == owners
                assert (await view.derivation_counts(NAMES)).n_items == 3
            async with store.view(Filter(documents=("b",))) as view:
                assert set(await view.numbers(VectorSpace.NAME, ["acre", "acres", "venice"])) == {"acres", "venice"}
                allowed = await view.allowed_numbers(VectorSpace.NAME)
                assert allowed is not None
                assert allowed.tolist() == sorted([rows["acres"], rows["venice"]])
            await remove(store, "b")
            async with store.view() as view:
                assert set(await view.numbers(VectorSpace.NAME, ["acre", "acres", "venice"])) == {"acre", "venice"}
            assert await store.verify() == []

    async def test_synonyms_go_with_either_name(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _A, _B)
            await _keep(store, NAMES, SYNONYMS)
            async with store.view() as view:
                assert await view.pending(SYNONYMS, 10) == []  # not one has a vector
            await embed(store)
            async with store.view() as view:
                assert await view.pending(SYNONYMS, 10) == ["acre", "acres", "venice"]
                assert await view.pending(SYNONYMS, 1) == ["acre"]
            revision = await _revision(store)
            await store.commit(Delta(synonyms=SynonymUpdate(revision=revision, names=["acre", "acres"], pairs=[_PAIR])))
            async with store.view() as view:
                assert await view.pending(SYNONYMS, 10) == ["venice"]
                assert await synonyms(view, ["acres", "acre", "venice"]) == {
                    "acres": [("acre", 0.9)],
                    "acre": [("acres", 0.9)],
                }
                numbers = await view.numbers(NodeKind.ENTITY, ["acre", "acres"])
                pairs = (await view.graph_rows()).synonyms
                assert {int(pairs.firsts[0]), int(pairs.seconds[0])} == set(numbers.values())
                assert pairs.similarities.tolist() == [0.9]
                changed = await view.changes_since(revision)
                assert changed is not None
                assert changed.entities.tolist() == sorted(numbers.values())
            async with store.view(Filter(documents=("a",))) as view:
                assert await synonyms(view, ["acre"]) == {}
            await remove(store, "b")
            assert _kinds(await dump(store), "synonym") == 0

    async def test_a_comparison_of_before_a_name_was_there_does_not_count(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _A)
            await _keep(store, NAMES, SYNONYMS)
            revision = await _revision(store)
            await publish(store, _B)
            await embed(store)
            await store.commit(Delta(synonyms=SynonymUpdate(revision=revision, names=["acre", "acres"], pairs=[_PAIR])))
            async with store.view() as view:
                assert sorted(await view.pending(SYNONYMS, 10)) == ["acres", "venice"]
                assert await synonyms(view, ["acre"]) == {}

    async def test_questions_of_records_have_vectors_and_go_with_their_chunk(self, open_store: OpenStore) -> None:
        facts = document("faq", passage("Q: Where is Acre?\nA: In the Levant.\n\nQ: And Venice?\nA: In Italy."))
        (chunk,) = (stated.chunk.id for stated in facts.chunks)
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, facts, _A)
            assert {"Where is Acre?", "And Venice?"} < set(await embed(store))
            ids = [sentence_id(chunk, 0), sentence_id(chunk, 1)]
            async with store.view() as view:
                rows = await view.numbers(VectorSpace.QUESTION, [*ids, sentence_id(chunk, 2)])
                assert list(rows) == ids
                assert await view.vector_owners(VectorSpace.QUESTION, list(rows.values())) == {
                    row: (identifier,) for identifier, row in rows.items()
                }
                assert _kinds([line async for line in view.dump()], "question") == 2
            async with store.view(Filter(documents=("a",))) as view:
                allowed = await view.allowed_numbers(VectorSpace.QUESTION)
                assert allowed is not None
                assert not len(allowed)
            assert await store.verify() == []
            await remove(store, "faq")
            async with store.view() as view:
                assert not len((await view.vectors(VectorSpace.QUESTION)).rows)
            assert await store.verify() == []

    async def test_sentences_are_read_back_and_go_with_their_chunk(self, open_store: OpenStore) -> None:
        first, second = _A.chunks[0].chunk.id, _B.chunks[0].chunk.id
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _A, _B)
            await embed(store)
            await _keep(store, SENTENCES)
            async with store.view() as view:
                assert await view.pending(SENTENCES, 10) == sorted([first, second])
            await _divide(store, ChunkSentences(chunk=first, spans=[(0, 10), (11, 24)]))
            await _divide(store, ChunkSentences(chunk=second, spans=[(0, 17)]), ChunkSentences(chunk="gone", spans=[]))
            assert await embed(store) == ["Acre fell.", "Acres are fields.", "Venice stood."]
            async with store.view() as view:
                assert await view.pending(SENTENCES, 10) == []
                sentences = await view.sentences([second, first, "nowhere"])
                assert [
                    (sentence.chunk, sentence.ordinal, sentence.text)
                    for chunk in sentences
                    for sentence in sentences[chunk]
                ] == [
                    (second, 0, "Acres are fields."),
                    (first, 0, "Acre fell."),
                    (first, 1, "Venice stood."),
                ]
                rows = await view.numbers(VectorSpace.SENTENCE, [sentence_id(first, 1), sentence_id(first, 7)])
                assert list(rows) == [sentence_id(first, 1)]
            assert await store.verify() == []
            await remove(store, "a")
            async with store.view() as view:
                assert list(await view.sentences([first, second])) == [second]
                assert len((await view.vectors(VectorSpace.SENTENCE)).rows) == 1
            assert await store.verify() == []

    async def test_the_types_of_entities_are_those_of_the_allowed_mentions(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _A, _B)
            assert await _types(store, Filter()) == [("acre", "Location"), ("acres", "Concept"), ("venice", "Location")]
            assert await _types(store, Filter(documents=("b",))) == [("acres", "Concept"), ("venice", "Other")]

    async def test_whatever_comes_and_goes_what_is_not_divided_is_known(self, open_store: OpenStore) -> None:
        texts = {name: document(name, *(f"{name} {n}. And {n}." for n in range(4)), " ") for name in "abcde"}
        ids = {name: [chunk_facts.chunk.id for chunk_facts in facts.chunks[:4]] for name, facts in texts.items()}
        pending: set[str] = set()

        async def check() -> None:
            async with store.view() as view:
                assert set(await view.pending(SENTENCES, 100)) == pending
                assert (await view.derivation_counts(SENTENCES)).n_stale == len(pending)
            assert await store.verify() == []

        async def divide(*chunks: str) -> None:
            await _divide(store, *(ChunkSentences(chunk=chunk_id, spans=[(0, 4), (5, 11)]) for chunk_id in chunks))
            pending.difference_update(chunks)
            await check()

        async def follow(*, removed: Sequence[str] = (), new: Sequence[str] = ()) -> None:
            await store.commit(Delta(publish=[texts[name] for name in new], remove=removed))
            pending.difference_update(*(ids[name] for name in removed))
            pending.update(*(ids[name] for name in new))
            await check()

        async with open_store() as store:
            await _keep(store, SENTENCES)
            await follow(new="ab")
            await divide(*ids["b"])
            await divide(*ids["a"])
            await follow(removed="b", new="c")  # the rows of the last chunks may be used again
            await follow(removed="c")
            await follow(new="d")
            await divide(ids["d"][1], ids["d"][3])
            await follow(removed="d", new="e")
            await divide(*ids["e"])
            await store.commit(Delta(drop=[SENTENCES]))
            pending.update(ids["a"], ids["e"])
            await check()
            await _keep(store, SENTENCES)
            await divide(*ids["a"], *ids["e"])

    async def test_the_rows_of_chunks_are_told_by_number(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _A, _B)
            await embed(store)
            async with store.view() as view:
                numbers, rows = await view.chunk_vector_rows()
                ids = await view.ids(NodeKind.CHUNK, numbers.tolist())
                expected = await view.numbers(VectorSpace.CHUNK, list(ids.values()))
            assert numbers.tolist() == sorted(numbers.tolist())
            assert {ids[number]: row for number, row in zip(numbers.tolist(), rows.tolist(), strict=True)} == expected

    async def test_a_view_that_was_dumped_reads_on(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _A)
            async with store.view() as view:
                expected = await view.occurrences(OccurrenceKind.ENTITY, ["acre"], 5)
                assert [line async for line in view.dump()]
                assert await view.occurrences(OccurrenceKind.ENTITY, ["acre"], 5) == expected != {}


async def _types(store: Store, allowed: Filter) -> list[tuple[str, str]]:
    """Return the entities and types as told, in their order."""
    async with store.view(allowed) as view:
        entity_types = await view.entity_types()
        keys = await view.ids(NodeKind.ENTITY, entity_types.numbers.tolist())
    return [
        (keys[number], entity_types.types[code])
        for number, code in zip(entity_types.numbers.tolist(), entity_types.codes, strict=True)
    ]
