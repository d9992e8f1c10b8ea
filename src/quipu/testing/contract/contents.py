"""Kept texts and files: read back as they were, once for equal ones, and gone with the last document that has them."""

from dataclasses import replace
from random import Random

import pytest

from quipu.errors import InvalidDelta
from quipu.model.delta import Delta
from quipu.model.document import Document, DocumentListing
from quipu.model.query import Filter
from quipu.ports.store import Store
from quipu.testing.contract.steps import OpenStore, dump, publish, remove
from quipu.testing.facts import document, source

_LARGE = Random(1).randbytes(1_300_001)  # several parts in any store


async def _document(store: Store, document_id: str) -> Document:
    async with store.view() as view:
        (details,) = await view.documents([document_id])
    return details


async def _content(store: Store, content_hash: str, allowed: Filter | None = None) -> bytes | None:
    async with store.view(allowed) as view:
        return await view.content(content_hash)


class ContentsContract:
    """What is promised of the texts and files that documents keep."""

    @pytest.mark.parametrize("original", [b"", b"x", b"\0\xff" * 400, _LARGE])
    async def test_text_and_file_are_read_back_byte_for_byte(self, open_store: OpenStore, original: bytes) -> None:
        text = "Начало 长城 😀\n\n" * 30_000
        facts = replace(document("a"), text=text, original=original)
        async with open_store() as store:
            await publish(store, facts)
            details = await _document(store, "a")
            assert await _content(store, details.text_hash) == text.encode()
            assert await _content(store, details.original_hash) == original
            assert await store.verify() == []

    async def test_any_part_of_a_file_can_be_read(self, open_store: OpenStore) -> None:
        choose = Random(2)
        async with open_store() as store:
            await publish(store, replace(document("a"), original=_LARGE))
            content_hash = (await _document(store, "a")).original_hash
            async with store.view() as view:
                for start in (0, 1, 262_143, 262_144, 262_145, len(_LARGE) - 1, len(_LARGE), len(_LARGE) + 300_000):
                    for n in (0, 1, 262_144, choose.randrange(len(_LARGE))):
                        assert await view.content(content_hash, start, n) == _LARGE[start : start + n]
                    assert await view.content(content_hash, start) == _LARGE[start:]

    async def test_documents_with_the_same_whole_text_can_be_listed(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One."), document("b", "One."), document("c", "Two."))
            await store.commit(Delta(enqueue=[source("d", "One.")]))
            async with store.view() as view:
                (details,) = await view.documents(["b"])
                listing = DocumentListing(text_hashes=(details.text_hash, "nowhere"))
                assert [doc.id for doc in await view.documents(listing=listing)] == ["a", "b"]
                assert [doc.id for doc in await view.documents(listing=replace(listing, k=1, after="a"))] == ["b"]
                assert [doc.id for doc in await view.documents(listing=replace(listing, without=("b",)))] == ["a"]
                assert await view.documents(listing=replace(listing, without=("a", "b", "c"))) == []
            async with store.view(Filter(exclude=("a",))) as view:
                assert [doc.id for doc in await view.documents(listing=listing)] == ["b"]

    async def test_nothing_is_kept_unless_it_is_given(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, replace(document("a", "One."), text=None, original=None))
            details = await _document(store, "a")
            assert (details.text_hash, details.original_hash) == ("", "")
            assert await _content(store, "") is None
            assert await _content(store, "0" * 32) is None

    async def test_equal_contents_are_one_until_the_last_document_is_gone(self, open_store: OpenStore) -> None:
        first, second = (replace(document(name, "One."), original=b"One.") for name in "ab")
        async with open_store() as store:
            await publish(store, first)
            await publish(store, second)
            hashes = {
                (details.text_hash, details.original_hash) for details in [await _document(store, n) for n in "ab"]
            }
            assert len(hashes) == 1
            ((text_hash, original_hash),) = hashes
            assert text_hash == original_hash  # the file is its own text
            await remove(store, "a")
            assert await _content(store, text_hash) == b"One."
            await publish(store, document("b", "Two."))
            assert await _content(store, text_hash) is None
            assert await store.verify() == []

    async def test_an_update_replaces_and_a_removal_drops_in_the_same_commit(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One."))
            before = await _document(store, "a")
            async with store.view() as earlier:
                await publish(store, document("a", "Two."))
                assert await earlier.content(before.text_hash) == b"One."
            after = await _document(store, "a")
            assert await _content(store, before.text_hash) is None
            assert await _content(store, before.original_hash) is None
            assert await _content(store, after.text_hash) == b"Two."
            await remove(store, "a")
            assert await _content(store, after.text_hash) is None
            assert await _content(store, after.original_hash) is None
            assert await store.verify() == []

    async def test_documents_may_swap_their_contents_in_one_commit(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One."), document("b", "Two."))
            first, second = await _document(store, "a"), await _document(store, "b")
            await publish(store, document("a", "Two."), document("b", "One."))
            assert (await _document(store, "a")).text_hash == second.text_hash
            assert await _content(store, first.text_hash) == b"One."
            assert await _content(store, second.original_hash) == b"file: Two."

    async def test_a_filter_hides_the_contents_of_other_documents(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("open", "One."), document("secret", "Two."), document("copy", "Two."))
            secret = await _document(store, "secret")
            assert await _content(store, secret.text_hash, Filter(documents=("open",))) is None
            assert await _content(store, secret.text_hash, Filter(documents=("copy",))) == b"Two."

    async def test_a_chunk_must_stand_at_its_offsets_in_the_text(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            with pytest.raises(InvalidDelta, match="offsets"):
                await publish(store, replace(document("a", "One.", "Two."), text="One. Two."))
            assert await dump(store) == []

    async def test_the_dump_tells_texts_apart_but_not_files(self, open_store: OpenStore) -> None:
        async with open_store("first") as first, open_store("second") as second:
            await publish(first, document("a", "One."))
            await publish(second, replace(document("a", "One."), original=None))
            assert await dump(first) == await dump(second)
            await publish(second, replace(document("a", "One."), text="One. And a tail."))
            assert await dump(first) != await dump(second)
