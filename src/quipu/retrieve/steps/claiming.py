"""Claiming: which of the claims about an entity are of use to a question, where there are more than are taken."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quipu.model.graph import Claim, claim_text
from quipu.ports.store import ReadView
from quipu.text.content_terms import content_terms_of

Place = tuple[str, int]

MAX_CLAIMS = 20  # taken of each entity; Microsoft takes all
MAX_READ = 200  # looked at of each entity, the first by chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A claim, and how many of the question's words it has beside the name of whom it is about."""

    claim: Claim
    n_shared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges:
    """The claims that are taken about each entity, the most useful first; about `cut` there are more."""

    taken: Mapping[str, Sequence[Charge]]
    cut: frozenset[str]


async def charges_of(keys: Sequence[str], question: str, view: ReadView) -> Charges:
    """Return what is claimed about entities, of each as much as is of use to a question."""
    said = await view.claims_of_entities(keys, MAX_READ) if keys else {}
    wanted = frozenset(content_terms_of(question))
    ordered = await asyncio.to_thread(lambda: {key: of_use(claims, wanted) for key, claims in said.items()})
    return Charges(
        taken={key: ordered.get(key, [])[:MAX_CLAIMS] for key in keys},
        cut=frozenset(key for key, claims in said.items() if len(claims) > MAX_CLAIMS),
    )


def of_use(claims: Sequence[Claim], wanted: frozenset[str]) -> list[Charge]:
    """Return the claims about one entity in the order of their use to a question whose words are `wanted`.

    First come those that share the most words with it, then those that are made most often, then by chunk and as they
    were said. What was claimed before in the same words says nothing new: it comes after all else.
    """
    places_by_words: dict[tuple[str, ...], list[Place]] = {}
    for each in claims:
        places_by_words.setdefault(_words(each), []).append(_place(each))
    names = {each.subject_name for each in claims}  # in every claim: they tell none from another
    telling = wanted.difference(*map(content_terms_of, names))
    charges = [
        Charge(claim=each, n_shared=len(telling.intersection(content_terms_of(claim_text(each))))) for each in claims
    ]

    def order(charge: Charge) -> tuple[bool, int, int, Place]:
        place, same = _place(charge.claim), places_by_words[_words(charge.claim)]
        return place != min(same), -charge.n_shared, -len(same), place

    return sorted(charges, key=order)


def _place(claim: Claim) -> Place:
    return claim.chunk_id, int(claim.id.rpartition(":")[2])


def _words(claim: Claim) -> tuple[str, ...]:
    told = (claim.type, claim.status, claim.dates, claim.description)
    return (claim.object, *(" ".join(each.casefold().split()) for each in told))
