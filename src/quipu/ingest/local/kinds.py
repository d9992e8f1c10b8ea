"""Kinds: the type of a name, where a rule can tell; LightRAG's list of types, else Other."""

import re

from quipu.ingest.local import heads
from quipu.ingest.local.candidates import Candidate
from quipu.ingest.local.han_phrases import has_surname
from quipu.ingest.local.inflection import stem
from quipu.ingest.local.lexicon import word_set, words
from quipu.ingest.local.occurrence import Cue
from quipu.model.graph import OTHER_TYPE

LOOK_BEHIND = 40
MAX_PLACES = 3
MAX_PERSON_WORDS = 4

_LAST_WORD = {
    **dict.fromkeys(heads.CONCEPT, "Concept"),
    **dict.fromkeys(heads.CONTENT, "Content"),
    **dict.fromkeys(heads.EVENT, "Event"),
    **dict.fromkeys(heads.ORGANIZATION, "Organization"),
    **dict.fromkeys(heads.LOCATION, "Location"),
    **dict.fromkeys(words("algorithm method technique transform"), "Method"),
}
_FIRST_WORD = {
    **dict.fromkeys(
        words("mount mt lake cape fort port san gulf isle isles bay río rio sea strait straits"), "Location"
    ),
    **dict.fromkeys(words("university bank ministry department institute museum society association"), "Organization"),
    **dict.fromkeys(words("battle siege treaty hurricane storm operation"), "Event"),
    **dict.fromkeys(words("king queen emperor empress prince princess pope sir lord lady mr mrs ms miss dr"), "Person"),
}
# Russian names show what they are in their last noun or their first, by its stem.
_RUSSIAN_NOUNS = {
    "Event": "войн|битв|сражени|революци|реформ|поход|восстани|мир|договор|фестивал|чемпионат|съезд|кризис",
    "Organization": "банк|театр|суд|университет|институт|музе|организаци|союз|академи|дум|парти|компани|завод|двор|"
    "бирж|галере|республик|лаборатори|министерств|комитет|совет|центр|групп|палат",
    "Location": "мор|океан|озер|рек|гор|остров|полуостров|площад|улиц|собор|храм|церк|импери|княжеств|дорог|мыс|залив|"
    "пролив|месторождени|полюс|равнин|проспект|кремл|монастыр",
    "Content": "книг|правд|библи|летопис|евангели|кодекс|закон",
    "Concept": "теори|теорем|гипотез",
    "Method": "алгоритм|метод",
}
_RUSSIAN = tuple(
    (re.compile(rf"(?:{stems})[а-яё]{{0,3}}(?: .*)?|.* (?:{stems})[а-яё]{{0,3}}"), kind)
    for kind, stems in _RUSSIAN_NOUNS.items()
)
_PROFESSION = (
    r"actor|actress|writer|singer|politician|player|footballer|painter|poet|composer|lawyer|historian|scientist|engineer|"
    r"musician|director|novelist|king|queen|mathematician|physicist|explorer|bishop|sailor|officer|journalist|"
    r"philosopher|architect|merchant|printer|monk|scholar|coach|swimmer|cyclist|boxer|wrestler|priest|businessman"
)
_PERSON_AFTER = re.compile(
    rf"\s*(?:\((?:born|b\.|née|род)|(?:is|was) (?:an? )?(?:\w+ ){{0,3}}?(?:born|{_PROFESSION})\b"
    r"|,? (?:who|whose|said|says|told|wrote|married|died)\b"
    r"|,? (?:родился|родилась|умер|умерла|писал|написал|написала|сказал|сказала)\b)"
)
_WORD_BEFORE = re.compile(r"(\w+)[\s,]*$")
_PLACE_BEFORE = re.compile(r"\b(?:in|near|at|в|во|из|под|около)\s$", re.IGNORECASE)
_HAN = re.compile(r"[\u3400-\u9fff]+")
_HAN_PLACE_BEFORE = re.compile(r"(?:在|到|往|抵达|位于|从|至|于|来自|到达|进入|经过|离开|回到|返回)$")
_HAN_PERSON_AFTER = re.compile(
    r"(?:[（(][^（）()]*[)）])?，?是[^，。；]{0,15}(?:[^国]家|僧人|诗人|学者|皇帝|将军|官员|商人|宦官|演员|歌手|教授)[，。；]"
)
_WORK_BEFORE = re.compile(
    r"(?:film|novel|song|album|single|book|play|poem|series|show|paper|magazine|opera|ballet|titled|called|entitled|"
    r"(?:фильм|роман|книг|балет|опер|повест|журнал|газет|песн|картин|спектакл)\w*),?\s*[«\"“„]?$",
    re.IGNORECASE,
)
_COMPANY_BEFORE = re.compile(
    r"(?:(?:компани|групп|сет|завод|фирм|клуб|банк|концерн|холдинг)\w*|ООО|ОАО|АО|ПАО|ЗАО)\s*[«\"„]?$", re.IGNORECASE
)
_CRAFT_BEFORE = re.compile(
    r"(?:(?:аппарат|зонд|телескоп|ледокол|вакцин|станци|ракет|спутник|проект)\w*|ship|spacecraft|rocket|probe)\s*[«\"„]?$",
    re.IGNORECASE,
)
_PATRONYMIC = re.compile(r"[а-яё]+(?:[вьм]ич(?:а|у|ем|е)?|вн(?:а|ы|е|у|ой))")
_SURNAME = re.compile(
    r"[а-яё-]{2,}(?:[оеё]в|ин|ын|ский|цкий|[ое]ва|ина|ская|ко|юк|ян|дзе|швили|[ое]ву|[ое]вым|иным|ского|скому|ским|ской)"
)
_INITIALS = re.compile(r"(?:[^\W\d_]\. ?)+[^\W\d_]{2}")
_MODEL = re.compile(r"(?=.*\d)(?=.*[^\W\d_]).+")


def kind_of(text: str, candidate: Candidate) -> str:
    """Return the type of a candidate, by its own words, else by what stands around its first places in `text`."""
    if candidate.kind:
        return candidate.kind
    by_words = _kind_of_words(candidate.name, candidate.key.split())
    if by_words:
        return by_words
    around = (_kind_of_surroundings(text, candidate, place) for place in candidate.places[:MAX_PLACES])
    return next((kind for kind in around if kind != OTHER_TYPE), OTHER_TYPE)


def _kind_of_words(name: str, parts: list[str]) -> str:
    first, last = parts[0], parts[-1]
    if _INITIALS.match(name):
        return "Person"
    if len(parts) > 1:
        head = parts[parts.index("of") - 1] if "of" in parts[1:] else last
        kind = _FIRST_WORD.get(first) or _LAST_WORD.get(head) or _kind_of_russian(" ".join(parts))
        if kind:
            return kind
    if len(parts) <= MAX_PERSON_WORDS and _is_person_name(parts):
        return "Person"
    places = word_set("places")
    return "Location" if len(parts) <= 3 and (last in places or stem(last) in places) else ""


def _kind_of_russian(key: str) -> str:
    if not "а" <= key[0] <= "ё":
        return ""
    return next((kind for pattern, kind in _RUSSIAN if pattern.fullmatch(key)), "")


def _is_person_name(parts: list[str]) -> bool:
    if parts[0] in word_set("given_names"):
        return len(parts) > 1 or parts[0] not in word_set("places")
    if any(_PATRONYMIC.fullmatch(part) for part in parts[1:]):
        return True
    return len(parts) == 2 and bool(_SURNAME.fullmatch(parts[1])) and not parts[0].endswith(("ий", "ая", "ое", "ой"))


def _kind_of_surroundings(text: str, candidate: Candidate, place: tuple[int, int]) -> str:
    start, end = place
    before = text[max(0, start - LOOK_BEHIND) : start]
    if candidate.cue is Cue.QUOTED:
        return _kind_of_quoted(before)
    if _HAN.fullmatch(candidate.name):
        return _kind_of_han(text, candidate.name, before, end)
    n_words = len(candidate.key.split())
    match = _WORD_BEFORE.search(before)
    follows_role = match is not None and match.group(1).casefold() in word_set("roles")
    if _PERSON_AFTER.match(text, end) or (follows_role and n_words <= MAX_PERSON_WORDS):
        return "Person"
    if _PLACE_BEFORE.search(before) and n_words <= 2 and not candidate.name.isupper():
        return "Location"
    return "Artifact" if _MODEL.fullmatch(candidate.key) else OTHER_TYPE


def _kind_of_han(text: str, name: str, before: str, end: int) -> str:
    if _HAN_PERSON_AFTER.match(text, end):
        return "Person"
    if _HAN_PLACE_BEFORE.search(before):
        return "Location"
    return "Person" if has_surname(name) else OTHER_TYPE


def _kind_of_quoted(before: str) -> str:
    if _COMPANY_BEFORE.search(before):
        return "Organization"
    if _CRAFT_BEFORE.search(before):
        return "Artifact"
    return "Content" if _WORK_BEFORE.search(before) else OTHER_TYPE
