"""Extraction: the entities with their types, the relations and the aliases of a chunk by rules, without a model.

Entity types are those of LightRAG; a name whose type no rule can tell has the type Other.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from quipu.ingest.local.candidates import MAX_PERSON_WORDS, Candidate, entity_limit, fold_occurrences, most_salient
from quipu.ingest.local.capitalised_names import find_capitalised
from quipu.ingest.local.lexicon import (
    CONCEPT_HEADS,
    CONTENT_HEADS,
    EVENT_HEADS,
    LOCATION_HEADS,
    ORGANIZATION_HEADS,
    word_set,
    words,
)
from quipu.ingest.local.occurrences import MAX_QUOTE_CHARS, Cue, Occurrence, SentenceIndex, prose
from quipu.ingest.local.pattern_names import (
    TABLE,
    CaptionedTable,
    captioned_tables,
    find_in_headings,
    find_in_title,
    find_quoted,
    find_speakers,
    find_tables,
    find_terms,
    headings_in,
)
from quipu.ingest.local.relations import MAX_RELATIONS, find_bracketed_aliases, relate_candidates, stated_aliases
from quipu.ingest.local.script_rules import (
    chinese_rules,
    find_chinese_names,
    has_russian_letter,
    russian_rules,
    stem_name,
)
from quipu.model.extraction import ChunkInput, ExtractedAlias, ExtractedEntity, ExtractedRelation, Extraction
from quipu.model.graph import OTHER_TYPE

_DEFINITION = re.compile(
    r"[\"”»'’]?(?:\s?[(（][^()（）]{0,120}[)）])?(?:,[^,.;]{1,60},)?\s*(?:"
    r"(?:is|was|are|were) (?:an?|the|one|any|part|among)\b|(?:refers|refer|referred) to\b|(?:means|denotes)\b"
    r"|[—–-] |это\b|(?:является|являлся|являлась|был|была|было|были) [а-яё]|是|，?指|即)"
)
MAX_CELL_NAMES = 8  # of a table, that it is related to
_SENTENCE_OPENING = re.compile(r"(?:(?:the|an?)\s|[\"“«'#*\s-])*", re.IGNORECASE)

LOOK_BEHIND = 40
MAX_SPANS = 3

_TYPE_BY_LAST_WORD = {
    **dict.fromkeys(CONCEPT_HEADS, "Concept"),
    **dict.fromkeys(CONTENT_HEADS, "Content"),
    **dict.fromkeys(EVENT_HEADS, "Event"),
    **dict.fromkeys(ORGANIZATION_HEADS, "Organization"),
    **dict.fromkeys(LOCATION_HEADS, "Location"),
    **dict.fromkeys(words("algorithm method technique transform"), "Method"),
}
_TYPE_BY_FIRST_WORD = {
    **dict.fromkeys(
        words("mount mt lake cape fort port san gulf isle isles bay río rio sea strait straits"), "Location"
    ),
    **dict.fromkeys(words("university bank ministry department institute museum society association"), "Organization"),
    **dict.fromkeys(words("battle siege treaty hurricane storm operation"), "Event"),
    **dict.fromkeys(words("king queen emperor empress prince princess pope sir lord lady mr mrs ms miss dr"), "Person"),
}
_PROFESSION = (
    r"actor|actress|writer|singer|politician|player|footballer|painter|poet|composer|lawyer|historian|scientist|engineer|"
    r"musician|director|novelist|king|queen|mathematician|physicist|explorer|bishop|sailor|officer|journalist|"
    r"philosopher|architect|merchant|printer|monk|scholar|coach|swimmer|cyclist|boxer|wrestler|priest|businessman"
)
_AFTER_PERSON = re.compile(
    rf"\s*(?:\((?:born|b\.|née|род)|(?:is|was) (?:an? )?(?:\w+ ){{0,3}}?(?:born|{_PROFESSION})\b"
    r"|,? (?:who|whose|said|says|told|wrote|married|died)\b"
    r"|,? (?:родился|родилась|умер|умерла|писал|написал|написала|сказал|сказала)\b)"
)
_WORD_BEFORE = re.compile(r"(\w+)[\s,]*$")
# A preposition alone is no sign of a place: "in Ruby", "в Kubernetes".
_BEFORE_PLACE = re.compile(
    r"\b(?:born|dies?|died|lives?|lived|living|located|situated|based|settled?|moved|travel\w*|return\w*|headquarter\w*|"
    r"held|buried|educated|raised|arrived?|grew up|stay\w*|village|town|city|region|province|state|county|district|"
    r"capital|island|north|south|east|west|coast|river|church|castle|palace|museum|university|school|hospital|prison|"
    r"родил\w+|умер\w*|жи[лв]\w*|переехал\w*|вернул\w*|прибыл\w*|приехал\w*|расположен\w*|находит\w+|город\w*|"
    r"сел[аоуе]|деревн\w+|област\w+|стран\w+|учил\w+|работал\w*|похоронен\w*|основан\w*)\b"
    r"[^.;:!?\n]{0,24}?\b(?:in|near|at|to|from|of|в|во|из|под|около|на)\s$|\bnear\s$",
    re.IGNORECASE,
)
_PLAIN_NAME = re.compile(r"[^\W\d_a-zа-яё][^\W\d_A-ZА-ЯЁ]+(?:[ -][^\W\d_][^\W\d_A-ZА-ЯЁ]+)*")
_BEFORE_WORK = re.compile(
    r"(?:film|novel|song|album|single|book|play|poem|series|show|paper|magazine|opera|ballet|titled|called|entitled|"
    r"(?:фильм|роман|книг|балет|опер|повест|журнал|газет|песн|картин|спектакл)\w*),?\s*[«\"“„]?$",
    re.IGNORECASE,
)
_BEFORE_COMPANY = re.compile(
    r"(?:(?:компани|групп|сет|завод|фирм|клуб|банк|концерн|холдинг)\w*|ООО|ОАО|АО|ПАО|ЗАО)\s*[«\"„]?$", re.IGNORECASE
)
_BEFORE_CRAFT = re.compile(
    r"(?:(?:аппарат|зонд|телескоп|ледокол|вакцин|станци|ракет|спутник|проект)\w*|ship|spacecraft|rocket|probe)\s*[«\"„]?$",
    re.IGNORECASE,
)
_HAN = re.compile(r"[\u3400-\u9fff]+")
_INITIALS = re.compile(r"(?:[^\W\d_]\. ?)+[^\W\d_]{2}")
_STATE = re.compile(r"(?:U\.?[SKN]|E\.?U)\.")
_MODEL_NAME = re.compile(r"[A-Z]\w*[A-Z\d]-?\d\w*|[A-Z]{1,5}-\d+[A-Za-z]{0,2}|[A-Z][a-z]+ [A-Z]?\d{1,4}[A-Za-z]{0,2}")


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


def entity_type(text: str, candidate: Candidate) -> str:
    """Return the type of a candidate: by its own words, else by the words around its first spans in `text`."""
    if candidate.type:
        return candidate.type
    by_words = _type_by_words(candidate.name, candidate.key)
    if by_words:
        return by_words
    by_context = (_type_by_context(text, candidate, span) for span in candidate.spans[:MAX_SPANS])
    return next((name for name in by_context if name), OTHER_TYPE)


def _type_by_words(name: str, key: str) -> str:
    parts = key.split()
    first, last = parts[0], parts[-1]
    if _INITIALS.match(name) and not _STATE.match(name):
        return "Person"
    if " " in name:
        head = parts[parts.index("of") - 1] if "of" in parts[1:] else last
        by_head = _TYPE_BY_FIRST_WORD.get(first) or _TYPE_BY_LAST_WORD.get(head)
        if not by_head and "а" <= key[0] <= "ё":
            by_head = russian_rules().entity_type(key)
        if by_head:
            return by_head
    if len(parts) <= MAX_PERSON_WORDS and _PLAIN_NAME.fullmatch(name) and _is_person_name(name.casefold().split()):
        return "Person"
    places = word_set("places")
    return "Location" if len(parts) <= 3 and (last in places or stem_name(last) in places) else ""


def _is_person_name(parts: Sequence[str]) -> bool:
    if parts[0] in word_set("given_names"):
        return len(parts) > 1 or parts[0] not in word_set("places")
    return all(map(has_russian_letter, parts)) and russian_rules().is_person_name(parts)


def _type_by_context(text: str, candidate: Candidate, span: tuple[int, int]) -> str:
    start, end = span
    before = text[max(0, start - LOOK_BEHIND) : start]
    if candidate.cue is Cue.QUOTED:
        return _type_of_quoted(before)
    if _HAN.fullmatch(candidate.name):
        return chinese_rules().entity_type(text, candidate.name, start, end)
    n_words = len(candidate.key.split())
    word_before = _WORD_BEFORE.search(before)
    follows_role = word_before is not None and word_before.group(1).casefold() in word_set("roles")
    if _AFTER_PERSON.match(text, end) or (follows_role and n_words <= MAX_PERSON_WORDS):
        return "Person"
    if _BEFORE_PLACE.search(before) and n_words <= 2 and _PLAIN_NAME.fullmatch(candidate.name):
        return "Location"
    return "Artifact" if _MODEL_NAME.fullmatch(candidate.name) else ""


def _type_of_quoted(before: str) -> str:
    if _BEFORE_COMPANY.search(before):
        return "Organization"
    if _BEFORE_CRAFT.search(before):
        return "Artifact"
    return "Content" if _BEFORE_WORK.search(before) else ""
