"""Relations and aliases of the names in a text.

A relation is between the names of one sentence, or with the subject of sentences that do not name it. An alias is
another name that a text states, as in "World Health Organization (WHO)" or 世界卫生组织（简称世卫组织）.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from quipu.ingest.local.candidates import Candidate, salience, split_screen_name
from quipu.ingest.local.lexicon import is_function_word, words
from quipu.ingest.local.occurrences import Cue, Occurrence, SentenceIndex
from quipu.ingest.local.script_rules import chinese_rules
from quipu.model.extraction import ExtractedAlias, ExtractedRelation
from quipu.text.names import entity_key
from quipu.text.words import is_acronym

MAX_RELATIONS = 24
RELATIONS_PER_ENTITY = 1.5
MAX_PAIR_KEYWORDS = 3
MAX_IMPLIED = 4
MIN_LETTERS = 3

_HAN_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
_PUNCTUATION = ".,;:!?()[]{}\"'“”‘’«»„—–-*_`"
_PARTICLES = words("van von der den del des das dos las los les bin ibn und фон дер ван")

_CandidateSpan = tuple[int, int, int]  # start and end in the text, index of the candidate

_BRACKET = re.compile(r"[\"'”»》]?\s?[(（]([^()（）\n]{1,80})[)）]")
_SEPARATOR = re.compile(r"[,;，；、/]| or | or$|或|, ")
_ALIAS_MARKER = re.compile(
    r"(?:简称为?|又称为?|也称为?|亦称|又名|即|英文名?|英语|英文名称|缩写为?|全称为?"
    r"|abbreviated(?: as)?|also known as|known as|or|formerly"
    r"|сокращённо|сокр\.|также|или|англ\.|лат\.|нем\.|фр\.)[:：]?\s*",
    re.IGNORECASE,
)
_KNOWN_AS = re.compile(
    r",? ?\(?(?:(?:also|better|commonly|often|widely) (?:known|called|referred to)(?: \w+ly)?(?: as)?|aka|a\.k\.a\."
    r"|также известн\w+ как|又称为?|又名|也叫|亦称|简称为?)\s?[\"“'«]?$",
    re.IGNORECASE,
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_HAN_NAME = re.compile(r"[\u3400-\u9fff·《》]+")
_LETTERS = re.compile(r"[^\W\d_]")
_CAPITALISED = re.compile(r"[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,5}")
_SMALL_WORDS = words("of the and for in on de la und et и по при в")
MAX_SHORT_CHARS = 12
MAX_GAP_CHARS = 40


class _CandidatePair(NamedTuple):
    """Two candidates (indices) that one sentence relates; the words in [start, end) of the text relate them.

    `rank` is 0 for the sentence's first name with another, 1 for neighbours, 2 for a subject that is only implied.
    """

    left: int
    right: int
    sentence: int
    rank: int
    start: int
    end: int


def relate_candidates(
    candidates: Sequence[Candidate], aliases: Sequence[ExtractedAlias], sentences: SentenceIndex
) -> tuple[ExtractedRelation, ...]:
    """Return relations between candidates in one sentence: at most 1.5 per candidate and 24 in all.

    An alias counts as the name that it belongs to. The selection first gives a relation to every candidate that can
    have one. Then it prefers relations in many sentences, then close names, then salient names. The result is in order
    of first sentence. The weight of a relation is its number of sentences.
    """
    pairs_by_ends: dict[tuple[int, int], list[_CandidatePair]] = {}
    for pair in _find_pairs(candidates, _resolve_aliases(candidates, aliases), sentences):
        pairs_by_ends.setdefault((min(pair.left, pair.right), max(pair.left, pair.right)), []).append(pair)
    groups = list(pairs_by_ends.values())
    saliences = [salience(candidate) for candidate in candidates]
    limit = min(MAX_RELATIONS, int(RELATIONS_PER_ENTITY * len(candidates)))
    return tuple(_relation(groups[i], candidates, sentences) for i in _select(groups, saliences, limit))


def _resolve_aliases(candidates: Sequence[Candidate], aliases: Sequence[ExtractedAlias]) -> list[int]:
    """Return, for each candidate, the index of the candidate that it is an alias of, else its own index."""
    index_by_name = {candidate.name: index for index, candidate in enumerate(candidates)}
    owners = list(range(len(candidates)))
    for alias in aliases:
        if alias.alias in index_by_name and alias.name in index_by_name:
            owners[index_by_name[alias.alias]] = owners[index_by_name[alias.name]]
    return owners


def _find_pairs(
    candidates: Sequence[Candidate], owners: Sequence[int], sentences: SentenceIndex
) -> Iterator[_CandidatePair]:
    implied_subjects = _ImpliedSubjects(candidates)
    for sentence, names in _spans_by_sentence(candidates, owners, sentences):
        begin = sentences.spans[sentence][0]
        if sentences.text[begin] == "#":
            continue
        yield from _pairs_in_sentence(names, sentence)
        subject = implied_subjects.at(names[0][0])
        if subject is not None and all(index != subject for _, _, index in names):
            for start, _, index in names[:MAX_IMPLIED]:
                yield _CandidatePair(subject, index, sentence, 2, begin, start)


def _spans_by_sentence(
    candidates: Sequence[Candidate], owners: Sequence[int], sentences: SentenceIndex
) -> Iterator[tuple[int, list[_CandidateSpan]]]:
    """Yield each sentence that names candidates, with the first span of each candidate in it, in order."""
    by_sentence: dict[int, dict[int, _CandidateSpan]] = {}
    for owner, candidate in zip(owners, candidates, strict=True):
        for start, end in candidate.spans:
            by_sentence.setdefault(sentences.index_at(start), {}).setdefault(owner, (start, end, owner))
    for sentence in sorted(by_sentence):
        yield sentence, sorted(by_sentence[sentence].values())


def _pairs_in_sentence(names: Sequence[_CandidateSpan], sentence: int) -> Iterator[_CandidatePair]:
    """Yield the first name of a sentence with every other, then each name with the next; each pair once."""
    yielded: set[tuple[int, int]] = set()
    first = names[0]
    for rank, pairs in ((0, [(first, other) for other in names[1:]]), (1, pairwise(names))):
        for (_, end, left), (start, _, right) in pairs:
            if (left, right) not in yielded:
                yielded.add((left, right))
                yield _CandidatePair(left, right, sentence, rank, end, start)


class _ImpliedSubjects:
    """The subject of a sentence that does not name it: the last speaker, else the subject of the page."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._page_subject = min(
            (i for i, c in enumerate(candidates) if c.cue in (Cue.SUBJECT, Cue.TITLE)),
            key=lambda i: candidates[i].cue is Cue.TITLE,
            default=None,
        )
        self._speakers = sorted(
            (start, i) for i, c in enumerate(candidates) if c.cue is Cue.SPEAKER for start, _ in c.spans
        )

    def at(self, position: int) -> int | None:
        """Return the index of the subject implied at a position of the text."""
        n_before = bisect_right(self._speakers, (position,))
        return self._speakers[n_before - 1][1] if n_before else self._page_subject


def _select(groups: Sequence[Sequence[_CandidatePair]], saliences: Sequence[float], limit: int) -> list[int]:
    """Return the indices of `limit` groups: first those that give a candidate its first relation, then the others."""

    def order(i: int) -> tuple[int, int, float, int]:
        pair = groups[i][0]
        closest = min(pair.rank for pair in groups[i])
        return (-len(groups[i]), closest, -round(saliences[pair.left] + saliences[pair.right], 6), i)

    covered: set[int] = set()
    first_relations: list[int] = []
    others: list[int] = []
    for i in sorted(range(len(groups)), key=order):
        ends = {groups[i][0].left, groups[i][0].right}
        (others if ends <= covered else first_relations).append(i)
        covered |= ends
    return sorted([*first_relations, *others][:limit])


def _relation(
    group: Sequence[_CandidatePair], candidates: Sequence[Candidate], sentences: SentenceIndex
) -> ExtractedRelation:
    best = min(group, key=lambda pair: (pair.rank, pair.sentence))
    return ExtractedRelation(
        source=candidates[best.left].name,
        target=candidates[best.right].name,
        keywords=_keywords(best, sentences),
        description=sentences.quote(best.sentence),
        weight=float(len({pair.sentence for pair in group})),
    )


def _keywords(pair: _CandidatePair, sentences: SentenceIndex) -> tuple[str, ...]:
    """Return up to three content words between the two names, else from the second name to the sentence's end."""
    between = _content_words(sentences.text[pair.start : pair.end])
    return between or _content_words(sentences.text[pair.end : sentences.spans[pair.sentence][1]])


def _content_words(text: str) -> tuple[str, ...]:
    if not text.isascii() and _HAN_RUN.search(text):
        return tuple(dict.fromkeys(chinese_rules().keywords(text)))[:MAX_PAIR_KEYWORDS]
    content_words: dict[str, None] = {}
    for token in text.split():
        word = token.strip(_PUNCTUATION)
        if len(word) >= MIN_LETTERS and word.islower() and not is_function_word(word) and word not in _PARTICLES:
            content_words[word] = None
            if len(content_words) == MAX_PAIR_KEYWORDS:
                break
    return tuple(content_words)


@dataclass(frozen=True, slots=True)
class BracketedAlias:
    """Two names of one entity: `owner`, and `other` in brackets after it."""

    owner: Occurrence
    other: Occurrence

    @property
    def occurrences(self) -> tuple[Occurrence, Occurrence]:
        """Both names with a strong cue, because a name in brackets confirms the name before it."""
        owner = self.owner
        return Occurrence(owner.name, owner.start, owner.end, Cue.CAPITALS, owner.type), self.other


def find_bracketed_aliases(text: str, occurrences: Iterable[Occurrence]) -> list[BracketedAlias]:
    """Return the aliases that stand in brackets after the given occurrences."""
    aliases: list[BracketedAlias] = []
    for occurrence in occurrences:
        bracket = _BRACKET.match(text, occurrence.end) if occurrence.end else None
        if bracket:
            aliases += _aliases_in_bracket(occurrence, bracket)
    return aliases


def _aliases_in_bracket(owner: Occurrence, bracket: re.Match[str]) -> list[BracketedAlias]:
    aliases: list[BracketedAlias] = []
    text, position = bracket.string, bracket.start(1)
    for part in _SEPARATOR.split(bracket.group(1)):
        start = text.find(part, position, bracket.end(1))
        position = start + len(part)
        marker = _ALIAS_MARKER.match(part.lstrip())
        offset = len(part) - len(part.lstrip()) + (marker.end() if marker else 0)
        name = part[offset:].strip(" \"“”«»'")
        if name and _is_alias(owner.name, name, has_marker=marker is not None):
            begin = text.find(name, start + offset, bracket.end(1))
            other = Occurrence(name, begin, begin + len(name), Cue.CAPITALS, owner.type)
            aliases.append(BracketedAlias(owner, other))
    return aliases


def _is_alias(name: str, other: str, *, has_marker: bool) -> bool:
    if any(character.isdigit() for character in other) or entity_key(name) == entity_key(other):
        return False
    if _HAN.search(name) and not _HAN.search(other):
        return bool(_CAPITALISED.fullmatch(other)) and other[0].isupper()
    if _HAN.search(other):
        is_foreign = not _HAN.search(name) and _HAN_NAME.fullmatch(other) is not None
        return len(other) <= MAX_SHORT_CHARS and (has_marker or is_foreign)
    if _starts_cyrillic(name) != _starts_cyrillic(other):
        return bool(_CAPITALISED.fullmatch(other)) and other[0].isupper()
    return abbreviates(other, name) or abbreviates(name, other)


def _starts_cyrillic(name: str) -> bool:
    """Return whether the first letter of a name is Cyrillic."""
    letter = _LETTERS.search(name)
    return letter is not None and "Ѐ" <= letter.group() <= "ӿ"


def abbreviates(short: str, long: str) -> bool:
    """Return whether `short` consists of the beginnings of the words of `long` in order; small words are optional."""
    long_words = [word for word in re.split(r"[\s\-‐–]+", long.casefold()) if word]
    letters = short.replace(".", "").casefold()
    if len(long_words) < 2 or not 2 <= len(letters) <= MAX_SHORT_CHARS or " " in short or not short[0].isupper():
        return False
    if not (is_acronym(short.replace(".", "")) or sum(c.isupper() for c in short) > 1 or _starts_cyrillic(short)):
        return False
    return long_words[0][0] == letters[0] and _is_cut_from(letters, long_words)


def _is_cut_from(letters: str, long_words: Sequence[str]) -> bool:
    """Return whether `letters` splits into beginnings of the words in order, with every word used but small ones."""
    reached = {0}
    for word in long_words:
        advanced = set(reached) if word in _SMALL_WORDS else set()
        for position in reached:
            size = 0
            while size < len(word) and position + size < len(letters) and word[size] == letters[position + size]:
                size += 1
                advanced.add(position + size)
        reached = advanced
        if not reached:
            return False
    return len(letters) in reached


def stated_aliases(
    text: str, bracketed: Sequence[BracketedAlias], candidates: Sequence[Candidate]
) -> tuple[ExtractedAlias, ...]:
    """Return the distinct aliases that the text states for the candidates; the longer form is the name."""
    name_by_start = {start: candidate.name for candidate in candidates for start, _ in candidate.spans}
    pairs = [
        (name_by_start[alias.owner.start], name_by_start.get(alias.other.start, alias.other.name))
        for alias in bracketed
        if alias.owner.start in name_by_start
    ]
    pairs = [
        (alias, name) if abbreviates(name, alias) else (name, alias)
        for name, alias in (*pairs, *_known_as(text, candidates))
    ]
    pairs += [(c.name, spaced) for c in candidates if c.cue is Cue.SPEAKER and (spaced := split_screen_name(c.name))]
    distinct = dict.fromkeys(pair for pair in pairs if entity_key(pair[0]) != entity_key(pair[1]))
    return tuple(ExtractedAlias(name=name, alias=alias) for name, alias in distinct)


def _known_as(text: str, candidates: Sequence[Candidate]) -> list[tuple[str, str]]:
    """Return pairs such as ("Kim Jong-hyun", "Jonghyun") from "Kim Jong-hyun, better known as Jonghyun"."""
    spans = sorted((start, end, candidate.name) for candidate in candidates for start, end in candidate.spans)
    return [
        (name, other)
        for (_, end, name), (start, _, other) in pairwise(spans)
        if end < start <= end + MAX_GAP_CHARS and _KNOWN_AS.fullmatch(text, end, start)
    ]
