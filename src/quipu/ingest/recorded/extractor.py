"""RecordedExtractor: what is recorded of a document, chunk by chunk, in place of reading it."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from quipu.ingest.recorded.places import Places, pattern_of
from quipu.model.extraction import ChunkInput, ExtractedClaim, ExtractedEntity, ExtractedRelation, Extraction
from quipu.model.ids import digest, stable_repr
from quipu.model.imported_graph import ImportedClaim, ImportedExtraction
from quipu.ports.ingest import ExtractionResult

IDENTITY = "recorded/2"


class RecordedExtractor:
    """Answers with what is recorded of the document a chunk is of.

    Of a document in several chunks each gets the entities its text names; the first that names both ends of a relation
    gets that, else the first that names one. A claim goes with the first that has the words it was read from, else as a
    relation does. What no chunk names goes with the first: nothing recorded is lost, and nothing counts twice.
    """

    description = "a recorded graph"
    n_ahead = 0

    def __init__(self, recordings: Mapping[str, ImportedExtraction], identity: str = IDENTITY) -> None:
        self._identity = identity
        self._recordings = recordings

    @property
    def identity(self) -> str:
        """Name and version, perhaps with the digest of what is recorded."""
        return self._identity

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return 0: no model is asked."""
        return 0

    async def check(self) -> None:
        """Return: what is recorded is there."""

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Yield what is recorded for each chunk, in order; all chunks of a document should be among the inputs."""
        for index, extraction in enumerate(await asyncio.to_thread(self._read, inputs)):
            yield ExtractionResult(index=index, extraction=extraction)

    def _read(self, inputs: Sequence[ChunkInput]) -> list[Extraction]:
        indices_by_document: dict[str, list[int]] = {}
        for index, chunk in enumerate(inputs):
            indices_by_document.setdefault(chunk.documents[0] if chunk.documents else "", []).append(index)
        found = [Extraction()] * len(inputs)
        for document, indices in indices_by_document.items():
            recording = self._recordings.get(document)
            if recording is None:
                continue
            for index, extraction in zip(indices, _divided(recording, [inputs[i] for i in indices]), strict=True):
                found[index] = extraction
        return found


def identity_of(recording: ImportedExtraction | None) -> str:
    """Return the identity of an extractor that knows this recording alone: it changes with anything recorded."""
    return f"{IDENTITY} {digest('recorded', stable_repr(recording))[:12]}"


def _divided(recording: ImportedExtraction, chunks: Sequence[ChunkInput]) -> Iterator[Extraction]:
    """Yield what each chunk of a document gets of what is recorded."""
    places = Places([f"{chunk.title}\n{chunk.text}" for chunk in chunks])
    entities: dict[int, list[ExtractedEntity]] = defaultdict(list)
    for entity in {entity.name: entity for entity in recording.entities}.values():
        for place in places.of(entity.name) or (0,):
            entities[place].append(entity)
    relations: dict[int, list[ExtractedRelation]] = defaultdict(list)
    for relation in recording.relations:
        relations[places.first_naming((relation.source, relation.target))].append(relation)
    claims: dict[int, list[ExtractedClaim]] = defaultdict(list)
    for recorded in recording.claims:
        claims[_claimed_in(places, recorded)].append(recorded.claim)
    for place, chunk in enumerate(chunks):
        yield Extraction(
            entities=tuple(_found(entities[place], chunk.text)),
            relations=tuple(relations[place]),
            claims=tuple(claims[place]),
        )


def _claimed_in(places: Places, recorded: ImportedClaim) -> int:
    place = places.first_quoting(recorded.quote)
    return places.first_naming((recorded.claim.subject, recorded.claim.object)) if place is None else place


def _found(entities: Iterable[ExtractedEntity], text: str) -> Iterator[ExtractedEntity]:
    """Yield entities with where their names stand in a text first, (0, 0) where they do not."""
    folded = text.casefold()
    for entity in entities:
        match = pattern_of(entity.name).search(folded) if len(folded) == len(text) else None
        start, end = match.span() if match else (0, 0)
        yield replace(entity, start=start, end=end)
