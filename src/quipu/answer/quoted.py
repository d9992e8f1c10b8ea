"""Quoted: the answer without a model, the sentences that answer with the numbers of their passages."""

from collections.abc import Sequence
from dataclasses import dataclass

from quipu.answer.cite import cite
from quipu.answer.extractive import Extract, extract
from quipu.answer.material import Material
from quipu.answer.sources import quotable_passages
from quipu.model.answer import Citation
from quipu.model.query import Query

EXTRACTIVE = "extractive"
NOTHING_FOUND = "I found nothing about this."


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
    packed = material.packed
    n_accounts = {"point": len(packed.points), "report": len(packed.reports), "claim": len(packed.claims)}
    found = [_counted(n, noun) for noun, n in n_accounts.items() if n]
    if packed.passages or not found:
        found.append(_counted(len(packed.passages), "passage") if packed.passages else "no passage")
    brought = f"{NOTHING_FOUND} The strategy '{query.strategy}' brought back {' and '.join(found)}"
    passages = quotable_passages(material)
    if not passages:
        return f"{brought}."
    n_documents = len({passage.chunk.document_id for passage in passages})
    return (
        f"{brought} from {_counted(n_documents, 'document')}, first '{passages[0].chunk.title}', but none says enough."
    )


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _support_note(found: Extract) -> str:
    best, total = found.best_share, found.total_share
    return f"of what the question's words tell, the best quote holds {best:.0%}, all quotes together {total:.0%}"
