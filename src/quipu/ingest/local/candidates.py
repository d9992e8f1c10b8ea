"""Candidates: the occurrences of a chunk folded into the names it may be about."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from quipu.ingest.local.inflection import case_rank, stem
from quipu.ingest.local.lexicon import word_set
from quipu.ingest.local.occurrence import STRENGTH, Cue, Occurrence
from quipu.text.names import entity_key

MAX_PERSON_WORDS = 4

_BESIDE = frozenset((Cue.TITLE, Cue.SUBJECT, Cue.HEADING))
_WHOLE = frozenset((Cue.QUOTED, Cue.SPEAKER))
_WORD = re.compile(r"[\w'’-]+")
_CAMEL = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)?")
_NO_NAME = re.compile(
    r"\w+(?:ing|ed|ly|tion|ment|ness|ность|ности|ение|ания|ание|ство|ция|ции|[аиея]л(?:а|и)?|ться|ишь|ешь|йте)"
)
_PLURAL = re.compile(r"\w{2,}[^suia\W]s")
_SINGULAR = re.compile(r"\s+(?:is|was|has|does)\b|['’]|,")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A name with all places it stands at, in order; `cue` is the strongest reason, `kind` a type given away.

    `shown` is the first place where it stands in this form, (0, 0) where there is none.
    """

    key: str
    name: str
    cue: Cue
    kind: str
    places: tuple[tuple[int, int], ...]
    shown: tuple[int, int]


def fold_occurrences(text: str, occurrences: Iterable[Occurrence]) -> list[Candidate]:
    """Return one candidate a name, the title's first, then by first place.

    Case forms and short forms of a name are one candidate; a name inside a longer one counts for the longer alone.
    """
    ordered = _outermost(occurrences)
    keys = {name: entity_key(name) for name in dict.fromkeys(o.name for o in ordered)}
    groups: dict[str, list[Occurrence]] = {}
    for occurrence in ordered:
        key = keys[occurrence.name]
        if key and not key.isdigit():
            groups.setdefault(stem(key), []).append(occurrence)
    candidates = [_fold(group, keys) for group in groups.values()]
    words: frozenset[str] = frozenset()
    if any(candidate.cue is Cue.STARTER for candidate in candidates):
        words = frozenset(_WORD.findall(text))
    named = [c for c in candidates if c.cue is not Cue.STARTER or _is_name(text, c, words)]
    return sorted(_with_short_forms(named), key=lambda c: (c.cue is not Cue.TITLE, c.places[:1]))


def _outermost(occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    """Return the occurrences without those that overlap with another: the quoted, then the longer, then the first stay.

    What the title or a heading names overlaps with nothing, and comes first.
    """
    ordered = sorted(occurrences, key=lambda o: (o.start, o.cue not in _WHOLE, -o.end, STRENGTH[o.cue], not o.kind))
    placed: list[Occurrence] = []
    beside: list[Occurrence] = []
    for occurrence in ordered:
        if occurrence.cue in _BESIDE:
            beside.append(occurrence)
        elif not placed or occurrence.start >= placed[-1].end:
            placed.append(occurrence)
        elif occurrence.cue in _WHOLE and placed[-1].cue not in _WHOLE and occurrence.end > placed[-1].end:
            placed[-1] = occurrence
    return [*beside, *placed]


def _fold(group: Sequence[Occurrence], keys: Mapping[str, str]) -> Candidate:
    form = group[0] if len(group) == 1 else min(group, key=lambda o: _display_rank(o, keys))
    key = keys[form.name]
    places = tuple(sorted({(o.start, o.end) for o in group if o.end}))
    return Candidate(
        key=key,
        name=form.name,
        cue=min((o.cue for o in group), key=STRENGTH.__getitem__),
        kind=next((o.kind for o in group if o.kind), ""),
        places=places,
        shown=min(((o.start, o.end) for o in group if o.end and keys[o.name] == key), default=(0, 0)),
    )


def _display_rank(occurrence: Occurrence, keys: Mapping[str, str]) -> tuple[bool, int, int]:
    return (occurrence.cue is not Cue.TITLE, case_rank(keys[occurrence.name]), occurrence.start)


def _is_name(text: str, candidate: Candidate, words: frozenset[str]) -> bool:
    """Say whether a word that only has its capital where a sentence starts is likely a name."""
    form = candidate.name.casefold()
    if form in words:
        return False
    if not candidate.name[1:].islower():
        return True
    if _NO_NAME.fullmatch(form):
        return form in word_set("given_names") or stem(form) in word_set("places")
    if _PLURAL.fullmatch(form):
        return bool(_SINGULAR.match(text, candidate.places[0][1]))
    return True


def _with_short_forms(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Fold a surname, first name or spaced form standing alone into the one person of the chunk it belongs to."""
    owners: dict[str, list[str]] = {}
    for candidate in candidates:
        for short in _short_forms(candidate):
            owners.setdefault(short, []).append(candidate.key)
    merged = {candidate.key: candidate for candidate in candidates}
    for candidate in candidates:
        owner = owners.get(candidate.key, [])
        if len(owner) == 1 and owner[0] != candidate.key and owner[0] in merged:
            whole = merged[owner[0]]
            merged[whole.key] = replace(whole, places=tuple(sorted((*whole.places, *candidate.places))))
            del merged[candidate.key]
    return list(merged.values())


def _short_forms(candidate: Candidate) -> list[str]:
    if candidate.cue is Cue.SPEAKER and (spaced := spaced_name(candidate.name)):
        words = spaced.casefold().split()
        return [words[0], words[-1], entity_key(spaced)]
    words = candidate.key.split()
    if not 1 < len(words) <= MAX_PERSON_WORDS or not _is_person(candidate, words):
        return []
    return [words[0], words[-1]] if candidate.cue in (Cue.SPEAKER, Cue.TITLE) else [words[-1]]


def spaced_name(name: str) -> str:
    """Return the name behind a screen name ("AdamSmith" → "Adam Smith"); "" where it is not made of two or more."""
    parts = _CAMEL.findall(name)
    return " ".join(parts) if len(parts) > 1 and "".join(parts) == name else ""


def _is_person(candidate: Candidate, words: Sequence[str]) -> bool:
    return candidate.kind == "Person" or words[0] in word_set("given_names")
