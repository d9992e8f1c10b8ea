"""Capitalised names: names found by their capital letters, in Latin, Cyrillic, Greek and other scripts with case."""

import re
from collections.abc import Iterator, Sequence

from quipu.ingest.local.capitalised_runs import RunContext, RunToken, find_runs, is_date, run_tokens, split_run
from quipu.ingest.local.lexicon import (
    AMBIGUOUS_OFFICES,
    EVENT_HEADS,
    LOWER_CASE_HEADS,
    MONTHS,
    NAME_ENDS,
    ROYAL_TITLES,
    common_words,
    is_common_word,
    is_cyrillic,
    is_function_word,
    is_sentence_opener,
    word_set,
    words,
)
from quipu.ingest.local.occurrences import Cue, Occurrence
from quipu.ingest.local.script_rules import russian_rules
from quipu.text.unicode import UNSPACED

MAX_WORDS = 10
MAX_BARE_WORDS = 5  # without "of", "and" or the like
MIN_EMPHASIS = 4

# Letters may touch Chinese text without a space ("Mate 60手机"). It is masked, so that it does not belong to the name.
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD_BEFORE = re.compile(r"(\w+)\W?\s$")
_INITIAL = re.compile(r"\w\.")
_LIST_NUMBER = re.compile(r"\(?(?:\d{1,3}|[a-zа-я])[.)]\s+")
_NUMBER_FOLLOWS = re.compile(r",? +[-–$]?\d")
_ROMAN_NUMERAL = re.compile(r"[ivx]{2,}")
_OPENING_MARK = re.compile(r"[\s\"'“”‘’«„(\[*_#>•–—:：|`-]")
_BREAK_OF_SPEECH = re.compile(r"[\"'“”‘’»—–-][ \t]*\n\s*$")
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
        number = _LIST_NUMBER.match(masked, start, end)
        begin = number.end() if number else start
        for run in find_runs(masked, begin, end):
            if not _is_common_english(run.group()):
                yield from _names_of_run(masked, begin, run)


def _is_common_english(run: str) -> bool:
    """Return whether a run is one common English word. Most runs are, so this is checked first."""
    return run.isascii() and run.isalpha() and not run.isupper() and run.casefold() in common_words("en")


def _names_of_run(text: str, sentence_start: int, run: re.Match[str]) -> Iterator[Occurrence]:
    tokens = run_tokens(run)
    is_initial = _starts_sentence(text, sentence_start, run.start()) or _opens_line(text, tokens[0])
    before = _word_before(text, sentence_start, run.start()) if len(tokens) > 1 else ""
    groups = split_run(tokens, RunContext(before == "the", before in _PREPOSITIONS, is_initial))
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
        if text[start] in ":：|":
            return True
    return start == sentence_start


def _opens_line(text: str, first: RunToken) -> bool:
    """Return whether a word that begins sentences follows speech or a dash at a line break: "'Yes----'\\nHere he"."""
    return _BREAK_OF_SPEECH.search(text, max(0, first.start - 8), first.start) is not None and is_sentence_opener(
        first.form
    )


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
    if len(tokens) > 2 and tokens[-1].kind == "number" and tokens[-2].form in MONTHS:
        del tokens[-2:]
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
    if not name_words or is_date(name) or len(name_words) > MAX_WORDS or _is_emphasis(text, name_words):
        return None
    if len(name) == len(name_words) > MAX_BARE_WORDS and name[-1].form not in NAME_ENDS:
        return None  # a row of headings
    if _is_doubled(text, name):
        name = name[1:]
    if name[-1].kind == "number" and not _keeps_last_number(text, name, is_initial=is_initial):
        name = name[:-1]
    start, end = name[0].start, name[-1].end
    if len(name_words) > 1 and _INITIAL.fullmatch(name[-1].form):
        end -= 1  # the dot ends the sentence
    elif not name[-1].is_possessive:
        end = _extend_over_head(text, end)
    if is_cyrillic(text[start].casefold()):
        start, end = russian_rules().extend_name(text, start, end, is_initial=is_initial)
    is_single = len(name) == 1 and (start, end) == (name[0].start, name[0].end)
    if is_single and _names_nothing(text, name[0], is_initial=is_initial):
        return None
    cue = Cue.SENTENCE_START if is_initial and is_single else Cue.CAPITALS
    return Occurrence(" ".join(text[start:end].split()), start, end, cue)


def _is_doubled(text: str, name: Sequence[RunToken]) -> bool:
    """Return whether a word stands twice in a row by chance, as in "called Scrooge Scrooge", but not "Duran Duran"."""
    if len(name) != 2 or name[0].form != name[1].form:
        return False
    once, twice = text[name[1].start : name[1].end], text[name[0].start : name[1].end]
    return text.count(once) > 2 * text.count(twice)


def _keeps_last_number(text: str, name: Sequence[RunToken], *, is_initial: bool) -> bool:
    """Return whether a name keeps its last number: not in a row of numbers, nor in a label at the start ("Page 1")."""
    is_common = is_initial and len(name) == 2 and name[0].form in common_words("en")
    return not is_common and not _NUMBER_FOLLOWS.match(text, name[-1].end)


def _is_emphasis(text: str, name_words: Sequence[RunToken]) -> bool:
    """Return whether words are in capitals only to stress them: "OR ELSE THE", or "REPO" where "repo" stands too."""
    if any(len(word.form) > 1 and not text[word.start : word.end].isupper() for word in name_words):
        return False
    if len(name_words) > 1:
        return any(len(word.form) > 1 and is_function_word(word.form) for word in name_words)
    form = name_words[0].form
    if len(form) < MIN_EMPHASIS or not form.isalpha():
        return False
    return re.search(rf"(?<!\w)(?:{form}|{form.capitalize()})(?!\w)", text) is not None


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
