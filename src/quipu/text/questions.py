"""Questions: the type of answer that a question expects, by its words (English, Russian, Chinese).

Also the irregular forms in which its English words may stand in an answer, and what is quoted only for a question about
it: licences.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

from quipu.text.references import NUMBERED_SECTION
from quipu.text.words import stem


class AnswerType(StrEnum):
    """What a question asks for. NAME is a name of unknown kind; OTHER means that the words do not tell."""

    PERSON = "person"
    PLACE = "place"
    TIME = "time"
    NUMBER = "number"
    NAME = "name"
    OTHER = "other"


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


# The first pattern that matches decides, so "which city" expects a place and "what year" a time.
_QUESTION_PATTERNS: tuple[tuple[AnswerType, re.Pattern[str]], ...] = (
    (
        AnswerType.TIME,
        _any_of(
            r"\bwhen\b",
            r"\b(?:what|which) (?:\w+ )?(?:year|date|day|month|century|decade|time|era|season)\b",
            r"\bкогда\b",
            r"\bкак(?:ом|ой|ую|ое) (?:год|месяц|ден|дат|век|столети|врем)\w*",
            r"何时|什么时候|什么年代|几年|哪一?[年天]",
        ),
    ),
    (
        AnswerType.NUMBER,
        _any_of(
            r"\bhow (?:many|much|old|long|far|tall|large|big|high|deep|often|heavy)\b",
            r"\bwhat (?:(?:is|was|are) the )?(?:number|percentage|population|amount|price|cost|age|length|height)\b",
            r"\bсколько\b",
            r"\bкак(?:ова|ов|ое|ой|ая) (?:числ|количеств|населени|длин|высот|площад|возраст)\w*",
            r"多少|几[个名人次座岁位]|多[大长高远久]",
        ),
    ),
    (
        AnswerType.PLACE,
        _any_of(
            r"\bwhere\b",
            r"\b(?:what|which) (?:\w+ )?(?:city|country|state|county|place|region|district|province|town|village)\b",
            r"\b(?:what|which) (?:\w+ )?(?:continent|location|area|island|river|lake|capital)\b",
            r"\b(?:где|куда|откуда)\b",
            r"\bкак(?:ой|ом|ая|ую|ое|ие) (?:\w+ )?(?:город|стран|област|мест|регион|район|рек|остров|провинци)\w*",
            r"哪里|哪儿|在哪|何地|什么地方|哪[个座一]?[国城省地市州县]",
        ),
    ),
    (
        AnswerType.PERSON,
        _any_of(r"\b(?:who|whom|whose)\b", r"\b(?:кто|кого|кому|кем|чей|чья|чьи)\b", "谁|何人|哪位|什么人"),
    ),
    (
        AnswerType.NAME,
        _any_of(
            r"\bwhich\b",
            r"\bwhat (?:\w+ ){0,5}(?:name|called)\b",
            r"\bкак(?:ой|ая|ое|ие|ую|ого)\b",
            "哪[个些一]|叫什么",
        ),
    ),
)

_OVERVIEW = _any_of(
    r"\bwhat(?: is|'s| are| was| were)\b.*\babout$",
    r"\bwhat (?:does|do|did)\b.* (?:deal with|cover|discuss|talk about|treat)$",
    r"\bsummari[sz]e\b|\bsummary of\b|\boverview of\b|\btl;?dr\b",
    r"\b(?:give|write|show)(?: me)? (?:an? |the )?(?:\w+ )?(?:summary|overview|outline)\b",
    r"\b(?:main|central|key|major) (?:themes?|topics?|ideas?|points?|subjects?)\b",
    r"\bо ч[её]м\b(?!.*\bговорит)|\b(?:перескажи|обобщи|резюмируй|суммируй)\w*",
    r"\bкратк\w+ (?:содержани|пересказ|обзор)\w*",
    r"\b(?:основн|главн)\w+ (?:тем|иде|мысл|содержани)\w*|\bобзор\b",
    "(?:讲|说|介绍|谈|包括|包含)(?!.*(?:怎|如何)).*(?:有)?哪些(?:主要)?(?:内容|主题|章节|方面)$",
    "(?:主要|大概|大致)?(?:讲|说|介绍|谈)(?:述)?(?:了|的是|的)?(?:些)?什么(?:内容|故事)?$|总结|概括|概述|摘要|大意|主旨|主题|主要内容|关于什么",
)
_EVENTS = _any_of(  # "What happens in chapter two?"; the section is §
    r"^what (?:happens|happened|goes on|is (?:covered|described|discussed|explained|told)) in (?:the )?§(?: of\b.*)?$",
    r"^что (?:происходит|произошло|случилось|описано|описывается|рассказано|рассказывается) во? §(?: .*)?$",
    "§[里中]?(?:都)?(?:发生了|写了|描写了)(?:些)?什么",
)
# What only means something as it is written: a quotation, a flag, an identifier, an error code.
_LITERAL = re.compile(
    r"[\"“„«「『`](?P<quoted>[^\"“”„«»「」『』`]{3,100})[\"”“»」』`]"
    r"|(?<![\w-])(?P<flag>--[A-Za-z][\w-]+|-[A-Za-z](?![\w-]))"
    r"|(?<![\w.-])(?P<identifier>\w+_\w+|[a-z]+[A-Z][A-Za-z]*\(\)|[A-Z]{1,6}-?\d{3,})(?![\w-])",
    re.ASCII,
)
_END = re.compile(r"[\s?？!！.。…]+$")

# Each licence has one of these; to look for them takes far less time than the pattern.
_LICENCE_WORDS = (
    *("copyright", "©", "rights", "licen", "permission", "warranty", "gutenberg", "redistribut"),
    *("лиценз", "права", "版权", "许可证"),
)
_LICENCE = re.compile(
    r"\bcopyright\b|©|\ball rights reserved\b|\blicen[sc]ed under\b|\bpermission is hereby granted\b"
    r"|\bwithout warranty\b|\bproject gutenberg\b|\bspdx-license|\b(?:freely|may be) (?:re)?distribut"
    r"|\bвсе права защищены\b|版权所有|许可证发布"
    r"|\bлицензи\w+ (?:gnu|mit|apache|bsd)\b",
    re.IGNORECASE,
)

_LICENCE_SECTION = re.compile(
    r"\b(?:GNU|MIT|BSD|Apache|Creative Commons|Free Documentation|General Public|Open Font|End.User)\b.{0,40}"
    r"\bLicen[cs]e\b"
    r"|^[\W\d]*(?:Licen[cs](?:e|ing)|Copying|Copyright(?: notice)?|Лицензия|Авторские права|许可证|版权)\W*$",
    re.IGNORECASE,
)
_NAMES_LICENCE = re.compile(r"licen[cs]|copyright|лиценз|авторск|许可|版权", re.IGNORECASE)

_RELEASE_NOTES_FILE = re.compile(
    r"(?:^|[/\\])(?:change[-_]?logs?|changes|rel(?:ease)?[-_]?notes|release[-_]history|what'?s[-_]?new"
    r"|upgrad(?:e|ing)(?:[-_]guide)?|(?:[\w-]+[-_])?migrat(?:ion|ing)[-_](?:guide|from|to)[\w-]*)(?:\.\w+)*$",
    re.IGNORECASE,
)
_RELEASE_NOTES_TITLE = re.compile(
    r"\W*(?:(?:change ?logs?|changes(?=\W*$)|(?:release|version|revision) (?:notes|history)|what['’]?s new)\b"
    r"|(?:upgrad|migrat)(?:e|ing|ion)\b.{0,40}\b(?:guide|version|releases?|v\d|\d+\.[\dx])"
    r"|(?:история (?:изменений|версий)|список изменений|что нового|переход на верси\w+)\b"
    r"|(?:更新|变更|版本|发布)(?:日志|历史|记录|说明)|(?:升级|迁移)(?:指南|说明))",
    re.IGNORECASE,
)
_ASKS_FOR_CHANGES = re.compile(
    r"\d+\.\d|\b(?:version|releases?\b|chang|added\b|new\b|remov|deprecat|introduc|fix|bug|dropped|renam|upgrad|migrat)"
    r"|\bwhen (?:was|were|did)\b"
    r"|\b(?:верси|релиз|выпу[сщ]|измен|добав|нов(?:ое|ого|ые|ый)\b|удал|устар|исправ|когда|появил|обнов|переход|переез|мигр)"
    r"|版本|发布|更新|变更|变化|新增|移除|废弃|修复|升级|迁移|何时|什么时候",
    re.IGNORECASE,
)

_MONTHS = (
    "january|february|march|april|june|july|august|september|october|november|december|"
    "января|февраля|марта|апреля|июня|июля|августа|сентября|октября|ноября|декабря"
)
_TIME = _any_of(r"\d{3,4}", rf"\b(?:{_MONTHS})\b", r"\w+ (?:century|век[еа]?)\b", "[初末中]年|[春夏秋冬]天|世纪")
_NUMBER = _any_of(
    r"\d+(?:[.,]\d+)*",
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|million|billion)\b",
    r"\b(?:дв[ае]|три|четыре|пять|шесть|семь|восемь|девять|десять|сто|тысяч[аи]?|миллион\w*)\b",
    "[二三四五六七八九十百千万两]+",
)
_ANSWER_PATTERNS = {AnswerType.TIME: _TIME, AnswerType.NUMBER: _NUMBER}


def asks_for_overview(question: str) -> bool:
    """Return whether a question asks what a document, a numbered section of one, or all documents are about."""
    bare = _END.sub("", " ".join(question.split()))
    return bool(_OVERVIEW.search(bare) or _EVENTS.search(NUMBERED_SECTION.sub("§", bare, count=1)))


def is_licence(text: str) -> bool:
    """Return whether a text is about copyright or the terms of a licence."""
    lowered = text.lower()
    return any(word in lowered for word in _LICENCE_WORDS) and _LICENCE.search(text) is not None


def is_licence_section(headings: Iterable[str], question: str) -> bool:
    """Return whether a text below these headings is a licence, and not what a question is about."""
    return any(map(_LICENCE_SECTION.search, headings)) and not asks_for_licence(question)


def asks_for_licence(question: str) -> bool:
    """Return whether a question is about a licence or copyright."""
    return bool(_NAMES_LICENCE.search(question))


def is_release_notes(document_id: str, title: str) -> bool:
    """Return whether a document lists the changes of versions, or guides to a new one, by its file name or title."""
    return bool(_RELEASE_NOTES_FILE.search(document_id) or _RELEASE_NOTES_TITLE.match(title))


def asks_for_changes(question: str) -> bool:
    """Return whether a question is about versions or changes, which release notes answer."""
    return bool(_ASKS_FOR_CHANGES.search(question))


def find_literal(question: str) -> str:
    """Return the first quotation, flag, identifier or code in a question, which counts as it is written; else ""."""
    match = _LITERAL.search(question)
    return next(filter(None, match.groups())) if match else ""


def expected_answer_type(question: str) -> AnswerType:
    """Return the type of answer that `question` expects; OTHER if its words do not tell."""
    matches = (answer_type for answer_type, pattern in _QUESTION_PATTERNS if pattern.search(question))
    return next(matches, AnswerType.OTHER)


def offers_answer(answer_type: AnswerType, text: str, question: str) -> bool:
    """Return whether `text` holds a time or number that is not in the question; False for all other answer types."""
    pattern = _ANSWER_PATTERNS.get(answer_type)
    if pattern is None:
        return False
    folded_question = question.casefold()
    return any(match.group().casefold() not in folded_question for match in pattern.finditer(text))


_PRICE = r"\b(?:cost|price|fee|charge|tariff|rate)s?\b|\b(?:цен|стоимост|стоит|тариф|плат)\w*|价格|价钱|费用|收费"
_ASKS_FOR_PRICE = _any_of(
    r"\bhow (?:much|expensive)\b.*\b(?:costs?|charge|pay)\b|\bhow expensive\b|\b(?:price|cost) of\b",
    r"\bсколько стоит|\bсколько стоят|\bкакова? (?:цена|стоимость)|多少钱|什么价",
)
_AMOUNT = _any_of(
    r"[$€£¥₽₹]|\b(?:USD|EUR|GBP|RMB|dollars?|euros?|pounds?|cents?|yuan)\b|\bfree\b|\bруб|бесплатн|元|免费"
)


def lacks_price(question: str, text: str) -> bool:
    """Return whether a question asks what something costs, and a text names no amount of money."""
    if not _ASKS_FOR_PRICE.search(question):
        return False
    return not _AMOUNT.search(text) and not (re.search(_PRICE, text, re.IGNORECASE) and any(map(str.isdigit, text)))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PERSON_TYPES = _words("person people character persona 人物 人 персона человек")
_ORGANIZATION_TYPES = _words("organization organisation company institution group 组织 机构 公司 организация компания")
_PLACE_TYPES = _words("location place geo city country facility 地点 城市 国家 место локация город страна")
_EVENT_TYPES = _words("event 事件 событие")
_TIME_TYPES = _words("date time year data period 日期 时间 数据 дата время данные")
_ENTITY_TYPES = {
    AnswerType.PERSON: _PERSON_TYPES | _ORGANIZATION_TYPES,
    AnswerType.PLACE: _PLACE_TYPES,
    AnswerType.TIME: _EVENT_TYPES | _TIME_TYPES,
    AnswerType.NUMBER: _TIME_TYPES | _words("quantity number money 数字 число количество"),
}
_NAMEABLE_TYPES = _PERSON_TYPES | _ORGANIZATION_TYPES | _PLACE_TYPES | _EVENT_TYPES


def answer_entity_types(question: str, types: Iterable[str]) -> tuple[str, ...]:
    """Return those entity types of `types`, in their order, that the answer may have; none if the words do not tell.

    A type that the question names, as "organization" in "which organization", is included. Source: Y. Fan et al.,
    "MiniRAG" (2025), section 3.2. There a small language model predicts the types; here fixed word lists do.
    """
    expected = _ENTITY_TYPES.get(expected_answer_type(question), frozenset())
    folded_question = question.casefold()
    return tuple(t for t in types if t.casefold() in expected or _is_type_named(t.casefold(), folded_question))


def _is_type_named(entity_type: str, question: str) -> bool:
    return len(entity_type) > 1 and entity_type in _NAMEABLE_TYPES and entity_type in question


# Irregular forms of English words, which no rule about endings finds: "taught" is a form of "teach". Only forms that
# hardly ever mean another word: "found" may be of "find" or of "founded", "left" is also a side.
_FORMS = """
arise arose arisen|become became|begin began begun|bend bent|bind bound|bite bitten|bleed bled|blow blew blown
break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen
cling clung|come came|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven
eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|flee fled|fly flew flown|forbid forbade forbidden
forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone
grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led
learn learnt|lend lent|lose lost|make made|mean meant|meet met|mistake mistook mistaken|overcome overcame
oversee oversaw overseen|pay paid|rebuild rebuilt|rewrite rewrote rewritten|ride rode ridden|ring rang rung
rise rose risen|run ran|say said|see seen|seek sought|sell sold|send sent|shake shook shaken|shoot shot|show shown
shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|spell spelt
spend spent|spin spun|spring sprang sprung|stand stood|steal stole stolen|stick stuck|strike struck stricken
swear swore sworn|sweep swept|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told
think thought|throw threw thrown|undergo underwent undergone|understand understood|undertake undertook undertaken
wake woke woken|wear wore worn|weave wove woven|weep wept|win won|withdraw withdrew withdrawn|write wrote written
analysis analyses|basis bases|child children|crisis crises|criterion criteria|foot feet|goose geese|half halves
index indices|knife knives|leaf leaves|life lives|man men|matrix matrices|mouse mice|person people
phenomenon phenomena|tooth teeth|vertex vertices|wife wives|wolf wolves|woman women
"""

_FORMS_BY_BASE = {base: forms for base, *forms in map(str.split, _FORMS.replace("\n", "|").strip("|").split("|"))}
_BASE_BY_FORM = {form: base for base, forms in _FORMS_BY_BASE.items() for form in forms}
_FORMS_BY_STEM = {stem(base): forms for base, forms in _FORMS_BY_BASE.items()}


def base_form(word: str) -> str:
    """Return the base of an irregular form, both in lower case; any other word as it is."""
    return _BASE_BY_FORM.get(word, word)


def irregular_forms(word_stem: str) -> Sequence[str]:
    """Return the irregular forms of the word with this stem."""
    return _FORMS_BY_STEM.get(word_stem, ())
