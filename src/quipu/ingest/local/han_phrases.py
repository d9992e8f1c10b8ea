"""Han phrases: the names in a stretch of Chinese between two common words."""

from collections.abc import Iterator, Sequence

from quipu.ingest.local.han_suffixes import BY_SUFFIX, COMPLETE, GENERIC, ORGANIZATION, SINGLE
from quipu.ingest.local.han_words import HanWord, Sort
from quipu.ingest.local.lexicon import word_set, words
from quipu.ingest.local.occurrence import Cue, Occurrence

MAX_LENGTH = 24
MAX_BARE = 6
_ORGANIZATIONS = frozenset(ORGANIZATION)
_LOCALISERS = frozenset("上下中内外前后里间总副分双大小新老段末初")
# Verbs of one character that cling to a name because no common word parts them from it.
_LEADING_VERBS = frozenset("派用上下出叫找跟送迎赴赠写取教骑乘驻个年")
_TRAILING_VERBS = frozenset("用死懂走逃派买卖演见通住写读打杀带起说得问答笑人时说建造")
# Verbs of one character that part a name from what follows: 宜家|买|书架.
_PARTING_VERBS = frozenset("买卖吃喝踢骑逛赢输")
_SCOPES = words("世界 国际 全国 国家 人民 中央 联合 亚洲 欧洲 全球 民族 最高 大 小")
_DEFINES = words("是 指 即")
_DIVISIONS = frozenset("省市县州国朝代号")


def names_of_phrase(phrase: Sequence[HanWord], *, after_role: bool, before: str) -> list[Occurrence]:
    """Return the names in `phrase`.

    `after_role` says that an office stands in front of it; `before` is the common word behind it, "" at the end.
    """
    names: list[Occurrence] = []
    rest = list(phrase)
    while rest:
        stop = _suffix_end(rest)
        if stop is None:
            names += _bare_names(rest, after_role=after_role, before=before)
            break
        names += _suffixed_names(rest[:stop])
        rest = rest[stop:]
    return names


def _suffix_end(phrase: Sequence[HanWord]) -> int | None:
    """Return where the first suffixed name ends: behind the last organisation suffix, else behind the first suffix."""
    found = [i for i, word in enumerate(phrase) if word.sort is Sort.SUFFIX and (i > 0 or word.text in COMPLETE)]
    if not found:
        return None
    bodies = [i for i in found if phrase[i].text in _ORGANIZATIONS]
    stop = bodies[-1] if bodies else found[0]
    while stop + 1 < len(phrase) and phrase[stop + 1].sort is Sort.SUFFIX:
        stop += 1
    return stop + 1


def _suffixed_names(phrase: Sequence[HanWord]) -> Iterator[Occurrence]:
    kind = BY_SUFFIX[phrase[-1].text]
    verb = _verb_before_object(phrase)
    if verb is not None:
        yield from _bare_names(phrase[:verb], after_role=False, before="")
    body = list(phrase[verb + 1 :] if verb is not None else phrase)
    while len(body) > 1 and body[0].text in _LEADING_VERBS:
        del body[0]
    if kind != "Organization" and body[0].sort is Sort.PLACE and any(w.sort is Sort.UNKNOWN for w in body[1:]):
        yield _name(body[:1], Cue.HAN, "Location")
        del body[0]
    cut = _division(body) if kind == "Person" else None
    if cut is not None:
        yield from _unknown_names(body[:cut], after_role=False)
        del body[:cut]
    if _is_generic(body):
        return
    if body[-1].end - body[0].start <= MAX_LENGTH:
        yield _name(body, Cue.HAN, kind)


def _verb_before_object(phrase: Sequence[HanWord]) -> int | None:
    """Return where a verb parts a name from its object, as in 塞格德|建设|新能源汽车工厂; None where it is one name."""
    for position, word in enumerate(phrase):
        if word.sort is Sort.LINK and position and phrase[position - 1].sort in (Sort.UNKNOWN, Sort.PLACE):
            n_nouns = sum(1 for after in phrase[position + 1 : -1] if after.sort is not Sort.LINK)
            return position if n_nouns > 1 else None
    return None


def _is_generic(body: Sequence[HanWord]) -> bool:
    """Say whether the words before the suffix make no name of it: 汽车工厂, 优化算法."""
    suffix = body[-1].text
    if suffix in COMPLETE:
        return False
    if len(body) == 1:
        return True
    known = all(word.sort in (Sort.SOFT, Sort.LINK) for word in body[:-1])
    if len(body) == 2 and body[0].text in _LOCALISERS and body[0].text not in "大小":
        return True
    return known and suffix in GENERIC and body[0].text not in _SCOPES


def _bare_names(phrase: Sequence[HanWord], *, after_role: bool, before: str) -> Iterator[Occurrence]:
    """Yield the places of a phrase, and its unknown characters with the nouns behind them."""
    if before in _DEFINES and len(phrase) > 1 and all(w.sort in (Sort.SOFT, Sort.LINK) for w in phrase):
        yield _name(phrase, Cue.TERM, "Concept")
        return
    position = 0
    while position < len(phrase):
        if phrase[position].sort is Sort.PLACE and not _takes_one_more(phrase, position):
            yield _name(phrase[position : position + 1], Cue.HAN, "Location")
            position += 1
            continue
        stop = _unknown_end(phrase, position)
        if stop > position:
            yield from _unknown_names(phrase[position:stop], after_role=after_role)
        position = max(stop, position + 1)


def _takes_one_more(phrase: Sequence[HanWord], position: int) -> bool:
    """Say whether one unknown character alone follows the place at `position`: it is part of the name."""
    after = phrase[position + 1 : position + 3]
    return bool(after) and after[0].sort is Sort.UNKNOWN and (len(after) == 1 or after[1].sort is not Sort.UNKNOWN)


def _unknown_end(phrase: Sequence[HanWord], start: int) -> int:
    """Return where the name that starts at `start` ends: unknown and single soft characters, then one soft noun."""
    stop, n_unknown = start, 0
    while stop < len(phrase) and (
        phrase[stop].sort is Sort.UNKNOWN
        or (phrase[stop].sort is Sort.PLACE and stop == start)
        or (phrase[stop].sort is Sort.SOFT and len(phrase[stop].text) == 1)
        or (phrase[stop].sort is Sort.NUMBER and n_unknown > 0)
    ):
        n_unknown += phrase[stop].sort is Sort.UNKNOWN
        stop += 1
    if not n_unknown:
        return start
    if stop < len(phrase) and phrase[stop].sort is Sort.SOFT:
        stop += 1
    return stop


def _unknown_names(phrase: Sequence[HanWord], *, after_role: bool) -> Iterator[Occurrence]:
    body = _trim(phrase)
    text = "".join(word.text for word in body)
    if not 2 <= len(text) <= MAX_LENGTH:
        return
    cut = _division(body)
    if cut is not None:
        yield from _unknown_names(body[:cut], after_role=after_role)
        yield from _unknown_names(body[cut:], after_role=False)
        return
    cue, kind = _judge(text, body[-1], after_role=after_role)
    if cue is not None:
        yield _name(body, cue, kind)


def _division(body: Sequence[HanWord]) -> int | None:
    """Return where a name that ends in 省, 朝 or 号 inside `body` ends; None where there is none."""
    return next((i + 1 for i, word in enumerate(body[:-2]) if i > 0 and word.text in _DIVISIONS), None)


def _trim(phrase: Sequence[HanWord]) -> list[HanWord]:
    """Cut verbs and words of place that cling to either end, while two characters remain."""
    stop = next((i for i, word in enumerate(phrase) if i > 1 and word.text in _PARTING_VERBS), len(phrase))
    body = list(phrase[:stop])
    while len(body) > 2 and body[0].text in _LEADING_VERBS:
        del body[0]
    while len(body) > 2 and (body[-1].text in _TRAILING_VERBS or body[-1].text in _LOCALISERS):
        del body[-1]
    return body


def _judge(text: str, last: HanWord, *, after_role: bool) -> tuple[Cue | None, str]:
    """Return how strongly unknown characters look like a name, and which type of name."""
    if last.sort is Sort.SOFT and len(last.text) > 1:
        return Cue.HAN, ""
    if text[-1] in (SINGLE if len(text) > 2 else _DIVISIONS):
        return Cue.HAN, SINGLE[text[-1]]
    foreign = _sounds_foreign(text)
    if after_role and len(text) <= MAX_BARE:
        return Cue.HAN, "Person"
    if has_surname(text) and not foreign:
        return Cue.HAN, ""
    if text[-1] in SINGLE:
        return Cue.HAN, SINGLE[text[-1]]
    if foreign:
        return Cue.HAN, ""
    return (Cue.HAN_BARE, "") if len(text) <= MAX_BARE else (None, "")


def has_surname(text: str) -> bool:
    """Say whether two to four characters are built like a Chinese person's name."""
    surnames = word_set("zh_names")
    return (text[:2] in surnames and 3 <= len(text) <= 4) or (text[0] in surnames and 2 <= len(text) <= 3)


def _sounds_foreign(text: str) -> bool:
    return len(text) > 2 and all(character in word_set("zh_sounds") for character in text)


def _name(phrase: Sequence[HanWord], cue: Cue, kind: str) -> Occurrence:
    return Occurrence("".join(word.text for word in phrase), phrase[0].start, phrase[-1].end, cue, kind)
