"""Capitals: names by their capital letters, in Latin, Cyrillic, Greek and other scripts that have them."""

import re
from collections.abc import Iterator, Sequence

from quipu.ingest.local import heads
from quipu.ingest.local.inflection import case_rank
from quipu.ingest.local.lexicon import empty_words, opening_words, word_set, words
from quipu.ingest.local.occurrence import Cue, Occurrence
from quipu.ingest.local.runs import is_date, split_run
from quipu.ingest.local.russian import extend_phrase, is_common_phrase, is_cyrillic, is_plain_noun, is_verb, split_cases
from quipu.ingest.local.tokens import Token, find_runs, run_tokens
from quipu.text.unicode import UNSPACED

MAX_WORDS = 10

# Letters run on into Chinese without a space ("Mate 60手机"): hidden, they are no letters of the name.
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD_BEFORE = re.compile(r"(\w+)\W?\s$")
_NUMERAL = re.compile(r"[ivx]{2,}")
_OPENING = re.compile(r"[\s\"'“”‘’«„(\[*_#>•–—:：-]")
_TAIL = re.compile(r"[ \u00a0]([a-z]+)\b")
_PREPOSITIONS = words("in on at by for from with to of near after before under over into и в на у из")
_ARTICLES = words("the a an")


def find_capitalised(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Occurrence]:
    """Yield the capitalised names of `text`, sentence by sentence ([start, end) in `spans`), in order.

    Lines that are Markdown headings are left out: there, capitals may stand for nothing.
    """
    masked = _UNSPACED.sub("。", text) if _UNSPACED.search(text) else text
    for start, end in spans:
        if text[start] == "#":
            continue
        for match in find_runs(masked, start, end):
            if _is_plain_word(match.group()):
                continue
            yield from _names_of_run(masked, start, match)


def _is_plain_word(run: str) -> bool:
    """Say whether a run is one common English word; most are, so this is asked first."""
    return run.isascii() and run.isalpha() and not run.isupper() and run.casefold() in empty_words()


def _names_of_run(text: str, sentence_start: int, match: re.Match[str]) -> Iterator[Occurrence]:
    tokens = run_tokens(match)
    is_initial = _starts_sentence(text, sentence_start, match.start())
    before = _word_before(text, sentence_start, match.start()) if len(tokens) > 1 else ""
    groups = split_run(tokens, follows_article=before == "the", follows_preposition=before in _PREPOSITIONS)
    for position, group in enumerate(groups):
        opens = is_initial and position == 0
        trimmed = _trim(group, is_initial=opens)
        for name in split_cases(trimmed, before=before if position == 0 else "", is_initial=opens):
            occurrence = _as_occurrence(text, name, is_initial=is_initial and name[0] is tokens[0])
            if occurrence is not None:
                yield occurrence


def _word_before(text: str, floor: int, start: int) -> str:
    match = _WORD_BEFORE.search(text, max(floor, start - 24), start)
    return match.group(1).casefold() if match else ""


def _starts_sentence(text: str, sentence_start: int, start: int) -> bool:
    """Say whether nothing but opening marks stands before `start`, back to the sentence's start or a colon."""
    while start > sentence_start and _OPENING.match(text, start - 1):
        start -= 1
        if text[start] in ":：":
            return True
    return start == sentence_start


def _trim(group: Sequence[Token], *, is_initial: bool) -> list[Token]:
    """Cut articles, sentence openers and offices from the front of a name, and stray connectors from its end."""
    tokens = list(group)
    opening, roles = opening_words(), word_set("roles")
    while tokens and (
        tokens[0].kind == "connector"
        or tokens[0].form in _ARTICLES
        or (is_initial and (tokens[0].form in opening or (len(tokens) > 1 and is_verb(tokens[0].form))))
        or (tokens[0].form == "i" and len(tokens) > 1)
    ):
        del tokens[0]
    while len(_words(tokens)) > 1 and _is_office(tokens, roles):
        del tokens[0]
    if len(tokens) > 1 and tokens[0].kind == "number" and not _keeps_number(tokens):
        del tokens[0]
    return tokens


def _is_office(tokens: Sequence[Token], roles: frozenset[str]) -> bool:
    form = tokens[0].form.rstrip(".")
    if form not in roles or form in heads.ROYAL or len(tokens) < 2 or tokens[1].kind == "connector":
        return False
    rest = _words(tokens[1:])
    if form in heads.OFFICE_OR_NAME:
        return rest[0].form in roles or rest[0].form in word_set("given_names")
    return len(rest) > 1 or rest[0].form in roles or is_cyrillic(form)


def _words(tokens: Sequence[Token]) -> list[Token]:
    return [token for token in tokens if token.kind == "word"]


def _keeps_number(tokens: Sequence[Token]) -> bool:
    return not tokens[0].form[:4].isdigit() or any(token.form in heads.EVENT for token in tokens)


def _as_occurrence(text: str, name: Sequence[Token], *, is_initial: bool) -> Occurrence | None:
    named = _words(name)
    if not named or is_date(name) or len(named) > MAX_WORDS:
        return None
    start, end = name[0].start, name[-1].end
    end = _with_tail(text, end) if not name[-1].owns else end
    start, end = extend_phrase(text, start, end, is_initial=is_initial)
    is_single = len(name) == 1 and (start, end) == (name[0].start, name[0].end)
    if is_single and _is_no_name(text, name[0], is_initial=is_initial):
        return None
    cue = Cue.STARTER if is_initial and is_single else Cue.CAPITALS
    return Occurrence(" ".join(text[start:end].split()), start, end, cue)


def _is_no_name(text: str, word: Token, *, is_initial: bool) -> bool:
    """Say whether one word alone names nothing: a letter, a numeral, or a common word that is no acronym here.

    Inside a sentence a capital makes a name of any Russian noun ("посёлок Ключи").
    """
    if len(word.form) == 1 or _NUMERAL.fullmatch(word.form):
        return True
    form = word.form.rstrip(".")
    if is_cyrillic(form):
        return form in opening_words() or (is_initial and _is_common_russian(text, word))
    return form in empty_words() and not _is_acronym(text, word.start, word.end)


def _is_common_russian(text: str, word: Token) -> bool:
    form = word.form
    if form in empty_words() or is_common_phrase(text, word.start, word.end):
        return True
    return case_rank(form) > 1 and is_plain_noun(form)


def _is_acronym(text: str, start: int, end: int) -> bool:
    """Say whether a word that is common in small letters is an acronym here: in brackets, or one of the usual ones."""
    word = text[start:end]
    return word.isupper() and len(word) > 1 and (word in ("US", "WHO", "UN") or text[start - 1 : start] in ("(", "（"))


def _with_tail(text: str, end: int) -> int:
    match = _TAIL.match(text, end)
    return match.end() if match and match.group(1) in heads.TAILS else end
