"""Grounds: which evidence leads to a chunk, as the graph knows it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from quipu.model.evidence import Evidence, Hit, SupportingHit
from quipu.model.graph import Claim, Entity, Relation
from quipu.model.ids import relation_ends
from quipu.ports.store import ReadView
from quipu.text.formatting import format_count

MAX_GROUNDS = 10  # entities, relations and claims, each; points and reports where no passage is ranked


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the graph says of evidence: entities by key, relations and claims by id, which chunks name or state them."""

    evidence: Evidence
    entities: Mapping[str, Entity]
    relations: Mapping[str, Relation]
    named_in: Mapping[str, Mapping[str, int]]
    stated_in: Mapping[str, frozenset[str]]
    claims: Mapping[str, Claim]
    reports: Mapping[str, tuple[str, frozenset[str]]]  # title and chunks
    names: Mapping[str, str]


async def read_known(evidence: Evidence, view: ReadView) -> Known:
    """Return what a view knows of evidence; what is unknown there is left out."""
    found = [scored.id for seed in evidence.seeds for scored in seed.found]
    relations = {
        each.id: each for each in await view.relations(_ordered([hit.id for hit in evidence.relations], found))
    }
    ends = [end for relation in relations for end in relation_ends(relation)]
    keys = _ordered([hit.id for hit in evidence.entities], found, ends)
    entities = {each.key: each for each in await view.entities(keys)}
    stated = await view.chunks_of_relations(list(relations))
    reports = await view.cluster_reports(_ordered([hit.id for hit in evidence.reports], found))
    names = {each.id: f"{each.source_name} – {each.target_name}" for each in relations.values()}
    names |= {each.cluster: each.title for each in reports if each.title}
    return Known(
        evidence=evidence,
        entities=entities,
        relations=relations,
        named_in=await view.chunks_of_entities(list(entities), await view.n_chunks()),
        claims={each.id: each for each in await view.claims([hit.id for hit in evidence.claims])},
        stated_in={relation: frozenset(chunks) for relation, chunks in stated.items()},
        reports={each.cluster: (each.title, frozenset(each.chunks)) for each in reports},
        names={**names, **{each.key: each.name for each in entities.values()}},
    )


def _ordered(*lists: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(each for listed in lists for each in listed))


def grounds(chunk: str, known: Known) -> Iterator[SupportingHit]:
    """Yield the evidence that leads to a chunk, by kind, the first of each kind first."""
    evidence = known.evidence
    times = {key: named[chunk] for key, named in known.named_in.items() if chunk in named}
    stated = {relation for relation, chunks in known.stated_in.items() if chunk in chunks}
    resting = {report: title for report, (title, chunks) in known.reports.items() if chunk in chunks}
    entities = [
        _ground("entity", place, hit, known, f"named {times[hit.id]}×") for place, hit in _in(evidence.entities, times)
    ]
    relations = [
        _ground("relation", place, hit, known, "stated here") for place, hit in _in(evidence.relations, stated)
    ]
    yield from entities[:MAX_GROUNDS]
    yield from relations[:MAX_GROUNDS]
    claimed = {claim.id: claim.description for claim in known.claims.values() if claim.chunk_id == chunk}
    for place, hit in islice(_in(evidence.claims, claimed), MAX_GROUNDS):
        yield _ground("claim", place, hit, known, "claimed here", name=claimed[hit.id])
    for place, hit in _in(evidence.reports, resting):
        yield _ground("report", place, hit, known, "rests on it", name=resting[hit.id])
    for place, point in enumerate(evidence.points, 1):
        if chunk in point.chunks or not resting.keys().isdisjoint(point.reports):
            how = "drawn from it" if chunk in point.chunks else "drawn from a report that rests on it"
            yield SupportingHit(
                kind="point", id=str(place), name=point.text, rank=place, score=point.score, reason="", how=how
            )


def found_beside(known: Known) -> Iterator[SupportingHit]:
    """Yield the first points, then the first reports of the evidence, each with what it was drawn from."""
    for place, point in enumerate(known.evidence.points[:MAX_GROUNDS], 1):
        n, noun = (len(point.reports), "report") if point.reports else (len(point.chunks), "passage")
        how = f"drawn from {format_count(n, noun)}"
        yield SupportingHit(
            kind="point", id=str(place), name=point.text, rank=place, score=point.score, reason="", how=how
        )
    for place, hit in enumerate(known.evidence.reports[:MAX_GROUNDS], 1):
        title, chunks = known.reports.get(hit.id, ("", frozenset()))
        yield _ground("report", place, hit, known, f"rests on {format_count(len(chunks), 'passage')}", name=title)


def _in(hits: Sequence[Hit], ids: Mapping[str, object] | set[str]) -> Iterator[tuple[int, Hit]]:
    return ((place, hit) for place, hit in enumerate(hits, 1) if hit.id in ids)


def _ground(kind: str, rank: int, hit: Hit, known: Known, how: str, *, name: str = "") -> SupportingHit:
    return SupportingHit(
        kind=kind,
        id=hit.id,
        name=name or known.names.get(hit.id, hit.id),
        rank=rank,
        score=hit.score,
        reason=hit.reason,
        how=how,
    )
