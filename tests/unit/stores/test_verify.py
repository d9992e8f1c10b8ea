"""Tests of verify: each kind of tampering is a seeded fault, and each is found."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from quipu.errors import Corrupt, QuipuError
from quipu.model.delta import ChunkSentences, Delta, DocumentFacts, SynonymPair, SynonymUpdate
from quipu.model.derivation import DerivationRecord
from quipu.model.graph import EntityMention, RelationMention
from quipu.ports.store import ReadView, VectorSpace
from quipu.testing.contract.steps import DIMENSION, MODEL, dump, embed, publish, summarise
from quipu.testing.facts import claim, document, entity, passage, relation
from tests.unit.stores.opening import fill, open_index


async def assert_named(database: Path, statement: str, words: str) -> None:
    """Tamper with an index by a statement of SQL; `verify` says these words about it."""
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute(statement).rowcount != 0
    async with open_index(database) as store:
        differences = await store.verify()
    assert any(words in difference for difference in differences), differences


_WHO = "(SELECT rid FROM entity WHERE key = 'world health organization')"
_FIRST = "(SELECT min(rid) FROM chunk)"

# what was done, and words by which the report names it
_FAULTS: dict[str, tuple[str, str]] = {
    "an entity's name": ("UPDATE entity SET name = 'Bern' WHERE key = 'geneva'", "entity 'geneva'"),
    "an entity's type": ("UPDATE entity SET type = 'Person' WHERE key = 'geneva'", "entity 'geneva'"),
    "an entity's description": ("UPDATE entity SET description = 'x' WHERE key = 'geneva'", "entity 'geneva'"),
    "an entity's mentions": ("UPDATE entity SET n_mentions = n_mentions + 1 WHERE key = 'geneva'", "entity 'geneva'"),
    "an entity's chunks": ("UPDATE entity SET n_chunks = 1 WHERE key = 'geneva'", "entity 'geneva'"),
    "an entity's degree": ("UPDATE entity SET degree = 0 WHERE key = 'geneva'", "entity 'geneva'"),
    "an entity's key": ("UPDATE entity SET key = 'bern' WHERE key = 'geneva'", "'geneva'"),
    "an entity gone": ("DELETE FROM entity WHERE key = '长城'", "entity"),
    "an entity too many": ("INSERT INTO entity VALUES (99, 'bern', 'Bern', 'Other', '', 1, 1, 0, 'h', 0)", "'bern'"),
    "a relation's keywords": ("UPDATE relation SET keywords = '[\"war\"]'", "relation"),
    "a relation's description": ("UPDATE relation SET description = ''", "relation"),
    "a relation's weight": ("UPDATE relation SET weight = weight + 1", "relation"),
    "a relation's mentions": ("UPDATE relation SET n_mentions = 2", "relation"),
    "a relation's chunks": ("UPDATE relation SET n_chunks = 2", "relation"),
    "a relation gone": ("DELETE FROM relation", "relation"),
    "a relation's ends swapped": ("UPDATE relation SET source = target, target = source", "relation"),
    "a mention gone": ("DELETE FROM entity_mention WHERE surface = 'geneva'", "entity 'geneva'"),
    "a mention's surface": ("UPDATE entity_mention SET surface = 'Bern' WHERE surface = 'geneva'", "'Bern'"),
    "a relation's mention gone": ("DELETE FROM relation_mention", "relation"),
    "the rank of a description": ("UPDATE entity_mention SET description_order = 7 WHERE description != ''", "entity"),
    "a counted surface": ("UPDATE entity_surface SET n = n + 1 WHERE surface = 'Geneva'", "entity_surface 'Geneva'"),
    "a counted type": ("DELETE FROM entity_type WHERE type = 'Location'", "entity_type 'Location'"),
    "a counted keyword": ("UPDATE relation_keyword SET n = 5 WHERE keyword = 'town'", "relation_keyword 'town'"),
    "a link's count": ("UPDATE link SET n = n + 1 WHERE chunk = (SELECT max(rid) FROM chunk)", "links"),
    "a link gone": ("DELETE FROM link WHERE chunk = (SELECT max(rid) FROM chunk)", "links"),
    "a link of no chunk": ("INSERT INTO link SELECT min(rid), 99, 1 FROM name", "the chunk does not exist"),
    "a name's uses": ("UPDATE name SET n = n + 1 WHERE key = 'WHO'", "name 'WHO'"),
    "a name's words": ("UPDATE name SET words = 'bern' WHERE key = 'geneva'", "name 'geneva'"),
    "a name's spelling": ("UPDATE spelling SET spelling = 'bern' WHERE spelling = 'geneva'", "its spelling 'bern'"),
    "a name gone": ("DELETE FROM name WHERE key = 'geneva'", "name 'geneva'"),
    "a word too many in full text": (
        "INSERT INTO posting VALUES (1, 'zanzibar', x'0000', x'01', x'0000')",
        "term 'zanzibar' is in 0 chunks of a segment, indexed in 1",
    ),
    "full text emptied": ("DELETE FROM posting WHERE term NOT LIKE '^%'", "term 'geneva' is in 3 chunks"),
    "capitals emptied": ("DELETE FROM posting WHERE term LIKE '^%'", "key '0who' is in 2 chunks"),
    "a count in full text": (
        "UPDATE posting SET counts = x'02' WHERE term = 'old'",
        "term 'old' is indexed with other",
    ),
    "a position in full text": ("UPDATE posting SET positions = x'0900' WHERE term = 'old'", "term 'old'"),
    "a segment gone": ("DELETE FROM segment", "it is not in full text"),
    "a segment's sum": ("UPDATE segment SET n_terms = n_terms + 1", "the sums of segment 1"),
    "the length of a chunk in full text": (
        "UPDATE segment SET lengths = x'070000000400000005000000'",
        "segment 1 has other numbers of terms",
    ),
    "a segment too many": (
        "INSERT INTO segment SELECT 9, n_chunks, n_terms, first, last, chunks, lengths FROM segment",
        "is indexed 2 times",
    ),
    "a chunk of full text that does not exist": (
        "UPDATE segment SET chunks = x'010000000000000002000000000000006300000000000000'",
        "full text: chunk row 99 does not exist",
    ),
    "a chunk's text": ("UPDATE chunk SET text = replace(text, 'old', 'new')", "'old'"),
    "a chunk's span": ("UPDATE chunk SET end_char = end_char + 1", "span"),
    "a chunk of no document": (f"UPDATE chunk SET document = 99 WHERE rid = {_FIRST}", "document"),
    "a mention's span": (
        "UPDATE entity_mention SET start_char = 900, end_char = 906 WHERE surface = 'Geneva'",
        "span",
    ),
    "a chunk's place twice": ("UPDATE chunk SET ordinal = 0", "ordinal"),
    "a vector gone": ("DELETE FROM vector WHERE rid = (SELECT min(rid) FROM vector)", "missing"),
    "a vector of another text": ("UPDATE vector SET text_hash = 'x' WHERE rid = 1", "vector x"),
    "a vector cut short": ("UPDATE vector SET data = x'0000' WHERE rid = 1", "bytes"),
    "a vector in another space": (
        "UPDATE vector SET space = CASE space WHEN 'c' THEN 'e' ELSE 'c' END",
        "space",
    ),
    "a text queued that has its vector": (
        "INSERT INTO vector_todo SELECT model, text_hash, space FROM vector WHERE rid = 1",
        "queued",
    ),
    "a text queued that nothing has": ("INSERT INTO vector_todo VALUES (1, 'x', 'chunk')", "vector x"),
    "what an entity's vector stands for": ("UPDATE entity SET vector_hash = 'x' WHERE key = 'geneva'", "vector"),
    "what a chunk's vector stands for": (f"UPDATE chunk SET vector_hash = 'x' WHERE rid = {_FIRST}", "vector"),
    "metadata that filters compare": ("UPDATE metadata_value SET text = 'europe' WHERE field = 'region'", "'b.md'"),
    "metadata of nothing": ("INSERT INTO metadata_value VALUES (99, 'x', 0, 'y', NULL)", "metadata"),
    "a document's status": ("UPDATE document SET status = 'partial' WHERE id = 'b.md'", "'b.md'"),
    "a document's content hash": (
        "UPDATE document SET content_hash = 'x' WHERE id = 'a.md'",
        "document at rid 1",
    ),
    "a chunk's text hash": (f"UPDATE chunk SET text_hash = 'x' WHERE rid = {_FIRST}", "chunk at rid 1: it differs"),
    "a chunk's input hash": (f"UPDATE chunk SET input_hash = 'x' WHERE rid = {_FIRST}", "chunk at rid 1: it differs"),
    "a bit of a vector": ("UPDATE vector SET data = x'0000000000000001' WHERE rid = 1", "vector at rid 1: it differs"),
    "a relation mention's direction": (
        "UPDATE relation_mention SET is_reversed = 0",
        "relation_mention at chunk 1",
    ),
    "an alias as written": (
        "UPDATE alias_mention SET surface = 'Who'",
        "alias_mention at chunk 1",
    ),
    "a checksum": (
        "UPDATE chunk SET checksum = checksum + 1 WHERE rid = 2",
        "chunk at rid 2: it differs",
    ),
    "an alias of no entity": (f"UPDATE alias_mention SET entity = 99 WHERE entity = {_WHO}", "alias"),
}


_ACRE = "(SELECT rid FROM entity WHERE key = 'acre')"
_SUMMARY_FAULTS: dict[str, tuple[str, str]] = {
    "a summary's text": ("UPDATE summary SET text = 'x' WHERE kind = 'entity'", "entity 'acre'"),
    "a summary of a relation": ("UPDATE summary SET text = 'x' WHERE kind = 'relation'", "relation"),
    "a summary of other descriptions": ("UPDATE summary SET inputs_hash = 'x'", "other descriptions"),
    "a summary gone": ("DELETE FROM summary", "entity 'acre'"),
    "a summary of nothing": (
        "INSERT INTO summary VALUES ('entity', 99, 'x', 'y', 'm', 0)",
        "nothing is described",
    ),
    "a summary not shown": (f"UPDATE entity SET description = 'x' WHERE rid = {_ACRE}", "entity 'acre'"),
    "a summary not known of": (f"UPDATE entity SET described_by = 0 WHERE rid = {_ACRE}", "entity 'acre'"),
    "one that waits for nothing": ("UPDATE entity SET described_by = 1 WHERE key = 'venice'", "entity 'venice'"),
    "a description changed": (
        "UPDATE entity_mention SET description = 'x' WHERE description = 'Acre is 1.'",
        "other descriptions",
    ),
}


def _much_described() -> DocumentFacts:
    said = [
        passage(
            f"Acre {n}",
            entity("Acre", description=f"Acre is {n}."),
            entity("Venice"),
            relation("Acre", "Venice", f"They met at {n}."),
        )
        for n in range(9)
    ]
    return document("a", *said)


@pytest.mark.parametrize("fault", _SUMMARY_FAULTS)
async def test_tampering_with_summaries_is_found_and_named(database: Path, fault: str) -> None:
    statement, words = _SUMMARY_FAULTS[fault]
    async with open_index(database) as store:
        await publish(store, _much_described())
        assert len(await summarise(store)) == 2
        assert await store.verify() == []
    await assert_named(database, statement, words)


_CONTENT_FAULTS: dict[str, tuple[str, str]] = {
    "a kept text damaged": ("UPDATE content_part SET data = x'789C030000000001'", "its text is damaged"),
    "a kept file cut": ("UPDATE content_part SET data = x'00'", "its original is damaged"),
    "a kept text gone": ("DELETE FROM content_part", "'a': its text is missing"),
    "a kept text of nothing": ("DELETE FROM document_content WHERE kind = 't'", "no document keeps it"),
    "a kept text of no document": (
        "UPDATE document_content SET document = 99 WHERE document = 1",
        "its document is not live",
    ),
    "a kept text of another document": (
        "UPDATE document_content SET hash = (SELECT min(hash) FROM document_content) WHERE kind = 't'",
        "does not hold its chunks",
    ),
}


@pytest.mark.parametrize("fault", _CONTENT_FAULTS)
async def test_tampering_with_kept_texts_and_files_is_found_and_named(database: Path, fault: str) -> None:
    statement, words = _CONTENT_FAULTS[fault]
    async with open_index(database) as store:
        await publish(store, document("a", "Acre fell."), document("b", "Venice rose."))
        assert await store.verify() == []
    await assert_named(database, statement, words)


@pytest.mark.parametrize("column", ["entity", "object"])
async def test_a_claim_about_an_entity_that_is_not_there_is_found(database: Path, column: str) -> None:
    said = passage("Acre lied to Venice.", entity("Acre"), entity("Venice"), claim("Acre", "It lied.", "Venice"))
    async with open_index(database) as store:
        await publish(store, document("a", said))
        assert await store.verify() == []
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(f"UPDATE claim_mention SET {column} = 99")
    async with open_index(database) as store:
        assert await store.verify() == [
            "claim_mention at chunk 1, ordinal 0: it differs from its checksum (document 'a')",
            "claim 0 of chunk row 1: one of its entities does not exist (document 'a')",
        ]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("INSERT INTO reply_document VALUES ('gone', 'x', 0)", "reply x: it is kept for the document 'gone'"),
        ("INSERT INTO reply_source VALUES ('x', 'y')", "reply x: it was made from a reply that does not exist"),
    ],
)
async def test_a_reply_that_nothing_needs_is_found(database: Path, statement: str, words: str) -> None:
    async with open_index(database) as store:
        await fill(store)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(statement)
    async with open_index(database) as store:
        assert [each.startswith(words) for each in await store.verify()] == [True]


async def test_nothing_is_found_on_a_sound_index(database: Path) -> None:
    async with open_index(database) as store:
        await fill(store)
        assert await store.verify() == []


@pytest.mark.parametrize("fault", _FAULTS)
async def test_tampering_is_found_and_named(database: Path, fault: str) -> None:
    statement, words = _FAULTS[fault]
    async with open_index(database) as store:
        await fill(store)
    await assert_named(database, statement, words)


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("UPDATE chunk SET text = 'x'", lambda view, chunk: view.chunks([chunk])),
        ("UPDATE chunk SET start_char = 'x'", lambda view, _: view.chunks(document_id="a.md")),
        ("UPDATE document SET title = 'x'", lambda view, _: view.documents()),
        ("UPDATE entity_mention SET start_char = 1", lambda view, chunk: view.mentions(EntityMention, [chunk])),
        ("UPDATE relation_mention SET weight = 9", lambda view, chunk: view.mentions(RelationMention, [chunk])),
        ("UPDATE vector SET data = x'0000000000000001' WHERE rid = 2", lambda view, _: view.vectors(VectorSpace.CHUNK)),
        ("UPDATE vector SET data = x'00' WHERE rid = 2", lambda view, _: view.vectors(VectorSpace.CHUNK)),
    ],
)
async def test_a_damaged_row_is_not_used_for_an_answer(
    database: Path, statement: str, read: Callable[[ReadView, str], Awaitable[object]]
) -> None:
    async with open_index(database) as store:
        await fill(store)
        async with store.view() as view:
            chunk = (await view.chunks(document_id="a.md"))[0].id
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute(statement).rowcount != 0
    async with open_index(database) as store, store.view() as view:
        with pytest.raises(Corrupt, match="differs from its checksum") as caught:
            await read(view, chunk)
        assert "quipu verify" in caught.value.remedy


def _read(database: Path) -> bytes:
    return database.read_bytes()


def _write(database: Path, content: bytes) -> None:
    database.write_bytes(content)


async def test_swapped_pages_are_told_and_raise_nothing_else(database: Path) -> None:
    async with open_index(database) as store:
        await fill(store)
        await publish(store, *(document(f"d{n}", passage(f"Acre {n} is.", entity(f"Acre {n}"))) for n in range(40)))
        await embed(store)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    sound = _read(database)
    pages = [sound[start : start + size] for start in range(0, len(sound), size)]
    is_empty = [page[3:5] == b"\0\0" for page in pages]  # no cells: two such pages are equal but for garbage
    starts = [first for first in range(1, len(pages) - 1, 3) if not is_empty[first] or not is_empty[first + 1]]
    for first in starts:
        swapped = [*pages[:first], pages[first + 1], pages[first], *pages[first + 2 :]]
        _write(database, b"".join(swapped))
        try:
            async with open_index(database) as store:
                assert await store.verify() != []
        except QuipuError as error:
            assert error.message


async def test_a_report_of_many_differences_stays_short_and_says_so(database: Path) -> None:
    async with open_index(database) as store:
        await publish(store, document("a", passage("x", *(entity(f"Doge {n}") for n in range(50)))))
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE entity SET type = 'Person'")
        connection.commit()
    async with open_index(database) as store:
        differences = await store.verify()
    assert len(differences) == 21
    assert "30 more" in differences[-1]


async def test_building_full_text_anew_cures_full_text_names_and_links(database: Path) -> None:
    async with open_index(database) as store:
        await fill(store)
    with closing(sqlite3.connect(database)) as connection:
        for fault in ("a link's count", "a name's words", "a name gone", "full text emptied", "capitals emptied"):
            connection.execute(_FAULTS[fault][0])
        connection.commit()
    async with open_index(database) as store:
        assert await store.verify() != []
        await store.commit(Delta(rebuild_text=True))
        assert await store.verify() == []


# What no rebuild can know: a fault of facts. Every other one is repaired.
_OF_FACTS = frozenset(
    [
        *("an entity's key", "an entity gone", "a relation gone", "a relation's ends swapped", "a mention gone"),
        *("a mention's surface", "a relation's mention gone", "the rank of a description", "a chunk's text"),
        *("a chunk's span", "a chunk of no document", "a mention's span", "a chunk's place twice"),
        *(
            "what a chunk's vector stands for",
            "a document's status",
            "a document's content hash",
            "a chunk's text hash",
        ),
        *("a chunk's input hash", "a relation mention's direction", "an alias as written", "a checksum"),
        *("an alias of no entity",),
    ]
)


def _lines(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [line for line in connection.iterdump() if "'sqlite_" not in line]


@pytest.mark.parametrize("fault", _FAULTS)
async def test_a_repair_restores_the_same_state_or_names_a_fault_of_facts(database: Path, fault: str) -> None:
    async with open_index(database) as store:
        await fill(store)
        sound = await dump(store)
        assert [*await store.verify(facts_only=True), *await store.verify(losses_only=True)] == []
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(_FAULTS[fault][0])
    damaged = _lines(database)
    async with open_index(database) as store:
        faults = [*await store.verify(facts_only=True), *await store.verify(losses_only=True)]
        assert bool(faults) == (fault in _OF_FACTS), faults
        if faults:
            assert any("document" in message and ("'a.md'" in message or "'b.md'" in message) for message in faults)
            assert _lines(database) == damaged
        else:
            await store.commit(Delta(repair=True))
            await embed(store)
            assert await store.verify() == []
            assert await dump(store) == sound


@pytest.mark.parametrize("fault", [fault for fault in _SUMMARY_FAULTS if fault != "a description changed"])
async def test_a_repair_writes_damaged_summaries_again(database: Path, fault: str) -> None:
    async with open_index(database) as store:
        await publish(store, _much_described())
        await summarise(store)
        sound = await dump(store)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(_SUMMARY_FAULTS[fault][0])
    async with open_index(database) as store:
        assert await store.verify(facts_only=True) == []
        await store.commit(Delta(repair=True))
        await summarise(store)
        assert await store.verify() == []
        assert await dump(store) == sound


_LIKENESS_FAULTS = {
    "a name gone": ("DELETE FROM entity_name WHERE rid = 1", "entity row 1: it has no row for its name"),
    "a name too many": ("INSERT INTO entity_name VALUES (99, 'x', 0, 0)", "name of entity row 99: it should not"),
    "names nobody keeps": ("DELETE FROM derivation WHERE name = 'names'", "it should not exist"),
    "a cosine": ("UPDATE synonym SET similarity = similarity + 1", "synonyms of rows 1 and 2: stored"),
    "a synonym of nothing": ("UPDATE synonym SET second = 99", "has no vector"),
    "a sentence of no chunk": ("UPDATE sentence SET chunk = 99 WHERE ordinal = 1", "its chunk does not exist"),
    "synonyms nobody keeps": ("DELETE FROM derivation WHERE name = 'synonyms'", "synonyms: some exist"),
    "sentences nobody keeps": ("DELETE FROM derivation WHERE name = 'sentences'", "sentences: some exist"),
    "a chunk's sentences": ("DELETE FROM sentence", "it counts as split"),
    "a sentence gone": ("DELETE FROM sentence WHERE ordinal = 0", "sentence 1 of chunk row"),
    "a sentence's end": ("UPDATE sentence SET end_char = 9 WHERE ordinal = 0", "sentence at rid 1: it differs"),
    "a sentence over another": ("UPDATE sentence SET start_char = 0 WHERE ordinal = 1", "its place is not after"),
    "a question gone": ("DELETE FROM question", "question 0 of chunk row 1: its place differs"),
    "a question's end": ("UPDATE question SET end_char = 9", "question 0 of chunk row 1: its place differs"),
    "a question of no chunk": ("UPDATE question SET chunk = 99", "questions of chunk row 99: the chunk does not exist"),
}


@pytest.mark.parametrize("fault", _LIKENESS_FAULTS)
async def test_tampering_with_names_synonyms_and_sentences_is_found(database: Path, fault: str) -> None:
    statement, words = _LIKENESS_FAULTS[fault]
    said = passage("Acre fell. It rose.\n\nQ: When?\nA: Then.", entity("Acre"), entity("Akko"))
    facts = document("a", said)
    async with open_index(database) as store:
        await store.set_embedder(MODEL, DIMENSION)
        await publish(store, facts)
        await store.commit(
            Delta(
                derivations=[
                    DerivationRecord(name=name, identity="test/1", revision=1)
                    for name in ("names", "synonyms", "sentences")
                ]
            )
        )
        await embed(store)
        async with store.view() as view:
            block = await view.vectors(VectorSpace.NAME)
            revision = view.revision
        cosine = min(round(float(block.vectors[0].astype(float) @ block.vectors[1].astype(float)), 6), 1.0)
        pair = SynonymPair(first="acre", second="akko", similarity=cosine)
        found = SynonymUpdate(revision=revision, names=["acre", "akko"], pairs=[pair])
        spans = ChunkSentences(chunk=facts.chunks[0].chunk.id, spans=[(0, 10), (11, 19)])
        await store.commit(Delta(synonyms=found, sentences=[spans]))
        await embed(store)
        assert await store.verify() == []
    await assert_named(database, statement, words)
