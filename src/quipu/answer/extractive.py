"""Extractive answer: without a model, the few sentences of the passages that say most about the question.

Sentences are chosen greedily, one after the other, as in maximal marginal relevance (Carbonell and Goldstein 1998):
words that an earlier quote holds count no more. The score of a sentence is the share of the question's weighted words
that it and its title hold. It is higher where the sentence offers the expected kind of answer, where its passage is
ranked high, and where it is about an entity that a quote from another passage names: the bridge of a two-hop question.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quipu.answer.answer_input import AnswerDraft, AnswerInput, quotable_passages
from quipu.answer.citation_check import cite
from quipu.answer.context import Passage
from quipu.answer.sentences import EntityNames, QuotableSentence, WeightedQuestion, quotable_sentences
from quipu.model.answer import Citation
from quipu.model.graph import EntityMention
from quipu.model.query import Filter, Query
from quipu.text.content_terms import content_terms_of
from quipu.text.formatting import format_count

EXTRACTIVE = "extractive"
NOTHING_FOUND = "I found nothing about this."
MAX_QUOTES = 4

# Weights beside the share of the question's words, which is at most 1. Set on the development questions of musique,
# hotpot, 2wiki and lihua together, where each can be halved or doubled for less than three points.
OFFER_WEIGHT = 0.2  # the sentence offers the expected kind of answer
RANK_WEIGHT = 0.15  # of the first passage; the sixth has half of it
HALF_RANK = 5
BRIDGE_WEIGHT = 0.3  # the passage is about an entity that another passage brought in

# Below these limits the passages are about something else: the best quote must hold a quarter of the question's weight,
# all quotes together half of it, and one quote two of its words, since a single word may occur anywhere.
MIN_BEST_SHARE = 0.25
MIN_TOTAL_SHARE = 0.5
MIN_WORDS = 2

_NOUN_BY_SECTION = {"points": "point", "reports": "report", "claims": "claim", "chunks": "passage"}  # can be cited


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteSelection:
    """The quotes that say most about a question, best first, and whether they are about it at all (`is_supported`).

    `best_share` is the share of the question's weight that the best sentence holds, `total_share` the share that all
    quotes hold together.
    """

    quotes: tuple[QuotableSentence, ...] = ()
    best_share: float = 0.0
    total_share: float = 0.0
    is_supported: bool = False


def quote_answer(query: Query, answer_input: AnswerInput) -> AnswerDraft:
    """Return the quotes that answer a query as a text with their numbers, or that nothing was found, and why."""
    selection = select_quotes(query.text, quotable_passages(answer_input), answer_input.mentions)
    quotes = selection.quotes if selection.is_supported else ()
    citations = tuple(cite(quote, answer_input.source_by_document) for quote in quotes)
    best, total = selection.best_share, selection.total_share
    return AnswerDraft(
        text=_join(citations) if citations else _nothing_found(query, answer_input),
        generator=EXTRACTIVE,
        citations=citations,
        is_supported=bool(citations),
        trace_notes=(
            f"the best quote holds {best:.0%} of the question's weighted words, all quotes together {total:.0%}",
        ),
    )


def select_quotes(text: str, passages: Sequence[Passage], mentions: Iterable[EntityMention]) -> QuoteSelection:
    """Return up to `MAX_QUOTES` quotes for the question `text`; `mentions` tell which words are names, of which type.

    Quotes of equal score are taken in the order of the passages and of their text.
    """
    names = EntityNames.of(mentions)
    ranks = {number: rank for rank, number in enumerate(dict.fromkeys(passage.number for passage in passages))}
    candidates = quotable_sentences(passages, names)
    question = WeightedQuestion.of(text, candidates, names)
    base_scores = [_base_score(candidate, question, ranks) for candidate in candidates]
    remaining = list(range(len(candidates)))
    quotes: list[QuotableSentence] = []
    coverage = _Coverage()
    while remaining and len(quotes) < MAX_QUOTES:
        best = max(remaining, key=lambda i: (round(base_scores[i] + _gain(candidates[i], coverage, question), 6), -i))
        if quotes and not _adds(candidates[best], coverage, question):
            break
        remaining.remove(best)
        quotes.append(candidates[best])
        coverage = coverage.with_quote(candidates[best], question)
    best_share = max((question.share(candidate.about) for candidate in candidates), default=0.0)
    total_share = question.share(coverage.terms)
    has_enough = best_share >= MIN_BEST_SHARE and total_share >= MIN_TOTAL_SHARE and _has_words(quotes, question)
    return QuoteSelection(quotes=tuple(quotes), best_share=best_share, total_share=total_share, is_supported=has_enough)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Coverage:
    """What the quotes chosen so far hold; `names` are entities in them that the question does not name."""

    passages: frozenset[int] = frozenset()
    terms: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def with_quote(self, quote: QuotableSentence, question: WeightedQuestion) -> "_Coverage":
        return _Coverage(
            passages=self.passages | {quote.passage.number},
            terms=self.terms | quote.about,
            names=self.names | {key for key in (*quote.names, quote.subject) if key and not question.is_named(key)},
        )


def _base_score(sentence: QuotableSentence, question: WeightedQuestion, ranks: Mapping[int, int]) -> float:
    """Return the part of the score that does not depend on other quotes; `ranks` count passage numbers from 0."""
    rank = ranks[sentence.passage.number]
    return RANK_WEIGHT / (1 + rank / HALF_RANK) + OFFER_WEIGHT * question.is_offered_by(sentence)


def _gain(sentence: QuotableSentence, coverage: _Coverage, question: WeightedQuestion) -> float:
    """Return what a sentence adds to the quotes chosen so far."""
    is_bridge = sentence.subject in coverage.names and sentence.passage.number not in coverage.passages
    return question.share(sentence.about, unless=coverage.terms) + BRIDGE_WEIGHT * is_bridge


def _adds(sentence: QuotableSentence, coverage: _Coverage, question: WeightedQuestion) -> bool:
    """Return whether a sentence says something new, or is about an entity that the question names."""
    return _gain(sentence, coverage, question) > 0 or (sentence.subject != "" and question.is_named(sentence.subject))


def _has_words(quotes: Sequence[QuotableSentence], question: WeightedQuestion) -> bool:
    """Return whether one of the quotes holds `MIN_WORDS` of the question's words, or all where it has fewer."""
    n_needed = min(MIN_WORDS, len(question.weights))
    return any(len(quote.terms & question.weights.keys()) >= n_needed for quote in quotes)


def _join(citations: Sequence[Citation]) -> str:
    return "\n\n".join(f"{citation.quote} [{citation.number}]" for citation in citations)


def _nothing_found(query: Query, answer_input: AnswerInput) -> str:
    if reason := _why_empty(query, answer_input):
        return f"{NOTHING_FOUND} {reason}"
    packed = answer_input.packed
    n_by_noun = {"point": len(packed.points), "report": len(packed.reports), "claim": len(packed.claims)}
    counts = [format_count(n, noun) for noun, n in n_by_noun.items() if n]
    if packed.passages or not counts:
        counts.append(format_count(len(packed.passages), "passage") if packed.passages else "no passage")
    text = f"{NOTHING_FOUND} The strategy '{query.strategy}' found {' and '.join(counts)}"
    passages = quotable_passages(answer_input)
    hint = _hint_at_summaries(query, answer_input)
    if not passages:
        return f"{text}.{hint}"
    n_documents = len({passage.chunk.document_id for passage in passages})
    first = f"first '{passages[0].chunk.title}', but none says enough."
    return f"{text} from {format_count(n_documents, 'document')}, {first}{hint}"


def _hint_at_summaries(query: Query, answer_input: AnswerInput) -> str:
    """Return where else words of the question occur: reports and descriptions are never quoted, but may be read."""
    question_terms, packed = frozenset(content_terms_of(query.text)), answer_input.packed
    n_needed = min(MIN_WORDS, len(question_terms))
    texts_by_kind = {
        "reports": (f"{report.title} {report.text}" for report in packed.reports),
        "descriptions of entities": (f"{entity.name} {entity.description}" for entity in packed.entities),
    }
    kinds = [
        kind
        for kind, texts in texts_by_kind.items()
        if n_needed and any(len(question_terms.intersection(content_terms_of(text))) >= n_needed for text in texts)
    ]
    if not kinds:
        return ""
    return f" The {' and the '.join(kinds)} have words of the question: `--context` shows what they say."


def _why_empty(query: Query, answer_input: AnswerInput) -> str:
    """Return why the context is empty; "" where it is not, or where the search itself found nothing."""
    packed = answer_input.packed
    if not answer_input.evidence.searches_index:
        return f"The strategy '{query.strategy}' looks nothing up, and no language model answered."
    if packed.passages or packed.secondary:
        return ""
    if not answer_input.has_text:
        return (
            "The filter matches no document that has been read."
            if query.filter != Filter()
            else "No document has been read yet."
        )
    counts = [
        format_count(len(hits.ids), _NOUN_BY_SECTION[hits.section])
        for hits in packed.dropped
        if hits.section in _NOUN_BY_SECTION
    ]
    if not counts:
        return ""
    room = f"no room for them (total_tokens is {query.budget.total:,})"
    return f"The strategy '{query.strategy}' found {' and '.join(counts)}, but the token budgets leave {room}."
