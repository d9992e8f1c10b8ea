"""Overview: what a document, or a collection, is about: its beginning, its sections, its names, and central sentences.

Nothing is made beforehand and nothing is written: it consists of quotes, headings and names.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from quipu.answer.passage_text import PassageText, Span, read_passage, sentence_bounds
from quipu.answer.quotation import Quote
from quipu.answer.quote_sources import DocumentGroup, QuoteSources
from quipu.answer.text_blocks import BlockKind
from quipu.text.formatting import format_count
from quipu.text.questions import is_licence
from quipu.text.words import content_terms_of

MAX_BEGINNING = 350
MAX_SECTIONS = 400  # characters of the line that lists them
MAX_GROUP_QUOTE = 140
N_CENTRAL = 3
MIN_PARAGRAPH = 40
MIN_SENTENCE, MAX_SENTENCE = 60, 240
_MIN_PARAGRAPH_CJK = 15
_SENTENCE_RANGE_CJK = (20, 120)
_SENTENCE_END = re.compile(r"[.!?。！？…][\"'»”’)\]*_`]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewPart:
    """A part of an overview: a title or a list of sections, and a quote, if there is one."""

    label: str = ""
    quote: Quote | None = None


def overview_parts(sources: QuoteSources) -> list[OverviewPart]:
    """Return the parts of an overview of a document or of all documents; none where there is nothing to quote."""
    if sources.document:
        about = list(_document_parts(sources))
        return about if any(part.quote for part in about) else []
    if not sources.groups:
        return []
    parts = [part for group in sources.groups if (part := _group_part(group, sources.n_documents))]
    return [OverviewPart(label=f"{format_count(sources.n_documents, 'document')}."), *parts] if parts else []


def _document_parts(sources: QuoteSources) -> Iterator[OverviewPart]:
    """Yield title and beginning, sections, names, and central sentences in the order of the document."""
    passages = [read_passage(chunk, 1.0, {}) for chunk in sources.document]
    if sources.section:
        passages = [passage.below(sources.section) for passage in passages]
    beginning = next((quote for passage in passages[:3] if (quote := _beginning(passage, MAX_BEGINNING))), None)
    if sources.section and not beginning:
        beginning = _first_block(passages[0])
    title = sources.document[0].title
    label = f"{title} › {sources.section}" if sources.section not in ("", title) else title
    headings = {heading.casefold() for passage in passages for heading in passage.chunk.headings} | {title.casefold()}
    names = [name for name in sources.names if name.casefold() not in headings]
    yield OverviewPart(label=label, quote=beginning)
    if sections := _section_names(passages, {title, sources.section}):
        yield OverviewPart(label=f"Sections: {sections}")
    if names:
        yield OverviewPart(label=f"Named most: {', '.join(names)}")
    for quote in _central_quotes(passages, beginning):
        yield OverviewPart(quote=quote)


def _group_part(group: DocumentGroup, n_documents: int) -> OverviewPart | None:
    for chunk in group.chunks:
        if quote := _beginning(read_passage(chunk, 1.0, {}), MAX_GROUP_QUOTE):
            count = f" ({format_count(group.n_documents, 'document')})" if group.n_documents > 1 else ""
            title = f": {chunk.title}" if chunk.title and chunk.title not in group.name else ""
            return OverviewPart(label=f"{group.name}{count}{title}", quote=quote)
    return None


def _beginning(passage: PassageText, n_chars: int) -> Quote | None:
    """Return the first sentences of the first paragraph; None where the passage has none."""
    for block in passage.blocks:
        content = passage.text[block.start : block.end]
        if block.kind is not BlockKind.PARAGRAPH or is_licence(content) or not _is_prose(content):
            continue
        start, end = block.start, block.start
        for _, sentence_end in sentence_bounds(passage.text, block):
            if sentence_end - start > n_chars and end > start:
                break
            end = sentence_end if sentence_end - start <= n_chars else _cut(passage.text, start, n_chars)
        return _quote(passage, (start, end))
    return None


def _first_block(passage: PassageText) -> Quote | None:
    """Return the first block below a heading, which may be a list, code or a table; None where there is none."""
    blocks = (block for block in passage.blocks if block.kind not in (BlockKind.HEADING, BlockKind.NOISE))
    block = next(blocks, None)
    return _quote(passage, (block.start, min(block.end, block.start + MAX_BEGINNING))) if block else None


def _cut(text: str, start: int, n_chars: int) -> int:
    space = text.rfind(" ", start + n_chars // 2, start + n_chars)
    return space if space > 0 else start + n_chars


def _is_prose(content: str) -> bool:
    least = _MIN_PARAGRAPH_CJK if _is_unspaced(content) else MIN_PARAGRAPH
    is_markup = content.lstrip().startswith((":", "<", "|", "..", "[", "> ["))
    return len(content) >= least and not is_markup and _SENTENCE_END.search(content.rstrip()) is not None


def _is_unspaced(content: str) -> bool:
    return not content.isascii() and sum("\u3040" <= character <= "\u9fff" for character in content) * 2 > len(content)


def _section_names(passages: Sequence[PassageText], known: Collection[str]) -> str:
    """Return the headings of the highest levels, as many levels as fit; a selection where the highest alone is long.

    Lines of the text that look like headings are the lowest level. `known` ones are left out, with those above them.
    """
    paths: list[tuple[str, ...]] = []
    for passage in passages:
        headings = passage.chunk.headings
        headings = headings[max((index + 1 for index, name in enumerate(headings) if name in known), default=0) :]
        paths += [headings, *((*headings, name) for _, name in passage.headings())]
    names: list[str] = []
    for depth in range(1, max(map(len, paths), default=0) + 1):
        above = dict.fromkeys(name for path in paths for name in path[:depth])
        deeper = [name for name in above if name and name not in known and name[0] not in "[_" and not is_licence(name)]
        length = sum(len(name) + 3 for name in deeper)
        if names and length > MAX_SECTIONS:
            break
        names = deeper[:: max(1, -(-length // MAX_SECTIONS))]
    return " · ".join(names)[: MAX_SECTIONS + 40]


def _central_quotes(passages: Sequence[PassageText], beginning: Quote | None) -> Iterator[Quote]:
    """Yield a sentence from each third of the document: the one with most of the document's frequent words."""
    counts = Counter(term for passage in passages for term in set(content_terms_of(passage.text)))
    for third in range(N_CENTRAL):
        begin = third * len(passages) // N_CENTRAL
        end = max(begin + 1, (third + 1) * len(passages) // N_CENTRAL)
        if begin >= len(passages):
            return
        quotes = [quote for passage in passages[begin:end] for quote in _sentences(passage)]
        if len(passages) < N_CENTRAL:  # a short document: thirds of its sentences
            all_quotes = [quote for passage in passages for quote in _sentences(passage)]
            quotes = all_quotes[third * len(all_quotes) // N_CENTRAL : (third + 1) * len(all_quotes) // N_CENTRAL]
        fresh = [quote for quote in quotes if beginning is None or not quote.overlaps(beginning)]
        if fresh:
            yield max(fresh, key=lambda quote: (round(_centrality(quote.text, counts), 6), -quote.spans[0][0]))


def _centrality(sentence: str, counts: Counter[str]) -> float:
    """Return how frequent a sentence's words are in the chunks, on a logarithmic scale, higher for longer sentences."""
    terms = set(content_terms_of(sentence))
    return math.fsum(math.log1p(counts[term]) for term in terms) / math.sqrt(len(terms) + 4)


def _sentences(passage: PassageText) -> Iterator[Quote]:
    for block in passage.blocks:
        if block.kind is not BlockKind.PARAGRAPH:
            continue
        for start, end in sentence_bounds(passage.text, block):
            sentence = passage.text[start:end]
            low, high = _SENTENCE_RANGE_CJK if _is_unspaced(sentence) else (MIN_SENTENCE, MAX_SENTENCE)
            if low <= end - start <= high and not is_licence(sentence):
                yield _quote(passage, (start, end))


def _quote(passage: PassageText, span: Span) -> Quote:
    return Quote(passage=passage, spans=(span,), mark=span, score=1.0)
