"""Candidates: the occurrences of a chunk grouped by name, and how salient each name is in the chunk."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2

from quipu.ingest.local.lexicon import word_set
from quipu.ingest.local.occurrences import CUE_RANKS, Cue, Occurrence
from quipu.ingest.local.script_rules import case_rank, has_russian_letter, stem_name
from quipu.text.names import entity_key

MAX_PERSON_WORDS = 4
SHORT_TOKENS = 200
SHORT_LIMIT = 14
LONG_TOKENS = 1_200
LONG_LIMIT = 40

_OUTSIDE_TEXT = frozenset((Cue.TITLE, Cue.SUBJECT, Cue.HEADING))
_INDIVISIBLE = frozenset((Cue.QUOTED, Cue.SPEAKER))
_WORD = re.compile(r"[\w'’-]+")
_CAMEL = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)?")
_COMMON_ENDING = re.compile(
    r"\w+(?:ing|ed|ly|tion|ment|ness|ность|ности|ение|ания|ание|ство|ция|ции|[аиея]л(?:а|и)?|ться|ишь|ешь|йте)"
)
_PLURAL = re.compile(r"\w{2,}[^suia\W]s")
_SINGULAR_CONTEXT = re.compile(r"\s+(?:is|was|has|does)\b|['’]|,")
# What follows a name that starts a sentence: a possessive, a verb, or the next name of a list.
_VERB = (
    r"is|was|has|had|does|did|will|would|can|could|may|might|must|should|also|became|becomes|began|says?|said|told|went|"
    r"came|made|wrote|took|gave|won|lost|led|left|built|held|grew|met|saw|knew|found|ran|fell|rose|\w{2,}ed|"
    r"\w{3,}s(?= (?:an?|the|its?|his|her|their|to|for|that|in|on|of|with|as|by|from|over|up|off|out|only|all|no)\b)"
)
_NAME_CONTEXT = re.compile(
    rf"['’]s?\b|\s+(?:{_VERB})\b|\s+(?:and|or|&)\s+[^\W\d_a-zа-яё]"
    r"|,\s+(?:an?|the|who|which|whose|also|born|known|then|now)\b"
    r"|,\s+[^\W\d_a-zа-яё][\w-]+(?:,|\s+(?:and|or)\b)|\s\((?:[A-ZА-ЯЁ]|born\b|or\b|also\b)"
)
_RUSSIAN_NAME_CONTEXT = re.compile(
    r"\s+(?:(?:не|уже|ещё|снова|опять|также|впервые|\w{3,}о) )?"
    r"(?:[—–]|это\b|\w+[аяиеёуы]л[аои]?(?:с[ья])?\b|\w+(?:[еи]т|[уюая]т)(?:ся)?\b|и\s+[А-ЯЁA-Z])"
    r"|,\s+(?:котор\w+|город|столица|[А-ЯЁ][\w-]+(?:,|\s+и\b))|\s\([А-ЯЁA-Z]"
)
_RUSSIAN_VERB = re.compile(r"\w+(?:ть|тся|[аяуе]ет|ют|ите|йте|л[аои]?с[ья]|ил[аои]?|ал[аои])")
# A word of one script inside a sentence of another: "Ozon закрыл", "Python语言".
_OTHER_SCRIPT = re.compile(r"\s?[а-яё\u3400-\u9fff]")
_SALIENCE_BY_CUE = {
    Cue.TITLE: 9.0,
    Cue.SUBJECT: 7.0,
    Cue.SPEAKER: 6.0,
    Cue.HEADING: 5.0,
    Cue.QUOTED: 4.5,
    Cue.CAPITALS: 4.0,
    Cue.CHINESE: 4.0,
    Cue.SENTENCE_START: 3.0,
    Cue.UNKNOWN_CHINESE: 2.0,
    Cue.TERM: 2.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A name that may become an entity, with all its spans in the text in order.

    `cue` is its strongest cue. `type` is the entity type if an occurrence shows it, else "". `name_span` is the first
    span that has the name in this form, (0, 0) if there is none.
    """

    key: str
    name: str
    cue: Cue
    type: str
    spans: tuple[tuple[int, int], ...]
    name_span: tuple[int, int]


def fold_occurrences(text: str, occurrences: Iterable[Occurrence]) -> list[Candidate]:
    """Return one candidate per name, the title's first, then by first span.

    Case forms and short forms of a name belong to one candidate. A name inside a longer name counts only for the
    longer one.
    """
    ordered = _without_overlaps(occurrences)
    keys = {name: entity_key(name) for name in dict.fromkeys(o.name for o in ordered)}
    groups: dict[str, list[Occurrence]] = {}
    for occurrence in ordered:
        key = keys[occurrence.name]
        if key and not key.isdigit():
            groups.setdefault(stem_name(key), []).append(occurrence)
    candidates = [_fold_group(group, keys) for group in groups.values()]
    words: frozenset[str] = frozenset()
    if any(candidate.cue is Cue.SENTENCE_START for candidate in candidates):
        words = frozenset(_WORD.findall(text))
    names = [c for c in candidates if c.cue is not Cue.SENTENCE_START or _is_name(text, c, words)]
    return sorted(_merge_short_forms(names), key=lambda c: (c.cue is not Cue.TITLE, c.spans[:1]))


def _without_overlaps(occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    """Return the occurrences without overlaps. Quoted names win, then longer ones, then earlier ones.

    Names from the title or a heading never overlap and come first.
    """
    ordered = sorted(
        occurrences, key=lambda o: (o.start, o.cue not in _INDIVISIBLE, -o.end, CUE_RANKS[o.cue], not o.type)
    )
    inside: list[Occurrence] = []
    outside: list[Occurrence] = []
    for occurrence in ordered:
        if occurrence.cue in _OUTSIDE_TEXT:
            outside.append(occurrence)
        elif not inside or occurrence.start >= inside[-1].end:
            inside.append(occurrence)
        elif occurrence.cue in _INDIVISIBLE and inside[-1].cue not in _INDIVISIBLE and occurrence.end > inside[-1].end:
            inside[-1] = occurrence
    return [*outside, *inside]


def _fold_group(group: Sequence[Occurrence], keys: Mapping[str, str]) -> Candidate:
    """Return one candidate for the occurrences of one name. Its form is from the title or near the nominative."""
    form = group[0]
    if len(group) > 1:
        form = min(group, key=lambda o: (o.cue is not Cue.TITLE, case_rank(keys[o.name]), o.start))
    key = keys[form.name]
    return Candidate(
        key=key,
        name=form.name,
        cue=min((o.cue for o in group), key=CUE_RANKS.__getitem__),
        type=next((o.type for o in group if o.type), ""),
        spans=tuple(sorted({(o.start, o.end) for o in group if o.end})),
        name_span=min(((o.start, o.end) for o in group if o.end and keys[o.name] == key), default=(0, 0)),
    )


def _is_name(text: str, candidate: Candidate, words: frozenset[str]) -> bool:
    """Return whether a word that is capitalised only where a sentence starts is a name.

    A word of ordinary letters needs a sign: it is a known given name or place, or the words after it fit a name.
    """
    form = candidate.name.casefold()
    if not candidate.name[1:].islower():
        return form not in words
    if not words.isdisjoint((form, f"{form}s", form.removesuffix("s"))):
        return False
    if form in word_set("given_names") or stem_name(form) in word_set("places"):
        return True
    if has_russian_letter(form):
        return _is_russian_name(text, candidate, words)
    if any(_OTHER_SCRIPT.match(text, end) for _, end in candidate.spans):
        return True
    if _COMMON_ENDING.fullmatch(form):
        return False
    signs = _SINGULAR_CONTEXT if _PLURAL.fullmatch(form) else _NAME_CONTEXT
    return any(signs.match(text, end) for _, end in candidate.spans)


def _is_russian_name(text: str, candidate: Candidate, words: frozenset[str]) -> bool:
    form = candidate.name.casefold()
    if _COMMON_ENDING.fullmatch(form) or _RUSSIAN_VERB.fullmatch(form):
        return False
    stem = stem_name(form)
    if any(word[:2] == form[:2] and word.islower() and stem_name(word) == stem for word in words):
        return False
    return any(_RUSSIAN_NAME_CONTEXT.match(text, end) for _, end in candidate.spans)


def _merge_short_forms(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Merge a surname, first name or spaced form into the person it belongs to, if only one person fits."""
    owners: dict[str, list[str]] = {}
    for candidate in candidates:
        for short in _short_forms(candidate):
            owners.setdefault(short, []).append(candidate.key)
    merged = {candidate.key: candidate for candidate in candidates}
    for candidate in candidates:
        owner = owners.get(candidate.key, [])
        if len(owner) == 1 and owner[0] != candidate.key and owner[0] in merged:
            full = merged[owner[0]]
            merged[full.key] = replace(full, spans=tuple(sorted((*full.spans, *candidate.spans))))
            del merged[candidate.key]
    return list(merged.values())


def _short_forms(candidate: Candidate) -> list[str]:
    if candidate.cue is Cue.SPEAKER and (spaced := split_screen_name(candidate.name)):
        words = spaced.casefold().split()
        return [words[0], words[-1], entity_key(spaced)]
    words = candidate.key.split()
    is_person = candidate.type == "Person" or words[0] in word_set("given_names")
    if not 1 < len(words) <= MAX_PERSON_WORDS or not is_person:
        return []
    return [words[0], words[-1]] if candidate.cue in (Cue.SPEAKER, Cue.TITLE) else [words[-1]]


def split_screen_name(name: str) -> str:
    """Return the name behind a screen name ("AdamSmith" → "Adam Smith"), "" if it has only one part."""
    parts = _CAMEL.findall(name)
    return " ".join(parts) if len(parts) > 1 and "".join(parts) == name else ""


def entity_limit(text: str) -> int:
    """Return how many entities a chunk may have: 14 up to 200 tokens (bytes / 4), rising linearly to 40 at 1,200."""
    tokens = len(text.encode("utf-8", "surrogatepass")) / 4
    share = (tokens - SHORT_TOKENS) / (LONG_TOKENS - SHORT_TOKENS)
    return round(SHORT_LIMIT + (LONG_LIMIT - SHORT_LIMIT) * min(max(share, 0.0), 1.0))


def most_salient(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    """Return the `limit` most salient candidates in their given order; of equals the earlier ones."""
    if len(candidates) <= limit:
        return list(candidates)
    ranked = sorted(range(len(candidates)), key=lambda i: (-salience(candidates[i]), i))
    return [candidates[i] for i in sorted(ranked[:limit])]


def salience(candidate: Candidate) -> float:
    """Return how much a chunk is about a name, by its cue, its number of spans and its number of words."""
    n_words = min(len(candidate.name.split()), 4)
    return round(_SALIENCE_BY_CUE[candidate.cue] + log2(1 + len(candidate.spans)) + 0.5 * (n_words - 1), 6)
