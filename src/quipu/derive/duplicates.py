"""Duplicates: how much two names look like one, by rules, each with a reason; and which pairs of entities may be one.

Names meet where they share a form, such as their words in the singular, so the work grows with the number of names,
not of pairs. Nothing is merged here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, takewhile

from quipu.model.edit import DuplicateCandidate
from quipu.model.graph import OTHER_TYPE, UNKNOWN_TYPE
from quipu.text.names import spelling_key
from quipu.text.words import fold_accents, is_acronym

MAX_BLOCK = 20  # names with one form: more are a common word, not one thing
MIN_LETTERS = 6  # of a name in which one letter may differ
PERSON = "Person"
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
_TENS, _ONES = (
    ("", "x", "xx", "xxx", "xl", "l", "lx", "lxx"),
    ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"),
)
_ROMAN = frozenset(tens + ones for tens in _TENS for ones in _ONES) - {""}
_ALSO_NAMES = frozenset(["i", "v", "x", "l", "vi", "xi", "li"])  # Roman numerals that may begin a name
# What each way to be equal leaves of the certainty that two names are one.
_SPACES, _TITLE, _COMPANY_FORM, _PLURAL, _SPELLING = 0.95, 0.9, 0.9, 0.85, 0.9
_PLURAL_OF_PERSON = 0.45  # boys are more than one boy
_SAME_SCRIPT = 0.45  # Ericka and Jérica sound alike
_SURNAME = 0.5  # without a title, only a surname is left
_ORDER_OF_PERSON, _ORDER = 0.85, 0.45  # "Lovelace, Ada"; but a master broker is no broker master
_INITIALS, _ACRONYM, _LETTER, _LAST_LETTER, _ALIAS = 0.7, 0.6, 0.7, 0.45, 0.75
_MIDDLE_NAME, _LAST_PART, _FIRST_PART = 0.65, 0.4, 0.25  # of a person; half of it, of anything else
_AMBIGUOUS = 0.5  # of what is left where a short name stands for several long ones
_NEIGHBOUR = 0.8  # each shared neighbour leaves this part of the doubt
_MAX_NEIGHBOURS = 4
MIN_COSINE = 0.85  # of two names that are alike by their vectors alone
_COSINE_DOUBT = 3.5  # a cosine of 0.85 leaves about half of the doubt, 0.95 a sixth


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How certain it is, from 0 to 1, that two names are one, and why; persons have a certainty of their own."""

    score: float
    of_persons: float
    reasons: tuple[str, ...]

    @classmethod
    def because(cls, reason: str, score: float, of_persons: float | None = None) -> "Likeness":
        """Return a likeness for one reason; persons are like other things unless `of_persons` is given."""
        return cls(score=score, of_persons=score if of_persons is None else of_persons, reasons=(reason,))

    @property
    def bound(self) -> float:
        """The greatest certainty that entities with these names may have, whatever their types."""
        return max(self.score, self.of_persons)

    def or_(self, other: "Likeness") -> "Likeness":
        """Return the greater certainty, with the reasons of both, the stronger first."""
        strong, weak = (self, other) if self.score >= other.score else (other, self)
        return Likeness(
            score=strong.score,
            of_persons=max(self.of_persons, other.of_persons),
            reasons=tuple(dict.fromkeys((*strong.reasons, *weak.reasons))),
        )

    def scaled(self, share: float) -> "Likeness":
        """Return the likeness with a share of its certainty."""
        return replace(self, score=round(self.score * share, 3), of_persons=round(self.of_persons * share, 3))


@dataclass(frozen=True)
class ComparedName:
    """The key of an entity, and what of it is compared."""

    key: str

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
    def numbers(self) -> tuple[str, ...]:
        """The numbers in the name, sorted: names with different ones never stand for one thing."""
        digits = "".join(character if character.isdigit() else " " for character in self.key).split()
        numerals = (word for word in self.tokens[1:] if word in _ROMAN)
        return tuple(sorted([*digits, *numerals, *self._first_numeral]))

    @property
    def _first_numeral(self) -> Iterable[str]:
        return _ROMAN.intersection(self.tokens[:1]) - _ALSO_NAMES

    @cached_property
    def form(self) -> str:
        """The words in the singular, in alphabetical order."""
        return " ".join(sorted(map(_singular, self.tokens)))

    @cached_property
    def letters(self) -> str:
        """The words in the singular, in their order, without spaces."""
        return "".join(map(_singular, self.tokens))


def may_be_one(first: ComparedName, second: ComparedName) -> bool:
    """Return whether two names could stand for one thing: they have the same numbers, and no two other titles."""
    has_other_title = bool(first.titles and second.titles) and first.titles != second.titles
    return first.numbers == second.numbers and not has_other_title


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    is_word = len(word) > 3 and word.isascii() and not word[-2].isdigit()  # the 1900s are no year
    is_plural = is_word and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_plural else word


@dataclass(frozen=True, slots=True)
class Rule:
    """A way in which names are alike: the forms under which they meet, and how alike two are that do.

    With `long_forms`, a name of `forms` may stand for one of `long_forms`; else all that meet are compared.
    """

    forms: Callable[[ComparedName], Iterable[str]]
    compare: Callable[[ComparedName, ComparedName], Likeness | None]
    long_forms: Callable[[ComparedName], Iterable[str]] | None = None
    max_block: int = MAX_BLOCK

    def pairs(
        self, names: Sequence[ComparedName], long_names: Sequence[ComparedName]
    ) -> Iterator[tuple[ComparedName, ComparedName, Likeness]]:
        """Yield the pairs among names with one form that are alike; none where too many have it.

        Where a short name may stand for several long ones, each is less certain.
        """
        if self.long_forms is None:
            pairs = combinations(names, 2) if len(names) <= self.max_block else iter(())
        else:
            is_rare = len(long_names) <= self.max_block
            pairs = ((one, other) for one in names for other in long_names if is_rare and one is not other)
        for one, other in pairs:
            if may_be_one(one, other):
                likeness = self.compare(one, other)
                if likeness is not None:
                    yield one, other, likeness if len(long_names) < 2 else likeness.scaled(_AMBIGUOUS)


def _word_forms(name: ComparedName) -> Iterable[str]:
    return () if is_acronym(name.key) else (name.form, f" {name.letters}")


def _compare_words(first: ComparedName, second: ComparedName) -> Likeness:
    """Return how alike two names are that have one form."""
    ways: list[tuple[float, str]] = []
    tokens = first.tokens, second.tokens
    order = 1.0
    if first.titles != second.titles:
        ways.append((_SURNAME if len(tokens[0]) == 1 else _TITLE, "equal without a title"))
    if any(len(name.tokens) < len(name.words) - len(name.titles) for name in (first, second)):
        ways.append((_COMPANY_FORM, "equal without the form of the company"))
    if len(tokens[0]) != len(tokens[1]):
        ways.append((_SPACES, "equal without spaces"))
    elif [*map(_singular, tokens[0])] != [*map(_singular, tokens[1])]:
        order = _ORDER / _ORDER_OF_PERSON
        ways.append((_ORDER_OF_PERSON, "the same words in another order"))
    of_persons = 1.0
    if sorted("".join(tokens[0])) != sorted("".join(tokens[1])):
        of_persons = _PLURAL_OF_PERSON / _PLURAL
        ways.append((_PLURAL, "singular and plural"))
    if not ways:
        ways.append((_SPELLING, "equal but for accents or signs"))
    score = 1.0
    for certainty, _ in ways:
        score *= certainty
    return Likeness.because(
        ", ".join(reason for _, reason in ways), round(score * order, 3), round(score * of_persons, 3)
    )


def _spelling_forms(name: ComparedName) -> Iterable[str]:
    return (spelling_key(name.key),) if len(name.key) >= MIN_LETTERS else ()


def _compare_spellings(first: ComparedName, second: ComparedName) -> Likeness | None:
    if first.letters == second.letters:
        return None
    if "".join(first.words).isascii() == "".join(second.words).isascii():
        return Likeness.because("the same name in another spelling", _SAME_SCRIPT)
    return Likeness.because("the same name in another script", _SPELLING)


def _half_forms(name: ComparedName) -> Iterable[str]:
    """Yield the halves of a name, one of which a change of one letter leaves as it is: for its own length, and the next
    shorter one."""
    letters = name.letters
    if MIN_LETTERS <= len(letters) <= 40 and letters.isalpha() and letters.isascii():
        for length in (len(letters), len(letters) - 1):
            yield f"{length}^{letters[: length // 2]}"
            yield f"{length}${letters[length // 2 - length :]}"


def _compare_letters(first: ComparedName, second: ComparedName) -> Likeness | None:
    """Return how alike two names are of which one is the other with a letter changed, added, left out, or swapped."""
    one, other = sorted((first.letters, second.letters), key=len)
    if one == other or one[0] != other[0] or not _is_one_letter_apart(one, other):
        return None
    certainty = _LETTER if one[-1] == other[-1] else _LAST_LETTER
    return Likeness.because("one letter differs", round(certainty * min(1, len(one) / 10), 3))


def _is_one_letter_apart(shorter: str, longer: str) -> bool:
    start = next((i for i, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    if len(shorter) < len(longer):
        return shorter[start:] == longer[start + 1 :]
    rest = shorter[start + 1 :], longer[start + 1 :]
    is_swapped = shorter[start : start + 2] == longer[start : start + 2][::-1]
    return rest[0] == rest[1] or (is_swapped and rest[0][1:] == rest[1][1:])


def _initial_forms(name: ComparedName) -> Iterable[str]:
    """Return the initials of all words but the last, and that: "a k lovelace"; nothing if no word is an initial."""
    *given_names, last = name.tokens
    is_short = bool(given_names) and any(len(word) == 1 for word in given_names) and len(last) > 1
    return (" ".join([*(word[0] for word in given_names), last]),) if is_short else ()


def _full_forms(name: ComparedName) -> Iterable[str]:
    *given_names, last = name.tokens
    if given_names and all(len(word) > 1 for word in given_names) and len(last) > 1:
        yield " ".join([*(word[0] for word in given_names), last])
        if len(given_names) > 1:
            yield f"{given_names[0][0]} {last}"


def _acronyms(name: ComparedName) -> Iterable[str]:
    return (name.key.casefold(),) if is_acronym(name.key) and len(name.key) > 2 else ()


def _expansions(name: ComparedName) -> Iterable[str]:
    words = [word for word in name.tokens if word not in _SMALL_WORDS]
    return {"".join(word[0] for word in words), "".join(word[0] for word in name.tokens)} if len(words) > 2 else ()


def _whole_name(name: ComparedName) -> Iterable[str]:
    return (" ".join(name.tokens),) if len(name.key) > 2 else ()


def _parts(name: ComparedName) -> Iterable[str]:
    """Return the last and the first part of a name of several words, and the name without its middle."""
    tokens = name.tokens
    if not 2 <= len(tokens) <= 4:
        return ()
    parts = {tokens[1:], tokens[-1:], tokens[:1], tokens[:-1], (tokens[0], tokens[-1])}
    return [" ".join(part) for part in parts if part != tokens and len("".join(part)) > 2]


def _compare_parts(short: ComparedName, long: ComparedName) -> Likeness:
    tokens, whole = short.tokens, long.tokens
    if len(tokens) > 1 and (tokens[0], tokens[-1]) == (whole[0], whole[-1]):
        return Likeness.because("one leaves out a middle name", _MIDDLE_NAME / 2, _MIDDLE_NAME)
    certainty = _LAST_PART if tokens == whole[-len(tokens) :] else _FIRST_PART
    return Likeness.because("one is a part of the other", certainty / 2, certainty)


RULES: tuple[Rule, ...] = (
    Rule(_word_forms, _compare_words),
    Rule(_spelling_forms, _compare_spellings),
    Rule(_half_forms, _compare_letters, max_block=3 * MAX_BLOCK),
    Rule(_initial_forms, lambda *_: Likeness.because("initials agree", _INITIALS), _full_forms),
    Rule(_acronyms, lambda *_: Likeness.because("the letters of the acronym agree", _ACRONYM), _expansions),
    Rule(_whole_name, _compare_parts, _parts),
)
STATED_ALIAS = Likeness.because("one is stated to be another name of the other", _ALIAS)


def likeness_of_cosine(cosine: float) -> Likeness:
    """Return how alike two names are by the cosine of their vectors."""
    return Likeness.because(f"similar by vectors ({cosine:.2f})", round(max(0.0, 1 - _COSINE_DOUBT * (1 - cosine)), 3))


def are_compatible(first: str, second: str) -> bool:
    """Return whether entities of these types may be one: both types are specific only where they are equal."""
    return first == second or bool(_VAGUE & {first, second})


def with_neighbours(candidate: DuplicateCandidate, n_shared: int) -> DuplicateCandidate:
    """Return a candidate that is the more certain, the more neighbours both entities share."""
    if not n_shared:
        return candidate
    doubt = (1 - candidate.score) * _NEIGHBOUR ** min(n_shared, _MAX_NEIGHBOURS)
    neighbours = "1 shared neighbour" if n_shared == 1 else f"{n_shared} shared neighbours"
    return replace(candidate, score=round(1 - doubt, 3), reasons=(*candidate.reasons, neighbours))
