"""RecordedExtractor: what is recorded of a document, chunk by chunk, in place of reading it."""

from collections.abc import AsyncGenerator, Mapping, Sequence

from quipu.model.extraction import ChunkInput, Extraction, FoundEntity, FoundRelation
from quipu.model.recording import RecordedEntity, Recording
from quipu.ports.extractor import Extracted


class RecordedExtractor:
    """Answers with what is recorded of the document a chunk is of.

    Of a document in several chunks each gets what its text holds: the entities it names, and the relations of which it
    names an end. What none of them names is left out where `texts` does not tell that it stands nowhere in the
    document, in which case every chunk has it.
    """

    description = "a recorded graph"
    n_ahead = 0

    def __init__(
        self, recordings: Mapping[str, Recording], texts: Mapping[str, str] | None = None, identity: str = "recorded/1"
    ) -> None:
        self._identity = identity
        self._recordings = recordings
        self._texts = texts or {}

    @property
    def identity(self) -> str:
        """Name and version, with the digest of what is recorded."""
        return self._identity

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return 0: no model is asked."""
        return 0

    async def check(self) -> None:
        """Return: what is recorded is there."""

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[Extracted, None]:
        """Yield what is recorded for each chunk, in order."""
        for index, chunk in enumerate(inputs):
            yield Extracted(index=index, extraction=self._extraction(chunk))

    def _extraction(self, chunk: ChunkInput) -> Extraction:
        document = chunk.documents[0] if chunk.documents else ""
        recording = self._recordings.get(document)
        if recording is None:
            return Extraction()
        here = f"{chunk.title}\n{chunk.text}".casefold()
        everywhere = self._texts.get(document, "").casefold()

        def is_here(*names: str) -> bool:
            forms = [name.casefold() for name in names]
            return any(form in here for form in forms) or bool(
                everywhere and not any(form in everywhere for form in forms)
            )

        entities = {entity.name: entity for entity in recording.entities if is_here(entity.name)}
        return Extraction(
            entities=tuple(_found(entity, chunk.text) for entity in entities.values()),
            relations=tuple(
                FoundRelation(
                    source=each.source,
                    target=each.target,
                    keywords=each.keywords,
                    description=each.description,
                    weight=each.weight,
                )
                for each in recording.relations
                if is_here(each.source, each.target)
            ),
        )


def _found(entity: RecordedEntity, text: str) -> FoundEntity:
    start = text.find(entity.name)
    if start < 0 and len(text.casefold()) == len(text):
        start = text.casefold().find(entity.name.casefold())
    span = (start, start + len(entity.name)) if start >= 0 else (0, 0)
    return FoundEntity(name=entity.name, type=entity.type, description=entity.description, start=span[0], end=span[1])
