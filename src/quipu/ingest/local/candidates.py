"""Candidates: the occurrences of a chunk folded into the names it may be about."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from quipu.ingest.local.inflection import case_rank, stem
from quipu.ingest.local.lexicon import word_set
from quipu.ingest.local.occurrence import Cue, Occurrence
from quipu.text.names import entity_key

_STRONG = frozenset((Cue.TITLE, Cue.HEADING, Cue.SPEAKER, Cue.QUOTED, Cue.CAPITALS, Cue.HAN))
_WHOLE = frozenset((Cue.QUOTED, Cue.SPEAKER))
_WORD = re.compile(r"[\w'’-]+")
_STRENGTH = {cue: rank for rank, cue in enumerate(Cue)}
_NOT_NAMES = re.compile(r"\w+(?:ing|ed|ly|tion|tions|ment|ments|ness|ists|isms|ers|ors|ности|ость|ение|ания|ание|ство|ция|ции|ала|ила|ела|али|или|ели|ться|ишь|ешь|йте)")
_PLURAL = re.compile(r"\w{2,}[^suia\W]s")
_SINGULAR_VERB = re.compile(r"\s+(?:is|was|has|does|'s|’s)\b|['’]|,")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A name with all places it stands at, in order; `cue` is the strongest reason, `kind` a type given away.

    `shown` is the first place where it stands in this form, (0, 0) where only the title has it.
    """

    key: str
    name: str
    cue: Cue
    kind: str
    places: tuple[tuple[int, int], ...]
    shown: tuple[int, int]


def fold_occurrences(text: str, occurrences: Iterable[Occurrence]) -> list[Candidate]:
    """Return one candidate a name, in order of first appearance; names within longer quoted ones are left out."""
    ordered = _outermost(occurrences)
    keys = _keys(ordered)
    groups: dict[str, list[Occurrence]] = {}
    for occurrence in ordered:
        key = keys[occurrence.name]
        if key and not key.isdigit():
            groups.setdefault(stem(key), []).append(occurrence)
    candidates = [_fold(group, keys) for group in groups.values()]
    lower = _LowerWords(text)
    kept = [c for c in candidates if c.cue is not Cue.STARTER or _is_name(text, c, lower)]
    return _with_short_forms(kept)


class _LowerWords:
    """The words a text has in lower case, gathered when first asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words: frozenset[str] | None = None

    def __contains__(self, word: str) -> bool:
        if self._words is None:
            self._words = frozenset(_WORD.findall(self._text))
        return word in self._words


def _outermost(occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    """Return the occurrences in order of place; of two that overlap, the quoted, then the longer, then the first."""
    ordered = sorted(occurrences, key=lambda o: (o.start, o.cue not in _WHOLE, -o.end))
    kept: list[Occurrence] = []
    for occurrence in ordered:
        if occurrence.end == 0 or not kept or occurrence.start >= kept[-1].end:
            kept.append(occurrence)
        elif occurrence.cue in _WHOLE and kept[-1].cue not in _WHOLE and occurrence.end > kept[-1].end:
            kept[-1] = occurrence
    return kept


def _keys(occurrences: Sequence[Occurrence]) -> dict[str, str]:
    return {name: entity_key(name) for name in dict.fromkeys(o.name for o in occurrences)}


def _fold(group: Sequence[Occurrence], keys: Mapping[str, str]) -> Candidate:
    shown = group[0] if len(group) == 1 else min(group, key=lambda o: _display_rank(o, keys))
    return Candidate(
        key=keys[shown.name],
        name=shown.name,
        cue=min((o.cue for o in group), key=_STRENGTH.__getitem__),
        kind=next((o.kind for o in group if o.kind), ""),
        places=tuple((o.start, o.end) for o in group if o.end),
        shown=next(((o.start, o.end) for o in group if o.end and keys[o.name] == keys[shown.name]), (0, 0)),
    )


def _display_rank(occurrence: Occurrence, keys: Mapping[str, str]) -> tuple[bool, int, int]:
    return (occurrence.cue is not Cue.TITLE, case_rank(keys[occurrence.name]), occurrence.start)


def _is_name(text: str, candidate: Candidate, lower: _LowerWords) -> bool:
    """Say whether a word that is only capitalised where a sentence starts is likely a name."""
    word = candidate.name.casefold()
    if word in lower:
        return False
    if candidate.name[1:].lower() != candidate.name[1:]:
        return True
    _, end = candidate.places[0]
    if _NOT_NAMES.fullmatch(word):
        return word in word_set("given_names")
    if _PLURAL.fullmatch(word):
        return bool(_SINGULAR_VERB.match(text, end))
    return True


def _with_short_forms(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Fold a surname or first name standing alone into the one full name of a person it belongs to."""
    full: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        words = candidate.key.split()
        if 1 < len(words) <= 4 and _is_person(candidate, words):
            full.setdefault(words[-1], []).append(candidate)
            if candidate.cue in (Cue.SPEAKER, Cue.TITLE):
                full.setdefault(words[0], []).append(candidate)
    merged: dict[str, Candidate] = {candidate.key: candidate for candidate in candidates}
    for candidate in candidates:
        owners = full.get(candidate.key, [])
        if len(owners) == 1 and owners[0].key != candidate.key:
            owner = merged[owners[0].key]
            merged[owner.key] = replace(owner, places=tuple(sorted((*owner.places, *candidate.places))))
            del merged[candidate.key]
    return list(merged.values())


def _is_person(candidate: Candidate, words: Sequence[str]) -> bool:
    return candidate.kind == "Person" or words[0] in word_set("given_names")
