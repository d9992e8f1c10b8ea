"""Words: text cut into words, the terms that full-text search indexes, and content terms.

Words of spaced scripts are casefolded runs of letters and digits. In scripts without spaces (CJK, Thai …) each
character is a word. They are indexed as overlapping pairs (bigrams), so that any name of two characters is found.
Russian words are indexed by their stems, since most stand in another case than the question asks for; English words as
they are. Content terms are the stems of a text without its stop words, so that "printed" matches "printing".
"""

import re
import string
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from threading import Lock
from typing import NamedTuple, cast, overload

from quipu.text.unicode import MARKS, UNSPACED, is_unspaced

TOKENIZER_IDENTITY = "quipu-words/3"
MAX_ACRONYM_LENGTH = 6
MIN_SEGMENT = 3  # words of two characters are indexed as pairs already

_LETTERS = rf"(?:[^\W_{UNSPACED}]+[{MARKS}]*)+"
_WORD = re.compile(rf"({_LETTERS}[+#]*(?:['’ʼ]{_LETTERS})*|[{UNSPACED}])")
# Most texts are ASCII except for quotes and dashes. There a simpler pattern finds words, and lower case is the form.
_PLAIN_TEXT = re.compile(r"[\x00-\x7f‘’“”–—…•\xa0]*")
_PLAIN_WORD = re.compile(r"([A-Za-z0-9]+[+#]*(?:['’][A-Za-z0-9]+)*)")
_CODE = re.compile(r"[-@]-?[A-Za-z][A-Za-z0-9_-]*|(?<!\w)[A-Za-z]\w*_\w+", re.ASCII)
# A line with nothing but a code or a name in capitals, and perhaps its value or type, is above what explains it.
_ENTRY_NAME = re.compile(rf"{_CODE.pattern}|(?<!\w)[A-Z][A-Z0-9]{{2,}}(?!\w)", re.ASCII)
_ENTRY = re.compile(
    rf"^[#*` \t]*+(?>[A-Za-z]\w*\.)*((?:(?>{_ENTRY_NAME.pattern})(?=[`*,\s(=<\[]|$)[`*]*+(?:, ?[`*]*+)?)+)"
    r"[ \t]*+(?:[(=<\[].{0,40})?[ \t]*+$",
    re.MULTILINE | re.ASCII,
)
_NO_START = frozenset("-_.@+/" + string.ascii_letters + string.digits)  # characters before what is no option
_NOT_IN_WORD = re.compile(rf"(?![{MARKS}{UNSPACED}])[^\w+#]")
_FOOTNOTE_MARK = re.compile("(?<=[^\\W_]{3})[⁰¹²³⁴-⁹]+")  # after a word: no m², no 10⁶
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_POSSESSIVE = re.compile(r"['’ʼ]s$", re.IGNORECASE)
_APOSTROPHES = re.compile(r"['’ʼ]")
# What may separate two words of one name: spaces, a line break, a hyphen, a middle dot, "&", the dot of "St.".
_JOINT = re.compile(r"[^\S\n]*\n?[^\S\n]*|[^\S\n]*[-‐‑–·・‧&/][^\S\n]*|\.[^\S\n]*|['’ʼ]\s*")

_MAX_CACHED = 64  # characters: a longer word is unlikely to occur again
_SIMPLE_JOINTS = frozenset(("", " "))
LOWER, CAPITAL, ACRONYM = range(3)

MIN_STEM = 3

_CYRILLIC = re.compile("[а-я]")
_STEMMER_LOCK = Lock()


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


_ENGLISH_ENDINGS = sorted(
    _words("ings ing edly ed ies ied es s y e ly er ers or ors ion ions ment ments al"), key=len, reverse=True
)


class Word(NamedTuple):
    """A word of a text. `form` is casefolded; `is_joined` means that only a joint separates it from the word before."""

    form: str
    start: int
    end: int
    is_capital: bool
    is_acronym: bool
    is_joined: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Words(Sequence[Word]):
    """The words of a text, stored column by column because a chunk has a thousand. A slice is Words again.

    Each column has one value per word. `terms` are forms without accents. `kinds` are LOWER, CAPITAL (also for a script
    without case) or ACRONYM.
    """

    forms: Sequence[str]
    terms: Sequence[str]
    kinds: Sequence[int]
    is_joined: Sequence[bool]
    starts: Sequence[int]
    ends: Sequence[int]
    has_unspaced: bool

    def __len__(self) -> int:
        return len(self.forms)

    @overload
    def __getitem__(self, index: int) -> Word: ...

    @overload
    def __getitem__(self, index: slice) -> "Words": ...

    def __getitem__(self, index: int | slice) -> "Word | Words":
        if isinstance(index, slice):
            return Words(
                forms=self.forms[index],
                terms=self.terms[index],
                kinds=self.kinds[index],
                is_joined=self.is_joined[index],
                starts=self.starts[index],
                ends=self.ends[index],
                has_unspaced=self.has_unspaced,
            )
        kind, start, end = self.kinds[index], self.starts[index], self.ends[index]
        return Word(self.forms[index], start, end, kind > 0, kind == ACRONYM, self.is_joined[index])


def split_words(text: str) -> Words:
    """Return the words of `text` in order. A character of an unspaced script is a word of its own."""
    is_plain = _PLAIN_TEXT.fullmatch(text) is not None
    text = text if is_plain else _FOOTNOTE_MARK.sub(lambda mark: " " * len(mark[0]), text)
    parts = (_PLAIN_WORD if is_plain else _WORD).split(text)
    surfaces = parts[1::2]  # the words as they are written
    gaps = parts[2::2]  # the gap after each word
    offsets = list(accumulate(map(len, parts)))
    is_joined = [gap in _SIMPLE_JOINTS or _is_joint(gap, surface) for gap, surface in zip(gaps, surfaces, strict=True)]
    if is_plain:
        forms = terms = _plain_forms(text, surfaces)
        kinds = [LOWER if surface.islower() else _capital_kind(surface) for surface in surfaces]
    else:
        analyzed = [
            _analyze(surface) if len(surface) <= _MAX_CACHED else _analyze.__wrapped__(surface) for surface in surfaces
        ]
        forms, terms = [form for form, _, _ in analyzed], [term for _, term, _ in analyzed]
        kinds = [kind for _, _, kind in analyzed]
    words = Words(
        forms=forms,
        terms=terms,
        kinds=kinds,
        is_joined=[False, *is_joined[:-1]] if surfaces else [],
        starts=offsets[:-1:2],
        ends=offsets[1::2],
        has_unspaced=not is_plain and bool(_UNSPACED.search(text)),
    )
    return words if all(forms) else _without_empty(words)


def _plain_forms(text: str, surfaces: Sequence[str]) -> list[str]:
    forms = _PLAIN_WORD.split(text.lower())[1::2]
    if "'" in text or "’" in text:
        return [
            _form(surface) if "'" in surface or "’" in surface else form
            for surface, form in zip(surfaces, forms, strict=True)
        ]
    return forms


@lru_cache(maxsize=16_384)
def _analyze(surface: str) -> tuple[str, str, int]:
    """Return the form of a word as written, its term, and its kind."""
    form = surface.lower() if surface.isascii() and surface.isalnum() else _form(surface)
    return form, fold_accents(form), LOWER if surface.islower() else _capital_kind(surface)


def _form(surface: str) -> str:
    bare = _APOSTROPHES.sub("", _POSSESSIVE.sub("", surface))
    form = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", bare).casefold())
    return _NOT_IN_WORD.sub("", form)


def _capital_kind(surface: str) -> int:
    return ACRONYM if is_acronym(surface if surface.isalnum() else _POSSESSIVE.sub("", surface)) else CAPITAL


def is_acronym(word: str) -> bool:
    """Return whether a word is an acronym: two to six capitals and digits, of which the first is a capital."""
    return 2 <= len(word) <= MAX_ACRONYM_LENGTH and word.isalnum() and word.isupper() and word[0].isupper()


class _FoldedCharacters(dict[int, str]):
    """The folded form of each character that was met, by its code point."""

    def __missing__(self, code: int) -> str:
        folded = fold_accents(chr(code).casefold())
        self[code] = folded if len(folded) == 1 else chr(code)
        return self[code]


_FOLDED_CHARACTERS = _FoldedCharacters()


def fold_characters(text: str) -> str:
    """Return a text in lower case without accents, character by character, so that places stay the same."""
    return text.lower() if text.isascii() else text.translate(_FOLDED_CHARACTERS)


def fold_accents(form: str) -> str:
    """Return a form without the accents of Latin, Greek and Cyrillic letters, which people omit when they search."""
    if form.isascii():
        return form
    decomposed = unicodedata.normalize("NFD", form)
    return unicodedata.normalize(
        "NFC", "".join(c for c in decomposed if c not in "\u0300\u0301\u0302\u0303\u0308\u030c")
    )


def _is_joint(gap: str, previous: str) -> bool:
    if not _JOINT.fullmatch(gap):
        return False
    return not gap.startswith(".") or len(previous) <= 3


def _without_empty(words: Words) -> Words:
    """Return the words whose form is not empty."""
    positions = [position for position, form in enumerate(words.forms) if form]
    return Words(
        forms=[words.forms[position] for position in positions],
        terms=[words.terms[position] for position in positions],
        kinds=[words.kinds[position] for position in positions],
        is_joined=[words.is_joined[position] and bool(words.forms[position - 1]) for position in positions],
        starts=[words.starts[position] for position in positions],
        ends=[words.ends[position] for position in positions],
        has_unspaced=words.has_unspaced,
    )


def contains_word(text: str) -> bool:
    """Return whether `text` holds at least one word."""
    return bool(_WORD.search(text))


def index_terms(words: Words, text: str) -> list[str]:
    """Return the terms that full-text search indexes for a text with these words.

    A word of a spaced script is a term, a Russian one by its stem. A run of an unspaced script gives overlapping pairs
    and then its last character, so that a search for one character finds it anywhere. Options, identifiers and the
    names of entries follow all words.
    """
    terms = _words_and_pairs(words)
    return [*(terms if "".join(terms).isascii() else map(russian_stem, terms)), *_codes(text), *_entries(text)]


def _codes(text: str, pattern: re.Pattern[str] = _CODE) -> list[str]:
    """Return the options and identifiers in a text: "-a", "--all", "@x", "max_size"."""
    return [code[0] for code in pattern.finditer(text) if text[code.start() - 1 : code.start()] not in _NO_START]


def _entries(text: str) -> list[str]:
    """Return the terms of the entries of a text: ":max_size" for a line with nothing else, above what explains it."""
    return [f":{name[0]}" for entry in _ENTRY.finditer(text) for name in _ENTRY_NAME.finditer(entry[1])]


def _words_and_pairs(words: Words) -> list[str]:
    """Return the words as they are written, and the pairs and last characters of unspaced scripts."""
    terms = list(words.terms)
    if words.has_unspaced:
        forms = words.forms
        for position, continues in enumerate(_continues_run(words)[1:]):
            if continues:
                terms[position] = forms[position] + forms[position + 1]
    return terms


def query_terms(text: str) -> list[str]:
    """Return the distinct terms of a question in order of appearance, without stop words if any other term is left.

    Stop words would together weigh more than one rare word in a small index. An acronym ("IT", "WHO") is none. A run of
    two or more unspaced characters gives only its pairs. Two words may be one in a text: "create superuser" gives
    "createsuperuser" as well.
    """
    words = split_words(text)
    codes = [*_codes(text), *(f":{name}" for name in _codes(text, _ENTRY_NAME))]
    columns = zip(_words_and_pairs(words), words.forms, words.kinds, _continues_run(words), strict=True)
    terms = [(term, kind) for term, form, kind, continues in columns if not (continues and term == form)]
    content = [term for term, kind in terms if term not in STOP_WORDS or kind == ACRONYM]
    joined = ["".join(pair) for pair in pairwise(dict.fromkeys(content)) if "".join(pair).isascii()]
    chosen = content or ([] if codes else [term for term, _ in terms])
    return list(dict.fromkeys([*map(russian_stem, chosen), *codes, *joined]))


def _continues_run(words: Words) -> list[bool]:
    """Return, for each word, whether it continues a run of an unspaced script that the word before belongs to."""
    unspaced = [words.has_unspaced and is_unspaced(form) for form in words.forms]
    before = [False, *unspaced]
    return [all(conditions) for conditions in zip(before, unspaced, words.is_joined, strict=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analyzer:
    """Makes the terms of full-text search from chunks and questions.

    Terms are words and pairs of characters. A segmenter adds the longer words of unspaced scripts after them. Links
    use only the pairs, so they are the same with and without a segmenter.
    """

    segment: Callable[[str], Sequence[str]] | None = None
    segmenter: str = ""

    @property
    def identity(self) -> str:
        """The identity that the index records. Full text built with another identity is not searched."""
        return f"{TOKENIZER_IDENTITY}+{self.segmenter}" if self.segmenter else TOKENIZER_IDENTITY

    def terms(self, words: Words, text: str) -> list[str]:
        """Return the terms of a text with these words."""
        return [*index_terms(words, text), *self._segments(words)]

    def query_terms(self, text: str) -> list[str]:
        """Return the distinct terms of a question in order of appearance."""
        return list(dict.fromkeys([*query_terms(text), *self._segments(split_words(text))]))

    def _segments(self, words: Words) -> Iterator[str]:
        if self.segment is not None:
            for run in _unspaced_runs(words):
                yield from (word for word in self.segment(run) if len(word) >= MIN_SEGMENT)


def _unspaced_runs(words: Words) -> Iterator[str]:
    run = ""
    for word in words:
        if run and not (word.is_joined and is_unspaced(word.form)):
            yield run
            run = ""
        if is_unspaced(word.form):
            run += word.form
    if run:
        yield run


def content_terms(words: Words) -> list[str]:
    """Return the stems of `words` in order, without stop words. Unspaced scripts give pairs of characters instead."""
    return [stem(term) for term in _words_and_pairs(words) if term not in STOP_WORDS and not is_one_character(term)]


def content_terms_of(text: str) -> list[str]:
    """Return the content terms of `text` in order."""
    return content_terms(split_words(text))


@lru_cache(maxsize=65_536)
def stem(term: str) -> str:
    """Return what the forms of a term have in common: by Snowball (M. F. Porter, 2001) in Russian, roughly in English.

    An English term loses its longest known ending; at least `MIN_STEM` characters remain.
    """
    if _CYRILLIC.search(term):
        with _STEMMER_LOCK:  # a stemmer keeps the word that it works on
            return _russian_stemmer()(term)
    for ending in _ENGLISH_ENDINGS:
        if len(term) - len(ending) >= MIN_STEM and term.endswith(ending):
            return term[: -len(ending)]
    return term


@cache
def _russian_stemmer() -> Callable[[str], str]:
    from snowballstemmer.russian_stemmer import RussianStemmer

    return cast("Callable[[str], str]", RussianStemmer().stemWord)


def russian_stem(term: str) -> str:
    """Return the stem of a Russian term, and any other term as it is."""
    return term if term.isascii() or not _CYRILLIC.search(term) else stem(term)


def is_one_character(term: str) -> bool:
    """Return whether a term is a single character of an unspaced script, which is usually only half a word."""
    return len(term) == 1 and is_unspaced(term)
