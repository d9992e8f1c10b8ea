"""Questions: the kind of thing a question asks for, and where a text offers it (English, Russian, Chinese)."""

import re
from enum import StrEnum


class Asked(StrEnum):
    """The kind of thing a question asks for, as far as its words tell."""

    PERSON = "person"
    PLACE = "place"
    TIME = "time"
    NUMBER = "number"
    NAME = "name"
    OTHER = "other"


def _either(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


# The first that matches decides, so that "which city" asks for a place and "what year" for a time.
_ASKING: tuple[tuple[Asked, re.Pattern[str]], ...] = (
    (
        Asked.TIME,
        _either(
            r"\bwhen\b",
            r"\b(?:what|which) (?:\w+ )?(?:year|date|day|month|century|decade|time|era|season)\b",
            r"\bкогда\b",
            r"\bкак(?:ом|ой|ую|ое) (?:год|месяц|ден|дат|век|столети|врем)\w*",
            r"何时|什么时候|什么年代|几年|哪一?[年天]",
        ),
    ),
    (
        Asked.NUMBER,
        _either(
            r"\bhow (?:many|much|old|long|far|tall|large|big|high|deep|often|heavy)\b",
            r"\bwhat (?:(?:is|was|are) the )?(?:number|percentage|population|amount|price|cost|age|length|height)\b",
            r"\bсколько\b",
            r"\bкак(?:ова|ов|ое|ой|ая) (?:числ|количеств|населени|длин|высот|площад|возраст)\w*",
            r"多少|几[个名人次座岁位]|多[大长高远久]",
        ),
    ),
    (
        Asked.PLACE,
        _either(
            r"\bwhere\b",
            r"\b(?:what|which) (?:\w+ )?(?:city|country|state|county|place|region|district|province|town|village)\b",
            r"\b(?:what|which) (?:\w+ )?(?:continent|location|area|island|river|lake|capital)\b",
            r"\b(?:где|куда|откуда)\b",
            r"\bкак(?:ой|ом|ая|ую|ое|ие) (?:\w+ )?(?:город|стран|област|мест|регион|район|рек|остров|провинци)\w*",
            r"哪里|哪儿|在哪|何地|什么地方|哪[个座一]?[国城省地市州县]",
        ),
    ),
    (Asked.PERSON, _either(r"\b(?:who|whom|whose)\b", r"\b(?:кто|кого|кому|кем|чей|чья|чьи)\b", "谁|何人|哪位|什么人")),
    (
        Asked.NAME,
        _either(
            r"\bwhich\b",
            r"\bwhat (?:\w+ ){0,5}(?:name|called)\b",
            r"\bкак(?:ой|ая|ое|ие|ую|ого)\b",
            "哪[个些一]|叫什么",
        ),
    ),
)

_MONTHS = (
    "january|february|march|april|june|july|august|september|october|november|december|"
    "января|февраля|марта|апреля|июня|июля|августа|сентября|октября|ноября|декабря"
)
_TIME = _either(r"\d{3,4}", rf"\b(?:{_MONTHS})\b", r"\w+ (?:century|век[еа]?)\b", "[初末中]年|[春夏秋冬]天|世纪")
_NUMBER = _either(
    r"\d+(?:[.,]\d+)*",
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|million|billion)\b",
    r"\b(?:дв[ае]|три|четыре|пять|шесть|семь|восемь|девять|десять|сто|тысяч[аи]?|миллион\w*)\b",
    "[二三四五六七八九十百千万两]+",
)
_OFFERS = {Asked.TIME: _TIME, Asked.NUMBER: _NUMBER}


def asked_for(question: str) -> Asked:
    """Return the kind of thing `question` asks for; OTHER where its words do not tell."""
    return next((asked for asked, pattern in _ASKING if pattern.search(question)), Asked.OTHER)


def offers(asked: Asked, text: str, question: str) -> bool:
    """Say whether `text` holds a time or number that is not already in the question; False for any other kind."""
    pattern = _OFFERS.get(asked)
    if pattern is None:
        return False
    known = question.casefold()
    return any(match.group().casefold() not in known for match in pattern.finditer(text))
