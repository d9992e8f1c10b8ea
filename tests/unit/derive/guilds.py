"""Documents about craftsmen, alike in name by their craft and related at random; and a model that tells of them."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from quipu.derive import hierarchy
from quipu.derive.derivation import DerivationContext
from quipu.errors import QuipuError
from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.model.cluster import Cluster, ClusterRelation, ClusterReport, Hierarchy
from quipu.model.delta import DocumentFacts
from quipu.model.derivation import DerivationResult
from quipu.model.ids import digest
from quipu.model.query import Filter
from quipu.ports.providers import TextSink, ignore_text
from quipu.prompts.aggregate import RELATION_TITLE
from quipu.testing.facts import PassageSpec, document, entity, passage, relation

CRAFTS = ("Potter", "Weaver", "Smith", "Baker", "Mason", "Tanner", "Dyer", "Cooper", "Fletcher", "Glazier")
PEOPLE = 20  # of each craft


def ledger(name: str, seed: int = 0, *, n: int = 6) -> DocumentFacts:
    """Return a document of `n` passages, each about some craftsmen and what they traded."""
    random = Random(f"{name} {seed}")
    return document(name, *(_passage(name, random, number) for number in range(n)), title=name.title())


def _passage(name: str, random: Random, number: int) -> PassageSpec:
    people = list(dict.fromkeys(f"{random.choice(CRAFTS)} N{random.randrange(PEOPLE)}" for _ in range(5)))
    said = [entity(each, "Person", f"{each} is entered in {name}.") for each in people]
    trades = [relation(people[0], other, _trade(people[0], other, name)) for other in people[1:]]
    return passage(f"Entry {number} of {name}: {', '.join(people)}.", *said, *trades)


def _trade(one: str, other: str, where: str) -> str:
    return (
        f"{one} traded with {other} in {where}: " + ", ".join(f"{n} bales of wool for {n} jars" for n in range(9)) + "."
    )


def shelf(n: int = 20, seed: int = 0) -> list[DocumentFacts]:
    """Return `n` documents: about two hundred craftsmen in twenty of them."""
    return [ledger(f"ledger{number:02}", seed) for number in range(n)]


async def refresh(context: DerivationContext, *, rebuild: bool = False) -> DerivationResult:
    """Bring the hierarchy up to date, and embed the texts that makes wait."""
    return await hierarchy.DERIVATION.refresh(context, rebuild)


async def aggregates(context: DerivationContext, allowed: Filter | None = None) -> dict[str, Cluster]:
    """Return all aggregates, by id."""
    async with context.store.view(allowed) as view:
        return {each.id: each for each in await view.clusters(Hierarchy.AGGREGATES)}


async def told(context: DerivationContext, allowed: Filter | None = None) -> dict[str, ClusterReport]:
    """Return all reports that are shown, by aggregate."""
    async with context.store.view(allowed) as view:
        ids = [each.id for each in await view.clusters(Hierarchy.AGGREGATES)]
        return {each.cluster: each for each in await view.cluster_reports(ids)}


async def between(context: DerivationContext, allowed: Filter | None = None) -> list[ClusterRelation]:
    """Return all relations between aggregates that are shown."""
    async with context.store.view(allowed) as view:
        return await view.cluster_relations([each.id for each in await view.clusters(Hierarchy.AGGREGATES)])


def material_of(request: ChatRequest) -> str:
    """Return what stands between the marks of a request."""
    lines = request.messages[-1].text.splitlines()
    return "\n".join(lines[3:-1])


@dataclass
class Narrator:
    """An LLM whose replies depend on the request alone; `reply` may say something else, or raise."""

    reply: Callable[[ChatRequest], str | QuipuError | None] = lambda _: None
    before: Callable[[ChatRequest], Awaitable[None]] | None = None
    requests: list[ChatRequest] = field(default_factory=list)
    identity: str = "fake/narrator"

    async def complete(self, request: ChatRequest, _on_text: TextSink = ignore_text) -> Completion:
        self.requests.append(request)
        said = self.reply(request)
        await asyncio.sleep(0)
        if self.before is not None:
            await self.before(request)
        if isinstance(said, QuipuError):
            raise said
        return Completion(text=said or _said(request), finish=FinishReason.STOP, tokens=TokenCount(input=10, output=5))

    @property
    def about_aggregates(self) -> list[ChatRequest]:
        """The requests for reports."""
        return [each for each in self.requests if not is_between(each)]

    @property
    def about_relations(self) -> list[ChatRequest]:
        """The requests for what connects two aggregates."""
        return [each for each in self.requests if is_between(each)]


def is_between(request: ChatRequest) -> bool:
    """Say whether a request is about what connects two aggregates."""
    return request.messages[0].text.startswith(RELATION_TITLE)


def with_model(context: DerivationContext, llm: Narrator) -> DerivationContext:
    """Return the bench with a model."""
    return replace(context, llm=llm, n_ahead=2)


def words(lines: Sequence[str]) -> str:
    """Return lines as one text."""
    return "\n".join(lines)


def _said(request: ChatRequest) -> str:
    mark = digest(material_of(request))[:8]
    if is_between(request):
        return f"They trade, says {mark}."
    finding = {"summary": f"Finding {mark}.", "explanation": "Because."}
    return json.dumps({"name": f"Guild {mark}", "description": f"All told in {mark}.", "findings": [finding]})
