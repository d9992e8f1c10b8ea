"""Runs: where a run of capitalised words and the connectors between them falls apart into single names."""

import re
from collections.abc import Sequence
from itertools import takewhile

from quipu.ingest.local import heads
from quipu.ingest.local.lexicon import word_set, words
from quipu.ingest.local.tokens import Token

_CALENDAR = heads.MONTHS | heads.DAYS
_ROMAN = re.compile(r"[ivx]{1,5}")
_CYRILLIC = re.compile(r"[а-яё]")
_LATIN = re.compile(r"[a-z]")
# A possessive that belongs to the name: "King's College", "World's Columbian Exposition".
_OWNERS = words("king queen prince princess bishop women men children people world mother master bachelor lady lord st")
_COMPARED = words("of and & for in at the имени им.")


def split_run(tokens: Sequence[Token], *, follows_article: bool, follows_preposition: bool) -> list[list[Token]]:
    """Return the names in a run, each as its tokens; connectors between names are dropped."""
    groups: list[list[Token]] = []
    current: list[Token] = []
    connectors: list[Token] = []
    for position, token in enumerate(tokens):
        if token.kind == "connector":
            connectors.append(token)
            continue
        if current and _joins(current, connectors, tokens[position:], follows_article, follows_preposition):
            current = [*current, *connectors, token]
        else:
            groups.append(current)
            current = [token]
        connectors = []
    groups.append(current)
    return [group for group in groups if group]


def is_date(group: Sequence[Token]) -> bool:
    """Say whether the group is a day or month, with or without numbers, or numbers alone."""
    return all(token.kind == "number" or token.form in _CALENDAR for token in group)


def _joins(
    left: Sequence[Token],
    connectors: Sequence[Token],
    right: Sequence[Token],
    follows_article: bool,
    follows_preposition: bool,
) -> bool:
    if not connectors:
        return _touches(left, right[0])
    first = connectors[0].form
    if first not in _COMPARED:
        return True
    if first == "of":
        return _joins_of(left)
    if first in ("&", "имени", "им."):
        return True
    if first == "and":
        return _joins_and(left, right, follows_article)
    if first == "the":
        return right[0].form in heads.EPITHETS or (len(left) == 1 and not follows_preposition)
    if first == "at":
        return left[0].form == "university" and len(left) > 1
    return left[-1].form in (heads.FOR_HEADS if first == "for" else heads.IN_HEADS)


def _touches(left: Sequence[Token], right: Token) -> bool:
    """Say whether a word or number that follows with nothing but space between belongs to the name."""
    last = left[-1]
    if is_date(left) and left[0].kind == "word":
        return right.kind == "number"
    if last.owns:
        return last.form in _OWNERS or last.form.endswith("s") or left[0].form.rstrip(".") == "st"
    if right.kind == "number":
        return True
    if last.kind == "number" and len(last.form) == 4 and len(left) > 1:
        return False
    return not _changes_script(last.form, right.form)


def _changes_script(left: str, right: str) -> bool:
    if _ROMAN.fullmatch(right) or len(right) == 1:
        return False
    return bool((_CYRILLIC.match(left) and _LATIN.match(right)) or (_LATIN.match(left) and _CYRILLIC.match(right)))


def _joins_of(left: Sequence[Token]) -> bool:
    last = left[-1].form
    if len(left) == 1:
        return last not in word_set("demonyms")
    if last in heads.PLACE_OF and left[0].form not in ("united", "federal", "rural", "regional", "republic"):
        return False
    return last in heads.OF_HEADS


def _joins_and(left: Sequence[Token], right: Sequence[Token], follows_article: bool) -> bool:
    if any(token.form in ("of", "for") for token in left) and any(
        token.form in heads.AND_HEADS for token in left[:3] if token.kind == "word"
    ):
        return left[-1].form not in heads.LOCATION
    following = _words_before_connector(right)
    return (
        follows_article
        and len(following) > 1
        and following[-1] in heads.ORGANIZATION
        and left[-1].form not in heads.ORGANIZATION | heads.LOCATION
        and not left[-1].form.isupper()
    )


def _words_before_connector(tokens: Sequence[Token]) -> list[str]:
    return [token.form for token in takewhile(lambda token: token.kind != "connector", tokens)]
