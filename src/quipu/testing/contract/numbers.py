"""Numbers: the graph as rows of numbers, and what changed of it, for arrays that follow it from outside."""

from itertools import pairwise

import numpy as np

from quipu.model.delta import Delta
from quipu.model.derivation import DerivationRecord
from quipu.model.query import Filter
from quipu.ports.derivation_view import AliasRows, ChangeSet, GraphRows, Ints, NodeKind
from quipu.ports.store import OccurrenceKind, ReadView, Store
from quipu.testing.contract.steps import OpenStore, publish, remove
from quipu.testing.facts import alias, document, entity, passage, relation

ADA, BOB, WHO = entity("Ada"), entity("Bob"), entity("World Health Organization")
PAGES = (
    document(
        "a", passage("Ada met Bob. Ada!", ADA, BOB, relation("Ada", "Bob", weight=1.5)), passage("Ada wrote.", ADA)
    ),
    document("b", passage("The World Health Organization (WHO).", WHO, alias("World Health Organization", "WHO"))),
    document("c", passage("Bob of the WHO.", BOB), passage("Nobody.", relation("Ada", "Bob"), BOB, ADA)),
)
KEYS = ["ada", "bob", "world health organization"]

Counted = dict[tuple[str, str], tuple[int, ...]]


async def _all(view: ReadView) -> list[str]:
    return [chunk.id for doc in await view.documents() for chunk in await view.chunks(document_id=doc.id)]


async def _appearances(rows: GraphRows, view: ReadView) -> Counted:
    """Return, by entity and chunk, how often it appears, is mentioned and is named by its key there."""
    return await _by_ids(rows.entities, rows.chunks, [rows.counts, rows.mentions, rows.keyed], view)


async def _by_ids(entities: Ints, chunks: Ints, counts: list[Ints], view: ReadView) -> Counted:
    keys = await view.ids(NodeKind.ENTITY, entities.tolist())
    ids = await view.ids(NodeKind.CHUNK, chunks.tolist())
    counted = zip(entities.tolist(), chunks.tolist(), *(counter.tolist() for counter in counts), strict=True)
    return {(keys[number], ids[chunk]): tuple(values) for number, chunk, *values in counted}


async def _history_nonce(view: ReadView, revision: int) -> int | None:
    changes = await view.changes_since(revision)
    assert changes is not None
    return changes.history_nonce


async def _rows_after(store: Store, revision: int) -> tuple[ChangeSet, GraphRows]:
    async with store.view() as view:
        changed = await view.changes_since(revision)
        assert changed is not None
        return changed, await view.graph_rows(changed)


class NumbersContract:
    """What is promised of numbers, and of the graph told in them."""

    async def test_numbers_lead_to_ids_and_back(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *PAGES)
            async with store.view() as view:
                chunks = await _all(view)
                numbers = await view.numbers(NodeKind.ENTITY, ["bob", "nobody", *KEYS])
                assert list(numbers) == ["bob", "ada", "world health organization"]
                assert await view.ids(NodeKind.ENTITY, list(numbers.values())) == {n: key for key, n in numbers.items()}
                by_id = await view.numbers(NodeKind.CHUNK, [*chunks, "nothing"])
                assert list(by_id) == chunks
                assert await view.ids(NodeKind.CHUNK, [*by_id.values(), 10_000]) == {n: i for i, n in by_id.items()}
                assert await view.allowed_numbers(NodeKind.CHUNK) is None

    async def test_chunks_lead_to_the_entity_that_their_title_names_within_the_filter(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await publish(
                store,
                document("a", passage("Ada wrote.", ADA), passage("She lived."), title="Ada (person)"),
                document("b", passage("Ada met Bob.", ADA, BOB), title="Notes"),
                document("c", "Nothing.", title="Bob"),
            )
            async with store.view() as view:
                chunks = await view.numbers(NodeKind.CHUNK, await _all(view))
                ada, bob = (await view.numbers(NodeKind.ENTITY, ["ada", "bob"])).values()
                first, second, _, last = chunks.values()
                titled = {first: ada, second: ada, last: bob}
                assert await view.title_entities([*chunks.values(), 10_000]) == titled
                assert await view.title_entities([*chunks.values()]) == titled
            async with store.view(Filter(documents=("a", "c"))) as view:
                assert await view.title_entities(list(chunks.values())) == {first: ada, second: ada}

    async def test_within_a_filter_only_what_it_allows_has_a_number(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *PAGES)
            async with store.view() as view:
                numbers, by_id = (
                    await view.numbers(NodeKind.ENTITY, KEYS),
                    await view.numbers(NodeKind.CHUNK, await _all(view)),
                )
            async with store.view(Filter(documents=("b",))) as view:
                (chunk,) = await _all(view)
                assert list(await view.numbers(NodeKind.ENTITY, KEYS)) == ["world health organization"]
                assert list((await view.ids(NodeKind.ENTITY, list(numbers.values()))).values()) == [
                    "world health organization"
                ]
                assert await view.numbers(NodeKind.CHUNK, list(by_id)) == {chunk: by_id[chunk]}
                assert await view.ids(NodeKind.CHUNK, list(by_id.values())) == {by_id[chunk]: chunk}
                allowed = await view.allowed_numbers(NodeKind.CHUNK)
                assert allowed is not None
                assert allowed.tolist() == [by_id[chunk]]

    async def test_rows_tell_how_often_chunks_name_entities(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *PAGES)
            async with store.view() as view:
                occurrences = await _appearances(await view.graph_rows(), view)
                named = await view.occurrences(OccurrenceKind.ENTITY, KEYS, 100)
                assert {pair: counts[0] for pair, counts in occurrences.items()} == {
                    (key, chunk): n for key, counts in named.items() for chunk, n in counts.items()
                }
                first, *_, alias_chunk, last = await _all(view)
                assert occurrences["ada", first] == (2, 1, 2)
                assert occurrences["world health organization", alias_chunk] == (1, 0, 0)  # by its alias alone
                assert occurrences["ada", last] == (1, 1, 0)

    async def test_rows_tell_every_statement_and_every_place(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *PAGES)
            async with store.view() as view:
                rows = await view.graph_rows()
                keys = await view.ids(NodeKind.ENTITY, [*rows.sources.tolist(), *rows.targets.tolist()])
                ids = await view.ids(NodeKind.CHUNK, rows.placed.tolist())
                first, *_, last = await _all(view)
                stated = zip(rows.sources, rows.targets, rows.stated_in, rows.weights, strict=True)
                assert sorted((keys[int(a)], keys[int(b)], ids[int(c)], int(w)) for a, b, c, w in stated) == sorted(
                    [("ada", "bob", first, 1500), ("ada", "bob", last, 1000)]
                )
                at = dict(zip(rows.placed.tolist(), zip(rows.documents, rows.ordinals, strict=True), strict=True))
                places = [at[number] for number in (await view.numbers(NodeKind.CHUNK, await _all(view))).values()]
                assert [int(ordinal) for _, ordinal in places] == [0, 1, 0, 0, 1]
                assert [int(a) == int(b) for (a, _), (b, _) in pairwise(places)] == [
                    True, False, False, True
                ]  # fmt: skip

    async def test_rows_of_what_changed_are_those_of_its_chunks_and_entities(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, PAGES[2])
            await publish(store, *PAGES[:2])
            changed, rows = await _rows_after(store, 1)
            async with store.view() as view:
                every = await view.graph_rows()
                occurrences, whole = await _appearances(rows, view), await _appearances(every, view)
                chunks = set((await view.ids(NodeKind.CHUNK, changed.chunks.tolist())).values())
                entities = set((await view.ids(NodeKind.ENTITY, changed.entities.tolist())).values())
            assert entities == {"world health organization"}
            assert len(chunks) == 3
            assert occurrences == {pair: n for pair, n in whole.items() if pair[0] in entities or pair[1] in chunks}
            assert sorted(rows.stated_in.tolist()) == sorted(
                set(every.stated_in.tolist()) & set(changed.chunks.tolist())
            )
            assert sorted(rows.placed.tolist()) == changed.chunks.tolist()

    async def test_what_goes_and_what_moves_is_told(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One.", passage("Two.", ADA), "Three."))
            async with store.view() as view:
                one, two, three = (await view.numbers(NodeKind.CHUNK, await _all(view))).values()
                (ada,) = (await view.numbers(NodeKind.ENTITY, ["ada"])).values()
            await publish(store, document("a", "Three.", "One."))
            changed, rows = await _rows_after(store, 1)
            assert changed.chunks.tolist() == sorted([one, two, three])
            assert changed.entities.tolist() == [ada]
            assert sorted(rows.placed.tolist()) == sorted([one, three])
            assert rows.entities.tolist() == []
            await remove(store, "a")
            assert (await _rows_after(store, 2))[0].chunks.tolist() == sorted([one, three])

    async def test_nothing_has_changed_since_now_and_the_future_is_not_known(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *PAGES)
            async with store.view() as view:
                now = await view.changes_since(view.revision)
                assert now is not None
                assert [now.chunks.tolist(), now.entities.tolist()] == [[], []]
                assert await view.changes_since(view.revision + 1) is None

    async def test_a_purge_forgets_what_changed(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *PAGES)
            await store.purge()
            async with store.view() as view:
                assert await view.changes_since(0) is None
                assert await view.changes_since(view.revision) is not None
                assert await _history_nonce(view, view.revision) is not None

    async def test_a_purge_keeps_what_changed_since_a_derivation_was_made(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, PAGES[0])
            async with store.view() as view:
                old, revision = view.revision - 1, view.revision
            await store.commit(
                Delta(derivations=[DerivationRecord(name="shelf", identity="shelf/1", revision=revision)])
            )
            await publish(store, PAGES[1])
            async with store.view() as view:
                before = await view.changes_since(revision)
            for _ in range(2):
                await store.purge()
                async with store.view() as view:
                    now = await view.changes_since(revision)
                    assert before is not None
                    assert now is not None
                    assert now.chunks.tolist() == before.chunks.tolist() != []
                    assert await view.changes_since(old) is None

    async def test_what_a_purge_forgot_stays_forgotten(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *PAGES)
            await store.purge()
            await store.commit(Delta(derivations=[DerivationRecord(name="shelf", identity="shelf/1", revision=0)]))
            await store.purge()
            async with store.view() as view:
                assert await view.changes_since(0) is None

    async def test_each_revision_has_its_own_history_nonce(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            for _ in range(3):
                await store.commit(Delta())
            async with store.view() as view:
                nonces = [await _history_nonce(view, revision) for revision in (1, 2, 3)]
                assert None not in nonces
                assert len(set(nonces)) == 3

    async def test_aliases_count_where_allowed_chunks_state_them(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *PAGES)
            counted = []
            for documents in (("a", "c"), ("b", "c")):
                async with store.view(Filter(documents=documents)) as view:
                    rows: AliasRows = await view.alias_rows()
                    counted.append(await _by_ids(rows.entities, rows.chunks, [rows.counts], view))
            assert counted[0] == {}
            assert sorted((key, n) for (key, _), n in counted[1].items()) == [
                ("world health organization", (1,)),
                ("world health organization", (1,)),
            ]

    async def test_an_empty_store_has_no_rows(self, open_store: OpenStore) -> None:
        async with open_store() as store, store.view() as view:
            rows = await view.graph_rows()
            names = [name for name in GraphRows.__slots__ if name != "synonyms"]
            assert all(np.array_equal(getattr(rows, name), []) for name in names)
            assert len(rows.synonyms.firsts) == 0
