"""Lookups: what an index holds about one document, chunk, entity, relation or report, or NotFound with near matches."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from quipu.answer import best_snippets, copies_by_document
from quipu.engine.conversations import Conversations
from quipu.engine.past import Past
from quipu.engine.statements import differing_statements, facts_of_chunks, statements_about
from quipu.engine.status import preview_removal
from quipu.errors import InvalidInput, NotFound
from quipu.model.cluster import Cluster, ClusterFamily, ClusterRelation, ClusterReport, Hierarchy
from quipu.model.delta import ChunkFacts
from quipu.model.document import PDF_TYPE, Document, DocumentListing, PagePicture, SourceDocument
from quipu.model.graph import Entity
from quipu.model.ids import relation_id
from quipu.model.query import Filter
from quipu.model.results import (
    DocumentDetails,
    EntityDetails,
    RelationDetails,
    RemovalPreview,
    ReportDetails,
    SearchResult,
)
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import OccurrenceKind, ReadView
from quipu.text.names import entity_key

if TYPE_CHECKING:
    from quipu.engine.edits import Edits

MAX_LISTED = 50
_PART_BYTES = 1_048_576
_MAX_COMPARED = 500  # ids of documents
_MAX_NAMED_REPORTS = 5  # in an error
_WHERE_IDS_ARE = "`quipu ask QUESTION -s community_global --trace` prints ids of reports, and so does `quipu explain`."


class Lookups(Past):
    """The methods of an engine that only read its store; with `as_of`, what held at the end of that date."""

    conversations: Conversations
    edits: "Edits"

    async def search(self, text: str, k: int = 10, *, as_of: str = "") -> SearchResult:
        """Return passages that match words, by BM25, and entities by name; for people."""
        async with self._view(as_of) as view:
            return await search(view, text, k)

    async def documents(
        self,
        listing: DocumentListing | None = None,
        allowed: Filter | None = None,
        *,
        ids: Sequence[str] | None = None,
    ) -> list[Document]:
        """Return a listing of documents, by default all by id; queued and failed ones too, unless a filter is given.

        With `ids`, only those of them that exist. With `as_of` in the filter, the documents are as they were then.
        """
        async with self._components.view_at(allowed or Filter()) as (_, view):
            return await view.documents(ids, listing=listing)

    async def document(self, document_id: str, *, as_of: str = "") -> DocumentDetails:
        """Return one document with its chunks. Raises NotFound with near matches."""
        async with self._view(as_of) as view:
            details = await _existing_document(view, document_id)
            copies = (await copies_by_document([details], view)).get(document_id, ())
            chunks = await view.chunks(document_id=document_id)
            return DocumentDetails(document=details, chunks=tuple(chunks), copies=copies)

    async def text(self, document_id: str, *, as_of: str = "") -> str:
        """Return the whole text of a document, in which its chunks and citations stand at their offsets.

        Raises NotFound for an unknown document, and where the text is not kept because nothing has read it since an
        earlier version of Quipu.
        """
        async with self._view(as_of) as view:
            details = await _existing_document(view, document_id)
            content = await view.content(details.text_hash) if details.text_hash else None
        if content is None:
            raise _not_kept(details, "text")
        return content.decode("utf-8", "surrogatepass")

    async def original(self, document_id: str) -> AsyncGenerator[bytes, None]:
        """Yield the file that a document was read from, in parts of 1 MiB; no snapshot is held between two parts.

        Raises NotFound for an unknown document, where the file is not kept (setting `keep_originals`), and where the
        document was changed or removed while its file was read.
        """
        async with self._store.view() as view:
            details = await _existing_document(view, document_id)
        start = 0
        while True:
            async with self._store.view() as view:
                part = await view.content(details.original_hash, start, _PART_BYTES)
            if part is None:
                raise _not_kept(details, "original file")
            if part or not start:
                yield part
            if len(part) < _PART_BYTES:
                return
            start += len(part)

    async def page_picture(self, document_id: str, page: int, quote: str = "") -> PagePicture:
        """Return a page of a PDF as a picture, with a quote on it marked and the boxes of its lines.

        `page` and `quote` are those of a citation; `page` counts from 1. A scanned page is recognised again in some
        seconds. Raises NotFound as `original` does, InvalidInput for a document that is no PDF, and InvalidDocument for
        a page that it does not have.
        """
        from quipu.parse.pdf import show_page

        details = (await self.document(document_id)).document
        if details.media_type != PDF_TYPE:
            raise InvalidInput(f"{document_id} is no PDF.", remedy="Only pages of PDFs can be shown.")
        content = b"".join([part async for part in self.original(document_id)])
        source = SourceDocument(id=document_id, content=content, media_type=PDF_TYPE, metadata=details.metadata)
        return await asyncio.to_thread(show_page, source, page, quote)

    async def preview_removal(self, ids: Sequence[str], *, k: int = MAX_LISTED) -> RemovalPreview:
        """Return what `remove` takes away, with at most `k` names of each kind. Raises NotFound naming unknown ids."""
        async with self._store.view() as view:
            await check_documents(view, ids := unique_ids(ids))
            preview = await preview_removal(view, ids, k)
        lost, changed = await self.edits.losing(ids)
        n_answers = await self.conversations.count_answers(ids)
        return replace(preview, n_answers=n_answers, edits_lost=lost, edits_changed=changed)

    async def chunk(self, chunk_id: str) -> ChunkFacts:
        """Return one chunk with all facts it states. Raises NotFound."""
        async with self._store.view() as view:
            return await chunk(view, chunk_id)

    async def entity(self, name: str, *, as_of: str = "") -> EntityDetails:
        """Return what the index holds about a name, alias or key. Raises NotFound with near matches."""
        async with self._view(as_of) as view:
            return await entity(view, name)

    async def relation(self, first: str, second: str, *, as_of: str = "") -> RelationDetails:
        """Return the relation of two entities, by name. Raises NotFound naming what the first one is related to."""
        async with self._view(as_of) as view:
            return await relation(view, first, second)

    async def report(self, report_id: str) -> ReportDetails:
        """Return a report on a community or aggregate, by its id or the beginning of its id. Raises NotFound."""
        async with self._store.view() as view:
            return await report(view, report_id)

    async def verify(self) -> list[str]:
        """Recompute every fold, link and index from the facts; return the differences in words (empty: none)."""
        return await self._store.verify()

    async def damage(self) -> list[str]:
        """Return the damage that the database finds in its files, in words; `verify` includes this check."""
        return await self._store.verify(files_only=True)

    async def dump(self) -> AsyncGenerator[str, None]:
        """Yield the canonical state as JSON lines: equal documents give equal bytes, whatever their history."""
        async with self._store.view() as view:
            async for line in view.dump():
                yield line

    async def _known_documents(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Return ids, each once; raises NotFound naming unknown ones."""
        async with self._store.view() as view:
            await check_documents(view, names := unique_ids(ids))
        return names


async def search(view: ReadView, text: str, k: int) -> SearchResult:
    """Return passages that match words, by BM25, and entities by name. Raises InvalidInput where there are no words."""
    if not text.strip():
        raise InvalidInput("There is nothing to search for.", remedy="Give at least one word.")
    hits = await view.search_text(NodeKind.CHUNK, text, k)
    chunk_by_id = {chunk.id: chunk for chunk in await view.chunks([hit.id for hit in hits])}
    entity_hits = await view.search_text(NodeKind.ENTITY, text, k)
    chunks = [chunk_by_id[hit.id] for hit in hits]
    return SearchResult(
        chunks=tuple((hit, chunk_by_id[hit.id]) for hit in hits),
        snippets=tuple(await asyncio.to_thread(best_snippets, text, chunks)),
        entities=tuple(await view.entities([hit.id for hit in entity_hits])),
    )


async def _existing_document(view: ReadView, document_id: str) -> Document:
    documents = await view.documents([document_id])
    if not documents:
        raise await _unknown_document(view, document_id)
    return documents[0]


def _not_kept(details: Document, what: str) -> NotFound:
    return NotFound(
        f"The {what} of {details.id!r} is not in the index; its status is {details.status}.",
        remedy="Add the document again: `quipu add` keeps texts always, and files if `keep_originals` is true. "
        "A document that was read with other settings needs `--reread`.",
    )


async def chunk(view: ReadView, chunk_id: str) -> ChunkFacts:
    """Return one chunk with all facts it states. Raises NotFound."""
    facts = await facts_of_chunks(view, [chunk_id])
    if not facts:
        raise NotFound(f"There is no chunk {chunk_id!r}.", remedy="`quipu show document ID` lists chunk ids.")
    return facts[0]


async def _keys_of(view: ReadView, name: str) -> tuple[str, ...]:
    """Return the keys of the entities that a name, alias or key may stand for, the likeliest first."""
    key = entity_key(name)
    return (await view.keys_by_name([key], any_spelling=True)).get(key) or (key,)


async def named_entity(view: ReadView, name: str) -> Entity:
    """Return the entity that a name, alias or key stands for. Raises NotFound with near matches."""
    entities = await view.entities((await _keys_of(view, name))[:1])
    if not entities:
        near = await view.entities([hit.id for hit in await view.search_text(NodeKind.ENTITY, entity_key(name), 3)])
        raise NotFound(f"There is no entity {name!r}.", remedy=did_you_mean([entity.name for entity in near]))
    return entities[0]


async def entity(view: ReadView, name: str) -> EntityDetails:
    """Return what the index holds about a name, alias or key. Raises NotFound with near matches."""
    entity = await named_entity(view, name)
    key = entity.key
    relations = await view.relations(entities=[key], k=MAX_LISTED)
    counts = (await view.occurrences(OccurrenceKind.ENTITY, [key], MAX_LISTED)).get(key, {})
    facts = await facts_of_chunks(view, list(counts))
    return EntityDetails(
        entity=entity,
        relations=tuple(relations),
        chunks=tuple((stated.chunk, counts[stated.chunk.id]) for stated in facts),
        claims=tuple(await view.claims(subjects=[key], k=MAX_LISTED)),
        differing=await differing_statements(view, facts, key),
    )


async def relation(view: ReadView, first: str, second: str) -> RelationDetails:
    """Return the relation of two entities, by name, alias or key.

    Raises NotFound with entities that the first one is related to.
    """
    (source, *sources), targets = [await _keys_of(view, name) for name in (first, second)]
    relations = await view.relations([relation_id(key, target) for key in (source, *sources) for target in targets])
    if not relations:
        near = await view.relations(entities=[source], k=3)
        others = [relation.target_name if relation.source == source else relation.source_name for relation in near]
        remedy = f"{first} relates to {', '.join(others)}." if others else "`quipu search` finds names."
        raise NotFound(f"Nothing relates {first!r} to {second!r}.", remedy=remedy)
    identifier, source, target = relations[0].id, relations[0].source, relations[0].target
    chunk_ids = (await view.occurrences(OccurrenceKind.RELATION, [identifier], MAX_LISTED)).get(identifier, {})
    facts = await facts_of_chunks(view, list(chunk_ids))
    statements = await statements_about(view, facts, source, target)
    return RelationDetails(relation=relations[0], chunks=tuple(facts), statements=statements)


def unique_ids(ids: str | Sequence[str]) -> tuple[str, ...]:
    """Return ids, each once; a single text is one id, not one for each of its letters.

    Raises InvalidInput for anything else.
    """
    if isinstance(ids, str):
        return (ids,)
    names = tuple(ids) if isinstance(ids, Iterable) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"Ids and names must be a list of strings, not {ids!r}.", remedy="Write ['letters/1.md'].")
    return tuple(dict.fromkeys(names))


async def check_documents(view: ReadView, ids: Sequence[str]) -> None:
    """Raise NotFound naming the first of these documents that does not exist, with near matches."""
    existing = {document.id for document in await view.documents(ids)}
    for document_id in ids:
        if document_id not in existing:
            raise await _unknown_document(view, document_id)


async def _unknown_document(view: ReadView, document_id: str) -> NotFound:
    """Return the error with near matches among ids that begin like this one, or else among the first ids.

    Their number is bounded: a wrong id must not cost more in a large index.
    """
    near: list[str] = []
    for n_equal in (len(document_id) * 3 // 4, len(document_id) // 2, 0):
        if not near:
            listing = DocumentListing(prefix=document_id[:n_equal], k=_MAX_COMPARED)
            ids = [document.id for document in await view.documents(listing=listing)]
            near = await asyncio.to_thread(get_close_matches, document_id, ids, n=3)
    return NotFound(f"There is no document {document_id!r}.", remedy=did_you_mean(near))


def did_you_mean(near: Sequence[str]) -> str:
    return f"Did you mean {', '.join(near)}?" if near else "`quipu docs` lists documents, `quipu search` finds names."


async def report(view: ReadView, report_id: str) -> ReportDetails:
    """Return the report with this id or this unique beginning of an id, with its cluster.

    Raises NotFound if there is none, InvalidInput if several ids have this beginning.
    """
    prefix = report_id.strip().casefold()
    if not prefix:
        raise InvalidInput("No report is named.", remedy=_WHERE_IDS_ARE)
    cluster_by_id = {
        cluster.id: cluster for hierarchy in Hierarchy for cluster in await view.clusters(hierarchy, with_members=False)
    }
    matches = [cluster for cluster in cluster_by_id if cluster.startswith(prefix)]  # all ids have the same length
    if not matches:
        raise await _unknown_report(view, report_id, list(cluster_by_id))
    if len(matches) > 1:
        raise await _ambiguous_report(view, report_id, matches)
    return await _report_details(view, ClusterFamily.of(cluster_by_id[matches[0]], cluster_by_id))


async def _report_details(view: ReadView, family: ClusterFamily) -> ReportDetails:
    parts = await view.clusters(family.cluster.hierarchy, family.subtree)
    cluster = parts[0]
    relations = await _relations_of_aggregate(view, family.cluster)
    neighbours = [rel.target if rel.source == cluster.id else rel.source for rel in relations]
    nearby = [cluster.id, *family.ancestors, *family.children, *neighbours]
    report_by_cluster = {report.cluster: report for report in await view.cluster_reports(nearby)}
    report = report_by_cluster.get(cluster.id)
    return ReportDetails(
        cluster=cluster,
        report=report,
        is_current=report is not None and report.inputs_hash == cluster.inputs_hash,
        entities=tuple(await view.entities([key for part in parts for key in part.members], MAX_LISTED)),
        chunks=tuple(await view.chunks(report.chunks if report else ())),
        ancestors=tuple((ancestor, _title(report_by_cluster, ancestor)) for ancestor in family.ancestors),
        children=tuple((child, _title(report_by_cluster, child)) for child in family.children),
        neighbours=tuple(
            (neighbour, _title(report_by_cluster, neighbour), relation.description)
            for neighbour, relation in zip(neighbours, relations, strict=True)
        ),
    )


async def _relations_of_aggregate(view: ReadView, cluster: Cluster) -> list[ClusterRelation]:
    """Return the relations of a cluster to others, the heaviest first; only aggregates have any."""
    if cluster.hierarchy is not Hierarchy.AGGREGATES:
        return []
    aggregates = await view.clusters(Hierarchy.AGGREGATES, with_members=False)
    relations = await view.cluster_relations([aggregate.id for aggregate in aggregates])
    own = [relation for relation in relations if cluster.id in (relation.source, relation.target)]
    return sorted(own, key=lambda relation: (-relation.weight, relation.source, relation.target))[:MAX_LISTED]


def _title(report_by_cluster: Mapping[str, ClusterReport], cluster: str) -> str:
    return report_by_cluster[cluster].title if cluster in report_by_cluster else ""


async def _unknown_report(view: ReadView, report_id: str, ids: Sequence[str]) -> NotFound:
    title_by_id = {report.cluster: report.title for report in await view.cluster_reports(ids)}
    if not title_by_id:
        return NotFound(
            f"There is no report {report_id!r}: none has been written.",
            remedy="`quipu refresh reports` writes reports on communities, `quipu refresh hierarchy` on aggregates.",
        )
    words = report_id.strip().casefold()
    near = [cluster for cluster, title in title_by_id.items() if words in title.casefold()]
    near = near or get_close_matches(words, ids, n=3, cutoff=0.8)
    hint = f"Did you mean {_with_titles(near, title_by_id)}? " if near else ""
    return NotFound(f"There is no report {report_id!r}.", remedy=f"{hint}{_WHERE_IDS_ARE}")


async def _ambiguous_report(view: ReadView, prefix: str, ids: Sequence[str]) -> InvalidInput:
    reports = await view.cluster_reports(ids[:_MAX_NAMED_REPORTS])
    return InvalidInput(
        f"{len(ids):,} reports have an id that begins with {prefix!r}.",
        remedy=f"Give more of the id: {_with_titles(ids, {report.cluster: report.title for report in reports})}.",
    )


def _with_titles(ids: Sequence[str], title_by_id: Mapping[str, str]) -> str:
    """Return the first ids with their titles, and how many more there are."""
    named = [
        f"{report_id} ({title_by_id[report_id]})" if title_by_id.get(report_id) else report_id
        for report_id in ids[:_MAX_NAMED_REPORTS]
    ]
    n_more = len(ids) - len(named)
    return ", ".join(named) + (f" and {n_more:,} more" if n_more > 0 else "")
