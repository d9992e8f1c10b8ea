"""Fakes for tests: a derivation that notes what is done with it, and a strategy that asks a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import pytest

from quipu import retrieve
from quipu.derive.catalog import sort_by_needs
from quipu.derive.derivation import Derivation, DerivationContext, RebuildEstimate
from quipu.engine import Quipu
from quipu.engine.status import DerivationStates
from quipu.errors import QuipuError
from quipu.model.chat import ChatRequest, Message, ReplyLifetime, Role
from quipu.model.delta import Delta
from quipu.model.derivation import DerivationRecord, DerivationResult, DerivationState, Freshness, RefreshCost
from quipu.model.evidence import Evidence, Hit
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.strategy import Strategy, Tools


@dataclass
class Shelf:
    """A derivation that holds nothing but a note of its revision; it is stale when documents have changed since."""

    name: str
    needs: tuple[str, ...] = ()
    n_calls: int = 0
    error: QuipuError | None = None
    missing: QuipuError | None = None  # what it takes, which is not installed
    log: list[tuple[str, bool]] = field(default_factory=list)
    n_states: int = 0

    def derivation(self) -> Derivation:
        return Derivation(
            name=self.name,
            summary="a shelf",
            read_state=self.state,
            refresh=self.refresh,
            needs=self.needs,
            asks_model=self.n_calls > 0,
            estimate_rebuild=self.anew if self.n_calls else None,
            check_installed=self.check,
        )

    def check(self) -> None:
        if self.missing:
            raise self.missing

    async def anew(self, _view: ReadView, _bench: DerivationContext) -> RebuildEstimate:
        return RebuildEstimate(cost=RefreshCost(n_calls=10 * self.n_calls))

    async def state(self, view: ReadView, _bench: DerivationContext) -> DerivationState:
        self.n_states += 1
        made = (await view.derivations()).get(self.name)
        n_chunks = (await view.counts("chunks")).chunks
        is_fresh = made is not None and made.identity == str(n_chunks)
        cost = RefreshCost() if is_fresh else RefreshCost(n_calls=self.n_calls, input_tokens=1_000, output_tokens=10)
        return DerivationState(
            name=self.name,
            freshness=Freshness.MISSING if made is None else Freshness.FRESH if is_fresh else Freshness.STALE,
            contents=f"{n_chunks} chunks",
            n_items=n_chunks,
            n_stale=0 if is_fresh else n_chunks,
            cost=cost,
        )

    async def refresh(self, context: DerivationContext, is_rebuild: bool) -> DerivationResult:
        self.log.append((self.name, is_rebuild))
        if self.error:
            raise self.error
        for n in range(self.n_calls if context.llm else 0):
            assert context.llm is not None
            await context.llm.complete(asking(f"{self.name} {n}", role=Role.REPORT))
        async with context.store.view() as view:
            n_chunks, revision = (await view.counts("chunks")).chunks, view.revision
        await context.store.commit(
            Delta(derivations=[DerivationRecord(name=self.name, identity=str(n_chunks), revision=revision)])
        )
        return DerivationResult(name=self.name, n_built=1, n_calls=self.n_calls)


def shelve(kb: Quipu, *shelves: Shelf) -> None:
    """Put shelves in place of the engine's catalog; their logs become one."""
    for each in shelves:
        each.log = shelves[0].log
    catalog = sort_by_needs([each.derivation() for each in shelves])
    kb._components = replace(kb._components, catalog=catalog)
    kb._states = DerivationStates(kb._components)


def asking(text: str, *, role: Role = Role.KEYWORDS) -> ChatRequest:
    """Return a request about a text."""
    return ChatRequest(
        messages=(Message("user", text),),
        role=role,
        max_output_tokens=50,
        lifetime=ReplyLifetime.REVISION,
        subject="Who?",
    )


def add_strategy(
    monkeypatch: pytest.MonkeyPatch,
    rounds: Callable[[list[list[str]]], Sequence[ChatRequest]],
    *,
    name: str = "talkative",
    needs: tuple[str, ...] = (),
    on_view: Callable[[ReadView], None] = lambda _: None,
) -> list[list[list[str]]]:
    """List a strategy that asks, round by round, what `rounds` makes of the replies so far; return what it was told.

    The replies of each run that came to its end are noted. It is listed by a patch, since strategies are looked up by
    name wherever a question is asked.
    """
    told: list[list[list[str]]] = []

    async def run(_query: Query, view: ReadView, tools: Tools) -> Evidence:
        replies: list[list[str]] = []
        on_view(view)
        while tools.model is not None and (requests := rounds(replies)):
            replies.append(await tools.model.ask(requests))
        told.append(replies)
        found = [chunk for each in await view.documents() for chunk in await view.chunks(document_id=each.id)]
        return Evidence(chunks=tuple(Hit(id=chunk.id, score=1.0, reason="all") for chunk in found[:1]))

    strategy = Strategy(name=name, retrieve=run, summary="talks", after="nobody", when="in tests", needs=needs)
    monkeypatch.setattr(retrieve, "STRATEGIES", MappingProxyType({**retrieve.STRATEGIES, name: strategy}))
    return told
