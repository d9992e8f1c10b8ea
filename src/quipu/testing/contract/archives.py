"""Promises of `ports/history.py`: an archive holds everything, of one snapshot, and fills another store."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from quipu.errors import Corrupt
from quipu.model.chat import ChatRequest, Message, Role, TokenCount
from quipu.model.delta import Delta
from quipu.model.document import DocumentStatus
from quipu.model.edit import Edit, EditKind
from quipu.model.usage import Stage, UsageRow
from quipu.ports.derivation_view import NodeKind
from quipu.ports.history import ArchiveStore
from quipu.ports.store import CallReply, Store
from quipu.testing.contract import run_as_coroutines
from quipu.testing.contract.steps import OpenStore, dump, publish, remove
from quipu.testing.facts import claim, document, entity, passage, relation, source

ArchivesOf = Callable[[Store], ArchiveStore]
Load = Callable[[bytes, str], Awaitable[None]]

_CREATED = "2026-01-02T03:04:05+00:00"
_SPENT = UsageRow(
    day="2026-01-02", stage=Stage.ANSWER, model="m", subject="1", n_calls=1, tokens=TokenCount(input=7), cost=9
)
_REQUEST = ChatRequest(messages=(Message("user", "Who?"),), role=Role.ANSWER, max_output_tokens=10, documents=("2",))
_RETYPE = Edit(kind=EditKind.RETYPE, entities=("ada",), type="Author", author="mary", reason="finer")


@run_as_coroutines
class ArchivesContract:
    """A subclass brings two fixtures beside `open_store`: `archives_of`, which returns the ArchiveStore of a store, and
    `load`, which fills the storage of a name from the bytes of an archive. After a failure that storage is new.
    """

    async def test_a_restored_index_has_the_same_facts_derivations_and_costs(
        self, open_store: OpenStore, archives_of: ArchivesOf, load: Load
    ) -> None:
        async with open_store("first") as store:
            await _fill(store)
            before = await _contents(store)
            archive = await _archive(archives_of(store))
        await load(archive, "second")
        async with open_store("second") as store:
            assert await _contents(store) == before
            assert await store.verify() == []
            async with store.view() as view:
                assert len(await view.search_text(NodeKind.CHUNK, "Babbage", 5)) == 1

    async def test_a_restored_index_continues_as_the_first_one_does(
        self, open_store: OpenStore, archives_of: ArchivesOf, load: Load
    ) -> None:
        async with open_store("first") as store:
            await _fill(store)
            archive = await _archive(archives_of(store))
        await load(archive, "second")
        dumps = []
        for name in ("first", "second"):
            async with open_store(name) as store:
                await publish(store, document("3", passage("Ada met Mary.", entity("Ada"), entity("Mary"))))
                await remove(store, "1")
                assert await store.verify() == []
                dumps.append((await _contents(store))["dump"])
        assert dumps[0] == dumps[1]

    async def test_work_that_waits_is_restored_and_belongs_to_nobody(
        self, open_store: OpenStore, archives_of: ArchivesOf, load: Load
    ) -> None:
        async with open_store("first") as store:
            await store.commit(Delta(enqueue=[source("waiting", "text"), source("claimed", "text")]))
            assert len(await store.claim_jobs(1)) == 1
            archive = await _archive(archives_of(store))
            await load(archive, "second")
            async with open_store("second") as other:
                assert {job.document_id for job in await other.claim_jobs(5)} == {"waiting", "claimed"}

    async def test_what_is_committed_meanwhile_is_not_in_the_archive(
        self, open_store: OpenStore, archives_of: ArchivesOf, load: Load
    ) -> None:
        async with open_store("first") as store:
            await _fill(store)
            before = await _contents(store)
            archive = await _archive(archives_of(store))
            await publish(store, document("late", passage("Late.", entity("Late"))))
        await load(archive, "second")
        async with open_store("second") as store:
            assert await _contents(store) == before

    async def test_an_archive_that_was_truncated_or_altered_is_refused_whole(
        self, open_store: OpenStore, archives_of: ArchivesOf, load: Load
    ) -> None:
        async with open_store("first") as store:
            await _fill(store)
            archive = await _archive(archives_of(store))
        places = range(0, len(archive), max(len(archive) // 40, 1))
        damaged = [archive[:place] for place in places] + [archive + b"x"]
        damaged += [archive[:place] + bytes([archive[place] ^ 1]) + archive[place + 1 :] for place in places]
        for content in damaged:
            with pytest.raises(Corrupt):
                await load(content, "second")
        await load(archive, "second")


async def _fill(store: Store) -> None:
    await store.set_embedder("test", 4)
    await publish(
        store,
        document(
            "1",
            passage(
                "Ada knew Babbage.",
                entity("Ada", "Person", "A countess."),
                entity("Babbage", "Person"),
                relation("Ada", "Babbage", "knew", keywords=("friend",), weight=2.0),
                claim("Ada", "She wrote.", "Babbage", kind="work", status="true"),
            ),
            title="Letters",
            metadata={"year": 1843, "tags": ("a", "b"), "share": 0.5},
        ),
        document("2", passage("郑和 met nobody.", entity("郑和", "Person"))),
    )
    await store.commit(Delta(edits=(_RETYPE,)))
    await store.record_call([_SPENT], CallReply(input_hash="00", payload="paid for", request=_REQUEST))


async def _archive(archives: ArchiveStore) -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "archive"
        await archives.write(file, _CREATED, lambda *_: None)
        return file.read_bytes()


async def _contents(store: Store) -> dict[str, Any]:
    async with store.view() as view:
        originals = [await view.content(document.original_hash) for document in await view.documents()]
        return {
            "dump": await dump(store),
            "counts": await view.counts(),
            "originals": originals,
            "status": [document.status is DocumentStatus.READY for document in await view.documents()],
            "usage": await store.usage(),
            "replies": await store.find_replies(["00"]),
        }
