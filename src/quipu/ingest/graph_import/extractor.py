"""ImportedExtractor: gives each chunk the entities, relations and claims that were recorded of its document."""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from quipu.model.extraction import ChunkInput, ExtractedClaim, ExtractedEntity, ExtractedRelation, Extraction
from quipu.model.ids import digest, stable_repr
from quipu.model.imported_graph import ImportedChunk, ImportedClaim, ImportedExtraction
from quipu.ports.ingest import ExtractionResult
from quipu.text.unicode import UNSPACED

IDENTITY = "recorded/2"
_MAX_UNINDEXED = 32  # texts in which a name is looked for one by one

_WORD_RUN = re.compile(r"\w+")
_UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")


class ImportedExtractor:
    """An extractor that returns what was recorded of the document of a chunk.

    If the document has several chunks, each gets the entities that its text names. A relation goes to the first chunk
    that names both ends, else to the first that names one. A claim goes to the first chunk with the words that it was
    read from, else to the chunk that a relation would go to. What no chunk names goes to the first chunk: nothing is
    lost, and nothing counts twice.
    """

    description = "a recorded graph"
    n_ahead = 0

    def __init__(self, recordings: Mapping[str, ImportedExtraction], identity: str = IDENTITY) -> None:
        self._identity = identity
        self._recordings = recordings

    @property
    def identity(self) -> str:
        """Name and version, and optionally a digest of the recordings."""
        return self._identity

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return 0: no model is asked."""
        return 0

    async def check(self) -> None:
        """Do nothing: the recordings are in memory."""

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Yield a result for each chunk, in order; all chunks of a document should be among the inputs."""
        for index, extraction in enumerate(await asyncio.to_thread(self._extract_all, inputs)):
            yield ExtractionResult(index=index, extraction=extraction)

    def _extract_all(self, inputs: Sequence[ChunkInput]) -> list[Extraction]:
        indices_by_document: dict[str, list[int]] = {}
        for index, chunk in enumerate(inputs):
            indices_by_document.setdefault(chunk.documents[0] if chunk.documents else "", []).append(index)
        extractions = [Extraction()] * len(inputs)
        for document, indices in indices_by_document.items():
            recording = self._recordings.get(document)
            if recording is None:
                continue
            chunks = [inputs[index] for index in indices]
            for index, extraction in zip(indices, split_by_chunk(recording, chunks), strict=True):
                extractions[index] = extraction
        return extractions


def identity_of(recording: ImportedExtraction | None) -> str:
    """Return the identity of an extractor with this recording only: it changes with anything in the recording."""
    return f"{IDENTITY} {digest('recorded', stable_repr(recording))[:12]}"


class NameIndex:
    """Finds the texts that contain a name or a quote; a text is known by its index.

    Many texts are indexed by their words, so that only texts with the rarest word of a name are searched. Case does not
    matter, nor does white space in quotes.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._folded = [text.casefold() for text in texts]
        self._texts_by_name: dict[str, tuple[int, ...]] = {}

    @cached_property
    def _with_single_spaces(self) -> list[str]:
        return [" ".join(text.split()) for text in self._folded]

    @cached_property
    def _texts_by_word(self) -> dict[str, list[int]]:
        texts_by_word: dict[str, list[int]] = {}
        for index, text in enumerate(self._folded):
            for word in set(_WORD_RUN.findall(text)):
                texts_by_word.setdefault(word, []).append(index)
        return texts_by_word

    def texts_with(self, name: str) -> tuple[int, ...]:
        """Return the texts that contain a name, in order; not within other words."""
        if name not in self._texts_by_name:
            folded = name.casefold()
            candidates = self._texts_with_words(_whole_words(folded))
            self._texts_by_name[name] = tuple(i for i in candidates if find_name(folded, self._folded[i]) >= 0)
        return self._texts_by_name[name]

    def first_with_names(self, names: Sequence[str]) -> int:
        """Return the first text with all the names (except ""), else the first with one of them, else 0."""
        texts_by_name = [set(self.texts_with(name)) for name in names if name]
        if not texts_by_name:
            return 0
        return min(set.intersection(*texts_by_name) or set.union(*texts_by_name), default=0)

    def first_with_quote(self, quote: str) -> int | None:
        """Return the first text that contains these words, ignoring white space; None if there is none."""
        folded = " ".join(quote.casefold().split())
        inner_words = _WORD_RUN.findall(folded)[1:-1]  # a quote may begin and end within a word
        candidates = self._texts_with_words(inner_words)
        return next((index for index in candidates if folded and folded in self._with_single_spaces[index]), None)

    def _texts_with_words(self, words: Sequence[str]) -> Sequence[int]:
        """Return the texts that may contain all of these words: those with the rarest word, or all if they are few."""
        if len(self._folded) <= _MAX_UNINDEXED:
            return range(len(self._folded))
        texts = (self._texts_by_word.get(word, ()) for word in words)
        return min(texts, key=len, default=range(len(self._folded)))


def find_name(name: str, text: str) -> int:
    """Return where a name begins in a text, -1 if it does not occur; both are casefolded.

    It may not be within a word, unless it begins or ends in a script without spaces.
    """
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        begins_word = start == 0 or not _is_word(text[start - 1]) or _UNSPACED_CHARACTER.match(name[:1])
        if begins_word and (end == len(text) or not _is_word(text[end]) or _UNSPACED_CHARACTER.match(name[-1:])):
            return start
        start = text.find(name, start + 1)
    return -1


def _is_word(character: str) -> bool:
    """Return whether a character is part of a word, as in regular expressions."""
    return character.isalnum() or character == "_"


def _whole_words(folded: str) -> list[str]:
    """Return the words of a name that a text must contain as whole words, not as parts of longer ones."""
    words = _WORD_RUN.findall(folded)
    start = 1 if _UNSPACED_CHARACTER.match(folded[:1]) else 0
    end = len(words) - 1 if _UNSPACED_CHARACTER.match(folded[-1:]) else len(words)
    return words[start:end]


def split_by_chunk(
    recording: ImportedExtraction, chunks: Sequence[ChunkInput], own_chunks: Sequence[Sequence[int]] = ()
) -> Iterator[Extraction]:
    """Yield the part of a document's recording that belongs to each of its chunks.

    `own_chunks` are the indices of the chunks that have text of each chunk of the recording; what was extracted from
    that one goes to these only.
    """
    texts = [f"{chunk.title}\n{chunk.text}" for chunk in chunks]
    entities: dict[int, list[ExtractedEntity]] = defaultdict(list)
    relations: dict[int, list[ExtractedRelation]] = defaultdict(list)
    claims: dict[int, list[ExtractedClaim]] = defaultdict(list)
    for part, ordinals in zip(recording.parts, (range(len(chunks)), *own_chunks), strict=True):
        if not (part.entities or part.relations or part.claims):
            continue
        index = NameIndex([texts[ordinal] for ordinal in ordinals])
        for entity in _without_repeated_names(part):
            for position in index.texts_with(entity.name) or (0,):
                entities[ordinals[position]].append(entity)
        for relation in part.relations:
            relations[ordinals[index.first_with_names((relation.source, relation.target))]].append(relation)
        for imported in part.claims:
            claims[ordinals[_chunk_of_claim(imported, index)]].append(imported.claim)
    for ordinal, chunk in enumerate(chunks):
        yield Extraction(
            entities=tuple(_with_spans(entities[ordinal], chunk.text)),
            relations=tuple(relations[ordinal]),
            claims=tuple(claims[ordinal]),
        )


def _without_repeated_names(part: ImportedExtraction | ImportedChunk) -> Iterable[ExtractedEntity]:
    """Return the entities of a part. Of a document, the last record with a name counts; a chunk may have several."""
    return part.entities if isinstance(part, ImportedChunk) else {e.name: e for e in part.entities}.values()


def _chunk_of_claim(imported: ImportedClaim, index: NameIndex) -> int:
    ordinal = index.first_with_quote(imported.quote)
    return index.first_with_names((imported.claim.subject, imported.claim.object)) if ordinal is None else ordinal


def _with_spans(entities: Iterable[ExtractedEntity], text: str) -> Iterator[ExtractedEntity]:
    """Yield entities with the span of their first occurrence in a text, (0, 0) if there is none."""
    folded = text.casefold()
    for entity in entities:
        name = entity.name.casefold()
        start = find_name(name, folded) if len(folded) == len(text) else -1
        yield replace(entity, start=start, end=start + len(name)) if start >= 0 else replace(entity, start=0, end=0)
