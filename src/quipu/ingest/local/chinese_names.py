"""Chinese rules: the names that stand between common words, their entity types, and keywords."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from quipu.ingest.local.chinese_phrases import has_surname, names_of_phrase
from quipu.ingest.local.chinese_words import TYPE_BY_SUFFIX, ChineseWord, WordClass, class_of, segment
from quipu.ingest.local.lexicon import word_set, words
from quipu.ingest.local.occurrences import Cue, Occurrence
from quipu.text.unicode import HAN

# This many phrases that begin with the same characters make a name of them: 毕昇 in 毕昇用, 毕昇死.
MIN_SHARED = 3
MAX_RUN = 200
MAX_WORD = 6  # characters of a common word
LOOK_BEHIND = 40

_RUN = re.compile(f"[{HAN}][{HAN}0-9]{{1,{MAX_RUN}}}")
_KEYWORD_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
_MODEL_NUMBER = re.compile(r"\d{2,5}[A-Z]\w{0,3}(?![^\W_])", re.ASCII)
_KANA = re.compile(r"[\u3041-\u30ff]")
_HAN_CHARACTER = re.compile(f"[{HAN}]")
# Function characters that unknown characters begin or end with only where they are no name.
_FUNCTION_STARTS = frozenset("来可需当若先再做按各同每本该无未非被使让端者都时只更较此其之间内则仅另写读打挂起存")
_FUNCTION_ENDS = frozenset("中时上后为与名和等者数个来出到掉起成了过把将的地得时者会能前内间都也就则")
_DOTS = "·•・‧"
_CONJUNCTIONS = frozenset("和与及")
_JOINT_ORGANIZATIONS = words("委员会 研究所 研究院 研究中心 学院 总局 协会 学会 联合会 基金会 中心 博物馆")
# Common characters that can also be the second or middle character of a rare name: 郑和, 华为, 颐和园.
_NAME_CHARACTERS = frozenset("和为与于以时能会经有将")
_BEFORE_PLACE = re.compile(r"(?:在|到|往|抵达|位于|从|至|于|来自|到达|进入|经过|离开|回到|返回)$")
_AFTER_PERSON = re.compile(
    r"(?:[（(][^（）()]*[)）])?，?是[^，。；]{0,15}(?:[^国]家|僧人|诗人|学者|皇帝|将军|官员|商人|宦官|演员|歌手|教授)[，。；]"
)


_BEFORE_PERSON = re.compile(
    r"(?:是|叫|名叫|作者|作家|诗人|总统|主席|总理|教授|先生|妻子|丈夫|父亲|母亲|儿子|女儿|兄弟)$"
)
_PERSON_ACTS = re.compile(
    r"[等也又便就才只忙仍则乃却将正已曾还都]?(?:说|道|曰|问|笑|答|叫|喊|听|见|想|表示|认为|指出|告诉|出生|去世|逝世|担任|当选|任|"
    r"写|画|率|带领|主持|创办|创立|发明|发现|撰|著|先生|女士|老师|教授|博士|，(?:字|号|生于|男|女))"
)


def find_names(text: str) -> list[Occurrence]:
    """Return the names in the Chinese runs of `text`."""
    if 4 * len(_KANA.findall(text)) > len(_HAN_CHARACTER.findall(text)):
        return []  # Japanese
    dotted = _dotted_names(text)
    names = list(dotted)
    for start, end in _runs_between(text, dotted):
        names += _names_of_run(text, start, end)
    names = _cut_to_shared_names([_lengthen_person_name(name, text) for name in names])
    return [name for name in names if name.type or not _is_common_phrase(name, text)]


def _dotted_names(text: str) -> list[Occurrence]:
    """Return the transcribed foreign names with dots between their parts, as in 马可·波罗."""
    if not any(dot in text for dot in _DOTS):
        return []
    return [Occurrence(m.group(), m.start(), m.end(), Cue.CHINESE, "Person") for m in _dotted_name().finditer(text)]


@cache
def _dotted_name() -> re.Pattern[str]:
    characters = "".join(sorted(word_set("zh_transliteration")))
    return re.compile(f"[{characters}]{{1,6}}(?:[{_DOTS}][{characters}]{{1,8}})+")


def _runs_between(text: str, dotted: Sequence[Occurrence]) -> Iterator[tuple[int, int]]:
    """Yield the Chinese runs of `text` before, between and after dotted names."""
    start = 0
    for stop, following in [*((name.start, name.end) for name in dotted), (len(text), len(text))]:
        for match in _RUN.finditer(text, start, stop):
            yield match.span()
        start = following


def _names_of_run(text: str, start: int, end: int) -> Iterator[Occurrence]:
    run = _reclassify(segment(text, start, end))
    phrase: list[ChineseWord] = []
    after_role = False
    for position, word in enumerate(run):
        if (
            word.word_class < WordClass.NUMBER
            or _is_number_in_name(run, position)
            or _is_and_in_name(run, position, phrase)
        ):
            phrase.append(word)
            continue
        if phrase:
            yield from _with_model_numbers(text, names_of_phrase(phrase, after_role=after_role, following=word.text))
        phrase, after_role = [], word.word_class is WordClass.ROLE
    yield from _with_model_numbers(text, names_of_phrase(phrase, after_role=after_role, following=""))


def _reclassify(run: Sequence[ChineseWord]) -> list[ChineseWord]:
    """Decide the classes that depend on neighbours.

    A form of address that starts a phrase is a role. A common character may be part of a foreign or rare name.
    """
    result = list(run)
    for position, word in enumerate(result):
        if word.word_class is WordClass.SUFFIX and TYPE_BY_SUFFIX[word.text] == "Person":
            if position == 0 or result[position - 1].word_class is not WordClass.UNKNOWN:
                result[position] = word._replace(word_class=WordClass.ROLE)
        elif word.word_class is WordClass.COMMON and _is_transcription(result, position):
            result[position] = word._replace(word_class=WordClass.UNKNOWN)
        elif position and word.text in _NAME_CHARACTERS and _is_lone_unknown(result, position - 1):
            following = result[position + 1] if position + 1 < len(result) else None
            if following is None or following.word_class is WordClass.COMMON or _is_lone_unknown(result, position + 1):
                result[position] = word._replace(word_class=WordClass.UNKNOWN)
    return result


def _is_transcription(run: Sequence[ChineseWord], position: int) -> bool:
    """Return whether a common character transcribes a sound of a foreign name, as in 爱因斯坦."""
    before, after = run[max(position - 2, 0) : position], run[position + 1 : position + 2]
    if not before or run[position].text not in word_set("zh_transliteration"):
        return False
    if after and after[0].word_class is WordClass.UNKNOWN:
        return _is_unknown_sound(before[-1]) and _is_unknown_sound(after[0])
    return not after and len(before) > 1 and all(map(_is_unknown_sound, before))


def _is_unknown_sound(word: ChineseWord) -> bool:
    return word.word_class is WordClass.UNKNOWN and word.text in word_set("zh_transliteration")


def _is_lone_unknown(run: Sequence[ChineseWord], position: int) -> bool:
    """Return whether a character of no known word has only common words beside it."""
    around = (*run[max(position - 1, 0) : position], *run[position + 1 : position + 2])
    return run[position].word_class is WordClass.UNKNOWN and all(word.word_class is WordClass.COMMON for word in around)


def _is_number_in_name(run: Sequence[ChineseWord], position: int) -> bool:
    """Return whether a number belongs to the name around it, as in 神舟十六号, 地铁十号线 and 第一医院."""
    word = run[position]
    if word.word_class is not WordClass.NUMBER or not position or word.text[0].isdigit():
        return False
    if run[position - 1].word_class >= WordClass.NUMBER:
        return False
    following = run[position + 1 : position + 2]
    return word.text.endswith("号") or (
        word.text.startswith("第") and bool(following) and following[0].word_class is WordClass.SUFFIX
    )


def _is_and_in_name(run: Sequence[ChineseWord], position: int, phrase: Sequence[ChineseWord]) -> bool:
    """Return whether a conjunction is inside the name of one organization, as in 国家发展和改革委员会."""
    if run[position].text not in _CONJUNCTIONS or not phrase:
        return False
    if phrase[-1].word_class is WordClass.UNKNOWN and not (
        len(phrase) > 1 and phrase[-2].word_class is WordClass.UNKNOWN
    ):
        return position + 1 < len(run) and run[position + 1].word_class is WordClass.SUFFIX
    if phrase[-1].word_class not in (WordClass.NOUN_IN_NAMES, WordClass.VERB_IN_NAMES) or len(phrase[-1].text) < 2:
        return False
    for word in run[position + 1 : position + 6]:
        if word.text in _JOINT_ORGANIZATIONS:
            return True
        if word.word_class > WordClass.SUFFIX:
            return False
    return False


def _with_model_numbers(text: str, names: Sequence[Occurrence]) -> Iterator[Occurrence]:
    """Add the model number that follows a name without a space, as in 麒麟9000S."""
    for name in names:
        match = _MODEL_NUMBER.match(text, name.end)
        if match:
            yield Occurrence(text[name.start : match.end()], name.start, match.end(), name.cue, "Artifact")
        else:
            yield name


def _lengthen_person_name(name: Occurrence, text: str) -> Occurrence:
    """Return a person's name with its next character if longest match took that for a common word by mistake.

    In 崔守正在洛阳 longest match segments 正在, "just now", but 崔守正 and "in" is as good. Other places of the text
    decide: 崔守正画, where 正 begins no known word, and no 崔守 alone. If the next character begins a word everywhere,
    as in 李明接到 and 李明接着, the short name stays. Source: H. Feng et al., Accessor Variety Criteria for Chinese
    Word Extraction (2004).
    """
    longer = text[name.start : name.end + 1]
    is_person = name.type in ("", "Person") and 2 <= len(name.name) < len(longer) and has_surname(longer)
    if not is_person:
        return name
    word = _word_at(text, name.end)
    if word.word_class is not WordClass.COMMON or not _splits_into_two_words(word.text):
        return name
    if text.count(longer) < text.count(name.name):
        return name
    if all(len(_word_at(text, match.end()).text) > 1 for match in re.finditer(name.name, text)):
        return name
    return replace(name, name=longer, end=name.end + 1)


def _word_at(text: str, start: int) -> ChineseWord:
    return segment(text, start, min(start + MAX_WORD, len(text)))[0]


def _splits_into_two_words(word: str) -> bool:
    """Return whether a common word is an unknown character and another common word: 正在, 成就, 信奉."""
    return len(word) > 1 and class_of(word[0]) is None and class_of(word[1:]) is WordClass.COMMON


def _cut_to_shared_names(names: Sequence[Occurrence]) -> list[Occurrence]:
    """Cut weak names to a beginning that is a name itself, or that at least three names share."""
    counts = Counter(name.name for name in names)
    beginnings = Counter(name.name[:size] for name in names for size in (2, 3) if len(name.name) >= size)
    return [_cut_to_shared_name(name, counts, beginnings) for name in names]


def _cut_to_shared_name(name: Occurrence, counts: Counter[str], beginnings: Counter[str]) -> Occurrence:
    if name.type not in ("", "Person") or counts[name.name] > 1:
        return name
    for size in (3, 2):
        shared = name.name[:size]
        if size < len(name.name) and (counts[shared] or beginnings[shared] >= MIN_SHARED):
            return replace(name, name=shared, end=name.start + size)
    return name


def _is_common_phrase(name: Occurrence, text: str) -> bool:
    """Return whether a name without a type is a phrase of common words, or a piece that a common word reaches into.

    A weak name may also have one character more, as in 来查询 and 组消费.
    """
    if is_common(name.name):
        return True
    if not has_surname(name.name) and (_cuts_word(name.start, text) or _cuts_word(name.end, text)):
        return True
    if name.cue is not Cue.UNKNOWN_CHINESE:
        return False
    if name.name[0] in _FUNCTION_STARTS or name.name[-1] in _FUNCTION_ENDS:
        return True
    return len(name.name) > 2 and (is_common(name.name[1:]) or is_common(name.name[:-1]))


def is_common(name: str) -> bool:
    """Return whether a name divides into common words."""
    words_that_name_nothing = _words_that_name_nothing()
    reached = {0}
    for end in range(1, len(name) + 1):
        if any(name[start:end] in words_that_name_nothing for start in reached if end - start <= MAX_WORD):
            reached.add(end)
    return len(name) in reached


def _cuts_word(edge: int, text: str) -> bool:
    """Return whether a common word begins before the position `edge` and ends after it."""
    dictionary = word_set("zh_dictionary")
    return any(
        text[start : start + size] in dictionary for size in (2, 3, 4) for start in range(max(0, edge - size + 1), edge)
    )


@cache
def _words_that_name_nothing() -> frozenset[str]:
    return frozenset().union(
        *map(word_set, ("zh_dictionary", "zh_common", "zh_function", "zh_nouns_in_names", "zh_verbs_in_names"))
    )


def entity_type(text: str, name: str, start: int, end: int) -> str:
    """Return the entity type of the name at [start, end) by the words around it or its surname, else ""."""
    if _AFTER_PERSON.match(text, end):
        return "Person"
    before = text[max(0, start - LOOK_BEHIND) : start]
    if _BEFORE_PLACE.search(before):
        return "Location"
    is_person = has_surname(name) and (_PERSON_ACTS.match(text, end) or _BEFORE_PERSON.search(before))
    return "Person" if is_person else ""


def keywords(text: str) -> list[str]:
    """Return the verbs and common words of two or more characters in order."""
    return [
        word.text
        for run in _KEYWORD_RUN.finditer(text)
        for word in segment(text, run.start(), run.end())
        if word.word_class in (WordClass.COMMON, WordClass.VERB_IN_NAMES)
        and len(word.text) > 1
        and word.text not in word_set("zh_function")
    ]
