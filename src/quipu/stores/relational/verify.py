"""Verification: every fold, link and index is computed again from the facts, by the simplest means, and compared."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from quipu.model.derivation import COMMUNITIES, HIERARCHY, NAMES, REPORTS, SENTENCES, SYNONYMS
from quipu.model.graph import (
    descriptions_hash,
    display_name,
    distinct_descriptions,
    join_descriptions,
    most_common_type,
    needs_summary,
    top_keywords,
)
from quipu.model.summary import SummaryTargetKind
from quipu.ports.store import VectorSpace
from quipu.stores.relational import change_log, chunks, cluster_writes, edits, history, repair, summaries, text_index
from quipu.stores.relational import schema as s
from quipu.stores.relational.conversations import conversation_differences
from quipu.stores.relational.documents import metadata_rows
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import blocks, metadata_from_json, texts_from_json
from quipu.stores.relational.text_index import chunk_words, full_text_differences, spelling_rows
from quipu.stores.relational.vector_writes import OWNERS
from quipu.stores.relational.vectors import owner_hashes
from quipu.text.formatting import format_count
from quipu.text.names import count_occurrences, group_by_anchor, name_words
from quipu.text.words import split_words

_MILLIONTHS = 1_000_000


def differences(snapshot: Snapshot) -> list[str]:
    """Return the differences from a computation from the facts in words, at most `repair.MAX_EXAMPLES` of each kind."""
    connection = snapshot.connection
    messages = snapshot.backend.damage(connection)
    folds = (_entities, _relations, _summaries, _summary_rows, _value_counts)
    rows = (repair.fact_differences, _metadata, _vectors, _reply_owners, edits.key_differences)
    indexes = (_names, _spellings, _links, text_index.question_differences)
    derivations = (cluster_differences, name_differences, sentence_differences)
    for check in (*folds, *rows, *indexes, *derivations, conversation_differences, history.differences):
        messages += repair.first(check(connection))
    messages += repair.first(edits.differences(snapshot))
    return messages + repair.first(full_text_differences(connection, snapshot.analyzer))


def broken_derivations(connection: Connection) -> list[str]:
    """Return the derivations whose rows are damaged, and which are therefore computed from the start."""
    broken: list[str] = []
    if _is_broken(connection, cluster_differences):
        broken += [COMMUNITIES, REPORTS, HIERARCHY]
    if _is_broken(connection, name_differences):
        broken.append(SYNONYMS)
    return [*broken, SENTENCES] if _is_broken(connection, sentence_differences) else broken


def _is_broken(connection: Connection, check: Callable[[Connection], Iterator[str]]) -> bool:
    return bool(repair.first(check(connection)))


def cluster_differences(connection: Connection) -> Iterator[str]:
    """Find damage in communities, aggregates and reports."""
    for check in (
        _clusters,
        _reports,
        cluster_writes.relation_differences,
        partial(repair.damaged_rows, tables=[s.report]),
    ):
        yield from check(connection)


def name_differences(connection: Connection) -> Iterator[str]:
    """Find damage in the names that are embedded, and in synonyms."""
    yield from _entity_names(connection)
    yield from _synonyms(connection)


def sentence_differences(connection: Connection) -> Iterator[str]:
    """Find damage in sentences."""
    yield from repair.damaged_rows(connection, [s.sentence])
    yield from _sentences(connection)


def _summary_rows(connection: Connection) -> Iterator[str]:
    return repair.damaged_rows(connection, [s.summary, s.vector])


def _entities(connection: Connection) -> Iterator[str]:
    mentions: dict[int, list[Any]] = {}
    for row in connection.execute(select(s.entity_mention)):
        mentions.setdefault(row.entity, []).append(row)
    degree = Counter[int]()
    for ends in connection.execute(select(s.relation.c.source, s.relation.c.target)):
        degree.update(ends)
    summary = _summary_by_owner(connection, SummaryTargetKind.ENTITY)
    expected = {rid: _fold_entity(rows, degree[rid], summary.get(rid)) for rid, rows in mentions.items()}
    stored: dict[int, tuple[object, ...]] = {}
    keys: dict[int, str] = {}
    for row in connection.execute(select(s.entity)):
        keys[row.rid] = row.key
        described = row.description, row.described_by
        stored[row.rid] = (row.name, row.type, *described, row.n_mentions, row.n_chunks, row.degree)
    yield from _compare("entity", keys, expected, stored)


def _fold_entity(mentions: list[Any], degree: int, summary: tuple[str, str] | None) -> tuple[object, ...]:
    return (
        display_name(Counter(m.surface for m in mentions)),
        most_common_type(Counter(m.type for m in mentions)),
        *_describe(mentions, summary),
        len(mentions),
        len({m.chunk for m in mentions}),
        degree,
    )


def _describe(mentions: list[Any], summary: tuple[str, str] | None) -> tuple[str, int]:
    """Return the description that these mentions give, or their summary if it is current, and where it comes from."""
    ordered = distinct_descriptions([(m.description_order, m.description) for m in mentions])
    inputs_hash, text = summary or ("", "")
    if needs_summary(ordered) and inputs_hash == descriptions_hash(ordered):
        return text, s.SUMMARISED
    return join_descriptions(ordered), s.WAITING if needs_summary(ordered) else s.JOINED


def _summary_by_owner(connection: Connection, kind: SummaryTargetKind) -> dict[int, tuple[str, str]]:
    rows = connection.execute(select(s.summary).where(s.summary.c.kind == kind.value))
    return {row.owner: (row.inputs_hash, row.text) for row in rows}


def _relations(connection: Connection) -> Iterator[str]:
    mentions: dict[int, list[Any]] = {}
    for row in connection.execute(select(s.relation_mention)):
        mentions.setdefault(row.relation, []).append(row)
    summary = _summary_by_owner(connection, SummaryTargetKind.RELATION)
    expected: dict[int, tuple[object, ...]] = {}
    for rid, rows in mentions.items():
        keywords = top_keywords(Counter(word for m in rows for word in texts_from_json(m.keywords)))
        counts = sum(m.weight for m in rows), len(rows), len({m.chunk for m in rows})
        expected[rid] = (keywords, *_describe(rows, summary.get(rid)), *counts)
    stored: dict[int, tuple[object, ...]] = {}
    for row in connection.execute(select(s.relation)):
        described = texts_from_json(row.keywords), row.description, row.described_by
        stored[row.rid] = (*described, row.weight, row.n_mentions, row.n_chunks)
    yield from _compare("relation", {rid: str(rid) for rid in stored}, expected, stored)


def _compare(
    kind: str, names: Mapping[int, str], expected: Mapping[int, object], stored: Mapping[int, object]
) -> Iterator[str]:
    for rid in sorted(expected.keys() | stored.keys()):
        if expected.get(rid) != stored.get(rid):
            name = names.get(rid, rid)
            yield f"{kind} {name!r}: stored {stored.get(rid)}, but the mentions give {expected.get(rid)}"


def _summaries(connection: Connection) -> Iterator[str]:
    """Find summaries of changed descriptions, and of entities and relations that do not exist."""
    for kind in SummaryTargetKind:
        summary = _summary_by_owner(connection, kind)
        hashes = summaries.input_hashes(connection, kind, sorted(summary))
        for rid, (inputs_hash, _) in sorted(summary.items()):
            if rid not in hashes:
                yield f"summary of {kind} row {rid}: nothing is described"
            elif hashes[rid] != inputs_hash:
                yield f"summary of {kind} row {rid}: it was made from other descriptions"


def _value_counts(connection: Connection) -> Iterator[str]:
    """Compare the counts of surfaces, types and keywords, on which the next fold builds."""
    m, r = s.entity_mention.c, s.relation_mention.c
    mentions = connection.execute(select(m.entity, m.surface, m.type)).all()
    keywords: Counter[tuple[int, str]] = Counter()
    for relation, words in connection.execute(select(r.relation, r.keywords)):
        keywords.update((relation, word) for word in texts_from_json(words))
    for table, expected in (
        (s.entity_surface, Counter((row.entity, row.surface) for row in mentions)),
        (s.entity_type, Counter((row.entity, row.type) for row in mentions)),
        (s.relation_keyword, keywords),
    ):
        stored = Counter({(row[0], row[1]): row[2] for row in connection.execute(select(table))})
        for key in sorted(expected.keys() | stored.keys()):
            if expected[key] != stored[key]:
                label = f"{table.name} {key[1]!r} of row {key[0]}"
                yield f"{label}: stored {stored[key]}, but the mentions give {expected[key]}"


def _metadata(connection: Connection) -> Iterator[str]:
    stored: dict[int, list[tuple[object, ...]]] = {}
    for row in connection.execute(select(s.metadata_value)):
        stored.setdefault(row.document, []).append((row.field, row.ordinal, row.text, row.number))
    for row in connection.execute(select(s.document.c.rid, s.document.c.id, s.document.c.metadata)):
        rows = metadata_rows(row.rid, metadata_from_json(row.metadata))
        expected = sorted((value["field"], value["ordinal"], value["text"], value["number"]) for value in rows)
        if sorted(stored.pop(row.rid, [])) != expected:
            yield f"document {row.id!r}: the metadata that filters compare differ from its metadata"
    yield from (f"metadata of document row {rid}: the document does not exist" for rid in sorted(stored))


def _vectors(connection: Connection) -> Iterator[str]:
    space_by_hash: dict[str, VectorSpace] = {}
    for space, table in OWNERS.items():
        hashes = owner_hashes(connection, space, connection.execute(select(table.c.rid)).scalars().all())
        for rid, text_hash in connection.execute(select(table.c.rid, table.c.vector_hash)):
            space_by_hash[text_hash] = space
            if text_hash != hashes.get(rid):
                yield f"{space} row {rid}: its vector is for another text"
    v, t = s.vector.c, s.vector_todo.c
    owned = space_by_hash.keys()
    for model in connection.execute(select(s.model)).all():
        stored = set(connection.execute(select(v.text_hash).where(v.model == model.rid)).scalars())
        queued = set(connection.execute(select(t.text_hash).where(t.model == model.rid)).scalars())
        yield from (f"vector {text_hash}: nothing has this text" for text_hash in sorted((stored | queued) - owned))
        yield from (f"vector {text_hash}: missing and not queued" for text_hash in sorted(owned - stored - queued))
        yield from (f"vector {text_hash}: it exists, but is queued" for text_hash in sorted(stored & queued))
        for text_hash, space in connection.execute(select(v.text_hash, v.space).where(v.model == model.rid)):
            if (expected := space_by_hash.get(text_hash, space)) != space:
                yield f"vector {text_hash}: it is in the space {space}, but its text is in {expected}"
        n_bytes = 2 * model.dimension
        damaged = select(v.text_hash).where(v.model == model.rid, func.length(v.data) != n_bytes)
        for text_hash in connection.execute(damaged.order_by(v.text_hash)).scalars():
            yield f"vector {text_hash}: it does not have {n_bytes} bytes"


def _names(connection: Connection) -> Iterator[str]:
    expected = {key: (n, name_words(key)) for key, n in repair.name_uses(connection).items()}
    stored = {row.key: (row.n, row.words) for row in connection.execute(select(s.name))}
    for key in sorted(expected.keys() | stored.keys()):
        if expected.get(key) != stored.get(key):
            yield f"name {key!r}: stored {stored.get(key)}, but entities and aliases give {expected.get(key)}"


def _spellings(connection: Connection) -> Iterator[str]:
    """Yield a line for each name whose spelling key is missing or wrong."""
    names: dict[str, int] = dict(map(tuple, connection.execute(select(s.name.c.key, s.name.c.rid))))
    expected = {(row["spelling"], row["name"]) for row in spelling_rows(names)}
    stored = set(map(tuple, connection.execute(select(*s.spelling.c))))
    for spelling, name in sorted(expected ^ stored):
        is_missing = (spelling, name) in expected
        yield f"name row {name}: its spelling {spelling!r} {'is missing' if is_missing else 'should not exist'}"


def _reply_owners(connection: Connection) -> Iterator[str]:
    d, f = s.reply_document.c, s.reply_source.c
    documents = select(s.document.c.id).union(select(s.job.c.document))
    for row in connection.execute(select(d.document, d.input_hash).where(d.document.not_in(documents)).order_by(*d)):
        yield f"reply {row.input_hash}: it is kept for the document {row.document!r}, which does not exist"
    lost = select(f.input_hash).where(f.source.not_in(select(s.reply.c.input_hash))).order_by(f.input_hash)
    for input_hash in connection.execute(lost).scalars():
        yield f"reply {input_hash}: it was made from a reply that does not exist"


def _links(connection: Connection) -> Iterator[str]:
    """Compare links with the names in the words of the chunks."""
    names = group_by_anchor(sorted(repair.name_uses(connection)))
    stored_links: dict[int, dict[str, int]] = {}
    n, k = s.name.c, s.link.c
    for row in connection.execute(select(k.chunk, n.key, k.n).join_from(s.link, s.name, k.name == n.rid)):
        stored_links.setdefault(row.chunk, {})[row.key] = row.n
    id_by_rid = {row.rid: row.id for row in connection.execute(select(s.chunk.c.rid, s.chunk.c.id))}
    for rids in blocks(sorted(id_by_rid)):
        for chunk in chunk_words(connection, rids):
            if count_occurrences(split_words(chunk.text), names) != stored_links.pop(chunk.rid, {}):
                yield f"chunk {id_by_rid[chunk.rid]}: its links differ from the names in its words"
    yield from (f"links of chunk row {rid}: the chunk does not exist" for rid in sorted(stored_links))


def _clusters(connection: Connection) -> Iterator[str]:
    """Check that members and parents of clusters exist, and that entities are counted right."""
    clusters = {row.rid: row for row in connection.execute(select(s.cluster).order_by(s.cluster.c.rid))}
    entities = set(connection.execute(select(s.entity.c.rid)).scalars())
    sizes, members = Counter[int](), set[tuple[int, str]]()
    for entity, rid in connection.execute(select(s.membership).order_by(*s.membership.c)):
        if rid not in clusters or entity not in entities:
            yield f"membership of entity row {entity} in cluster row {rid}: one of them does not exist"
            continue
        hierarchy = clusters[rid].hierarchy
        if (entity, hierarchy) in members:
            yield f"entity row {entity}: it is in two {hierarchy} clusters"
        members.add((entity, hierarchy))
        ancestor = rid
        while ancestor in clusters:
            sizes[ancestor] += 1
            ancestor = clusters[ancestor].parent
    for rid, row in clusters.items():
        parent = clusters.get(row.parent)
        if row.parent is not None and (parent is None or parent.hierarchy != row.hierarchy):
            yield f"cluster {row.id}: its parent does not exist"
        if row.n_entities != sizes[rid]:
            yield f"cluster {row.id}: stored {format_count(row.n_entities, 'entity')}, but there are {sizes[rid]}"


def _reports(connection: Connection) -> Iterator[str]:
    clusters = set(connection.execute(select(s.cluster.c.rid)).scalars())
    chunk_ids = set(connection.execute(select(s.chunk.c.id)).scalars())
    for row in connection.execute(select(s.report.c.rid, s.report.c.chunks).order_by(s.report.c.rid)):
        if row.rid not in clusters:
            yield f"report {row.rid}: its cluster does not exist"
        for missing in sorted(set(texts_from_json(row.chunks)) - chunk_ids):
            yield f"report {row.rid}: its source chunk {missing} does not exist"


def _entity_names(connection: Connection) -> Iterator[str]:
    """Check that each entity has a row for its name exactly while names are kept."""
    expected = set(connection.execute(select(s.entity.c.rid)).scalars())
    if not change_log.is_derived(connection, NAMES):
        expected = set()
    stored = set(connection.execute(select(s.entity_name.c.rid)).scalars())
    yield from (f"entity row {rid}: it has no row for its name" for rid in sorted(expected - stored))
    yield from (f"name of entity row {rid}: it should not exist" for rid in sorted(stored - expected))


def _synonyms(connection: Connection) -> Iterator[str]:
    """Compare the stored cosines with those of the vectors of both names."""
    if not change_log.is_derived(connection, SYNONYMS) and connection.execute(select(s.synonym).limit(1)).first():
        yield "synonyms: some exist, but they are not kept"
    p, n, v, m = s.synonym.c, s.entity_name.c, s.vector.c, s.model.c
    live = select(m.rid).where(m.state == "live").scalar_subquery()
    query = select(n.rid, v.data).join_from(s.entity_name, s.vector, (v.text_hash == n.vector_hash) & (v.model == live))
    vectors = {rid: np.frombuffer(packed, "<f2").astype(np.float64) for rid, packed in connection.execute(query)}
    for first, second, stored in connection.execute(select(s.synonym).order_by(p.first, p.second)):
        if first not in vectors or second not in vectors:
            yield f"synonyms of rows {first} and {second}: the name of one of them has no vector"
            continue
        cosine = min(round(float(vectors[first] @ vectors[second]) * _MILLIONTHS), _MILLIONTHS)
        if cosine != stored:
            yield f"synonyms of rows {first} and {second}: stored {stored}, but their names give {cosine}"


def _sentences(connection: Connection) -> Iterator[str]:
    if not change_log.is_derived(connection, SENTENCES) and connection.execute(select(s.sentence).limit(1)).first():
        yield "sentences: some exist, but they are not kept"
    yield from (f"chunk row {rid}: it counts as split, but is not" for rid in chunks.wrongly_split(connection))
    e, c = s.sentence.c, s.chunk.c
    text_by_chunk: dict[int, str] = dict(map(tuple, connection.execute(select(c.rid, c.text))))
    chunk, ordinal, end = -1, -1, 0
    for row in connection.execute(select(s.sentence).order_by(e.chunk, e.ordinal)):
        if row.chunk not in text_by_chunk:
            yield f"sentence row {row.rid}: its chunk does not exist"
            continue
        ordinal, end = (ordinal + 1, end) if row.chunk == chunk else (0, 0)
        chunk = row.chunk
        if row.ordinal != ordinal or not end <= row.start_char < row.end_char <= len(text_by_chunk[chunk]):
            yield f"sentence {row.ordinal} of chunk row {row.chunk}: its place is not after the previous sentence"
        end = row.end_char
