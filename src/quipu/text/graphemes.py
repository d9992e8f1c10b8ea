"""Graphemes: where a text may be cut without tearing what a reader sees as one character."""

import unicodedata

_ZERO_WIDTH_JOINER = "\u200d"
_FIRST_COMBINING = "\u0300"
_MAX_FLAG_HALVES = 64
_FLAG_HALVES = "".join(map(chr, range(0x1F1E6, 0x1F200)))


def is_grapheme_boundary(text: str, index: int) -> bool:
    """Say whether `text` may be cut before the character at `index` (0 and the length always are).

    Kept whole are combining marks, emoji joined or toned, flags (up to 32 in a row), tags and Hangul syllables in
    parts: the cases of Unicode UAX #29 that occur in text, without its rules for Indic conjuncts.
    """
    if index <= 0 or index >= len(text):
        return True
    character = text[index]
    if character < _FIRST_COMBINING:
        return True
    if text[index - 1] == _ZERO_WIDTH_JOINER or character == _ZERO_WIDTH_JOINER or _extends(character):
        return False
    return not _is_flag_half(character) or _count_flag_halves_before(text, index) % 2 == 0


def _extends(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Mn", "Mc", "Me")
        or "\u1160" <= character <= "\u11ff"  # Hangul vowels and finals
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= character <= "\U000e007f"  # tags
    )


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _count_flag_halves_before(text: str, index: int) -> int:
    before = text[max(0, index - _MAX_FLAG_HALVES) : index]
    return len(before) - len(before.rstrip(_FLAG_HALVES))
