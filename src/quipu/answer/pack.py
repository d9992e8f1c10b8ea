"""Pack: as much of the evidence as the token budgets hold, best first; what is left out is listed."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from quipu.algo.ranking import n_fitting
from quipu.answer.accounts import Account, account_of_claim, pack_accounts
from quipu.answer.between import read_relations
from quipu.answer.render import Sections, entity_line, passage_block, relation_line
from quipu.model.chat import Message
from quipu.model.evidence import DroppedHits, Evidence, Hit
from quipu.model.graph import Chunk, Claim, Entity, Relation
from quipu.model.query import Query
from quipu.ports.providers import Tokenizer
from quipu.ports.store import ReadView
from quipu.prompts import answer as prompt
from quipu.prompts.fence import make_boundary

T = TypeVar("T")

BATCH = 200  # things read at once: a section far over its budget is not read to its end
_ANY_BOUNDARY = make_boundary("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A chunk in the context under its number, counted from 1."""

    number: int
    chunk: Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The evidence that fits, in order, and what was dropped."""

    points: tuple[Account, ...] = ()
    reports: tuple[Account, ...] = ()
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    claims: tuple[Account, ...] = ()
    passages: tuple[Passage, ...] = ()
    dropped: tuple[DroppedHits, ...] = ()

    @property
    def accounts(self) -> tuple[Account, ...]:
        """Points, reports and claims, in the order of their numbers, which come before those of passages."""
        return self.points + self.reports + self.claims

    def context(self, boundary: str = "") -> str:
        """Return the evidence as numbered text; `boundary` opens each of its headings."""
        return Sections(
            points=[account.block(boundary) for account in self.points],
            reports=[account.block(boundary) for account in self.reports],
            entities=[entity_line(entity) for entity in self.entities],
            relations=[relation_line(relation) for relation in self.relations],
            claims=[account.block(boundary) for account in self.claims],
            passages=[passage_block(passage.number, passage.chunk, boundary) for passage in self.passages],
        ).text(boundary)

    def messages(self, query: Query) -> tuple[Message, ...]:
        """Return what a model is sent."""
        boundary = prompt.make_answer_boundary(query, self.context())
        return prompt.render(query, self.context(boundary), boundary=boundary)

    def prompt(self, query: Query) -> str:
        """Return what a model is sent as one text."""
        return as_text(self.messages(query))


def as_text(messages: Sequence[Message]) -> str:
    """Return messages as one text, an empty line between them."""
    return "\n\n".join(message.text for message in messages)


async def pack(query: Query, evidence: Evidence, view: ReadView, tokenizer: Tokenizer) -> Packed:
    """Return what the budgets hold: points, reports, entities, relations, claims, and passages with what is left.

    Claims have what the relations leave of their budget. The total includes the prompt, the question and the history.
    Each section is cut at the first thing that does not fit, so that nothing overtakes what was ranked above it. Where
    there are no passages, points and reports may take all of the total.
    """
    left = query.budget.total - tokenizer.count(as_text(_frame(query, evidence)))
    room = min(query.budget.reports, left) if evidence.chunks else left
    accounts = await pack_accounts(evidence.points, evidence.reports, view, budget=room, tokenizer=tokenizer)
    left -= accounts.n_tokens
    entities = await _fill(_entities(view), evidence.entities, min(query.budget.entities, left), tokenizer)
    left -= entities.n_tokens
    relations = await _fill(_relations(view), evidence.relations, min(query.budget.relations, left), tokenizer)
    left -= relations.n_tokens
    number = 1 + len(accounts.points) + len(accounts.reports)
    room = min(query.budget.relations - relations.n_tokens, left)
    claims = await _fill(_claims(view), evidence.claims, room, tokenizer, first=number)
    left -= claims.n_tokens
    first = number + len(claims.items)
    chunks = await _fill(_chunks(view), evidence.chunks, left, tokenizer, first=first)
    filled = tuple(each.dropped for each in (entities, relations, claims, chunks) if each.dropped.ids)
    return Packed(
        points=accounts.points,
        reports=accounts.reports,
        entities=entities.items,
        relations=relations.items,
        claims=tuple(account_of_claim(place, claim) for place, claim in enumerate(claims.items, number)),
        passages=tuple(Passage(number=number, chunk=chunk) for number, chunk in enumerate(chunks.items, first)),
        dropped=accounts.dropped + filled,
    )


def _frame(query: Query, evidence: Evidence) -> tuple[Message, ...]:
    """Return what is sent beside the evidence: rules, headings, history, question."""
    nothing = [" "]
    headings = Sections(
        points=nothing if evidence.points else (),
        reports=nothing if evidence.reports else (),
        entities=nothing,
        relations=nothing,
        claims=nothing if evidence.claims else (),
        passages=nothing,
    ).text(_ANY_BOUNDARY)
    return prompt.render(query, headings, boundary=_ANY_BOUNDARY)


@dataclass(frozen=True, slots=True)
class _Section(Generic[T]):
    """A kind of evidence: how it is read, told apart, and written under its number."""

    name: str
    read: Callable[[Sequence[str]], Awaitable[list[T]]]
    identity: Callable[[T], str]
    render: Callable[[int, T], str]


@dataclass(frozen=True, slots=True)
class _Filled(Generic[T]):
    items: tuple[T, ...]
    n_tokens: int
    dropped: DroppedHits


def _entities(view: ReadView) -> _Section[Entity]:
    return _Section("entities", view.entities, lambda entity: entity.key, lambda _, entity: entity_line(entity))


def _relations(view: ReadView) -> _Section[Relation]:
    return _Section("relations", partial(read_relations, view), lambda each: each.id, lambda _, r: relation_line(r))


def _claims(view: ReadView) -> _Section[Claim]:
    def block(number: int, claim: Claim) -> str:
        return account_of_claim(number, claim).block(_ANY_BOUNDARY)

    return _Section("claims", view.claims, lambda claim: claim.id, block)


def _chunks(view: ReadView) -> _Section[Chunk]:
    return _Section("chunks", view.chunks, lambda chunk: chunk.id, lambda n, c: passage_block(n, c, _ANY_BOUNDARY))


async def _fill(
    section: _Section[T], hits: Sequence[Hit], budget: int, tokenizer: Tokenizer, *, first: int = 1
) -> _Filled[T]:
    taken: list[T] = []
    spent = 0
    for start in range(0, len(hits), BATCH):
        items = await section.read([hit.id for hit in hits[start : start + BATCH]])
        texts = [section.render(number, item) for number, item in enumerate(items, first + len(taken))]
        costs = [tokenizer.count(f"{text}\n\n") for text in texts]
        n_items = n_fitting(costs, budget - spent)
        taken += items[:n_items]
        spent += sum(costs[:n_items])
        if n_items < len(items):
            break
    kept = {section.identity(item) for item in taken}
    ids = tuple(hit.id for hit in hits if hit.id not in kept)
    return _Filled(tuple(taken), spent, DroppedHits(section=section.name, budget=max(budget, 0), ids=ids))
