"""RecordedExtractor: what is recorded of a document, chunk by chunk, in place of reading it."""

import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from quipu.model.extraction import ChunkInput, Extraction, FoundEntity
from quipu.model.ids import digest
from quipu.model.recording import RecordedClaim, Recording
from quipu.ports.extractor import Extracted
from quipu.text.scripts import UNSPACED

IDENTITY = "recorded/2"

_UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")


class RecordedExtractor:
    """Answers with what is recorded of the document a chunk is of.

    Of a document in several chunks each gets the entities its text names; the first that names both ends of a relation
    gets that, else the first that names one. A claim goes with the first that has the words it was read from, else as a
    relation does. What no chunk names goes with the first: nothing recorded is lost, and nothing counts twice.
    """

    description = "a recorded graph"
    n_ahead = 0

    def __init__(self, recordings: Mapping[str, Recording], identity: str = IDENTITY) -> None:
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

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[Extracted, None]:
        """Yield what is recorded for each chunk, in order; all chunks of a document should be among the inputs."""
        places: dict[str, list[int]] = {}
        for index, chunk in enumerate(inputs):
            places.setdefault(chunk.documents[0] if chunk.documents else "", []).append(index)
        found: dict[int, Extraction] = {}
        for document, indices in places.items():
            recording = self._recordings.get(document, Recording(document=document))
            found.update(zip(indices, _divided(recording, [inputs[index] for index in indices]), strict=True))
        for index in range(len(inputs)):
            yield Extracted(index=index, extraction=found[index])


def identity_of(recording: Recording | None) -> str:
    """Return the identity of an extractor that knows this recording alone: it changes with anything recorded."""
    return f"{IDENTITY} {digest('recorded', repr(recording))[:12]}"


def _divided(recording: Recording, chunks: Sequence[ChunkInput]) -> Iterator[Extraction]:
    """Yield what each chunk of a document gets of what is recorded."""
    texts = [f"{chunk.title}\n{chunk.text}".casefold() for chunk in chunks]
    entities = list({entity.name: entity for entity in recording.entities}.values())
    named_in = {entity.name: [i for i, text in enumerate(texts) if _names(text, entity.name)] for entity in entities}
    stated_in = [_first_naming((each.source, each.target), texts) for each in recording.relations]
    claimed_in = [_first_claiming(each, texts) for each in recording.claims]
    for index, chunk in enumerate(chunks):
        here = [entity for entity in entities if index in (named_in[entity.name] or [0])]
        yield Extraction(
            entities=tuple(_found(entity, chunk.text) for entity in here),
            relations=tuple(each for each, place in zip(recording.relations, stated_in, strict=True) if place == index),
            claims=tuple(
                each.claim for each, place in zip(recording.claims, claimed_in, strict=True) if place == index
            ),
        )


def _first_naming(ends: Sequence[str], texts: Sequence[str]) -> int:
    """Return the place of the first text that names both ends, else of the first that names one, else 0."""
    counts = [sum(_names(text, end) for end in ends if end) for text in texts]
    return counts.index(max(counts))


def _first_claiming(recorded: RecordedClaim, texts: Sequence[str]) -> int:
    """Return the place of the first text with the words a claim was read from, however they are spaced."""
    quote = " ".join(recorded.quote.casefold().split())
    holding = [place for place, text in enumerate(texts) if quote and quote in " ".join(text.split())]
    return holding[0] if holding else _first_naming((recorded.claim.subject, recorded.claim.object), texts)


def _names(text: str, name: str) -> bool:
    """Say whether a casefolded text has a name in it, not within other words."""
    return _pattern(name).search(text) is not None


@lru_cache(maxsize=16_384)
def _pattern(name: str) -> re.Pattern[str]:
    folded = name.casefold()
    before = "" if _UNSPACED_CHARACTER.match(folded[:1]) else r"(?<!\w)"
    after = "" if _UNSPACED_CHARACTER.match(folded[-1:]) else r"(?!\w)"
    return re.compile(f"{before}{re.escape(folded)}{after}")


def _found(entity: FoundEntity, text: str) -> FoundEntity:
    folded = text.casefold()
    match = _pattern(entity.name).search(folded) if len(folded) == len(text) else None
    span = match.span() if match else (0, 0)
    return replace(entity, start=span[0], end=span[1])
