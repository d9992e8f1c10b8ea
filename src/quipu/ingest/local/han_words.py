"""Han words: Chinese text cut into known words and the characters between them, by longest match."""

import re
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from quipu.ingest.local.han_suffixes import BY_SUFFIX
from quipu.ingest.local.lexicon import word_set

_NUMERALS = frozenset("第一二三四五六七八九十百千万亿两零〇几数0123456789")
_NUMBER = re.compile(r"第?[一二三四五六七八九十百千万亿两零〇几数\d]+(?:多|余)?")
_MEASURES = frozenset(
    "个名位次年月日条座件艘只头匹本部台辆张家所项份种类天岁克米里度届卷首篇人万亿点分秒周倍余多层章段场批副套支根块片颗声号箱盒瓶杯袋桶盘碗轮棵株朵幅尊"
    "元吨国"
)


class Sort(IntEnum):
    """What a word is to the search for names."""

    UNKNOWN = 0  # a character of no known word
    SOFT = 1  # inside many names
    LINK = 2  # a verb that also stands inside names of organisations
    SUFFIX = 3
    PLACE = 4
    NUMBER = 5
    ROLE = 6
    HARD = 7


class HanWord(NamedTuple):
    """A word of Chinese text at [start, end). A tuple, as there is one for nearly every character."""

    text: str
    start: int
    end: int
    sort: Sort


@cache
def _dictionary() -> dict[str, Sort]:
    return {
        **dict.fromkeys(word_set("zh_function"), Sort.HARD),
        **dict.fromkeys(word_set("zh_common"), Sort.HARD),
        **dict.fromkeys(word_set("zh_soft"), Sort.SOFT),
        **dict.fromkeys(word_set("zh_link"), Sort.LINK),
        **dict.fromkeys(word_set("zh_roles"), Sort.ROLE),
        **dict.fromkeys(BY_SUFFIX, Sort.SUFFIX),
        **dict.fromkeys(word_set("zh_places"), Sort.PLACE),
    }


def sort_of(word: str) -> Sort | None:
    """Return what a word is; None where it is not known."""
    return _dictionary().get(word)


@cache
def _longest_from() -> dict[str, int]:
    """Return, for each first character, the length of the longest word it begins."""
    longest: dict[str, int] = {}
    for word in _dictionary():
        longest[word[0]] = max(longest.get(word[0], 0), len(word))
    return longest


def cut_words(text: str, start: int, end: int) -> list[HanWord]:
    """Return the words of the Han run [start, end) of `text`; characters of no known word stand alone."""
    known, longest = _dictionary(), _longest_from()
    cut: list[HanWord] = []
    while start < end:
        sort, length = Sort.UNKNOWN, 1
        if text[start] in _NUMERALS and (size := _number(text, start, end)):
            sort, length = Sort.NUMBER, size
        else:
            for size in range(min(longest.get(text[start], 0), end - start), 0, -1):
                found = known.get(text[start : start + size])
                if found is not None:
                    sort, length = found, size
                    break
        cut.append(HanWord(text[start : start + length], start, start + length, sort))
        start += length
    return cut


def _number(text: str, start: int, end: int) -> int:
    """Return the length of a number with its measure word at `start`, 0 where there is none."""
    match = _NUMBER.match(text, start, end)
    if not match:
        return 0
    stop = match.end()
    if stop < end and text[stop] in _MEASURES:
        return stop + 1 - start
    return stop - start if stop - start > 1 else 0
