"""Kinds: the type of a name, where a rule can tell; LightRAG's list of types, else Other."""

import re

from quipu.ingest.local import heads
from quipu.ingest.local.candidates import Candidate
from quipu.ingest.local.inflection import stem
from quipu.ingest.local.lexicon import word_set
from quipu.ingest.local.occurrence import Cue
from quipu.model.graph import OTHER_TYPE

_LOOK = 40
_LAST_WORD = {
    **dict.fromkeys(heads.CONCEPT, "Concept"),
    **dict.fromkeys(heads.CONTENT, "Content"),
    **dict.fromkeys(heads.EVENT, "Event"),
    **dict.fromkeys(heads.ORGANIZATION, "Organization"),
    **dict.fromkeys(heads.LOCATION, "Location"),
    **dict.fromkeys("algorithm method technique transform".split(), "Method"),
}
_FIRST_WORD = {
    **dict.fromkeys("mount mt lake cape fort port saint-pierre san gulf isle isles bay río rio sea strait straits river".split(), "Location"),
    **dict.fromkeys("university college bank ministry department institute museum society association academy council house".split(), "Organization"),
    **dict.fromkeys("battle siege treaty war wars massacre fall hurricane storm operation great-fire".split(), "Event"),
    **dict.fromkeys("king queen emperor empress prince princess pope sir lord lady mr mrs ms miss dr professor saint".split(), "Person"),
    **dict.fromkeys("улица улице площадь площади проспект озеро река гора остров храм собор церковь".split(), "Location"),
    **dict.fromkeys("министерство институт университет банк академия комитет совет союз центр организация партия музей группа".split(), "Organization"),
    **dict.fromkeys("битва битве сражение".split(), "Event"),
    **dict.fromkeys("теория теорема гипотеза закон".split(), "Concept"),
    **dict.fromkeys("алгоритм метод".split(), "Method"),
}  # fmt: skip
# Russian names end in the word that says what they are: stems of it.
_RUSSIAN_NOUN = (
    (re.compile(r".* (?:войн|битв|революци|реформ|поход|восстани|мир|договор|фестивал|чемпионат|съезд|кризис)[а-яё]{0,3}"), "Event"),
    (re.compile(r".* (?:банк|театр|суд|университет|институт|музе|организаци|союз|академи|дум|парти|компани|завод|двор|бирж|галере|республик|лаборатори)[а-яё]{0,3}"), "Organization"),
    (re.compile(r".* (?:море|мор|океан|озер|рек|гор|остров|полуостров|площад|улиц|собор|храм|империи|империя|княжеств|дорог|мыс|залив|пролив|месторождени|полюс|равнин|проспект)[а-яё]{0,3}"), "Location"),
    (re.compile(r".* (?:книг|правд|библи|летопис|евангели|кодекс|закон)[а-яё]{0,3}"), "Content"),
)  # fmt: skip
_PERSON_WORD_BEFORE = re.compile(r"(\w+)[\s,]*$")
_PERSON_AFTER = re.compile(
    r"\s*(?:\((?:born|b\.|née|род)|(?:was|is|were) (?:an? )?(?:\w+ ){0,3}?(?:born|actor|actress|writer|singer|politician|"
    r"player|footballer|painter|poet|composer|lawyer|historian|scientist|engineer|musician|director|novelist|king|queen|"
    r"mathematician|physicist|explorer|bishop|sailor|officer|journalist|philosopher|architect|merchant|printer|monk|"
    r"scholar|coach|swimmer|cyclist|boxer|wrestler|priest|businessman)\b"
    r"|,? (?:who|whose)\b|,? (?:said|says|told|wrote|married|died)\b|,? (?:родился|родилась|умер|писал|написал|сказал|который|которая)\b)"
)
_LOCATION_BEFORE = re.compile(r"\b(?:in|near|at|towards?|to|from|в|во|из|под|около|до|near the)\s$", re.IGNORECASE)
_HAN_LOCATION_BEFORE = re.compile(r"(?:在|到|往|抵达|位于|从|至|于|来自)$")
_WORK_BEFORE = re.compile(
    r"(?:film|novel|song|album|single|book|play|poem|series|show|paper|magazine|opera|ballet|titled|called|entitled|"
    r"фильм\w*|роман\w*|книг\w*|балет\w*|опер\w*|повест\w*|журнал\w*|газет\w*|песн\w*|картин\w*|спектакл\w*),?\s*[«\"“„]?$",
    re.IGNORECASE,
)
_COMPANY_BEFORE = re.compile(
    r"(?:компани\w*|групп\w*|сет\w*|завод\w*|фирм\w*|клуб\w*|ООО|ОАО|АО|ПАО|ЗАО|банк\w*|концерн\w*|холдинг\w*)\s*[«\"„]?$", re.IGNORECASE
)
_CRAFT_BEFORE = re.compile(
    r"(?:аппарат\w*|зонд\w*|телескоп\w*|ледокол\w*|вакцин\w*|станци\w*|ракет\w*|спутник\w*|проект\w*|ship|spacecraft|rocket|probe)\s*[«\"„]?$",
    re.IGNORECASE,
)
_PATRONYMIC = re.compile(r"[а-яё]+(?:вич|вича|вичу|вичем|виче|вна|вны|вне|вну|вной)")
_SURNAME = re.compile(r"[а-яё-]{2,}(?:ов|ев|ёв|ин|ын|ский|цкий|ова|ева|ина|ская|ко|юк|ян|дзе|швили|ову|еву|овым|евым|иным|ского|скому|ским|ской)")
_INITIALS = re.compile(r"(?:[^\W\d_]\. ?)+[^\W\d_]{2}")
_MODEL = re.compile(r"(?=.*\d)(?=.*[^\W\d_]).+")


def kind_of(text: str, candidate: Candidate) -> str:
    """Return the type of a candidate named in `text`."""
    if candidate.kind:
        return candidate.kind
    words = candidate.key.split()
    by_words = _kind_of_words(candidate, words)
    if by_words:
        return by_words
    if candidate.places:
        return _kind_of_surroundings(text, candidate, words)
    return OTHER_TYPE


def _kind_of_words(candidate: Candidate, words: list[str]) -> str:
    first, last = words[0], words[-1]
    if len(words) > 1 and first in _FIRST_WORD:
        return _FIRST_WORD[first]
    if len(words) > 1 and last in _LAST_WORD:
        return _LAST_WORD[last]
    for pattern, kind in _RUSSIAN_NOUN:
        if pattern.fullmatch(candidate.key):
            return kind
    if len(words) <= 4 and _is_person_name(candidate.name, words):
        return "Person"
    places = word_set("places")
    if len(words) <= 3 and (last in places or stem(last) in places):
        return "Location"
    return ""


def _is_person_name(name: str, words: list[str]) -> bool:
    if words[0] in word_set("given_names") and (len(words) > 1 or words[0] not in word_set("places")):
        return True
    if _INITIALS.match(name):
        return True
    if len(words) > 1 and any(_PATRONYMIC.fullmatch(word) for word in words[1:]):
        return True
    return len(words) == 2 and bool(_SURNAME.fullmatch(words[1])) and not words[0].endswith(("ий", "ая", "ое", "ой"))


def _kind_of_surroundings(text: str, candidate: Candidate, words: list[str]) -> str:
    start, end = candidate.places[0]
    before = text[max(0, start - _LOOK) : start]
    if candidate.cue is Cue.QUOTED:
        return _kind_of_quoted(before)
    if _PERSON_AFTER.match(text, end):
        return "Person"
    match = _PERSON_WORD_BEFORE.search(before)
    if match and match.group(1).casefold() in word_set("roles") and len(words) <= 4:
        return "Person"
    if _LOCATION_BEFORE.search(before) and len(words) <= 2 and not candidate.name.isupper():
        return "Location"
    if candidate.cue in (Cue.HAN, Cue.HAN_BARE) and _HAN_LOCATION_BEFORE.search(before):
        return "Location"
    return "Artifact" if _MODEL.fullmatch(candidate.key) else OTHER_TYPE


def _kind_of_quoted(before: str) -> str:
    if _COMPANY_BEFORE.search(before):
        return "Organization"
    if _CRAFT_BEFORE.search(before):
        return "Artifact"
    return "Content" if _WORK_BEFORE.search(before) else OTHER_TYPE
