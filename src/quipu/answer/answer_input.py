"""Answer input: all data that an answer is made from, read from one view, which is closed while a model writes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from quipu.answer.context import PackedEvidence, Passage, chunks_of_sources
from quipu.answer.packing import pack_evidence
from quipu.answer.quote_sources import QuoteSources, read_quote_sources
from quipu.model.answer import Citation, Statement
from quipu.model.document import DATE, VALID_FROM, Document, DocumentListing
from quipu.model.evidence import Evidence, Timing
from quipu.model.graph import Chunk, IndexCounts
from quipu.model.query import Filter, Query
from quipu.ports.providers import Tokenizer
from quipu.ports.store import OccurrenceKind, ReadView
from quipu.text.formatting import format_count

MAX_SOURCE_CHUNKS_READ = 400  # chunks beneath points, reports and claims that are read, to cite them
MAX_MENTIONING_CHUNKS = 5_000  # of the entities and relations of an answer: where more are, any document may be
MAX_QUOTABLE_CHUNKS = 40  # of these, how many quotes are searched in: about as many as passages fill a context


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerInput:
    """The packed evidence, what quotes are taken from, the sources of documents, and the revision of the view.

    `date_by_document` says since when what a document says holds, for documents that state it. `copies_by_document` are
    the other documents with the same whole text. `source_chunks` are the chunks beneath packed points, reports and
    claims, by id. `stale` notes name derivations that are not up to date. `has_text` is False where the view has no
    chunk at all.
    """

    packed: PackedEvidence
    quote_sources: QuoteSources
    source_by_document: Mapping[str, str]
    evidence: Evidence
    revision: int
    stale: tuple[str, ...] = ()
    timings: tuple[Timing, ...] = ()
    source_chunks: Mapping[str, Chunk] = field(default_factory=dict)
    date_by_document: Mapping[str, str] = field(default_factory=dict)
    copies_by_document: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    has_text: bool = True

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids of all documents whose text a model may be sent, ordered; copies have the same text."""
        chunks = (*(passage.chunk for passage in self.packed.passages), *self.source_chunks.values())
        ids = {chunk.document_id for chunk in chunks}
        return tuple(sorted(ids.union(*(self.copies_by_document.get(document, ()) for document in ids))))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDraft:
    """The text of an answer and what was checked about it. `notes` are for its reader, `trace_notes` for the trace.

    `highlights` are the characters of the text that answer, `citation_marks` those that cite. `support` is that of the
    trace.
    """

    text: str
    generator: str
    citations: tuple[Citation, ...] = ()
    statements: tuple[Statement, ...] = ()
    highlights: tuple[tuple[int, int], ...] = ()
    citation_marks: tuple[tuple[int, int], ...] = ()
    is_supported: bool = False
    notes: tuple[str, ...] = ()
    trace_notes: tuple[str, ...] = ()
    support: float | None = None


async def read_answer_input(
    query: Query,
    evidence: Evidence,
    view: ReadView,
    tokenizer: Tokenizer,
    *,
    timings: Sequence[Timing] = (),
    clock: Callable[[], float] = time.perf_counter,
) -> AnswerInput:
    """Pack the evidence and read all data that an answer needs; `timings` belong to the stages before."""
    start = clock()
    packed = await pack_evidence(query, evidence, view, tokenizer)
    source_ids = chunks_of_sources(packed.secondary, MAX_SOURCE_CHUNKS_READ)
    source_chunks = await view.chunks(source_ids) if packed.secondary else []
    chunk_by_id = {chunk.id: chunk for chunk in (*(passage.chunk for passage in packed.passages), *source_chunks)}
    ranking = _quotable_passages(packed, {chunk.id: chunk for chunk in source_chunks})
    quote_sources = await read_quote_sources(
        query.as_searched().text, [passage.chunk for passage in ranking], evidence, view
    )
    document_ids = {chunk.document_id for chunk in (*chunk_by_id.values(), *quote_sources.chunks())}
    documents = await view.documents(sorted(document_ids))
    return AnswerInput(
        packed=packed,
        quote_sources=quote_sources,
        source_by_document={document.id: document.source for document in documents},
        evidence=evidence,
        revision=view.revision,
        stale=stale_notes(await view.counts("jobs", "stale_vectors")),
        source_chunks={chunk.id: chunk for chunk in source_chunks},
        date_by_document={
            document.id: document.holds_from
            for document in documents
            if VALID_FROM in document.metadata or DATE in document.metadata
        },
        copies_by_document=await copies_by_document(documents, view),
        has_text=bool(chunk_by_id) or await _has_text(query, view),
        timings=(*timings, Timing(stage="pack", ms=(clock() - start) * 1000)),
    )


async def copies_by_document(documents: Sequence[Document], view: ReadView) -> dict[str, tuple[str, ...]]:
    """Return, for each of these documents that has any, the other documents with the same whole text."""
    hashes = tuple({document.text_hash for document in documents} - {""})
    if not hashes:
        return {}
    others = await view.documents(
        listing=DocumentListing(text_hashes=hashes, without=tuple(document.id for document in documents))
    )
    ids_by_hash: dict[str, list[str]] = {}
    for document in sorted((*documents, *others), key=lambda document: document.id):
        ids_by_hash.setdefault(document.text_hash, []).append(document.id)
    copies = {d.id: tuple(name for name in ids_by_hash.get(d.text_hash, ()) if name != d.id) for d in documents}
    return {document_id: names for document_id, names in copies.items() if names}


async def documents_behind(answer_input: AnswerInput, view: ReadView) -> tuple[str, ...] | None:
    """Return the ids of all documents whose words an answer may hold, ordered; None: of any document of the index.

    Descriptions of entities and relations hold words of every document that mentions them. Reports, and points drawn
    from them, rest on so many documents, directly or through summaries, that any may be among them.
    """
    packed, evidence = answer_input.packed, answer_input.evidence
    if packed.reports or packed.points or evidence.omissions or len(packed.claims) > MAX_SOURCE_CHUNKS_READ:
        return None
    keys, relation_ids = [entity.key for entity in packed.entities], [relation.id for relation in packed.relations]
    in_chunks = await view.occurrences(OccurrenceKind.MENTION, keys)
    in_chunks |= await view.occurrences(OccurrenceKind.RELATION, relation_ids)
    if not in_chunks.keys() >= {*keys, *relation_ids}:
        return None  # a relation of aggregates, or an entity that no chunk mentions
    chunk_ids = sorted({chunk for counts in in_chunks.values() for chunk in counts})
    if len(chunk_ids) > MAX_MENTIONING_CHUNKS:
        return None
    mentioning = {chunk.document_id for chunk in await view.chunks(chunk_ids)}
    return tuple(sorted(mentioning.union(answer_input.documents)))


def stale_notes(counts: IndexCounts) -> tuple[str, ...]:
    """Return messages about what is out of date, for example "not computed yet: 12 vectors".

    Missing summaries are not reported, because without a language model they are never written.
    """
    vectors = [f"not computed yet: {format_count(counts.stale_vectors, 'vector')}"] if counts.stale_vectors else []
    documents = [f"waiting: {format_count(counts.n_waiting, 'document')}"] if counts.n_waiting else []
    return (*vectors, *documents)


async def _has_text(query: Query, view: ReadView) -> bool:
    """Return whether the view has any chunk."""
    if query.filter == Filter():
        return (await view.counts("chunks")).chunks > 0
    return any(document.n_chunks for document in await view.documents())


def passages_by_number(answer_input: AnswerInput) -> Mapping[int, tuple[Passage, ...]]:
    """Return the passages each number leads to: a passage itself, or the passages beneath a secondary source.

    The most telling passage comes first. A secondary source none of whose chunks was read is left out.
    """
    passages: dict[int, tuple[Passage, ...]] = {}
    for passage in answer_input.packed.passages:
        passages[passage.number] = (passage,)
    for source in answer_input.packed.secondary:
        beneath = tuple(
            Passage(number=source.number, chunk=answer_input.source_chunks[chunk])
            for chunk in source.chunks
            if chunk in answer_input.source_chunks
        )
        if beneath:
            passages[source.number] = beneath
    return passages


def quotable_passages(answer_input: AnswerInput) -> list[Passage]:
    """Return the passages to quote from: the packed ones, then those beneath secondary sources, round by round.

    Each chunk occurs once, under the number of the first source that rests on it.
    """
    return _quotable_passages(answer_input.packed, answer_input.source_chunks)


def _quotable_passages(packed: PackedEvidence, source_chunks: Mapping[str, Chunk]) -> list[Passage]:
    number_by_chunk: dict[str, int] = {}
    for source in packed.secondary:
        for chunk in source.chunks:
            number_by_chunk.setdefault(chunk, source.number)
    packed_ids = {passage.chunk.id for passage in packed.passages}
    return [
        *packed.passages,
        *(
            Passage(number=number_by_chunk[chunk], chunk=source_chunks[chunk])
            for chunk in chunks_of_sources(packed.secondary, MAX_QUOTABLE_CHUNKS)
            if chunk not in packed_ids and chunk in source_chunks
        ),
    ]
