"""Unicode: scripts without spaces, marks inside words, grapheme boundaries, surrogates and control characters.

Text of documents and names of files may hold control characters, which must not reach the terminal.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

# UNSPACED, HAN and MARKS are ranges for a character class of a regular expression.

# Han (with extensions), kana, Hangul, Thai, Lao, Khmer, Myanmar; without their punctuation (the dot of ジョン・スミス).
UNSPACED = (
    "\u0e00-\u0e3e\u0e40-\u0e4e\u0e50-\u0e59\u0e5c-\u0eff\u1000-\u1049\u1050-\u109f\u1100-\u11ff\u1780-\u17d3\u17d7"
    "\u17dc-\u17ff\u3005-\u3007\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)

# Chinese characters, which Japanese uses as well.
HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"

# Vowel signs, viramas and decomposed accents (categories Mn, Mc and Me), which `\w` does not match, and the letters
# between them.
MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711-\u07f3\u07fd\u0816-\u082d\u0859-\u085b\u0898-\u08e1\u08e3-\u0963"
    "\u0981-\u09e3\u09fe-\u0a75\u0a81-\u0ae3\u0afa-\u0b63\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0c83\u0cbc-\u0d4d"
    "\u0d57-\u0d63\u0d81-\u0df3\u0f18-\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0f84\u0f86-\u0fbc\u0fc6\u135d-\u135f"
    "\u1712-\u1734\u1752-\u1773\u180b-\u180d\u180f-\u193b\u1a17-\u1a1b\u1a55-\u1a7f\u1ab0-\u1b44\u1b6b-\u1b73"
    "\u1b80-\u1bf3\u1c24-\u1c37\u1cd0-\u1cd2\u1cd4-\u1dff\u2cef-\u2cf1\u2d7f-\u2dff\ua66f-\ua672\ua674-\ua67d"
    "\ua69e-\ua6f1\ua802-\ua827\ua82c\ua880-\ua8c5\ua8e0-\ua8f1\ua8ff-\ua92d\ua947-\ua953\ua980-\ua9c0"
    "\ua9e5-\uaa4d\uaa7b-\uaac1\uaaeb-\uaaef\uaaf5-\uaaf6\uabe3-\uabea\uabec-\uabed\ufb1e\ufe20-\ufe2f"
)

_UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")
_SURROGATE = re.compile("[\\ud800-\\udfff]")
_ZERO_WIDTH_JOINER = "\u200d"
_FIRST_COMBINING = "\u0300"
_MAX_REGIONAL_INDICATORS = 64
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}\N{SOFT HYPHEN}"
_MAX_NAME = 1_000  # characters
_SUPERSCRIPTS = str.maketrans("0123456789+-\N{MINUS SIGN}\N{EN DASH}", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_REGIONAL_INDICATORS = "".join(map(chr, range(0x1F1E6, 0x1F200)))


def is_unspaced(text: str) -> bool:
    """Return whether `text` starts with a character of a script that is written without spaces."""
    return bool(_UNSPACED_CHARACTER.match(text))


def is_grapheme_boundary(text: str, index: int) -> bool:
    """Return whether `text` may be cut before the character at `index`. Index 0 and the length are boundaries.

    A grapheme is what a reader sees as one character. The function keeps these together: combining marks, joined and
    toned emoji, flags (up to 32 in a row), tags, and Hangul syllables in parts. These are the cases of Unicode UAX #29
    that occur in text; its rules for Indic conjuncts are left out.
    """
    if index <= 0 or index >= len(text):
        return True
    character = text[index]
    if character < _FIRST_COMBINING:
        return True
    if text[index - 1] == _ZERO_WIDTH_JOINER or character == _ZERO_WIDTH_JOINER or _extends_grapheme(character):
        return False
    if not "\U0001f1e6" <= character <= "\U0001f1ff":
        return True
    before = text[max(0, index - _MAX_REGIONAL_INDICATORS) : index]
    n_indicators = len(before) - len(before.rstrip(_REGIONAL_INDICATORS))
    return n_indicators % 2 == 0  # two indicators make one flag


def _extends_grapheme(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Mn", "Mc", "Me")
        or "\u1160" <= character <= "\u11ff"  # Hangul vowels and finals
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= character <= "\U000e007f"  # tags
    )


def find_text_with_surrogate(value: object) -> str | None:
    """Return the first text in `value` that holds a surrogate, None if there is none.

    Python decodes bytes that are not text to lone surrogates; they can be neither stored nor sent. `value` is a text,
    or a collection, mapping or dataclass that holds texts at any depth; other objects hold none.
    """
    return next((text for text in _texts_in(value) if _SURROGATE.search(text)), None)


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts_in([*value.keys(), *value.values()])
    elif isinstance(value, tuple | list | set | frozenset):
        for element in value:
            yield from _texts_in(element)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts_in(getattr(value, field.name))


def superscript(text: str) -> str:
    """Return an exponent or the number of a footnote in raised characters, so that 10⁶ is not 106; else `text`."""
    raised = text.strip().translate(_SUPERSCRIPTS)
    return raised if raised.lstrip("⁺⁻").isdigit() else text


def clean(text: str) -> str:
    """Return `text` with control characters replaced, except line ends and tabs."""
    return "".join(_REPLACEMENT if _is_control(character) else character for character in text)


def clean_name(name: str) -> str:
    """Return the name of a document or file on one line, cut if very long, so that it cannot imitate our output."""
    line = clean(name.replace("\n", _REPLACEMENT).replace("\t", _REPLACEMENT))
    return line if len(line) <= _MAX_NAME else f"{line[:_MAX_NAME]}…"


def clean_json(text: str) -> str:
    """Return JSON with control characters escaped; its values stay the same."""
    return "".join(json.dumps(character)[1:-1] if _is_control(character) else character for character in text)


def _is_control(character: str) -> bool:
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf") and character not in _JOINERS
