"""Encoding detection: the encoding in which bytes that are not valid UTF-8 make the most probable text.

Each candidate decodes the bytes, and a small model of its language scores the characters: letters by frequency and
case, ideographs by whether their standard lists them among the common ones. The most probable text wins; of
equal texts the first candidate. Scores are integers, so the result is the same on every machine.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

# Charsets and the codec that browsers use for them.
_CODEC_BY_CHARSET = {
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
}
_CHARSET = re.compile(
    r"windows-125[0-8]|cp125[0-8]|iso-8859-\d{1,2}|koi8-[ru]|ibm866|cp866|macintosh|big5(?:-hkscs)?"
    r"|gb18030|euc-jp|iso-2022-jp|cp932|cp949|cp1252|cp1254"
)
_MAX_SAMPLE = 16_384  # bytes of lines with bytes outside ASCII
_MIN_MARGIN = 8_000  # by which the best score must exceed the next to be sure: e^8 times as probable
_MIN_DISTINCT = 4  # bytes outside ASCII: fewer, such as those of a frame of lines, are normal in Western text only
_MIN_MEAN = -7_000  # score per byte outside ASCII; with a lower one the bytes are text in no candidate
_INVALID_SCORE = -25_000  # of a sequence of bytes that is invalid in an encoding
_MAX_BEFORE = 64  # bytes of a line in the sample before the first byte outside ASCII
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
_HIGH_BYTES = bytes(range(0x80, 0x100))
_REPLACEMENT = "\ufffd"

_RUSSIAN = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"  # by frequency, with the share of each letter in thousandths:
_RUSSIAN_SHARES = (110, 85, 80, 74, 67, 63, 55, 47, 45, 44, 35, 32, 30, 28, 26, 20, 19, 17, 17, 16, 16, 14, 12, 10, 9)
_WESTERN = "éèàáâäöüßóíúçñåøæêëîïôûùãõìòýœÿšžðþ"
_PUNCTUATION = "«»“”‘’„–—…№©®™°§·•×±€£\u00a0"
_WIDE_PUNCTUATION = "，。、：；？！（）《》“”「」『』【】—…·\u3000〜～・ー％"
_HIRAGANA = "".join(map(chr, range(0x3041, 0x3094)))
_KATAKANA = "".join(map(chr, range(0x30A1, 0x30F7)))
# Probability of a letter's case after the character before it. a: a letter of ASCII, l: small, u: capital, o: other.
_CYRILLIC_CASE = {"al": 0.01, "au": 0.002, "ll": 0.95, "lu": 0.0005, "ul": 0.7, "uu": 0.2, "ol": 0.6, "ou": 0.3}
_WESTERN_CASE = {"al": 0.8, "au": 0.01, "ll": 0.02, "lu": 0.0005, "ul": 0.02, "uu": 0.02, "ol": 0.1, "ou": 0.1}


@dataclass(frozen=True, slots=True)
class AssumedEncoding:
    """The encoding that makes the most probable text; `is_sure` is False if another is nearly as probable."""

    name: str
    is_sure: bool


@dataclass(frozen=True, slots=True)
class _Language:
    """Scores of characters in one encoding: 1,000 times the natural logarithm of their probability.

    `by_case` scores a letter by its case and the class of the character before it, in a script with case.
    """

    by_character: Mapping[str, int]
    other: int  # of a character that is not listed
    by_case: Mapping[str, int] = field(default_factory=dict)


def assume_encoding(content: bytes) -> AssumedEncoding | None:
    """Return the encoding in which `content` is most probably text; None if it is text in no candidate.

    Reads at most 16 kB of the lines with bytes outside ASCII. A few invalid bytes are tolerated.
    """
    sample = _sample(content)
    n_high_bytes = len(sample) - len(sample.translate(None, _HIGH_BYTES))
    name_by_text: dict[str, str] = {}
    score_by_text: dict[str, int] = {}
    for name, language in _languages().items():
        text = sample.decode(codec_of(name) or "utf-8", "replace")
        name_by_text.setdefault(text, name)
        score_by_text[text] = max(_score(text, language), score_by_text.get(text, _INVALID_SCORE * len(sample)))
    best, second = sorted(score_by_text, key=lambda text: -score_by_text[text])[:2]
    if score_by_text[best] < _MIN_MEAN * n_high_bytes:
        return None
    name = name_by_text[best]
    has_variety = name == "windows-1252" or len(set(sample) & set(_HIGH_BYTES)) >= _MIN_DISTINCT
    is_sure = has_variety and score_by_text[best] - score_by_text[second] >= _MIN_MARGIN
    return AssumedEncoding(name, is_sure)


def codec_of(charset: str) -> str:
    """Return the Python codec for the name of a charset; "" if it is unknown or a form of Unicode."""
    label = charset.strip().lower()
    codec = _CODEC_BY_CHARSET.get(label, label)
    if not _CHARSET.fullmatch(codec):
        return ""
    return codec.replace("windows-", "cp").replace("macintosh", "mac-roman")


def _sample(content: bytes) -> bytes:
    """Return the first lines with bytes outside ASCII, each from shortly before the first such byte.

    No candidate has a line end inside a character.
    """
    sample = b""
    position = 0
    while len(sample) < _MAX_SAMPLE and (high := _HIGH_BYTE.search(content, position)):
        line_start = content.rfind(b"\n", position, high.start()) + 1
        line_end = content.find(b"\n", high.end()) + 1 or len(content)
        start = max(position, line_start, high.start() - _MAX_BEFORE)
        position = min(line_end, start + _MAX_SAMPLE - len(sample))
        sample += content[start:position]
    return sample


def _score(text: str, language: _Language) -> int:
    """Return the score of the characters outside ASCII, given those before them."""
    n_by_character = Counter(text)
    score = n_by_character[_REPLACEMENT] * _INVALID_SCORE
    for character, n in n_by_character.items():
        if not character.isascii() and character != _REPLACEMENT:
            score += n * language.by_character.get(character, language.other)
    if language.by_case:
        classes = text.translate({ord(character): _case_class(character) for character in n_by_character})
        n_by_pair = Counter(zip("o" + classes, classes, strict=False))
        score += sum(n * language.by_case.get("".join(pair), 0) for pair, n in n_by_pair.items())
    return score


def _case_class(character: str) -> str:
    if not character.isalpha():
        return "o"
    if character.isascii():
        return "a"
    return "u" if character.isupper() else "l"


@cache
def _languages() -> Mapping[str, _Language]:
    """Return the model of each candidate, in the order of preference."""
    russian = _shares(_RUSSIAN, (*_RUSSIAN_SHARES, *(5 for _ in _RUSSIAN[len(_RUSSIAN_SHARES) :])))
    russian |= {letter.upper(): score for letter, score in russian.items()} | _shares("іїєґўІЇЄҐЎ", (1,) * 10)
    cyrillic = _Language(russian | _equal_shares(_PUNCTUATION, 0.05), _log(1e-5), _case_scores(_CYRILLIC_CASE))
    letters = _equal_shares(_WESTERN + _WESTERN.upper(), 0.8) | _equal_shares(_WESTERN[:20], 0.6)
    western = _Language(letters | _equal_shares(_PUNCTUATION, 0.5), _log(1e-5), _case_scores(_WESTERN_CASE))
    punctuation = _equal_shares(_WIDE_PUNCTUATION, 0.1)
    kana = _equal_shares(_HIRAGANA, 0.45) | _equal_shares(_KATAKANA, 0.12) | punctuation
    return {
        "utf-8": _Language({}, _log(0.02)),
        "windows-1252": western,
        "windows-1251": cyrillic,
        "koi8-r": cyrillic,
        "ibm866": cyrillic,
        "gb18030": _common("gb2312", range(0xB0, 0xD8), punctuation, 0.85),
        "big5": _common("big5", range(0xA4, 0xC7), punctuation, 0.85),
        "shift_jis": _common("euc-jp", range(0xB0, 0xD0), kana, 0.3),
        "euc-jp": _common("euc-jp", range(0xB0, 0xD0), kana, 0.3),
        "euc-kr": _common("euc-kr", range(0xB0, 0xC9), punctuation, 0.95),
    }


def _common(encoding: str, rows: Iterable[int], others: Mapping[str, int], share: float) -> _Language:
    """Return a language whose common characters, which have `share`, are those that begin with a byte of `rows`."""
    characters = {bytes((row, cell)).decode(encoding, "ignore") for row in rows for cell in range(0x40, 0xFF)}
    return _Language({**_equal_shares(sorted(filter(str.isalpha, characters)), share), **others}, _log(2e-6))


def _equal_shares(characters: Iterable[str], share: float) -> dict[str, int]:
    """Return the score of each of `characters`, which have `share` of a text together."""
    listed = list(characters)
    return {character: _log(share / len(listed)) for character in listed}


def _shares(characters: str, per_mille: Iterable[int]) -> dict[str, int]:
    return {character: _log(share / 1_000) for character, share in zip(characters, per_mille, strict=True)}


def _case_scores(probability_by_pair: Mapping[str, float]) -> dict[str, int]:
    return {pair: _log(probability) for pair, probability in probability_by_pair.items()}


def _log(probability: float) -> int:
    return round(1_000 * math.log(probability))
