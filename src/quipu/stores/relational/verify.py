"""Verify: compute every fold, link and index again from the facts, by the plainest means, and compare."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, func, select

from quipu.model.document import DocumentStatus
from quipu.model.fold import (
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
from quipu.stores.relational import cluster_checks, cluster_writes, likeness_checks, replies, summaries
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.documents import metadata_rows
from quipu.stores.relational.jobs import metadata_from_json
from quipu.stores.relational.sql import blocks, texts_from_json
from quipu.stores.relational.text_index import chunk_words, index_terms, owner_hashes
from quipu.stores.relational.vector_writes import OWNERS
from quipu.text.formatting import format_count
from quipu.text.names import anchor, capital_terms, count_occurrences, is_linkable, name_forms
from quipu.text.words import Analyzer, split_words

MAX_EXAMPLES = 20


def differences(connection: Connection, backend: Backend, analyzer: Analyzer) -> list[str]:
    """Return what differs from a computation from the facts, in words; at most MAX_EXAMPLES of each kind."""
    found = backend.damage(connection)
    folds = (_entities, _relations, _summaries, _counts)
    derived = (cluster_checks.differences, cluster_writes.relation_differences, likeness_checks.differences)
    for check in (*folds, _chunks, _mentions, _metadata, _vectors, _names, _replies, *derived):
        found += _first(check(connection))
    found += _first(_text(connection, backend, analyzer))
    return found


def _first(differences: Iterator[str]) -> list[str]:
    listed = list(differences)
    extra = [f"… and {len(listed) - MAX_EXAMPLES} more of this kind"] if len(listed) > MAX_EXAMPLES else []
    return listed[:MAX_EXAMPLES] + extra


def _entities(connection: Connection) -> Iterator[str]:
    mentions: dict[int, list[Any]] = {}
    for row in connection.execute(select(s.entity_mention)):
        mentions.setdefault(row.entity, []).append(row)
    degree = Counter[int]()
    for source, target in connection.execute(select(s.relation.c.source, s.relation.c.target)):
        degree.update((source, target))
    kept_summaries = _summaries_of(connection, SummaryTargetKind.ENTITY)
    expected = {rid: _folded_entity(said, degree[rid], kept_summaries.get(rid)) for rid, said in mentions.items()}
    kept: dict[int, tuple[object, ...]] = {}
    keys: dict[int, str] = {}
    for row in connection.execute(select(s.entity)):
        keys[row.rid] = row.key
        described = row.description, row.described_by
        kept[row.rid] = (row.name, row.type, *described, row.n_mentions, row.n_chunks, row.degree)
    yield from _compare("entity", keys, expected, kept)


def _folded_entity(mentions: list[Any], degree: int, summary: tuple[str, str] | None) -> tuple[object, ...]:
    return (
        display_name(Counter(m.surface for m in mentions)),
        most_common_type(Counter(m.type for m in mentions)),
        *_described(mentions, summary),
        len(mentions),
        len({m.chunk for m in mentions}),
        degree,
    )


def _described(mentions: list[Any], summary: tuple[str, str] | None) -> tuple[str, int]:
    """Return the description these mentions give, with their summary where it is of all they say, and what it is."""
    ordered = distinct_descriptions([(m.description_order, m.description) for m in mentions])
    inputs_hash, text = summary or ("", "")
    if needs_summary(ordered) and inputs_hash == descriptions_hash(ordered):
        return text, s.SUMMARISED
    return join_descriptions(ordered), s.WAITING if needs_summary(ordered) else s.JOINED


def _summaries_of(connection: Connection, kind: SummaryTargetKind) -> dict[int, tuple[str, str]]:
    rows = connection.execute(select(s.summary).where(s.summary.c.kind == kind.value))
    return {row.owner: (row.inputs_hash, row.text) for row in rows}


def _summaries(connection: Connection) -> Iterator[str]:
    """Look for summaries of descriptions that are others now, or of what is not there."""
    for kind in SummaryTargetKind:
        kept = _summaries_of(connection, kind)
        hashes = summaries.input_hashes(connection, kind, sorted(kept))
        for rid, (inputs_hash, _) in sorted(kept.items()):
            if rid not in hashes:
                yield f"summary of {kind} row {rid}: nothing is described"
            elif hashes[rid] != inputs_hash:
                yield f"summary of {kind} row {rid}: it was made of other descriptions"


def _relations(connection: Connection) -> Iterator[str]:
    mentions: dict[int, list[Any]] = {}
    for row in connection.execute(select(s.relation_mention)):
        mentions.setdefault(row.relation, []).append(row)
    expected: dict[int, tuple[object, ...]] = {}
    kept_summaries = _summaries_of(connection, SummaryTargetKind.RELATION)
    for rid, said in mentions.items():
        keywords = Counter(word for m in said for word in texts_from_json(m.keywords))
        expected[rid] = (
            top_keywords(keywords),
            *_described(said, kept_summaries.get(rid)),
            sum(m.weight for m in said),
            len(said),
            len({m.chunk for m in said}),
        )
    kept = {
        row.rid: (
            texts_from_json(row.keywords),
            row.description,
            row.described_by,
            row.weight,
            row.n_mentions,
            row.n_chunks,
        )
        for row in connection.execute(select(s.relation))
    }
    yield from _compare("relation", {rid: str(rid) for rid in kept}, expected, kept)


def _compare(
    kind: str, names: Mapping[int, str], expected: Mapping[int, object], kept: Mapping[int, object]
) -> Iterator[str]:
    for rid in sorted(expected.keys() | kept.keys()):
        if expected.get(rid) != kept.get(rid):
            yield f"{kind} {names.get(rid, rid)!r}: kept {kept.get(rid)}, but the mentions give {expected.get(rid)}"


def _chunks(connection: Connection) -> Iterator[str]:
    """Compare each document's status, and its chunks' places and spans, with the chunks themselves."""
    c = s.chunk.c
    chunks: dict[int, list[Any]] = {}
    for row in connection.execute(select(c.id, c.document, c.ordinal, c.text, c.start_char, c.end_char, c.error)):
        chunks.setdefault(row.document, []).append(row)
        if row.end_char - row.start_char != len(row.text):
            span = format_count(row.end_char - row.start_char, "character")
            yield f"chunk {row.id}: its span has {span}, its text {len(row.text)}"
    for document in connection.execute(select(s.document.c.rid, s.document.c.id, s.document.c.status)):
        of_document = chunks.pop(document.rid, [])
        if sorted(row.ordinal for row in of_document) != list(range(len(of_document))):
            yield f"document {document.id!r}: the ordinals of its chunks do not count from 0"
        status = DocumentStatus.PARTIAL if any(row.error for row in of_document) else DocumentStatus.READY
        if document.status != status:
            yield f"document {document.id!r}: its status is {document.status}, but its chunks make it {status}"
    yield from (f"chunk {row.id}: its document is not live" for rows in chunks.values() for row in rows)


def _mentions(connection: Connection) -> Iterator[str]:
    """Look for mentions outside their chunk's text, and for aliases and claims of entities that are not there."""
    m, c, a, k = s.entity_mention.c, s.chunk.c, s.alias_mention.c, s.claim_mention.c
    outside = select(c.id, m.ordinal).join(s.chunk, c.rid == m.chunk)
    outside = outside.where((m.start_char < 0) | (m.end_char < m.start_char) | (m.end_char > func.length(c.text)))
    for row in connection.execute(outside.order_by(c.id, m.ordinal)):
        yield f"chunk {row.id}: the span of mention {row.ordinal} is outside its text"
    known = select(s.entity.c.rid)
    lost = select(a.alias).where(a.entity.not_in(known)).order_by(a.alias)
    yield from (f"alias {alias!r}: its entity is not there" for alias in connection.execute(lost).scalars())
    claimed = select(k.chunk, k.ordinal).where(k.entity.not_in(known) | k.object.not_in(known))
    for row in connection.execute(claimed.order_by(k.chunk, k.ordinal)):
        yield f"claim {row.ordinal} of chunk row {row.chunk}: an entity of its is not there"


def _counts(connection: Connection) -> Iterator[str]:
    """Compare the format_count surfaces, types and keywords, which the next fold will build on."""
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
        kept = {(row[0], row[1]): row[2] for row in connection.execute(select(table))}
        for owner, value in sorted(expected.keys() | kept.keys()):
            if expected[owner, value] != kept.get((owner, value), 0):
                yield (
                    f"{table.name} {value!r} of row {owner}: kept {kept.get((owner, value), 0)}, "
                    f"but the mentions give {expected[owner, value]}"
                )


def _metadata(connection: Connection) -> Iterator[str]:
    kept: dict[int, list[tuple[object, ...]]] = {}
    for row in connection.execute(select(s.metadata_value)):
        kept.setdefault(row.document, []).append((row.field, row.ordinal, row.text, row.number))
    for row in connection.execute(select(s.document.c.rid, s.document.c.id, s.document.c.metadata)):
        expected = metadata_rows(row.rid, metadata_from_json(row.metadata))
        values = sorted((each["field"], each["ordinal"], each["text"], each["number"]) for each in expected)
        if sorted(kept.pop(row.rid, [])) != values:
            yield f"document {row.id!r}: the metadata that filters compare are not its metadata"
    yield from (f"metadata of document row {rid}: there is no such document" for rid in sorted(kept))


def _vectors(connection: Connection) -> Iterator[str]:
    owned: dict[str, VectorSpace] = {}
    for space, table in OWNERS.items():
        rids = connection.execute(select(table.c.rid)).scalars().all()
        texts = dict(owner_hashes(connection, space, rids))
        for rid, text_hash in connection.execute(select(table.c.rid, table.c.vector_hash)):
            owned[text_hash] = space
            if text_hash != texts.get(rid):
                yield f"{space} row {rid}: its vector is that of another text"
    v, t = s.vector.c, s.vector_todo.c
    for model in connection.execute(select(s.model)).all():
        kept = set(connection.execute(select(v.text_hash).where(v.model == model.rid)).scalars())
        waiting = set(connection.execute(select(t.text_hash).where(t.model == model.rid)).scalars())
        yield from (
            f"vector {text_hash}: nothing has this text" for text_hash in sorted((kept | waiting) - owned.keys())
        )
        yield from (
            f"vector {text_hash}: missing and not queued" for text_hash in sorted(owned.keys() - kept - waiting)
        )
        yield from (f"vector {text_hash}: there, yet queued" for text_hash in sorted(kept & waiting))
        for text_hash, space in connection.execute(select(v.text_hash, v.space).where(v.model == model.rid)):
            if owned.get(text_hash, space) != space:
                yield f"vector {text_hash}: it is kept in the space {space}, but its text is of {owned[text_hash]}"
        n_bytes = 2 * model.dimension
        damaged = select(v.text_hash).where(v.model == model.rid, func.length(v.data) != n_bytes)
        for text_hash in connection.execute(damaged.order_by(v.text_hash)).scalars():
            yield f"vector {text_hash}: it does not have {n_bytes} bytes"


def _replies(connection: Connection) -> Iterator[str]:
    hashes = connection.execute(select(s.reply.c.input_hash).order_by(s.reply.c.input_hash)).scalars().all()
    for block in blocks(hashes):
        readable = replies.read(connection, block)
        yield from (f"reply {input_hash}: it cannot be read" for input_hash in block if input_hash not in readable)
    u, f = s.reply_document.c, s.reply_source.c
    known = select(s.document.c.id).union(select(s.job.c.document))
    for row in connection.execute(select(u.document, u.input_hash).where(u.document.not_in(known)).order_by(*u)):
        yield f"reply {row.input_hash}: it is kept for the document {row.document!r}, which is not there"
    made = select(f.input_hash).where(f.source.not_in(select(s.reply.c.input_hash))).order_by(f.input_hash)
    for input_hash in connection.execute(made).scalars():
        yield f"reply {input_hash}: it was made from a reply that is not there"


def _names(connection: Connection) -> Iterator[str]:
    expected = {key: (n, anchor(name_forms(key))) for key, n in _name_uses(connection).items()}
    kept = {row.key: (row.n, row.anchor) for row in connection.execute(select(s.name))}
    for key in sorted(expected.keys() | kept.keys()):
        if expected.get(key) != kept.get(key):
            yield f"name {key!r}: kept {kept.get(key)}, but entities and aliases give {expected.get(key)}"


def _name_uses(connection: Connection) -> dict[str, int]:
    uses = Counter(connection.execute(select(s.entity.c.key)).scalars())
    uses.update(connection.execute(select(s.alias_mention.c.alias)).scalars())
    return {key: n for key, n in uses.items() if is_linkable(key)}


def _text(connection: Connection, backend: Backend, analyzer: Analyzer) -> Iterator[str]:
    """Compare links and full text with what the chunks' words give."""
    by_anchor: dict[str, list[str]] = {}
    for key in sorted(_name_uses(connection)):
        by_anchor.setdefault(anchor(name_forms(key)), []).append(key)
    kept_links: dict[int, dict[str, int]] = {}
    n, k = s.name.c, s.link.c
    for row in connection.execute(select(k.chunk, n.key, k.n).join_from(s.link, s.name, k.name == n.rid)):
        kept_links.setdefault(row.chunk, {})[row.key] = row.n
    terms, capitals = Counter[str](), Counter[str]()
    id_by_rid = {row.rid: row.id for row in connection.execute(select(s.chunk.c.rid, s.chunk.c.id))}
    for rids in blocks(sorted(id_by_rid)):
        for chunk in chunk_words(connection, rids):
            words = split_words(chunk.text)
            terms.update(set(index_terms(chunk, words, analyzer)))
            capitals.update(set(capital_terms(words)))
            if count_occurrences(words, by_anchor) != kept_links.pop(chunk.rid, {}):
                yield f"chunk {id_by_rid[chunk.rid]}: its links are not what its words give"
    yield from (f"links of chunk row {rid}: there is no such chunk" for rid in sorted(kept_links))
    for kind, expected, kept in zip(
        ("term", "capital"), (terms, capitals), backend.check_text(connection), strict=True
    ):
        for term in sorted(expected.keys() | kept.keys()):
            if expected[term] != kept.get(term, 0):
                chunks = format_count(expected[term], "chunk")
                yield f"full text: {kind} {term!r} is in {chunks}, indexed in {kept.get(term, 0):,}"
