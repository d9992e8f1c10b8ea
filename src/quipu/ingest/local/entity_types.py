"""Entity types: the type of a name if a rule can tell it, else Other. The types are LightRAG's."""

import re
from collections.abc import Sequence

from quipu.ingest.local.candidates import MAX_PERSON_WORDS, Candidate
from quipu.ingest.local.lexicon import (
    CONCEPT_HEADS,
    CONTENT_HEADS,
    EVENT_HEADS,
    LOCATION_HEADS,
    ORGANIZATION_HEADS,
    word_set,
    words,
)
from quipu.ingest.local.occurrences import Cue
from quipu.ingest.local.script_rules import chinese_rules, has_russian_letter, russian_rules, stem_name
from quipu.model.graph import OTHER_TYPE

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
