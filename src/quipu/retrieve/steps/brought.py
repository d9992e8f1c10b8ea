"""Brought: as many entities as fit a share of the budget together with the relations and claims they bring along."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quipu.model.evidence import Hit, Scored
from quipu.model.graph import IncidentRelation, claim_text, entity_text, relation_text
from quipu.ports.providers import Tokenizer
from quipu.ports.store import ReadView
from quipu.retrieve.steps.claiming import MAX_CLAIMS, Charge, charges_of
from quipu.retrieve.steps.search import near_hits
from quipu.retrieve.steps.surroundings import Around, relations_of
from quipu.text.formatting import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """Entities, nearest first, with relations and claims of theirs; `notes` tell what was left out."""

    entities: tuple[Hit, ...] = ()
    relations: tuple[Hit, ...] = ()
    claims: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()


async def those_that_fit(
    around: Around, n_tokens: int, *, question: str, view: ReadView, tokenizer: Tokenizer
) -> Brought:
    """Return as many of the entities, from the first on, as fit together with all relations and claims these bring.

    Claims are brought by the entity they are about, those of use to the question first.
    """
    keys = [entity.id for entity in around.entities]
    charges = await charges_of(keys, question, view)
    relations_by_number = [relations_of(keys[:n], around.incident) for n in range(len(keys) + 1)]
    cost_by_relation = await _cost_by_relation(relations_by_number, view, tokenizer)
    text_by_key = {each.key: entity_text(each.name, each.description) for each in await view.entities(keys)}
    spent, n_fit = 0, 0
    for n, key in enumerate(keys, 1):
        texts = [text_by_key.get(key, ""), *(claim_text(each.claim) for each in charges.taken[key])]
        spent += sum(map(tokenizer.count, texts))
        if spent + sum(cost_by_relation.get(relation.id, 0) for relation in relations_by_number[n]) > n_tokens:
            break
        n_fit = n
    fitting = around.entities[:n_fit]
    return Brought(
        entities=near_hits(fitting),
        relations=tuple(_relation_hit(each, keys[:n_fit]) for each in relations_by_number[n_fit]),
        claims=tuple(_claim_hit(charge, entity) for entity in fitting for charge in charges.taken[entity.id]),
        notes=tuple(_notes(keys, n_fit, charges.cut)),
    )


async def _cost_by_relation(
    wanted: Sequence[Sequence[IncidentRelation]], view: ReadView, tokenizer: Tokenizer
) -> Mapping[str, int]:
    ids = sorted({relation.id for relations in wanted for relation in relations})
    return {
        each.id: tokenizer.count(relation_text(each.keywords, each.source, each.target, each.description))
        for each in await view.relations(ids)
    }


def _relation_hit(relation: IncidentRelation, keys: Sequence[str]) -> Hit:
    is_within = relation.source in keys and relation.target in keys
    where = "between two of the entities" if is_within else "leads out of the entities"
    reason = f"{where}; its ends have {relation.degree_sum} relations"
    return Hit(id=relation.id, score=float(relation.degree_sum), reason=reason)


def _claim_hit(charge: Charge, entity: Scored) -> Hit:
    shared = f", with {format_count(charge.n_shared, 'word')} of the question" if charge.n_shared else ""
    return Hit(id=charge.claim.id, score=entity.score, reason=f"is about {entity.id}{shared}")


def _notes(keys: Sequence[str], n_fit: int, cut: Collection[str]) -> Iterator[str]:
    if n_fit < len(keys):
        yield f"with the relations and claims they bring {n_fit} of {format_count(len(keys), 'entity')} fit"
    if much := [key for key in keys[:n_fit] if key in cut]:
        yield f"only {MAX_CLAIMS} claims each are taken about {', '.join(much)}"
