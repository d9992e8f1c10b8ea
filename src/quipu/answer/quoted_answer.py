"""Quoted answer: without a model, the best quotes of the documents, or the closest one where none is good enough.

The question's kind decides how it is answered (`question_kind`), `quotation` chooses and grows the quotes, `overview`
makes overviews. Here they become a text with citations. Quotes are numbered from 1 in their order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from quipu.answer.answer_input import AnswerDraft, AnswerInput, quotable_passages
from quipu.answer.list_quotes import MIN_ITEMS
from quipu.answer.overview import OverviewPart, overview_parts
from quipu.answer.passage_text import Span, read_passage, sentence_bounds
from quipu.answer.question_kind import AnalysedQuestion, QuestionKind, QuestionPart
from quipu.answer.quotation import Quote, choose_quotes, grow_quote
from quipu.answer.quote_sources import MIN_RECORD_MARGIN, QuoteSources
from quipu.answer.sentence_scores import score_sentences
from quipu.answer.table_answer import TableAnswer, compute_table_answer
from quipu.answer.text_blocks import BlockKind
from quipu.model.answer import Citation
from quipu.model.graph import Chunk
from quipu.model.query import Filter, Query
from quipu.text.formatting import format_count
from quipu.text.questions import lacks_price
from quipu.text.sentences import ANSWERED, ASKED
from quipu.text.words import content_terms_of

EXTRACTIVE = "extractive"
NOTHING_FOUND = "I found no answer to this."
CLOSEST = "Closest:"

# An answer is supported where two things together are at least this: the share of the question's words that a quote
# holds, and either how rare the words of the best passage are or how many the quote holds (in a small index no word is
# rare). Chosen on the unanswerable questions of the development sets.
MIN_EVIDENCE = 0.71
TEXT_SCORE_WEIGHT = 0.12
WORD_WEIGHT = 0.08
MIN_CLOSE_COVER = 0.2  # below it, and where no record stands out, nothing is even close
MIN_WORDS = 2
SNIPPET_CHARS = 240

_NOUN_BY_SECTION = {"points": "point", "reports": "report", "claims": "claim", "chunks": "passage"}  # can be cited


def quote_answer(query: Query, answer_input: AnswerInput) -> AnswerDraft:
    """Return the quotes that answer a query as a text with their numbers, or that nothing was found, and why."""
    sources = answer_input.quote_sources
    if sources.question.kind is QuestionKind.OVERVIEW:
        parts = overview_parts(sources)
        if parts:
            section = f" of the section '{sources.section}'" if sources.section else ""
            return _draft(
                parts, answer_input, is_supported=True, trace_notes=(f"read as a question for an overview{section}",)
            )
        return AnswerDraft(text=_nothing_found(query, answer_input), generator=EXTRACTIVE)
    passages = sources.passages() if quotable_passages(answer_input) else []
    quotes = choose_quotes(sources.question, passages, subject=sources.subject) if passages else []
    if computed := _computed(sources):
        others = _without_repeats([quote for quote in quotes if not quote.overlaps(computed.quote)])
        parts = [
            OverviewPart(label=f"{computed.text}\n", quote=computed.quote),
            *(OverviewPart(quote=quote) for quote in others),
        ]
        return _draft(parts, answer_input, is_supported=True, trace_notes=("computed over the cells of a table",))
    cover = max((quote.held.share for quote in quotes), default=0.0)
    n_words = max((quote.held.n_words for quote in quotes), default=0.0)
    evidence = cover + max(TEXT_SCORE_WEIGHT * sources.text_score, WORD_WEIGHT * n_words)
    notes: tuple[str, ...] = (
        f"read as a question of the kind '{sources.question.kind}'",
        f"the best quote and its title hold {cover:.0%} of its words: evidence {evidence:.2f}, needed {MIN_EVIDENCE}",
    )
    only_subject = _hold_only_subject(sources.question, quotes)
    if only_subject:
        notes += ("the quotes hold nothing of the question but its subject",)
    has_name = any(quote.held.has_name for quote in quotes)
    if quotes and not has_name:
        notes += ("the quotes hold no name of the question",)
    no_price = all(lacks_price(sources.question.text, f"{quote.header} {quote.text}") for quote in quotes)
    if quotes and no_price:
        notes += ("the quotes name no price",)
    support = evidence / MIN_EVIDENCE if has_name and not only_subject and not no_price else 0.0
    if support >= 1:
        parts = [OverviewPart(quote=quote) for quote in _without_repeats(quotes)]
        return replace(_draft(parts, answer_input, is_supported=True, trace_notes=notes), support=support)
    nothing = _nothing_found(query, answer_input)
    margin = quotes[0].passage.record_margin(quotes[0].mark[0]) if quotes else 0.0
    if cover < MIN_CLOSE_COVER and margin < MIN_RECORD_MARGIN:
        return AnswerDraft(text=nothing, generator=EXTRACTIVE, trace_notes=notes, support=support)
    parts = [OverviewPart(label=f"{nothing} {CLOSEST}"), OverviewPart(quote=quotes[0])]
    return replace(_draft(parts, answer_input, is_supported=False, trace_notes=notes), support=support)


def best_snippets(text: str, chunks: Sequence[Chunk]) -> list[Span]:
    """Return the characters of each chunk that a search for `text` shows: around the best sentence, else the first."""
    part = QuestionPart(words=text)
    snippets: list[Span] = []
    for chunk in chunks:
        passage = read_passage(chunk, 1.0, {})
        ranked = score_sentences(part, QuestionKind.FACT, [passage])
        quotes = [quote for sentence in ranked[:3] if (quote := grow_quote(passage, sentence, SNIPPET_CHARS))]
        last = quotes[0].spans[-1] if quotes else (0, min(len(chunk.text), SNIPPET_CHARS))
        snippets.append(last)
    return snippets


def _without_repeats(quotes: Sequence[Quote]) -> list[Quote]:
    """Return quotes so that nothing is shown twice: rows of a table are one quote, a heading stands over the first."""
    joined = _join_rows(quotes)
    unrepeated = joined[:1]
    for before, quote in pairwise(joined):
        start = quote.spans[0]
        is_below_same = before.passage.chunk.id == quote.passage.chunk.id and before.spans[0] == start != quote.mark
        is_repeated = is_below_same and len(quote.spans) > 1 and not quote.row
        unrepeated.append(replace(quote, spans=quote.spans[1:]) if is_repeated else quote)
    return unrepeated


def _join_rows(quotes: Sequence[Quote]) -> list[Quote]:
    """Return quotes, of which those that are rows of one table are one."""
    joined: dict[object, Quote] = {}
    for index, quote in enumerate(quotes):
        header = quote.header or quote.spans[0]
        key = (quote.passage.chunk.id, header) if quote.row and quote.spans[-1] != header else index
        best = joined.get(key, quote)
        mark = min(best.mark[0], quote.mark[0]), max(best.mark[1], quote.mark[1])
        joined[key] = replace(best, spans=tuple(sorted({*best.spans, *quote.spans})), mark=mark)
    return list(joined.values())


def _hold_only_subject(question: AnalysedQuestion, quotes: Sequence[Quote]) -> bool:
    """Return whether no quote says more of what is asked than its subject.

    The first paragraph about a term defines it, and a list is of what is asked for, without its words.
    """
    if len(question.parts) > 1 or question.kind is QuestionKind.DEFINITION:
        return False
    lists = (quote for quote in quotes if question.kind is QuestionKind.LIST and quote.n_items >= MIN_ITEMS)
    return not any(lists) and all(quote.held.only_subject for quote in quotes)


def _computed(sources: QuoteSources) -> TableAnswer | None:
    """Return what a table in the passages answers; None where none does."""
    chunks = [chunk for chunk in sources.chunks() if "|" in chunk.text]
    whole = sources.whole_documents
    return compute_table_answer(sources.question, chunks, sources.chunk_by_place, whole) if chunks else None


def _draft(
    parts: Sequence[OverviewPart], answer_input: AnswerInput, *, is_supported: bool, trace_notes: Sequence[str]
) -> AnswerDraft:
    """Return the text of labels and quotes, each quote with its number, its citations and its marked sentence."""
    text = ""
    citations: list[Citation] = []
    highlights: list[tuple[int, int]] = []
    marks: list[tuple[int, int]] = []
    number = 0
    for part in parts:
        text += "\n\n" * bool(text) + part.label
        if part.quote is None:
            continue
        text += "\n" * bool(part.label)
        number += 1
        highlights += _highlights(part.quote, len(text))
        markdown = "".join(piece for piece, _ in _pieces(part.quote))
        text += f"{markdown}{_before_number(part.quote, markdown)}"
        mark = f"[{number}]"
        marks.append((len(text), len(text) + len(mark)))
        text += mark
        chunk = part.quote.passage.chunk
        source = answer_input.source_by_document.get(chunk.document_id, "")
        citations += part.quote.passage.citations(part.quote.spans, number, source)
    return AnswerDraft(
        text=text,
        generator=EXTRACTIVE,
        citations=tuple(citations),
        highlights=tuple(highlights),
        citation_marks=tuple(marks),
        is_supported=is_supported,
        trace_notes=tuple(trace_notes),
    )


def _before_number(quote: Quote, markdown: str) -> str:
    """Return what separates a quote from its number: in Markdown, code ends at a fence, and a table at a blank line."""
    if quote.ends_in_table:
        return "\n\n"
    return "\n" if markdown.rstrip().endswith(("```", "~~~")) else " "


def _pieces(quote: Quote) -> Iterator[tuple[str, int]]:
    """Yield the pieces of a quote as it is shown; in Markdown, two spaces keep "A:" on a line of its own below "Q:"."""
    for piece, start in quote.shown_pieces():
        end = piece.find("\n") if start >= 0 and ASKED.match(piece) else -1
        if end > 0 and ANSWERED.match(piece, end + 1):
            yield from ((piece[:end], start), ("  ", -1), (piece[end:], start + end))
        else:
            yield piece, start


def _answering(quote: Quote) -> Span:
    """Return the best sentence of a quote; if that is a heading, the first sentence or the code below it."""
    blocks = quote.passage.blocks
    place = next((n for n, block in enumerate(blocks) if block.start <= quote.mark[0] < block.end), -1)
    if place < 0 or blocks[place].kind is not BlockKind.HEADING:
        return quote.mark
    below = next(
        (block for block in blocks[place + 1 :] if block.kind not in (BlockKind.HEADING, BlockKind.NOISE)), None
    )
    if below is None or below.start >= quote.spans[-1][1] or below.kind not in (BlockKind.PARAGRAPH, BlockKind.CODE):
        return quote.mark
    if below.kind is BlockKind.CODE:
        return below.start, below.end
    return next(sentence_bounds(quote.passage.text, below))


def _highlights(quote: Quote, offset: int) -> Iterator[tuple[int, int]]:
    """Yield where what answers in a quote stands in an answer in which the quote begins at `offset`."""
    mark = _answering(quote)
    for piece, start in _pieces(quote):
        first, last = max(start, mark[0]), min(start + len(piece), mark[1])
        if start >= 0 and first < last:
            yield offset + first - start, offset + last - start
        offset += len(piece)


def _nothing_found(query: Query, answer_input: AnswerInput) -> str:
    """Return that nothing was found, and what was read in vain."""
    if reason := _why_empty(query, answer_input):
        return f"{NOTHING_FOUND} {reason}"
    packed = answer_input.packed
    n_by_noun = {"point": len(packed.points), "report": len(packed.reports), "claim": len(packed.claims)}
    counts = [format_count(n, noun) for noun, n in n_by_noun.items() if n]
    passages = quotable_passages(answer_input)
    hint = _hint_at_summaries(query, answer_input)
    if not passages:
        retrieved = " and ".join([*counts, "no passage"])
        return f"{NOTHING_FOUND} The strategy '{query.strategy}' found {retrieved}.{hint}"
    n_documents = len({passage.chunk.document_id for passage in passages})
    read = " and ".join([*counts, format_count(len(passages), "passage")])
    return f"{NOTHING_FOUND} Read: {read} of {format_count(n_documents, 'document')}.{hint}"


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
