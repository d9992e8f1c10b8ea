"""A command line under test: an engine that answers from memory, and what a command printed."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from quipu.cli.app import run
from quipu.errors import NotFound
from quipu.model.answer import Answer, AnswerPiece, Citation, Comparison, Overlap, RankedChunk, StrategyResult
from quipu.model.chat import TokenCount
from quipu.model.chunking import Chunking
from quipu.model.cluster import Cluster, ClusterReport, Finding, Hierarchy
from quipu.model.delta import ChunkFacts
from quipu.model.derivation import DerivationState, Freshness, RefreshCost, RepairResult
from quipu.model.document import Document, DocumentListing, DocumentStatus, Metadata, PurgeResult, SourceDocument
from quipu.model.event import Event, Progress
from quipu.model.evidence import (
    Chain,
    DroppedHits,
    Evidence,
    ExplainedChunk,
    Explanation,
    Hit,
    Scored,
    Seed,
    Step,
    SupportingHit,
    Timing,
    Trace,
)
from quipu.model.extraction import ExtractionExample, Ontology, RelationRule, TypeRule
from quipu.model.graph import (
    Chunk,
    Claim,
    ClaimMention,
    DatedStatement,
    Entity,
    EntityMention,
    Relation,
    RelationMention,
)
from quipu.model.query import Filter, Query
from quipu.model.results import (
    AddResult,
    DocumentDetails,
    EntityDetails,
    IndexStatus,
    RefreshResult,
    RelationDetails,
    RemovalPreview,
    RemoveResult,
    ReportDetails,
    SearchResult,
)
from quipu.model.tuning import (
    ExtractionComparison,
    ExtractionOutcome,
    SampledChunk,
    TuningCost,
    TuningResult,
    TypeCount,
    TypedName,
)
from quipu.model.usage import Estimate, Range, Stage, UsageRow
from quipu.settings import Settings

if TYPE_CHECKING:
    from quipu.engine import Quipu

CHUNK = Chunk(
    id="c0ffee",
    document_id="kober.md",
    title="Alice Kober",
    ordinal=0,
    text="Alice Kober taught classics at Brooklyn College.\x1b[31m [bold]",
    start=0,
    end=56,
    n_tokens=14,
    text_hash="00",
    headings=("Life",),
)
KOBER = Entity(key="alice kober", name="Alice Kober", type="Person", description="", n_mentions=2, n_chunks=1, degree=1)
TAUGHT = Relation(
    id="alice kober -- brooklyn college",
    source="alice kober",
    target="brooklyn college",
    source_name="Alice Kober",
    target_name="Brooklyn College",
    keywords=("taught",),
    description="Alice Kober taught classics at Brooklyn College.",
    weight=1.0,
    n_mentions=1,
    n_chunks=1,
)
MENTION = EntityMention(key="alice kober", surface="Alice Kober", type="Person")
CLAIM = ClaimMention(
    subject="alice kober",
    object="brooklyn college",
    type="praise",
    status="suspected",
    dates="1946",
    description="It is said that she praised it.\x1b[31m [bold]",
)
STATED = tuple(
    DatedStatement(
        entity="Alice Kober",
        other="Brooklyn College",
        text=f"Alice Kober taught {n} classes at Brooklyn College.\x1b[31m",
        document_id=f"{year}.md",
        title="",
        chunk_id="c0ffee",
        start=0,
        end=9,
        holds_from=f"{year}-01-01T12:00:00",
        holds_until="1950" * (year == 1946),
        differs_in=("number",),
    )
    for year, n in ((1946, 7), (1940, 5))
)
SEEN = Claim(
    id="c0ffee:0",
    chunk_id="c0ffee",
    subject_name="Alice Kober",
    object_name="Brooklyn College",
    **{name: getattr(CLAIM, name) for name in ClaimMention.__dataclass_fields__},
)
SAID = RelationMention(source="alice kober", target="brooklyn college", keywords=("taught",))
REPORT = AddResult(n_added=2, n_chunks=4, n_extracted=3, n_reused=1, extractor="local rules", seconds=2)
DOCUMENTS = [
    Document(
        id="kober.md", title="Alice Kober", status=DocumentStatus.READY, n_chunks=1, updated_at="2026-01-02T03:04:05Z"
    ),
    Document(id="letters/a.md", title="A letter", status=DocumentStatus.READY, n_chunks=2),
    Document(id="letters/b.md", title="", status=DocumentStatus.FAILED, error="It is empty. Leave it out."),
]

REFRESHED = RefreshResult(n_embedded=1)
READ = UsageRow(
    day="2026-01-02",
    stage=Stage.EXTRACT,
    model="openai/gpt-4.1-mini",
    subject="kober.md",
    n_calls=3,
    tokens=TokenCount(input=3_000, cached=1_000, output=900),
    cost=2_340,
)
ASKED = UsageRow(
    day="2026-01-03",
    stage=Stage.ANSWER,
    model="custom/own",
    subject="Who was Alice Kober?",
    n_calls=1,
    tokens=TokenCount(input=2_000_000, output=100),
    n_unpriced=1,
    n_interrupted=1,
    interrupted_tokens=TokenCount(input=50, output=50),
)
ESTIMATE = Estimate(
    n_documents=3,
    n_unchanged=1,
    n_unreadable=0,
    n_chunks=40,
    n_cached=2,
    model="openai/gpt-4.1-mini",
    basis="typical figures; --sample measures some chunks first",
    calls=Range(low=38, likely=57, high=76),
    input_tokens=Range(low=40_000, likely=60_000, high=1_234_567),
    output_tokens=Range(low=10_000, likely=20_000, high=30_000),
    seconds=Range(low=8, likely=130, high=9_000),
    cost=Range(low=10_000, likely=56_000, high=1_100_000),
)

STATES = (
    DerivationState(name="vectors", freshness=Freshness.FRESH, contents="5 by wordllama", n_items=5, n_bytes=2_500_000),
    DerivationState(
        name="reports",
        freshness=Freshness.STALE,
        contents="41 reports\x1b[31m",
        n_items=41,
        n_stale=3,
        n_bytes=20_000,
        cost=RefreshCost(n_calls=3, input_tokens=9_000, output_tokens=1_200, n_texts=3, money=12_345),
    ),
    DerivationState(name="hierarchy", freshness=Freshness.MISSING, cost=RefreshCost(n_calls=12)),
)
FOUND_REPORT = ReportDetails(
    cluster=Cluster(id="beefed", hierarchy=Hierarchy.COMMUNITIES, level=1, parent="abba", n_entities=1),
    report=ClusterReport(
        cluster="beefed",
        title="Kober and Linear B\x1b[31m",
        summary="She worked [bold] on it.",
        findings=(Finding(summary="Her cards.", explanation="She kept 180,000 of them."), Finding(summary="Triplets.")),
        rating=3.5,
        chunks=("c0ffee",),
        model="openai/small",
    ),
    is_current=True,
    entities=(KOBER,),
    chunks=(CHUNK,),
    ancestors=(("abba", "Scripts"),),
    children=(("beef01", ""),),
    neighbours=(("beef02", "Knossos", "Both tell of tablets."),),
)
_EVIDENCE = Evidence(chunks=(Hit(id="c0ffee", score=0.5, reason="near"),))
_ANSWER = Answer(
    text="She taught classics. [1]",
    generator="extractive",
    citations=(),
    trace=Trace(strategy="naive", revision=3, evidence=_EVIDENCE),
    context="CONTEXT",
)
COMPARISON = Comparison(
    question="Who was Alice Kober?",
    results=(
        StrategyResult(
            strategy="naive",
            answer=_ANSWER,
            chunks=(
                RankedChunk(id="c0ffee", document_id="kober.md", title="Alice\x1b Kober", score=0.5, reason="near"),
            ),
            entities=("Brooklyn College",),
            n_chunks=1,
            n_context_tokens=1_234,
            n_calls=2,
            ms=7.5,
        ),
        StrategyResult(strategy="mix", answer=replace(_ANSWER, trace=replace(_ANSWER.trace, strategy="mix"))),
        StrategyResult(strategy="community_local", answer=_ANSWER, reports=(("beefed00cafe", "Kober and Linear B"),)),
    ),
    overlaps=(Overlap(first="naive", second="mix", jaccard=0.25, n_both=1),),
    skipped=(("bypass", "It looks nothing up."),),
)
EXPLANATION = Explanation(
    question="Who was Alice Kober?",
    strategy="mix",
    revision=3,
    n_chunks=2,
    seeds=(Seed(text="Kober", kind="name", matches=(Scored(id="alice kober", score=1.0),)),),
    names=(("alice kober", "Alice Kober"),),
    chunks=(
        ExplainedChunk(
            id="c0ffee",
            document_id="kober.md",
            title="Letters",
            text="Alice Kober taught classics.\x1b[31m",
            rank=1,
            score=0.5,
            reason="names Alice Kober",
            supporting_hits=(
                SupportingHit(
                    kind="entity",
                    id="x",
                    name="Alice Kober",
                    rank=2,
                    score=0.9,
                    reason="named",
                    connection="mentioned 2 times",
                ),
            ),
            chains=(
                Chain(seed="Kober", kind="vector", score=0.4),
                Chain(
                    seed="Kober",
                    kind="name",
                    score=1.0,
                    start="Alice Kober",
                    steps=(
                        Step(source="Alice Kober", relation="r", target="Brooklyn", description="She taught there."),
                    ),
                ),
            ),
        ),
        ExplainedChunk(id="dead", document_id="b.md", title="", text="Other.", rank=0, score=0.0, reason="not found"),
    ),
    notes=("a note",),
)
TUNING = TuningResult(
    file="types:\n  Person:\n",
    ontology=Ontology(
        domain="Letters.\x1b[31m",
        types=(TypeRule(name="Person", description="a human being"), TypeRule(name="Script")),
        relations=(RelationRule(name="taught at", description="held lessons in", domain=("Person",)),),
        examples=(ExtractionExample(text="Ann.", entities=()),),
    ),
    method="the language model openai/small",
    n_documents=3,
    n_unreadable=1,
    n_chunks=40,
    sample=(
        SampledChunk(chunk_id="c0ffee", document_id="kober.md", title="Alice Kober", n_tokens=14),
        SampledChunk(chunk_id="dead", document_id="b.md", title="", n_tokens=14, is_compared=True),
    ),
    type_counts=(TypeCount(name="Person", n=1_234),),
    prompt_diff="--- prompt before\n+++ prompt tuned\n@@ -1 +1 @@\n-old\x1b\n+new",
    comparisons=(
        ExtractionComparison(
            chunk_id="dead",
            document_id="b.md",
            title="A letter\x1b",
            before=ExtractionOutcome(
                entities=(TypedName(name="Linear B", type="Other"), TypedName(name="Ann", type="Person"))
            ),
            after=ExtractionOutcome(
                entities=(TypedName(name="linear b", type="Script"), TypedName(name="Pylos", type="Place"))
            ),
            only_before=("Ann",),
            only_after=("Pylos",),
            retyped=("linear b",),
        ),
    ),
    notes=("The type 'x' was left out: it has no usable name.",),
    usage=(READ,),
)
TUNING_COST = TuningCost(
    model="openai/small",
    calls=Range(low=7, likely=10, high=14),
    input_tokens=Range(low=9_000, likely=13_000, high=22_000),
    output_tokens=Range(low=600, likely=1_700, high=3_800),
    money=Range(low=1_000, likely=2_000, high=1_500_000),
)


@dataclass
class FakeEngine:
    """Answers from memory and keeps what it was asked."""

    settings: Settings | None = None
    may_create: bool = False
    is_closed: bool = False
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    chunkings: list[Chunking | None] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    added: AddResult = REPORT
    refreshed: RefreshResult = REFRESHED
    planned: tuple[DerivationState, ...] = ()
    comparison: Comparison = COMPARISON
    also_compared: tuple[StrategyResult, ...] = ()
    explanation: Explanation = EXPLANATION
    found_report: ReportDetails = FOUND_REPORT
    estimated: Estimate = ESTIMATE
    tuning: TuningResult = TUNING
    usage_rows: list[UsageRow] = field(default_factory=list)
    models: tuple[tuple[str, str], ...] = ()
    answer_usage: tuple[UsageRow, ...] = ()
    differences: list[str] = field(default_factory=list)
    repairs: RepairResult = field(default_factory=lambda: RepairResult(repaired=("a", "b")))
    is_interrupted: bool = False
    jobs: tuple[tuple[str, int], ...] = (("failed", 1), ("queued", 4))
    stale: tuple[str, ...] = ()
    readers: tuple[tuple[str, int], ...] = ()
    rereads: bool = False

    async def open(self, settings: Settings, *, create: bool, repair: bool) -> "Quipu":
        self.settings, self.may_create = settings, create
        return cast("Quipu", self)

    async def close(self) -> None:
        self.is_closed = True

    async def add(
        self,
        *sources: Path | SourceDocument,
        root: Path | None,
        metadata: Metadata,
        chunking: Chunking | None,
        on_event: Callable[[Event], None],
        reread: bool = False,
    ) -> AddResult:
        if self.is_interrupted:
            raise asyncio.CancelledError
        on_event(Progress(stage="extract", n_done=1, n_total=4))
        self.calls.append(("add", sources, root, metadata))
        self.chunkings.append(chunking)
        self.rereads = reread
        return self.added

    async def add_text(self, text: str, **options: Any) -> AddResult:
        options.pop("on_event", None)
        self.calls.append(("add_text", text, options))
        return self.added

    async def estimate(self, *sources: Path | SourceDocument, n_sample: int, **options: Any) -> Estimate:
        self.calls.append(("estimate", sources, n_sample))
        self.rereads = options["reread"]
        return self.estimated

    async def tune(self, *sources: Path, on_event: Callable[[Event], None], **options: Any) -> TuningResult:
        self.calls.append(("tune", sources, options))
        if options["dry_run"]:
            return replace(self.tuning, file="", cost=self.tuning.cost or TUNING_COST)
        return self.tuning

    async def usage(self, since: str, until: str) -> list[UsageRow]:
        self.calls.append(("usage", since, until))
        return self.usage_rows

    async def resume(self, on_event: Callable[[Event], None]) -> AddResult:
        self.calls.append(("resume",))
        return self.added

    async def retry(self, ids: Sequence[str] | None = None) -> int:
        self.calls.append(("retry", ids))
        return 1

    async def cancel(self, ids: Sequence[str]) -> int:
        self.calls.append(("cancel", list(ids)))
        return len(ids)

    async def preview_removal(self, ids: Sequence[str], k: int) -> RemovalPreview:
        self.calls.append(("preview_removal", list(ids), k))
        return RemovalPreview(
            documents=tuple(ids),
            n_chunks=4,
            n_claims=0,
            n_entities=2,
            n_entities_changed=1,
            n_relations=1,
            n_relations_changed=0,
            n_clusters_changed=1,
            n_reports=1,
            n_replies=3,
            n_answers=2,
            entities=(KOBER,),
            reports=(("r1", "Scripts"),),
        )

    async def remove(self, ids: Sequence[str], on_event: Callable[[Event], None]) -> RemoveResult:
        self.calls.append(("remove", list(ids)))
        return RemoveResult(removed=tuple(ids), refreshed=self.refreshed)

    async def query(self, query: Query) -> Answer:
        self.queries.append(query)
        evidence = Evidence(
            chunks=(Hit(id="c0ffee", score=0.5, reason="names Alice Kober"),),
            claims=(Hit(id="c0ffee:0", score=0.4, reason="is about alice kober"),),
            seeds=(Seed(text="Alice Kober", kind="name", matches=(Scored(id="alice kober", score=1.0),)),),
        )
        trace = Trace(
            strategy=query.strategy,
            revision=3,
            evidence=evidence,
            dropped=(DroppedHits(section="chunks", budget=10, ids=("dead", "beef")),),
            timings=(Timing(stage="retrieve", ms=1.5),),
            notes=("a note",),
            stale=("not computed yet: 2 vectors",),
        )
        quote = Citation(
            number=1,
            document_id="kober.md",
            title="Alice Kober",
            chunk_id="c0ffee",
            start=0,
            end=48,
            quote="Alice Kober taught classics at Brooklyn College.",
            headings=("Life",),
        )
        text = "Alice Kober taught classics at Brooklyn College. [1]"
        return Answer(
            text=text,
            generator="extractive",
            citations=(quote,),
            trace=trace,
            context="CONTEXT",
            prompt="PROMPT",
            usage=self.answer_usage,
        )

    async def stream(self, query: Query) -> AsyncGenerator[AnswerPiece, None]:
        self.calls.append(("stream", query.strategy))
        answer = await self.query(query)
        for start in range(0, len(answer.text), 16):
            yield AnswerPiece(text=answer.text[start : start + 16])
        yield AnswerPiece(answer=answer)

    async def search(self, text: str, k: int, *, as_of: str = "") -> SearchResult:
        self.calls.append(("search", text, k))
        return SearchResult(
            chunks=((Scored(id="c0ffee", score=2.5), CHUNK),), entities=(KOBER,), snippets=((0, len(CHUNK.text)),)
        )

    async def documents(
        self, listing: DocumentListing | None = None, allowed: Filter | None = None, *, ids: Sequence[str] | None = None
    ) -> list[Document]:
        if ids is not None:
            return [document for document in DOCUMENTS if document.id in ids]
        self.calls += [] if listing is None else [("documents", listing, allowed)]
        statuses = listing.statuses if listing else ()
        return [document for document in DOCUMENTS if not statuses or document.status in statuses][
            : listing.k if listing else None
        ]

    async def document(self, document_id: str, *, as_of: str) -> DocumentDetails:
        if document_id != "kober.md":
            raise NotFound(f"There is no document {document_id!r}.", remedy="Did you mean kober.md?")
        return DocumentDetails(document=DOCUMENTS[0], chunks=(CHUNK,))

    async def chunk(self, chunk_id: str) -> ChunkFacts:
        return ChunkFacts(chunk=CHUNK, entities=(MENTION,), relations=(SAID,), claims=(CLAIM,))

    async def entity(self, name: str, *, as_of: str) -> EntityDetails:
        return EntityDetails(
            entity=KOBER, relations=(TAUGHT,), chunks=((CHUNK, 2),), claims=(SEEN,), differing=(STATED,)
        )

    async def relation(self, first: str, second: str, *, as_of: str) -> RelationDetails:
        self.calls.append(("relation", first, second))
        return RelationDetails(relation=TAUGHT, chunks=(ChunkFacts(chunk=CHUNK),), statements=STATED)

    async def report(self, report_id: str) -> ReportDetails:
        self.calls.append(("report", report_id))
        return self.found_report

    async def status(self) -> IndexStatus:
        return IndexStatus(
            path="/kb",
            revision=3,
            n_documents=2,
            n_chunks=3,
            n_entities=1,
            n_relations=1,
            n_mentions=2,
            n_links=0,
            n_vectors=5,
            n_replies=3,
            jobs=self.jobs,
            stale=self.stale,
            extractor="local/5 (local rules, no language model)",
            embedder="wordllama",
            dimension=256,
            n_bytes=1_000_000,
            schema=1,
            models=self.models,
            extractors=self.readers,
            derivations=STATES,
        )

    async def verify(self) -> list[str]:
        return self.differences

    async def repair(self, *, accept_losses: bool, on_event: Callable[[Event], None]) -> RepairResult:
        self.calls.append(("repair", accept_losses))
        return self.repairs

    async def purge(self, *, before: str, dry_run: bool) -> PurgeResult:
        return PurgeResult(n_rows=7)

    async def refresh(self, names: Sequence[str], *, rebuild: bool, on_event: Callable[[Event], None]) -> RefreshResult:
        self.calls.append(("refresh", tuple(names), rebuild))
        return self.refreshed

    async def plan(self, names: Sequence[str], *, rebuild: bool) -> tuple[DerivationState, ...]:
        self.calls.append(("plan", tuple(names), rebuild))
        return self.planned

    async def drop(self, names: Sequence[str]) -> tuple[str, ...]:
        self.calls.append(("drop", tuple(names)))
        return tuple(names)

    async def prepare(self, query: Query, on_event: Callable[[Event], None]) -> None:
        self.calls.append(("prepare", query.strategy))

    async def compare(self, query: Query, strategies: Sequence[str]) -> Comparison:
        self.queries.append(query)
        self.calls.append(("compare", tuple(strategies)))
        return replace(self.comparison, results=(*self.comparison.results, *self.also_compared))

    async def explain(self, query: Query, *, chunk: str, rank: int | None) -> Explanation:
        self.queries.append(query)
        self.calls.append(("explain", chunk, rank))
        return self.explanation

    async def reembed(self, on_event: Callable[[Event], None]) -> int:
        return 5

    async def dump(self) -> AsyncIterator[str]:
        for line in ('{"a": 1}', '{"b": 2}'):
            yield line


@dataclass(frozen=True)
class Ran:
    """What a command line printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


Cli = Callable[..., Ran]


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def cli(engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run command lines in an empty folder against the fake engine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("QUIPU_LLM", "QUIPU_LLM_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def ran(*words: str, env: Mapping[str, str] | None = None) -> Ran:
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        code = run(words, engine.open)
        printed = capsys.readouterr()
        return Ran(code=code, out=printed.out, err=printed.err)

    return ran
