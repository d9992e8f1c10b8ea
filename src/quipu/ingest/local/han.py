"""Han: names in Chinese text without a segmenter, from what stands between common words."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from quipu.ingest.local.han_phrases import has_surname, names_of_phrase
from quipu.ingest.local.han_suffixes import BY_SUFFIX
from quipu.ingest.local.han_words import HanWord, Sort, cut_words, sort_of
from quipu.ingest.local.lexicon import word_set, words
from quipu.ingest.local.occurrence import Cue, Occurrence

# A name that begins several stretches is likelier than any one of them: 毕昇 in 毕昇用, 毕昇死.
MIN_SHARED = 3
MAX_RUN = 200
MAX_WORD = 6  # characters of a common word

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_RUN = re.compile(f"[{_HAN}][{_HAN}0-9]{{1,{MAX_RUN}}}")
_MODEL = re.compile(r"\d{2,5}[A-Z]\w{0,3}(?![^\W_])", re.ASCII)
_DOTS = "·•・‧"
_CONJUNCTIONS = frozenset("和与及")
_JOINT_BODIES = words("委员会 研究所 研究院 研究中心 学院 总局 协会 学会 联合会 基金会 中心 博物馆")
# Common characters that also end or join rare names of one character each side: 郑和, 华为, 颐和园.
_BINDERS = frozenset("和为与于以时能会经有将")


def find_han(text: str) -> list[Occurrence]:
    """Return the names in the Chinese runs of `text`."""
    if not _RUN.search(text):
        return []
    dotted = _dotted_names(text)
    names = list(dotted)
    for start, end in _runs_between(text, dotted):
        names += _names_of_run(text, start, end)
    return _cut_to_shared_names([_lengthened(name, text) for name in names])


def _dotted_names(text: str) -> list[Occurrence]:
    if not any(dot in text for dot in _DOTS):
        return []
    return [Occurrence(m.group(), m.start(), m.end(), Cue.HAN, "Person") for m in _dotted_pattern().finditer(text)]


@cache
def _dotted_pattern() -> re.Pattern[str]:
    sounds = "".join(sorted(word_set("zh_sounds")))
    return re.compile(f"[{sounds}]{{1,6}}(?:[{_DOTS}][{sounds}]{{1,8}})+")


def _runs_between(text: str, dotted: Sequence[Occurrence]) -> Iterator[tuple[int, int]]:
    """Yield the Chinese runs of `text` that lie before, between and behind dotted names."""
    start = 0
    for stop, following in [*((name.start, name.end) for name in dotted), (len(text), len(text))]:
        for match in _RUN.finditer(text, start, stop):
            yield match.span()
        start = following


def _names_of_run(text: str, start: int, end: int) -> Iterator[Occurrence]:
    cut = _settle(cut_words(text, start, end))
    phrase: list[HanWord] = []
    after_role = False
    for position, word in enumerate(cut):
        if word.sort < Sort.NUMBER or _continues(cut, position) or _bridges(cut, position, phrase):
            phrase.append(word)
            continue
        if phrase:
            yield from _with_models(text, names_of_phrase(phrase, after_role=after_role, before=word.text))
        phrase, after_role = [], word.sort is Sort.ROLE
    yield from _with_models(text, names_of_phrase(phrase, after_role=after_role, before=""))


def _with_models(text: str, names: Sequence[Occurrence]) -> Iterator[Occurrence]:
    """Add the model number that follows a name without a space, as in 麒麟9000S."""
    for name in names:
        match = _MODEL.match(text, name.end)
        if match:
            yield Occurrence(text[name.start : match.end()], name.start, match.end(), name.cue, "Artifact")
        else:
            yield name


def _continues(run: Sequence[HanWord], position: int) -> bool:
    """Say whether a number belongs to the name around it, as in 神舟十六号, 地铁十号线 and 第一医院."""
    word = run[position]
    if word.sort is not Sort.NUMBER or not position or run[position - 1].sort >= Sort.NUMBER or word.text[0].isdigit():
        return False
    following = run[position + 1 : position + 2]
    return word.text.endswith("号") or (
        word.text.startswith("第") and bool(following) and following[0].sort is Sort.SUFFIX
    )


def _bridges(run: Sequence[HanWord], position: int, phrase: Sequence[HanWord]) -> bool:
    """Say whether "and" stands inside the name of one organisation, as in 国家发展和改革委员会."""
    if run[position].text not in _CONJUNCTIONS or not phrase:
        return False
    if phrase[-1].sort is Sort.UNKNOWN and not (len(phrase) > 1 and phrase[-2].sort is Sort.UNKNOWN):
        return position + 1 < len(run) and run[position + 1].sort is Sort.SUFFIX
    if phrase[-1].sort not in (Sort.SOFT, Sort.LINK) or len(phrase[-1].text) < 2:
        return False
    for word in run[position + 1 : position + 6]:
        if word.text in _JOINT_BODIES:
            return True
        if word.sort > Sort.SUFFIX:
            return False
    return False


def _settle(run: Sequence[HanWord]) -> list[HanWord]:
    """Decide what depends on the neighbours: forms of address that begin a phrase, and lone characters with binders."""
    settled = list(run)
    for position, word in enumerate(settled):
        if word.sort is Sort.SUFFIX and BY_SUFFIX[word.text] == "Person":
            if position == 0 or settled[position - 1].sort is not Sort.UNKNOWN:
                settled[position] = word._replace(sort=Sort.ROLE)
        elif word.sort is Sort.HARD and _spells(settled, position):
            settled[position] = word._replace(sort=Sort.UNKNOWN)
        elif position and word.text in _BINDERS and _is_lone(settled, position - 1):
            following = settled[position + 1] if position + 1 < len(settled) else None
            if following is None or following.sort is Sort.HARD or _is_lone(settled, position + 1):
                settled[position] = word._replace(sort=Sort.UNKNOWN)
    return settled


def _spells(run: Sequence[HanWord], position: int) -> bool:
    """Say whether a common character stands for a sound of a foreign name, as in 爱因斯坦."""
    before, after = run[max(position - 2, 0) : position], run[position + 1 : position + 2]
    if not before or run[position].text not in word_set("zh_sounds"):
        return False
    if after and after[0].sort is Sort.UNKNOWN:
        return _is_sound(before[-1]) and _is_sound(after[0])
    return not after and len(before) > 1 and all(map(_is_sound, before))


def _is_sound(word: HanWord) -> bool:
    return word.sort is Sort.UNKNOWN and word.text in word_set("zh_sounds")


def _is_lone(run: Sequence[HanWord], position: int) -> bool:
    around = (*run[max(position - 1, 0) : position], *run[position + 1 : position + 2])
    return run[position].sort is Sort.UNKNOWN and all(word.sort is Sort.HARD for word in around)


def _lengthened(name: Occurrence, text: str) -> Occurrence:
    """Return a person's name with the character it never stands without, where a common word has taken that.

    In 崔守正在洛阳 longest match reads 正在, "just now"; 崔守正 and "in" is as good. What else the text has decides, as
    崔守正画, where 正 begins no known word, and no 崔守 alone. Where one does everywhere, as in 李明接到 and 李明接着,
    the name is the short one. Source: H. Feng et al., Accessor Variety Criteria for Chinese Word Extraction (2004).
    """
    longer = text[name.start : name.end + 1]
    is_person = name.kind in ("", "Person") and 2 <= len(name.name) < len(longer) and has_surname(longer)
    if not is_person:
        return name
    word = _word_at(text, name.end)
    if word.sort is not Sort.HARD or not _is_two_words(word.text) or text.count(longer) < text.count(name.name):
        return name
    if all(len(_word_at(text, match.end()).text) > 1 for match in re.finditer(name.name, text)):
        return name
    return replace(name, name=longer, end=name.end + 1)


def _word_at(text: str, start: int) -> HanWord:
    return cut_words(text, start, min(start + MAX_WORD, len(text)))[0]


def _is_two_words(word: str) -> bool:
    """Say whether a common word without its first character, which alone is none, is another: 正在, 成就, 信奉."""
    return len(word) > 1 and sort_of(word[0]) is None and sort_of(word[1:]) is Sort.HARD


def _cut_to_shared_names(names: Sequence[Occurrence]) -> list[Occurrence]:
    """Cut weak names to the beginning they share with others: one that stands alone, or begins three of them."""
    counts = Counter(name.name for name in names)
    beginnings = Counter(name.name[:size] for name in names for size in (2, 3) if len(name.name) >= size)
    return [_cut(name, counts, beginnings) for name in names]


def _cut(name: Occurrence, counts: Counter[str], beginnings: Counter[str]) -> Occurrence:
    if name.kind not in ("", "Person") or counts[name.name] > 1:
        return name
    for size in (3, 2):
        shared = name.name[:size]
        if size < len(name.name) and (counts[shared] or beginnings[shared] >= MIN_SHARED):
            return replace(name, name=shared, end=name.start + size)
    return name
