"""Content terms: the stems of a text without its stop words, so that "printed" matches "printing"."""

import re
from functools import lru_cache

from quipu.text.unicode import is_unspaced
from quipu.text.words import Words, index_terms, split_words

MIN_STEM = 3

_CYRILLIC = re.compile("[а-я]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH_STOP_WORDS = _words(
    """
    a about above after again against all also am an and any are as at be because been before being below between both
    but by can could did do does doing down during each either else few for from further had has have having he her
    here hers him his how i if in into is it its itself just may me might more most much many must my no nor not now of
    off on once only or other our out over own please same shall she should so some such than that the their them then
    there these they this those through to too under until up upon us very was we were what when where whether which
    while who whom whose why will with without would yes you your call called name named tell
    """
)
_RUSSIAN_STOP_WORDS = _words(
    """
    а без бы был была были было быть в вам вас весь во вот все всё всего всех вы где да для до его ее её ей ему если
    есть еще ещё же за зачем и из или им их к каждый как каков какова каковы какая какие каким каких какого какое какой
    какому каком какую кем ко когда кого который которая которое которые которого которой которую которых которым
    котором кому ком кто куда ли либо мне много мы на над назвать назови называется назывался наш не него нее неё нет
    ни них но ну о об обо однако он она они оно от откуда по под почему при про с сам свой своей своего свою себя
    сколько со так также такой там те тем то тогда того тоже той только том ту ты у уже чего чей чем чему что чтобы чье
    чьё чья чьи эта эти это этого этой этом этот
    """
)
# Chinese is indexed by pairs of characters. These are the stop words and the pairs that they make with neighbours.
_CHINESE_STOP_WORDS = _words(
    """
    的 了 是 在 和 与 有 被 于 这 那 几 谁 吗 呢 哪 何 什么 甚么 多少 哪里 哪儿 哪个 哪位 哪些 哪年 哪一 哪国 何时 何地
    何人 几个 几年 为什 怎么 怎样 如何 是谁 谁是 谁在 的是 是什 是在 在哪 了什 的什 了哪 是哪 时候 么时 么人 么地
    """
)

STOP_WORDS = _ENGLISH_STOP_WORDS | _RUSSIAN_STOP_WORDS | _CHINESE_STOP_WORDS


def _endings(text: str) -> tuple[str, ...]:
    return tuple(sorted(text.split(), key=lambda ending: (-len(ending), ending)))


_ENGLISH_ENDINGS = _endings("ings ing edly ed ies ied es s y e ly er ers or ors ion ions ment ments al")
_RUSSIAN_ENDINGS = _endings(
    "ами ями иями ого его ому ему ыми ими ая яя ое ее ые ие ия ию ии ый ий ой ей ую юю ов ев ам ям ах ях ом ем им ым "
    "ых их а я о е ы и у ю ь й ться тся лся лась лось лись ала али ало ал ила или ило ил ела ели ел ает ают яет яют ет "
    "ут ют ит ат ят ть"
)


def content_terms(words: Words) -> list[str]:
    """Return the stems of `words` in order, without stop words. Unspaced scripts give pairs of characters instead."""
    return [stem(term) for term in index_terms(words) if term not in STOP_WORDS and not _is_one_character(term)]


def content_terms_of(text: str) -> list[str]:
    """Return the content terms of `text` in order."""
    return content_terms(split_words(text))


@lru_cache(maxsize=65_536)
def stem(term: str) -> str:
    """Return `term` without its longest known English or Russian ending; at least `MIN_STEM` characters remain.

    The stem is rough on purpose: it only has to treat the forms of one word alike. Both sides of a comparison use it.
    """
    endings = _RUSSIAN_ENDINGS if _CYRILLIC.search(term) else _ENGLISH_ENDINGS
    for ending in endings:
        if len(term) - len(ending) >= MIN_STEM and term.endswith(ending):
            return term[: -len(ending)]
    return term


def _is_one_character(term: str) -> bool:
    """Return whether a term is a single character of an unspaced script, which is usually only half a word."""
    return len(term) == 1 and is_unspaced(term)
