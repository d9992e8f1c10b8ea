"""Documents and chunks: what was published is read back, and an update is the difference of its chunks."""

from dataclasses import replace
from typing import Any

import pytest

from quipu.errors import InvalidInput
from quipu.model.delta import Delta, JobFailure
from quipu.model.document import (
    DocumentListing,
    DocumentOrder,
    DocumentStatus,
    Metadata,
    join_content_hash,
)
from quipu.model.graph import EntityMention
from quipu.model.ids import digest
from quipu.model.query import Condition, Filter
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import Store
from quipu.testing.contract.steps import DIMENSION, MODEL, OpenStore, dump, embed, publish, remove
from quipu.testing.facts import document, entity, passage, relation, source

_POLO = passage("Marco Polo left Venice.", entity("Marco Polo", "Person"), entity("Venice", "Location"))
_KHAN = passage("Kublai Khan ruled.", entity("Kublai Khan", "Person"))
_ROAD = passage("The road is long.", entity("road"))


async def _fill_listing(store: Store) -> None:
    """Give a store four live documents, one of which is queued again, and a queued one; two have the same title."""
    await publish(store, document("b/1", "One.", title="Zeta"), document("ä", "Three.", title="Alpha"))
    await publish(
        store,
        document("c", "Four.", title="Letters", metadata={"year": 1950}),
        document("a", "Five.", title="Alpha"),
        document("b/2", "Six.", metadata={"year": 1900}),
    )
    letter = replace(source("d%", "Seven.", title="beta"), source="Letters/7")
    await store.commit(Delta(enqueue=[letter, source("b/1", "Changed.")]))


class DocumentsContract:
    """What is promised of documents and chunks."""

    async def test_documents_come_in_the_order_asked_for_and_unknown_ids_are_left_out(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await publish(store, document("b", "Two."), document("a", "One."), document("ä", "Three."))
            async with store.view() as view:
                assert [doc.id for doc in await view.documents()] == ["a", "b", "ä"]
                assert [doc.id for doc in await view.documents(["b", "nowhere", "a"])] == ["b", "a"]
                assert await view.documents([]) == []

    @pytest.mark.parametrize("order", list(DocumentOrder))
    @pytest.mark.parametrize("k", [1, 2, 3, 7])
    async def test_the_pages_of_a_listing_hold_each_document_once_in_order(
        self, open_store: OpenStore, order: DocumentOrder, k: int
    ) -> None:
        async with open_store() as store:
            await _fill_listing(store)
            async with store.view() as view:
                whole = await view.documents(listing=DocumentListing(order=order))
                assert sorted(doc.id for doc in whole) == ["a", "b/1", "b/2", "c", "d%", "ä"]
                if order is DocumentOrder.UPDATED:
                    assert whole == sorted(
                        sorted(whole, key=lambda doc: doc.id), key=lambda doc: doc.updated_at, reverse=True
                    )
                else:
                    assert whole == sorted(whole, key=lambda doc: (getattr(doc, order), doc.id))
                listing = DocumentListing(order=order, k=k)
                pages = [await view.documents(listing=listing)]
                while len(pages[-1]) == k:
                    listing = replace(listing, after=listing.cursor(pages[-1][-1]))
                    pages.append(await view.documents(listing=listing))
                assert [doc for page in pages for doc in page] == whole

    async def test_a_listing_has_only_the_documents_of_a_status_and_prefix(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill_listing(store)

            async def listed(allowed: Filter | None = None, **parts: Any) -> list[str]:
                async with store.view(allowed) as view:
                    return [doc.id for doc in await view.documents(listing=DocumentListing(**parts))]

            queued, ready = (DocumentStatus.QUEUED,), (DocumentStatus.READY,)
            assert await listed(statuses=queued) == ["b/1", "d%"]
            assert await listed(statuses=ready) == ["a", "b/2", "c", "ä"]
            assert await listed(statuses=(*queued, *ready), prefix="b/") == ["b/1", "b/2"]
            assert await listed(prefix="Letters") == ["c", "d%"]  # a title and a source
            assert await listed(prefix="d%") == ["d%"]
            assert await listed(prefix="d_") == []
            assert await listed(Filter(where=(Condition(field="year", operator=">=", value="1900"),))) == ["b/2", "c"]
            assert await listed(Filter(documents=("b/*",)), statuses=ready, k=1) == ["b/1"]  # its job is hidden

    @pytest.mark.parametrize("order", list(DocumentOrder))
    async def test_a_cursor_stays_valid_when_its_document_is_removed(
        self, open_store: OpenStore, order: DocumentOrder
    ) -> None:
        async with open_store() as store:
            await _fill_listing(store)
            listing = DocumentListing(order=order, k=2)
            async with store.view() as view:
                whole = await view.documents(listing=replace(listing, k=None))
            await store.commit(Delta(cancel=[whole[1].id]))
            await remove(store, whole[0].id, whole[1].id)
            async with store.view() as view:
                rest = await view.documents(listing=replace(listing, k=None, after=listing.cursor(whole[1])))
            assert [doc.id for doc in rest] == [doc.id for doc in whole[2:]]

    @pytest.mark.parametrize("cursor", ["a", "3", '["a"]', '["a", 1]', "{}"])
    async def test_a_text_that_is_no_cursor_is_refused(self, open_store: OpenStore, cursor: str) -> None:
        async with open_store() as store, store.view() as view:
            with pytest.raises(InvalidInput, match="is not a cursor"):
                await view.documents(listing=DocumentListing(order=DocumentOrder.TITLE, after=cursor))

    async def test_a_document_is_read_back_as_it_was_published(self, open_store: OpenStore) -> None:
        metadata: Metadata = {
            "year": 1271,
            "weight": 0.5,
            "is_old": True,
            "region": "Asia",
            "tags": ("silk", "paper"),
            "no": None,
        }
        facts = document("a", "One.", "Two.", title="Travels 旅行", metadata=metadata)
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                (details,) = await view.documents(["a"])
        assert (details.id, details.title, details.status) == ("a", "Travels 旅行", DocumentStatus.READY)
        assert (details.source, details.media_type, details.content_hash) == ("a.txt", "text/plain", facts.content_hash)
        assert (dict(details.metadata), details.n_chunks, details.n_failed_chunks, details.error) == (
            metadata,
            2,
            0,
            "",
        )
        assert type(details.metadata["is_old"]) is bool
        assert details.added_at

    async def test_the_version_counts_publications_and_the_first_time_stays(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One."))
            async with store.view() as view:
                (first,) = await view.documents()
            await publish(store, document("a", "Two."))
            async with store.view() as view:
                (second,) = await view.documents()
            await remove(store, "a")
            await publish(store, document("a", "Three."))
            async with store.view() as view:
                (third,) = await view.documents()
        assert (first.version, second.version, third.version) == (1, 2, 1)
        assert first.added_at == second.added_at

    async def test_chunks_are_read_back_as_they_were_published(self, open_store: OpenStore) -> None:
        facts = document(
            "a",
            passage("One.", headings=("Part I", "过去")),
            passage("Два.", error="timed out"),
            "One.",
            title="Travels",
        )
        paged = replace(facts, chunks=tuple(replace(c, chunk=replace(c.chunk, page=7)) for c in facts.chunks))
        chunks = [chunk_facts.chunk for chunk_facts in paged.chunks]
        async with open_store() as store:
            await publish(store, paged)
            async with store.view() as view:
                assert await view.chunks(document_id="a") == chunks
                assert await view.chunks([chunks[2].id, "nowhere", chunks[0].id]) == [chunks[2], chunks[0]]
                assert await view.chunks(document_id="a", n_first=2) == chunks[:2]
                starts = [await view.chunks(document_id="a", start=n, n_first=1) for n in range(4)]
                assert starts == [chunks[:1], chunks[1:2], chunks[2:], []]
                assert await view.chunks(document_id="nowhere") == []
                first, middle, last = chunks
                assert await view.chunks([last.id], with_neighbours=True) == [last, middle]
                assert await view.chunks([middle.id, "nowhere"], with_neighbours=True) == [middle, first, last]
                assert await view.chunks([last.id, first.id], with_neighbours=True) == [last, first, middle]

    async def test_a_document_with_a_failed_chunk_is_partial_until_it_is_read(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", _POLO, passage("Kublai Khan ruled.", error="timed out")))
            async with store.view() as view:
                (details,) = await view.documents()
            assert (details.status, details.n_chunks, details.n_failed_chunks) == (DocumentStatus.PARTIAL, 2, 1)
            assert "timed out" in details.error
            await publish(store, document("a", _POLO, _KHAN))
            async with store.view() as view:
                (details,) = await view.documents()
                assert len(await view.entities(["kublai khan"])) == 1
            assert (details.status, details.n_failed_chunks, details.error) == (DocumentStatus.READY, 0, "")

    async def test_what_could_be_read_of_a_failed_chunk_is_shown_until_the_whole_is(
        self, open_store: OpenStore
    ) -> None:
        some = entity("Kublai Khan", "Person", "He ruled.")
        more = entity("Dadu", "Location", "He ruled there.")
        async with open_store() as store:
            await publish(store, document("a", _POLO, passage("Kublai Khan ruled in Dadu.", some, error="cut short")))
            async with store.view() as view:
                (details,) = await view.documents()
                assert [node.description for node in await view.entities(["kublai khan", "dadu"])] == ["He ruled."]
                (chunk,) = [chunk for chunk in await view.chunks(document_id="a") if chunk.error]
                assert [mention.key for mention in (await view.mentions(EntityMention, [chunk.id]))[chunk.id]] == [
                    "kublai khan"
                ]
            assert (details.status, details.n_chunks, details.n_failed_chunks) == (DocumentStatus.PARTIAL, 2, 1)
            assert await store.verify() == []
            whole = document(
                "a", _POLO, passage("Kublai Khan ruled in Dadu.", some, more, relation("Dadu", "Kublai Khan"))
            )
            await publish(store, whole)
            async with store.view() as view:
                (details,) = await view.documents()
                counts = {node.key: node.n_mentions for node in await view.entities(["kublai khan", "dadu"])}
            assert (details.status, counts) == (DocumentStatus.READY, {"kublai khan": 1, "dadu": 1})
            assert await store.verify() == []
            state = await dump(store)
        async with open_store("fresh") as store:
            await publish(store, whole)
            assert await dump(store) == state

    async def test_a_chunk_whose_extraction_failed_is_found_by_its_words(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", passage("Kublai Khan ruled.", error="timed out")))
            async with store.view() as view:
                assert len(await view.search_text(NodeKind.CHUNK, "Kublai", 5)) == 1

    async def test_work_on_its_way_is_listed_with_its_stage(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("live", "One.", title="Old title"))
            await store.commit(
                Delta(enqueue=[source("new", title="New"), source("live", title="New title")], enqueue_removal=["gone"])
            )
            async with store.view() as view:
                details_by_id = {doc.id: doc for doc in await view.documents()}
                assert [doc.status for doc in await view.documents(["live"])] == [DocumentStatus.QUEUED]
            assert sorted(details_by_id) == ["gone", "live", "new"]
            assert (details_by_id["new"].status, details_by_id["new"].title, details_by_id["new"].version) == (
                DocumentStatus.QUEUED,
                "New",
                0,
            )
            assert (details_by_id["live"].title, details_by_id["live"].n_chunks) == ("Old title", 1)
            assert details_by_id["gone"].status is DocumentStatus.REMOVING
            jobs = await store.claim_jobs(10)
            await store.update_jobs(DocumentStatus.EXTRACTING, [job.id for job in jobs if job.source])
            async with store.view() as view:
                stages = {doc.id: doc.status for doc in await view.documents()}
            assert stages == {
                "gone": DocumentStatus.REMOVING,
                "live": DocumentStatus.EXTRACTING,
                "new": DocumentStatus.EXTRACTING,
            }

    async def test_a_failed_update_shows_its_error_beside_the_live_version(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One."))
            await store.commit(Delta(enqueue=[source("a")]))
            (job,) = await store.claim_jobs(1)
            await store.commit(Delta(fail=[JobFailure(job=job.id, error="It is a picture.")]))
            async with store.view() as view:
                (details,) = await view.documents()
                assert len(await view.chunks(document_id="a")) == 1
            assert (details.status, details.error, details.n_chunks) == (DocumentStatus.FAILED, "It is a picture.", 1)

    async def test_a_chunk_that_moves_keeps_its_id_its_mentions_and_its_vector(self, open_store: OpenStore) -> None:
        before, after = document("a", _POLO, _KHAN), document("a", _ROAD, _KHAN, _POLO)
        polo = before.chunks[0].chunk.id
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, before)
            await embed(store)
            await publish(store, after)
            waiting = await store.texts_without_vector(MODEL, 10)
            async with store.view() as view:
                assert await view.chunks(document_id="a") == [chunk_facts.chunk for chunk_facts in after.chunks]
                assert await view.mentions(EntityMention, [polo]) == {polo: list(before.chunks[0].entities)}
            assert sorted(waiting.values()) == ["The road is long.", "road"]
            assert await store.verify() == []

    async def test_another_title_says_everything_anew(self, open_store: OpenStore) -> None:
        text = "He left Venice."
        before = document("a", passage(text, entity("Venice"), entity("Doge")), title="The Doge")
        after = document("a", passage(text, entity("Venice"), entity("Marco Polo")), title="Marco Polo")
        async with open_store() as store:
            await publish(store, before)
            await publish(store, after)
            async with store.view() as view:
                assert [node.key for node in await view.entities(["doge", "marco polo", "venice"])] == [
                    "marco polo",
                    "venice",
                ]
                (chunk,) = await view.chunks(document_id="a")
            assert chunk == after.chunks[0].chunk
            assert await store.verify() == []

    async def test_going_back_to_an_earlier_version_gives_the_same_state(self, open_store: OpenStore) -> None:
        first = document("a", _POLO, _KHAN, title="Travels", metadata={"year": 1271})
        second = document("a", _KHAN, _ROAD, "New words.", title="Roads", metadata={"tags": ("silk",)})
        async with open_store() as store:
            await publish(store, first, document("b", _POLO))
            before = await dump(store)
            await publish(store, second)
            assert await dump(store) != before
            await publish(store, first)
            assert await dump(store) == before
            assert await store.verify() == []

    async def test_removal_leaves_what_was_never_added(self, open_store: OpenStore) -> None:
        hub = passage(
            "Marco Polo met Kublai Khan.",
            entity("Marco Polo"),
            entity("Kublai Khan"),
            relation("Marco Polo", "Kublai Khan"),
        )
        async with open_store() as store:
            await publish(store, document("b", _POLO, title="Marco Polo"))
            before = await dump(store)
            await publish(store, document("a", hub, _POLO, title="Marco Polo"), document("c", hub))
            await remove(store, "a", "c", "nowhere")
            assert await dump(store) == before
            assert await store.verify() == []

    async def test_the_last_document_leaves_nothing(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, document("a", _POLO, _KHAN, metadata={"year": 1271}))
            await embed(store)
            await remove(store, "a")
            assert await dump(store) == []
            async with store.view() as view:
                counts = await view.counts()
            assert (counts.chunks, counts.mentions, counts.links, counts.vectors, counts.stale_vectors) == (
                0,
                0,
                0,
                0,
                0,
            )

    async def test_the_same_words_in_two_documents_are_two_chunks(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", _POLO), document("b", _POLO))
            async with store.view() as view:
                assert len(await view.search_text(NodeKind.CHUNK, "Marco", 10)) == 2
            await remove(store, "a")
            async with store.view() as view:
                (hit,) = await view.search_text(NodeKind.CHUNK, "Marco", 10)
                assert [chunk.document_id for chunk in await view.chunks([hit.id])] == ["b"]
                (venice,) = await view.entities(["venice"])
            assert venice.n_mentions == 1

    async def test_the_same_words_twice_in_a_document_are_two_chunks(self, open_store: OpenStore) -> None:
        twice, once = document("a", _ROAD, _KHAN, _ROAD), document("a", _KHAN, _ROAD)
        async with open_store() as store:
            await publish(store, twice)
            async with store.view() as view:
                assert [chunk.text for chunk in await view.chunks(document_id="a")] == [
                    _ROAD.text,
                    _KHAN.text,
                    _ROAD.text,
                ]
            await publish(store, once)
            async with store.view() as view:
                assert await view.chunks(document_id="a") == [chunk_facts.chunk for chunk_facts in once.chunks]
            assert await store.verify() == []

    async def test_counts_say_how_much_there_is(self, open_store: OpenStore) -> None:
        first_passage = passage(
            "Marco Polo met Kublai Khan.",
            entity("Marco Polo"),
            entity("Kublai Khan"),
            relation("Marco Polo", "Kublai Khan"),
        )
        async with open_store() as store:
            await publish(store, document("a", first_passage, _ROAD), document("b", _KHAN))
            await store.commit(Delta(enqueue=[source("c"), source("d")], enqueue_removal=["a"]))
            async with store.view() as view:
                counts = await view.counts()
            assert (counts.documents, counts.chunks, counts.entities, counts.relations) == (2, 3, 3, 1)
            # Mentions: four of entities, one of a relation. Links: names where they stand in capitals, so not "road".
            assert (counts.mentions, counts.links) == (5, 3)
            assert dict(counts.jobs) == {"queued": 2, "removing": 1}
            assert dict(counts.extractors) == {"": 2}

    async def test_counts_say_who_read_how_many_documents(self, open_store: OpenStore) -> None:
        by = {"a": "rules", "b": "a model", "c": "a model"}
        hashes = {name: join_content_hash(digest(name), f"{reader}/1", reader) for name, reader in by.items()}
        async with open_store() as store:
            await publish(store, *(replace(document(name, _ROAD), content_hash=hashes[name]) for name in by))
            await remove(store, "c")
            async with store.view() as view:
                assert dict((await view.counts()).extractors) == {"a model": 1, "rules": 1}
                assert [doc.extractor for doc in await view.documents()] == ["rules", "a model"]
