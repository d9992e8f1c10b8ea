"""What acceptance tests share: what is in evidence, and evidence as text that a person can read."""

from collections.abc import Iterator, Sequence

from quipu.engine import Quipu
from quipu.model.evidence import Evidence, Hit
from quipu.model.ids import relation_ends
from quipu.model.query import Query
from quipu.ports.store import ReadView

MAX_SHOWN = 10  # of each section


async def made_anew(kb: Quipu) -> None:
    """Find the communities anew, so that nothing is left of how the index came about."""
    report = await kb.refresh(["communities", "reports"], rebuild=True)
    assert report.is_complete, report


def sections(evidence: Evidence) -> dict[str, tuple[Hit, ...]]:
    """Return the evidence by the kind of what was found."""
    return {
        "chunks": evidence.chunks,
        "entities": evidence.entities,
        "relations": evidence.relations,
        "claims": evidence.claims,
        "reports": evidence.reports,
    }


def ids_in(evidence: Evidence) -> set[str]:
    """Return every id the evidence names: hits, what seeds led to, sources of points, and both ends of relations."""
    found = {hit.id for hits in sections(evidence).values() for hit in hits}
    found |= {scored.id for seed in evidence.seeds for scored in seed.matches}
    found |= {source for point in evidence.points for source in (*point.reports, *point.chunks)}
    return found | {end for each in evidence.relations for end in relation_ends(each.id)}


async def told(kb: Quipu, strategy: str, questions: Sequence[str], **options: object) -> str:
    """Return what a strategy finds for each question: scores to three decimals, ids, and what the ids stand for."""
    lines: list[str] = []
    for question in questions:
        query = Query(text=question, strategy=strategy, **options)  # type: ignore[arg-type]
        evidence = await kb.retrieve(query)
        async with kb._store.view() as view:
            meaning = await _meanings(evidence, view)
        lines += ["", question, *_shown(evidence, meaning)]
    return "\n".join([f"What `{strategy}` finds.", *lines]) + "\n"


async def _meanings(evidence: Evidence, view: ReadView) -> dict[str, str]:
    """Return the place of each chunk and the title of each report."""
    chunks = await view.chunks([hit.id for hit in evidence.chunks])
    reports = await view.cluster_reports([hit.id for hit in evidence.reports])
    return {each.id: f"{each.document_id} {each.ordinal}" for each in chunks} | {r.cluster: r.title for r in reports}


def _shown(evidence: Evidence, meaning: dict[str, str]) -> Iterator[str]:
    for name, hits in sections(evidence).items():
        if hits:
            yield f"  {len(hits)} {name}"
        for hit in hits[:MAX_SHOWN]:
            told = f" · {meaning[hit.id]}" if hit.id in meaning else ""
            yield f"    {hit.score:.3f} {hit.id}{told}"
