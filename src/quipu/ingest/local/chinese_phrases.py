"""Chinese phrases: the names in the Chinese words between two common words."""

from collections.abc import Iterator, Sequence

from quipu.ingest.local.chinese_words import (
    COMPLETE_SUFFIXES,
    GENERIC_SUFFIXES,
    ORGANIZATION_SUFFIXES,
    TYPE_BY_LAST_CHARACTER,
    TYPE_BY_SUFFIX,
    ChineseWord,
    WordClass,
)
from quipu.ingest.local.lexicon import word_set, words
from quipu.ingest.local.occurrences import Cue, Occurrence

MAX_LENGTH = 24
MAX_BARE_LENGTH = 6
_LOCALISERS = frozenset("上下中内外前后里间总副分双大小新老段末初")
# Verbs of one character that stick to a name, because no common word separates them from it.
_LEADING_VERBS = frozenset("派用上下出叫找跟送迎赴赠写取教骑乘驻个年")
_TRAILING_VERBS = frozenset("用死懂走逃派买卖演见通住写读打杀带起说得问答笑人时说建造")
# Verbs of one character that separate a name from the words after it: 宜家|买|书架.
_SEPARATING_VERBS = frozenset("买卖吃喝踢骑逛赢输")
_SCOPES = words("世界 国际 全国 国家 人民 中央 联合 亚洲 欧洲 全球 民族 最高 大 小")
_DEFINITION_WORDS = words("是 指 即")
_DIVISION_SUFFIXES = frozenset("省市县州国朝代号")


def names_of_phrase(phrase: Sequence[ChineseWord], *, after_role: bool, following: str) -> list[Occurrence]:
    """Return the names in `phrase`.

    `after_role` means that an office or other role stands before the phrase. `following` is the common word after it,
    "" at the end of the run.
    """
    names: list[Occurrence] = []
    rest = list(phrase)
    while rest:
        stop = _suffix_end(rest)
        if stop is None:
            names += _bare_names(rest, after_role=after_role, following=following)
            break
        names += _suffixed_names(rest[:stop])
        rest = rest[stop:]
    return names


def _suffix_end(phrase: Sequence[ChineseWord]) -> int | None:
    """Return where the first name with a suffix ends: after the last organization suffix, else the first suffix."""
    suffixes = [
        i
        for i, word in enumerate(phrase)
        if word.word_class is WordClass.SUFFIX and (i > 0 or word.text in COMPLETE_SUFFIXES)
    ]
    if not suffixes:
        return None
    organizations = [i for i in suffixes if phrase[i].text in ORGANIZATION_SUFFIXES]
    stop = organizations[-1] if organizations else suffixes[0]
    while stop + 1 < len(phrase) and phrase[stop + 1].word_class is WordClass.SUFFIX:
        stop += 1
    return stop + 1


def _suffixed_names(phrase: Sequence[ChineseWord]) -> Iterator[Occurrence]:
    entity_type = TYPE_BY_SUFFIX[phrase[-1].text]
    verb = _verb_before_object(phrase)
    if verb is not None:
        yield from _bare_names(phrase[:verb], after_role=False, following="")
    body = list(phrase[verb + 1 :] if verb is not None else phrase)
    while len(body) > 1 and body[0].text in _LEADING_VERBS:
        del body[0]
    if (
        entity_type != "Organization"
        and body[0].word_class is WordClass.PLACE
        and any(w.word_class is WordClass.UNKNOWN for w in body[1:])
    ):
        yield _name(body[:1], Cue.CHINESE, "Location")
        del body[0]
    cut = _division(body) if entity_type == "Person" else None
    if cut is not None:
        yield from _unknown_names(body[:cut], after_role=False)
        del body[:cut]
    if _is_generic(body):
        return
    if body[-1].end - body[0].start <= MAX_LENGTH:
        yield _name(body, Cue.CHINESE, entity_type)


def _verb_before_object(phrase: Sequence[ChineseWord]) -> int | None:
    """Return where a verb separates a name from its object, as in 塞格德|建设|新能源汽车工厂; else None."""
    for position, word in enumerate(phrase):
        if (
            word.word_class is WordClass.VERB_IN_NAMES
            and position
            and phrase[position - 1].word_class in (WordClass.UNKNOWN, WordClass.PLACE)
        ):
            n_nouns = sum(1 for after in phrase[position + 1 : -1] if after.word_class is not WordClass.VERB_IN_NAMES)
            return position if n_nouns > 1 else None
    return None


def _is_generic(body: Sequence[ChineseWord]) -> bool:
    """Return whether the words before the suffix are too common for a name: 汽车工厂, 优化算法."""
    suffix = body[-1].text
    if suffix in COMPLETE_SUFFIXES:
        return False
    if len(body) == 1:
        return True
    are_common = all(word.word_class in (WordClass.NOUN_IN_NAMES, WordClass.VERB_IN_NAMES) for word in body[:-1])
    if len(body) == 2 and body[0].text in _LOCALISERS and body[0].text not in "大小":
        return True
    return are_common and suffix in GENERIC_SUFFIXES and body[0].text not in _SCOPES


def _bare_names(phrase: Sequence[ChineseWord], *, after_role: bool, following: str) -> Iterator[Occurrence]:
    """Yield the places of a phrase, and its unknown characters with the nouns after them."""
    if (
        following in _DEFINITION_WORDS
        and len(phrase) > 1
        and all(w.word_class in (WordClass.NOUN_IN_NAMES, WordClass.VERB_IN_NAMES) for w in phrase)
    ):
        yield _name(phrase, Cue.TERM, "Concept")
        return
    position = 0
    while position < len(phrase):
        if phrase[position].word_class is WordClass.PLACE and not _takes_one_more(phrase, position):
            yield _name(phrase[position : position + 1], Cue.CHINESE, "Location")
            position += 1
            continue
        stop = _unknown_end(phrase, position)
        if stop > position:
            yield from _unknown_names(phrase[position:stop], after_role=after_role)
        position = max(stop, position + 1)


def _takes_one_more(phrase: Sequence[ChineseWord], position: int) -> bool:
    """Return whether a single unknown character follows the place at `position`. It is part of the name."""
    after = phrase[position + 1 : position + 3]
    return (
        bool(after)
        and after[0].word_class is WordClass.UNKNOWN
        and (len(after) == 1 or after[1].word_class is not WordClass.UNKNOWN)
    )


def _unknown_end(phrase: Sequence[ChineseWord], start: int) -> int:
    """Return where the name at `start` ends: after unknown characters and nouns of one character, then one noun."""
    stop, n_unknown = start, 0
    while stop < len(phrase) and (
        phrase[stop].word_class is WordClass.UNKNOWN
        or (phrase[stop].word_class is WordClass.PLACE and stop == start)
        or (phrase[stop].word_class is WordClass.NOUN_IN_NAMES and len(phrase[stop].text) == 1)
        or (phrase[stop].word_class is WordClass.NUMBER and n_unknown > 0)
    ):
        n_unknown += phrase[stop].word_class is WordClass.UNKNOWN
        stop += 1
    if not n_unknown:
        return start
    if stop < len(phrase) and phrase[stop].word_class is WordClass.NOUN_IN_NAMES:
        stop += 1
    return stop


def _unknown_names(phrase: Sequence[ChineseWord], *, after_role: bool) -> Iterator[Occurrence]:
    body = _trim(phrase)
    text = "".join(word.text for word in body)
    if not 2 <= len(text) <= MAX_LENGTH:
        return
    cut = _division(body)
    if cut is not None:
        yield from _unknown_names(body[:cut], after_role=after_role)
        yield from _unknown_names(body[cut:], after_role=False)
        return
    cue, entity_type = _judge(text, body[-1], after_role=after_role)
    if cue is not None:
        yield _name(body, cue, entity_type)


def _division(body: Sequence[ChineseWord]) -> int | None:
    """Return where a name that ends in 省, 朝 or a similar suffix ends inside `body`, None if there is none."""
    return next((i + 1 for i, word in enumerate(body[:-2]) if i > 0 and word.text in _DIVISION_SUFFIXES), None)


def _trim(phrase: Sequence[ChineseWord]) -> list[ChineseWord]:
    """Return the phrase without verbs and localisers at its ends; at least two words remain."""
    stop = next((i for i, word in enumerate(phrase) if i > 1 and word.text in _SEPARATING_VERBS), len(phrase))
    body = list(phrase[:stop])
    while len(body) > 2 and body[0].text in _LEADING_VERBS:
        del body[0]
    while len(body) > 2 and (body[-1].text in _TRAILING_VERBS or body[-1].text in _LOCALISERS):
        del body[-1]
    return body


def _judge(text: str, last: ChineseWord, *, after_role: bool) -> tuple[Cue | None, str]:
    """Return the cue and the entity type of unknown characters; the cue is None if they are not a name."""
    if last.word_class is WordClass.NOUN_IN_NAMES and len(last.text) > 1:
        return Cue.CHINESE, ""
    if text[-1] in (TYPE_BY_LAST_CHARACTER if len(text) > 2 else _DIVISION_SUFFIXES):
        return Cue.CHINESE, TYPE_BY_LAST_CHARACTER[text[-1]]
    foreign = _sounds_foreign(text)
    if after_role and len(text) <= MAX_BARE_LENGTH:
        return Cue.CHINESE, "Person"
    if has_surname(text) and not foreign:
        return Cue.CHINESE, ""
    if text[-1] in TYPE_BY_LAST_CHARACTER:
        return Cue.CHINESE, TYPE_BY_LAST_CHARACTER[text[-1]]
    if foreign:
        return Cue.CHINESE, ""
    return (Cue.UNKNOWN_CHINESE, "") if len(text) <= MAX_BARE_LENGTH else (None, "")


def has_surname(text: str) -> bool:
    """Return whether two to four characters have the form of a Chinese person's name."""
    surnames = word_set("zh_surnames")
    return (text[:2] in surnames and 3 <= len(text) <= 4) or (text[0] in surnames and 2 <= len(text) <= 3)


def _sounds_foreign(text: str) -> bool:
    return len(text) > 2 and all(character in word_set("zh_transliteration") for character in text)


def _name(phrase: Sequence[ChineseWord], cue: Cue, entity_type: str) -> Occurrence:
    return Occurrence("".join(word.text for word in phrase), phrase[0].start, phrase[-1].end, cue, entity_type)
