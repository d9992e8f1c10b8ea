"""Tokens: the pieces of a capitalised run, and the patterns that find them in scripts with capitals."""

import re
from dataclasses import dataclass

# Capitals of the Latin, Greek, Cyrillic, Armenian and Georgian alphabets, with their extensions.
_UPPER = "".join(c for c in map(chr, range(0x2000)) if c.isupper() or c.istitle())
_SPACE = r"(?:[ \t\u00a0]{1,2}|[ \t]?\n[ \t]{0,8})"
_ABBREVIATION = r"(?:St|Mt|Ft|Dr|Mr|Mrs|Ms|Prof|Lt|Col|Gen|Capt|Sgt|Rev|Jr|Sr|Bros|Inc|Co|Ltd|Corp|No)\."
_WORD = (
    rf"(?:(?:[{_UPPER}]\.){{2,6}}[{_UPPER}]?(?!\w)|[{_UPPER}]\.(?={_SPACE}?[{_UPPER}])|{_ABBREVIATION}"
    rf"|(?<!\w)(?:[dlDL]['’]|al-|el-)?[a-z]{{0,2}}[{_UPPER}][\w]*(?:[-‐‑&]\w+|['’ʼ](?![sS]\b)\w+|\.[a-z]{{2,3}}\b)*+(?:\+\+|\#)?)"
)
_PARTICLES = (
    "de|del|della|delle|dei|degli|di|da|do|dos|das|du|des|la|las|los|le|les|lo|el|van|von|vom|der|den|het|ter|ten|zu|"
    "zur|zum|am|y|e|et|und|och|af|av|bin|ibn|bint|ben|ul|al|upon|'s|фон|дер|ван|де|ди|да|ла|ле|ибн|бен|аль|оглы|кызы"
)
_JOINERS = "of|and|&|for|in|at|the|имени|им\\."
_POSSESSIVE = r"(?:['’ʼ]s\b|(?<=[sS])['’ʼ](?=\s)|(?<=\bde)['’ʼ])?"
_CONNECTOR = rf"(?:(?:{_PARTICLES}|{_JOINERS})(?:['’](?=\s))?(?![\w'’-]))"
_NUMBER = r"\d{1,4}(?:[A-Za-z]\b|\b)(?![.,:–-]?\d|%|\s(?:million|billion|trillion|thousand|percent|per|years?|people|times|days|km|m|kg|[а-яё]\w*|[a-z]{3,}s)\b)"
_LEADING = r"(?:(?<![\w.,-])(?:(?:1[4-9]|20)\d\d(?:[-–]\d\d)?|\d{1,3}(?:st|nd|rd|th)) )?"

RUN = re.compile(
    rf"{_LEADING}{_WORD}{_POSSESSIVE}(?:(?:{_SPACE}{_CONNECTOR}){{0,3}}{_SPACE}{_WORD}{_POSSESSIVE}|{_SPACE}{_NUMBER})*"
)
_TOKEN = re.compile(rf"(?P<word>{_WORD})(?P<possessive>{_POSSESSIVE})|(?P<connector>{_CONNECTOR})|(?P<number>\d[\w–-]*)")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, connector ("of", "van") or number of a run; `form` is casefolded, `owns` marks a possessive."""

    form: str
    start: int
    end: int
    kind: str  # "word" | "connector" | "number"
    owns: bool = False


def run_tokens(match: re.Match[str]) -> list[Token]:
    """Return the tokens of a match of `RUN`."""
    text, end = match.string, match.end()
    return [_token(found) for found in _TOKEN.finditer(text, match.start(), end)]


def _token(found: re.Match[str]) -> Token:
    if found["word"]:
        return Token(found["word"].casefold(), found.start(), found.end("word"), "word", bool(found["possessive"]))
    kind = "connector" if found["connector"] else "number"
    return Token(found.group().casefold(), found.start(), found.end(), kind)
