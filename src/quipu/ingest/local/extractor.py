"""The local extractor: entities, relations and aliases of a chunk by rules, without any model."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import chain

from quipu.ingest.local.aliases import find_expansions, stated_aliases
from quipu.ingest.local.candidates import Candidate, fold_occurrences
from quipu.ingest.local.capitals import find_capitalised
from quipu.ingest.local.chat import find_speakers
from quipu.ingest.local.describe import describe
from quipu.ingest.local.han import find_han
from quipu.ingest.local.kinds import kind_of
from quipu.ingest.local.occurrence import Occurrence
from quipu.ingest.local.quoted import find_quoted
from quipu.ingest.local.relate import relate
from quipu.ingest.local.salience import entity_limit, most_salient
from quipu.ingest.local.sentences import Sentences
from quipu.ingest.local.terms import find_terms
from quipu.ingest.local.titles import find_in_headings, find_in_title
from quipu.model.extraction import ChunkInput, Extraction, FoundEntity
from quipu.ports.extractor import Extracted

BATCH = 16


class LocalExtractor:
    """Reads chunks by rules alone: capitals, quotation marks, brackets, and common words of three languages."""

    identity = "local/1"
    description = "local rules, no language model"

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncIterator[Extracted]:
        """Yield the extraction of each input, in order; the rules fail on no text."""
        for start in range(0, len(inputs), BATCH):
            batch = inputs[start : start + BATCH]
            extractions = await asyncio.to_thread(lambda chunks: [extract_chunk(chunk) for chunk in chunks], batch)
            for offset, extraction in enumerate(extractions):
                yield Extracted(index=start + offset, extraction=extraction)


def extract_chunk(chunk: ChunkInput) -> Extraction:
    """Return what the rules find in one chunk: a pure function of its text, title and headings.

    Entities are given in order of first place, the title first; at most 14 for a short passage, 40 for 1,200 tokens.
    """
    sentences = Sentences(chunk.text)
    occurrences = _find_occurrences(chunk, sentences)
    expansions = find_expansions(chunk.text, occurrences)
    every = fold_occurrences(chunk.text, chain(occurrences, (expansion.other for expansion in expansions)))
    candidates = most_salient(every, entity_limit(chunk.text))
    return Extraction(
        entities=tuple(_entity(candidate, sentences) for candidate in candidates),
        relations=relate(candidates, sentences),
        aliases=stated_aliases(chunk.text, expansions, candidates),
    )


def _find_occurrences(chunk: ChunkInput, sentences: Sentences) -> list[Occurrence]:
    text = chunk.text
    return [
        *find_in_title(chunk.title, text),
        *find_in_headings(chunk.headings, text),
        *find_speakers(text),
        *find_quoted(text),
        *find_capitalised(text, sentences.spans),
        *find_han(text),
        *find_terms(text, sentences.spans),
    ]


def _entity(candidate: Candidate, sentences: Sentences) -> FoundEntity:
    description, is_definition = describe(candidate, sentences)
    start, end = candidate.shown
    return FoundEntity(
        name=candidate.name,
        type=kind_of(sentences.text, candidate),
        description=description,
        start=start,
        end=end,
        is_definition=is_definition,
    )
