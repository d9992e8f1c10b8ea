"""Tokens: runs of capitalised words with the connectors between them, and the pieces they are made of."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

MAX_PARTS = 24


def _capitals() -> str:
    """Return the capitals of Latin, Greek, Cyrillic, Armenian and Georgian, as ranges of a character class."""
    codes = [code for code in range(0x2000) if chr(code).isupper() or chr(code).istitle()]
    runs = [[code for _, code in run] for _, run in groupby(enumerate(codes), key=lambda pair: pair[1] - pair[0])]
    return "".join(chr(run[0]) if len(run) == 1 else f"{chr(run[0])}-{chr(run[-1])}" for run in runs)


_UPPER = _capitals()
_SPACE = r"(?:[ \t\u00a0]{1,2}|[ \t]?\n[ \t]{0,8})"
_ABBREVIATION = r"(?:St|Mt|Ft|Dr|Mr|Mrs|Ms|Prof|Lt|Col|Gen|Capt|Sgt|Rev|Jr|Sr|Bros|Inc|Co|Ltd|Corp|No)\."
# Small letters that begin a name: iPhone, mRNA, d'Arc, al-Khwarizmi.
_SMALL_START = r"(?:[dlDL]['’]|al-|el-|[a-z]{1,2})"
# A hyphen belongs to the name unless a common word follows it: "Saxe-Coburg", but "Toronto|-based".
_HYPHENATED = (
    r"[-‐‑](?!(?:based|born|speaking|winning|area|era|style|led|owned|language|like|only|inspired|wide|backed|trained|"
    r"occupied|controlled|related|made|bound|class|level|type|centric|elect|turned)\b)\w+"
)
_WORD = (
    rf"(?:(?:[{_UPPER}]\.){{2,6}}[{_UPPER}]?(?!\w)|[{_UPPER}]\.(?={_SPACE}?[{_UPPER}])|{_ABBREVIATION}"
    rf"|(?<!\w){_SMALL_START}?[{_UPPER}]\w*(?:{_HYPHENATED}|&\w+|['’ʼ](?![sS]\b)\w+|\.[a-z]{{2,3}}\b)*(?:\+\+|\#)?)"
)
_PARTICLES = (
    "de|del|della|delle|dei|degli|di|da|do|dos|das|du|des|la|las|los|le|les|lo|el|van|von|vom|der|den|het|ter|ten|zu|"
    "zur|zum|am|y|e|et|und|och|af|av|bin|ibn|bint|ben|ul|al|upon|фон|дер|ван|де|ди|да|ла|ле|ибн|бен|аль|оглы|кызы"
)
_JOINERS = r"of|and|&|for|in|at|the|имени|им\."
_CONNECTOR = rf"(?:(?:{_PARTICLES}|{_JOINERS})(?:['’](?=\s))?(?![\w'’-]))"
_POSSESSIVE = r"(?:['’ʼ]s\b|(?<=[sS])['’ʼ](?=\s))?"
_UNITS = "million|billion|trillion|thousand|percent|per|years?|people|times|days|km|m|kg"
_NUMBER = rf"\d{{1,4}}(?:[A-Za-z]\b|\b)(?![.,:–-]?\d|%|\s(?:{_UNITS}|[а-яё]\w*|[a-z]{{3,}}s)\b)"
_LEADING = r"(?:(?:(?:1[4-9]|20)\d\d(?:[-–]\d\d)?|\d{1,3}(?:st|nd|rd|th)) )?"

# Where a run may start: found first, because a search for a plain set of characters is fast.
_START = re.compile(f"[{_UPPER}0-9]")
_RUN = re.compile(
    rf"{_LEADING}{_WORD}{_POSSESSIVE}(?:(?:{_SPACE}{_CONNECTOR}){{0,3}}{_SPACE}{_WORD}{_POSSESSIVE}|{_SPACE}{_NUMBER}){{0,{MAX_PARTS}}}"
)
_TOKEN = re.compile(
    rf"(?P<word>{_WORD})(?P<possessive>{_POSSESSIVE})|(?P<connector>{_CONNECTOR})|(?P<number>\d[\w–-]*)"
)
_SMALL_BEFORE = re.compile(rf"(?<![\w.,-]){_SMALL_START}$")
_DIGITS = re.compile(r"\d+")


class Token(NamedTuple):
    """A word, connector ("of", "van") or number of a run; `form` is casefolded, `owns` marks a possessive.

    A tuple, as there is one for every capitalised word.
    """

    form: str
    start: int
    end: int
    kind: str  # "word" | "connector" | "number"
    owns: bool = False


def find_runs(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield the runs of capitalised words in [start, end) of `text`: names, and what only connectors join to them."""
    floor = start
    while (found := _START.search(text, start, end)) is not None:
        begin = _run_start(text, floor, found.start())
        match = _RUN.match(text, begin, end) if begin >= 0 else None
        if match is not None:
            yield match
            start = match.end()
        else:
            digits = _DIGITS.match(text, found.start(), end)
            start = digits.end() if digits else found.end()


def _run_start(text: str, floor: int, position: int) -> int:
    """Return where the run whose first capital or digit is at `position` begins, -1 inside another word."""
    if position == floor or not (text[position - 1].isalnum() or text[position - 1] in "-'’_.,"):
        return position
    small = _SMALL_BEFORE.search(text, max(floor, position - 4), position)
    if small and not text[position].isdigit():
        return small.start()
    return position if text[position - 1] in "-'’.," and not text[position].isdigit() else -1


def run_tokens(match: re.Match[str]) -> list[Token]:
    """Return the tokens of a run."""
    run = match.group()
    if " " not in run and run.isalnum() and not run[0].isdigit():
        return [Token(run.casefold(), match.start(), match.end(), "word")]
    return [_token(found) for found in _TOKEN.finditer(match.string, match.start(), match.end())]


def _token(found: re.Match[str]) -> Token:
    if found["word"]:
        return Token(
            found["word"].casefold().replace("’", "'"),
            found.start(),
            found.end("word"),
            "word",
            bool(found["possessive"]),
        )
    return Token(found.group().casefold(), found.start(), found.end(), "connector" if found["connector"] else "number")
