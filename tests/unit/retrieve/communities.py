"""Communities for retrieval tests: a small world with a tree of communities and reports, and models to ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from quipu.errors import QuipuError
from quipu.model.chat import ChatRequest
from quipu.model.cluster import Cluster, ClusterReport, Finding, Hierarchy, Partition
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.derivation import REPORTS, DerivationRecord
from quipu.ports.providers import LLM
from quipu.retrieve.strategy import Tools
from quipu.testing.llm import ScriptedLLM
from tests.unit.retrieve.fakes import Library, page

Tree = Mapping[str, tuple[str, Sequence[str]]]  # cluster: the one above it, its members


@dataclass(slots=True)
class Asking:
    """The model of strategies over an LLM; `rounds` holds how many requests came at a time. What fails is ""."""

    llm: LLM
    rounds: list[int] = field(default_factory=list)

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str]:
        self.rounds.append(len(requests))
        return [await self._text(request) for request in requests]

    async def _text(self, request: ChatRequest) -> str:
        try:
            return (await self.llm.complete(request)).text
        except QuipuError:
            return ""


class Telling:
    """The model of strategies that gives the same reply to all, or those of a function; `asked` holds the requests."""

    def __init__(self, *replies: str) -> None:
        self.asked: list[ChatRequest] = []
        self._replies = replies

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str]:
        first = len(self.asked)
        self.asked += requests
        return [self._replies[min(first + n, len(self._replies) - 1)] for n in range(len(requests))]


def with_model(tools: Tools, llm: ScriptedLLM | None = None) -> tuple[Tools, ScriptedLLM, Asking]:
    """Return the tools with a scripted model."""
    llm = llm or ScriptedLLM()
    model = Asking(llm)
    return replace(tools, model=model), llm, model


async def divide(library: Library, tree: Tree) -> None:
    """Divide the entities of a library into communities."""
    levels: dict[str, int] = {}
    for cluster, (parent, _) in tree.items():
        levels[cluster] = levels[parent] + 1 if parent else 0
    clusters = [
        Cluster(
            id=cluster,
            hierarchy=Hierarchy.COMMUNITIES,
            level=levels[cluster],
            parent=parent,
            members=tuple(sorted(members)),
            inputs_hash=f"inputs of {cluster}",
        )
        for cluster, (parent, members) in tree.items()
    ]
    async with library.view() as view:
        revision = view.revision
    await library.commit(
        Delta(partition=Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=revision))
    )


async def report_on(library: Library, *reports: ClusterReport) -> None:
    """Keep reports, with their vectors."""
    await library.commit(
        Delta(reports=reports, derivations=[DerivationRecord(name=REPORTS, identity="test/1", revision=1)])
    )


def report(
    cluster: str,
    summary: str,
    *findings: str,
    title: str = "",
    rating: float = 5.0,
    chunks: Sequence[str] = (),
) -> ClusterReport:
    """Return a report on a cluster."""
    return ClusterReport(
        cluster=cluster,
        title=title or f"On {cluster}",
        summary=summary,
        findings=tuple(Finding(summary=each) for each in findings),
        rating=rating,
        chunks=tuple(chunks),
        inputs_hash=f"inputs of {cluster}",
        model="tests/reports",
    )


def chunk_of(*pages: DocumentFacts) -> list[str]:
    """Return the ids of the first chunks of pages."""
    return [each.chunks[0].chunk.id for each in pages]


# Two trades, silk and salt; silk is divided in two. What each page says stands in one community.
WEAVERS = page(
    "Weavers",
    "Anna wove silk in Bursa. Anna taught Basil to weave.",
    names={"Anna": "Person", "Bursa": "Location", "Basil": "Person"},
    relations=[("Anna", "Bursa", "Anna wove in Bursa."), ("Anna", "Basil", "Anna taught Basil.")],
)
CARAVANS = page(
    "Caravans",
    "Caravans took the silk of Bursa to Tabriz. Dara led them.",
    names={"Bursa": "Location", "Tabriz": "Location", "Dara": "Person"},
    relations=[("Bursa", "Tabriz", "Silk went from Bursa to Tabriz."), ("Dara", "Tabriz", "Dara led caravans.")],
)
SALT = page(
    "Salt",
    "Salt was dug in Hallein by Egil. Egil never saw silk.",
    names={"Hallein": "Location", "Egil": "Person"},
    relations=[("Egil", "Hallein", "Egil dug salt in Hallein.")],
)
TRADES: Tree = {
    "silk": ("", ()),
    "salt": ("", ("egil", "hallein")),
    "weaving": ("silk", ("anna", "basil", "bursa")),
    "carrying": ("silk", ("dara", "tabriz")),
}


async def trades(library: Library) -> Library:
    """Fill a library with the two trades."""
    await library.publish(WEAVERS, CARAVANS, SALT)
    await divide(library, TRADES)
    weavers, caravans, salt = chunk_of(WEAVERS, CARAVANS, SALT)
    await report_on(
        library,
        report(
            "silk", "Silk was woven and carried.", "Bursa stood in its middle.", chunks=[weavers, caravans], rating=8
        ),
        report("weaving", "Anna wove silk in Bursa.", "Anna taught Basil.", chunks=[weavers]),
        report("carrying", "Dara led caravans to Tabriz.", "They took silk.", chunks=[caravans], rating=6),
        report("salt", "Egil dug salt in Hallein.", chunks=[salt], rating=4),
    )
    return library
