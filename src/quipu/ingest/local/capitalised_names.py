"""Capitalised names: names found by their capital letters, in Latin, Cyrillic, Greek and other scripts with case."""

import re
from collections.abc import Iterator, Sequence

from quipu.ingest.local.capitalised_runs import RunToken, find_runs, is_date, run_tokens, split_run
from quipu.ingest.local.lexicon import (
    AMBIGUOUS_OFFICES,
    EVENT_HEADS,
    LOWER_CASE_HEADS,
    ROYAL_TITLES,
    common_words,
    is_common_word,
    is_cyrillic,
    is_sentence_opener,
    word_set,
    words,
)
from quipu.ingest.local.occurrences import Cue, Occurrence
from quipu.ingest.local.script_rules import russian_rules
from quipu.text.unicode import UNSPACED

MAX_WORDS = 10

# Letters may touch Chinese text without a space ("Mate 60手机"). It is masked, so that it does not belong to the name.
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD_BEFORE = re.compile(r"(\w+)\W?\s$")
_ROMAN_NUMERAL = re.compile(r"[ivx]{2,}")
_OPENING_MARK = re.compile(r"[\s\"'“”‘’«„(\[*_#>•–—:：-]")
_LOWER_CASE_WORD = re.compile(r"[ \u00a0]([a-z]+)\b")
_PREPOSITIONS = words("in on at by for from with to of near after before under over into и в на у из")
_ARTICLES = words("the a an")


def find_capitalised(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Occurrence]:
    """Yield the capitalised names of `text` in order; `spans` are the [start, end) of its sentences.

    Markdown headings are skipped, because capitals do not show names there.
    """
    masked = _UNSPACED.sub("。", text) if _UNSPACED.search(text) else text
    for start, end in spans:
        if text[start] == "#":
            continue
        for run in find_runs(masked, start, end):
            if not _is_common_english(run.group()):
                yield from _names_of_run(masked, start, run)


def _is_common_english(run: str) -> bool:
    """Return whether a run is one common English word. Most runs are, so this is checked first."""
    return run.isascii() and run.isalpha() and not run.isupper() and run.casefold() in common_words("en")


def _names_of_run(text: str, sentence_start: int, run: re.Match[str]) -> Iterator[Occurrence]:
    tokens = run_tokens(run)
    is_initial = _starts_sentence(text, sentence_start, run.start())
    before = _word_before(text, sentence_start, run.start()) if len(tokens) > 1 else ""
    groups = split_run(tokens, follows_article=before == "the", follows_preposition=before in _PREPOSITIONS)
    for position, group in enumerate(groups):
        is_first = is_initial and position == 0
        for name in _split_cases(_trim(group, is_initial=is_first), before if position == 0 else "", is_first):
            occurrence = _as_occurrence(text, name, is_initial=is_initial and name[0] is tokens[0])
            if occurrence is not None:
                yield occurrence


def _word_before(text: str, floor: int, start: int) -> str:
    match = _WORD_BEFORE.search(text, max(floor, start - 24), start)
    return match.group(1).casefold() if match else ""


def _starts_sentence(text: str, sentence_start: int, start: int) -> bool:
    """Return whether only opening marks stand between `start` and the sentence's start or a colon."""
    while start > sentence_start and _OPENING_MARK.match(text, start - 1):
        start -= 1
        if text[start] in ":：":
            return True
    return start == sentence_start


def _split_cases(tokens: list[RunToken], before: str, is_initial: bool) -> list[list[RunToken]]:
    if len(tokens) > 1 and is_cyrillic(tokens[0].form):
        return russian_rules().split_cases(tokens, before=before, is_initial=is_initial)
    return [tokens] if tokens else []


def _trim(group: Sequence[RunToken], *, is_initial: bool) -> list[RunToken]:
    """Return a name without leading articles, sentence openers, offices and connectors."""
    tokens = list(group)
    while tokens and (
        tokens[0].kind == "connector"
        or tokens[0].form in _ARTICLES
        or (is_initial and _opens_sentence(tokens))
        or (tokens[0].form == "i" and len(tokens) > 1)
    ):
        del tokens[0]
    while len(_words(tokens)) > 1 and _starts_with_office(tokens):
        del tokens[0]
    if len(tokens) > 1 and tokens[0].kind == "number" and not _keeps_number(tokens):
        del tokens[0]
    return tokens


def _opens_sentence(tokens: Sequence[RunToken]) -> bool:
    form = tokens[0].form
    return is_sentence_opener(form) or (len(tokens) > 1 and is_cyrillic(form) and russian_rules().is_verb(form))


def _starts_with_office(tokens: Sequence[RunToken]) -> bool:
    """Return whether the first word is an office before a person's name, as in "President Ada Ortiz"."""
    roles = word_set("roles")
    form = tokens[0].form.rstrip(".")
    if form not in roles or form in ROYAL_TITLES or len(tokens) < 2 or tokens[1].kind == "connector":
        return False
    rest = _words(tokens[1:])
    if form in AMBIGUOUS_OFFICES:
        return rest[0].form in roles or rest[0].form in word_set("given_names")
    return len(rest) > 1 or rest[0].form in roles or is_cyrillic(form)


def _words(tokens: Sequence[RunToken]) -> list[RunToken]:
    return [token for token in tokens if token.kind == "word"]


def _keeps_number(tokens: Sequence[RunToken]) -> bool:
    return not tokens[0].form[:4].isdigit() or any(token.form in EVENT_HEADS for token in tokens)


def _as_occurrence(text: str, name: Sequence[RunToken], *, is_initial: bool) -> Occurrence | None:
    name_words = _words(name)
    if not name_words or is_date(name) or len(name_words) > MAX_WORDS:
        return None
    start, end = name[0].start, name[-1].end
    if not name[-1].is_possessive:
        end = _extend_over_head(text, end)
    if is_cyrillic(text[start].casefold()):
        start, end = russian_rules().extend_name(text, start, end, is_initial=is_initial)
    is_single = len(name) == 1 and (start, end) == (name[0].start, name[0].end)
    if is_single and _names_nothing(text, name[0], is_initial=is_initial):
        return None
    cue = Cue.SENTENCE_START if is_initial and is_single else Cue.CAPITALS
    return Occurrence(" ".join(text[start:end].split()), start, end, cue)


def _extend_over_head(text: str, end: int) -> int:
    match = _LOWER_CASE_WORD.match(text, end)
    return match.end() if match and match.group(1) in LOWER_CASE_HEADS else end


def _names_nothing(text: str, word: RunToken, *, is_initial: bool) -> bool:
    """Return whether a single word is not a name: a letter, a numeral, or a common word that is not an acronym here.

    Inside a sentence, a capital makes a name of any Russian noun ("посёлок Ключи").
    """
    if len(word.form) == 1 or _ROMAN_NUMERAL.fullmatch(word.form):
        return True
    form = word.form.rstrip(".")
    if is_cyrillic(form):
        return is_sentence_opener(form) or (is_initial and russian_rules().is_common_word(text, word))
    return is_common_word(form) and not _is_acronym(text, word.start, word.end)


def _is_acronym(text: str, start: int, end: int) -> bool:
    """Return whether a word in capitals that is also a common word is an acronym: a known one, or one in brackets."""
    word = text[start:end]
    return word.isupper() and len(word) > 1 and (word in ("US", "WHO", "UN") or text[start - 1 : start] in ("(", "（"))
