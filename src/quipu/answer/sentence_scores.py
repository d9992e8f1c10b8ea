"""Sentence scores: how well each sentence of the passages answers one part of a question.

A sentence scores the share of the question's words that it holds; they weigh the same, since weights by rarity changed
nothing. A word that stands only near it counts in part: in its block or the one that introduces it, in the title and
the name of the document. The score is higher where the passage ranks high and where the sentence has the form of an
answer: a definition of the term, a number or time, code for a how-to.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from quipu.answer.passage_text import FUNCTION_CHARACTERS, PassageText, sentence_bounds
from quipu.answer.question_kind import QuestionKind, QuestionPart, TermDefinition, is_light
from quipu.answer.text_blocks import BlockKind
from quipu.text.questions import (
    AnswerType,
    asks_for_changes,
    asks_for_licence,
    base_form,
    irregular_forms,
    is_licence_section,
    is_release_notes,
    offers_answer,
)
from quipu.text.unicode import is_unspaced
from quipu.text.words import STOP_WORDS, content_terms_of, fold_characters, stem

LIGHT_WORD_WEIGHT = 0.5  # in the share of words that a quote holds
PAIR_WEIGHT = 0.5  # of a pair of characters: a word of n characters has n - 1 pairs
K1, B = 1.2, 0.75  # of BM25
EXPLAINING_BLOCKS = 2  # below the heading of a section that explains an option or identifier
FIRST_BELOW = 0.9  # of a definition: the first paragraph below the term
MAX_BLOCKS = 60  # that may hold the best sentence: only their sentences are scored
MAX_NAME_WORDS = 5  # of a question that may be one identifier
_WORD = re.compile(r"[^\W\d_]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_CAPITALISED = re.compile(r"(?<=[^.!?…»\s*>#] )[\"'«“(`*]*([A-ZА-ЯЁ][^\W\d_]{2,})")
_FIRST_WORD = re.compile(r"[\W_]*([A-ZА-ЯЁ][^\W\d_]+)(?: [A-ZА-ЯЁ][^\W\d_]+)*")
_DEFAULT = re.compile(r"\bdefaults?\b|\bout of the box\b|по умолчанию|默认|缺省", re.IGNORECASE)
_STATES_DEFAULT = re.compile(  # "- **Default**: 4", "The default is 4"
    r"(?i)\W*(?:the )?(?:defaults?(?: value)?|(?:значение )?по умолчанию|默认值?)\W*(?:[:：=—]|(?:is|to)\b|[为是])"
)
_IDENTIFIER = re.compile(r"(?<![\w-])(?:\w+_\w+|--?[A-Za-z][\w-]*|[A-Za-z]*[a-z][A-Z]\w+)")
_REMARK = re.compile(
    r"\[Picture: |(?:Note|Warning|Caution|Important|Tip|Hint|Attention|(?:Changed|Added|New|Deprecated) (?:in|since))\b"
    r"[\w. ]*:"
)
_SAYS_WHAT = re.compile(r"(?:This|It|These) (?:is|are) (?:an?|the)\b|Это\b|这是")
_CAPITALS = re.compile(r"\b[A-Z][A-Z0-9]{2,}\b")
_HEADING_END = re.compile(r"[`*_]*(?:[\s(=<\[].*)?$", re.DOTALL)  # after the name of a setting
_SENTENCE_END = re.compile(r"[.!?]\s|[\n|]")
_FULL_NAME = re.compile(r"\b[A-ZА-ЯЁ][^\W\d_]+ [A-ZА-ЯЁ][^\W\d_]+")
_AUTHOR_WORDS = re.compile(
    r"(?i)\b(?:author|wr[oi]t|creat|develop|found|invent|design|start|built|made|автор|напис|созда|разраб|изобр|основа|придум)\w*"
    "|作者|编写|撰写|创始|创建|创立|开发|发明|推出|设计"
)
_CREDIT = re.compile(
    r"\bby [A-Z](?:[a-z]|\.)|\b[Aa]uthors?\b|\bwork of\b"
    r"|\b(?!(?:It|This|That|There|They)\b)[A-Z]\w+ "
    r"(?:wrote|created|developed|founded|invented|designed|built|started|made)\b"
    r"|\b(?:[Аа]втор|[Нн]аписа[лн]|[Сс]озда(?:л|н|тел)|[Рр]азработ(?:ал|ан|чик)|[Ии]зобр[её](?:л|т)|[Оо]снова(?:л|н|тел)|[Пп]ридума)"
    r"|作者|创始人|由.{1,20}(?:编写|撰写|创建|创立|开发|发明|推出|设计)"
)
_CODE = re.compile(
    r"(?<!\w)(?:[A-Za-z0-9]+(?:[_./:]+[A-Za-z0-9]+)+|[A-Za-z]+-?\d[\w.-]*\w|[a-z]+[A-Z]\w+|-{1,2}[a-z][\w-]*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWeights:
    """How much a word of the question counts by where it stands, and what else adds to a score of at most 1."""

    block: float = 0.6  # in another sentence of the block, or in the block that introduces it
    title: float = 0.8  # in the title or the name of the document
    rank: float = 0.5  # the best passage; others in proportion to their scores
    form: float = 0.2  # the sentence has the form of an answer
    definition: float = 0.6  # the sentence defines the term
    quote: float = 0.5  # BM25 of the whole quote, over the best quote's
    prose: float = 0.3  # the whole quote is text, not a list of names or links
    code: float = 0.2  # a second quote with code, for a how-to whose first one has none
    changes: float = 0.7  # of the score of a sentence in release notes, unless changes are asked for
    unnamed: float = 0.7  # of the score in a passage without any word of the question that names a document
    record: float = 6.0  # times the margin of the record that the sentence is in, by which its question is the nearest
    bridge: float = 0.3  # the passage is about something that the first quote names and the question does not


WEIGHTS = ScoreWeights()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSentence:
    """Characters [start, end) of the passage at `place`, the index of the block that holds them, and the score."""

    place: int
    block: int
    start: int
    end: int
    score: float
    share: float  # the part of the score that words give


class WordFinder:
    """Finds the words of a question in texts, in any of their forms: by their stems, pairs of characters, and codes.

    `codes` are its options and identifiers, in lower case.
    """

    def __init__(self, part: QuestionPart) -> None:
        self._part = part
        text = f"{part.words}, {part.term}"  # with a comma, so that no pair of characters is of both
        regular = _WORD.sub(lambda match: base_form(match[0].lower()), text)
        terms = [term for term in content_terms_of(regular) if not FUNCTION_CHARACTERS.search(term)]
        codes = [code.casefold() for code in _CODE.findall(text)]
        self.terms = tuple(dict.fromkeys([*terms, *codes]))
        self.codes = frozenset(codes)
        words = [term for term in self.terms if term not in codes]
        stems = sorted((word for word in words if not is_unspaced(word[0])), key=lambda word: (-len(word), word))
        pairs = [word for word in words if is_unspaced(word[0])]
        irregular = [form for term in stems for form in irregular_forms(term)]
        self._stems = _alternatives(r"({})[^\W_]*", [*irregular, *stems])  # a look-behind takes four times as long
        plain = [word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS and word.isascii()]
        self._pairs = {"".join(pair): [stem(base_form(word)) for word in pair] for pair in pairwise(plain)}
        self._joined = _alternatives(r"(?<![a-z])({})(?![a-z])", [*self._pairs])  # "createsuperuser"
        self._verbatim = _alternatives(r"(?=({}))", [*pairs, *dict.fromkeys(codes)])

    @cached_property
    def section_names(self) -> frozenset[str]:
        """The options and identifiers, the term, names in capitals, and consecutive words as one name, in lower case.

        A section with one of them as its heading explains it: MAX_BALES and maxBales explain "max bales".
        """
        words = _ASCII_WORD.findall(self._part.words.lower())
        spans = [words[i:j] for i in range(len(words)) for j in range(i + 2, min(i + MAX_NAME_WORDS, len(words)) + 1)]
        names = [mark.join(span) for span in spans if not STOP_WORDS & {span[0], span[-1]} for mark in ("_", "-", "")]
        names += map(str.casefold, (self._part.term, *_CAPITALS.findall(self._part.words)))
        return self.codes.union(names) - {""}

    def find(self, text: str) -> list[tuple[int, str]]:
        """Return where words of the question begin in a text, ascending, and which."""
        folded = fold_characters(text)
        places: list[tuple[int, str]] = []
        if self._stems:
            for match in self._stems.finditer(folded):
                start, word = match.start(), match.group()
                is_whole = not folded[max(start - 1, 0) : start].isalnum()
                if is_whole and word not in STOP_WORDS and (term := stem(base_form(word))) in self.terms:
                    places.append((start, term))
        for match in self._joined.finditer(folded) if self._joined else ():
            places += [(match.start(), term) for term in self._pairs[match[1]] if term in self.terms]
        for match in self._verbatim.finditer(folded) if self._verbatim else ():
            places.append((match.start(), match[1]))
        return sorted(places)

    def terms_in(self, text: str) -> frozenset[str]:
        """Return the words of the question that a text holds."""
        return frozenset(term for _, term in self.find(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldWords:
    """The words of a question that a quote, its headings or the title of its document hold.

    `share` is theirs of the distinct words, light words ("use", "contain") at half. With `only_subject` they are just
    those of the title and of the name that the question is about, although it has others: any passage about that
    subject would hold as much. A title with the full name of another answers "Who …?", though. It is also set where a
    question asks for an author, and no sentence names one. `has_name` is False if the question has names
    ("PostgreSQL"), or identifiers ("max_connections"), and none of them is there.
    """

    share: float = 0.0
    n_words: float = 0.0
    only_subject: bool = False
    has_name: bool = True


def has_names(question: str, text: str) -> bool:
    """Return whether a text holds one of the names of a question and one of its identifiers, if it has any.

    Names are capitalised words but the first; no abbreviations, which a text may write out.
    """
    names = " ".join(name for name in _CAPITALISED.findall(question) if not name.isupper())
    identifiers, folded = _IDENTIFIER.findall(question), text.casefold()
    is_named = not names or bool(WordFinder(QuestionPart(words=names)).terms_in(text))
    return is_named and (not identifiers or any(identifier.casefold() in folded for identifier in identifiers))


def held_words(part: QuestionPart, text: str, title: str, subject: str, question: str) -> HeldWords:
    """Return the words of a part of a question that a quoted text and the title of its document hold."""
    finder = WordFinder(part)
    in_title, in_text = finder.terms_in(title), finder.terms_in(text) | _author_terms(part, finder, text)
    terms = in_title | in_text
    predicate = frozenset(term for term in finder.terms if not is_light(term)) - in_title - finder.terms_in(subject)
    predicate_is_missing = bool(predicate) and not predicate & in_text
    people = _FULL_NAME.findall(title) if part.answer_type is AnswerType.PERSON else ()
    is_who_in_title = not all(map(finder.terms_in, people))
    return HeldWords(
        share=_weight(terms) / (_weight(finder.terms) or 1.0),
        n_words=sum(PAIR_WEIGHT if is_unspaced(term[0]) else 1.0 for term in terms),
        only_subject=(predicate_is_missing and not is_who_in_title) or _lacks_author(part, f"{text}\n{title}"),
        has_name=has_names(question, f"{text} {title}"),
    )


def _lacks_author(part: QuestionPart, text: str) -> bool:
    """Return whether a question asks who made something, and no sentence of a text names anybody who did."""
    if part.answer_type is not AnswerType.PERSON or not _AUTHOR_WORDS.search(part.words) or _CREDIT.search(text):
        return False
    sentences = [] if any(map(is_unspaced, part.words)) else _SENTENCE_END.split(text)  # names there have no capitals
    return bool(sentences) and not any(
        _FULL_NAME.search(sentence) and _AUTHOR_WORDS.search(sentence) for sentence in sentences
    )


def _author_terms(part: QuestionPart, finder: WordFinder, text: str) -> frozenset[str]:
    """Return the words of a question for an author ("wrote", "inventor") if a text says by whom something was made."""
    if part.answer_type is not AnswerType.PERSON and "author" not in part.words:
        return frozenset()
    return finder.terms_in(" ".join(_AUTHOR_WORDS.findall(part.words))) if _CREDIT.search(text) else frozenset()


def _weight(terms: Iterable[str]) -> float:
    return sum(LIGHT_WORD_WEIGHT if is_light(term) else 1.0 for term in terms)


def bm25(finder: WordFinder, text: str, n_chars: int) -> float:
    """Return BM25 of a text without IDF (Robertson and Zaragoza 2009, section 3.4)."""
    counts = Counter(term for _, term in finder.find(text))
    norm = K1 * (1 - B + B * len(text) / n_chars)
    return sum(count * (K1 + 1) / (count + norm) for _, count in sorted(counts.items()))


def _alternatives(pattern: str, terms: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile(pattern.format("|".join(map(re.escape, terms)))) if terms else None


def trust_in(passage: PassageText, question: str, weights: ScoreWeights) -> float:
    """Return how far the scores of a passage count: release notes less, unless the question is about changes."""
    is_demoted = is_release_notes(passage.chunk.document_id, passage.chunk.title) and not asks_for_changes(question)
    return weights.changes if is_demoted else 1.0


def score_sentences(
    part: QuestionPart, kind: QuestionKind, passages: Sequence[PassageText], weights: ScoreWeights = WEIGHTS
) -> list[ScoredSentence]:
    """Return the sentences of passages with their scores, best first; equal scores in the order of the passages."""
    finder = WordFinder(part)
    texts = [_MatchedText(passage, finder, trust_in(passage, part.words, weights)) for passage in passages]
    if not finder.terms:
        return []
    title_words = frozenset[str]().union(*(text.title for text in texts))
    for text in texts:
        if title_words and not any(map(title_words.intersection, (text.title, *text.terms_of_block))):
            text.trust *= weights.unnamed
    scorer = _Scorer(part, kind, finder, weights)
    bounds = [
        (scorer.block_bound(text, index), place, index)
        for place, text in enumerate(texts)
        if not is_licence_section(text.passage.chunk.headings, part.words)
        for index in text.quotable_blocks(asks_for_licence=asks_for_licence(part.words))
    ]
    best = sorted(bounds, key=lambda bound: (-round(bound[0], 6), bound[1], bound[2]))[:MAX_BLOCKS]
    scored = [sentence for _, place, index in best for sentence in scorer.sentences(texts[place], place, index)]
    return sorted(scored, key=lambda sentence: (-round(sentence.score, 6), sentence.place, sentence.start))


class _MatchedText:
    """A passage with the words of a question in each of its blocks and in its title."""

    def __init__(self, passage: PassageText, finder: WordFinder, trust: float) -> None:
        self.passage, self.text, self.blocks, self.trust = passage, passage.text, passage.blocks, trust
        occurrences = finder.find(self.text)
        self._starts, self._terms = [start for start, _ in occurrences], [term for _, term in occurrences]
        self.terms_of_block = [self.between(block.start, block.end) for block in self.blocks]
        chunk = passage.chunk
        self._heading = chunk.headings[-1] if chunk.headings else ""
        self.about = " ".join((chunk.title, chunk.document_id, *chunk.headings))
        self.title = finder.terms_in(f"{chunk.title} {chunk.document_id} {passage.name}")

    def between(self, start: int, end: int) -> frozenset[str]:
        return frozenset(self._terms[bisect_left(self._starts, start) : bisect_left(self._starts, end)])

    def section_name(self, index: int) -> str:
        """Return the name in the heading above a block, in lower case: "`max_size`", "Shop.max_size (integer)"."""
        place = self.blocks[index].heading
        heading = self.text[self.blocks[place].start : self.blocks[place].end] if place >= 0 else self._heading
        return _HEADING_END.sub("", heading.strip("#*`_ ")).rpartition(".")[2].casefold()

    def quotable_blocks(self, *, asks_for_licence: bool) -> Iterator[int]:
        """Yield the indexes of the blocks of the passage itself that may be quoted."""
        unquotable = (BlockKind.NOISE,) if asks_for_licence else (BlockKind.NOISE, BlockKind.LICENCE)
        for index, block in enumerate(self.blocks):
            if block.kind not in unquotable and block.start < self.passage.last and block.end > self.passage.first:
                yield index


class _Scorer:
    """Scores sentences for one part of a question."""

    def __init__(self, part: QuestionPart, kind: QuestionKind, finder: WordFinder, weights: ScoreWeights) -> None:
        self._part, self._kind, self._finder, self._weights = part, kind, finder, weights
        weight_by_term = {term: PAIR_WEIGHT if is_unspaced(term[0]) else 1.0 for term in finder.terms}
        total = sum(weight_by_term.values())
        self._share_by_term = {term: weight / total for term, weight in weight_by_term.items()}
        self._term = frozenset(content_terms_of(part.term))
        self._definition = TermDefinition(part)

    def block_bound(self, text: _MatchedText, index: int) -> float:
        """Return what a sentence of a block can score at most, apart from its form; a definition counts."""
        credit_by_term = self._credits(text, index) | dict.fromkeys(text.terms_of_block[index], 1.0)
        share, block = self._sum(credit_by_term), text.blocks[index]
        is_definition = share and self._definition.strength(text.text[block.start : block.end], text.about)
        return (share + self._rank(text, index) + self._weights.definition * share * is_definition) * text.trust

    def sentences(self, text: _MatchedText, place: int, index: int) -> Iterator[ScoredSentence]:
        """Yield the sentences of a block with their scores."""
        credit_by_term = self._credits(text, index)
        rank = self._rank(text, index)
        for start, end in sentence_bounds(text.text, text.blocks[index]):
            if text.passage.first <= start < text.passage.last:
                share = self._sum(credit_by_term | dict.fromkeys(text.between(start, end), 1.0))
                score = (share + rank + self._form(text, index, start, end) * share) * text.trust
                yield ScoredSentence(place=place, block=index, start=start, end=end, score=score, share=share)

    def _rank(self, text: _MatchedText, index: int) -> float:
        record_margin = text.passage.record_margin(text.blocks[index].start)
        return self._weights.rank * text.passage.score + self._weights.record * record_margin

    def _sum(self, credit_by_term: Mapping[str, float]) -> float:
        return sum(self._share_by_term[term] * min(1.0, credit) for term, credit in sorted(credit_by_term.items()))

    def _credits(self, text: _MatchedText, index: int) -> dict[str, float]:
        """Return how much each word of the question counts for the sentences of a block that do not hold it."""
        lead = text.blocks[index].lead
        around = text.terms_of_block[index] | (text.terms_of_block[lead] if lead >= 0 else frozenset())
        credit_by_term = dict.fromkeys(around, self._weights.block)
        if (name := text.section_name(index)) in self._finder.section_names:
            credit_by_term |= dict.fromkeys(self._finder.terms_in(name), 1.0)
        return credit_by_term | {term: max(self._weights.title, credit_by_term.get(term, 0.0)) for term in text.title}

    def _form(self, text: _MatchedText, index: int, start: int, end: int) -> float:
        """Return what the form of a sentence adds to its score."""
        sentence, block = text.text[start:end], text.blocks[index]
        if self._definition:
            beginning = text.text[start : block.end] if start == block.start else sentence
            begins = start == block.start and index <= block.heading + EXPLAINING_BLOCKS
            explains = begins and text.section_name(index) in self._finder.codes
            is_below = 0.0 if explains or start != block.start else self._below_term(text, index)
            return self._weights.definition * max(explains, self._definition.strength(beginning, text.about), is_below)
        if self._kind is QuestionKind.HOW_TO:
            following = text.blocks[index + 1].kind if index + 1 < len(text.blocks) else None
            return self._weights.form * (BlockKind.CODE in (block.kind, following))
        if self._kind is QuestionKind.VALUE and _DEFAULT.search(self._part.words):
            is_setting = text.section_name(index) in self._finder.section_names
            weight = self._weights.definition if is_setting else self._weights.form
            is_stated = not is_setting or _STATES_DEFAULT.match(sentence) is not None
            return weight * (1.0 if is_stated else 0.5) * (_DEFAULT.search(sentence) is not None)
        if self._part.answer_type in (AnswerType.TIME, AnswerType.NUMBER):
            return self._weights.form * offers_answer(self._part.answer_type, sentence, self._part.words)
        if self._part.answer_type in (AnswerType.PERSON, AnswerType.PLACE, AnswerType.NAME):
            return self._weights.form * self._names_something(sentence)
        return 0.0

    def _names_something(self, sentence: str) -> bool:
        """Return whether a sentence has a capitalised word that the question does not name.

        The first word counts if a word of the question follows: "Tom renewed the certificate".
        """
        words = self._part.words.casefold()
        first = _FIRST_WORD.match(sentence)
        if first and first[1].casefold() not in words and first[1].casefold() not in STOP_WORDS:
            places = self._finder.find(sentence[first.end() :])
            if places and len(sentence[first.end() : first.end() + places[0][0]].split()) <= 1:
                return True
        return any(name.casefold() not in words for name in _CAPITALISED.findall(sentence))

    def _below_term(self, text: _MatchedText, index: int) -> float:
        """Return `FIRST_BELOW` for the first paragraph below a heading, or in a document, that is the term.

        If the heading says more, it is 0.5, unless the paragraph begins with "This is a". Remarks do not count.
        """
        heading = text.blocks[index].heading
        below = [block for block in text.blocks[heading + 1 : index + 1] if block.kind is not BlockKind.NOISE]
        blocks = [block for block in below if not _REMARK.match(text.text, block.start)]
        if blocks != [text.blocks[index]] or blocks[0].kind is not BlockKind.PARAGRAPH:
            return 0.0
        chunk = text.passage.chunk
        if heading >= 0:
            title = text.text[text.blocks[heading].start : text.blocks[heading].end]
        else:
            title = (chunk.title, *chunk.headings)[-1] if chunk.ordinal == 0 or chunk.headings else ""
        words = frozenset(content_terms_of(title))
        is_about = self._term <= words and len(words) <= len(self._term) + 2 and bool(self._term)
        if words == self._term or (is_about and _SAYS_WHAT.match(text.text, blocks[0].start)):
            return FIRST_BELOW * is_about
        return 0.5 * (is_about and "_" not in title)
