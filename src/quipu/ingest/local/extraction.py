"""Extraction: the entities, relations and aliases of a chunk by rules, without a model."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from quipu.ingest.local.candidates import Candidate, entity_limit, fold_occurrences, most_salient
from quipu.ingest.local.capitalised_names import find_capitalised
from quipu.ingest.local.entity_types import entity_type
from quipu.ingest.local.occurrences import MAX_QUOTE_CHARS, Cue, Occurrence, SentenceIndex
from quipu.ingest.local.pattern_names import (
    TABLE,
    CaptionedTable,
    captioned_tables,
    find_quoted,
    find_speakers,
    find_tables,
    find_terms,
)
from quipu.ingest.local.prose import prose
from quipu.ingest.local.relations import MAX_RELATIONS, find_bracketed_aliases, relate_candidates, stated_aliases
from quipu.ingest.local.script_rules import find_chinese_names
from quipu.ingest.local.titles import find_in_headings, find_in_title, headings_in
from quipu.model.extraction import ChunkInput, ExtractedAlias, ExtractedEntity, ExtractedRelation, Extraction
from quipu.model.graph import OTHER_TYPE

_DEFINITION = re.compile(
    r"[\"”»'’]?(?:\s?[(（][^()（）]{0,120}[)）])?(?:,[^,.;]{1,60},)?\s*(?:"
    r"(?:is|was|are|were) (?:an?|the|one|any|part|among)\b|(?:refers|refer|referred) to\b|(?:means|denotes)\b"
    r"|[—–-] |это\b|(?:является|являлся|являлась|был|была|было|были) [а-яё]|是|，?指|即)"
)
MAX_CELL_NAMES = 8  # of a table, that it is related to
_SENTENCE_OPENING = re.compile(r"(?:(?:the|an?)\s|[\"“«'#*\s-])*", re.IGNORECASE)


def extract_chunk(chunk: ChunkInput) -> Extraction:
    """Return what the rules find in one chunk: a pure function of its text, title and headings.

    Entities are in order of their first span, the title first. There are at most 14 for a short passage and at most 40
    for 1,200 tokens.
    """
    text = prose(chunk.text)
    sentences = SentenceIndex(text, chunk.text)
    occurrences = _find_occurrences(chunk, sentences)
    bracketed = find_bracketed_aliases(text, occurrences)
    folded = fold_occurrences(text, chain(occurrences, *(alias.occurrences for alias in bracketed)))
    candidates = most_salient(folded, entity_limit(text))
    aliases = stated_aliases(text, bracketed, candidates)
    type_by_name = _entity_types(text, candidates, aliases)
    table_by_name = {table.name: table for table in captioned_tables(chunk.text, chunk.title)}
    entities = (_entity(candidate, type_by_name[candidate.name], sentences) for candidate in candidates)
    relations = (
        *_title_relations(candidates),
        *_table_relations(candidates, table_by_name),
        *relate_candidates(candidates, aliases, sentences),
    )
    return Extraction(
        entities=tuple(_with_columns(entity, table_by_name.get(entity.name)) for entity in entities),
        relations=relations[:MAX_RELATIONS],
        aliases=aliases,
    )


def _find_occurrences(chunk: ChunkInput, sentences: SentenceIndex) -> list[Occurrence]:
    text = sentences.text
    chinese = find_chinese_names(text)
    return [
        *find_in_title(chunk.title, text, (occurrence.name for occurrence in chinese)),
        *find_in_headings((*chunk.headings, *headings_in(text, sentences.spans)), text),
        *find_speakers(text),
        *find_tables(text, chunk.title),
        *find_quoted(text),
        *find_capitalised(text, sentences.spans),
        *chinese,
        *find_terms(text, sentences.spans),
    ]


def _entity_types(text: str, candidates: Sequence[Candidate], aliases: Sequence[ExtractedAlias]) -> dict[str, str]:
    """Return the entity type by name. If only one of two names of an entity has a type, both get it."""
    type_by_name = {candidate.name: entity_type(text, candidate) for candidate in candidates}
    for alias in aliases:
        for one, other in ((alias.name, alias.alias), (alias.alias, alias.name)):
            if type_by_name.get(one) == OTHER_TYPE:
                type_by_name[one] = type_by_name.get(other, OTHER_TYPE)
    return type_by_name


def _title_relations(candidates: Sequence[Candidate]) -> Iterator[ExtractedRelation]:
    """Relate a title that is longer than a name to its subject."""
    title = next((candidate.name for candidate in candidates if candidate.cue is Cue.TITLE), "")
    subject = next((candidate.name for candidate in candidates if candidate.cue is Cue.SUBJECT), "")
    if title and subject:
        yield ExtractedRelation(source=title, target=subject, description=title)


def _table_relations(
    candidates: Sequence[Candidate], table_by_name: Mapping[str, CaptionedTable]
) -> Iterator[ExtractedRelation]:
    """Relate a table that the chunk captions to the first names in its cells."""
    for candidate in candidates:
        if table := table_by_name.get(candidate.name):
            names = [
                other.name
                for other in candidates
                if other.name != table.name and any(table.start <= start < table.end for start, _ in other.spans)
            ]
            for name in names[:MAX_CELL_NAMES]:
                yield ExtractedRelation(source=table.name, target=name, keywords=("cell",), description=table.caption)


def _with_columns(entity: ExtractedEntity, table: CaptionedTable | None) -> ExtractedEntity:
    """Return the entity of a table that the chunk captions with its caption and its columns as its description."""
    if table is None:
        return entity
    description = f"{table.caption}: {table.header}".lstrip(": ")[:MAX_QUOTE_CHARS]
    return replace(entity, description=description, is_definition=True)


def _entity(candidate: Candidate, type_name: str, sentences: SentenceIndex) -> ExtractedEntity:
    description, is_definition = _describe(candidate, sentences)
    start, end = candidate.name_span if candidate.type != TABLE else (0, 0)  # the text has only a part of its name
    return ExtractedEntity(
        name=candidate.name,
        type=type_name,
        description=description,
        start=start,
        end=end,
        is_definition=is_definition,
    )


def _describe(candidate: Candidate, sentences: SentenceIndex) -> tuple[str, bool]:
    """Return a sentence about the candidate, and whether it is a definition.

    This is the first sentence that says what the candidate is, else the first that names it, else "".
    """
    if not candidate.spans:
        return "", False
    for start, end in candidate.spans:
        index = sentences.index_at(start)
        if _opens_sentence(sentences, index, start) and _DEFINITION.match(
            sentences.text, end, sentences.spans[index][1]
        ):
            return sentences.quote(index), True
    return sentences.quote(sentences.index_at(candidate.spans[0][0])), False


def _opens_sentence(sentences: SentenceIndex, index: int, position: int) -> bool:
    """Return whether only an article or marks stand between the start of a sentence and `position`."""
    match = _SENTENCE_OPENING.match(sentences.text, sentences.spans[index][0], position)
    return match is not None and match.end() == position
