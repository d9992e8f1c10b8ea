"""The local extractor: entities, relations and aliases of a chunk by rules, without any model."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from itertools import chain

from quipu.ingest.local.aliases import find_expansions, stated_aliases
from quipu.ingest.local.candidates import Candidate, fold_occurrences
from quipu.ingest.local.capitals import find_capitalised
from quipu.ingest.local.chat import find_speakers
from quipu.ingest.local.describe import describe
from quipu.ingest.local.han import find_han
from quipu.ingest.local.kinds import kind_of
from quipu.ingest.local.occurrence import Cue, Occurrence
from quipu.ingest.local.quoted import find_quoted
from quipu.ingest.local.relate import MAX_RELATIONS, relate
from quipu.ingest.local.salience import entity_limit, most_salient
from quipu.ingest.local.sentences import Sentences
from quipu.ingest.local.terms import find_terms
from quipu.ingest.local.titles import find_in_headings, find_in_title, headings_within
from quipu.model.extraction import ChunkInput, ExtractedAlias, ExtractedEntity, ExtractedRelation, Extraction
from quipu.model.graph import OTHER_TYPE
from quipu.ports.ingest import ExtractionResult

BATCH = 16


class LocalExtractor:
    """Reads chunks by rules alone: capitals, quotation marks, brackets, and common words of three languages."""

    identity = "local/1"
    description = "local rules, no language model"
    n_ahead = 0

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return 0: no model is asked."""
        return 0

    async def check(self) -> None:
        """Find nothing wrong: rules need nothing."""

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Yield the extraction of each input, in order; the rules fail on no text."""
        for start in range(0, len(inputs), BATCH):
            batch = inputs[start : start + BATCH]
            extractions = await asyncio.to_thread(_extract_all, batch)
            for offset, extraction in enumerate(extractions):
                yield ExtractionResult(index=start + offset, extraction=extraction)


def _extract_all(chunks: Sequence[ChunkInput]) -> list[Extraction]:
    return [extract_chunk(chunk) for chunk in chunks]


def extract_chunk(chunk: ChunkInput) -> Extraction:
    """Return what the rules find in one chunk: a pure function of its text, title and headings.

    Entities are given in order of first place, the title first; at most 14 for a short passage, 40 for 1,200 tokens.
    """
    sentences = Sentences(chunk.text)
    occurrences = _find_occurrences(chunk, sentences)
    expansions = find_expansions(chunk.text, occurrences)
    every = fold_occurrences(chunk.text, chain(occurrences, *(expansion.occurrences for expansion in expansions)))
    candidates = most_salient(every, entity_limit(chunk.text))
    aliases = stated_aliases(chunk.text, expansions, candidates)
    kinds = _kinds(chunk.text, candidates, aliases)
    return Extraction(
        entities=tuple(_entity(candidate, kinds[candidate.name], sentences) for candidate in candidates),
        relations=(*_title_relations(candidates), *relate(candidates, aliases, sentences))[:MAX_RELATIONS],
        aliases=aliases,
    )


def _find_occurrences(chunk: ChunkInput, sentences: Sentences) -> list[Occurrence]:
    text = chunk.text
    han = find_han(text)
    return [
        *find_in_title(chunk.title, text, (name.name for name in han)),
        *find_in_headings((*chunk.headings, *headings_within(text, sentences.spans)), text),
        *find_speakers(text),
        *find_quoted(text),
        *find_capitalised(text, sentences.spans),
        *han,
        *find_terms(text, sentences.spans),
    ]


def _kinds(text: str, candidates: Sequence[Candidate], aliases: Sequence[ExtractedAlias]) -> dict[str, str]:
    """Return the type of each name; two names of one thing share what is known of either."""
    kinds = {candidate.name: kind_of(text, candidate) for candidate in candidates}
    for alias in aliases:
        for one, other in ((alias.name, alias.alias), (alias.alias, alias.name)):
            if kinds.get(one) == OTHER_TYPE:
                kinds[one] = kinds.get(other, OTHER_TYPE)
    return kinds


def _title_relations(candidates: Sequence[Candidate]) -> Iterator[ExtractedRelation]:
    """Relate a title that is more than a name with what it is about."""
    title = next((candidate.name for candidate in candidates if candidate.cue is Cue.TITLE), "")
    subject = next((candidate.name for candidate in candidates if candidate.cue is Cue.SUBJECT), "")
    if title and subject:
        yield ExtractedRelation(source=title, target=subject, description=title)


def _entity(candidate: Candidate, kind: str, sentences: Sentences) -> ExtractedEntity:
    description, is_definition = describe(candidate, sentences)
    start, end = candidate.shown
    return ExtractedEntity(
        name=candidate.name,
        type=kind,
        description=description,
        start=start,
        end=end,
        is_definition=is_definition,
    )
