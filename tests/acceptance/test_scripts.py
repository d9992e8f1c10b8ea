"""Russian and Chinese through every derivation and strategy: nothing takes letters for Latin ones."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.model.cluster import Hierarchy, report_text
from quipu.model.query import Query
from quipu.providers.local import WordLlamaEmbedder
from quipu.retrieve import STRATEGIES
from quipu.retrieve.drift import DriftOptions
from quipu.settings import Settings
from quipu.testing.llm import ScriptedLLM
from quipu.testing.scripted.script import Script
from quipu.wiring import open_engine
from tests.acceptance.corpora import CHINESE, RUSSIAN, Corpus
from tests.laws.derived_world import keep_all
from tests.laws.model_world import dump_of, scripted_engine

CORPORA = {"Russian": RUSSIAN, "Chinese": CHINESE}
RANKING = [name for name, strategy in STRATEGIES.items() if strategy.ranks_passages]
_EMBEDDER = WordLlamaEmbedder()
NEAR_THE_TOP = 2  # of six passages
LEAST_SHARE = 0.99  # of letters

pytestmark = pytest.mark.parametrize("language", list(CORPORA))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index of each corpus, and all that is made on demand."""
    folder = tmp_path_factory.mktemp("scripts")
    for language, corpus in CORPORA.items():
        asyncio.run(_build(folder / language, corpus))
    return folder


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, read and reported on by a model."""
    folder = tmp_path_factory.mktemp("read")
    for language, corpus in CORPORA.items():
        asyncio.run(_build_with_model(folder / language, corpus))
    return folder


async def _build_with_model(folder: Path, corpus: Corpus) -> None:
    async with _read(folder) as kb:
        await kb.add(*corpus.documents())
        await keep_all(kb)


def _read(folder: Path) -> AbstractAsyncContextManager[Quipu]:
    return scripted_engine(folder, ScriptedLLM(Script()), embedder=_EMBEDDER)


async def _build(folder: Path, corpus: Corpus) -> None:
    async with _opened(folder) as kb:
        await kb.add(*corpus.documents())
        await keep_all(kb)


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[Quipu]:
    async with await open_engine(Settings(index=folder)) as kb:
        yield kb


async def _places(kb: Quipu, query: Query) -> list[str]:
    """Return the documents of the passages found, in order."""
    evidence = await kb.retrieve(query)
    async with kb._store.view() as view:
        chunks = {each.id: each.document_id for each in await view.chunks([hit.id for hit in evidence.chunks])}
    return [chunks[hit.id] for hit in evidence.chunks]


@pytest.mark.parametrize("name", RANKING)
async def test_a_strategy_finds_the_passage_that_answers(name: str, language: str, folder: Path) -> None:
    corpus, found = CORPORA[language], {}
    async with _opened(folder / language) as kb:
        for question in corpus.questions:
            query = Query(text=question, strategy=name, options=(DriftOptions(drift_follow_ups=0),))
            found[question] = (await _places(kb, query))[:NEAR_THE_TOP]
    assert {question: title for question, title in corpus.questions.items() if title not in found[question]} == {}
    if name != "drift":  # which has six passages for six titles
        assert sum(found[question][0] == title for question, title in corpus.questions.items()) >= 2


async def test_community_global_finds_reports_that_rest_on_it(language: str, folder: Path) -> None:
    corpus, n_found = CORPORA[language], 0
    async with _opened(folder / language) as kb:
        for question, title in corpus.questions.items():
            evidence = await kb.retrieve(question, strategy="community_global")
            async with kb._store.view() as view:
                reports = await view.cluster_reports([hit.id for hit in evidence.reports[:NEAR_THE_TOP]])
                chunks = await view.chunks([chunk for report in reports for chunk in report.chunks])
            n_found += title in {chunk.document_id for chunk in chunks}
    assert n_found >= len(corpus.questions) - 1


async def test_names_survive(language: str, folder: Path) -> None:
    async with _opened(folder / language) as kb:
        records = [json.loads(line) for line in await dump_of(kb)]
    assert set(CORPORA[language].names) <= {each["name"] for each in records if each["kind"] == "entity"}


async def test_names_that_are_much_alike_are_synonyms(language: str, folder: Path) -> None:
    corpus = CORPORA[language]
    async with _opened(folder / language) as kb:
        records = [json.loads(line) for line in await dump_of(kb)]
    pairs = [{each["first"], each["second"]} for each in records if each["kind"] == "synonym"]
    assert set(corpus.alike) in pairs
    assert all(corpus.share(name) >= LEAST_SHARE for pair in pairs for name in pair)


async def test_passages_are_divided_into_their_sentences(language: str, folder: Path) -> None:
    async with _opened(folder / language) as kb:
        records = [json.loads(line) for line in await dump_of(kb)]
    texts = {each["id"]: each["text"] for each in records if each["kind"] == "chunk"}
    ends = [texts[each["chunk"]][each["span"][1] - 1] for each in records if each["kind"] == "sentence"]
    assert len(ends) == sum(text.count(".") + text.count("。") for text in texts.values())
    assert set(ends) <= {".", "。"}


@pytest.mark.parametrize("hierarchy", list(Hierarchy))
async def test_reports_and_aggregates_are_told_in_the_script(hierarchy: Hierarchy, language: str, folder: Path) -> None:
    corpus = CORPORA[language]
    async with _opened(folder / language) as kb, kb._store.view() as view:
        clusters = await view.clusters(hierarchy)
        reports = await view.cluster_reports([each.id for each in clusters])
        relations = await view.cluster_relations([each.id for each in clusters])
    assert len(reports) == len(clusters) > 0
    assert all(each.title and each.summary for each in reports)
    assert all(corpus.share(report_text(each)) >= LEAST_SHARE for each in reports)
    assert all(corpus.share(each.description) >= LEAST_SHARE for each in relations)


@pytest.mark.parametrize("name", ["community_global", "drift"])
async def test_what_a_model_draws_from_reports_is_in_the_script(name: str, language: str, read: Path) -> None:
    corpus = CORPORA[language]
    async with _read(read / language) as kb:
        for question in corpus.questions:
            evidence = await kb.retrieve(question, strategy=name)
            assert evidence.points
            assert all(corpus.share(each.text) > 0.5 for each in evidence.points)  # types of entities are English


async def test_all_strategies_find_it_where_a_model_has_read_the_texts(language: str, read: Path) -> None:
    corpus = CORPORA[language]
    async with _read(read / language) as kb:
        for name in RANKING:
            for question, title in list(corpus.questions.items())[:2]:
                found = await _places(kb, Query(text=question, strategy=name))
                assert title in (found if name in ("path", "drift") else found[:NEAR_THE_TOP]), (name, question)
