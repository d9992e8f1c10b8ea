"""Duplicates: pairs of entities that may be one thing under two names, each with a score and its reasons.

Names are compared in blocks: only entities that share a form of their name meet, so the work grows with the number of
entities, not of pairs. Nothing is merged here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, takewhile

from quipu.model.edit import DuplicateCandidate
from quipu.model.graph import OTHER_TYPE, UNKNOWN_TYPE
from quipu.text.names import entity_key, spelling_key
from quipu.text.words import fold_accents, is_acronym

MAX_BLOCK = 20  # entities with one form: more are a common word, not one thing
MIN_LETTERS = 6  # of a name in which one letter may differ
_VAGUE = frozenset((OTHER_TYPE, UNKNOWN_TYPE))
_TITLES = frozenset(
    [
        *("dr", "mr", "mrs", "ms", "miss", "prof", "professor", "sir", "dame", "lord", "lady", "saint", "st"),
        *("king", "queen", "president", "господин", "госпожа", "профессор", "проф", "доктор", "академик", "акад"),
    ]
)
_COMPANY = frozenset(
    [
        *("inc", "ltd", "llc", "llp", "plc", "gmbh", "ag", "sa", "co", "corp", "corporation", "company", "limited"),
        *("ооо", "оао", "зао", "ао", "пао"),
    ]
)
_SMALL_WORDS = frozenset(["of", "and", "the", "for", "in", "on", "de", "la", "le", "du", "и", "по"])
_ROMAN = frozenset(["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv"])
# What each way to be equal leaves of the certainty that two names are one.
_SPACES, _TITLE, _COMPANY_FORM, _PLURAL, _SPELLING = 0.95, 0.9, 0.9, 0.85, 0.9
_SURNAME = 0.5  # without a title, only a surname is left
_ORDER_OF_PERSON, _ORDER = 0.85, 0.45  # "Lovelace, Ada"; but a master broker is no broker master
_INITIALS, _ACRONYM, _LETTER, _LAST_LETTER, _ALIAS = 0.7, 0.6, 0.7, 0.45, 0.75
_AMBIGUOUS = 0.5  # of what is left where a short name stands for several long ones
_NEIGHBOUR = 0.8  # each shared neighbour leaves this part of the doubt
_MAX_NEIGHBOURS = 4

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class NamedEntity:
    """What is compared of an entity: its key, type and aliases (keys)."""

    key: str
    type: str
    aliases: Sequence[str] = ()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the key, without accents."""
        return tuple(fold_accents(word.casefold()) for word in self.key.split())

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """The titles before the name, as "dr"; none in a name that is nothing else."""
        titles = tuple(takewhile(_TITLES.__contains__, self.words))
        return titles if len(titles) < len(self.words) else ()

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The words of the key without titles, and without the legal form of a company."""
        words = self.words[len(self.titles) :]
        while len(words) > 1 and words[-1] in _COMPANY:
            words = words[:-1]
        return words

    @cached_property
    def numbers(self) -> Counter[str]:
        """The numbers in the name: names with different ones never stand for one thing."""
        digits = "".join(character if character.isdigit() else " " for character in self.key).split()
        return Counter([*digits, *(token for token in self.tokens[1:] if token in _ROMAN)])

    @cached_property
    def form(self) -> str:
        """The words in the singular, in alphabetical order."""
        return " ".join(sorted(map(_singular, self.tokens)))

    @cached_property
    def letters(self) -> str:
        """The words in the singular, in their order, without spaces."""
        return "".join(map(_singular, self.tokens))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    is_plural = len(word) > 3 and word.isascii() and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_plural else word


def find_duplicates(
    entities: Iterable[NamedEntity], distinct: AbstractSet[Pair] = frozenset(), of: AbstractSet[str] | None = None
) -> list[DuplicateCandidate]:
    """Return pairs that may be duplicates, the most certain first; equal scores by keys.

    `distinct` pairs (keys, the smaller first) are left out. With `of`, only pairs with one of these keys are returned.
    """
    rows = list(entities)
    best: dict[Pair, tuple[float, list[str]]] = {}
    for first, second, score, reason in _pairs(rows):
        pair = (first.key, second.key) if first.key < second.key else (second.key, first.key)
        if pair in distinct or (of is not None and of.isdisjoint(pair)) or not _are_compatible(first, second):
            continue
        known = best.setdefault(pair, (0.0, []))
        reasons = known[1] if reason in known[1] else [*known[1], reason]
        best[pair] = max(known[0], score), reasons
    candidates = [DuplicateCandidate(first=a, second=b, score=s, reasons=tuple(r)) for (a, b), (s, r) in best.items()]
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.first, candidate.second))


def with_neighbours(candidate: DuplicateCandidate, n_shared: int) -> DuplicateCandidate:
    """Return a candidate that is the more certain, the more neighbours both entities share."""
    if not n_shared:
        return candidate
    doubt = (1 - candidate.score) * _NEIGHBOUR ** min(n_shared, _MAX_NEIGHBOURS)
    neighbours = "1 shared neighbour" if n_shared == 1 else f"{n_shared} shared neighbours"
    return DuplicateCandidate(
        first=candidate.first,
        second=candidate.second,
        score=round(1 - doubt, 3),
        reasons=(*candidate.reasons, neighbours),
    )


def _are_compatible(first: NamedEntity, second: NamedEntity) -> bool:
    """Return whether two entities may be one: no other number, no other title, and no other type that is specific."""
    is_one_type = first.type == second.type or bool(_VAGUE & {first.type, second.type})
    titles = [row.titles for row in (first, second)]
    return is_one_type and first.numbers == second.numbers and (not all(titles) or titles[0] == titles[1])


def _pairs(rows: Sequence[NamedEntity]) -> Iterator[tuple[NamedEntity, NamedEntity, float, str]]:
    yield from _equal_forms(rows)
    yield from _equal_spellings(rows)
    yield from _one_letter(rows)
    yield from _short_names(rows, _initial_forms, _full_forms, _INITIALS, "initials agree")
    yield from _short_names(rows, _acronyms, _expansions, _ACRONYM, "the letters of the acronym agree")
    yield from _aliases(rows)


def _blocks(rows: Sequence[NamedEntity], form: Callable[[NamedEntity], str]) -> Iterator[list[NamedEntity]]:
    """Yield the entities that share a form, where they are several, but not many."""
    blocks: dict[str, list[NamedEntity]] = {}
    for row in rows:
        blocks.setdefault(form(row), []).append(row)
    yield from (block for key, block in blocks.items() if key and 1 < len(block) <= MAX_BLOCK)


def _equal_forms(rows: Sequence[NamedEntity]) -> Iterator[tuple[NamedEntity, NamedEntity, float, str]]:
    names = [row for row in rows if not is_acronym(row.key)]
    for block in chain(_blocks(names, lambda row: row.form), _blocks(names, lambda row: row.letters)):
        for first, second in combinations(block, 2):
            yield first, second, *_how_equal(first, second)


def _how_equal(first: NamedEntity, second: NamedEntity) -> tuple[float, str]:
    """Return how certain two names with one form are one, and why."""
    ways: list[tuple[float, str]] = []
    tokens = first.tokens, second.tokens
    if first.titles != second.titles:
        ways.append((_SURNAME if len(tokens[0]) == 1 else _TITLE, "equal without a title"))
    if any(len(row.tokens) < len(row.words) - len(row.titles) for row in (first, second)):
        ways.append((_COMPANY_FORM, "equal without the form of the company"))
    if len(tokens[0]) != len(tokens[1]):
        ways.append((_SPACES, "equal without spaces"))
    elif [*map(_singular, tokens[0])] != [*map(_singular, tokens[1])]:
        is_person = "Person" in (first.type, second.type)
        ways.append((_ORDER_OF_PERSON if is_person else _ORDER, "the same words in another order"))
    if sorted("".join(tokens[0])) != sorted("".join(tokens[1])):
        ways.append((_PLURAL, "singular and plural"))
    if not ways:
        ways.append((_SPELLING, "equal but for accents or signs"))
    score = 1.0
    for certainty, _ in ways:
        score *= certainty
    return round(score, 3), ", ".join(reason for _, reason in ways)


def _equal_spellings(rows: Sequence[NamedEntity]) -> Iterator[tuple[NamedEntity, NamedEntity, float, str]]:
    for block in _blocks([row for row in rows if len(row.key) >= MIN_LETTERS], lambda row: spelling_key(row.key)):
        for first, second in combinations(block, 2):
            if first.letters != second.letters:
                yield first, second, _SPELLING, "the same name in another spelling or script"


def _one_letter(rows: Sequence[NamedEntity]) -> Iterator[tuple[NamedEntity, NamedEntity, float, str]]:
    """Yield pairs of which one is the other with a letter changed, added, left out, or swapped with the next.

    Two forms meet if leaving a letter out of each gives the same text (a deletion neighbourhood).
    """
    owners: dict[int, list[int]] = {}
    forms = [row.letters for row in rows]
    for position, form in enumerate(forms):
        if MIN_LETTERS <= len(form) <= 40 and form.isalpha() and form.isascii():
            for text in {form, *(form[:n] + form[n + 1 :] for n in range(1, len(form)))}:  # the first letter agrees
                owners.setdefault(hash(text), []).append(position)
    seen: set[tuple[int, int]] = set()
    for block in owners.values():
        if 1 < len(block) <= MAX_BLOCK:
            for pair in combinations(block, 2):
                if pair not in seen and forms[pair[0]] != forms[pair[1]]:
                    seen.add(pair)
                    one, other = forms[pair[0]], forms[pair[1]]
                    certainty = _LETTER if one[-1] == other[-1] else _LAST_LETTER
                    score = round(certainty * min(1, len(one) / 10, len(other) / 10), 3)
                    yield rows[pair[0]], rows[pair[1]], score, "one letter differs"


def _short_names(
    rows: Sequence[NamedEntity],
    short: Callable[[NamedEntity], str],
    long: Callable[[NamedEntity], Iterable[str]],
    certainty: float,
    reason: str,
) -> Iterator[tuple[NamedEntity, NamedEntity, float, str]]:
    """Yield short names with the long ones that they may stand for; with several, each is less certain."""
    short_by_form: dict[str, list[NamedEntity]] = {}
    for row in rows:
        if form := short(row):
            short_by_form.setdefault(form, []).append(row)
    matches: dict[str, list[NamedEntity]] = {}
    for row in rows:
        for form in long(row):
            if form in short_by_form:
                matches.setdefault(form, []).append(row)
    for form, owners in matches.items():
        if len(owners) <= MAX_BLOCK:
            score = certainty if len(owners) == 1 else certainty * _AMBIGUOUS
            yield from ((a, b, score, reason) for a in short_by_form[form] for b in owners if a is not b)


def _initial_forms(row: NamedEntity) -> str:
    """Return the initials of all words but the last, and that: "a k lovelace"; "" if no word is an initial."""
    *given_names, last = row.tokens
    is_short = bool(given_names) and any(len(name) == 1 for name in given_names) and len(last) > 1
    return " ".join([*(name[0] for name in given_names), last]) if is_short else ""


def _full_forms(row: NamedEntity) -> Iterator[str]:
    *given_names, last = row.tokens
    if given_names and all(len(name) > 1 for name in given_names) and len(last) > 1:
        yield " ".join([*(name[0] for name in given_names), last])
        if len(given_names) > 1:
            yield f"{given_names[0][0]} {last}"


def _acronyms(row: NamedEntity) -> str:
    return row.key.casefold() if is_acronym(row.key) and len(row.key) > 2 else ""


def _expansions(row: NamedEntity) -> Iterator[str]:
    words = [word for word in row.tokens if word not in _SMALL_WORDS]
    if len(words) > 2:
        yield "".join(word[0] for word in words)
        yield "".join(word[0] for word in row.tokens)


def _aliases(rows: Sequence[NamedEntity]) -> Iterator[tuple[NamedEntity, NamedEntity, float, str]]:
    row_by_key: Mapping[str, NamedEntity] = {row.key: row for row in rows}
    for row in rows:
        for alias in dict.fromkeys(map(entity_key, row.aliases)):
            if alias in row_by_key and alias != row.key:
                yield row, row_by_key[alias], _ALIAS, "one is stated to be another name of the other"
