"""Table words: how a question asks for what a table holds (English, Russian, Chinese).

Words are compared in a normal form that only joins the forms of one word. A rough stem would take "cars" for "care".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from quipu.text.unicode import is_unspaced
from quipu.text.words import STOP_WORDS, russian_stem, split_words


class TableOperation(StrEnum):
    """What is computed. VALUE is the cell of one row."""

    VALUE = "value"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    SUM = "sum"
    AVERAGE = "average"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberCondition:
    """A condition such as "over 100" as it is written: `sign` is one of < <= > >=."""

    sign: str
    number: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWord:
    """A word of a question: its normal form, whether it says something, and where it stands."""

    form: str
    normal: str
    is_content: bool
    start: int


def normal_word(term: str) -> str:
    """Return a word in the form in which words are compared: English without the plural, Russian as its stem."""
    for ending, singular in (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("sses", "ss")):
        if len(term) > len(ending) + 1 and term.endswith(ending):
            return term[: -len(ending)] + singular
    if len(term) > 3 and term.isalpha() and term.endswith("s") and not term.endswith(("ss", "us", "is")):
        return term[:-1]
    stem = russian_stem(term)
    return stem if term.isascii() else stem.rstrip("ийь") or stem


def normal_words(text: str) -> list[str]:
    return [normal_word(term) for term in split_words(text).terms]


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


OPERATIONS = {
    TableOperation.AVERAGE: _any_of(r"\b(?:average|mean)\b", r"\bв среднем\b|\bсредн(?:ий|яя|ее|юю|ей|его)\b", "平均"),
    TableOperation.SUM: _any_of(
        r"\b(?:the )?sum (?:of|total)\b|\btotal\b|\bin total\b|\baltogether\b|\ball together\b",
        r"\bсумм(?:а|у|ой)\b|\bсуммарн\w+|\bв сумме\b|\bитого\b|\bобщ(?:ая|ее|ий|ую)\b",
        "总和|合计|总计|一共|总共|之和|总",
    ),
    TableOperation.MAXIMUM: _any_of(
        r"\b(?:highest|largest|greatest|biggest|maximum|max|most|latest|newest|longest|tallest|heaviest|deepest|oldest)\b",
        r"\b(?:максимальн\w+|наибольш\w+|сам(?:ый|ая|ое|ую) (?:больш|высок)\w+)",
        "最高|最大|最多|最贵",
    ),
    TableOperation.MINIMUM: _any_of(
        r"\b(?:lowest|smallest|minimum|min|least|fewest|earliest|cheapest|shortest|lightest|youngest)\b",
        r"\b(?:минимальн\w+|наименьш\w+|сам(?:ый|ая|ое|ую) (?:маленьк|низк)\w+)",
        "最低|最小|最少|最便宜",
    ),
    TableOperation.COUNT: _any_of(r"^how many\b", r"^сколько\b", "多少[个种家条行]|几[个种家条行]"),
}
_COMPARISONS = (
    (">=", r"at least|no less than|не менее|至少|不少于"),
    ("<=", r"at most|no more than|up to|не более|最多|不超过"),
    (
        ">",
        r"(?:more|greater|larger|higher) than|over|above|exceeding|больше|более|выше|свыше|超过|大于|高于|多于",
    ),
    ("<", r"less than|fewer than|smaller than|lower than|under|below|меньше|менее|ниже|低于|小于|少于"),
)
_NUMBER = r"[ \u00a0]?(?P<number>[$€£¥₽]?\d[\d.,]*\d|[$€£¥₽]?\d)(?P<unit>[ \u00a0]?[%‰°€$£₽])?(?![A-Za-zА-я\d])"
_COMPARISON_PATTERNS = tuple(
    (sign, re.compile(rf"(?:\b|(?<=[\u3400-\u9fff]))(?:{words}){_NUMBER}", re.IGNORECASE))
    for sign, words in _COMPARISONS
)
_ASKS = _any_of(
    r"^(?:(?:and|so|in|at|on|for|of|by|from|to|with) )*(?:what|which|who|whose|when|where"
    r"|how (?:many|much|long|old|tall|high|heavy|far|big|large|wide|deep|fast))\b",
    r"^(?:give|show|tell|find|compute|calculate|name)\b",
    r"^(?:(?:в|на|у|для|за|с) )?(?:сколько|как(?:ой|ая|ое|ова|ов|ово|ую|ом)|когда|где|кто|у кого)\b",
    r"^(?:найди|посчитай|покажи)\w*\b",
    "多少|什么|哪|谁|几|何时",
)
# What changes the meaning of a question and would otherwise pass as a stop word, or asks for more than is computed.
_REFUSED = _any_of(
    r"\b(?:not|no|without|except|excluding|besides|other|than|per|each|every|between|difference|differ\w*|compared?"
    r"|versus|vs|or|both|more|less|fewer|before|after|since|until|during|through|first|second|third|last|next|previous"
    r"|top|bottom|only|why|explain|ratio|percentage of|share of|change|increase|decrease|growth|half|twice|times|if"
    r"|would|should|own|same|most of|distinct|different|unique|median|almost|nearly|about|usually|typically"
    r"|(?<!according )to)\b|n't\b|\d[-–—]\d{4}",
    r"\b(?:не|без|кроме|кажд\w+|между|или|чем|раз(?:ница|ницу)?|почему|после|до|на сколько|изменил\w+|вырос\w*"
    r"|медиан\w+)\b",
    "不|没|除|每|之间|还是|比|为什么|之后|之前|差|变化|增长|分别",
)
IGNORED = frozenset(
    normal_words(
        "table row column list listed according number value amount give show find compute calculate please "
        "имеет имеют таблица таблице таблицы строка строк значение число количество покажи найди посчитай"
    )
)
_FILLER_CHARACTERS = frozenset(
    "的是了在有和与多少什么哪个种家条行谁几值请问一表格中里为呢吗数各位年最高大低小贵便宜平均总"
)
# What an adjective or a verb of a question is about: words of names of columns.
SENSES = {
    **dict.fromkeys(("cost", "costs", "expensive", "cheapest"), "price cost fee"),
    **dict.fromkeys(("tall", "tallest"), "height"),
    **dict.fromkeys(("high", "highest"), "height elevation altitude"),
    **dict.fromkeys(("deep", "deepest"), "depth"),
    **dict.fromkeys(("long", "longest", "shortest"), "length duration"),
    **dict.fromkeys(("heavy", "heaviest", "lightest"), "weight mass"),
    **dict.fromkeys(("old", "oldest", "youngest"), "age"),
    **{"far": "distance", "populous": "population", "when": "date", "стоит": "цена стоимость"},
}
OF_ANY_NUMBER = ("highest",)  # says something without its sense
_BRACKETED = re.compile(r"[(\[（].*?[)\]）]")
_END = re.compile(r"[\s?？!！.。…]+$")


def may_ask_table(question: str) -> bool:
    """Return whether a question can have a reading for some table: what it asks for is a value and nothing refused."""
    bare, _ = without_comparisons(question)
    return _ASKS.search(bare) is not None and _REFUSED.search(bare) is None


def without_comparisons(question: str) -> tuple[str, list[tuple[int, NumberCondition]]]:
    """Return a question with its comparisons blanked out, and these with their places, in order."""
    text = _END.sub("", " ".join(question.split()))
    comparisons: list[tuple[int, NumberCondition]] = []
    for sign, pattern in _COMPARISON_PATTERNS:
        for match in pattern.finditer(text):
            comparisons.append(
                (match.start(), NumberCondition(sign=sign, number=match["number"] + (match["unit"] or "")))
            )
        text = pattern.sub(lambda match: " " * len(match[0]), text)
    return text, sorted(comparisons, key=lambda placed: placed[0])


def words_of(text: str) -> Iterator[TableWord]:
    words = split_words(text)
    for place, (word, term) in enumerate(zip(words, words.terms, strict=True)):
        is_stop = term in STOP_WORDS and (place == 0 or not word.is_capital or is_unspaced(term))
        is_filler = term in _FILLER_CHARACTERS if is_unspaced(term) else is_stop
        yield TableWord(form=word.form, normal=normal_word(term), is_content=not is_filler, start=word.start)


def name_terms(name: str) -> list[str]:
    """Return the words of the name of a column that say something, without the unit in brackets."""
    words = [word.normal for word in words_of(f"- {_BRACKETED.sub(' ', name)}") if word.is_content]
    return words or normal_words(name)
