"""Russian rules: case forms, names that continue in lower case ("Ливонской войны"), and entity types."""

import re
from collections.abc import Sequence
from functools import cache

from quipu.ingest.local.capitalised_runs import RunToken
from quipu.ingest.local.lexicon import is_common_word as _is_in_common_words
from quipu.ingest.local.lexicon import is_cyrillic, is_sentence_opener, word_set, words

MAX_GENITIVES = 3
MIN_STEM = 2

# The endings of names in the singular, and of adjectives in singular and plural, longest first.
_CASE_ENDING = re.compile(
    r"(?:ого|его|ому|ему|ыми|ими|ией|ый|ий|ой|ая|яя|ое|ее|ые|ие|ым|им|ом|ем|ём|ую|юю|ых|их|ей|ью|ия|ии|ию|а|я|о|е|ы|и|у|ю|ь|й)$"
)
_OBLIQUE_ENDING = re.compile(r"(?:ого|его|ому|ему|ыми|ими|ией|ым|им|ом|ем|ём|ую|юю|ых|их|ей|ью|ии|ию|е|ы|и|у|ю)$")
_VOWEL_ENDING = re.compile(r"[аяо]$")

_LOWER_WORD = re.compile(r"[ \u00a0]([а-яё][а-яё-]+)(?![\w-])")
_CAPITAL_WORD = re.compile(r"[ \u00a0]([А-ЯЁ][а-яё]+(?:[-–][А-ЯЁ]?[а-яё]+)?)(?![\w-])")
_WORD_BEFORE = re.compile(r"(?:^|(?<=[\s«(]))([а-яё]+) (при|на|под)? ?$")
# Groups of adjective endings that agree with one another, and the endings of a noun that may stand beside them.
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
_AGREEING_GROUPS = {
    ending: tuple(group for group, _ in _AGREEMENTS if ending in group) for group, _ in _AGREEMENTS for ending in group
}
_NOUN_BY_ENDING = {
    ending: re.compile(f"[а-яё-]+(?:{'|'.join(nouns for group, nouns in _AGREEMENTS if ending in group)})")
    for ending in _AGREEING_GROUPS
}
_ADJECTIVE = re.compile(
    rf"[А-ЯЁа-яё][а-яё]+(?:-[А-ЯЁ]?[а-яё]+)?({'|'.join(sorted(_AGREEING_GROUPS, key=len, reverse=True))})"
)
# Adjectives with an ending that no noun has.
_CLEAR_ADJECTIVE = re.compile(r"[а-яё]{2,}(?:ый|ий|ая|яя|ое|ее|ые|ие|ого|его|ому|ему|ым|им|ую|юю|ых|их|ыми|ими)")
_RELATIONAL_ADJECTIVE = re.compile(r"[А-ЯЁ][а-яё-]+ск(?:ий|ая|ое|ие|ого|ой|ому|им|их|ую)")
_VERB = re.compile(
    r"(?!(?:(?:кино|спорт|вок)?зал|(?:об|пере|про|за|при|под|раз|интер|карна|сено|колен)?вал|овал|скал|"
    r"[а-яё]*(?:канал|журнал|квартал|капитал|металл|генерал|адмирал|сигнал|портал|материал|медал|"
    r"магистрал|предел|раздел|отдел|филиал|мемориал|трибунал|арсенал|персонал|фестивал|школ))[а-яё]{0,2}$)"
    r"[а-яё]+(?:[аияеуыё]л[аои]?|шёл|ш(?:ла|ли)|(?:л|ла|ло|ли)сь|лся|[аеи]ть|[иеуюая]т|тся)"
)
_GENITIVE = re.compile(
    r"[а-яё]{2,}(?:ого|его|ой|ей|ых|их|ов|ев|ий|ы|и|а|я)|наук|дел|мер|прав|войск|дорог|стран|сил|искусств"
)
_GENITIVE_NAME = re.compile(r"[А-ЯЁ][а-яё-]+(?:ого|его|ой|ы|и|а|я)")
# Nouns that start the name of an organization or idea. The genitives after them belong to the name.
_HEAD_NOUN = re.compile(
    r"(?:министерств|институт|организаци|союз|академи|комитет|комисси|департамент|управлени|служб|агентств|палат|совет|"
    r"университет|факультет|фонд|теори|обществ|ассоциаци|федераци|суд|чемпионат|банк|центр|парти|музе)[а-яё]{0,3}",
    re.IGNORECASE,
)
# Lower-case nouns that belong to the capitalised word after them.
_LEADING_NOUN = re.compile(
    r"(?:улиц|площад|проспект|бульвар|набережн|собор|храм|церк|монастыр|теорем|гипотез|туманност|уравнени|алгоритм|"
    r"излучени|эффект)[а-яё]{0,3}"
)
_BATTLE = re.compile(r"(?:битв|сражени|осад|взяти)[а-яё]{0,3}")
_NAME_STARTS = words(
    """
    банк группа лаборатория алгоритм теорема верховный большой большая большие красная красный великий великое северный
    северная южный новый новая белый чёрный центральный центральная российские российский российская
    """
)
_CONSONANT_END = re.compile(r"[а-яё-]*[бвгджзйклмнпрстфхцчшщ]")
_NOMINATIVE = re.compile(
    r"(?![а-яё-]+(?:[оеыи][мй]|[ыи]х|[оеё]в|[ая][мх])$)[а-яё-]*[бвгджзйклмнпрстфхцчшщ]|[а-яё-]+(?:[иы]й|ая|ое)"
)
_LOCATIVE = re.compile(r"[а-яё-]+[еиуо]")
_GENITIVE_MASCULINE = re.compile(r"[а-яё-]+[ая]")
_INSTRUMENTAL = re.compile(r"[а-яё-]+(?:[оеы]м|[ое]й)")
_GENITIVE_PLACE = re.compile(r"[а-яё-]+[иыая]")

# The first or last noun of a name shows its entity type. These are stems.
_NOUNS_BY_TYPE = {
    "Event": "войн|битв|сражени|революци|реформ|поход|восстани|мир|договор|фестивал|чемпионат|съезд|кризис",
    "Organization": "банк|театр|суд|университет|институт|музе|организаци|союз|академи|дум|парти|компани|завод|двор|"
    "бирж|галере|республик|лаборатори|министерств|комитет|совет|центр|групп|палат",
    "Location": "мор|океан|озер|рек|гор|остров|полуостров|площад|улиц|собор|храм|церк|импери|княжеств|дорог|мыс|залив|"
    "пролив|месторождени|полюс|равнин|проспект|кремл|монастыр",
    "Content": "книг|правд|библи|летопис|евангели|кодекс|закон",
    "Concept": "теори|теорем|гипотез",
    "Method": "алгоритм|метод",
}
_TYPE_PATTERNS = tuple(
    (re.compile(rf"(?:{stems})[а-яё]{{0,3}}(?: .*)?|.* (?:{stems})[а-яё]{{0,3}}"), entity_type)
    for entity_type, stems in _NOUNS_BY_TYPE.items()
)
_PATRONYMIC = re.compile(r"[а-яё]+(?:[вьм]ич(?:а|у|ем|е)?|вн(?:а|ы|е|у|ой))")
_SURNAME = re.compile(
    r"[а-яё-]{2,}(?:[оеё]в|ин|ын|ский|цкий|[ое]ва|ина|ская|ко|юк|ян|дзе|швили|[ое]ву|[ое]вым|иным|ского|скому|ским|ской)"
)


def stem(key: str) -> str:
    """Return what the case forms of a Cyrillic name have in common."""
    return " ".join(_stem_word(word) for word in key.split())


def _stem_word(word: str) -> str:
    cut = _CASE_ENDING.sub("", word)
    return cut if len(cut) >= MIN_STEM else word


def case_rank(key: str) -> int:
    """Return how far a Cyrillic name is from the nominative; 0 is nearest."""
    return sum(2 if _OBLIQUE_ENDING.search(word) else 1 if _VOWEL_ENDING.search(word) else 0 for word in key.split())


def is_verb(form: str) -> bool:
    """Return whether a casefolded Cyrillic word has the ending of a verb and is not a given name."""
    return _VERB.fullmatch(form) is not None and form not in word_set("given_names")


def is_common_word(text: str, word: RunToken) -> bool:
    """Return whether a capitalised word at the start of a sentence is a common word or starts a common phrase."""
    form = word.form
    if _is_in_common_words(form) or _is_common_phrase(text, word.start, word.end):
        return True
    return case_rank(form) > 1 and _is_common_noun(form)


def _is_common_phrase(text: str, start: int, end: int) -> bool:
    """Return whether a word is an adjective followed by its noun, as in "Торжественная закладка"."""
    adjective = _ADJECTIVE.fullmatch(text, start, end)
    following = _LOWER_WORD.match(text, end)
    return adjective is not None and following is not None and _is_noun(following.group(1), adjective.group(1))


def _is_common_noun(form: str) -> bool:
    """Return whether a word is a common noun or adjective in any case form that does not start names."""
    return (
        is_cyrillic(form)
        and stem(form) in _common_stems()
        and form not in word_set("given_names")
        and not _HEAD_NOUN.fullmatch(form)
    )


@cache
def _common_stems() -> frozenset[str]:
    return frozenset(map(stem, word_set("ru_common"))) - frozenset(map(stem, _NAME_STARTS))


def split_cases(tokens: Sequence[RunToken], *, before: str, is_initial: bool) -> list[list[RunToken]]:
    """Split capitalised words where a second name starts: "Приморья | Олег Кожемяко", "в Киеве | Софийский собор".

    There are at least two tokens, and the first is Cyrillic. `before` is the word before them. If the tokens start a
    sentence (`is_initial`), a leading common noun is dropped.
    """
    rest = list(tokens)
    if is_initial and len([token for token in rest if token.kind == "word"]) > 1 and _is_common_noun(rest[0].form):
        del rest[0]
    position = _second_name_start(rest, before)
    if position:
        return [rest[:position], rest[position:]]
    return [rest] if rest else []


def _second_name_start(tokens: Sequence[RunToken], before: str) -> int:
    """Return the position in `tokens` where a second name starts, 0 if there is only one."""
    if len(tokens) < 2 or not all(is_cyrillic(token.form) for token in tokens[:2]):
        return 0
    given_names = word_set("given_names")
    for position in range(1, len(tokens) - 1):
        if tokens[position].form in given_names and tokens[position - 1].form not in given_names:
            return position
    first, second = tokens[0].form, tokens[1].form
    if _HEAD_NOUN.fullmatch(first) or tokens[0].kind != "word" or tokens[1].kind != "word":
        return 0
    if _GENITIVE_MASCULINE.fullmatch(first) and first not in given_names and _INSTRUMENTAL.fullmatch(second):
        return 1
    if not _NOMINATIVE.fullmatch(second):
        return 0
    if before in ("в", "во", "на", "о", "при", "под") and _LOCATIVE.fullmatch(first):
        return 1
    is_place = len(tokens) > 2 and _GENITIVE_PLACE.fullmatch(first) and _CONSONANT_END.fullmatch(tokens[2].form)
    return 1 if is_place else 0


def extend_name(text: str, start: int, end: int, *, is_initial: bool) -> tuple[int, int]:
    """Return the span of a Cyrillic name widened by the lower-case words that belong to it.

    `is_initial` means that the name starts a sentence.
    """
    if not is_initial or _starts_like_name(text[start:end]):
        end = _extend_to_agreeing_noun(text, start, end)
    end = _extend_over_genitives(text, start, end)
    return _extend_to_leading_noun(text, start), end


def _starts_like_name(name: str) -> bool:
    """Return whether a name at the start of a sentence is more than a common adjective: "Куликовская", "Большой"."""
    word = name.split(None, 1)[0]
    form = word.casefold()
    return form in _NAME_STARTS or (bool(_RELATIONAL_ADJECTIVE.fullmatch(word)) and form not in word_set("ru_common"))


def _extend_to_agreeing_noun(text: str, start: int, end: int) -> int:
    """Extend adjectives to their noun, also over one lower-case adjective: "Большой адронный коллайдер"."""
    ending = _shared_adjective_ending(text[start:end].split())
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


def _shared_adjective_ending(parts: Sequence[str]) -> str:
    """Return the ending of the last word if all words are adjectives that agree, else "".

    "" also for words that start with a given name.
    """
    endings = [match.group(1) if (match := _ADJECTIVE.fullmatch(part)) else "" for part in parts]
    if not all(endings) or parts[0].casefold() in word_set("given_names"):
        return ""
    return endings[-1] if all(_agree(endings[-1], ending) for ending in endings) else ""


def _agree(first: str, second: str) -> bool:
    return any(second in group for group in _AGREEING_GROUPS[first])


def _is_noun(word: str, adjective_ending: str) -> bool:
    return (
        bool(_NOUN_BY_ENDING[adjective_ending].fullmatch(word))
        and not _VERB.fullmatch(word)
        # A word in -ие is a noun where no adjective in -ие agrees with one in -ое or -ее.
        and (not _CLEAR_ADJECTIVE.fullmatch(word) or (adjective_ending in ("ое", "ее") and word.endswith("ие")))
        and not is_sentence_opener(word)
    )


def _extend_over_genitives(text: str, start: int, end: int) -> int:
    """Extend "Министерство", "Теория" and similar nouns over the genitives after them, also a capitalised one."""
    if not _HEAD_NOUN.fullmatch(text[start:end].rsplit(None, 1)[-1]):
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
    return bool(_GENITIVE.fullmatch(word)) and not _VERB.fullmatch(word) and not is_sentence_opener(word)


def _extend_to_leading_noun(text: str, start: int) -> int:
    """Return the start of a lower-case noun before the name that belongs to it, as in "улица Баумана"."""
    match = _WORD_BEFORE.search(text, max(0, start - 24), start)
    if not match:
        return start
    pattern = _BATTLE if match.group(2) else _LEADING_NOUN
    return match.start(1) if pattern.fullmatch(match.group(1)) else start


def entity_type(key: str) -> str:
    """Return the entity type that the nouns of a Cyrillic name show, else ""."""
    return next((entity_type for pattern, entity_type in _TYPE_PATTERNS if pattern.fullmatch(key)), "")


def is_person_name(parts: Sequence[str]) -> bool:
    """Return whether the words of a name hold a patronymic, or are two words of which the second is a surname."""
    if any(_PATRONYMIC.fullmatch(part) for part in parts[1:]):
        return True
    return len(parts) == 2 and bool(_SURNAME.fullmatch(parts[1])) and not parts[0].endswith(("ий", "ая", "ое", "ой"))
