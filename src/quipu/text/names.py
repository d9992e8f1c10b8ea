"""Names: the key under which two spellings are one entity, where names occur in a text, and names in other scripts.

"Михаил Булгаков" and "Mikhail Bulgakov" are one name in two scripts; "Café" and "Cafe" differ only in accents. A
spelling key is only a first sieve: it is in Latin letters without spaces, and many ways to romanise a name give one
key. `other_spellings` then decides. Names with one spelling key stay different entities.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from anyascii import anyascii

from quipu.text.unicode import MARKS, UNSPACED, is_unspaced
from quipu.text.words import (
    ACRONYM,
    STOP_WORDS,
    Word,
    Words,
    contains_word,
    fold_accents,
    is_acronym,
    russian_stem,
    split_words,
)

MAX_NAME_CHARS = 300  # of a name that a person or another system gives
MAX_KEY_LENGTH = 200

# In another script: "Xian" may be 西安 or 先, and one Chinese character is a syllable with dozens of homophones.
MIN_LATIN_LETTERS = 5
MIN_UNSPACED_CHARACTERS = 2


_DOTTED_ACRONYM = re.compile(r"(?:[^\W\d_]\.){2,}[^\W\d_]?\.?")
_POSSESSIVE = re.compile(r"(?<=\w)['’ʼ]s(?!\w)|(?<=s)['’ʼ](?!\w)", re.IGNORECASE)
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ`]+(?=\w)")
_AMPERSAND = re.compile(r"(?<=\s)&(?=\s)")
_PUNCTUATION = re.compile(rf"(?:(?![{MARKS}{UNSPACED}])[^\w+#&]|_)+")
_OUTER_PUNCTUATION = re.compile(r"^[^\w]+|[^\w.]+$")
_ARTICLES = re.compile(r"(?:(?:the|an|a(?= \S\S)) )+(?=\S)")  # not the first of two initials, as in "a b foo"
_ARTICLE_AS_WRITTEN = re.compile(r"(?:[Tt]he|[Aa]n?)\s+(?=\S)")
_BRACKET_AT_END = re.compile(r"(?<=\S)\s*[(（\[][^()（）\[\]]*[)）\]]\s*$")
_SPACE_IN_UNSPACED = re.compile(rf"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")


@lru_cache(maxsize=16_384)
def entity_key(name: str) -> str:
    """Return the normal form of a name: names with one key are one entity. "" if the name has no letter or digit.

    The key is in NFKC and casefolded, without articles and possessives, with punctuation and spaces folded, in any
    script. An acronym keeps its capitals ("WHO"), so that it never equals a common word ("who"), and loses its dots
    ("U.S."). The key of a key is the same key.
    """
    text = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", name).strip())
    if acronym := _acronym(text):
        return acronym
    text = unicodedata.normalize("NFKC", _APOSTROPHE.sub("", text).casefold())
    text = _AMPERSAND.sub("and", _PUNCTUATION.sub(" ", text)).strip()
    if articles := _ARTICLES.match(text):
        text = text[articles.end() :]
    return _SPACE_IN_UNSPACED.sub("", text)[:MAX_KEY_LENGTH].strip()


def _acronym(text: str) -> str:
    """Return a name that is an acronym without dots, article and outer punctuation; "" if it is not an acronym."""
    article = _ARTICLE_AS_WRITTEN.match(text)
    bare = _OUTER_PUNCTUATION.sub("", text[article.end() :] if article else text)
    bare = bare.replace(".", "") if _DOTTED_ACRONYM.fullmatch(bare) else bare
    return bare if is_acronym(bare) else ""


def title_keys(title: str) -> tuple[str, ...]:
    """Return the entity keys that a title may stand for: the whole title, and without a bracket at its end."""
    keys = (entity_key(title), entity_key(_BRACKET_AT_END.sub("", title)))
    return tuple(dict.fromkeys(key for key in keys if key))


def name_forms(key: str) -> tuple[str, ...]:
    """Return the word forms of an entity key, as they stand in a text that names the entity."""
    return tuple(split_words(key).forms)


def is_linkable(key: str) -> bool:
    """Return whether texts are searched for this name. A single character is not, nor a number unless it has four
    digits."""
    return len(key) >= 2 and not (key.isdigit() and len(key) != 4) and contains_word(key)


def phrase_terms(key: str) -> list[str]:
    """Return consecutive terms that the `index_terms` of every text hold that names this key of several words.

    The last character of a key in an unspaced script gives no term, because the run may continue in a text.
    """
    forms = name_forms(key)
    terms: list[str] = []
    for form, following in zip(forms, (*forms[1:], ""), strict=True):
        if not is_unspaced(form):
            terms.append(russian_stem(fold_accents(form)))
        elif following:
            terms.append(form + following if is_unspaced(following) else form)
    return terms


def capital_terms(words: Words) -> list[str]:
    """Return the terms that find chunks by a name of one word: capitalised words, with "0" before an acronym."""
    capitals = ((form, kind) for form, kind in zip(words.forms, words.kinds, strict=True) if kind)
    return [f"0{form}" if kind == ACRONYM else form for form, kind in capitals]


def capital_term(key: str) -> str:
    """Return the term of `capital_terms` that every chunk has that names this key of one word."""
    form = name_forms(key)[0]
    return f"0{form}" if is_acronym(key) else form


# Entity keys by anchor, number of words and words: at one place in a text, one look-up for each number of words finds
# them, however many names begin with the same two words.
NamesByAnchor = Mapping[str, Mapping[int, Mapping[str, Sequence[str]]]]


class NameStarts(NamedTuple):
    """The places where names may start: positions of words, and for each the anchor of a name that starts there."""

    positions: Sequence[int]
    anchors: Sequence[str]


def anchor(forms: Sequence[str]) -> str:
    """Return the first two words of a name. One lookup by anchor tells whether a name may start at a place."""
    return " ".join(forms[:2])


def name_words(key: str) -> str:
    """Return the word forms of an entity key, separated by spaces."""
    return " ".join(name_forms(key))


def group_by_anchor(keys: Iterable[str]) -> NamesByAnchor:
    """Return entity keys by anchor, number of words and words, as `count_occurrences` takes them."""
    names: dict[str, dict[int, dict[str, list[str]]]] = {}
    for key in keys:
        forms = _cached_forms(key)
        by_words = names.setdefault(anchor(forms), {}).setdefault(len(forms), {})
        by_words.setdefault(" ".join(forms), []).append(key)
    return names


def find_name_starts(words: Words) -> NameStarts:
    """Return where names may start.

    A name of one word may start at capitalised words, a longer one at every word. The anchor is "" if no name can
    start there.
    """
    capitals = [position for position, kind in enumerate(words.kinds) if kind]
    pairs = [
        f"{form} {following}" if is_joined else ""
        for form, following, is_joined in zip(words.forms, words.forms[1:], words.is_joined[1:], strict=False)
    ]
    return NameStarts([*capitals, *range(len(pairs))], [*(words.forms[position] for position in capitals), *pairs])


def following_words(words: Words, position: int, max_length: int) -> str:
    """Return the words from `position` that may be one name, separated by spaces, up to about `max_length` characters.

    Only joints separate the words of a name in a text.
    """
    end, length = position + 1, len(words.forms[position])
    while end < len(words) and words.is_joined[end] and length < max_length:
        length += 1 + len(words.forms[end])
        end += 1
    return " ".join(words.forms[position:end])


def may_contain(text: str, forms: Sequence[str]) -> bool:
    """Return False if a text certainly lacks a name of these forms. A quick test, for plain ASCII text only."""
    return not text.isascii() or "'" in text or all(form in text.lower() for form in forms)


def count_occurrences(words: Words, names: NamesByAnchor) -> dict[str, int]:
    """Return how often each name occurs as consecutive whole words. Overlapping names are counted independently.

    Names that do not occur are left out of the result. A name of one word counts only where it is capitalised (or has
    no case), an acronym only in capitals. An all-capitals word never counts as the common word of the same letters.
    """
    return count_occurrences_at(words, find_name_starts(words), names)


def count_occurrences_at(words: Words, starts: NameStarts, names: NamesByAnchor) -> dict[str, int]:
    """Return how often each name occurs, as `count_occurrences` does, but only at the given starts."""
    counts: dict[str, int] = {}
    for position, name_anchor in zip(*starts, strict=True):
        if name_anchor and (keys_by_length := names.get(name_anchor)):
            for key in _names_at(words, position, keys_by_length):
                counts[key] = counts.get(key, 0) + 1
    return counts


def _names_at(words: Words, position: int, keys_by_length: Mapping[int, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    for n_words, keys_by_words in keys_by_length.items():
        end = position + n_words
        keys = keys_by_words.get(" ".join(words.forms[position:end]), ())
        if n_words == 1:
            yield from (key for key in keys if (words.kinds[position] == ACRONYM) == is_acronym(key))
        elif keys and all(words.is_joined[position + 1 : end]):
            yield from keys


_cached_forms = lru_cache(maxsize=16_384)(name_forms)


def capitalised_spans(text: str) -> list[tuple[int, int]]:
    """Return the [start, end) span of each run of capitalised words in order, which is often a name.

    Only joints may separate the words of a run. Stop words at its ends are cut off, so "Which" of a question is not a
    name. Scripts without case give no spans, and neither does a text without small letters.
    """
    words = split_words(text)
    runs: list[list[int]] = []
    for position, word in enumerate(words):
        if not word.is_capital or is_unspaced(word.form) or not text[word.start].isalpha() or text == text.upper():
            continue
        if runs and runs[-1][-1] == position - 1 and word.is_joined:
            runs[-1].append(position)
        else:
            runs.append([position])
    trimmed = [_without_outer_stop_words([words[position] for position in run]) for run in runs]
    return [(run[0].start, run[-1].end) for run in trimmed if run]


def _without_outer_stop_words(run: list[Word]) -> list[Word]:
    while run and _is_stop_word(run[0]):
        run = run[1:]
    while run and _is_stop_word(run[-1]):
        run = run[:-1]
    return run


def _is_stop_word(word: Word) -> bool:
    return word.form in STOP_WORDS and not word.is_acronym


_NO_LETTER = re.compile(r"[^a-z0-9]+")
# What the usual romanisations of Russian (BGN/PCGN, ALA-LC, passports, German and French habits) write
# differently. Applied in order. Pinyin passes through the same rules, which join few of its syllables.
_ROMANISATIONS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"shch|sch", "sh"),
        (r"tch", "ch"),
        (r"ph", "f"),
        (r"kh", "h"),
        (r"x", "ks"),
        (r"w", "v"),
        (r"tz", "ts"),
        (r"c(?!h)|q", "k"),
        (r"[ijy]+", "i"),
        (r"ie", "e"),
        (r"([a-z])\1+", r"\1"),
    )
)


@lru_cache(maxsize=16_384)
def spelling_key(key: str) -> str:
    """Return the spelling key of an entity key; "" for acronyms and numbers, which have only one spelling."""
    spelling = "" if is_acronym(key) else _in_latin(key)
    if spelling.isdigit():
        return ""
    for pattern, replacement in _ROMANISATIONS:
        spelling = pattern.sub(replacement, spelling)
    return spelling


def other_spellings(key: str, keys: Iterable[str]) -> tuple[str, ...]:
    """Return those of `keys`, which have the spelling key of `key`, that are the same name in another spelling.

    In the same script only accents may differ. In another script the spelling key decides, but two different names
    there make the spelling ambiguous, and then it stands for neither.
    """
    scripts, folded = scripts_of(key), _without_accents(key)
    keys_by_scripts: dict[frozenset[str], list[str]] = {}
    for other in sorted(keys):
        keys_by_scripts.setdefault(scripts_of(other), []).append(other)
    same = [other for other in keys_by_scripts.pop(scripts, []) if _without_accents(other) == folded]
    foreign = _unambiguous(keys_by_scripts) if _is_long(key) else []
    return tuple(other for other in (*same, *filter(_is_long, foreign)) if other != key)


def scripts_of(text: str) -> frozenset[str]:
    """Return the scripts of the letters of `text`, by the first word of their Unicode names: LATIN, CYRILLIC, CJK."""
    return frozenset(_script(character) for character in text if character.isalpha())


def _unambiguous(keys_by_scripts: Mapping[frozenset[str], list[str]]) -> list[str]:
    return [key for keys in keys_by_scripts.values() if len(set(map(_without_accents, keys))) == 1 for key in keys]


def _is_long(key: str) -> bool:
    min_length = MIN_UNSPACED_CHARACTERS if is_unspaced(key) else 1
    return len(key) >= min_length and len(_in_latin(key)) >= MIN_LATIN_LETTERS


def _in_latin(key: str) -> str:
    return _NO_LETTER.sub("", anyascii(key).lower())


@lru_cache(maxsize=4_096)
def _script(character: str) -> str:
    return "LATIN" if character.isascii() else unicodedata.name(character, "").partition(" ")[0]


def _without_accents(key: str) -> str:
    """Return a key without accents. All Latin accents go; of Cyrillic, ё becomes е but й stays, as in full text."""
    return anyascii(key).lower() if scripts_of(key) == {"LATIN"} else fold_accents(key)
