"""Capitalised runs: capitalised words with the connectors between them, and where a run splits into names."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile
from typing import NamedTuple

from quipu.ingest.local.lexicon import (
    AND_HEADS,
    DAYS,
    EPITHETS,
    FOR_HEADS,
    IN_HEADS,
    LOCATION_HEADS,
    MONTHS,
    NAME_ENDS,
    OF_HEADS,
    ORGANIZATION_HEADS,
    PLACE_OF_HEADS,
    common_words,
    word_set,
    words,
)

MAX_PARTS = 24


def _capital_ranges() -> str:
    """Return the capital letters of Latin, Greek, Cyrillic, Armenian and Georgian as ranges of a character class."""
    codes = [code for code in range(0x2000) if chr(code).isupper() or chr(code).istitle()]
    runs = [[code for _, code in run] for _, run in groupby(enumerate(codes), key=lambda pair: pair[1] - pair[0])]
    return "".join(chr(run[0]) if len(run) == 1 else f"{chr(run[0])}-{chr(run[-1])}" for run in runs)


_UPPER = _capital_ranges()
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

# Where a run may start. This is searched first, because a search for a set of characters is fast.
_RUN_START = re.compile(f"[{_UPPER}0-9]")
_RUN = re.compile(
    rf"{_LEADING}{_WORD}{_POSSESSIVE}(?:(?:{_SPACE}{_CONNECTOR}){{0,3}}{_SPACE}{_WORD}{_POSSESSIVE}|{_SPACE}{_NUMBER}){{0,{MAX_PARTS}}}"
)
_TOKEN = re.compile(
    rf"(?P<word>{_WORD})(?P<possessive>{_POSSESSIVE})|(?P<connector>{_CONNECTOR})|(?P<number>\d[\w–-]*)"
)
_SMALL_BEFORE = re.compile(rf"(?<![\w.,-]){_SMALL_START}$")
_DIGITS = re.compile(r"\d+")
_CALENDAR_WORDS = MONTHS | DAYS
_ROMAN = re.compile(r"[ivx]{1,5}")
_INITIAL = re.compile(r"\w\.")
_CYRILLIC = re.compile(r"[а-яё]")
_LATIN = re.compile(r"[a-z]")
# After these a possessive belongs to the name: "King's College", "World's Columbian Exposition".
_POSSESSIVE_STARTS = words(
    "king queen prince princess bishop women men children people world mother master bachelor lady lord st"
)
_CLEAR_OFFICES = words("president professor mr mr. mrs mrs. ms ms. dr dr. senator mayor governor ambassador ceo")
_CONDITIONAL_CONNECTORS = words("of and & for in at the имени им.")


class RunToken(NamedTuple):
    """A word, connector ("of", "van") or number of a run. `form` is casefolded.

    It is a tuple because there is one for every capitalised word.
    """

    form: str
    start: int
    end: int
    kind: str  # "word" | "connector" | "number"
    is_possessive: bool = False


def find_runs(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield the runs in [start, end) of `text`: capitalised words and the connectors and numbers that join them."""
    floor = start
    while (capital := _RUN_START.search(text, start, end)) is not None:
        begin = _run_start(text, floor, capital.start())
        match = _RUN.match(text, begin, end) if begin >= 0 else None
        if match is not None:
            yield match
            start = match.end()
        else:
            digits = _DIGITS.match(text, capital.start(), end)
            start = digits.end() if digits else capital.end()


def _run_start(text: str, floor: int, position: int) -> int:
    """Return where the run starts whose first capital or digit is at `position`, -1 if that is inside a word."""
    if position == floor or not (text[position - 1].isalnum() or text[position - 1] in "-'’_.,"):
        return position
    small = _SMALL_BEFORE.search(text, max(floor, position - 4), position)
    if small and not text[position].isdigit():
        return small.start()
    return position if text[position - 1] in "-'’.," and not text[position].isdigit() else -1


def run_tokens(run: re.Match[str]) -> list[RunToken]:
    """Return the tokens of a run."""
    surface = run.group()
    if " " not in surface and surface.isalnum() and not surface[0].isdigit():
        return [RunToken(surface.casefold(), run.start(), run.end(), "word")]
    return [_run_token(match) for match in _TOKEN.finditer(run.string, run.start(), run.end())]


def _run_token(match: re.Match[str]) -> RunToken:
    if match["word"]:
        form = match["word"].casefold().replace("’", "'")
        return RunToken(form, match.start(), match.end("word"), "word", bool(match["possessive"]))
    kind = "connector" if match["connector"] else "number"
    return RunToken(match.group().casefold(), match.start(), match.end(), kind)


class RunContext(NamedTuple):
    """What stands before a run: the article "the", a preposition, or the start of the sentence."""

    follows_article: bool
    follows_preposition: bool
    is_initial: bool


def split_run(tokens: Sequence[RunToken], context: RunContext) -> list[list[RunToken]]:
    """Return the names in a run as lists of tokens, without the connectors between names."""
    groups: list[list[RunToken]] = []
    current: list[RunToken] = []
    connectors: list[RunToken] = []
    for position, token in enumerate(tokens):
        if token.kind == "connector":
            connectors.append(token)
            continue
        if current and _joins(current, connectors, tokens[position:], context):
            current = [*current, *connectors, token]
        else:
            groups.append(current)
            current = [token]
        connectors = []
    groups.append(current)
    return [group for group in groups if group]


def is_date(group: Sequence[RunToken]) -> bool:
    """Return whether tokens are only days, months and numbers."""
    return all(token.kind == "number" or token.form in _CALENDAR_WORDS for token in group)


def _joins(
    left: Sequence[RunToken],
    connectors: Sequence[RunToken],
    right: Sequence[RunToken],
    context: RunContext,
) -> bool:
    """Return whether the token after the connectors belongs to the same name as the tokens before them."""
    if not connectors:
        return _joins_directly(left, right)
    first = connectors[0].form
    if first not in _CONDITIONAL_CONNECTORS:
        return True
    if first == "of":
        return _joins_of(left)
    if first in ("&", "имени", "им."):
        return True
    if first == "and":
        return _joins_and(left, right, context.follows_article)
    if first == "the":
        return right[0].form in EPITHETS or (len(left) == 1 and _takes_the(left[0], context))
    if first == "at":
        return left[0].form == "university" and len(left) > 1
    return left[-1].form in (FOR_HEADS if first == "for" else IN_HEADS)


def _takes_the(first: RunToken, context: RunContext) -> bool:
    """Return whether "the" and a capitalised word belong to the single word before them, as in "Winnie the Pooh".

    Where a sentence starts, that word must be a given name: "Jack the Ripper", but not "Use the Devcontainer".
    """
    return not context.follows_preposition and (not context.is_initial or first.form in word_set("given_names"))


def _joins_directly(left: Sequence[RunToken], right: Sequence[RunToken]) -> bool:
    """Return whether a word or number that follows after a space belongs to the name."""
    last, following = left[-1], right[0]
    if is_date(left) and left[0].kind == "word":
        return following.kind == "number"
    if last.is_possessive:
        return last.form in _POSSESSIVE_STARTS or last.form.endswith("s") or left[0].form.rstrip(".") == "st"
    if following.kind == "number":
        return last.kind != "number"
    if last.kind == "number" and len(last.form) == 4 and len(left) > 1:
        return False
    if _starts_second_name(left, right) or (_INITIAL.fullmatch(last.form) and not _takes_initial(left[:-1])):
        return False
    return not _changes_script(last.form, following.form)


def _starts_second_name(left: Sequence[RunToken], right: Sequence[RunToken]) -> bool:
    """Return whether a person's name follows a complete name: "Second World War | Michael Ventris"."""
    if len(left) < 2 or len(right) < 2 or right[1].kind != "word":
        return False
    starts_person = right[0].form in word_set("given_names") or right[0].form in _CLEAR_OFFICES
    return starts_person and left[-1].form in NAME_ENDS


def _takes_initial(before: Sequence[RunToken]) -> bool:
    """Return whether "W." after the given words is an initial, not the end of a sentence: "George W.", "Mac OS X."."""
    if not before or _INITIAL.fullmatch(before[-1].form) or before[0].form in word_set("given_names"):
        return True
    return len(before) == 1 and before[0].form not in common_words("en")


def _changes_script(left: str, right: str) -> bool:
    if _ROMAN.fullmatch(right) or len(right) == 1:
        return False
    return bool((_CYRILLIC.match(left) and _LATIN.match(right)) or (_LATIN.match(left) and _CYRILLIC.match(right)))


def _joins_of(left: Sequence[RunToken]) -> bool:
    last = left[-1].form
    if len(left) == 1:
        return last not in word_set("demonyms")
    if last in PLACE_OF_HEADS and left[0].form not in ("united", "federal", "rural", "regional", "republic"):
        return False
    return last in OF_HEADS


def _joins_and(left: Sequence[RunToken], right: Sequence[RunToken], follows_article: bool) -> bool:
    if any(token.form in ("of", "for") for token in left) and any(
        token.form in AND_HEADS for token in left[:3] if token.kind == "word"
    ):
        return left[-1].form not in LOCATION_HEADS
    following = [token.form for token in takewhile(lambda token: token.kind != "connector", right)]
    return (
        follows_article
        and len(following) > 1
        and following[-1] in ORGANIZATION_HEADS
        and left[-1].form not in ORGANIZATION_HEADS | LOCATION_HEADS
        and not left[-1].form.isupper()
    )
