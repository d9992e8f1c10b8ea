"""Tests of query plans: the hot statements search through indexes and never read a whole table."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import REPORTS, DerivationRecord
from quipu.model.edit import Edit, EditKind
from quipu.model.graph import MAX_DESCRIPTIONS, ClaimMention, EntityMention, RelationMention
from quipu.model.ids import claim_id
from quipu.model.query import Filter
from quipu.model.summary import SummaryTarget, SummaryTargetKind
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import CallReply, OccurrenceKind, VectorSpace
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.steps import DIMENSION, MODEL, embed, publish, remove, summarise, summary_targets
from quipu.testing.facts import alias, claim, document, entity, passage, relation, source
from tests.unit.stores.opening import EXAMPLE, fill

# What may be read from end to end: values given with the statement, the steps of a walk, a snapshot's own short lists,
# the handful of models, the queue of work, and the segments of full text, one for thousands of chunks.
_SHORT = re.compile(
    r"SCAN (json_each|(anon|json_each)_\d+|VIRTUAL TABLE|(\d+ )?CONSTANT|\(subquery|p$|pick|allowed_\w+|model|job|meta|"
    r"segment|sqlite_master)"
)
_Executed = list[tuple[str, Any]]


@contextmanager
def _recorded(backend: SqliteBackend) -> Iterator[_Executed]:
    """Collect the statements that are executed meanwhile, each with its parameters."""
    executed: _Executed = []

    def note(_c: object, _cursor: object, statement: str, parameters: Any, _ctx: object, is_many: bool) -> None:
        executed.append((statement, parameters[0] if is_many else parameters))

    event.listen(backend._engine, "before_cursor_execute", note)
    yield executed
    event.remove(backend._engine, "before_cursor_execute", note)


def _scans(database: Path, executed: _Executed) -> list[str]:
    """Return the steps of the statements' plans that read something long from end to end, each with its statement."""
    steps = _steps(database, executed)
    return [f"{step}: {statement}" for step, statement in steps if step.startswith("SCAN") and not _SHORT.match(step)]


def _steps(database: Path, executed: _Executed) -> list[tuple[str, str]]:
    """Return the steps of the statements' plans, each with its statement."""
    found: list[tuple[str, str]] = []
    with closing(sqlite3.connect(database)) as connection:
        for name in ("allowed_document", "allowed_chunk"):
            connection.execute(f"CREATE TEMP TABLE {name} (rid INTEGER PRIMARY KEY)")
        for statement, parameters in executed:
            if statement.lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE", "INSERT", "WITH")):
                plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
                found += [(step, statement) for *_, step in plan]
    return found


@pytest.fixture
def backend(database: Path) -> Iterator[SqliteBackend]:
    backend = SqliteBackend(database, busy_timeout_s=5.0)
    yield backend
    backend.close()


@pytest.fixture
async def store(backend: SqliteBackend) -> RelationalStore:
    store = RelationalStore(backend, lease_s=60.0)
    await store.prepare()
    await fill(store)
    return store


async def test_a_full_scan_would_be_noticed(database: Path, backend: SqliteBackend, store: RelationalStore) -> None:
    with _recorded(backend) as executed:
        await store.verify()
    assert any(step.startswith("SCAN entity_mention") for step in _scans(database, executed))


async def test_a_commit_reads_no_table_from_end_to_end(
    database: Path, backend: SqliteBackend, store: RelationalStore
) -> None:
    said = passage(
        "Geneva met Bern. Nothing else.",
        entity("Geneva", description="A lake."),
        entity("Bern"),
        entity("Basel"),
        relation("Geneva", "Bern", "They met.", keywords=("meeting",)),
        relation("Basel", "Bern"),
        relation("Basel", "Geneva"),
        alias("Geneva", "Genf"),
        claim("Geneva", "It met Bern.", "Bern"),
    )
    with _recorded(backend) as executed:
        await publish(store, document("c.md", said, EXAMPLE[0].chunks[1].chunk.text), EXAMPLE[1])
        await publish(store, document("a.md", said, title="Geneva"))
        await embed(store)
        await remove(store, "b.md", "c.md")
    assert len(executed) > 100
    assert _scans(database, executed) == []


async def test_summaries_and_replies_are_kept_through_indexes(
    database: Path, backend: SqliteBackend, store: RelationalStore
) -> None:
    said = [
        passage(
            f"Geneva {n}.",
            entity("Geneva", description=f"Geneva is {n}."),
            entity("Bern"),
            relation("Geneva", "Bern", f"They met at {n}."),
        )
        for n in range(9)
    ]
    requests = [_request("c.md", "d.md", lifetime=lifetime) for lifetime in ReplyLifetime]
    with _recorded(backend) as executed:
        await publish(store, document("c.md", *said), document("d.md", *said[3:]))
        await summarise(store)
        for number, request in enumerate(requests):
            await store.record_call([], CallReply(input_hash=f"{number}", payload="reply", request=request))
            await store.find_replies([f"{number}"])
        await publish(store, document("d.md", said[4]))
        await publish(store, document("e.md", passage("Bern is new.", entity("Bern", description="New."))))
        await remove(store, "c.md")
    assert len(executed) > 100
    assert _scans(database, executed) == []


async def test_a_commit_reads_no_description_but_those_it_shows(backend: SqliteBackend, store: RelationalStore) -> None:
    """A hub's descriptions are looked up by rank, a step each, whether it has a summary or not."""
    said = [passage(f"Geneva {n}.", entity("Geneva", description=f"Geneva is {n}.")) for n in range(300)]
    await publish(store, document("c.md", *said))
    await summarise(store)
    n_rows: list[int] = []
    with _recorded(backend) as executed:
        await publish(store, document("d.md", said[7], passage("Geneva.", entity("Geneva", description="New."))))
        await publish(store, document("e.md", said[8]))
    with closing(backend._engine.raw_connection()) as connection:
        for statement, parameters in executed:
            if statement.lstrip().startswith(("SELECT", "WITH")) and "description" in statement:
                n_rows.append(len(connection.cursor().execute(statement, parameters).fetchall()))
    assert 0 < max(n_rows) <= MAX_DESCRIPTIONS + 1


def _request(*documents: str, lifetime: ReplyLifetime) -> ChatRequest:
    return ChatRequest(messages=(), role=Role.SUMMARISE, max_output_tokens=1, documents=documents, lifetime=lifetime)


async def test_reads_go_through_indexes(database: Path, backend: SqliteBackend, store: RelationalStore) -> None:
    await publish(store, document("c.md", passage("Geneva.", entity("Geneva"), claim("Geneva", "It is old."))))
    keys = ["geneva", "world health organization"]
    ids = ["geneva -- world health organization", "geneva -- 长城"]
    async with store.view() as view:
        chunks = [each.id for name in ("a.md", "b.md", "c.md") for each in await view.chunks(document_id=name)]
    with _recorded(backend) as executed:
        for allowed in (Filter(), Filter(documents=("a*",))):
            async with store.view(allowed) as view:
                await view.documents(["a.md"])
                await view.chunks(chunks)
                await view.chunks(document_id="a.md")
                await view.entities(keys)
                await view.relations(ids)
                await view.relations(entities=keys)
                await view.entities(keys, 2)
                await view.keys_by_name([*keys, "WHO"])
                await view.occurrences(OccurrenceKind.ENTITY, keys, 10)
                await view.strongest_relations(keys, 10)
                await view.occurrences(OccurrenceKind.RELATION, ids)
                await view.mentions(EntityMention, chunks)
                await view.mentions(RelationMention, chunks)
                await view.mentions(ClaimMention, chunks)
                await view.claims(subjects=keys, k=10)
                await view.claims([claim_id(chunk, 0) for chunk in chunks])
                await view.search_text(NodeKind.CHUNK, "geneva 长城", 10)
                for space, wanted in (
                    (VectorSpace.CHUNK, chunks),
                    (VectorSpace.ENTITY, keys),
                    (VectorSpace.RELATION, ids),
                ):
                    rows = (await view.vectors(space, 0)).rows.tolist()
                    await view.numbers(space, wanted)
                    await view.vectors(space, since=1)
                    if allowed.is_empty():
                        await view.vector_owners(space, rows)
    # A filter has to look at every document once.
    assert [step for step in _scans(database, executed) if "INSERT INTO allowed_document" not in step] == []


async def test_a_few_clusters_are_read_without_looking_at_the_others(
    database: Path, backend: SqliteBackend, store: RelationalStore
) -> None:
    hierarchy = Hierarchy.COMMUNITIES
    parts = [
        Cluster(id="all", hierarchy=hierarchy, level=0, inputs_hash="all"),
        Cluster(id="x", hierarchy=hierarchy, level=1, parent="all", members=("geneva", "长城"), inputs_hash="x"),
    ]
    async with store.view() as view:
        partition = Partition(hierarchy=hierarchy, clusters=parts, revision=view.revision)
    await store.commit(
        Delta(partition=partition, derivations=[DerivationRecord(name=REPORTS, identity="test/1", revision=1)])
    )
    await store.commit(Delta(reports=[ClusterReport(cluster="x", title="X", summary="It is.", inputs_hash="x")]))
    await embed(store)
    with _recorded(backend) as executed:
        for allowed in (Filter(), Filter(documents=("a*",))):
            async with store.view(allowed) as view:
                for with_members in (True, False):
                    assert await view.clusters(hierarchy, ["x"], with_members=with_members)
                assert await view.clusters(hierarchy, entities=["geneva"])
                await view.cluster_reports(["all", "x"])
                await view.cluster_reports(["all", "x"], with_text=False)
                await view.cluster_relations(["all", "x"])
                await view.allowed_numbers(VectorSpace.REPORT)
                await view.numbers(VectorSpace.REPORT, ["x"])
    assert [step for step, _ in _steps(database, executed) if "cluster_hierarchy" in step] == []
    assert [step for step in _scans(database, executed) if "INSERT INTO allowed_document" not in step] == []


async def test_edits_are_made_and_undone_through_indexes(
    database: Path, backend: SqliteBackend, store: RelationalStore
) -> None:
    edits = [
        Edit(kind=EditKind.RENAME, entities=("geneva",), key="geneve", name="Genève"),
        Edit(kind=EditKind.HIDE, entities=("bern", "geneve")),
    ]
    with _recorded(backend) as executed:
        made = (await store.commit(Delta(edits=edits))).edits
        await publish(store, document("c.md", passage("Geneva.", entity("Geneva"))))
        await store.commit(Delta(undo=made))
    assert len(executed) > 50
    assert _scans(database, executed) == []


async def test_the_queues_are_read_through_indexes(
    database: Path, backend: SqliteBackend, store: RelationalStore
) -> None:
    await publish(store, document("c.md", "Three."))
    with _recorded(backend) as executed:
        await store.texts_without_vector(MODEL, 10)
        await store.find_replies(["x"])
        await summary_targets(store)
        await store.summary_tasks(
            [
                SummaryTarget(SummaryTargetKind.ENTITY, "geneva"),
                SummaryTarget(SummaryTargetKind.RELATION, "bern -- geneva"),
            ]
        )
        await store.commit(Delta(enqueue=[source("d.md")]))
        await store.set_embedder(MODEL, DIMENSION)
    assert _scans(database, executed) == []


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (
            "SELECT min(description_order) FROM entity_mention WHERE entity = 1 AND description_order > 5",
            "COVERING INDEX entity_mention_entity (entity=? AND description_order>?)",
        ),
        ("SELECT key FROM name WHERE words IN ('x', 'y')", "name_words (words=?)"),
        ("SELECT max(words) FROM name WHERE words <= 'x y'", "COVERING INDEX name_words (words<?)"),
        ("SELECT 1 FROM vector_todo WHERE model = 1 AND text_hash = 'x'", "(model=? AND text_hash=?)"),
        ("SELECT rid FROM vector WHERE model = 1 AND space = 'x' AND rid > 5", "(model=? AND space=? AND rowid>?)"),
    ],
)
async def test_the_indexes_that_cost_depends_on_are_used(
    database: Path, store: RelationalStore, statement: str, index: str
) -> None:
    with closing(sqlite3.connect(database)) as connection:
        steps = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert any(index in step for step in steps), steps
