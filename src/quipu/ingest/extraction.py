"""Extraction: chunks → extractions (from cached replies, else from the extractor) → facts.

Every new reply is committed as it arrives, so that no reply is paid for twice.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import Protocol, Self

from quipu.errors import Corrupt, OverBudget, QuipuError, Unavailable
from quipu.ingest.documents import extractor_input
from quipu.model.delta import ChunkFacts, Delta, ExtractionReply
from quipu.model.extraction import (
    ChunkInput,
    ExtractedAlias,
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelation,
    Extraction,
)
from quipu.model.graph import UNKNOWN_TYPE, AliasMention, Chunk, ClaimMention, EntityMention, RelationMention
from quipu.ports.ingest import ExtractionResult
from quipu.ports.store import Store
from quipu.text.names import entity_key
from quipu.text.unicode import find_text_with_surrogate

Extract = Callable[[Sequence[ChunkInput]], AsyncGenerator[ExtractionResult, None]]  # see ports.ingest.Extractor


class OnOutcome(Protocol):
    """Called for each input that gets an outcome of the extractor, with the document of its first chunk.

    It is called without a document, and once, for all that have cached replies. `n_chunks` have the input.
    """

    def __call__(self, n_chunks: int, document_id: str = "") -> None: ...


@dataclass(slots=True)
class ExtractionBatch:
    """Chunks to extract together, equal ones once, and the outcomes so far; the keys are hashes of extractor inputs.

    `n_extracted` chunks were read by the extractor; `n_equal` more chunks had the same input. `n_dropped` records of
    a model were left out. `job_by_document` holds the claimed jobs. The replies of a sample belong to no document,
    because none is added. `uncommitted` are the last replies of an extractor that computes here.
    """

    chunks_by_hash: dict[str, list[Chunk]]
    job_by_document: Mapping[str, int] = field(default_factory=dict)
    outcomes: dict[str, ExtractionResult] = field(default_factory=dict)
    n_extracted: int = 0
    n_equal: int = 0
    n_dropped: int = 0
    is_sample: bool = False
    uncommitted: list[ExtractionReply] = field(default_factory=list)

    @classmethod
    def of(
        cls, chunks: Iterable[Chunk], job_by_document: Mapping[str, int] | None = None, *, is_sample: bool = False
    ) -> "ExtractionBatch":
        """Return a batch of these chunks, without outcomes."""
        chunks_by_hash: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            chunks_by_hash.setdefault(chunk.input_hash, []).append(chunk)
        return cls(chunks_by_hash, job_by_document or {}, is_sample=is_sample)

    @property
    def missing(self) -> list[str]:
        """The hashes of the inputs that have no outcome, in order."""
        return [input_hash for input_hash in self.chunks_by_hash if input_hash not in self.outcomes]

    def is_obsolete(self, superseded: Collection[str]) -> bool:
        """Return whether only superseded documents still wait for an outcome, so that nobody needs it."""
        waiting = (chunk.document_id for input_hash in self.missing for chunk in self.chunks_by_hash[input_hash])
        return bool(superseded) and all(document_id in superseded for document_id in waiting)

    async def reuse_replies(self, store: Store, on_outcome: OnOutcome) -> int:
        """Take the outcomes of cached replies; return for how many chunks."""
        n_reused = 0
        for input_hash, payload in (await store.find_replies(list(self.chunks_by_hash))).items():
            with suppress(Corrupt):  # the extractor is asked again for a damaged reply
                self.outcomes[input_hash] = ExtractionResult(index=0, extraction=extraction_from_json(payload))
                n_reused += len(self.chunks_by_hash[input_hash])
        on_outcome(n_reused)
        return n_reused

    def add_outcome(self, input_hash: str, outcome: ExtractionResult) -> list[ExtractionReply]:
        """Add a new outcome; return the replies to cache: one per document, none for an outcome with an error."""
        self.outcomes[input_hash] = outcome
        self.n_dropped += outcome.n_dropped
        if outcome.extraction is None or outcome.error:
            return []
        chunks = self.chunks_by_hash[input_hash]
        self.n_extracted += 1
        self.n_equal += len(chunks) - 1
        payload = extraction_to_json(outcome.extraction)
        document_ids = [""] if self.is_sample else _document_ids(chunks)
        return [
            ExtractionReply(
                input_hash=input_hash,
                document_id=document_id,
                payload=payload,
                job=self.job_by_document.get(document_id),
            )
            for document_id in document_ids
        ]


async def extract_missing(
    batch: ExtractionBatch, store: Store, extract: Extract, on_outcome: OnOutcome, *, n_at_once: int = 1
) -> QuipuError | None:
    """Extract the inputs without an outcome; return why the extractor stopped early (OverBudget, Unavailable), or None.

    Replies are committed as soon as there are `n_at_once`; fewer at the end are left to the batch. Some inputs stay
    without an outcome if the extractor stopped early, the work is interrupted, or nobody needs the rest any more. If
    the extractor failed by a fault of its own, the rest get that fault as their error, and no outcome is lost.
    """
    missing = batch.missing
    equal_chunks = (batch.chunks_by_hash[input_hash] for input_hash in missing)
    inputs = [extractor_input(chunks[0], tuple(_document_ids(chunks))) for chunks in equal_chunks]
    error = "The extractor gave no answer for this chunk."
    async with ReplyWriter(store, batch.uncommitted, n_at_once) as writer, aclosing(extract(inputs)) as outcomes:
        while not batch.is_obsolete(writer.superseded):
            try:
                outcome = await anext(outcomes, None)
            except (OverBudget, Unavailable) as stopped:
                return stopped
            except QuipuError:
                raise
            except Exception as failure:
                error = f"The extractor failed: {type(failure).__name__}: {failure}"
                break
            if outcome is None:
                break
            input_hash = missing[outcome.index]
            writer.write(batch.add_outcome(input_hash, outcome))
            chunks = batch.chunks_by_hash[input_hash]
            on_outcome(len(chunks), chunks[0].document_id)
        else:
            return None
    for input_hash in batch.missing:
        batch.outcomes[input_hash] = ExtractionResult(index=0, extraction=None, error=error)
    return None


class ReplyWriter:
    """Commits replies as they arrive: one by one while they are slow, in groups while they are fast.

    `write` never waits: replies that arrive during a commit share the next one. Leaving the context waits until fewer
    than `n_at_once` are in `waiting`, also after an error inside it. `superseded` are the documents whose job had been
    replaced when one of their replies was committed.
    """

    def __init__(self, store: Store, waiting: list[ExtractionReply], n_at_once: int = 1) -> None:
        self.superseded: set[str] = set()
        self._store, self._waiting, self._n_at_once = store, waiting, n_at_once
        self._commit: asyncio.Task[None] | None = None

    def write(self, replies: Iterable[ExtractionReply]) -> None:
        """Commit replies as soon as the store is free. Raises the error of an earlier commit that failed."""
        self._waiting.extend(replies)
        if len(self._waiting) >= self._n_at_once and (self._commit is None or self._commit.done()):
            if self._commit is not None:
                self._commit.result()
            self._commit = asyncio.create_task(self._commit_waiting())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._commit is not None:
            await asyncio.shield(self._commit)

    async def _commit_waiting(self) -> None:
        while len(self._waiting) >= self._n_at_once:
            replies = self._waiting.copy()
            self._waiting.clear()
            self.superseded.update((await self._store.commit(Delta(replies=replies))).superseded)


def extraction_to_json(extraction: Extraction) -> str:
    """Return the extraction as JSON, the payload of a cached reply."""
    return json.dumps(extraction, default=_fields, ensure_ascii=False, separators=(",", ":"))


def extraction_from_json(payload: str) -> Extraction:
    """Return the extraction in the payload of a cached reply. Raises Corrupt if it holds none."""
    try:
        lists = json.loads(payload)
        return Extraction(
            entities=tuple(ExtractedEntity(**entity) for entity in lists["entities"]),
            relations=tuple(
                ExtractedRelation(**{**relation, "keywords": tuple(relation["keywords"])})
                for relation in lists["relations"]
            ),
            aliases=tuple(ExtractedAlias(**alias) for alias in lists["aliases"]),
            claims=tuple(ExtractedClaim(**claim) for claim in lists.get("claims", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupt(
            f"A cached reply cannot be read ({error}).",
            remedy="Run `quipu verify`; remove the document and add it again.",
        ) from error


def chunk_facts(chunk: Chunk, extraction: Extraction) -> ChunkFacts:
    """Return the facts of a chunk: the mentions in its extraction, with names turned into entity keys.

    A name without a key is dropped, and so is a relation of an entity with itself. A name that occurs only in a
    relation, an alias or a claim becomes an entity of unknown type.
    """
    entities = [mention for mention in map(_entity_mention, extraction.entities) if mention is not None]
    keys = {mention.key for mention in entities}
    names: list[str] = []
    relations: list[RelationMention] = []
    for relation in extraction.relations:
        if (relation_mention := _relation_mention(relation)) is not None:
            relations.append(relation_mention)
            names += (relation.source, relation.target)
    aliases: list[AliasMention] = []
    for alias in extraction.aliases:
        if (alias_mention := _alias_mention(alias)) is not None:
            aliases.append(alias_mention)
            names.append(alias.name)
    claims: list[ClaimMention] = []
    for claim in extraction.claims:
        if (claim_mention := _claim_mention(claim)) is not None:
            claims.append(claim_mention)
            names += (claim.subject, claim.object)
    for name in dict.fromkeys(map(_encodable, names)):
        key = entity_key(name)
        if key and key not in keys:
            keys.add(key)
            entities.append(EntityMention(key=key, surface=name.strip(), type=UNKNOWN_TYPE))
    return ChunkFacts(
        chunk=chunk,
        entities=tuple(entities),
        relations=tuple(relations),
        aliases=tuple(aliases),
        claims=tuple(claims),
    )


def _document_ids(chunks: Iterable[Chunk]) -> list[str]:
    return list(dict.fromkeys(chunk.document_id for chunk in chunks))


def _fields(
    value: Extraction | ExtractedEntity | ExtractedRelation | ExtractedAlias | ExtractedClaim,
) -> dict[str, object]:
    return {attribute.name: getattr(value, attribute.name) for attribute in fields(value)}


def _entity_mention(entity: ExtractedEntity) -> EntityMention | None:
    name = _encodable(entity.name)
    key = entity_key(name)
    if not key:
        return None
    return EntityMention(
        key=key,
        surface=name.strip(),
        type=_encodable(entity.type) or UNKNOWN_TYPE,
        description=_encodable(entity.description),
        start=entity.start,
        end=entity.end,
        is_definition=entity.is_definition,
    )


def _relation_mention(relation: ExtractedRelation) -> RelationMention | None:
    source, target = entity_key(_encodable(relation.source)), entity_key(_encodable(relation.target))
    if not source or not target or source == target:
        return None
    return RelationMention(
        source=source,
        target=target,
        keywords=tuple(map(_encodable, relation.keywords)),
        description=_encodable(relation.description),
        weight=relation.weight,
    )


def _alias_mention(alias: ExtractedAlias) -> AliasMention | None:
    surface = _encodable(alias.alias)
    key, alias_key = entity_key(_encodable(alias.name)), entity_key(surface)
    if not key or not alias_key or key == alias_key:
        return None
    return AliasMention(key=key, alias=alias_key, surface=surface.strip())


def _claim_mention(claim: ExtractedClaim) -> ClaimMention | None:
    subject = entity_key(_encodable(claim.subject))
    if not subject:
        return None
    return ClaimMention(
        subject=subject,
        object=entity_key(_encodable(claim.object)),
        type=_encodable(claim.type),
        status=_encodable(claim.status),
        dates=_encodable(claim.dates),
        description=_encodable(claim.description),
    )


def _encodable(text: str) -> str:
    """Return text that UTF-8 can encode: a lone surrogate, which a bad reply may hold, becomes "?".

    Other text is returned itself, not a copy, so the mentions of a sentence share it.
    """
    if text.isascii() or find_text_with_surrogate(text) is None:
        return text
    return text.encode("utf-8", "replace").decode("utf-8")
