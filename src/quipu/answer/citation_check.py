"""Citation check: the sentences of an answer, the sentences of the sources they cite, and whether these say the same.

No model judges here. A statement is supported if the passages it cites hold each of its numbers, three quarters of the
words of its names, and a third of its content words. This is cheap, gives the same result each time, and finds what was
invented rather than what was misread.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from quipu.answer.answer_input import AnswerInput, passages_by_number
from quipu.answer.context import Passage
from quipu.answer.sentences import QuotableSentence, WeightedStatement, quotable_sentences
from quipu.model.answer import Citation, Statement
from quipu.text.languages import languages_differ
from quipu.text.sentences import sentence_spans
from quipu.text.words import Words, content_terms, content_terms_of, split_words, stem

# A second sentence of a passage is cited too, if it adds so much of the statement's weighted words.
MIN_NEW_SHARE = 0.25
MIN_TERMS = 2  # a sentence with fewer content words claims nothing: "Yes.", "In short:"
# Measured on 17,234 facts that a model extracted from MuSiQue passages: 99.8 % are supported by their own passage,
# 0.3 % by another passage, and 23 % after their object was replaced by the object of another fact. A share of one half
# would reject a fifth of a model's free statements about a novel.
MIN_TERM_SHARE = 1 / 3
MIN_NAME_SHARE = 3 / 4
STEM_LENGTH = 5  # letters by which two forms of a name are the same: Russia, Russian
MAX_DIGITS = 100

_MARK = re.compile(r"\[(\d{1,9})\]")  # a longer number is not a citation
_FOLLOWING_MARKS = re.compile(r"(?:[^\S\n]*\[\d+\])+[.,;:]?")
_HEADING = re.compile(r"#{1,6}\s|\*\*[^*\n]+\*\*:?$")
_LIST_MARKER = re.compile(r"(?:[-*+•]|\d{1,3}[.)]|[>|#]+)\s+")
_NO_CLAIM_ENDINGS = (":", "：", "?", "？")
_NUMBER = re.compile(r"\d{1,3}(?:[.,'’ ]\d{3})+(?!\d)|\d+(?:[.,]\d+)?")
_NO_DIGIT = re.compile(r"\D")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedStatements:
    """The statements of an answer; of `n_translated` of them only the numbers could be compared with the sources."""

    statements: tuple[Statement, ...]
    n_translated: int

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Every citation once, in the order of the text."""
        return tuple(dict.fromkeys(citation for statement in self.statements for citation in statement.citations))


def check_citations(text: str, answer_input: AnswerInput) -> CheckedStatements:
    """Return the statements of `text`, each with the sentences of the passages it cites and whether they support it.

    A report, a point or a claim stands for the passages it rests on: its own words support nothing. Numbers that lead
    to no passage are left out.
    """
    passages = passages_by_number(answer_input)
    sentences = [
        (sentence, [number for number in sentence.numbers if number in passages])
        for sentence in claiming_sentences(text)
    ]
    cited = {number: passages[number] for _, numbers in sentences for number in numbers}
    foreign = {
        number
        for number, sources in cited.items()
        if all(languages_differ(text, passage.chunk.text) for passage in sources)
    }
    content_by_number = {number: reduce(or_, map(content_of_passage, sources)) for number, sources in cited.items()}
    quotable = {number: quotable_sentences(sources) for number, sources in cited.items()}
    statements: list[Statement] = []
    n_translated = 0
    for sentence, numbers in sentences:
        is_translated = not foreign.isdisjoint(sentence.numbers)
        n_translated += is_translated
        content = reduce(or_, (content_by_number[number] for number in numbers), EMPTY_CONTENT)
        quotes = _best_quotes(sentence, {number: cited[number] for number in numbers}, quotable)
        statements.append(
            Statement(
                text=text[sentence.start : sentence.end],
                start=sentence.start,
                end=sentence.end,
                citations=tuple(cite(quote, answer_input.source_by_document) for quote in quotes),
                is_supported=bool(numbers) and is_supported(sentence.words, content, is_translated=is_translated),
            )
        )
    return CheckedStatements(statements=tuple(statements), n_translated=n_translated)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimingSentence:
    """Characters [start, end) of an answer that claim something: the words without marks, and the numbers cited."""

    start: int
    end: int
    words: str
    numbers: tuple[int, ...]


def claiming_sentences(text: str) -> list[ClaimingSentence]:
    """Return the sentences of `text` that claim something, in order.

    Headings, questions and introductions of lists claim nothing, unless they have a mark. A mark behind a full stop
    belongs to the sentence before it. A sentence without a mark gets the marks of the next sentence on its line that
    has one, since the last sentence of a paragraph often cites for the whole paragraph.
    """
    spans = list(_spans_with_marks(text))
    numbers = [tuple(dict.fromkeys(int(mark[1]) for mark in _MARK.finditer(text, *span))) for span in spans]
    for place in reversed(range(len(spans) - 1)):
        if not numbers[place] and "\n" not in text[spans[place][1] : spans[place + 1][0]]:
            numbers[place] = numbers[place + 1]
    sentences = [
        ClaimingSentence(start=start, end=end, words=_without_marks(text[start:end]), numbers=cited)
        for (start, end), cited in zip(spans, numbers, strict=True)
    ]
    return [sentence for sentence in sentences if _claims_something(sentence, text)]


def _spans_with_marks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the [start, end) of each sentence, with the marks that follow it."""
    covered = 0
    for start, end in sentence_spans(text):
        first = max(start, covered)
        while first < end and text[first].isspace():
            first += 1
        if first < end:
            marks = _FOLLOWING_MARKS.match(text, end)
            covered = marks.end() if marks else end
            yield first, covered


def find_citation_marks(text: str) -> tuple[tuple[int, int], ...]:
    """Return the characters [start, end) of a model's answer that are marks such as [1]."""
    return tuple(match.span() for match in _MARK.finditer(text))


def _without_marks(text: str) -> str:
    bare = _MARK.sub("", text)
    marker = _LIST_MARKER.match(bare)
    return bare[marker.end() if marker else 0 :].strip()


def _claims_something(sentence: ClaimingSentence, text: str) -> bool:
    words = text[sentence.start : sentence.end]
    if _MARK.search(words):
        return True
    if _HEADING.match(words) or sentence.words.rstrip("*_ ").endswith(_NO_CLAIM_ENDINGS):
        return False
    return len(set(content_terms_of(sentence.words))) >= MIN_TERMS


@dataclass(frozen=True, slots=True, kw_only=True)
class TextContent:
    """The parts of a text that are compared: content terms, stems of all words, numbers without punctuation."""

    terms: frozenset[str]
    stems: frozenset[str]
    numbers: frozenset[str]

    def __or__(self, other: "TextContent") -> "TextContent":
        return TextContent(
            terms=self.terms | other.terms, stems=self.stems | other.stems, numbers=self.numbers | other.numbers
        )


EMPTY_CONTENT = TextContent(terms=frozenset(), stems=frozenset(), numbers=frozenset())


def content_of(text: str) -> TextContent:
    """Return the parts of a text that are compared."""
    words = split_words(text)
    return TextContent(
        terms=frozenset(content_terms(words)), stems=_stems(words.terms), numbers=frozenset(_numbers(text))
    )


def content_of_passage(passage: Passage) -> TextContent:
    """Return the parts of a passage that are compared, including its title, headings and table header."""
    chunk = passage.chunk
    return content_of("\n".join((chunk.title, *chunk.headings, chunk.header, chunk.text)))


def is_supported(statement: str, cited: TextContent, *, is_translated: bool) -> bool:
    """Return whether the cited passages support a statement.

    Names and numbers that occur in the question are checked too, since a question may assume something false. Where the
    passages are in another language (`is_translated`), only numbers can be compared.
    """
    if not _numbers(statement) <= cited.numbers:
        return False
    if is_translated:
        return True
    words = split_words(statement)
    terms, names = frozenset(content_terms(words)), _name_stems(statement, words)
    return _share(terms, cited.terms) >= MIN_TERM_SHARE and _share(names, cited.stems) >= MIN_NAME_SHARE


def _share(terms: frozenset[str], cited: frozenset[str]) -> float:
    return len(terms & cited) / len(terms) if terms else 1.0


def _name_stems(text: str, words: Words) -> frozenset[str]:
    """Return the stems of capitalised words that do not begin a sentence."""
    sentence_starts = {start for start, _ in sentence_spans(text)}
    capitalised = [
        term
        for term, start in zip(words.terms, words.starts, strict=True)
        if text[start].isupper()
        and start not in sentence_starts
        and not text[:start].rstrip("\"'“‘«(*_ \n").endswith((":", "."))
    ]
    return _stems(capitalised)


def _stems(terms: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(term)[:STEM_LENGTH] for term in terms)


def _numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text by their digits alone, in ASCII: 1,000 and 1 000 are the same."""
    numbers = _NUMBER.findall(unicodedata.normalize("NFKC", text))
    return frozenset(str(int(digits)) for number in numbers if len(digits := _NO_DIGIT.sub("", number)) < MAX_DIGITS)


def _best_quotes(
    sentence: ClaimingSentence,
    cited: Mapping[int, Sequence[Passage]],
    quotable: Mapping[int, Sequence[QuotableSentence]],
) -> list[QuotableSentence]:
    """Return the quotes that a sentence of the answer cites: one or two for each of its numbers."""
    candidates = [quote for number in cited for quote in quotable[number]]
    statement = WeightedStatement.of(sentence.words, candidates)
    return [quote for number in cited for quote in _best_of_source(statement, cited[number], quotable[number])]


def _best_of_source(
    statement: WeightedStatement, passages: Sequence[Passage], candidates: Sequence[QuotableSentence]
) -> list[QuotableSentence]:
    """Return the candidate that holds most of the statement's words, and a second one if it adds enough.

    Where none holds any of them, return the first passage, from its first sentence to its last.
    """
    if not candidates:
        return [_whole_passage(passages[0], ())]
    first = max(candidates, key=lambda quote: round(statement.share(quote.terms), 6))
    if statement.share(first.terms) == 0:
        return [_whole_passage(passages[0], candidates)]
    second = max(candidates, key=lambda quote: round(statement.share(quote.terms, unless=first.terms), 6))
    if statement.share(second.terms, unless=first.terms) < MIN_NEW_SHARE:
        return [first]
    return [quote for quote in candidates if quote is first or quote is second]


def _whole_passage(passage: Passage, candidates: Sequence[QuotableSentence]) -> QuotableSentence:
    own = [quote for quote in candidates if quote.passage is passage]
    start, end = (own[0].start, own[-1].end) if own else (0, len(passage.chunk.text))
    nothing: frozenset[str] = frozenset()
    return QuotableSentence(passage=passage, start=start, end=end, terms=nothing, about=nothing)


def cite(quote: QuotableSentence, source_by_document: Mapping[str, str]) -> Citation:
    """Return the citation of a quote: the number of its passage, and where its words are in the document."""
    chunk = quote.passage.chunk
    return Citation(
        number=quote.passage.number,
        document_id=chunk.document_id,
        title=chunk.title,
        chunk_id=chunk.id,
        start=chunk.start + quote.start,
        end=chunk.start + quote.end,
        quote=quote.text,
        page=_page(quote),
        headings=chunk.headings,
        source=source_by_document.get(chunk.document_id, ""),
    )


def _page(quote: QuotableSentence) -> int | None:
    """Return the page a quote begins on: the page of its chunk plus one for each form feed before the quote."""
    chunk = quote.passage.chunk
    return None if chunk.page is None else chunk.page + chunk.text.count("\f", 0, quote.start)
