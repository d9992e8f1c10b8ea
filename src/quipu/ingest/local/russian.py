"""Russian: names that go on in lower case ("Ливонской войны", "улица Баумана") and where cases part two names."""

import re
from collections.abc import Sequence
from functools import cache

from quipu.ingest.local.inflection import stem
from quipu.ingest.local.lexicon import opening_words, word_set, words
from quipu.ingest.local.tokens import Token

MAX_GENITIVES = 3

_LOWER_WORD = re.compile(r"[ \u00a0]([а-яё][а-яё-]+)(?![\w-])")
_CAPITAL_WORD = re.compile(r"[ \u00a0]([А-ЯЁ][а-яё]+(?:[-–][А-ЯЁ]?[а-яё]+)?)(?![\w-])")
_WORD_BEFORE = re.compile(r"(?:^|(?<=[\s«(]))([а-яё]+) (при|на|под)? ?$")
# Adjectives by ending, in groups that agree with one another, with the endings a noun may have beside them.
_AGREEMENTS = (
    (("ый", "ий", "ой"), "[^аеёиоуыэюя]"),
    (("ая", "яя"), "а|я|ь"),
    (("ое", "ее"), "о|е|ё|мя"),
    (("ые", "ие"), "ы|и|а|я"),
    (("ого", "его"), "а|я|и"),
    (("ому", "ему"), "у|ю|и"),
    (("ым", "им"), "ом|ем|ём"),
    (("ом", "ем"), "е|и|у|ю"),
    (("ую", "юю"), "у|ю|ь"),
    (("ых", "их"), "ов|ев|ей|ах|ях|[^аеёиоуыэюя]"),
    (("ыми", "ими"), "ами|ями"),
    (("ой", "ей"), "ы|и|е|ой|ей|ью"),
)
_GROUPS = {
    ending: tuple(group for group, _ in _AGREEMENTS if ending in group) for group, _ in _AGREEMENTS for ending in group
}
_NOUNS = {
    ending: re.compile(f"[а-яё-]+(?:{'|'.join(nouns for group, nouns in _AGREEMENTS if ending in group)})")
    for ending in _GROUPS
}
_ADJECTIVE = re.compile(rf"[А-ЯЁа-яё][а-яё]+(?:-[А-ЯЁ]?[а-яё]+)?({'|'.join(sorted(_GROUPS, key=len, reverse=True))})")
# Those that no noun ends in.
_PLAIN_ADJECTIVE = re.compile(r"[а-яё]{2,}(?:ый|ий|ая|яя|ое|ее|ые|ие|ого|его|ому|ему|ым|им|ую|юю|ых|их|ыми|ими)")
_RELATIONAL = re.compile(r"[А-ЯЁ][а-яё-]+ск(?:ий|ая|ое|ие|ого|ой|ому|им|их|ую)")
_VERB = re.compile(
    r"(?!(?:[а-яё]*(?:канал|вокзал|журнал|зал|вал|квартал|капитал|металл|генерал|адмирал|сигнал|портал|материал|медал|"
    r"магистрал|предел|раздел|отдел|филиал|мемориал|трибунал|арсенал|персонал|карнавал|фестивал|скал|школ))[а-яё]{0,2}$)"
    r"[а-яё]+(?:[аияеуыё]л[аои]?|шёл|ш(?:ла|ли)|(?:л|ла|ло|ли)сь|лся|[аеи]ть|[иеуюая]т|тся)"
)
_GENITIVE = re.compile(
    r"[а-яё]{2,}(?:ого|его|ой|ей|ых|их|ов|ев|ий|ы|и|а|я)|наук|дел|мер|прав|войск|дорог|стран|сил|искусств"
)
_GENITIVE_NAME = re.compile(r"[А-ЯЁ][а-яё-]+(?:ого|его|ой|ы|и|а|я)")
# Nouns that open the name of a body or idea and draw the genitives behind them into it.
_OPENING_NOUN = re.compile(
    r"(?:министерств|институт|организаци|союз|академи|комитет|комисси|департамент|управлени|служб|агентств|палат|совет|"
    r"университет|факультет|фонд|теори|обществ|ассоциаци|федераци|суд|чемпионат|банк|центр|парти|музе)[а-яё]{0,3}",
    re.IGNORECASE,
)
# Lower-case nouns that belong to the capitalised word behind them.
_LEADING_NOUN = re.compile(
    r"(?:улиц|площад|проспект|бульвар|набережн|собор|храм|церк|монастыр|теорем|гипотез|туманност|уравнени|алгоритм|"
    r"излучени|эффект)[а-яё]{0,3}"
)
_BATTLE = re.compile(r"(?:битв|сражени|осад|взяти)[а-яё]{0,3}")
_NAME_OPENERS = words(
    """
    банк группа лаборатория алгоритм теорема верховный большой большая большие красная красный великий великое северный
    северная южный новый новая белый чёрный центральный центральная российские российский российская
    """
)
_CONSONANT = re.compile(r"[а-яё-]*[бвгджзйклмнпрстфхцчшщ]")
_NOMINATIVE = re.compile(
    r"(?![а-яё-]+(?:[оеыи][мй]|[ыи]х|[оеё]в|[ая][мх])$)[а-яё-]*[бвгджзйклмнпрстфхцчшщ]|[а-яё-]+(?:[иы]й|ая|ое)"
)
_LOCATIVE = re.compile(r"[а-яё-]+[еиуо]")
_GENITIVE_MASCULINE = re.compile(r"[а-яё-]+[ая]")
_INSTRUMENTAL = re.compile(r"[а-яё-]+(?:[оеы]м|[ое]й)")
_GENITIVE_PLACE = re.compile(r"[а-яё-]+[иыая]")


def extend_phrase(text: str, start: int, end: int, *, is_initial: bool) -> tuple[int, int]:
    """Return [start, end) widened by the lower-case words that belong to a Cyrillic name; other names as they are.

    `is_initial` says that the name begins a sentence.
    """
    if not is_cyrillic(text[start].casefold()):
        return start, end
    if not is_initial or _opens_name(text[start:end]):
        end = _over_agreeing_noun(text, start, end)
    end = _over_genitives(text, start, end)
    return _over_leading_noun(text, start), end


def split_cases(tokens: Sequence[Token], *, before: str, is_initial: bool) -> list[list[Token]]:
    """Split a run of Cyrillic words where one name ends: "Приморья | Олег Кожемяко", "в Киеве | Софийский собор".

    A common noun that opens a sentence is dropped. `before` is the word in front of the run.
    """
    if len(tokens) < 2 or not is_cyrillic(tokens[0].form):
        return [list(tokens)] if tokens else []
    rest = list(tokens)
    if is_initial and len([token for token in rest if token.kind == "word"]) > 1 and is_plain_noun(rest[0].form):
        del rest[0]
    position = _case_break(rest, before)
    if position:
        return [rest[:position], rest[position:]]
    return [rest] if rest else []


def _case_break(tokens: Sequence[Token], before: str) -> int:
    """Return where a second name begins among `tokens`, 0 where there is only one."""
    if len(tokens) < 2 or not all(is_cyrillic(token.form) for token in tokens[:2]):
        return 0
    names = word_set("given_names")
    for position in range(1, len(tokens) - 1):
        if tokens[position].form in names and tokens[position - 1].form not in names:
            return position
    first, second = tokens[0].form, tokens[1].form
    if _OPENING_NOUN.fullmatch(first):
        return 0
    if tokens[0].kind != "word" or tokens[1].kind != "word":
        return 0
    if _GENITIVE_MASCULINE.fullmatch(first) and first not in names and _INSTRUMENTAL.fullmatch(second):
        return 1
    if not _NOMINATIVE.fullmatch(second):
        return 0
    if before in ("в", "во", "на", "о", "при", "под") and _LOCATIVE.fullmatch(first):
        return 1
    return int(
        len(tokens) > 2 and bool(_GENITIVE_PLACE.fullmatch(first)) and bool(_CONSONANT.fullmatch(tokens[2].form))
    )


def is_cyrillic(form: str) -> bool:
    """Say whether a casefolded word begins with a Russian letter."""
    return "а" <= form[:1] <= "я" or form[:1] == "ё"


def is_verb(form: str) -> bool:
    """Say whether a casefolded word has the ending of a Russian verb, and is no given name."""
    return is_cyrillic(form) and _VERB.fullmatch(form) is not None and form not in word_set("given_names")


@cache
def _common_stems() -> frozenset[str]:
    return frozenset(map(stem, word_set("ru_common"))) - frozenset(map(stem, _NAME_OPENERS))


def is_plain_noun(form: str) -> bool:
    """Say whether a word is a common Russian noun or adjective in any case form, and opens no names."""
    return (
        is_cyrillic(form)
        and stem(form) in _common_stems()
        and form not in word_set("given_names")
        and not _OPENING_NOUN.fullmatch(form)
    )


def _over_agreeing_noun(text: str, start: int, end: int) -> int:
    """Go on from adjectives to their noun, over one more in lower case: "Большой адронный коллайдер"."""
    ending = _shared_ending(text[start:end].split())
    following = _LOWER_WORD.match(text, end) if ending else None
    if following is None:
        return end
    second = _ADJECTIVE.fullmatch(following.group(1))
    if second and _agree(ending, second.group(1)):
        after = _LOWER_WORD.match(text, following.end())
        if after and _is_noun(after.group(1), ending):
            return after.end()
    if not _is_noun(following.group(1), ending):
        return end
    capital = _CAPITAL_WORD.match(text, following.end())
    third = _ADJECTIVE.fullmatch(capital.group(1)) if capital else None
    return capital.end() if capital and third and _agree(ending, third.group(1)) else following.end()


def _shared_ending(parts: Sequence[str]) -> str:
    """Return the ending of the last of some adjectives that agree, "" where they are none or no name's beginning."""
    endings = [match.group(1) if (match := _ADJECTIVE.fullmatch(part)) else "" for part in parts]
    if not all(endings) or parts[0].casefold() in word_set("given_names"):
        return ""
    return endings[-1] if all(_agree(endings[-1], ending) for ending in endings) else ""


def is_common_phrase(text: str, start: int, end: int) -> bool:
    """Say whether a word is a Russian adjective with its noun behind it, as in "Торжественная закладка"."""
    match = _ADJECTIVE.fullmatch(text, start, end)
    following = _LOWER_WORD.match(text, end)
    return match is not None and following is not None and _is_noun(following.group(1), match.group(1))


def _opens_name(name: str) -> bool:
    """Say whether a name that begins a sentence is more than a common adjective: "Куликовская", "Большой"."""
    word = name.split(None, 1)[0]
    form = word.casefold()
    return form in _NAME_OPENERS or (bool(_RELATIONAL.fullmatch(word)) and form not in word_set("ru_common"))


def _agree(first: str, second: str) -> bool:
    return any(second in group for group in _GROUPS[first])


def _is_noun(word: str, ending: str) -> bool:
    return (
        bool(_NOUNS[ending].fullmatch(word))
        and not _VERB.fullmatch(word)
        and not _PLAIN_ADJECTIVE.fullmatch(word)
        and word not in opening_words()
    )


def _over_genitives(text: str, start: int, end: int) -> int:
    """Follow "Министерство", "Теория" and the like through the genitives behind them, also a capitalised one."""
    if not _OPENING_NOUN.fullmatch(text[start:end].rsplit(None, 1)[-1]):
        return end
    for _ in range(MAX_GENITIVES):
        following = _LOWER_WORD.match(text, end)
        if not following or not _is_genitive(following.group(1)):
            break
        end = following.end()
    capital = _CAPITAL_WORD.match(text, end)
    if capital and _GENITIVE_NAME.fullmatch(capital.group(1)):
        return capital.end()
    return end


def _is_genitive(word: str) -> bool:
    return bool(_GENITIVE.fullmatch(word)) and not _VERB.fullmatch(word) and word not in opening_words()


def _over_leading_noun(text: str, start: int) -> int:
    match = _WORD_BEFORE.search(text, max(0, start - 24), start)
    if not match:
        return start
    pattern = _BATTLE if match.group(2) else _LEADING_NOUN
    return match.start(1) if pattern.fullmatch(match.group(1)) else start
