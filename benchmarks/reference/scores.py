"""Scores of every strategy that ranks passages on one data set, through the public engine, beside its references."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import quipu
from benchmarks.reference.brute_force import Agreement, bm25, brute_force, convex_fusion, is_same, is_tied
from quipu.bench.datasets import Dataset, GoldQuestion, index_folder, sources_of
from quipu.bench.metrics import Mean, all_at, covers_answer, mean_percent, recall_at
from quipu.derive.catalog import CATALOG
from quipu.ingest.graph_import import ImportedExtractor, read_recordings
from quipu.ingest.local import LocalExtractor
from quipu.model.graph import Chunk
from quipu.ports.ingest import Extractor
from quipu.providers.local import ByteTokenizer
from quipu.settings import Settings
from quipu.wiring import make_analyzer, open_embedder, open_engine, open_store

RECORDED_FILE = "extraction.jsonl"
RECALLS_AT = (2, 5, 10, 20)
_TOKENIZER = ByteTokenizer()
ALL_AT = 8
COMPARED_AT = 5
FUSION = "convex fusion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One question asked with one strategy: the chunks it ranked and their documents, best first, and the time.

    `is_answered` tells whether there is an answer, `is_covered` whether it contains an expected one. `tokens` counts
    the context, `cpu_ms` includes all threads.
    """

    question: GoldQuestion
    chunks: tuple[str, ...]
    ranking: tuple[str, ...]
    is_answered: bool
    is_covered: bool
    tokens: int
    cpu_ms: float
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What was measured: the index of a data set, built with one embedder and one extractor."""

    dataset: str
    embedder: str
    extractor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The scores of one strategy, or of convex fusion, which has no answers and no times.

    Shares are in percent over the questions with gold, except `unanswerable_answered`. `gain` is the mean difference of
    the recall at 5 from that of convex fusion, question by question. `answered` is the share that got an answer,
    `covered` the share whose answer string stands in it; `unanswerable_answered` the share of the questions without
    gold that got an answer (less is better); `tokens`, `cpu_ms` and `ms` the medians of the context's tokens and of a
    question's processor and wall time.
    """

    dataset: str
    embedder: str
    extractor: str
    strategy: str
    recall: Mapping[int, Mean]
    all_found: Mean
    gain: Mean
    answered: Mean
    covered: Mean
    unanswerable_answered: Mean
    tokens: float
    cpu_ms: float
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The scores of a data set with one embedder, and how its plain rankings agree with their references."""

    scores: tuple[Score, ...]
    agreements: tuple[Agreement, ...]


async def measure(
    dataset: Dataset,
    cache: Path,
    strategies: Sequence[str],
    *,
    embedder: str = "wordllama",
    extractor: Extractor | None = None,
) -> Measured:
    """Return the scores of each strategy on `dataset`. Its index is kept in `cache` for the next run.

    Convex fusion of words and vectors comes first. The passages are read by the local rules, or by `extractor`. The
    rankings of `naive` and `lexical` are compared with their references.
    """
    reader = extractor or LocalExtractor()
    settings = Settings(index=await index_folder(dataset, cache, embedder, reader), embedder=embedder)
    async with await open_engine(settings, extractor=reader) as kb:
        await kb.add(*sources_of(dataset))
        await kb.refresh([strategy.name for strategy in CATALOG])  # also what some use only where it is kept
        chunks = await _chunks(kb)
        document_by_chunk = {chunk.id: chunk.document_id for chunk in chunks}
        outcomes = {
            name: [await _ask(kb, question, name, document_by_chunk) for question in dataset.questions]
            for name in strategies
        }
    fused = await _fusion_outcomes(settings, chunks, dataset.questions)
    setup = Setup(dataset=dataset.name, embedder=embedder, extractor=reader.identity)
    return Measured(
        scores=tuple(score(setup, name, outcome, fused) for name, outcome in {FUSION: fused, **outcomes}.items()),
        agreements=tuple(
            [await _agreement(settings, name, outcomes, chunks, dataset) for name in _checked(strategies)]
        ),
    )


def score(setup: Setup, strategy: str, outcomes: Sequence[Outcome], fused: Sequence[Outcome]) -> Score:
    """Return the score of a strategy from its outcome of every question, and from that of convex fusion."""
    with_gold = [outcome for outcome in outcomes if outcome.question.gold]
    answering = with_gold if strategy != FUSION else []
    without = [outcome for outcome in outcomes if not outcome.question.gold and strategy != FUSION]
    recalls, recalls_of_fusion = (
        [recall_at(COMPARED_AT, o.ranking, o.question.gold) for o in ranked if o.question.gold]
        for ranked in (outcomes, fused)
    )
    return Score(
        dataset=setup.dataset,
        embedder=setup.embedder,
        extractor=setup.extractor,
        strategy=strategy,
        recall={k: mean_percent([recall_at(k, o.ranking, o.question.gold) for o in with_gold]) for k in RECALLS_AT},
        all_found=mean_percent([all_at(ALL_AT, o.ranking, o.question.gold) for o in with_gold]),
        gain=mean_percent([own - other for own, other in zip(recalls, recalls_of_fusion, strict=True)]),
        answered=mean_percent([o.is_answered for o in answering]),
        covered=mean_percent([o.is_covered for o in answering]),
        unanswerable_answered=mean_percent([o.is_answered for o in without]),
        tokens=median(outcome.tokens for outcome in outcomes) if outcomes else 0.0,
        cpu_ms=median(outcome.cpu_ms for outcome in outcomes) if outcomes else 0.0,
        ms=median(outcome.ms for outcome in outcomes) if outcomes else 0.0,
    )


def table(scores: Iterable[Score]) -> str:
    """Return the scores as a Markdown table: means in percent with their 95 % intervals, and milliseconds."""
    recalls = [f"R@{k}" for k in RECALLS_AT]
    means = [*recalls, f"All@{ALL_AT}", f"R@{COMPARED_AT} − fusion", "answered", "covered", "unanswerable answered"]
    head = ["set", "embedder", "read by", "strategy", *means, "tokens", "CPU ms", "ms"]
    rows = [head, ["---"] * len(head)]
    for s in scores:
        values = (*s.recall.values(), s.all_found, s.gain, s.answered, s.covered, s.unanswerable_answered)
        figures = (f"{s.tokens:,.0f}", f"{s.cpu_ms:.0f}", f"{s.ms:.0f}")
        rows.append([s.dataset, s.embedder, s.extractor, s.strategy, *map(str, values), *figures])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


async def _fusion_outcomes(
    settings: Settings, chunks: Sequence[Chunk], questions: Sequence[GoldQuestion]
) -> list[Outcome]:
    """Return the rankings by convex fusion of words and vectors, computed by brute force, without answers."""
    document_by_chunk = {chunk.id: chunk.document_id for chunk in chunks}
    cosines = await _cosines(settings, chunks, questions, min_score=-1.0)
    by_words = await _bm25_scores(settings, chunks, questions)
    rankings = [
        convex_fusion(*scores, settings.query("").chunk_top_k) for scores in zip(cosines, by_words, strict=True)
    ]
    return [
        Outcome(
            question=question,
            chunks=tuple(ranking),
            ranking=tuple(dict.fromkeys(document_by_chunk[chunk] for chunk in ranking)),
            is_answered=False,
            is_covered=False,
            tokens=0,
            cpu_ms=0.0,
            ms=0.0,
        )
        for question, ranking in zip(questions, rankings, strict=True)
    ]


async def _chunks(kb: quipu.Quipu) -> list[Chunk]:
    reports = await asyncio.gather(*(kb.document(document.id) for document in await kb.documents()))
    return [chunk for report in reports for chunk in report.chunks]


async def _ask(kb: quipu.Quipu, question: GoldQuestion, strategy: str, document_by_chunk: Mapping[str, str]) -> Outcome:
    start, cpu_start = time.perf_counter(), time.process_time()
    answer = await kb.query(question.text, strategy=strategy)
    ms, cpu_ms = (time.perf_counter() - start) * 1000, (time.process_time() - cpu_start) * 1000
    chunks = tuple(hit.id for hit in answer.trace.evidence.chunks)
    ranking = dict.fromkeys(document_by_chunk[chunk] for chunk in chunks)
    return Outcome(
        question=question,
        chunks=chunks,
        ranking=tuple(ranking),
        is_answered=answer.is_supported,
        is_covered=answer.is_supported and covers_answer(answer.text, question.answers),  # a refusal covers nothing
        tokens=_TOKENIZER.count(answer.context),
        cpu_ms=cpu_ms,
        ms=ms,
    )


def _checked(strategies: Sequence[str]) -> list[str]:
    return [name for name in ("naive", "lexical") if name in strategies]


async def _agreement(
    settings: Settings,
    strategy: str,
    outcomes: Mapping[str, Sequence[Outcome]],
    chunks: Sequence[Chunk],
    dataset: Dataset,
) -> Agreement:
    """Compare the rankings of `naive` or `lexical` with the rankings of its reference."""
    k = settings.query("").chunk_top_k
    reference = await (_cosines if strategy == "naive" else _bm25_scores)(settings, chunks, dataset.questions)
    compared = [
        (is_same(outcome.chunks, scores, k), is_tied(outcome.chunks, scores, k))
        for outcome, scores in zip(outcomes[strategy], reference, strict=True)
    ]
    return Agreement(
        dataset=dataset.name,
        embedder=settings.embedder,
        strategy=strategy,
        reference="brute force" if strategy == "naive" else "plain BM25",
        questions=len(compared),
        same=sum(same for same, _ in compared),
        tied=sum(tied and not same for same, tied in compared),
    )


async def _cosines(
    settings: Settings, _chunks: Sequence[Chunk], questions: Sequence[GoldQuestion], min_score: float | None = None
) -> Iterator[dict[str, float]]:
    vectors = await (await open_embedder(settings)).embed_queries([question.text for question in questions])
    store = open_store(settings)
    try:
        async with store.view() as view:
            reference = await brute_force(view)
    finally:
        await store.close()
    least = settings.query("").min_similarity if min_score is None else min_score
    return (reference.scores(vector, min_score=least) for vector in vectors)


async def _bm25_scores(
    settings: Settings, chunks: Sequence[Chunk], questions: Sequence[GoldQuestion]
) -> Iterator[dict[str, float]]:
    analyzer = make_analyzer(settings)
    reference = bm25(chunks, analyzer)
    return (reference.scores(analyzer.query_terms(question.text)) for question in questions)


def read_recorded(folder: Path) -> ImportedExtractor | None:
    """Return an extractor that replays the extractions recorded in a data set's folder, None if there are none.

    Raises InvalidInput, which names the line, for an invalid record.
    """
    path = folder / RECORDED_FILE
    recordings = read_recordings(path) if path.is_file() else None
    return ImportedExtractor(recordings) if recordings else None
