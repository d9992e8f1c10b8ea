"""Quoted: the answer without a model, the sentences that answer with the numbers of their passages."""

from collections.abc import Sequence
from dataclasses import dataclass

from quipu.answer.cite import cite
from quipu.answer.extractive import MIN_WORDS, Extract, extract
from quipu.answer.material import Material
from quipu.answer.sources import quotable_passages
from quipu.model.answer import Citation
from quipu.model.query import Filter, Query
from quipu.text.content_terms import content_terms_of
from quipu.text.formatting import format_count

EXTRACTIVE = "extractive"
NOTHING_FOUND = "I found nothing about this."
_NOUNS = {"points": "point", "reports": "report", "claims": "claim", "chunks": "passage"}  # what can be cited


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """Quotes as a text, or that nothing was found and where; `note` says how well they hold the question."""

    text: str
    citations: tuple[Citation, ...]
    note: str


def quote(query: Query, material: Material) -> Quoted:
    """Return the quotes that answer `query`."""
    found = extract(query.text, quotable_passages(material), material.mentions)
    quotes = found.quotes if found.is_supported else ()
    citations = tuple(cite(each, material.source_by_document) for each in quotes)
    return Quoted(
        text=_joined(citations) if citations else _nothing_found(query, material),
        citations=citations,
        note=_support_note(found),
    )


def _joined(citations: Sequence[Citation]) -> str:
    return "\n\n".join(f"{citation.quote} [{citation.number}]" for citation in citations)


def _nothing_found(query: Query, material: Material) -> str:
    if why := _why_nothing(query, material):
        return f"{NOTHING_FOUND} {why}"
    packed = material.packed
    n_accounts = {"point": len(packed.points), "report": len(packed.reports), "claim": len(packed.claims)}
    found = [format_count(n, noun) for noun, n in n_accounts.items() if n]
    if packed.passages or not found:
        found.append(format_count(len(packed.passages), "passage") if packed.passages else "no passage")
    brought = f"{NOTHING_FOUND} The strategy '{query.strategy}' brought back {' and '.join(found)}"
    passages = quotable_passages(material)
    retold = _retold(query, material)
    if not passages:
        return f"{brought}.{retold}"
    n_documents = len({passage.chunk.document_id for passage in passages})
    first = f"first '{passages[0].chunk.title}', but none says enough."
    return f"{brought} from {format_count(n_documents, 'document')}, {first}{retold}"


def _retold(query: Query, material: Material) -> str:
    """Return where else words of the question stand: what sums documents up is never quoted, but may be read."""
    asked, packed = frozenset(content_terms_of(query.text)), material.packed
    needed = min(MIN_WORDS, len(asked))
    told = {
        "reports": (f"{report.title} {report.text}" for report in packed.reports),
        "descriptions of entities": (f"{entity.name} {entity.description}" for entity in packed.entities),
    }
    found = [what for what, texts in told.items() if needed and any(_shared(asked, text) >= needed for text in texts)]
    if not found:
        return ""
    return f" The {' and the '.join(found)} have words of the question: `--context` shows what they say."


def _shared(asked: frozenset[str], text: str) -> int:
    return len(asked.intersection(content_terms_of(text)))


def _why_nothing(query: Query, material: Material) -> str:
    """Return why nothing was brought back, "" where something was, or the search itself found nothing."""
    packed = material.packed
    if not material.evidence.looks_up:
        return f"The strategy '{query.strategy}' looks nothing up, and no language model answered."
    if packed.passages or packed.accounts:
        return ""
    if not material.has_text:
        return (
            "The filter matches no document that has been read."
            if query.filter != Filter()
            else "No document has been read yet."
        )
    found = [format_count(len(each.ids), _NOUNS[each.section]) for each in packed.dropped if each.section in _NOUNS]
    if not found:
        return ""
    room = f"no room for them (total_tokens is {query.budget.total:,})"
    return f"The strategy '{query.strategy}' found {' and '.join(found)}, but the budgets of tokens leave {room}."


def _support_note(found: Extract) -> str:
    best, total = found.best_share, found.total_share
    return f"of what the question's words tell, the best quote holds {best:.0%}, all quotes together {total:.0%}"
